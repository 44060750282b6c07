"""Alarms, and warnings that point at the line of the caller, not into this package, nor into
scikit-learn and joblib, which may call it.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import joblib
import sklearn

_PACKAGES = tuple(
    str(folder) + os.sep
    for folder in (
        Path(__file__).parents[1],
        Path(sklearn.__file__).parent,
        Path(joblib.__file__).parent,
    )
)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside the packages; a message that is a warning is its own
    category.
    """
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=_PACKAGES)
    else:
        warnings.warn(message, category, stacklevel=_caller_level())


def _caller_level() -> int:
    """`stacklevel` of the innermost line outside the packages, as counted by the function that
    calls this one.
    """
    frame = sys._getframe(1)
    level = 1
    while frame.f_code.co_filename.startswith(_PACKAGES) and frame.f_back is not None:
        frame = frame.f_back
        level = level + 1
    return level


@dataclass(frozen=True)
class Alarm:
    """One reason not to trust a number.

    Attributes
    ----------
    kind : str
        Its name, by which alarms are grouped: the key of its paragraph in the guide's pages of
        alarms.
    seen : str
        The finding, with its numbers.
    remedy : str
        What the user can do.
    severity : {"untrusted", "imprecise"}
        "imprecise" where all that is wrong is that the error is large.
    """

    kind: str
    seen: str
    remedy: str = ""
    severity: str = "untrusted"

    def __str__(self) -> str:
        return f"{self.seen}: {self.remedy}" if self.remedy else self.seen

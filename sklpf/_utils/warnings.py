"""Alarms, and warnings that point at the line of the caller, not into this package, nor into
scikit-learn and joblib, which may call it.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

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
_STANDARD_LIBRARY = str(Path(threading.__file__).parent) + os.sep
_OTHERS = ("site-packages", "dist-packages")  # folders within it


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside the packages; a message that is a warning is its own
    category.

    A thread of joblib's or of a pool has no such line: it is the one at which the main thread
    waits.
    """
    frame = _callers_frame()
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _callers_frame() -> FrameType:
    """The innermost frame of a caller, in this thread or the main one."""
    own = sys._getframe(1)
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    for frame in (own, main):
        while frame is not None:
            if _is_callers(frame.f_code.co_filename):
                return frame
            frame = frame.f_back
    return own


def _is_callers(file: str) -> bool:
    if file.startswith(_PACKAGES):
        return False
    return not file.startswith(_STANDARD_LIBRARY) or any(each in file for each in _OTHERS)


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

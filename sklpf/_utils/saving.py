"""Fitted models and results that were saved know the version that saved them."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

import sklpf
from sklpf._utils.warnings import warn

_NAME = "_sklpf_version"


class OtherVersionWarning(InconsistentVersionWarning):
    """As scikit-learn's, but its message and its two versions are of this library.

    The message names no class: it is the same for all that one file holds, and Python shows it
    once.
    """

    def __str__(self) -> str:
        return (
            f"what was saved by version {self.original_sklearn_version} of sklpf is read by version"
            f" {self.current_sklearn_version}, whose numbers and attributes may be others: fit it"
            " anew, or read it by the version that saved it"
        )


class Versioned:
    """What is read back from a pickle, a file of joblib or of skops warns if another version saved
    it.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {**(super().__getstate__() or {}), _NAME: sklpf.__version__}  # type: ignore[misc,dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop(_NAME, "unknown")
        if version != sklpf.__version__:
            versions = {
                "original_sklearn_version": version,
                "current_sklearn_version": sklpf.__version__,
            }
            warn(OtherVersionWarning(estimator_name=type(self).__name__, **versions))
        parent = getattr(super(), "__setstate__", self.__dict__.update)
        parent(state)

"""Fitted models and results that were saved know the version that saved them."""

from __future__ import annotations

from typing import Any

import sklpf
from sklpf._warnings import warn

_NAME = "_sklpf_version"


class Versioned:
    """What is read back from a pickle, a file of joblib or of skops warns if another version saved it."""

    def __getstate__(self) -> dict[str, Any]:
        return {**(super().__getstate__() or {}), _NAME: sklpf.__version__}  # type: ignore[misc,dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop(_NAME, "unknown")
        if version != sklpf.__version__:
            warn(
                f"a {type(self).__name__} saved by version {version} of sklpf is read by version {sklpf.__version__}, "
                "whose numbers and attributes may be others: fit it anew, or read it by the version that saved it"
            )
        parent = getattr(super(), "__setstate__", self.__dict__.update)
        parent(state)

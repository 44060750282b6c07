"""What is read of a model or an estimator before `fit` says that `fit` is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.exceptions import NotFittedError


class FittedAttributes:
    """Attributes whose names end in _ are there after `fit`: before it reading one raises
    NotFittedError.

    That is an AttributeError too, so that `hasattr` and `getattr` with a default work.
    """

    if not TYPE_CHECKING:  # else any name would have a type

        def __getattr__(self, name: str) -> Any:
            fitted = any(known.endswith("_") for known in vars(self) if not known.startswith("_"))
            if (
                fitted
                or name.startswith("_")
                or not name.endswith("_")
                or hasattr(type(self), name)
            ):
                return object.__getattribute__(self, name)  # which raises what it raised before
            raise NotFittedError(
                f"'{type(self).__name__}' object has no attribute '{name}': call fit first, which"
                " sets the attributes whose names end in _"
            )

"""Every private scikit-learn import of the package, and what completes its conventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Options, StrOptions
from sklearn.utils._param_validation import Interval as ConstraintInterval
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config

if TYPE_CHECKING:
    # scikit-learn has no types: with its own classes as bases any name would pass as a parameter

    class BaseEstimator:
        """The part of scikit-learn's that users call."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **parameters: object) -> Self: ...

        n_features_in_: int

        def __getattr__(self, name: str) -> Any: ...

    class CallbackSupportMixin:
        """Likewise."""

        def set_callbacks(self, *callbacks: object) -> Self: ...

    class TransformerMixin:
        """Likewise."""

        fit_transform: Any
        set_output: Any

    class ClassNamePrefixFeaturesOutMixin:
        """Likewise."""

        get_feature_names_out: Any

    class DensityMixin:
        """Likewise."""

    AutoPropagatedCallback: Any
    with_callbacks: Any
else:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        DensityMixin,
        TransformerMixin,
    )

    try:  # experimental, and new in scikit-learn 1.9
        from sklearn.callback import AutoPropagatedCallback, CallbackSupportMixin, with_callbacks
    except ImportError:

        class AutoPropagatedCallback:
            """Stands for that of scikit-learn 1.9."""

        class CallbackSupportMixin:
            """Stands for that of scikit-learn 1.9: an estimator without `set_callbacks`, to which
            nobody listens.
            """

        def with_callbacks(method):
            return method


def in_container(model: Any, rows: Any) -> Any:
    """Return rows of data (n, n_features) in the container that `set_output` asks for."""
    kind = _get_output_config("transform", model)["dense"]
    if kind == "default":
        return rows
    names = getattr(model, "feature_names_in_", [f"x{k}" for k in range(rows.shape[1])])
    adapter = ADAPTERS_MANAGER.adapters[kind]
    return adapter.create_container(rows, rows, columns=names)


class DrawsInContainer:
    """`set_output` of a model that transforms nothing, but draws rows."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container of the rows that `sample` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            As in scikit-learn; None changes nothing.

        Returns
        -------
        self
        """
        if transform is not None:
            supported = sorted({"default", *ADAPTERS_MANAGER.supported_outputs})
            if transform not in supported:
                raise ValueError(f"transform must be one of {supported}, got {transform!r}")
            self._sklearn_output_config = {"transform": transform}
        return self


__all__ = [
    "AutoPropagatedCallback",
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "ConstraintInterval",
    "DensityMixin",
    "DrawsInContainer",
    "HasMethods",
    "Options",
    "StrOptions",
    "TransformerMixin",
    "in_container",
    "safe_indexing",
    "with_callbacks",
]

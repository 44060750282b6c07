"""Every private scikit-learn import of the package, and what completes its conventions."""

from __future__ import annotations

import inspect
import re
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn import get_config
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils import _param_validation
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Options, StrOptions
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config

from sklpf._utils import __version__
from sklpf._utils.warnings import warn

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


_NAME = "_sklpf_version"


class Interval(_param_validation.Interval):
    """Numbers of an interval; True and False are none, though Python counts them among the
    integers.
    """

    def is_satisfied_by(self, val):
        return not isinstance(val, (bool, np.bool_)) and super().is_satisfied_by(val)


def at_least(n: int) -> Interval:
    """The integers from n on."""
    return Interval(Integral, n, None, closed="left")


POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
INSIDE_0_1 = Interval(Real, 0, 1, closed="neither")
N_JOBS = [Interval(Integral, None, -1, closed="right"), at_least(1), None]


class Instance(HasMethods):
    """Instances of a class, which an error message names in words."""

    def __init__(self, kind: type | tuple[type, ...], words: str):
        super().__init__(["fit"])
        self.kind = kind
        self.words = words

    def is_satisfied_by(self, val):
        return isinstance(val, self.kind)

    def __str__(self):
        return self.words


class _DocumentedOrder:
    """Signature of a class whose keyword parameters are in the order of its docstring: fields of
    base classes come first in a dataclass, and what all models share would stand before their own.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if owner.__init__ is object.__init__:  # type: ignore[misc]
            return inspect.Signature()
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        documented = re.findall(r"^    (\w[\w, ]*) : ", owner.__doc__ or "", re.M)
        places = {name: i for i, name in enumerate(", ".join(documented).split(", "))}
        parameters = sorted(
            list(signature.parameters.values())[1:],
            key=lambda parameter: (parameter.kind, places.get(parameter.name, len(places))),
        )
        return signature.replace(parameters=parameters)


class ValidatedParameters:
    """Parameters that are validated unless scikit-learn's configuration has
    ``skip_parameter_validation``.
    """

    __signature__ = _DocumentedOrder()

    def _validate_params(self) -> None:
        if not get_config()["skip_parameter_validation"]:
            super()._validate_params()  # type: ignore[misc]


class FittedAttributes(ValidatedParameters):
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


__all__ = [
    "AutoPropagatedCallback",
    "BaseEstimator",
    "CallbackSupportMixin",
    "ClassNamePrefixFeaturesOutMixin",
    "DensityMixin",
    "DrawsInContainer",
    "FittedAttributes",
    "HasMethods",
    "Instance",
    "Interval",
    "Options",
    "ValidatedParameters",
    "StrOptions",
    "TransformerMixin",
    "in_container",
    "safe_indexing",
    "with_callbacks",
]


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
    """Objects that warn when they are read back (pickle, joblib, skops) from another version."""

    def __getstate__(self) -> dict[str, Any]:
        return {**(super().__getstate__() or {}), _NAME: __version__}  # type: ignore[misc,dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop(_NAME, "unknown")
        if version != __version__:
            versions = {
                "original_sklearn_version": version,
                "current_sklearn_version": __version__,
            }
            warn(OtherVersionWarning(estimator_name=type(self).__name__, **versions))
        parent = getattr(super(), "__setstate__", self.__dict__.update)
        parent(state)

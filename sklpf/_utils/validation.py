"""Validation: parameters of estimators and the version that saved them, rows of data, fitted
attributes, and numbers that callers give; errors name the parameter.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.utils import validation
from sklearn.utils.validation import check_array, check_is_fitted

from sklpf._utils import __version__
from sklpf._utils.numbers import Array, Booleans
from sklpf._utils.sklearn import ConstraintInterval, HasMethods
from sklpf._utils.warnings import warn

_VERSION = "_sklpf_version"  # in what is saved

TOO_FAR = "they lie so far from the model that log f is no finite number"
_NO_MISSING = (
    "and this model takes no missing values: drop such rows, or fill them by scikit-learn's"
    " SimpleImputer before the model in a pipeline"
)
_NONE_IN_SPARSE = (
    "X is a sparse matrix that contains NaN, but missing values are taken from dense rows alone:"
    " give X.toarray()"
)

# by NumPy's kinds of arrays
_NOT_REAL = {"c": "complex numbers", "M": "dates", "m": "durations", "U": "text", "S": "text"}

# Of parameters, so that products of three are finite. A float64 also beside arrays of float32.
LARGEST = np.float64(1e100)


# -- estimators
class Interval(ConstraintInterval):
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
        documented = re.findall(r"^(\w[\w, ]*) : ", inspect.cleandoc(owner.__doc__ or ""), re.M)
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
        return {**(super().__getstate__() or {}), _VERSION: __version__}  # type: ignore[misc,dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version = state.pop(_VERSION, "unknown")
        if version != __version__:
            versions = {
                "original_sklearn_version": version,
                "current_sklearn_version": __version__,
            }
            warn(OtherVersionWarning(estimator_name=type(self).__name__, **versions))
        parent = getattr(super(), "__setstate__", self.__dict__.update)
        parent(state)


# -- rows of data
def validate_rows(model, X, **options):
    """`validate_data` for dense or CSR rows; CSR is returned in canonical format.

    X itself is never changed: where its duplicates have to be summed, that is done in a copy.

    Raises
    ------
    ValueError
        As `validate_data`, and if the indices of a sparse X don't fit its shape.
    """
    check_indices(X)
    X = validate_data(model, X, accept_sparse="csr", **options)
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def validate_data(model, X, **options):
    """`validate_data` of scikit-learn, with errors that say what to do with text and with columns
    of one name.

    Raises
    ------
    ValueError
        As there.
    """
    if all(hasattr(X, name) for name in ("record", "variables", "vartype")):
        rows = _rows_of_samples(model, X, options.pop("reset", True))
        return check_array(rows, order="C", **options)
    X = without_gradients(X)
    if any(kind in "mM" for kind in _kinds(X)):
        raise ValueError(
            "X holds dates or durations, whose numbers depend on their unit: make numbers of them,"
            " such as days since the first"
        )
    columns = getattr(X, "columns", None)
    if columns is not None and not getattr(columns, "is_unique", True):
        twice = sorted({str(name) for name in columns[columns.duplicated()]})
        raise ValueError(
            f"X has several columns of the name {', '.join(twice)}: rename them or drop all but one"
        )
    takes_missing = getattr(model, "_takes_missing", False)
    if np.ma.is_masked(X):
        instead = "give X.filled(np.nan), of float" if takes_missing else _NO_MISSING
        raise ValueError(f"X has masked entries, {instead}")
    if takes_missing:
        options["ensure_all_finite"] = "allow-nan"
    try:
        rows = validation.validate_data(model, X, order="C", **options)
    except (TypeError, ValueError) as error:
        first = _first_entry(X)
        if isinstance(first, str) or "convert string" in str(error):
            raise ValueError(
                "X holds text and no numbers: make numbers of it first, by scikit-learn's"
                " CountVectorizer (documents), OneHotEncoder or OrdinalEncoder (categories)"
                f" ({error})"
            ) from error
        if isinstance(first, tuple):
            raise ValueError(
                "X holds pairs of words and counts: gensim.matutils.corpus2csc(X).T is a matrix of"
                f" them ({error})"
            ) from error
        if "array element" in str(error):
            raise ValueError(
                "X must be a rectangular array of numbers, but an entry is itself a sequence, or"
                " rows differ in length"
            ) from None
        if "Complex data" in str(error):
            raise ValueError(
                "X holds complex numbers: take its real part, or np.abs(X) (Complex data not"
                " supported)"
            ) from None
        if "contains NaN" in str(error):
            raise ValueError(f"Input X contains NaN, {_NO_MISSING}") from None
        if "X" in str(error):
            raise
        raise type(error)(f"X can't be used: {error}") from error
    if takes_missing and sp.issparse(rows) and np.isnan(rows.data).any():
        raise ValueError(_NONE_IN_SPARSE)
    return rows


def _kinds(X) -> list[str]:
    """NumPy's kinds of an array, or of each column of a frame."""
    types = getattr(X, "dtypes", None)
    types = [getattr(X, "dtype", None)] if types is None else list(types)
    return [kind for kind in (getattr(each, "kind", "") for each in types) if kind]


def _rows_of_samples(model, samples, is_fit: bool) -> Array:
    """Rows of 0 and 1, one for each read of dimod's SampleSet, with the columns of a model that
    knows its variables.
    """
    variables = getattr(model, "variables_", None)
    if is_fit or variables is None:
        raise TypeError(
            "X is a SampleSet of dimod, and only models of from_dimod know the order of its"
            " variables: give sampleset.to_pandas_dataframe()[variables], of spins (s + 1) / 2"
        )
    places = {variable: place for place, variable in enumerate(samples.variables)}
    if places.keys() != set(variables):
        raise ValueError(
            f"X is a SampleSet of {len(places)} variables that are not the {len(variables)} of the"
            " model: give samples of the same binary quadratic model"
        )
    rows = samples.record.sample[:, [places[variable] for variable in variables]]
    rows = np.repeat(rows.astype(np.float64), samples.record.num_occurrences, axis=0)
    return (rows + 1) / 2 if samples.vartype.name == "SPIN" else rows


class SparseInput:
    """A model whose rows may be sparse, of float64 or float32."""

    def _validate(self, X, reset=False):
        """X as rows of floating-point numbers."""
        return validate_rows(self, X, reset=reset, dtype=(np.float64, np.float32))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_fitted(model) -> dict[str, int]:
    """Check a model before its weights are read: both weights and parameters may have been set.

    The model names the dimensions of its fitted attributes in ``_fitted_shapes``, a dict such as
    ``{"components_": ("n_components", "n_features")}``; () is a number. Those that are divided by
    are named in ``_positive``, others that must not be negative in ``_not_negative``, those between
    0 and 1 in ``_shares``, and those that may be sparse (CSR) in ``_may_be_sparse``. Returns the
    sizes of these.

    Raises
    ------
    NotFittedError
        If it is not fitted.
    ValueError
        If a parameter can't be used, or an attribute is no array of finite real numbers in their
        range or does not fit the others.
    """
    check_is_fitted(model)
    model._validate_params()
    sizes = {"n_features": model.n_features_in_}
    for name, dimensions in model._fitted_shapes.items():
        value = getattr(model, name)
        may_be_sparse = name in model._may_be_sparse
        if not _fits(value, dimensions, sizes, may_be_sparse):
            wanted = ", ".join(str(sizes.get(dimension, dimension)) for dimension in dimensions)
            comma = "," if len(dimensions) == 1 else ""
            kind = f"an array of real numbers of shape ({wanted}{comma})"
            given = type(value).__name__
            if isinstance(value, np.ndarray):
                given = f"{given} of {value.dtype} and shape {value.shape}"
            raise ValueError(
                f"{name} must be {kind if dimensions else 'a real number'} to fit the other fitted"
                f" attributes, got {given}: set such a value, or fit the model anew"
            )
        check_finite(value, name)
        if name in model._not_negative and np.any(value < 0):
            raise ValueError(f"{name} must not be negative, got {np.min(value):g}")
        if name in model._shares and not np.all((value >= 0) & (value <= 1)):
            raise ValueError(f"{name} must lie between 0 and 1: clip it")
        if name in model._positive:
            check_positive(value, name)
    return sizes


def _fits(value, dimensions: tuple[str, ...], sizes: dict[str, int], may_be_sparse: bool) -> bool:
    """Return whether a value is a real array, or a number, of these dimensions; sizes that were not
    known are noted.
    """
    is_array = may_be_sparse and sp.issparse(value) and value.format == "csr"
    if isinstance(value, np.ndarray):
        # Masked arrays and matrices multiply in other ways.
        is_array = not isinstance(value, (np.ma.MaskedArray, np.matrix))
    if is_array:
        is_real = value.dtype.kind in "iu" or value.dtype in (np.float64, np.float32)
    else:
        is_real = not dimensions and isinstance(value, Real)
    shape = np.shape(value)
    if not is_real or len(shape) != len(dimensions):
        return False
    known = tuple(sizes.setdefault(dimension, n) for dimension, n in zip(dimensions, shape))
    return shape == known and 0 not in shape


def check_parameter(values, name: str, **options) -> NDArray:
    """Return the values of a parameter as an array of finite numbers; errors name it.

    Takes the options of `sklearn.utils.check_array`.
    """
    try:
        values = values if sp.issparse(values) else real_numbers(values)
        values = check_array(values, input_name=name, **options)
    except (TypeError, ValueError) as error:
        if name in str(error):
            raise
        raise type(error)(f"{name} can't be used: {error}") from error
    check_finite(values, name)
    return values


def check_components(components: ArrayLike, name: str = "components") -> Array:
    """Return a copy of a matrix of finite numbers as float64 or raise an error that names it."""
    return check_parameter(as_float64(components, name, copy=True), name)


def check_vector(values, n: int, name: str, default: float | None = None) -> Array:
    """Return a copy of the values (n,) as float64 or raise ValueError; of None n times the default,
    if there is one.
    """
    if values is None and default is not None:
        return np.full(n, default)
    values = check_parameter(values, name, ensure_2d=False, dtype=np.float64, copy=True)
    if values.shape != (n,):
        raise ValueError(
            f"{name} must have shape ({n},) to fit the other parameters, got {values.shape}"
        )
    return values


def base_means(base, means: Array) -> Array:
    """Return means of independent units to begin with: those of the data, 1/2, or given ones."""
    if not isinstance(base, str):
        return check_vector(base, len(means), "base")
    if base not in ("data", "uniform"):
        raise ValueError(f'base must be "data", "uniform" or an array of means, got {base!r}')
    return means if base == "data" else np.full(len(means), 0.5)


def check_indices(X) -> None:
    """Raise ValueError if the indices of a sparse matrix don't fit its shape."""
    if not sp.issparse(X) or X.format not in ("csr", "csc", "coo") or X.ndim != 2:
        return
    try:
        if X.format == "coo":
            sp.coo_matrix((X.data, (X.row, X.col)), shape=X.shape)
            return
        checked = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        checked.check_format()
        if len(checked.indices) == len(X.indices):
            return
    except ValueError:
        pass
    raise ValueError(
        f"X is a sparse matrix whose indices do not fit its shape {X.shape}; build it anew"
    )


def evenly_spaced(X, n: int):
    """At most n rows, at equal distances."""
    return X[np.linspace(0, X.shape[0] - 1, min(n, X.shape[0])).astype(int)]


def rows_without(X: sp.csr_matrix, entries: Booleans) -> Booleans:
    """Mask of the rows that hold none of some entries, shape (n,), given which of the stored ones
    they are.
    """
    rows = np.ones(X.shape[0], dtype=bool)
    rows[np.searchsorted(X.indptr, np.flatnonzero(entries), side="right") - 1] = False
    return rows


def rows_by_pattern(missing: Booleans) -> Iterator[tuple[NDArray[np.int64], Booleans]]:
    """Yield the rows that miss the same columns, and which these are, (n_columns,); complete rows
    first, which are not sorted.
    """
    some = missing.any(axis=1)
    complete = np.flatnonzero(~some)
    if complete.size:
        yield complete, np.zeros(missing.shape[1], dtype=bool)
    incomplete = np.flatnonzero(some)
    patterns, pattern_of = np.unique(missing[incomplete], axis=0, return_inverse=True)
    order = np.argsort(pattern_of.ravel(), kind="stable")
    edges = np.cumsum(np.bincount(pattern_of.ravel(), minlength=len(patterns)))[:-1]
    yield from zip(np.split(incomplete[order], edges), patterns)


def _first_entry(rows):
    """The first entry of the first row; of a list of texts the first of them."""
    entry = getattr(rows, "values", rows)  # of a data frame
    for _ in range(2):
        if (
            isinstance(entry, (list, tuple, np.ndarray))
            and getattr(entry, "ndim", True)
            and len(entry)
        ):
            entry = entry[0]
    return entry


def in_order(words: Iterable[Any], name: str) -> list[Any]:
    """Return words as a list, those of a dict of word to column (as `CountVectorizer.vocabulary_`)
    by their columns.

    Parameters
    ----------
    words : iterable
    name : str
        Name of the parameter, for errors.

    Raises
    ------
    TypeError
        If they are a set, which has no order, one str, or no words.
    ValueError
        If the columns of a dict are not 0, 1, ..., each once.
    """
    if isinstance(words, (Set, str)) or not isinstance(words, Iterable):
        raise TypeError(
            f"{name} must be words in the order of the columns of X, such as the vectorizer's "
            f"get_feature_names_out(), got {type(words).__name__}"
        )
    if not isinstance(words, Mapping):
        return list(words)
    by_column = {column: word for word, column in words.items()}
    if by_column.keys() != set(range(len(words))):
        raise ValueError(
            f"{name} must have the columns 0 to {len(words) - 1}, each once, where it is a dict of"
            " word to column, such as the vectorizer's vocabulary_: else give words in the order"
            " of the columns of X"
        )
    return [by_column[column] for column in range(len(words))]


# -- numbers
def as_float64(values: ArrayLike, name: str, copy: bool = False) -> Array:
    """Return an array of float64; `name` says in an error what was given.

    Raises
    ------
    TypeError
        If `values` holds anything but real numbers, or its rows differ in length.
    """
    try:
        return np.array(real_numbers(values), dtype=np.float64, copy=True if copy else None)
    except (TypeError, ValueError) as error:
        given = str(error) if isinstance(error, NotNumbers) else type(values).__name__
        raise TypeError(
            f"{name} must be real numbers in a rectangular array, got {given}"
        ) from None


class NotNumbers(TypeError):
    """An array of other things than real numbers, in words that go on after "got"."""


def real_numbers(values: object) -> NDArray:
    """Return an array as NumPy makes it, of tensors without their gradients.

    Raises
    ------
    NotNumbers
        If it holds masked entries, whose values NumPy would take, or complex numbers, dates or
        text, which it may make numbers of.
    """
    if np.ma.is_masked(values):
        raise NotNumbers("masked entries: fill them, or leave them out")
    array = np.asarray(without_gradients(values))
    if array.dtype.kind in _NOT_REAL:
        raise NotNumbers(f"{_NOT_REAL[array.dtype.kind]} ({array.dtype})")
    return array


def without_gradients(values: object) -> Any:
    """Return a tensor of PyTorch as NumPy can read it, and all else as it is."""
    return values.detach().cpu() if hasattr(values, "detach") else values


def check_finite(values: ArrayLike | sp.spmatrix | sp.sparray, name: str) -> None:
    """Raise ValueError unless parameters, and so their squares and products, are finite."""
    if isinstance(values, sp.spmatrix | sp.sparray):
        values = values.data
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"{name} must be finite; {name} holds NaN or infinity, so there is no likelihood: fit"
            " the model anew"
        )
    if not np.all(np.abs(values) <= LARGEST):
        raise ValueError(f"{name} must be at most {LARGEST:g} in absolute value: rescale X")


def check_squares(X: NDArray, name: str = "X") -> None:
    """Raise ValueError unless rows are finite, and the sum of their squares."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.sum(X**2)
    if not np.isfinite(square):
        raise ValueError(
            f"{name} must be finite; it holds NaN or infinity, or values too large to be squared:"
            f" drop those rows, or rescale {name}"
        )


def check_positive(values: ArrayLike, name: str) -> None:
    """Raise ValueError unless parameters that are divided by are positive, and so their squares and
    reciprocals are finite.
    """
    values = np.asarray(values)
    wrong = values[~((values >= 1 / LARGEST) & (values <= LARGEST))]
    if len(wrong):
        raise ValueError(
            f"{name} must be positive and finite, between {1 / LARGEST:g} and {LARGEST:g}, got"
            f" {wrong[0]:g}"
        )


def check_number(value: ArrayLike, name: str, check: Callable = check_finite) -> float:
    """Return a finite number, or one that passes another check, or raise ValueError."""
    number = as_float64(value, name)
    if number.shape != ():
        raise ValueError(f"{name} must be a number, got an array of shape {number.shape}")
    check(number, name)
    return float(number)


def check_between(value: Any, name: str, low: float, high: float = np.inf) -> float:
    """Return a number of a closed interval or raise ValueError."""
    number = check_number(value, name)
    if not low <= number <= high:
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {number:g}")
    return number


def check_scale(value: Any, name: str) -> float:
    """Return a number that can be divided by or raise ValueError."""
    return check_number(value, name, check_positive)


def check_count(n: object, name: str, at_least: int = 1) -> int:
    """Return a number of things, or raise ValueError."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}, got {n!r:.80}")
    return int(n)


def check_bool(value: object, name: str) -> None:
    """Raise TypeError unless a value is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r:.80}")


def check_option(option: object, options: tuple[str, ...], name: str) -> None:
    """Raise ValueError unless an option is one of some words."""
    if not isinstance(option, str) or option not in options:
        words = " or ".join(f'"{word}"' for word in options)
        raise ValueError(f"{name} must be {words}, got {option!r:.80}")


def check_level(level: object) -> None:
    """Raise ValueError unless intervals can cover with this probability."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(
            f"level must lie strictly between 0 and 1, got {level!r}: a 95 % interval has"
            " level=0.95"
        )

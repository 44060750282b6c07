"""Checks of arguments that models share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import validation
from sklearn.utils.validation import check_array, check_is_fitted

from sklpf._utils.numbers import (
    Array,
    Booleans,
    as_float64,
    check_finite,
    check_positive,
    without_gradients,
)

_Method = TypeVar("_Method", bound=Callable[..., Any])

TOO_FAR = "they lie so far from the model that log f is no finite number"
_NO_MISSING = (
    "and this model takes no missing values: drop such rows, or fill them by scikit-learn's"
    " SimpleImputer before the model in a pipeline"
)
_NONE_IN_SPARSE = (
    "X is a sparse matrix that contains NaN, but missing values are taken from dense rows alone:"
    " give X.toarray()"
)


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
        if isinstance(first, str):
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


def named_by_model(method: _Method) -> _Method:
    """Let errors about the arguments of an inherited method name the model's own class."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def named(self, *args, **kwargs):
        try:
            signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.{method.__name__}() {error}") from None
        return method(self, *args, **kwargs)

    return cast(_Method, named)


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
        values = check_array(values, input_name=name, **options)
    except (TypeError, ValueError) as error:
        if name in str(error):
            raise
        raise type(error)(f"{name} can't be used: {error}") from error
    check_finite(values, name)
    return values


def check_components(components: ArrayLike, name: str = "components") -> Array:
    """Return a copy of a matrix with finite entries or raise ValueError."""
    components = as_float64(components, name, copy=True)
    if components.ndim != 2 or 0 in components.shape:
        raise ValueError(
            f"{name} must be a matrix with at least one row and column, got shape"
            f" {components.shape}"
        )
    check_finite(components, name)
    return components


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

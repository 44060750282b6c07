"""Values of a user's functions: numbers of the right shape, and whether functions agree with
one another at some draws of a base.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import equal_parts, evaluate_parts
from sklpf._utils.validation import NotNumbers, real_numbers, without_gradients

if TYPE_CHECKING:
    from sklpf.paths._geometric import GeometricPath

# what to do about a log density that is -inf at all points
COVER = (
    "give a base that covers it; where its support has no volume (integers, or coordinates that"
    " must be equal), sum over what is discrete, or take coordinates that are free"
)
_NOISE = 1e-6  # relative, of a log density that is called twice: that of float32 on many threads
# of the differences, in scales of the base: if they agree, the gradient must with one
_WIDTHS = (1e-4, 1e-6)
_POINTS_PER_PART = 64  # at least, of a function of many points
_PACE: dict[int, float] = {}  # seconds a point that functions took last, by their identity
_FAILURES_ARE_NAN: ContextVar[bool] = ContextVar("failures are NaN", default=False)


class Pool:
    """A user's workers, which have ``map(function, points)``.

    A copy in another process is none: there, functions are called in a loop.

    Parameters
    ----------
    workers : object or None
        None is a loop.
    """

    def __init__(self, workers: Any = None):
        self.map: Any = map if workers is None else workers.map

    def __reduce__(self) -> tuple[type[Pool], tuple[()]]:
        return Pool, ()


def pool_of(workers: object, vectorized: bool) -> Pool | None:
    """Return a user's workers, None where there are none.

    Raises
    ------
    TypeError
        If they have no `map`.
    ValueError
        If functions take many points.
    """
    if workers is None:
        return None
    if not callable(getattr(workers, "map", None)):
        raise TypeError(f"pool must have a method map(function, points), got {workers!r:.80}")
    if vectorized:
        raise ValueError("pool needs vectorized=False, and functions of one point")
    return Pool(workers)


def evaluate(
    function: Callable[[Array], Any], points: Array, vectorized: bool, pool: Pool | None = None
) -> Any:
    """Return what a user's function gives at points (n, d), which it may change.

    Workers of the fit share what takes long. Many points go to a function in parts whose sizes
    depend on their number alone, and so does what rounding makes of them.

    Parameters
    ----------
    function : callable
        Of the points, or of one point (d,).
    points : ndarray of shape (n, d)
    vectorized : bool
        False: the function takes one point.
    pool : Pool or None, default=None
        Workers of the user's.

    Returns
    -------
    object
        Values of all points; of a function of one, a list.
    """
    may_fail = _FAILURES_ARE_NAN.get()
    if pool is not None and not vectorized:
        own = functools.partial(_value_or_nan, function) if may_fail else function
        return list(pool.map(own, list(points)))
    n = len(points)
    if not vectorized:
        edges = np.linspace(0, n, min(n, 32) + 1).astype(int).tolist()
        each = [points[a:b] for a, b in pairwise(edges)]
        at_each = _at_each_or_nan if may_fail else _at_each
        return [value for part in _in_parts(function, each, at_each) for value in part]
    if n < 2 * _POINTS_PER_PART:
        return function(points)
    parts = [points[own] for own in equal_parts(n, _POINTS_PER_PART)]
    found = _in_parts(function, parts, _at_points)
    try:
        if isinstance(found[0], tuple):
            return tuple(np.concatenate([*map(real_numbers, each)]) for each in zip(*found))
        return np.concatenate([*map(real_numbers, found)])
    except (TypeError, ValueError):  # no arrays of numbers: the caller says what all points give
        return function(points)


def _in_parts(function, parts, at_part) -> list[Any]:
    """Results of at_part(function, part) for every part of some points."""
    n = sum(map(len, parts))
    began = time.perf_counter()
    expected = n * _PACE.get(id(function), 0.0)
    found = evaluate_parts(functools.partial(at_part, function), parts, expected)
    if len(_PACE) > 1000:
        _PACE.clear()
    _PACE[id(function)] = (time.perf_counter() - began) / max(n, 1)
    return found


def _at_points(function, points):
    return _copied(function(points))


def _at_each(function, points):
    return [_copied(function(point)) for point in points]


def _at_each_or_nan(function, points):
    return _at_each(functools.partial(_value_or_nan, function), points)


def _value_or_nan(function, point):
    try:
        return function(point)
    except Exception:  # of a user's function, far from where it is used
        return np.nan


@contextlib.contextmanager
def failures_are_nan() -> Iterator[None]:
    """Let functions of one point within be NaN where they raise an error; others raise it."""
    token = _FAILURES_ARE_NAN.set(True)
    try:
        yield
    finally:
        _FAILURES_ARE_NAN.reset(token)


def _copied(values: Any) -> Any:
    """Values that a function may overwrite at its next call, copied; of tensors without their
    gradients.
    """
    if isinstance(values, tuple):
        return tuple(map(_copied, values))
    return copy.deepcopy(without_gradients(values))


class Memory:
    """Values of a density of the user's, and of its gradient, at all points of some fits.

    Parameters
    ----------
    path : GeometricPath
        The path of all of them.
    seed : int
        Likewise, so that they ask for the same points again.

    Attributes
    ----------
    covers : dict of int to Cover
        Where the mass is, as found by the seed of a run.
    """

    def __init__(self, path: GeometricPath, seed: int):
        self.seed = seed
        self.covers: dict[int, Any] = {}
        self._description = _description(path)
        self._values: dict[tuple[str, bytes], Any] = {}  # by function and point

    def values(
        self, name: str, evaluate: Callable[[Array], Any], points: Array, vectorized: bool
    ) -> Any:
        """Return what a function gives at points (n, d), which is asked for new ones alone.

        Parameters
        ----------
        name : str
            The function's.
        evaluate : callable
            Of points.
        points : ndarray of shape (n, d)
        vectorized : bool
            False: it gives a list.

        Returns
        -------
        object
            As the function gives it.
        """
        if not len(points):
            return evaluate(points)
        keys = [(name, point.tobytes()) for point in points]
        new = [place for place, key in enumerate(keys) if key not in self._values]
        if new:
            found = evaluate(points if len(new) == len(keys) else points[new])
            try:
                each: Any = found
                if vectorized:  # copied, as a function may write to what it gave
                    parts = found if isinstance(found, tuple) else (found,)
                    each = zip(*[np.array(real_numbers(part)) for part in parts], strict=True)
                self._values |= zip((keys[place] for place in new), each, strict=True)
            except (TypeError, ValueError):  # the caller says what is wrong with it
                return evaluate(points)
        values = [self._values[key] for key in keys]
        if not vectorized:
            return values
        columns = tuple(np.array(column) for column in zip(*values))
        return columns if len(columns) > 1 else columns[0]

    def check(self, path: GeometricPath, *, n_checked: int = 5) -> None:
        """Raise ValueError if a path has another base or other bounds, or its density other values
        than are kept.
        """
        is_same = np.array_equal(_description(path), self._description)
        keys = [key for key in self._values if key[0] != "grad"] if is_same else []
        for key in keys[:: max(1, len(keys) // n_checked)]:
            kept = self._values[key]
            before = np.nan_to_num(np.ravel(kept[0] if isinstance(kept, tuple) else kept))
            now = np.nan_to_num(path.raw_log_density(np.frombuffer(key[1])[np.newaxis]))
            is_same &= _where_different(now, before) is None
        if not is_same:
            raise ValueError(
                "path must have the density, the base and the bounds of earlier fits with"
                " warm_start=True: fit a clone, or with warm_start=False"
            )


def _description(path: GeometricPath) -> Array:
    """Numbers that tell bases and bounds apart."""
    base = path.base
    at_center = base.log_density(np.atleast_2d(base.center))
    return np.concatenate([base.center, base.scale, at_center, *path.bounds])


def check_callable(log_density: Any, **others: Any) -> None:
    """Raise TypeError unless all can be called; the others may be None."""
    for name, function in {"log_density": log_density, **others}.items():
        if not callable(function) and (function is not None or name == "log_density"):
            raise TypeError(f"{name} must be a function of points (n, d), got {function!r:.80}")


def values_of(name: str, values: ArrayLike) -> Array:
    """Return the values of a user's function, copied, as it may give the same array again; or a
    ValueError that shows what are no real numbers.
    """
    try:
        array = real_numbers(values)
        if array.dtype == object and any(np.ravel(value)[0] is None for value in array.flat):
            raise TypeError("a function without return gives None")
        return np.array(array, dtype=np.float64)
    except NotNumbers as error:
        raise ValueError(f"{name} must give real numbers, got {error}") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must give numbers, got {values!r:.80}: {error}") from error


def values_of_shape(name: str, values: ArrayLike, shape: tuple[int, ...], hint: str = "") -> Array:
    """As `values_of`, for as many points as the shape says: one for all would be broadcast."""
    array = values_of(name, values)
    if array.shape != shape:
        raise ValueError(
            f"{name} must give shape {shape} for as many points, got {array.shape}{hint}"
        )
    return array


def log_densities_of(
    name: str, values: ArrayLike, points: Array, nan_is_zero: bool = False, hint: str = ""
) -> Array:
    """Log densities (n,) that a user's function gave; of NaN an error, or a density of 0."""
    log_densities = values_of_shape(name, values, (len(points),), hint)
    if nan_is_zero:
        log_densities = np.where(np.isnan(log_densities), -np.inf, log_densities)
    bad = np.isnan(log_densities) | (log_densities == np.inf)
    if bad.any():
        raise ValueError(
            f"{name} is {log_densities[bad][0]} at {shown(points[bad][0])}: it must be a number or"
            " -inf"
        )
    return log_densities


def gradients_of(name: str, values: ArrayLike, points: Array) -> Array:
    """A gradient (n, d) that a user's function gave where the density is not 0."""
    gradients = values_of_shape(name, values, points.shape)
    bad = ~np.isfinite(gradients).all(axis=1)
    if bad.any():
        raise ValueError(
            f"{name} is not finite at {shown(points[bad][0])}, where the density is not 0"
        )
    return gradients


def shown(point: Array) -> str:
    return np.array2string(np.asarray(point), precision=4, threshold=8, separator=", ")


def check_functions(path: GeometricPath, *, n_checked: int = 5) -> None:
    """Compare the functions of a `GeometricPath` with one another at draws of its base."""
    rng = np.random.default_rng(0)
    d = path.n_dimensions
    draws = np.asarray(path.base.sample(n_checked, rng), dtype=np.float64)
    if draws.shape != (n_checked, d):
        raise ValueError(
            f"base.sample({n_checked}, rng) must give shape {(n_checked, d)}, got {draws.shape}"
        )
    path._check_base()
    with _explained(path, "log_density", draws):
        path._target(draws)
    with _explained(path, "value_and_grad", draws):
        path.at(draws)
    _check_pure(path, draws)
    if path.value_and_grad is not None:
        _check_same_values(path, draws)
    steps = np.asarray(path.base.scale) * rng.choice([-1.0, 1.0], size=draws.shape)
    if path.grad is not None:
        with _explained(path, "grad", draws):
            _check_gradient("grad", "log_density", path.raw_gradient, path._target, draws, steps)
    if path._base_gradient is not None:
        log_base = functools.partial(log_base_of, path.base)
        _check_gradient(
            "grad_base", "the base's log_density", path._base_gradient, log_base, draws, steps
        )


@contextlib.contextmanager
def _explained(path, name, draws):
    """Say of an error whether the function takes one point, or points of other dimensions."""
    try:
        yield
    except (IndexError, TypeError, ValueError) as error:
        reason = _misfit(path, name, draws)
        if reason is None:
            raise
        raise ValueError(reason) from error


def _misfit(path, name, draws) -> str | None:
    """Why a function can't take the points that it is given, None if it can."""
    function = getattr(path, name)
    if function is None:
        return None
    of_points = shape_given(function, draws)
    of_one = shape_given(function, draws[0])
    n, d = draws.shape
    wanted = (d,) if name == "grad" else ()
    takes_points = of_points == (n, *wanted)
    if not path.vectorized and takes_points and of_one is None:
        return (
            f"{name} takes points (n, {d}) and no single one: say GeometricPath(...,"
            " vectorized=True)"
        )
    if not path.vectorized or takes_points:
        return None
    if of_one == wanted and wanted != of_points:
        return (
            f"{name} takes one point ({d},) and not points (n, {d}): say GeometricPath(...,"
            " vectorized=False), or let it give one value for each point"
        )
    if of_points is None:
        return (
            f"{name} fails at {n} points of the base's {d} dimensions (the error is above):"
            " give a base of the function's number of dimensions, or correct the function"
        )
    return None


def _check_same_values(path, draws) -> None:
    """Raise if value_and_grad has another log density."""
    alone = path._target(draws)
    together = path._target_and_slope(draws)[0]
    c = _where_different(alone, together)
    if c is not None:
        raise ValueError(
            f"value_and_grad disagrees with log_density at {shown(draws[c])}:"
            f" {together[c]:.8g} and {alone[c]:.8g}"
        )


def _check_pure(
    path,
    draws,
    *,
    # relative, of the same point in calls of other sizes: that of reduced float32
    noise_of_batches: float = 1e-3,
) -> None:
    """Raise if the log density is random or depends on the other points of a call, or if functions
    that compiled programs call change their argument.
    """
    once = path._target(draws)
    apart = np.concatenate([path._target(draws[:1]), path._target(draws[1:])])
    if _where_different(once, apart) is not None:
        again = path._target(draws)
        c = _where_different(once, again)
        if c is not None:
            raise ValueError(
                f"log_density is random: it gave {once[c]:.8g} and {again[c]:.8g} at"
                f" {shown(draws[c])}; fix its random numbers, or drop the noise"
            )
        c = _where_different(once, apart, noise_of_batches)
        if c is not None:
            raise ValueError(
                f"log_density depends on the other points of a call: at {shown(draws[c])} it gave"
                f" {once[c]:.8g} among {len(draws)} points and {apart[c]:.8g} among fewer; compute"
                " each point by itself"
            )
    for name, function in {"log_density": path.log_density, "grad": path.grad}.items():
        if function is None or not is_compiled(function):
            continue
        given = draws.copy()
        function(given if path.vectorized else given[0])
        if not np.array_equal(given, draws):
            raise ValueError(f"{name} changes the points that it is given: let it copy them")


def is_compiled(function) -> bool:
    """Return whether numba has compiled it."""
    return getattr(function, "py_func", None) is not None


def _where_different(first, second, noise=_NOISE) -> int | None:
    """The first point at which log densities differ by more than rounding, or None."""
    with np.errstate(invalid="ignore"):
        differs = ~(np.abs(first - second) <= noise * (1 + np.abs(first))) & (first != second)
    return int(differs.argmax()) if differs.any() else None


def takes_one_point(function, points: Array) -> bool:
    """Return whether a log density takes one point (d,), and no points (n, d) such as these."""
    several = points[: 3 if points.shape[1] == 2 else 2]  # not as many as coordinates
    of_points = shape_given(function, several)
    return of_points != (len(several),) and shape_given(function, points[0]) == ()


def shape_given(function, position) -> tuple[int, ...] | None:
    """Shape of what a function gives (of a pair its first), None where it fails."""
    try:
        found = function(position.copy())
        return np.shape(found[0] if isinstance(found, tuple) else found)
    except (IndexError, TypeError, ValueError):
        return None


def log_base_of(base, position):
    name = "the base's log_density"
    return log_densities_of(name, base.log_density(position), position)


def _check_gradient(
    name, of, gradient, log_density, points, steps, *, tolerance: float = 1e-4
) -> None:
    """Compare slopes along `steps` (n, d) with central differences of two widths; at a kink these
    differ as well.
    """
    here = np.isfinite(log_density(points))
    points = points[here]
    steps = steps[here]
    if not len(points):
        return
    slopes = gradients_of(name, gradient(points), points) * steps
    slope = slopes.sum(axis=1)
    size = np.sqrt(np.sum(slopes**2, axis=1))
    differences = []
    for width in _WIDTHS:
        ends = [log_density(points + sign * width * steps) for sign in (1, -1)]
        with np.errstate(invalid="ignore"):
            differences.append((ends[0] - ends[1]) / (2 * width))
    rounding = 1e-15 * np.abs(log_density(points)) / _WIDTHS[-1]
    with np.errstate(invalid="ignore"):  # NaN and inf outside the support
        kink = np.abs(differences[0] - differences[1]) > tolerance * size + rounding
    off = np.abs(np.array(differences) - slope)
    wrong = (
        np.all(off > tolerance * size + rounding, axis=0)
        & np.all(np.isfinite(differences), axis=0)
        & ~kink
    )
    if wrong.any():
        c = int(wrong.argmax())
        raise ValueError(
            f"{name} disagrees with {of} at {shown(points[c])}: along {shown(steps[c])} its slope"
            f" is {slope[c]:.6g}, that of differences {differences[0][c]:.6g}"
        )

"""Path: a sequence of unnormalised densities from a base that can be sampled to the target."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream
from sklpf._utils.validation import as_float64, check_count
from sklpf.paths._box import Box
from sklpf.paths._optional import INSTEAD, TOGETHER, OptionalMethods, State

if TYPE_CHECKING:  # what a path may have is there, to type checkers: `has` asks for it
    from sklpf.paths._optional import OptionalMethods as _Optional
else:
    _Optional = object

_ENDS = np.array([0.0, 1.0])  # the ladder of a path without another
_ENDS.setflags(write=False)
_N_PROBED = 8  # states at which a user's path is evaluated, to be recognised


LADDERS = ("linear", "power", "sigmoid", "salakhutdinov-murray")


@dataclass
class Evaluations:
    """Number of points at which functions were evaluated, and of those at which they failed."""

    n: int = 0
    n_failed: int = 0

    def counting(self, function: Callable[[Array], Any]) -> Callable[[Array], Any]:
        """Return the same function of points (n, d), with these counted."""

        def counted(points: Array) -> Any:
            self.n += len(points)
            try:
                return function(points)
            except Exception:
                self.n_failed += len(points) == 1
                raise

        return counted


class Path(_Optional):
    """Levels k = 0 … K - 1 from a base density f_0 to the unnormalised target f_(K-1).

    Subclass it to bring your own density. Required: `log_f`. For annealing and tempering from base
    draws also `sample_base` and a declared `base_log_partition`; and one kind of move: `gibbs` or
    `propose`. `OptionalMethods` lists what else a path may offer.

    Attributes
    ----------
    ladder : ndarray of shape (K,)
        Coordinate of every level, usually the inverse temperatures from 0 to 1.
    base_log_partition : float or None
        Log normaliser of f_0 in nats; 0.0 says that f_0 is normalised, None that nothing was
        declared.
    n_moves_per_segment : int
        After how many sweeps of a block control returns to Python (interruption, checkpoints).
    n_chains_per_block : int or None
        Chains of an annealing run that move together; None: at most 32, in at least 8 blocks.
        Densities in NumPy are several times faster with more at once.
    has_boundary : bool
        log_f may be -inf: where the density is 0.
    renews_base : bool
        Tempering draws the chains at the base anew now and then: for a base whose parts moves may
        not connect.
    base_chosen : str
        What the base is, for summaries, where it was chosen for the user; else empty.
    base_is_ours : bool
        Estimators may start a second run from another base: the user has not given this one.
    cheaper_path : Path or None
        A path to the same target whose sweeps take less time: `UntilTrusted` tries it first.
    ladder_cost : float
        Work of one `log_f_ladder` in sweeps; RTS spaces its redraws of levels by it.
    region_remedy : str
        What to do where a run has missed one of the path's `regions`.
    bound_cost, regions_cost : int
        Sweeps of all chains that `bound_draws` and `regions` take, and values of log f, where the
        path has these methods: results count them as evaluations by checks.
    n_rows : int or None
        None: one log Z. An int: a log Z for each of so many rows of data; estimators then call
        `row` and give arrays.
    gibbs_is_reversible : bool
        False: `gibbs`, if there is one, takes a further argument ``reverse``.
    log_f_rounding : float
        Size of the rounding errors of `log_f` in nats, where they may matter.
    enumeration_rounding : float
        The same of what `enumerate_block` gives: that of `log_f`, unless a path computes it with
        more digits.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import AIS, Path
    >>> from sklpf.transitions import Metropolis
    >>> class Coins(Path):
    ...     base_log_partition = 0.0
    ...
    ...     def sample_base(self, n, stream):
    ...         return stream.generator().integers(2, size=(n, 3))
    ...
    ...     def log_f(self, state, levels):  # from fair coins to f(x) = 2^sum(x)
    ...         beta = self.ladder[levels]
    ...         return beta * state.sum(axis=1) * np.log(2) - (1 - beta) * 3 * np.log(2)
    ...
    ...     def propose(self, state, levels, stream):
    ...         flip = stream.generator().integers(2, size=state.shape)
    ...         return state ^ flip, np.zeros(len(state))
    >>> ais = AIS(n_temperatures=20, transition=Metropolis(), random_state=0)
    >>> ais = ais.fit(Coins())
    >>> low, high = ais.log_partition_interval_
    >>> bool(low < 3 * np.log(3) < high)
    True
    """

    ladder: Array = _ENDS
    base_log_partition: float | None = None
    n_moves_per_segment: int = 100
    n_chains_per_block: int | None = None
    has_boundary: bool = False
    renews_base: bool = False
    base_chosen: str = ""
    base_is_ours: bool = True
    cheaper_path: Any = None
    ladder_cost: float = 1.0
    region_remedy: str = "fit path.with_regions(run_.regions), whose base covers it"
    bound_cost: int = 0
    regions_cost: int = 0
    n_rows: int | None = None
    gibbs_is_reversible: bool = True
    log_f_rounding: float = 0.0

    _counted: ClassVar[tuple[str, ...]] = ()  # methods that evaluate the target

    @property
    def enumeration_rounding(self) -> float:
        """Size of the rounding errors of `enumerate_block` in nats."""
        return self.log_f_rounding

    def __repr__(self) -> str:
        names = "n_dimensions", "n_rows"
        sizes = {name: getattr(self, name, None) for name in names} | {"n_levels": len(self.ladder)}
        known = ", ".join(f"{name}={n}" for name, n in sizes.items() if n is not None)
        return f"{type(self).__name__}({known})"

    def log_f(self, state: State, levels: Integers) -> Array:
        """Return log f of every chain at its own level.

        Parameters
        ----------
        state : array or tuple of arrays
            The chains, along the first axis of each array.
        levels : ndarray of shape (n,)
            The level of each chain.

        Returns
        -------
        ndarray of shape (n,)
            log f in nats; -inf where the density is 0, if `has_boundary`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define log_f(state, levels)")

    def log_f_ladder(self, state: State) -> Array:
        """Return log f of every chain at every level.

        Parameters
        ----------
        state : array or tuple of arrays
            The chains, along the first axis of each array.

        Returns
        -------
        ndarray of shape (n, K)
            log f in nats.
        """
        n = n_chains(state)
        columns = [self.log_f(state, np.full(n, k)) for k in range(len(self.ladder))]
        return np.stack(columns, axis=1)

    def take(self, state: State, index: ArrayLike) -> Any:
        """Return some chains of a state.

        Parameters
        ----------
        state : array or tuple of arrays
            The chains, along the first axis of each array.
        index : array-like
            Numbers of chains, or a mask.

        Returns
        -------
        array or tuple of arrays
            Their state.
        """
        return take(state, index)

    def summary(self, state: State) -> Array:
        """Return what tells the modes of the target apart.

        Parameters
        ----------
        state : array or tuple of arrays
            The chains, along the first axis of each array.

        Returns
        -------
        ndarray of shape (n, S)
            All that the state holds, unless a path says better.
        """
        return flat_rows(state)

    def row_cost(self, rows: Integers) -> Array:
        """Return the relative work of rows: blocks of rows that run in parallel are cut by it.

        Parameters
        ----------
        rows : ndarray of int
            Numbers of rows.

        Returns
        -------
        ndarray
            One relative cost a row; all the same unless a path says better.
        """
        return np.ones(len(rows))

    def probe(self) -> list[str]:
        """Values of log f and of moves at fixed states, to ten digits.

        They tell classes of users apart, of which a pickle holds the name and not the code.

        Returns
        -------
        list of str
            Empty for classes of this package, whose code the version names.
        """
        if type(self).__module__.startswith("sklpf."):
            return []
        if self.n_rows is not None:
            return self.row(0).probe()  # type: ignore[attr-defined]
        path: Any = self
        stream = Stream((0, 0))
        state = path.sample_base(_N_PROBED, stream)
        levels = np.arange(_N_PROBED) % len(self.ladder)
        values = [self.log_f_ladder(state)]
        if has(path, "gibbs"):
            values.append(self.summary(path.gibbs(state, levels, stream)))
        if has(path, "propose"):
            proposal, log_ratio = path.propose(state, levels, stream)
            values += [self.summary(proposal), log_ratio]
        return [f"{value:.9e}" for part in values for value in np.ravel(part)]

    def unchanged(self) -> AbstractContextManager[None]:
        """Return a context in which estimators use the path, and which raises ValueError at its end
        if what the path calls gives other numbers than at its beginning.

        Returns
        -------
        context manager
            By default one that does nothing.
        """
        return contextlib.nullcontext()

    def counted(self) -> tuple[Self, Evaluations]:
        """Return a copy of the path that counts evaluations of the target's density, and the count.

        Returns
        -------
        path : Path
            Of a density of the user's: one for each point, and another one for its gradient where
            that is another function. Other paths count nothing.
        evaluations : Evaluations
            Their number ``n``, and ``n_failed`` of points at which the density raised an error.
        """
        path = copy.copy(self)
        evaluations = Evaluations()
        for name in self._counted:
            setattr(path, name, evaluations.counting(getattr(self, name)))
        return path, evaluations

    def with_ladder(self, ladder: ArrayLike) -> Self:
        """Return a copy of the path with other levels.

        Parameters
        ----------
        ladder : array-like of shape (K,)
            Increasing, in [0, 1].

        Returns
        -------
        Path
            It shares all else with this one.
        """
        other = copy.copy(self)
        vars(other).update(vars(self))  # with what kernels take, which a copy forgets
        other.ladder = check_ladder(ladder)
        return other


class TemperedPath(Path):
    """A path with log f_beta = log f_0 + beta (log f_1 - log f_0): its author gives `ends`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import ParallelTempering
    >>> from sklpf.paths import TemperedPath
    >>> from sklpf.transitions import Gibbs
    >>> class Coin(TemperedPath):
    ...     base_log_partition = 0.0
    ...
    ...     def sample_base(self, n, stream):
    ...         return stream.generator().integers(2, size=n)
    ...
    ...     def ends(self, state):  # f_0 is 1/2, f_1 is 1 or 3
    ...         log_base = np.full(len(state), np.log(0.5))
    ...         return log_base, np.log(np.where(state, 3, 1)) - log_base
    ...
    ...     def gibbs(self, state, levels, stream):
    ...         odds = 3.0 ** self.ladder[levels]
    ...         u = stream.generator().random(len(state))
    ...         return (u < odds / (1 + odds)).astype(int)
    >>> tempering = ParallelTempering(4, 8, 200, random_state=0).fit(Coin())
    >>> low, high = tempering.log_partition_interval_
    >>> bool(low < np.log(4) < high)
    True
    """

    def ends(self, state: State) -> tuple[Array, Array]:
        """Return log f_0 and log f_1 - log f_0 of every chain.

        Parameters
        ----------
        state : array or tuple of arrays
            The chains, along the first axis of each array.

        Returns
        -------
        log_base, gain : ndarray of shape (n,)
            log f_0, and log f_1 - log f_0, in nats.
        """
        raise NotImplementedError(f"{type(self).__name__} must define ends(state)")

    def log_f(self, state: State, levels: Integers) -> Array:
        """Return log f of every chain at its own level, shape (n,), in nats."""
        base, gain = self.ends(state)
        return _between(base, gain, self.ladder[levels])

    def log_f_ladder(self, state: State) -> Array:
        """Return log f of every chain at every level, shape (n, K), in nats."""
        base, gain = self.ends(state)
        return _between(base[:, np.newaxis], gain[:, np.newaxis], self.ladder)

    def derivatives(self, state: State, levels: Integers) -> Array:
        """Return U = log f_1 - log f_0 and dU / dbeta = 0 of every chain, shape (n, 2)."""
        gain = self.ends(state)[1]
        return np.stack([gain, np.zeros_like(gain)], axis=1)


class Points(NamedTuple):
    """Points of R^d with the log densities there."""

    position: Array  # (n, d)
    log_base: Array  # (n,): log f_0
    gain: Array  # (n,): log f_1 - log f_0


class SlopedPoints(NamedTuple):
    """Points with the gradient of the log density, where one function gives both."""

    position: Array  # (n, d)
    log_base: Array  # (n,): log f_0
    gain: Array  # (n,): log f_1 - log f_0
    slope: Array  # (n, d): gradient of log f_1, of any value where f_1 is 0


class PointsPath(TemperedPath):
    """A tempered path whose states are `Points` or `SlopedPoints`."""

    n_dimensions: int

    def position(self, state: Points) -> Array:
        """Return the points, shape (n, d)."""
        return state.position

    def ends(self, state: Points) -> tuple[Array, Array]:
        """Return log f_0 and log f_1 - log f_0 of every chain, both (n,), in nats."""
        return state.log_base, state.gain

    def summary(self, state: Points) -> Array:
        """Return the points."""
        return state.position


def _between(base, gain, betas):
    """log f at inverse temperatures: log f_0 at the base also where log f_1 is -inf."""
    nowhere = gain == -np.inf
    if not nowhere.any():
        return base + betas * gain
    with np.errstate(invalid="ignore"):
        return np.where((betas == 0) & nowhere, base, base + betas * gain)


def n_chains(state: State) -> int:
    """Number of chains in a state."""
    return len(state[0]) if isinstance(state, tuple) else len(state)


def flat_rows(state: State) -> Array:
    """Return all that the state of each chain holds as a row of float64."""
    arrays = state if isinstance(state, tuple) else (state,)
    return np.concatenate(
        [np.reshape(array, (n_chains(state), -1)).astype(float) for array in arrays], axis=1
    )


def take(state: State, index: ArrayLike) -> Any:
    """The chains `index` of a state or of auxiliary variables."""
    return map_state(lambda array: array[index], state)


def put(state: State, index: ArrayLike, new: State) -> Any:
    """A state, or auxiliary variables, with other chains at `index`."""

    def changed(old_array, new_array):
        array = old_array.copy()
        array[index] = new_array
        return array

    return map_state(changed, state, new)


def concatenate(states: Sequence[Any]) -> Any:
    """The chains of several states, or of several sets of auxiliary variables, as one."""
    if len(states) == 1:
        return states[0]
    return map_state(lambda *parts: np.concatenate(parts), *states)


def map_state(function, *states: State) -> Any:
    """Apply `function` to the arrays of one state, or to the corresponding arrays of several."""
    first = states[0]
    if isinstance(first, tuple):
        arrays = [function(*parts) for parts in zip(*states)]
        return type(first)(*arrays) if hasattr(first, "_fields") else tuple(arrays)
    return function(*states)


def choose(accept: NDArray[np.bool_], new: State, old: State) -> Any:
    """The chains of a new state (or auxiliary variables) where accepted, else those of the old."""

    def chosen(new_array, old_array):
        return np.where(accept.reshape(-1, *[1] * (np.ndim(old_array) - 1)), new_array, old_array)

    return map_state(chosen, new, old)


class CompiledPrograms:
    """A path with programs that are compiled for it, in the module of numba kernels that `_kernels`
    names.

    Programs run on `packed` and a state that they change in place.
    """

    _kernels: str
    _pack: Callable[[], Any]  # the NamedTuple of arrays and numbers that hooks are chosen by
    ladder: Array
    n_rows: int | None

    def kernel(self, name: str) -> Any:
        """Return one of the compiled programs.

        Parameters
        ----------
        name : str
            Of a program, as in `sklpf.kernels`.

        Returns
        -------
        callable
            Compiled for this kind of path.
        """
        from sklpf.kernels import _programs

        return _programs.compiled(getattr(_programs, name), self._kernels)

    @functools.cached_property
    def packed(self) -> Any:
        """The model as the kernels want it."""
        if self.n_rows is not None:
            raise ValueError("this path has one log Z for each row of X: choose one with row(t)")
        return self._pack()

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "packed"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Pickling forgets that the ladder is read-only, which kernels are compiled for.
        self.ladder = read_only(self.ladder)


class KernelPath(CompiledPrograms, Path):
    """A path whose hooks are implemented in a module of numba kernels (see `sklpf.kernels`)."""

    def move_at_target(self, state: State, n_sweeps: int, stream: Stream) -> None:
        """Make sweeps of all chains at the target, in place.

        Parameters
        ----------
        state : NamedTuple
            The chains.
        n_sweeps : int
            Number of sweeps.
        stream : Stream
            Random numbers.
        """
        self._move(state, np.ones((n_sweeps + 1, n_chains(state))), stream)

    def log_f(self, state: State, levels: Integers) -> Array:
        """Return log f_k of every chain at its own level, in nats."""
        return self._evaluate("log_f", state, (), self.ladder[levels])

    def log_f_ladder(self, state: State) -> Array:
        """Return log f_k of every chain at every level, shape (n, K), in nats."""
        return self._evaluate("log_f_ladder", state, (len(self.ladder),), self.ladder)

    def derivatives(self, state: State, levels: Integers) -> Array:
        """Return U = d log f / d beta and dU / dbeta of every chain at its own level,
        shape (n, 2).
        """
        return self._evaluate("log_f_derivatives", state, (2,), self.ladder[levels])

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary."""
        raise NotImplementedError

    def summary(self, state: State) -> Array:
        """Return what tells the modes of the target apart, of every chain, shape (n,
        n_summaries).
        """
        return self._evaluate("summaries", state, (self.n_summaries,))

    def _evaluate(self, program: str, state: State, shape: tuple[int, ...], *betas: Array) -> Array:
        """Return the values that a compiled program writes for every chain, (n, *shape)."""
        out = np.empty((n_chains(state), *shape))
        self.kernel(program)(self.packed, state, *betas, out)
        return out

    def gibbs(self, state: State, levels: Integers, stream: Stream, reverse: bool = False) -> Any:
        """One Gibbs sweep of every chain at its level, or its time reversal."""
        return self._sweep(state, self.ladder[levels], stream, reverse)

    def _sweep(self, state, betas, stream, reverse=False):
        state = map_state(np.array, state)
        self._move(state, np.stack([betas, betas]), stream, reverse)
        return state

    def _move(self, state, betas, stream, reverse=False) -> None:
        """Take chains through betas (n_sweeps + 1, n), in place."""
        unused = np.zeros(betas.shape[1])
        self.kernel("anneal")(self.packed, state, betas, reverse, reverse, stream.keys, unused)


def values_at(density: Any, position: Array) -> Any:
    """Return log f_0, log f_1 - log f_0 and their gradients at points (n, d), of a compiled
    density: (n,), (n,), (n, d) and (n, d), in nats.
    """
    from sklpf.kernels._densities import Values

    n, d = position.shape
    values = Values(np.empty(n), np.empty(n), np.empty((n, d)), np.empty((n, d)))
    _run_compiled("write_values", density, read_only(position), values)
    return values


def density_at(density: Any, position: Array) -> tuple[NDArray, NDArray]:
    """Return log f and its gradient at points (n, d), of a compiled density: (n,) in nats, and
    (n, d).
    """
    log_density = np.empty(len(position))
    slope = np.empty(position.shape)
    _run_compiled("write_density", density, read_only(position), log_density, slope)
    return log_density, slope


def trajectory_at(
    density: Any,
    position: Array,
    velocity: NDArray,
    step_size: float,
    n_leapfrog: int,
) -> tuple[NDArray, NDArray, NDArray]:
    """Return where trajectories of kicks and drifts from points (n, d) end, on a compiled density:
    points and velocities (n, d), and log f of beginnings and ends (2, n), in nats.
    """
    end = position.copy()
    velocity = velocity.copy()
    log_density = np.empty((2, len(end)))
    lengths = float(step_size), int(n_leapfrog)
    _run_compiled("follow", density, end, velocity, *lengths, log_density)
    return end, velocity, log_density


def _run_compiled(program: str, density: Any, *arguments: Any) -> None:
    """Run a program of `sklpf.kernels._densities` that writes to its arguments."""
    from sklpf.kernels import _densities, compiled

    compiled(getattr(_densities, program), type(density).__module__)(density, *arguments)


def read_only(array, dtype=np.float64) -> NDArray:
    """Return a read-only, C-contiguous view or copy: what kernels are compiled for."""
    array = np.ascontiguousarray(array, dtype=dtype).view()
    array.setflags(write=False)
    return array


# -- ladders
def check_ladder(ladder: ArrayLike) -> Array:
    """Return the inverse temperatures as an increasing float64 array in [0, 1] or raise
    ValueError.
    """
    ladder = as_float64(ladder, "ladder", copy=True)
    if ladder.ndim != 1 or len(ladder) < 2:
        raise ValueError(
            "ladder must be a sequence of at least 2 inverse temperatures, got shape"
            f" {ladder.shape}"
        )
    if not np.all((ladder >= 0) & (ladder <= 1)):
        raise ValueError(
            "ladder must hold inverse temperatures in [0, 1]; rescale or drop the others"
        )
    if np.any(np.diff(ladder) <= 0):
        raise ValueError(
            "ladder must be strictly increasing; sort it and drop repeated inverse temperatures"
        )
    ladder.setflags(write=False)
    return ladder


def make_ladder(kind: str | ArrayLike, n_temperatures: int) -> Array:
    """Return `n_temperatures` inverse temperatures from 0 to 1.

    Parameters
    ----------
    kind : {"linear", "power", "sigmoid", "salakhutdinov-murray"} or array-like
        "power" is the square of the linear ladder (dense near the base), "sigmoid" is dense at both
        ends (logistic from -4 to 4), "salakhutdinov-murray" has three linear pieces with the
        spacing proportions of their 2008 RBM study: 0 to 0.5 by a thirtieth of the levels, to 0.9
        by 0.27, to 1 by the rest. An array is checked and returned as it is.
    n_temperatures : int
        Number of levels K, at least 2.

    Returns
    -------
    ndarray of shape (n_temperatures,)
        Increasing, and read-only.

    Raises
    ------
    ValueError
        If `kind` is unknown or an array is no increasing sequence in [0, 1].
    """
    if not isinstance(kind, str):
        return check_ladder(kind)
    check_count(n_temperatures, "n_temperatures", at_least=2)
    x = np.linspace(0, 1, n_temperatures)
    y = expit(8 * x - 4)
    shapes = {
        "linear": x,
        "power": x**2,
        "sigmoid": np.r_[0.0, ((y - y[0]) / (y[-1] - y[0]))[1:-1], 1.0],
        # their 14,500 levels: 500 up to 0.5, 4,000 up to 0.9, 10,000 up to 1
        "salakhutdinov-murray": np.interp(x, [0, 500 / 14500, 4500 / 14500, 1], [0, 0.5, 0.9, 1]),
    }
    if kind not in shapes:
        raise ValueError(
            f"ladder must be one of {LADDERS} or an array of inverse temperatures, got {kind!r}"
        )
    return check_ladder(shapes[kind])


def respace(ladder: ArrayLike, costs: ArrayLike, n_temperatures: int) -> Array:
    """Place levels at equal cumulative cost (Syed et al. 2022), by monotone interpolation.

    Parameters
    ----------
    ladder : array-like of shape (K,)
        The levels at which the costs were measured.
    costs : array-like of shape (K - 1,)
        Cost of every interval: a swap's rejection probability, or the standard deviation of the log
        ratio.
    n_temperatures : int
        Number of levels of the new ladder.

    Returns
    -------
    ndarray of shape (n_temperatures,)
    """
    ladder = np.asarray(ladder, dtype=float)
    costs = np.asarray(costs, dtype=float)
    # keeps the cumulative cost invertible where nothing was rejected
    floor = 1e-3 * costs.sum() + 1e-12
    cumulative = np.r_[0, np.cumsum(costs + floor * np.diff(ladder))]
    if not np.all(np.diff(cumulative) > 0):
        raise ValueError(
            "levels can't be told apart: the target is too steep; check the parameters of the"
            " model, or give a density of your own a base that covers it more closely"
        )
    beta = PchipInterpolator(cumulative, ladder)(np.linspace(0, cumulative[-1], n_temperatures))
    beta[0] = ladder[0]
    beta[-1] = ladder[-1]
    if not np.all(np.diff(beta) > 0):
        raise ValueError(
            "levels can't be told apart: the base is much too narrow or too wide for the target;"
            " give another base"
        )
    return check_ladder(beta)


# -- optional methods
def has(path: Path, *names: str) -> bool:
    """Return whether a path has some optional methods.

    Parameters
    ----------
    path : Path
        What is asked.
    *names : str
        Names of `OptionalMethods`; those that are of use only together are asked for together.

    Returns
    -------
    bool
        True if none is missing.
    """
    return not any(_missing(path, name) for name in names)


def require(path: Path, name: str, who: str) -> None:
    """Raise TypeError where a path lacks an optional method.

    Parameters
    ----------
    path : Path
        What is asked.
    name : str
        Of `OptionalMethods`, with those that are of use only together.
    who : str
        Name of what needs the method, for the message.
    """
    for missing in _missing(path, name):
        member = getattr(OptionalMethods, missing, None)
        kind = f"attribute {missing}"
        if member is not None:
            parameters = list(inspect.signature(member).parameters)[1:]  # without self
            kind = f"method {missing}({', '.join(parameters)})"
        reason = _own_reason(path, missing) or INSTEAD.get(missing, INSTEAD.get(name, "define it"))
        raise TypeError(
            f"{who} needs a path with the {kind}; {type(path).__name__} has none: {reason}"
        )


def require_base(path: Path, who: str) -> float:
    """Return the base's log normaliser or raise if the path can't be sampled from there.

    Parameters
    ----------
    path : Path
        What is asked.
    who : str
        Name of what needs the base, for the message.

    Returns
    -------
    float
        Log Z of the base in nats.
    """
    require(path, "sample_base", who)
    if path.base_log_partition is None:
        raise ValueError(
            f"{who} needs a base with a known normaliser: declare base_log_partition on"
            f" {type(path).__name__} (0.0 if log_f at level 0 is normalised), or give a base whose"
            " `normalised` is true"
        )
    return float(path.base_log_partition)


def _missing(path: Path, name: str) -> list[str]:
    return [each for each in TOGETHER.get(name, (name,)) if not _stands(path, each)]


def _stands(path: Path, name: str) -> bool:
    return isinstance(getattr(path, name, None), Box) if name == "bounds" else hasattr(path, name)


def _own_reason(path: Path, name: str) -> str:
    """Return the reason for which a path's property has no value, in the path's words."""
    if isinstance(getattr(type(path), name, None), property):
        try:
            getattr(path, name)
        except AttributeError as error:
            return str(error)
    return ""

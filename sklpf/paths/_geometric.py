"""GeometricPath: from a base that can be sampled to a density on R^d that is given by a
function.
"""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from sklpf._utils.context import current_budget
from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf._utils.validation import check_bool
from sklpf._utils.warnings import Alarm
from sklpf.paths._base import (
    CompiledPrograms,
    Path,
    Points,
    PointsPath,
    SlopedPoints,
    check_ladder,
    density_at,
    has,
)
from sklpf.paths._bases import Gaussian, Mixture, Parts, as_base, box_around, within
from sklpf.paths._climbs import functions_for_climbs
from sklpf.paths._functions import (
    check_callable,
    check_functions,
    evaluate,
    gradients_of,
    is_compiled,
    log_base_of,
    log_densities_of,
    pool_of,
    shown,
    values_of_shape,
)
from sklpf.paths._regions import Regions, find_regions
from sklpf.uncertainty import log_mean_exp

# widths of base draws at which densities are compared
_PROBED = np.repeat([1.0, 3.0, 30.0, 1e3], 8)


class GeometricPath(PointsPath):
    """log f_beta = (1 - beta) log f_0 + beta log f: from a base f_0 to a density f on R^d, or on a
    box.

    Its log Z is the log of the integral of f: with a posterior's log prior + log likelihood, the
    log evidence of a Bayesian model.

    Parameters
    ----------
    log_density : callable
        The whole unnormalised log density in nats, of points (n, d), giving (n,). -inf is a density
        of 0. If it and `grad` are compiled by numba (and the base is one of this package) `HMC`
        and `RandomWalk` run in compiled programs, made once in a process and not kept on disk; the
        numbers are those of the uncompiled form but for rounding.
    grad : callable or None, default=None
        Its gradient, of points (n, d), giving (n, d). None leaves `RandomWalk` and `Slice` as
        moves.
    value_and_grad : callable or None, default=None
        Instead of `grad`: gives log density and gradient of points (n, d) in one call, a pair of
        arrays (n,) and (n, d). `HMC` then calls it once a step, where it would call `log_density`
        and `grad`, which pays where both share work. It always runs uncompiled.
    base : object
        Where chains start: `Gaussian`, `StudentT`, `Uniform`, `Mixture`, any object with `sample`,
        `log_density`, `n_dimensions`, `normalised`, `center` and `scale` (`grad_log_density` too,
        where it is known), a frozen distribution of scipy.stats (multivariate_normal,
        multivariate_t), or a list of d univariate ones. It must have mass wherever the target has,
        and tails at least as heavy. A prior as base tempers the likelihood alone.
    grad_base : callable or None, default=None
        Gradient of the base's log density, of points (n, d), where the base does not know it.
    bounds : tuple (low, high) or None, default=None
        The box that f is integrated over: numbers or arrays (d,), infinite where a side is open.
        Chains are reflected at its sides. A `Gaussian` with a diagonal covariance is truncated to
        it, and so are the Gaussians of a `Mixture`.
    vectorized : bool, default=True
        False: the functions take one point (d,) and give a number, and a gradient (d,).
    pool : object or None, default=None
        With ``vectorized=False``: workers of your own, with ``map(function, points)``, such as
        those of multiprocessing, concurrent.futures or schwimmbad, which evaluate the functions.
        None: those of an estimator's `n_jobs` do, where a function takes long.
    ladder : array-like of shape (K,), default=(0, 1)
        Inverse temperatures. Estimators replace it by their own.

    Attributes
    ----------
    n_dimensions : int
    bounds : Box

    Raises
    ------
    ValueError
        If a function gives wrong shapes or +inf; if `value_and_grad` comes together with `grad`; if
        the base draws points outside `bounds`, or can't be a base on them. At five draws of the
        base the functions are also compared: if one gives NaN, `grad` disagrees with differences of
        `log_density` (relative 1e-4), `value_and_grad` gives another log density, or the log
        density is random or depends on the other points of a call.
    TypeError
        If something is no function, or no base.

    Notes
    -----
    Where chains propose a point at which the log density is NaN they stay, and the result is not
    converged if that is often. Where the gradient is not finite `HMC` goes straight on.

    A base with lighter tails than the target's makes weights wrong without that they show it.
    Before they sample, estimators therefore compare how fast both densities fall at 1 to 1e10
    scales of the base, along rays from its center: in random directions, along its axes, and
    through points near the target's mass. Where the target falls as a power of the distance and the
    base faster, the result is not converged; where it falls too slowly to have an integral there is
    a ValueError. Tails between those of a power and the base's, such as exponential ones with a
    `Gaussian`, are left to the weights. Not seen are a ridge that no ray runs along exactly (a
    product of Student-t experts has tails on ridges that are heavier than in other directions: the
    least of their degrees of freedom is what a `StudentT` base should have), a cone of directions
    that no ray meets, and what begins beyond 1e7 scales.

    A base that leaves out a mode makes runs agree on a log Z that is too low. Beside each run
    climbs from many points therefore look for modes (`regions`), and the result is not converged
    where the run's draws have missed one with a material mass.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import HAIS, Gaussian, GeometricPath
    >>> log_f, slope = lambda x: -np.sum(x**2, axis=1) / 2, lambda x: -x
    >>> base = Gaussian(np.ones(3), 2.0)
    >>> path = GeometricPath(log_f, grad=slope, base=base)
    >>> hais = HAIS(n_temperatures=200, random_state=0).fit(path)
    >>> bool(abs(hais.log_partition_ - 1.5 * np.log(2 * np.pi)) < 0.05)
    True
    """

    has_boundary = True
    n_chains_per_block = 64
    tail_alarms: tuple[Alarm, ...] | None = (
        None  # of a subclass that knows its tails; None: they are measured
    )
    may_be_nan = False  # checks look for NaN although tails are known
    climbs_from: Array | None = None  # (n, d): of `regions`; None: draws of the base
    most_search_evaluations: float = np.inf  # of `regions`
    base_is_ours = False  # models set True where they have chosen it
    density_name = "log_density"  # in errors: what the user calls it

    _counted = ("raw_log_density", "raw_gradient", "_target_and_slope")

    def __init__(
        self,
        log_density: Callable[[Any], Any],
        *,
        grad: Callable[[Any], Any] | None = None,
        value_and_grad: Callable[[Any], tuple[Any, Any]] | None = None,
        base: object,
        grad_base: Callable[[Any], Any] | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        vectorized: bool = True,
        pool: object = None,
        ladder: ArrayLike = (0.0, 1.0),
    ):
        check_callable(log_density, grad=grad, value_and_grad=value_and_grad, grad_base=grad_base)
        check_bool(vectorized, "vectorized")
        self.pool = pool_of(pool, vectorized)
        if value_and_grad is not None:
            if grad is not None:
                raise ValueError("give grad or value_and_grad, not both")
            grad = functools.partial(_second, value_and_grad)
        self.log_density = log_density
        self.grad = grad
        self.value_and_grad = value_and_grad
        self.grad_base = grad_base
        self.vectorized = vectorized
        base = as_base(base)
        self.n_dimensions = base.n_dimensions
        if self.n_dimensions < 1:
            raise ValueError("base must have at least one dimension, got n_dimensions = 0")
        self.bounds = box_around(bounds, self.n_dimensions)
        self.ladder = check_ladder(ladder)
        self._start_from(base)

    def __repr__(self) -> str:
        slope = self.grad if self.value_and_grad is None else self.value_and_grad
        names = [_name(function) for function in (self.log_density, slope) if function is not None]
        return (
            f"{type(self).__name__}({', '.join(names)}, base={self.base!r},"
            f" n_levels={len(self.ladder)})"
        )

    def with_base(self, base: object) -> GeometricPath:
        """Return the path to the same density from another base.

        Parameters
        ----------
        base : object
            As the parameter of that name.

        Returns
        -------
        GeometricPath
            With all else that this one has, but `grad_base`.
        """
        path = copy.copy(self)
        path.grad_base = None
        path.base_is_ours = False
        path.base_chosen = ""
        path._start_from(base)
        return path

    def _start_from(self, base: object) -> None:
        """Set the base, and check it and the functions by draws of it."""
        self.base = within(as_base(base, self.n_dimensions), self.bounds)
        check_functions(self)

    @property
    def renews_base(self) -> bool:  # type: ignore[override]
        """True if the base has parts that moves may not connect."""
        return isinstance(self.base, Mixture)

    @property
    def base_log_partition(self) -> float | None:  # type: ignore[override]
        """0.0 where the base is normalised, else None."""
        return 0.0 if self.base.normalised else None

    def sample_base(self, n: int, stream: Stream) -> Any:
        """Return n exact draws from the base."""
        position = self.base.sample(n, stream.generator())
        self._check_within(position)
        return self.at(position)

    def at(self, position: Array) -> Any:
        """Return the state of chains at some points (n, d)."""
        log_base = log_base_of(self.base, position)
        if self.value_and_grad is None:
            log_target = self._target(position, nan_is_zero=True)
        else:
            log_target, slope = self._target_and_slope(position)
        nowhere = (log_base == -np.inf) & (log_target > -np.inf)
        if nowhere.any():
            raise ValueError(
                f"base has density 0 at {shown(position[nowhere][0])}, where log_density is "
                f"{log_target[nowhere][0]:.4g}: give a base that covers the target, or bounds"
            )
        with np.errstate(invalid="ignore"):
            gain = np.where(log_target == -np.inf, -np.inf, log_target - log_base)
        if self.value_and_grad is None:
            return Points(position, log_base, gain)
        return SlopedPoints(position, log_base, gain, slope)

    def regions(self, stream: Stream) -> Regions:
        """Return ellipsoids around the modes that climbs find, with estimates of their masses.

        Climbs begin at draws of the base, of which three in four are moved 3 to 30 times as far
        from its center (within a finite box: anywhere), and where the modes would be if
        coordinates were swapped or had the other sign. More begin where of up to 20,000 draws the
        target is highest above the base. Ellipsoids on slopes that climbs have passed hold mass
        without a mode, such as the neck of a funnel. Not found are modes with a narrow basin that
        no start meets: of one with a share s of the base's mass, n draws miss (1 - s)^n.

        Parameters
        ----------
        stream : Stream
            Of random numbers.

        Returns
        -------
        Regions
            At most 40, in the coordinates of a run's draws; none where the base's normaliser is not
            known.
        """
        value_and_grad = None if self.value_and_grad is None else self._target_and_slope
        grad = None if self.grad is None else self.raw_gradient
        functions = functions_for_climbs(self.raw_log_density, grad, value_and_grad)
        has_gradient = self.grad is not None
        rng = stream.generator()
        found = find_regions(
            *functions,
            has_gradient,
            self.base,
            self.bounds,
            rng,
            self.climbs_from,
            self.most_search_evaluations,
        )
        return self._of_draws(found)

    def with_regions(self, regions: Regions) -> GeometricPath:
        """Return the path to the same density from a base that has Gaussians at regions as well.

        Parameters
        ----------
        regions : Regions
            Such as ``run_.regions`` of a run that has missed some of them.

        Returns
        -------
        GeometricPath
            Half of its base is this one's. Within bounds the Gaussians are truncated, with
            independent coordinates.

        Raises
        ------
        TypeError
            If this path's base can't be part of a `Mixture`.
        ValueError
            If regions have no factors.
        """
        if regions.factors is None:
            raise ValueError("regions must have factors, as those of this path")
        centres = regions.centres
        factors = regions.factors
        if has(self, "rows"):
            origin, root = coordinates_of_rows(self)
            centres = np.linalg.solve(root, (centres - origin).T).T
            factors = factors @ root
        covariances = [np.linalg.inv(factor.T @ factor) for factor in factors]
        covariances = [1.5 * (covariance + covariance.T) / 2 for covariance in covariances]
        if self.bounds.has_sides:  # what can be truncated
            covariances = [np.diag(covariance) for covariance in covariances]
        found = [Gaussian(*each) for each in zip(centres, covariances)]
        shares = np.maximum(softmax(log_mean_exp(regions.log_masses, axis=1)), 0.01)
        base = Mixture([self._base_to_mix(), *found], [1.0, *(shares / shares.sum())])
        chosen = self.base_chosen
        if chosen:
            chosen += ", and Gaussians at regions that it missed"
        return self.from_mixture(within(base, self.bounds), chosen)

    def from_mixture(self, base: Mixture, chosen: str) -> Any:
        """Return this path from a mixture within its bounds as base.

        Parameters
        ----------
        base : Mixture
            Which knows its own gradient.
        chosen : str
            What it is, for summaries.

        Returns
        -------
        GeometricPath
            Of the same class, with all else that this one has.
        """
        path = copy.copy(self)
        path.base = base
        path.grad_base = None
        path.base_chosen = chosen
        return path

    def _base_to_mix(self) -> Any:
        """The base as a component of a `Mixture`."""
        return self.base

    def _of_draws(self, regions: Regions) -> Regions:
        """Regions in the coordinates of a run's draws, which are rows where the path has them."""
        if not has(self, "rows") or regions.factors is None:
            return regions
        origin, root = coordinates_of_rows(self)
        centres = origin + regions.centres @ root.T
        factors = regions.factors @ np.linalg.inv(root)
        draws = None if regions.draws is None else origin + regions.draws @ root.T
        return regions._replace(centres=centres, factors=factors, draws=draws)

    def raw_log_density(self, position: Array) -> Array:
        """Return the user's log density as it is.

        Parameters
        ----------
        position : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n,)
            In nats; NaN and infinity are kept.
        """
        values = self._call("log_density", position)
        return values_of_shape(self.density_name, values, (len(position),))

    def raw_gradient(self, position: Array) -> Array:
        """Return the user's gradient as it is.

        Parameters
        ----------
        position : ndarray of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n, d)
            In nats by the coordinates; NaN and infinity are kept.
        """
        return self._call("grad", position)

    def probe(self) -> list[str]:
        """Values of all functions at fixed points, to ten digits.

        They tell densities apart that a pickle does not: it holds functions by their names, and
        nothing that these read.

        Returns
        -------
        list of str
            "failed" where a function does not take the points.
        """
        center = np.asarray(self.base.center)
        draws = np.asarray(self.base.sample(len(_PROBED), np.random.default_rng(0)))
        position = center + _PROBED[:, np.newaxis] * (draws - center)
        position = self.bounds.clip(position)
        gradient = None if self.grad is None else self.raw_gradient
        functions = [self.base.log_density, self.raw_log_density, gradient, self._base_gradient]
        values = []
        with np.errstate(all="ignore"):
            for function in filter(None, functions):
                try:
                    found = np.ravel(np.asarray(function(position), dtype=np.float64))
                    values += [f"{value:.9e}" for value in found]
                except Exception:  # of a user's function, at points that are too far out
                    values.append("failed")
        return values

    @property
    def packed(self) -> Any:
        """Arrays of compiled programs, or None: functions compiled by numba, and a base that they
        know.
        """
        functions = [f for f in (self.log_density, self.grad) if f is not None]
        budget = current_budget()
        counts = budget is not None and np.isfinite(budget.most)
        are_compiled = self.vectorized and not counts and all(map(is_compiled, functions))
        base = getattr(self.base, "packed", None)
        if not are_compiled or base is None or self.grad_base is not None:
            return None
        from sklpf.paths._density_kernels import DensityWithGradient, LogDensity, TemperedDensity

        if self.grad is None:
            return TemperedDensity(LogDensity(self.log_density), base)
        return TemperedDensity(DensityWithGradient(self.log_density, self.grad), base)

    def kernel(self, name: str) -> Any:
        """Return one of the compiled programs.

        Parameters
        ----------
        name : str
            Of a program, as in `sklpf.kernels`.

        Returns
        -------
        callable
            Made for the path's functions, and kept as long as these.
        """
        from sklpf.kernels import _programs

        return getattr(_programs, name)

    @property
    def gradients(self) -> Callable[[Points], tuple[NDArray, NDArray]]:
        """A function of the state: the gradients of log f_0 and of log f_1 - log f_0,
        both (n, d).
        """
        if self.grad is None:
            raise AttributeError(
                "give grad, the gradient of log_density, or choose RandomWalk or Slice as"
                " transition"
            )
        if self._base_gradient is None:
            raise AttributeError(
                "give grad_base, the gradient of the base's log density, which the base does not"
                " know"
            )
        return self._gradients

    def _gradients(self, state):
        inside = state.gain > -np.inf
        if inside.all():
            base, target = self._end_gradients(state)
            return base, target - base
        base = np.zeros_like(state.position)
        target = np.zeros_like(state.position)
        if inside.any():
            base[inside], target[inside] = self._end_gradients(self.take(state, inside))
        return base, target - base

    def _end_gradients(self, state):
        """The gradients of log f_0 and of log f_1, both (n, d), where neither density is 0."""
        position = state.position
        if self.value_and_grad is None:
            slope = values_of_shape("grad", self.raw_gradient(position), position.shape)
        else:
            slope = state.slope
        # Leapfrog steps with any force are reversible, so that moves stay exact with none
        # where the gradient is not finite.
        slope = np.where(np.isfinite(slope), slope, 0.0)
        return gradients_of("grad_base", self._base_gradient(position), position), slope

    def _call(self, name, position):
        """Values that one of the functions gives at points, spent from the budget of the fit."""
        function = getattr(self, name)
        # A copy, in the same layout: a function may write to its argument.
        position = position.copy(order="K")
        budget = current_budget()
        if budget is None or name == "grad_base":
            return self._evaluate(function, position)
        budget.spend(len(position))

        def evaluate(points):
            began = time.perf_counter()
            values = self._evaluate(function, points)
            budget.took(len(points), time.perf_counter() - began)
            return values

        if budget.memory is None:
            return evaluate(position)
        return budget.memory.values(name, evaluate, position, self.vectorized)

    def _evaluate(self, function, position):
        """Values that a function of the user's gives at points."""
        return evaluate(function, position, self.vectorized, self.pool)

    def _target(self, position, nan_is_zero=False):
        """Log densities (n,); NaN is an error, or a density of 0: the check of tails counts how
        often it comes.
        """
        hint = ""
        if self.vectorized:
            hint = "; of a function of one point say GeometricPath(..., vectorized=False)"
        values = self._call("log_density", position)
        return log_densities_of(self.density_name, values, position, nan_is_zero, hint)

    def _target_and_slope(self, position):
        """Log density (n,) and gradient (n, d) from one call, copied: the caller may reuse both."""
        assert self.value_and_grad is not None  # checked by the caller
        found: Any = self._call("value_and_grad", position)
        if not self.vectorized:
            found = tuple(zip(*found))
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise ValueError("value_and_grad must give a pair: log densities and gradients")
        log_target = log_densities_of("value_and_grad", found[0], position, nan_is_zero=True)
        slope = values_of_shape("value_and_grad's gradient", found[1], position.shape)
        return log_target, slope

    @property
    def _base_gradient(self):
        if self.grad_base is not None:
            return functools.partial(self._call, "grad_base")
        return getattr(self.base, "grad_log_density", None)

    def _check_base(self, *, n_within: int = 1000) -> None:
        """Check a base by its boxes where it has some, else by draws."""
        parts = getattr(self.base, "packed", None)
        if isinstance(parts, Parts):
            self._check_within(np.concatenate([parts.low, parts.high]))
        elif self.bounds.has_sides:
            self._check_within(self.base.sample(n_within, np.random.default_rng(1)))

    def _check_within(self, points) -> None:
        """Raise where a point of the base lies outside of the box, whose mass would be missing."""
        if not self.bounds.contains(np.asarray(points)).all():
            raise ValueError(
                "base draws points outside bounds: give a base within them, such as Uniform(low,"
                " high), or a Gaussian with independent coordinates, which is truncated"
            )


class CompiledDensityPath(CompiledPrograms, GeometricPath):
    """A model's path to a density whose kernels are in the module that `_kernels` names; its base
    has `packed`, else programs run uncompiled.

    A subclass defines ``_packed_target()``, the density as kernels know it, with
    `evaluate_density`, which needs nothing that this `__init__` sets; and `mean` (d,) and `root`
    (d, d) of the model's rows, or ``rows(state)``.
    """

    base_is_ours = True
    mean: Array
    root: Array
    _packed_target: Callable[[], Any]

    def __init__(self, base: object):
        super().__init__(self._log_density, grad=self._slope, base=base)

    def rows(self, state: Points) -> Array:
        """Return x of the chains.

        Parameters
        ----------
        state : Points
            The chains.

        Returns
        -------
        ndarray of shape (n, d)
            In the model's coordinates.
        """
        return self.mean + state.position @ self.root.T

    def _log_density(self, position):
        return density_at(self._packed_target(), position)[0]

    def _slope(self, position):
        return density_at(self._packed_target(), position)[1]

    def _pack(self):
        from sklpf.paths._density_kernels import TemperedDensity

        base = getattr(self.base, "packed", None)
        return None if base is None else TemperedDensity(self._packed_target(), base)


def is_own_density(path: Path) -> TypeGuard[GeometricPath]:
    """Return whether a path leads to a user's own density on R^d, no model's, which has rows."""
    return isinstance(path, GeometricPath) and not has(path, "rows")


def require_own_density(path: Path, who: str) -> None:
    """Raise TypeError, with the name of what needs it, where `is_own_density` is False."""
    if not is_own_density(path):
        raise TypeError(
            f"{who} needs a density of your own on R^d, a GeometricPath, got a"
            f" {type(path).__name__}: take AIS or SMC"
        )


def coordinates_of_rows(path: GeometricPath) -> tuple[Array, Array]:
    """Return origin (d,) and root (d, d) of a path's rows, x = origin + root @ position."""
    origin = path.rows(path.at(np.zeros((1, path.n_dimensions))))[0]
    return origin, path.rows(path.at(np.eye(path.n_dimensions))).T - origin[:, np.newaxis]


def _second(value_and_grad, position):
    """The gradient alone."""
    return value_and_grad(position)[1]


def _name(function) -> str:
    return getattr(function, "__name__", type(function).__name__)

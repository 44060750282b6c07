"""Independent draws from the base or a proposal: ImportanceSampling by their mean weight, and
RejectionSampling by the share that is accepted.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, norm

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream, seeded
from sklpf._utils.validation import POSITIVE, Interval, at_least
from sklpf.partition._base import SAMPLING, PartitionEstimator, SamplingEstimator
from sklpf.partition._result import PartitionResult, Run
from sklpf.partition.alarms import raised, threshold
from sklpf.partition.weights._ais import AnnealingRun, annealing_runs
from sklpf.partition.weights._explored import TWO_LEVELS, ImportanceRun, explored_run
from sklpf.paths import (
    Evaluations,
    GeometricPath,
    Path,
    State,
    as_base,
    climb,
    functions_for_climbs,
    has,
    is_own_density,
    require_base,
    starts_of_climbs,
)
from sklpf.programs import check_finite, draws_of, has_points, points_of
from sklpf.transitions import reflect


@dataclass(eq=False, repr=False)
class ImportanceSampling(SamplingEstimator):
    """Importance sampling from the path's base or from a proposal (Bishop 2006, eqs. 11.19 and
    11.72).

    log Z is the log of the mean of f(x) / q(x) over independent draws x from q: `AIS` without
    levels between. Use it if q is close to the target. For most models it is not, and the estimate
    is then tens of nats too low. To detect this, chains are run at the target, and their weights f
    / q are compared with those of the draws.

    Parameters
    ----------
    n_samples : int, default=10000
        Independent draws n.
    proposal : object, "explored" or None, default=None
        The distribution to draw from instead of the base of a `GeometricPath`, with the same
        requirements: a `Gaussian`, a `StudentT`, a distribution of scipy.stats, or any object with
        ``sample(n, rng)``, ``log_density(x)``, ``n_dimensions``, ``normalised``, ``center`` and
        ``scale``. None draws from the base. "explored": two independent explorers look for the
        target's mass from the base, and draws come from mixtures that are fitted to it.
    tol : float or None, default=None
        Standard error of log Z in nats at which draws from an explored proposal end, before there
        are `n_samples`. None: all are drawn.
    max_evaluations : int or None, default=None
        Evaluations of the density, at most, of exploring (three quarters) and draws together. More
        are spent in part on larger populations, which find smaller modes. None: 15,000 and 3,000
        for each dimension of exploring, and `n_samples` draws. Of other proposals as in `AIS`.
    warm_start : bool, default=False
        True keeps all values of a density of the user's on R^d, the seed, and a cover that is
        found, for the next `fit` to the same path: with a smaller `tol` or more `n_samples` this
        gives the numbers that it would give without, and evaluates the density at new points alone.
        With a larger `max_evaluations` draws go on, too, if exploring was over; if not it begins
        again, and soon goes other ways. Values that are kept count as evaluations each time; in d
        dimensions each takes some 220 + 8 d bytes of memory, until a `fit` with False.
    transition : Transition or None, default=None
        The move of the chains at the target, as in `AIS`.
    checkpoint, checks, max_seconds, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `AIS`. With an explored proposal ``result_.n_sweeps`` counts evaluations, and
        ``run_.cover`` says where the mass is. On a path without moves the result is labelled a
        "lower bound", which it is in expectation, since there is no check of what the draws have
        missed.

    Raises
    ------
    TypeError
        If `proposal` is not a distribution, or the path is not on R^d.
    ValueError
        If the proposal has other dimensions than the path, or no mass at a point where the target
        has.

    Notes
    -----
    A quarter as many chains start at draws in proportion to their weights and make 100 moves at the
    target. Not converged if the effective sample size of their weights, or of those of the draws,
    is below 25 (n / 4 if that is less, or 5); and for the other reasons of `AIS`. A mode that no
    draw has met raises an alarm only if the path knows the mass there (`regions`).

    An explored proposal is adaptive multiple importance sampling (Cornuet et al. 2012), whose
    mixtures are then fixed: draws of which log Z is the mean weight are independent of them and of
    one another. Not converged if draws from the two explorers' mixtures differ by 3 standard
    errors; if walks at the target lead to where the mixtures are thin; if climbs still find modes;
    if fewer than a fifth of the draws are effective, as of a funnel; or if the weights' tail has a
    Pareto shape above 1 - 1 / log10(n) or 0.7. Searches take a fifth to a half of the evaluations:
    draws far and wide, and slopes where the target is highest above the Gaussians of the cover,
    which say if a climb is needed. A narrow mode in whose basin no point was evaluated is not seen,
    such as one within a wide mode from four dimensions on:
    ``result_.diagnostics["smallest_basin"]`` is the share of starts of the smallest basin that
    climbs meet with 95 %.

    References
    ----------
    Cornuet, J.-M., Marin, J.-M., Mira, A. & Robert, C. P. (2012). Adaptive multiple importance
    sampling. Scandinavian Journal of Statistics 39.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import Gaussian, GeometricPath, StudentT
    >>> from sklpf.partition import ImportanceSampling
    >>> base = Gaussian(np.zeros(2), 1.0)
    >>> path = GeometricPath(lambda x: -np.sum(x**4, axis=1), base=base)
    >>> proposal = StudentT(np.zeros(2), 0.4, df=5)
    >>> sampling = ImportanceSampling(proposal=proposal, random_state=0).fit(path)
    >>> bool(abs(sampling.log_partition_ - 2 * np.log(1.8128)) < 0.05)
    True
    """

    n_samples: int = 10_000
    _: KW_ONLY
    proposal: Any = None
    tol: float | None = None
    warm_start: bool = False

    _parameter_constraints = {
        **SAMPLING,
        "warm_start": ["boolean"],
        "n_samples": [at_least(2)],
        "proposal": "no_validation",
        "tol": [POSITIVE, None],
    }

    _run_class = ImportanceRun
    ladder = TWO_LEVELS
    n_temperatures = 2

    @property
    def _explores(self) -> bool:
        return isinstance(self.proposal, str) and self.proposal == "explored"

    def _as_path(self, path):
        if not self._explores:
            return proposing(super()._as_path(path), self.proposal)
        return super()._as_path(path)

    def _run(self, path, seed) -> Run:
        if self._explores:
            return self._with_reading_options(explored_run(self, path, seed))
        return super()._run(path, seed)

    def _sample(self, path, seed) -> AnnealingRun:
        if self.transition is not None or has(path, "gibbs") or has(path, "position"):
            return annealing_runs(self, [path], self.n_samples, [seed])[0]
        draws = base_draws(path, self.n_samples, seeded(seed).of("draws"), "ImportanceSampling")
        return ImportanceRun(
            ladder=TWO_LEVELS,
            base_log_partition=draws.base_log_partition,
            draws=draws_of(path, draws.state, draws.log_weights, np.arange(self.n_samples)),
            forward=draws.log_weights,
        )


class BaseDraws(NamedTuple):
    """Draws x from the base, log f_1(x) - log f_0(x) of each (n,), and log Z_0."""

    state: Any
    log_weights: Array
    base_log_partition: float


def base_draws(path: Path, n: int, stream: Stream, who: str) -> BaseDraws:
    """Return n draws from the base with their weights."""
    base_log_partition = require_base(path, who)
    path = path.with_ladder([0.0, 1.0])
    state = path.sample_base(n, stream)
    vectors = path.log_f_ladder(state)
    log_weights = check_finite(vectors[:, 1] - vectors[:, 0], allow_zero=path.has_boundary)
    return BaseDraws(state, log_weights, base_log_partition)


def check_cover(
    path: Path,
    state: State,
    stream: Stream,
    *,
    n_draws: int = 1000,  # of which the neighbourhood is looked at
) -> None:
    """Raise ValueError if the target of a `GeometricPath` has mass next to the base's draws where
    the base has none: draws alone can't show it.
    """
    if not isinstance(path, GeometricPath):
        return
    position = path.position(state)[:n_draws]
    moves = np.asarray(path.base.scale) * stream.generator().standard_normal(position.shape)
    path.at(reflect(path.bounds, position + moves, moves)[0])


def proposing(path: Path, proposal: Any) -> Any:
    """Return the path to the same density from a proposal in the place of its base.

    Raises
    ------
    TypeError
        If the path is not to a density on R^d, or the proposal is none.
    ValueError
        If the proposal doesn't fit the path.
    """
    if proposal is None:
        return path
    if not is_own_density(path):
        # a model's path has coordinates of its own
        raise TypeError(
            f"proposal must be None for a {type(path).__name__}: proposals are for a GeometricPath,"
            " a density on R^d; give the path or the model another base"
        )
    try:
        base = as_base(proposal, path.n_dimensions)
    except (TypeError, ValueError) as error:
        raise type(error)(f"proposal can't be used: {error}") from error
    return path.with_base(base)


@dataclass(frozen=True, repr=False, kw_only=True)
class RejectionRun(Run):
    """Run of rejection sampling.

    Attributes
    ----------
    n_samples, n_accepted : int
        Draws from the proposal, and how many of them were kept.
    log_bound : float
        In nats.
    bound_evaluations : int
        Points at which climbs have looked for the bound; 0 where it was given.
    """

    family = "rejection"

    n_samples: int
    n_accepted: int
    log_bound: float
    bound_evaluations: int = 0

    def _read(self) -> PartitionResult:
        k = self.n_accepted
        n = self.n_samples
        diagnostics: dict[str, Any] = {
            "acceptance": k / n,
            "n_accepted": k,
            "log_bound": self.log_bound,
        }
        if self.bound_evaluations:
            diagnostics["bound_evaluations"] = self.bound_evaluations
        log_bound = self.base_log_partition + self.log_bound
        if k == 0:
            most = log_bound + np.log(-np.expm1(np.log(0.05) / n))
            none = raised("few-effective", "none accepted", "none accepted", n=n, most=most)
            return self.conclude(
                -np.inf, np.nan, alarms=[none], diagnostics=diagnostics, statement="approximate"
            )
        alarms = []
        if k < threshold("few-effective", "accepted"):
            alarms.append(raised("few-effective", "accepted", self.family, k=k, n=n))
        log_partition = log_bound + np.log(k / n)
        return self.conclude(
            log_partition,
            _std_error(k, n),
            alarms=alarms,
            diagnostics=diagnostics,
        )


@dataclass(eq=False, repr=False)
class RejectionSampling(PartitionEstimator):
    """Rejection sampling under a bound f(x) <= k q(x) (Bishop 2006, eq. 11.13 and below).

    A draw x from q is accepted with probability f(x) / (k q(x)). Accepted draws are exact and
    independent draws from the target, and the share of draws that is accepted estimates Z / k.

    Parameters
    ----------
    log_bound : float or None, default=None
        log k in nats: an upper bound of log f - log q everywhere, q being the path's base f_0 or
        the proposal. None, for densities on R^d: the highest log f - log q that a hundred climbs
        from draws meet, plus 0.001. That is no guarantee: a narrow peak that no climb meets is
        missed, and then neither the draws nor log Z are exact.
    n_samples : int, default=10000
        Independent draws from q.
    proposal : object or None, default=None
        As in `ImportanceSampling`.
    checks, random_state
        As in `AIS`.

    Attributes
    ----------
    samples_ : ndarray of shape (n_accepted, d) or state
        The draws that were accepted: points if the path is on R^d, else a state of the path. Only
        for paths with one log Z.
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `PartitionEstimator`. The standard error is such that the 95 % interval, which is
        symmetric about log Z, just includes that of Clopper & Pearson (1934), which covers in at
        least 95 % of the runs for any number of draws. ``result_.diagnostics`` holds
        ``acceptance``, ``n_accepted``, ``log_bound``, and where it was found
        ``bound_evaluations``.

    Raises
    ------
    TypeError
        If `log_bound` is None and the path is not a density on R^d.
    ValueError
        If log f exceeds the bound at one of the draws: what was accepted is then no sample of the
        target.

    Notes
    -----
    Not converged if fewer than 10 draws are accepted (if none is, log Z is -inf), if the tails of a
    density on R^d are heavier than the proposal's, so that no bound exists, or if the path has a
    lower bound of log Z that is exceeded. A bound that is violated only where no draw falls can't
    be detected.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import GeometricPath, Uniform
    >>> from sklpf.partition import RejectionSampling
    >>> base = Uniform(0.0, 2.0)
    >>> path = GeometricPath(lambda x: -np.sum(x, axis=1), base=base, bounds=(0, 2))
    >>> rejection = RejectionSampling(random_state=0).fit(path)
    >>> round(rejection.run_.log_bound, 2)  # log 2, as f = e^-x <= 1 and q = 1 / 2
    0.69
    >>> off = abs(rejection.log_partition_ - np.log(1 - np.exp(-2)))
    >>> bool(off < 0.05), rejection.samples_.shape[1]
    (True, 1)
    """

    log_bound: float | None = None
    n_samples: int = 10_000
    _: KW_ONLY
    proposal: Any = None
    checks: bool = True
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints = {
        "log_bound": [Interval(Real, None, None, closed="neither"), None],
        "n_samples": [at_least(2)],
        "proposal": "no_validation",
        "checks": ["boolean"],
        "random_state": ["random_state"],
    }

    _run_class = RejectionRun

    def _as_path(self, path):
        return proposing(super()._as_path(path), self.proposal)

    def _sample(self, path, seed) -> RejectionRun:
        draws = base_draws(path, self.n_samples, seeded(seed).of("proposals"), "RejectionSampling")
        log_bound, n_evaluations = self.log_bound, 0
        if log_bound is None:
            log_bound, n_evaluations = _climb_to_bound(path, draws, seed)
        self._check_bound(path, draws, log_bound)
        check_cover(path, draws.state, seeded(seed).of("cover"))
        uniforms = seeded(seed).of("acceptance").generator().random(self.n_samples)
        accepted = np.flatnonzero(np.log1p(-uniforms) < draws.log_weights - log_bound)
        state = path.take(draws.state, accepted)
        self.samples_ = points_of(path, state) if has_points(path) else state
        return RejectionRun(
            base_log_partition=draws.base_log_partition,
            n_samples=self.n_samples,
            n_accepted=len(accepted),
            log_bound=float(log_bound),
            bound_evaluations=n_evaluations,
        )

    def _check_bound(
        self,
        path,
        draws,
        log_bound,
        *,
        rounding: float = 1e-9,  # by which log f may exceed the bound, relative to its size
    ) -> None:
        worst = int(np.argmax(draws.log_weights))
        found = draws.log_weights[worst]
        if found <= log_bound + path.log_f_rounding + rounding * max(1.0, abs(log_bound)):
            return
        state = path.take(draws.state, [worst])
        point = np.asarray(state[0] if isinstance(state, tuple) else state)[0]
        shown = np.array2string(point, precision=4, threshold=8, separator=", ")
        raise ValueError(
            f"log_bound is no bound: log f - log q is {found:.6g} at {shown}, above log_bound ="
            f" {log_bound:.6g}: raise it to a number that log f - log q exceeds nowhere"
        )


def _climb_to_bound(
    path: Path,
    draws: BaseDraws,
    seed: int,
    *,
    n_climbs: int = 50,  # from the draws of the largest f / q, and as many from others
    # nats above the highest point that climbs have met: they end 1e-4 below a mode
    margin: float = 1e-3,
) -> tuple[float, int]:
    """The highest log f - log q that climbs from draws meet, with a margin, and the number of
    points at which they have looked.
    """
    if not isinstance(path, GeometricPath):
        raise TypeError(
            f"log_bound must be given for a {type(path).__name__}: only of a GeometricPath, a"
            " density on R^d, climbs can look for it"
        )
    rng = seeded(seed).of("climbs").generator()
    order = np.argsort(-draws.log_weights, kind="stable")
    position = path.position(draws.state)
    others = position[rng.permutation(len(position))[:n_climbs]]
    far = starts_of_climbs(others, path.base.center, path.bounds, rng)
    starts = np.concatenate([position[order[:n_climbs]], far])

    def log_ratio(points):
        return path.at(points).gain

    def gradient(points):
        return path.gradients(path.at(points))[1]

    evaluations = Evaluations()
    grad = evaluations.counting(gradient) if has(path, "gradients") else None
    _, slopes = functions_for_climbs(evaluations.counting(log_ratio), grad)
    highest = [float(draws.log_weights.max())]

    def slopes_seen(points, steps):
        values, gradients = slopes(points, steps)
        highest.append(float(values.max(initial=-np.inf)))
        return values, gradients

    climb(slopes_seen, starts, np.asarray(path.base.scale), path.bounds)
    return max(highest) + margin, evaluations.n


def _std_error(k: int, n: int) -> float:
    """The smallest with which log(k / n) ± 1.96 standard errors holds the interval of Clopper and
    Pearson.
    """
    low = beta.ppf(0.025, k, n - k + 1)
    high = beta.ppf(0.975, k + 1, n - k) if k < n else 1.0
    return float(max(np.log(k / n / low), np.log(high * n / k)) / norm.ppf(0.975))

"""LevelRun, a run whose chains are in equilibrium at the levels of a ladder, and its readings: by
reweighting of its states, and by the integral of slopes over its ladder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.tables import imported
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import PartitionResult, RunInRounds, reading
from sklpf.partition.alarms import raised, threshold
from sklpf.programs import LevelRound, Samples
from sklpf.reweighting import (
    bar_ratios,
    integrate,
    level_moments,
    level_process,
    mbar,
    overlap,
    overlap_matrix,
    reweighted_slopes,
    stepping_stones,
    with_first_error,
    with_first_ratio,
)
from sklpf.uncertainty import Difference, MeanWeight, between_groups, jackknife, t_ratio

_NOT_OF_ONE_DENSITY = {"not-of-this-density", "readings-differ"}  # alarms of the run itself
OTHER_RUN = (
    'rule="continuous" needs a run of RTS(continuous=True), and the other rules need one with'
    " levels: give such a run, or such a sampler"
)

# log Z_k - log Z_0 (K,), or other numbers, of the independent groups to use
Curve = Callable[[NDArray], NDArray]


@dataclass(frozen=True, repr=False, kw_only=True)
class LevelRun(RunInRounds):
    """A run whose chains are in equilibrium at K levels, in G independent groups: what reweighting
    reads, from its last round.

    Attributes
    ----------
    has_boundary : bool
        Whether states of level 0 may have f_1 = 0.
    first_ratio : MeanWeight or None
        log Z_1 / Z_0 from base draws, where some of these fall on points at which the target is 0.
    history : ndarray of shape (R, 3)
        log Z in nats, its standard error and the sweeps of all chains after each earlier round.
    """

    draws_levels: ClassVar[bool] = False  # by the pseudo-prior

    has_boundary: bool = False
    first_ratio: MeanWeight | None = None

    @property
    def error_factor(self) -> float:
        """Factor of errors of the jackknife over groups."""
        return 1.0

    if TYPE_CHECKING:  # a field or a property of the classes that extend it

        @property
        def last(self) -> LevelRound:
            """The last round."""

    def curve(self) -> Curve:
        """Return log Z_k - log Z_0 as the sampler estimates it.

        Returns
        -------
        callable
            A function of the indices of the groups to use, which returns the curve, shape (K,), in
            nats.
        """
        raise NotImplementedError

    def read(self, method: str | None = None, **options: object) -> PartitionResult:
        """Return what the run says of log Z, with the alarms of what checks have found.

        Parameters
        ----------
        method : str or None, default=None
            "bar", "mbar", "stepping-stone", "thermodynamic-integration" or "level-process": a key
            of `READINGS`; None is the sampler's own.
        **options
            Parameters of `SteppingStone` and `ThermodynamicIntegration`.

        Returns
        -------
        PartitionResult

        Raises
        ------
        ValueError
            If there is no such method, or it can't read this run.
        """
        if method is None:
            return super().read()
        if method not in READINGS:
            names = ", ".join(map(repr, READINGS))
            raise ValueError(f"method must be None or one of {names}, got {method!r:.80}")
        return read_by(self, READINGS[method], options)

    @property
    def n_groups(self) -> int:
        """Independent groups G: ladders, or groups of chains."""
        return self.last.n_groups

    @property
    def samples(self) -> Samples:
        """The states that were kept."""
        return self.last.samples(self.ladder)

    def pair_alarms(self) -> list[Alarm]:
        """Return what speaks against ratios of neighbouring levels, beside what speaks against the
        run.

        Returns
        -------
        list of Alarm
        """
        return []

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset of the states that were kept, with the dimensions chain, draw
        and level.

        ``log_f`` (chain, draw, level) is log f_k(x) at every level, but for a constant of every x
        (nats); ``moved_at`` (chain, draw) the level that x was moved at; ``slope`` d log f / d beta
        where the path has derivatives, at all levels, or one number where it is the same at all. A
        chain is a ladder of `ParallelTempering`, whose draws are those of its levels in turn. ArviZ
        takes the dataset as it is: ``arviz.ess(run.to_xarray()["log_f"])``.

        Returns
        -------
        xarray.Dataset
            Numbers in nats.

        Raises
        ------
        ImportError
            If xarray is not installed.
        """
        xarray = imported("xarray", "to_xarray")
        samples = self.samples
        levels = self.last.vector_levels
        variables: dict[str, Any] = {
            "log_f": (("chain", "draw", "level"), samples.vectors.reshape(*levels.shape, -1)),
            "moved_at": (("chain", "draw"), levels),
        }
        n_slopes = samples.slopes.shape[1]
        if n_slopes:
            slopes = samples.slopes.reshape(*levels.shape, n_slopes)
            one = n_slopes < len(self.ladder)
            variables["slope"] = (
                (("chain", "draw"), slopes[..., 0]) if one else (("chain", "draw", "level"), slopes)
            )
        return xarray.Dataset(variables, coords={"beta": ("level", self.ladder)})


class Reading(NamedTuple):
    """A method that reads runs over levels.

    Attributes
    ----------
    name : str
        Its estimator's.
    curve : callable
        curve(run, **options) returns log Z_k - log Z_0 (K,) as a function of the groups to use.
    alarms : callable
        alarms(run, curve, diagnostics, std_error, **options) returns the alarms of its number;
        their statistics go to the diagnostics.
    """

    name: str
    curve: Callable[..., Curve]
    alarms: Callable[..., list[Alarm]]


@reading()
def read_by(
    run: Any, method: Reading, options: Mapping[str, Any], own: PartitionResult | None = None
) -> PartitionResult:
    """Return the result of a run by a method, with its jackknife error and the comparison with the
    sampler's own number, where known that of `own`.
    """
    own = own or run._read()
    sampler_curve = run.curve()
    from_run = method.curve(run, **options)

    @functools.cache
    def known(keep: tuple[int, ...]):
        return with_first_ratio(from_run(np.array(keep)), run.first_ratio)

    def curve_of(keep):
        return known(tuple(keep))

    def with_difference(keep):
        curve = curve_of(keep)
        return np.r_[curve, curve[-1] - sampler_curve(keep)[-1]]

    values, errors = jackknife(with_difference, run.n_groups)
    errors = errors * getattr(run, "error_factor", 1.0)
    curve = values[:-1]
    curve_error = with_first_error(errors[:-1], run.first_ratio)
    between = Difference(values[-1], t_ratio(values[-1], errors[-1]))
    log_partition = run.base_log_partition + curve[-1]
    std_error = curve_error[-1]

    diagnostics = {
        "curve_std_error": curve_error,
        "sampler_log_partition": own.log_partition,
        "difference": between.value,
        "difference_std_error": errors[-1],
    }
    alarms = [*own.alarms, *method.alarms(run, curve_of, diagnostics, std_error, **options)]
    # The error of a quadrature is the same in all groups, so that the jackknife can't see it.
    quadrature = diagnostics.get("quadrature_error", 0.0)
    is_estimate = all(alarm.kind != "quadrature-error" for alarm in alarms)
    if np.isfinite(quadrature) and is_estimate:
        std_error = np.hypot(std_error, quadrature)
    if not np.isfinite([log_partition, std_error]).all():
        alarms.append(_missing_states(run))
    elif not any(alarm.kind in _NOT_OF_ONE_DENSITY for alarm in own.alarms):
        alarms += readings_alarms(method.name, own.method, between, run)
    result = run.conclude(
        log_partition,
        std_error,
        run.n_groups - 1,
        method=method.name,
        alarms=alarms,
        diagnostics=diagnostics,
        levels=run.base_log_partition + curve,
        statement="estimate" if is_estimate else "approximate",
    )
    return run.judge(result)


def _missing_states(run) -> Alarm:
    """Why a number can't be had."""
    few = 0
    if isinstance(run, LevelRun):
        seen = np.count_nonzero(run.last.pairs()[1][:, int(run.first_ratio is not None) :], axis=0)
        few = int(np.sum(seen < 2))
    if not few:
        return raised("little-overlap", "none of states", run.family)
    return raised("few-states", "groups", run.family, few=few, n=len(seen))


def check_run(run: object) -> None:
    """Raise TypeError or ValueError unless a run can be reweighted."""
    if hasattr(run, "betas"):
        raise ValueError(
            "run must be one with levels, got one with continuous beta, which RTS and"
            ' rule="continuous" of ThermodynamicIntegration read: take RTS(continuous=False)'
        )
    if not isinstance(run, LevelRun):
        raise TypeError(
            "run must be run_ of a fitted ParallelTempering or RTS, or made by from_pymbar or"
            f" from_tempering, got {type(run).__module__}.{type(run).__name__}"
        )
    if run.n_groups < 2:
        raise ValueError(
            f"run must have at least 2 independent groups, got {run.n_groups}: raise n_ladders"
        )
    if not run.last.pairs()[1].sum(axis=1).min() > 0:
        raise ValueError("run holds no states: fit the sampler anew")


def chained(run: LevelRun, ratios: Curve) -> Curve:
    """Curve of ratios of neighbouring levels; of the first one as base draws say, where a run has
    made these.
    """
    known = [] if run.first_ratio is None else [run.first_ratio.log_mean]
    return lambda keep: np.r_[0.0, np.cumsum(np.r_[known, ratios(keep)[len(known) :]])]


def readings_alarms(one: str, other: str, between: Difference, run: LevelRun) -> list[Alarm]:
    """An alarm if two methods differ on the same run."""
    if not between.alarms(run.n_groups):
        return []
    return [
        raised(
            "readings-differ",
            "methods",
            run.family,
            one=one,
            other=other,
            value=between.value,
            t=between.t,
        )
    ]


def bar_curve(run: LevelRun) -> Curve:
    """Curve of log Z by Bennett's acceptance ratio of neighbouring levels."""
    pair_sums, counts = run.last.pairs()
    return chained(run, bar_ratios(pair_sums, run.last.shift, counts))


def mbar_curve(run: LevelRun) -> Curve:
    """Curve of log Z by MBAR of the kept states."""
    return mbar_of([kept_samples(run)])


def mbar_of(parts: Sequence[Samples], guess: Array | None = None) -> Curve:
    """Curve of log Z by MBAR of the states of some rounds, from a first guess of it (K,)."""

    def solve(start, keep=None):
        chosen = parts if keep is None else [each.of(keep) for each in parts]
        vectors = np.concatenate([each.vectors for each in chosen])
        return mbar(vectors, np.sum([each.counts for each in chosen], axis=0), start)

    return functools.partial(solve, solve(guess))


def level_process_curve(run: LevelRun) -> Curve:
    """Curve of log Z by the stationary law of the level process of the kept states."""
    samples = kept_samples(run)

    def curve(keep):
        chosen = samples.of(keep)
        return level_process(chosen.vectors, chosen.levels, run.last.log_pseudo_prior)

    return curve


def first_pair(run: LevelRun) -> int:
    """Index of the first pair of levels whose ratio can be estimated in both directions.

    It is 1 where some draws of the base have f_1 = 0, which no state at level 1 has; the slopes of
    the base's draws show them. Where an exchange run has no slopes, it is 1 for any path whose
    support has a boundary.
    """
    unseen = run.has_boundary and not run.last.slopes.shape[-1]
    return int(unseen or np.any(run.last.level_sums[:, :, 0, 1] == -np.inf))


def between_by_slope(
    level_sums: Array,
    *,
    fewest_states: int = 100,  # of a group at the target
) -> float:
    """Share of the variance of U at the target that lies between groups, by sums (2, G, K, 4).

    It tells apart modes at nearly the same place of which one is much higher and narrower.
    """
    n, sums, squares, _ = level_sums[:, :, -1].sum(axis=0).T
    # Means of few states differ by chance.
    if n.min() < fewest_states or not np.isfinite(squares).all():
        return 0.0
    return between_groups(sums[:, np.newaxis], squares[:, np.newaxis], n)


def kept_samples(run: LevelRun) -> Samples:
    """The states that a run kept; ValueError if it kept none."""
    samples = run.samples
    if not len(samples.levels):
        raise ValueError("run has kept no states with their vectors: fit the sampler anew")
    return samples


def stepping_stone_curve(run: LevelRun, direction: str = "both") -> Curve:
    """Curve of log Z by stepping stones, "forward", in "reverse", or by the mean of "both"."""
    pair_sums, counts = run.last.pairs()
    both = stepping_stones(pair_sums, run.last.shift, counts)
    first = first_pair(run)

    def ratios(keep):
        forward, reverse = both(keep)
        by_direction = {"forward": forward, "reverse": reverse, "both": (forward + reverse) / 2}
        return np.r_[forward[:first], by_direction[direction][first:]]

    return chained(run, ratios)


def integral_curve(run: LevelRun, rule: str = "corrected", rao_blackwell: bool = False) -> Curve:
    """Curve of log Z by the integral of slopes."""
    moments = _moments(run, rule, rao_blackwell)
    return lambda keep: integrate(run.ladder, moments(keep), rule)


def _moments(run: LevelRun, rule: str, rao_blackwell: bool) -> Callable[[NDArray], Any]:
    """Moments of slopes at every level, as a function of the groups to use."""
    samples = run.samples
    sums = run.last.level_sums.sum(axis=0)
    if rule == "continuous":
        raise ValueError(OTHER_RUN)
    if not samples.slopes.shape[1]:
        raise ValueError(
            "run must come from a path with the method derivatives(state, levels): take BAR"
        )
    if not np.isfinite(sums).all():
        raise ValueError(
            "run must come from a base without draws where the target is 0: take BAR, or another"
            " base"
        )
    if not rao_blackwell:
        return lambda keep: level_moments(sums[keep].sum(axis=0), run.ladder)
    zeta = None if run.draws_levels else mbar_curve(run)

    def moments(keep):
        chosen = samples.of(keep)
        own = level_moments(sums[keep].sum(axis=0), run.ladder)
        mixture = run.last.log_pseudo_prior if zeta is None else np.log(chosen.counts) - zeta(keep)
        return own._replace(slope=reweighted_slopes(chosen.vectors, chosen.slopes, mixture))

    return moments


def _pair_alarms(
    run: LevelRun, curve: Curve, diagnostics: dict[str, Any], std_error: float, **options: object
):
    """Return the alarms of neighbouring levels, which need draws that they share."""
    return run.pair_alarms()


def _mbar_alarms(run, curve, diagnostics, std_error) -> list[Alarm]:
    """An alarm if neighbouring levels don't overlap."""
    samples = run.samples
    zeta = curve(np.arange(run.n_groups))
    matrix = overlap_matrix(samples.vectors, samples.counts, zeta)
    pairs = np.array([_pair_overlap(samples, zeta, k) for k in range(len(zeta) - 1)])
    diagnostics.update(
        overlap_matrix=matrix,
        second_eigenvalue=np.linalg.eigvalsh(matrix)[-2] if len(matrix) > 1 else np.nan,
        neighbour_overlap=pairs,
        n_states=len(samples.levels),
    )
    empty = int(np.sum(samples.counts == 0))
    if empty:
        return [raised("few-states", "empty levels", run.family, empty=empty, n=len(zeta))]
    if pairs.min() >= threshold("little-overlap", "overlap"):
        return []
    return [raised("little-overlap", "neighbours", least=pairs.min())]


def _pair_overlap(samples: Samples, zeta, k: int) -> float:
    """Overlap of levels k and k + 1 by themselves: an off-diagonal entry of their own matrix,
    averaged over both.
    """
    up, down = (samples.vectors[samples.levels == level] for level in (k, k + 1))
    if not len(up) or not len(down):
        return 0.0
    return overlap(up[:, k + 1] - up[:, k], down[:, k] - down[:, k + 1], zeta[k + 1] - zeta[k]) / 2


def _kept_alarms(run, curve, diagnostics, std_error) -> list[Alarm]:
    """An alarm if few states were kept at some level."""
    fewest = int(run.samples.counts.min())
    diagnostics["fewest_states"] = fewest
    if fewest >= threshold("few-states", "kept"):
        return []
    return [raised("few-states", "kept", run.family, fewest=fewest)]


def _quadrature_alarms(
    run, curve, diagnostics, std_error, rule="corrected", rao_blackwell=False
) -> list[Alarm]:
    """An alarm if the error of the quadrature is large."""
    moments = _moments(run, rule, rao_blackwell)
    everything = np.arange(run.n_groups)
    for side in ("left", "right"):
        value = run.base_log_partition + integrate(run.ladder, moments(everything), side)[-1]
        diagnostics[f"{side}_log_partition"] = value
    closest = [bar_curve(run), level_process_curve(run)]
    if rule != "corrected":
        closest.append(lambda keep: integrate(run.ladder, moments(keep), "corrected"))
    error, noise = _quadrature_error(curve, closest, run.n_groups)
    diagnostics["quadrature_error"] = error
    if not np.isfinite([error, noise]).all():
        return [raised("few-states", "of an integral", run.family)]
    of_error = threshold("quadrature-error", "share") * std_error
    of_noise = threshold("quadrature-error", "noise") * noise
    if not abs(error) > max(of_error, of_noise, 1e-9):
        return []
    return [
        raised(
            "quadrature-error",
            "large",
            run.family,
            n=len(run.ladder),
            error=error,
            std_error=std_error,
            better_rule="" if rule == "corrected" else 'take rule="corrected", or ',
        )
    ]


def _quadrature_error(integral, closest, n_groups):
    """Difference from what has less of it, and its standard error: of those given the one with the
    smallest.
    """

    def differences(keep):
        return [integral(keep)[-1] - curve(keep)[-1] for curve in closest]

    pairs = [pair for pair in zip(*jackknife(differences, n_groups)) if np.isfinite(pair).all()]
    return min(pairs, key=lambda pair: pair[1], default=(np.nan, np.nan))


# of `LevelRun.read`, by name; a method of one's own adds itself
READINGS = {
    "bar": Reading("BAR", bar_curve, _pair_alarms),
    "mbar": Reading("MBAR", mbar_curve, _mbar_alarms),
    "stepping-stone": Reading("SteppingStone", stepping_stone_curve, _pair_alarms),
    "level-process": Reading("LevelProcess", level_process_curve, _kept_alarms),
    "thermodynamic-integration": Reading(
        "ThermodynamicIntegration", integral_curve, _quadrature_alarms
    ),
}

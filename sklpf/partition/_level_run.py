"""LevelRun: chains in equilibrium at K levels, and log Z at these by one method each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.alarm import Alarm
from sklpf._utils.numbers import Array
from sklpf._utils.tables import import_xarray
from sklpf.partition._run import Run
from sklpf.programs import LevelRound
from sklpf.programs._sums import Samples
from sklpf.reweighting import bar_ratios, level_process, mbar
from sklpf.uncertainty import between_groups

Curve = Callable[[NDArray], NDArray]  # log Z_k - log Z_0 (K,) of the independent groups to use

_FEWEST_STATES = 100  # of a group at the target, where groups are compared by U


@dataclass(frozen=True, repr=False, kw_only=True)
class LevelRun(Run):
    """A run whose chains are in equilibrium at K levels, in G independent groups: what reweighting
    reads, from its last round.

    Attributes
    ----------
    has_walls : bool
        Whether states of level 0 may have f_1 = 0.
    """

    # remedies where states at some levels are too few, and where levels are too far apart
    more_states: ClassVar[str] = "raise n_sweeps"
    more_levels: ClassVar[str] = "raise n_temperatures"

    has_walls: bool = False

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
        xarray = import_xarray()
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


def check_run(run: Any) -> None:
    """Raise TypeError or ValueError unless a run can be reweighted."""
    if hasattr(run, "betas"):
        raise ValueError(
            "run must be one with levels, got one with continuous beta, which RTS and"
            ' rule="continuous" of ThermodynamicIntegration read: take RTS(continuous=False)'
        )
    if not isinstance(run, LevelRun):
        raise TypeError(
            "run must be run_ of a fitted ParallelTempering or RTS, or made by from_pymbar, got"
            f" {type(run).__module__}.{type(run).__name__}"
        )
    if run.n_groups < 2:
        raise ValueError(
            f"run must have at least 2 independent groups, got {run.n_groups}: raise n_ladders"
        )
    if not run.last.pairs()[1].sum(axis=1).min() > 0:
        raise ValueError("run holds no states: fit the sampler anew")


def bar_curve(run: LevelRun) -> Curve:
    """Curve of log Z by Bennett's acceptance ratio of neighbouring levels."""
    pair_sums, counts = run.last.pairs()
    ratios = bar_ratios(pair_sums, run.last.shift, counts)
    known = known_ratio(run)
    return lambda keep: np.r_[0.0, np.cumsum(np.r_[known, ratios(keep)[len(known) :]])]


def mbar_curve(run: LevelRun) -> Curve:
    """Curve of log Z by MBAR of the kept states."""
    samples = kept_samples(run)
    start = mbar(samples.vectors, samples.counts)

    def curve(keep):
        chosen = samples.of(keep)
        return mbar(chosen.vectors, chosen.counts, start)

    return curve


def level_process_curve(run: LevelRun) -> Curve:
    """Curve of log Z by the stationary law of the level process of the kept states."""
    samples = kept_samples(run)

    def curve(keep):
        chosen = samples.of(keep)
        return level_process(chosen.vectors, chosen.levels, run.last.log_pseudo_prior)

    return curve


def known_ratio(run: LevelRun) -> list[float]:
    """log Z_1 / Z_0 where a run knows it from base draws, else nothing."""
    return [] if run.first_ratio is None else [run.first_ratio.log_mean]


def first_pair(run: LevelRun) -> int:
    """Index of the first pair of levels whose ratio can be estimated in both directions.

    It is 1 where some draws of the base have f_1 = 0, which no state at level 1 has; the slopes of
    the base's draws show them. Where an exchange run has no slopes, it is 1 for any path whose
    support has a boundary.
    """
    unseen = run.has_walls and not run.last.slopes.shape[-1]
    return int(unseen or np.any(run.last.level_sums[:, :, 0, 1] == -np.inf))


def between_by_slope(level_sums: Array) -> float:
    """Share of the variance of U at the target that lies between groups, by sums (2, G, K, 4).

    It tells apart modes at nearly the same place of which one is much higher and narrower.
    """
    n, sums, squares, _ = level_sums[:, :, -1].sum(axis=0).T
    # Means of few states differ by chance.
    if n.min() < _FEWEST_STATES or not np.isfinite(squares).all():
        return 0.0
    return between_groups(sums[:, np.newaxis], squares[:, np.newaxis], n)


def kept_samples(run: LevelRun) -> Samples:
    """The states that a run kept; ValueError if it kept none."""
    samples = run.samples
    if not len(samples.levels):
        raise ValueError("run has kept no states with their vectors: fit the sampler anew")
    return samples

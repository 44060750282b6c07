"""PotentialRun: draws of several states that another program has made, by their reduced
potentials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import PartitionResult
from sklpf.partition.alarms import raised, threshold
from sklpf.partition.levels._own_states import own_state_alarms
from sklpf.partition.levels._run import Curve, LevelRun, bar_curve, readings_alarms
from sklpf.paths import State
from sklpf.programs import LevelRound, Samples
from sklpf.reweighting import (
    MixtureSums,
    bar,
    mbar,
    mixture_sums,
    mixture_weights,
    neighbour_overlap,
)
from sklpf.uncertainty import (
    Difference,
    difference,
    effective_draws,
    jackknife,
    pareto_tail,
    t_ratio,
)


@dataclass(frozen=True, repr=False, kw_only=True)
class PotentialRun(LevelRun):
    """Draws of K states, by the log densities of all states at each: what `MBAR`, `BAR` and others
    read. `sklpf.interop.from_pymbar` makes it of reduced potentials.

    Each state's draws are cut into G contiguous blocks, and block g of all states is one group of
    the jackknife: so many that they hold 10 effective draws of a state, from 10 to 30. Where a
    block holds b effective draws its neighbours are so correlated that the variance of the
    estimate is divided by 1 - 1 / (2 b).

    Attributes
    ----------
    vectors : ndarray of shape (N, K)
        log f_k(x) = -u_k(x) of every draw at every state, in nats.
    levels : ndarray of shape (N,)
        The state of each draw, in ascending order; those of a state in the order of their time.
    given_groups : ndarray of shape (N,) or None
        Independent group of each draw, 0 to G - 1, where the user knows it. Each has draws of all
        states that have any.
    slopes : ndarray of shape (N, 1) or (N, 0)
        d log f / d lambda at the state of each draw, for `ThermodynamicIntegration`.
    walkers : ndarray of shape (K,) or None
        Walkers of every state, whose draws of one time stand one after another. They may depend on
        each other, so that only times are independent. None is one walker.
    to_draw : str
        What to do about a state without draws.
    """

    family = "states"

    vectors: Array
    levels: Integers
    given_groups: Integers | None = None
    slopes: Array
    walkers: Integers | None = None
    to_draw: str = "draw at it"

    # -- what reweighting reads
    @property
    def counts(self) -> Array:
        """Draws of every state, shape (K,)."""
        return np.bincount(self.levels, minlength=self.vectors.shape[1]).astype(float)

    @property
    def samples(self) -> Samples:
        """The draws."""
        return Samples(self.vectors, self.slopes, self.levels, self._groups)

    @property
    def n_groups(self) -> int:
        """Groups of the jackknife."""
        return int(self._groups.max()) + 1

    def curve(self) -> Curve:
        """Return log Z_k - log Z_0 by MBAR.

        Returns
        -------
        callable
            A function of the indices of the groups to use, which returns the curve, shape (K,), in
            nats: one step of Newton's method from the estimate by all draws.
        """
        influence = self._influence
        sums, n = self._group_sums
        counts = self.counts
        sampled = counts > 0

        def curve(keep):
            with np.errstate(divide="ignore", invalid="ignore"):  # of states that have none left
                weight = counts[sampled] / n[keep].sum(axis=0)[sampled]
                shares = weight @ sums[keep].sum(axis=0)[sampled]
                zeta = self._zeta + influence @ np.where(sampled, shares - counts, np.log(shares))
            return zeta - zeta[0]

        return curve

    @cached_property
    def last(self) -> LevelRound:
        """The sums over neighbouring states and of slopes that `BAR` and others read."""
        from sklpf.kernels._programs import add_bridges

        groups = self._groups
        n_groups = self.n_groups
        n_levels = self.vectors.shape[1]
        ratios = np.where(np.isfinite(self._ratios), self._ratios, np.diff(self._zeta))
        log_pseudo_prior = np.log(np.maximum(self.counts, 1)) - np.r_[0.0, np.cumsum(ratios)]
        pairs = np.zeros((2, n_groups, n_levels - 1, 4))
        add_bridges(self.vectors, log_pseudo_prior, self.levels, groups, pairs[0])
        slope = self.slopes.sum(axis=1)  # of one number, or of none
        powers = np.column_stack([slope**0, slope, slope**2, np.zeros_like(slope)])
        levels = np.zeros((2, n_groups, n_levels, 4))
        np.add.at(levels[0], (groups, self.levels), powers)
        return LevelRound(
            log_pseudo_prior=log_pseudo_prior,
            pair_sums=pairs,
            level_sums=levels,
            summaries=np.zeros((n_groups, 2, 0)),
            log_q=None,
            vector_levels=self.levels[np.newaxis],
            slopes=self.slopes[np.newaxis],
        )

    def pair_alarms(self) -> list[Alarm]:
        """Return an alarm if neighbouring states share too few draws."""
        overlap = neighbour_overlap(*self.last.pairs())
        n = self._draw_numbers.effective
        with np.errstate(divide="ignore"):
            shared = overlap / (1 / n[:-1] + 1 / n[1:])
        worst = int(np.argmin(shared))
        return _shared_alarms("two states", shared[worst], first=worst, second=worst + 1)

    def read(self, method: str | None = None, **options: object) -> PartitionResult:
        """Return what the draws say of log Z.

        Parameters
        ----------
        method : str or None, default=None
            As of `LevelRun`; None is "mbar".
        **options
            As of `LevelRun`; slopes are known at the draws' own states alone, so that
            `rao_blackwell` must be False.

        Returns
        -------
        PartitionResult

        Raises
        ------
        ValueError
            If the method can't read this run.
        """
        if options.get("rao_blackwell"):
            raise ValueError(
                "rao_blackwell must be False where slopes are known at the draws' own states alone"
            )
        if method == "mbar":
            return replace(super().read(), method="MBAR")
        return super().read(method, **options)

    # -- the estimate
    def _read(self) -> PartitionResult:
        curve = self.curve()
        values, errors = jackknife(curve, self.n_groups)
        errors = errors * self.error_factor
        draws = self._draw_numbers
        products = self._sums.products
        n = np.where(self.counts > 0, self.counts, 1.0)
        efficiency = draws.effective.sum() / len(self.levels)
        weights = n**2 / np.diag(products) * efficiency
        diagnostics = {
            "curve_std_error": errors,
            "effective_draws": np.where(self.counts > 0, draws.effective, np.nan),
            "effective_weights": weights,
            "shared_draws": draws.shared,
            "overlap": draws.overlap,
            "largest_share": draws.largest_share,
            "overlap_matrix": products / np.sqrt(np.outer(n, n)),
            "neighbour_overlap": neighbour_overlap(*self.last.pairs()) / 2,
            "n_groups": self.n_groups,
        }
        return self.conclude(
            values[-1],
            errors[-1],
            self.n_groups - 1,
            alarms=[
                *(own_state_alarms(self) or self._bar_alarms(curve)),
                *self._draws_alarms(weights),
                *self._halves_alarms(curve),
            ],
            diagnostics=diagnostics,
            levels=values,
        )

    @property
    def error_factor(self) -> float:
        """Factor of the jackknife's errors, since neighbouring blocks are correlated."""
        if self.given_groups is not None:
            return 1.0
        return float(1 / np.sqrt(max(1 - self.n_groups / (2 * self._draw_numbers.slowest), 0.5)))

    def effective_of(self, series: Array) -> tuple[Array, Array]:
        """Return effective numbers of every state's draws and of their times, for the mean of a
        number.

        Parameters
        ----------
        series : ndarray of shape (N,)
            The number for every draw.

        Returns
        -------
        draws, times : ndarray of shape (K,)
            At most the number of draws, and of times; equal for one walker.
        """
        draws = np.zeros(len(self.counts))
        times = np.zeros(len(self.counts))
        for k in np.flatnonzero(self.counts).tolist():
            own = series[self._rows_of(k)]
            means = own.reshape(-1, self._walkers[k]).mean(axis=1)
            times[k] = min(float(effective_draws(means[np.newaxis], split=False)), len(means))
            between = means.var()
            ratio = own.var() / between if between > 0 else np.inf
            draws[k] = min(times[k] * ratio, len(own))
        return draws, times

    def _times_of_ensemble(self) -> Array:
        """Effective numbers of times for log Z of every state but the first, (K - 1,), by the sums
        over all states of what draws of one time add to it; infinite without an ensemble. Walkers
        that exchange their states seem to forget at each state, as what one loses another has, but
        their sums do not.
        """
        if self.walkers is None:
            return np.full(len(self.counts) - 1, np.inf)
        n_times = self.counts.astype(np.int64) // self._walkers
        most = int(np.bincount(n_times[n_times > 0]).argmax())
        directions = (self._influence - self._influence[0])[1:].T
        parts = [
            weights @ directions
            for _, weights, _ in mixture_weights(self.vectors, self.counts, self._zeta)
        ]
        projected = np.concatenate(parts)
        totals = np.zeros((1, most, directions.shape[1]))
        for k in np.flatnonzero(n_times == most).tolist():
            by_time = projected[self._rows_of(k)].reshape(most, self._walkers[k], -1)
            totals += by_time.sum(axis=1)
        return effective_draws(totals, split=False)

    @property
    def _walkers(self) -> Integers:
        one = np.ones(len(self.counts), dtype=np.int64)
        return one if self.walkers is None else self.walkers

    def _rows_of(self, k: int) -> slice:
        """The draws of a state."""
        return slice(*np.searchsorted(self.levels, [k, k + 1]))

    @cached_property
    def _ratios(self) -> Array:
        """log Z_(k+1) / Z_k by BAR (K - 1,); NaN where the draws don't determine it."""
        ratios = np.full(len(self.counts) - 1, np.nan)
        for k in range(len(ratios)):
            up = self._rows_of(k)
            down = self._rows_of(k + 1)
            gains = self.vectors[up, k + 1] - self.vectors[up, k]
            losses = self.vectors[down, k] - self.vectors[down, k + 1]
            if gains.max(initial=-np.inf) > -np.inf and losses.max(initial=-np.inf) > -np.inf:
                ratios[k] = bar(gains, losses)
        return ratios

    @cached_property
    def _zeta(self) -> Array:
        """log Z_k by MBAR."""
        known = np.isfinite(self._ratios).all()
        return mbar(
            self.vectors, self.counts, np.r_[0.0, np.cumsum(self._ratios)] if known else None
        )

    @cached_property
    def _sums(self) -> MixtureSums:
        return mixture_sums(self.vectors, self.counts, self._zeta)

    @cached_property
    def _influence(self) -> Array:
        """Derivatives of log Z_k by the sums of weights at every state, (K, K)."""
        sampled = np.flatnonzero(self.counts)
        empty = np.flatnonzero(self.counts == 0)
        products = self._sums.products
        n = self.counts[sampled]
        hessian = np.diag(n * (1 + 1e-12)) - products[np.ix_(sampled, sampled)]
        influence = np.zeros_like(products)
        # The first of them is kept: a constant of all log Z is free.
        influence[np.ix_(sampled[1:], sampled[1:])] = np.linalg.inv(hessian[1:, 1:])
        influence[empty] = products[np.ix_(empty, sampled)] @ influence[sampled]
        influence[empty, empty] = 1.0
        return influence

    @cached_property
    def _draw_numbers(self) -> _DrawNumbers:
        """Contributions of draws to the estimate, and their correlation."""
        direction = self._influence[-1] - self._influence[0]
        farthest = self._is_farthest
        columns = np.column_stack([direction, farthest])
        parts = [
            (weights @ columns, mixture[:, 0])
            for _, weights, mixture in mixture_weights(self.vectors, self.counts, self._zeta)
        ]
        projected, log_mixture = (np.concatenate(part) for part in zip(*parts))
        every = np.arange(len(self.levels))
        log_own = self.vectors[every, self.levels] - log_mixture - self._zeta[self.levels]
        numbers = [self.effective_of(series) for series in (projected[:, 0], log_own)]
        effective, times = np.minimum.reduce(numbers)
        squares = np.empty(len(self.levels))
        for k in np.flatnonzero(self.counts).tolist():
            rows = self._rows_of(k)
            squares[rows] = (projected[rows, 0] - projected[rows, 0].mean()) ** 2
        total = squares.sum()
        n = np.maximum(self.counts, 1)
        by_state = np.bincount(self.levels, squares, len(n)) * n / np.maximum(effective, 1.0)
        # The shares of states in the variance; blocks of 1 / G of a state's draws are so correlated
        # that it lacks a share of G / 2 / (effective times), by its share in the variance.
        shares = by_state / by_state.sum() if total > 0 else np.full(len(n), 1 / len(n))

        # What the set of states that is farthest from the others shares with them; one that has all
        # of the draws shares all.
        shared, overlap = np.inf, 1.0
        sizes = np.bincount(farthest, self.counts, 2)
        if sizes.all():
            chances = projected[:, 1]
            both = np.bincount(self.levels, chances * (1 - chances), len(n))
            shared = np.sum(both * effective / n)
            overlap = both.sum() * np.sum(1 / sizes)
        typical = 1 / np.sum(shares / np.maximum(times, 1.0))
        of_ensemble = self._times_of_ensemble()
        return _DrawNumbers(
            effective=effective,
            log_mixture=log_mixture,
            largest_share=squares.max() / total if total > 0 else 0.0,
            typical=min(typical, of_ensemble[-1]),
            slowest=min(typical, of_ensemble.min()),
            shared=shared,
            overlap=overlap,
        )

    @cached_property
    def _is_farthest(self) -> NDArray[np.bool_]:
        """The set of states that shares the fewest draws with the others: of the sets along the
        second eigenvector of the overlap matrix.
        """
        sampled = np.flatnonzero(self.counts)
        n = self.counts[sampled]
        products = self._sums.products[np.ix_(sampled, sampled)]
        vectors = np.linalg.eigh(products / np.sqrt(np.outer(n, n)))[1]
        if len(sampled) < 2:
            return self.counts > 0
        order = np.argsort(vectors[:, -2] / np.sqrt(n))
        between = products[np.ix_(order, order)]
        shared = np.array([between[:cut, cut:].sum() for cut in range(1, len(order))])
        cut = int(np.argmin(shared)) + 1
        return np.isin(np.arange(len(self.counts)), sampled[order[:cut]])

    @cached_property
    def _groups(self) -> Integers:
        """Group of every draw, (N,)."""
        if self.given_groups is not None:
            return self.given_groups
        slowest = self._draw_numbers.slowest
        n_blocks = int(np.clip(slowest / 10, 10, 30))  # ten effective draws in each, or more
        n_blocks = min(n_blocks, int((self.counts // self._walkers).max()))
        blocks = []
        for n, n_walkers in zip(self.counts.astype(int), self._walkers):
            times = np.arange(n) // n_walkers
            blocks.append(times * n_blocks // max(n // n_walkers, 1))
        return np.concatenate(blocks)

    @cached_property
    def _group_sums(self) -> tuple[Array, Array]:
        """Sums of the weights at all states over each group's draws of each state, (G, K, K), and
        their numbers, (G, K).
        """
        n_levels = len(self.counts)
        cell = self._groups * n_levels + self.levels
        sums = np.zeros((self.n_groups * n_levels, n_levels))
        for rows, weights, _ in mixture_weights(self.vectors, self.counts, self._zeta):
            first = np.flatnonzero(np.diff(cell[rows], prepend=-1))  # of draws in one cell
            np.add.at(sums, cell[rows][first], np.add.reduceat(weights, first, axis=0))
        n = np.bincount(cell, minlength=len(sums)).astype(float)
        return sums.reshape(-1, n_levels, n_levels), n.reshape(-1, n_levels)

    # -- alarms
    def _draws_alarms(self, weights: Array) -> list[Alarm]:
        """Alarms of draws that are too few to tell how correlated they are, or that sets of states
        hardly share; of states without draws, seen by the weighted draws of the others; and of a
        draw that is too large.
        """
        alarms = []
        draws = self._draw_numbers
        few = draws.typical < threshold("few-states", "effective_of_a_state")
        if few and self.given_groups is None:
            alarms.append(
                raised(
                    "few-states",
                    "effective of a state",
                    "of draws",
                    typical=draws.typical,
                )
            )
        states = np.flatnonzero(self._is_farthest)
        some = ", ".join(map(str, states[:5])) + (", …" if len(states) > 5 else "")
        alarms += _shared_alarms("sets of states", draws.shared, some=some)
        sampled = self.counts > 0
        for k in np.flatnonzero(~sampled).tolist():
            log_weights = self.vectors[:, k] - draws.log_mixture
            tail = pareto_tail(log_weights)
            n_tail = max(tail.n * draws.effective.sum() / len(self.levels), 1.0)
            n_errors = threshold("little-overlap", "shape_errors")
            shape = tail.shape + n_errors * (1 + max(tail.shape, 0.0)) / np.sqrt(n_tail)
            is_largest = log_weights > log_weights.max() - 1e-9
            # A support that is larger than those of the states drawn at has mass that no draw has.
            beyond = np.isneginf(self.vectors[is_largest][:, sampled]).any()
            are_equal = is_largest.mean() > threshold("little-overlap", "equal_weights")
            are_equal = are_equal or (is_largest.sum() > 1 and beyond)
            own: dict[str, Any] = {"remedy": self.to_draw, "state": k}
            if not weights[k] >= threshold("little-overlap", "weights_of_a_state"):
                alarms.append(
                    raised("little-overlap", "no draws, few weights", weights=weights[k], **own)
                )
            elif not shape <= threshold("little-overlap", "pareto_shape"):
                alarms.append(raised("little-overlap", "no draws, heavy tail", shape=shape, **own))
            elif are_equal and log_weights.min() > -np.inf:
                alarms.append(raised("little-overlap", "no draws, equal weights", **own))
        if draws.largest_share > threshold("little-overlap", "of_one_draw"):
            alarms.append(
                raised("little-overlap", "one draw", "of draws", share=draws.largest_share)
            )
        return alarms

    def _halves_alarms(self, curve: Curve) -> list[Alarm]:
        """An alarm if draws have not reached equilibrium at first."""
        if self.given_groups is not None:
            return []
        middle = self.n_groups // 2

        def drift(keep):
            return curve(keep[keep < middle])[-1] - curve(keep[keep >= middle])[-1]

        halves = difference(drift, self.n_groups)
        if halves.alarms(self.n_groups):
            return [
                raised(
                    "not-stationary",
                    "halves of states",
                    self.family,
                    value=halves.value,
                    t=halves.t,
                )
            ]
        first = self._first_block(curve)
        if not first.alarms(self.n_groups - 1):
            return []
        return [
            raised(
                "not-stationary",
                "first block",
                self.family,
                n=self.n_groups,
                value=first.value,
                t=first.t,
            )
        ]

    def _first_block(self, curve: Curve) -> Difference:
        """Compare the first block of draws with the others, as burn-in would make it differ: with
        fewer than three nothing can be said.
        """
        if self.n_groups < 3:
            return Difference(0.0, 0.0)
        every = np.arange(self.n_groups)
        without = np.array([curve(np.delete(every, g))[-1] for g in every])
        values = without.mean() - (self.n_groups - 1) * (without - without.mean())
        others = values[1:]
        difference = values[0] - others.mean()
        error = others.std(ddof=1) * np.sqrt(1 + 1 / len(others))
        return Difference(difference, t_ratio(difference, error))

    def _bar_alarms(self, curve: Curve) -> list[Alarm]:
        """An alarm if BAR differs, where neighbouring states overlap: what readings of the same
        draws see speaks against all of them.
        """
        if not np.isfinite(self._ratios).all() or self.pair_alarms():
            return []
        by_bar = bar_curve(self)

        def between(keep):
            return by_bar(keep)[-1] - curve(keep)[-1]

        return readings_alarms("BAR", "MBAR", difference(between, self.n_groups), self)


class _DrawNumbers(NamedTuple):
    """Effective numbers of draws at the estimate."""

    effective: Array  # (K,)
    log_mixture: Array  # (N,)
    largest_share: float  # of one draw in the variance
    typical: float  # effective times of the states whose draws make the variance
    slowest: float  # the same, or of an ensemble those of the state whose log Z has the fewest
    shared: float  # effective draws that the farthest set of states shares with the others
    overlap: float  # of these two


def _shared_alarms(sentence: str, shared: float, **states: State) -> list[Alarm]:
    """An alarm if two states, or two sets of states, share too few draws."""
    if not shared < threshold("little-overlap", "shared_of_states"):
        return []
    return [raised("little-overlap", sentence, "of draws", n_shared=shared, **states)]

"""The stages of an RTS run on independent groups of chains: an annealed pilot and rounds of simulated tempering."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from sklpf._parallel import run_segments
from sklpf._random import Stream, stream_key
from sklpf.partition._base import segments
from sklpf.paths._base import map_state

_START, _LEVELS, _PILOT, _RESAMPLE, _ROUND = range(1, 6)  # what random streams are for
_LOWEST = -1300.0  # log of the smallest sum of q(k | x) that is told from 0
_END_SHARE = 0.1  # a chain visits an end of the ladder within this share of the levels


class Setup(NamedTuple):
    """What all stages of a run share."""

    path: Any
    transition: Any
    first: NDArray[np.int64]  # (G + 1,): first chain of every group, and the end
    seed: int
    sweeps_per_redraw: int
    rao_blackwell: bool
    options: dict[str, Any]  # n_jobs and checkpoint of run_segments

    @property
    def n_groups(self) -> int:
        return len(self.first) - 1

    def stream(self, stage: int, group: int, step: int = 0, *name: int) -> Stream:
        """The random numbers of one group in one stage."""
        return Stream(stream_key(self.seed, stage, *name), int(self.first[group]), step)

    def pool(self, log_terms: NDArray, axis: int) -> NDArray:
        """Add up, in logs, the chains of every group along `axis`."""
        parts = np.split(log_terms, self.first[1:-1], axis=axis)
        return np.stack([logsumexp(part, axis=axis) for part in parts], axis=axis)


class Round(NamedTuple):
    """What a round of simulated tempering left.

    Attributes
    ----------
    log_weights : ndarray of shape (K,)
        log r_k minus the estimate of log Z_k, fixed during the round.
    n_redraws : int
        Redraws of every chain's level.
    starts : list of (state, levels)
        Where every group stands at the end.
    log_q_sums : ndarray of shape (2, M, K)
        Log of every chain's sum of q(k | x) over the first and the second half.
    counts : ndarray of shape (2, M, K)
        How often every chain drew every level in each half.
    vectors : ndarray of shape (M, n_kept, K)
        log f_k(x) of a systematic thinning.
    vector_levels : ndarray of shape (M, n_kept)
        The levels at which these x were moved.
    """

    log_weights: NDArray[np.float64]
    n_redraws: int
    starts: list[tuple[Any, NDArray[np.int64]]]
    log_q_sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    vectors: NDArray[np.float64]
    vector_levels: NDArray[np.int64]

    def log_sums(self, rao_blackwell: bool, halves: tuple[int, ...] = (0, 1)) -> NDArray[np.float64]:
        """Log of every chain's sum of q(k | x), or of its counts, shape (M, K)."""
        if rao_blackwell:
            return logsumexp(self.log_q_sums[list(halves)], axis=0)
        with np.errstate(divide="ignore"):
            return np.log(self.counts[list(halves)].sum(axis=0))

    def shares(self, rao_blackwell: bool, halves: tuple[int, ...] = (0, 1)) -> NDArray[np.float64]:
        """Averages of q(k | x), or of its counts, of every chain, shape (M, K)."""
        sums = np.exp(self.log_sums(rao_blackwell, halves))
        return sums / sums.sum(axis=1, keepdims=True)

    def thinned(self) -> Round:
        """Drop every other kept vector."""
        return self._replace(vectors=self.vectors[:, ::2], vector_levels=self.vector_levels[:, ::2])

    @property
    def crossed(self) -> NDArray[np.bool_]:
        """Which chains visited both ends of the ladder, shape (M,): its lowest and its highest tenth."""
        visits = self.counts.sum(axis=0) > 0
        n_end = max(1, round(_END_SHARE * visits.shape[1]))
        return visits[:, :n_end].any(axis=1) & visits[:, -n_end:].any(axis=1)


def check_finite(log_terms: NDArray) -> NDArray:
    """Raise ValueError where log_f gave NaN or +inf."""
    if np.any(np.isnan(log_terms)) or np.any(log_terms == np.inf):
        raise ValueError("log_f gave values that are not finite; check the model's parameters and the path's log_f")
    return log_terms


# -- starts without a pilot ------------------------------------------------------------------------
def base_starts(setup: Setup) -> list:
    """Base draws for every group, at level 0."""
    sizes = np.diff(setup.first)
    states = [setup.path.sample_base(int(n), setup.stream(_START, group)) for group, n in enumerate(sizes)]
    return [(state, np.zeros(n, dtype=np.int64)) for state, n in zip(states, sizes)]


def with_fresh_levels(setup: Setup, starts: list, name: int) -> list:
    """The same states at uniformly drawn levels."""
    rngs = [setup.stream(_LEVELS, group, name).generator() for group in range(len(starts))]
    n_levels = len(setup.path.ladder)
    return [(state, rng.integers(n_levels, size=len(old))) for rng, (state, old) in zip(rngs, starts)]


# -- the pilot ---------------------------------------------------------------------------------------
def run_pilot(setup: Setup, log_prior: NDArray, n_sweeps: int) -> tuple[list, NDArray]:
    """Anneal all chains from base draws to the target in `n_sweeps` sweeps.

    Returns
    -------
    starts : list of (state, levels)
        Every group's chains spread over the levels as the prior says; each state is drawn from those that the group's
        own chains had at that level, with probabilities in proportion to their weights.
    log_weights : ndarray of shape (M, K)
        log f_k / f_0 accumulated by every chain on its way: the mean of its exponential over chains is Z_k / Z_0.
    """
    bounds = segments(n_sweeps, setup.path.n_moves_per_segment)
    carries = run_segments(
        functools.partial(_start_pilot, setup, log_prior, n_sweeps),
        functools.partial(_advance_pilot, setup, bounds),
        setup.n_groups,
        len(bounds) - 1,
        stage="pilot",
        **setup.options,
    )
    log_weights = np.concatenate([carry[1] for carry in carries])
    return [(carry[2], carry[3]) for carry in carries], check_finite(log_weights)


def _pilot_levels(sweeps, n_sweeps, n_levels):
    """Level after each of some sweeps of a pilot: evenly from the first to the last."""
    return (2 * sweeps * (n_levels - 1) + n_sweeps) // (2 * n_sweeps)


def _start_pilot(setup, log_prior, n_sweeps, group):
    n = int(setup.first[group + 1] - setup.first[group])
    state = setup.path.sample_base(n, setup.stream(_PILOT, group))
    quantiles = (np.arange(n) + setup.stream(_LEVELS, group).generator().random()) / n
    levels = np.minimum(np.searchsorted(np.cumsum(np.exp(log_prior)), quantiles), len(log_prior) - 1)
    log_weights = np.zeros((n, len(log_prior)))
    n_stops = min(n_sweeps, len(log_prior) - 1)
    visited = _pilot_levels(np.arange(n_stops + 1), n_stops, len(log_prior))
    return state, log_weights, map_state(np.copy, state), visited[np.searchsorted(visited, levels)]


def _advance_pilot(setup, bounds, group, segment, carry):
    """Weight up to each next level, move there, and let the chains that belong there start from it."""
    state, log_weights, starts, levels = carry
    log_weights = log_weights.copy()
    begin, end = bounds[segment], bounds[segment + 1]
    at = _pilot_levels(np.arange(begin, end + 2), bounds[-1], log_weights.shape[1])  # before sweep begin, begin + 1, …
    rises = begin + 1 + np.flatnonzero(np.diff(at[1:-1]))
    for t, stop in zip([begin, *rises], [*rises, end]):
        old, new = at[t - begin], at[t + 1 - begin]
        if new > old:
            log_f = setup.path.log_f_ladder(state)
            log_weights[:, old + 1 : new + 1] = log_weights[:, [old]] + (log_f - log_f[:, [old]])[:, old + 1 : new + 1]
        stay = np.full((stop - t + 1, len(levels)), new)
        state, _ = setup.transition.anneal(setup.path, state, stay, setup.stream(_PILOT, group, t + 1))
        leaving = stop == bounds[-1] or at[stop + 1 - begin] != new
        here = np.flatnonzero(levels == new)
        if leaving and len(here):
            chosen = _resample(log_weights[:, new], len(here), setup.stream(_RESAMPLE, group, stop).generator())
            starts = map_state(functools.partial(_put, here), starts, setup.path.take(state, chosen))
    return state, log_weights, starts, levels


def _resample(log_weights, n, rng):
    check_finite(log_weights)
    return rng.choice(len(log_weights), size=n, p=np.exp(log_weights - logsumexp(log_weights)))


def _put(index, old, new):
    old = old.copy()
    old[index] = new
    return old


# -- rounds of simulated tempering -----------------------------------------------------------------
def run_round(setup: Setup, name: tuple, starts: list, log_weights: NDArray, n_redraws: int, n_kept: int = 0) -> Round:
    """Temper all groups from `starts`; of the vectors log f_k(x) about `n_kept` are kept."""
    n_chains = int(setup.first[-1])
    stride = -(-n_redraws * n_chains // n_kept) if n_kept else n_redraws
    stride, length, every = _thinning(stride, max(1, setup.path.n_moves_per_segment // setup.sweeps_per_redraw))
    half = n_redraws // 2
    bounds = segments(half, length) + [half + redraw for redraw in segments(n_redraws - half, length)[1:]]
    carries = run_segments(
        functools.partial(_start_round, starts, len(log_weights)),
        functools.partial(_advance_round, setup, name, log_weights, (stride, every if n_kept else 0), half, bounds),
        setup.n_groups,
        len(bounds) - 1,
        stage="round" + "-".join(map(str, name)),
        **setup.options,
    )
    return Round(
        log_weights,
        n_redraws,
        [(carry[0], carry[1]) for carry in carries],
        np.maximum(np.concatenate([carry[2] for carry in carries], axis=1), _LOWEST),
        np.concatenate([carry[3] for carry in carries], axis=1),
        np.concatenate([carry[4] for carry in carries], axis=1).swapaxes(0, 1),
        np.concatenate([carry[5] for carry in carries], axis=1).swapaxes(0, 1),
    )


def _thinning(stride, longest):
    """Stride of the kept vectors in a segment, redraws of a segment, and of how many segments one keeps vectors."""
    if stride <= longest:
        return stride, longest // stride * stride, 1
    return longest, longest, -(-stride // longest)


def _start_round(starts, n_levels, group):
    state, levels = starts[group]
    n = len(levels)
    sums, counts = np.full((2, n, n_levels), -np.inf), np.zeros((2, n, n_levels), dtype=np.int64)
    return state, levels, sums, counts, np.empty((0, n, n_levels)), np.empty((0, n), dtype=np.int64)


def _advance_round(setup, name, log_weights, thinning, half, bounds, group, segment, carry):
    state, levels, log_sums, counts, vectors, vector_levels = carry
    (stride, every), part = thinning, int(bounds[segment] >= half)
    begin, end = bounds[segment], bounds[segment + 1]
    stream = setup.stream(_ROUND, group, begin * setup.sweeps_per_redraw + 1, *name)
    state, levels, more, more_counts, more_vectors, more_levels = setup.transition.temper(
        setup.path, state, levels, log_weights, end - begin, setup.sweeps_per_redraw, stride, stream
    )
    log_sums, counts = log_sums.copy(), counts.copy()
    log_sums[part] = np.logaddexp(log_sums[part], check_finite(more))
    counts[part] += more_counts
    if every and segment % every == 0:
        vectors = np.concatenate([vectors, more_vectors])
        vector_levels = np.concatenate([vector_levels, more_levels])
    return state, levels, log_sums, counts, vectors, vector_levels

"""The annealed first pass of simulated tempering: a first estimate at every level, and chains
spread over the levels.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.parallel import run_segments
from sklpf.paths._base import map_state, put, take
from sklpf.programs import _programs as programs
from sklpf.programs._chains import Chains, apart, together
from sklpf.programs._plan import check_alive, check_finite, segments
from sklpf.programs._tempering import FIRST_PASS, LEVELS, RESAMPLE, Setup
from sklpf.sampling import shares


def first_pass(setup: Setup, log_prior: NDArray, n_sweeps: int) -> tuple[list[Chains], NDArray]:
    """Anneal all chains from base draws to the target in `n_sweeps` sweeps.

    Returns
    -------
    chains : list of Chains
        Every group's chains spread over the levels as the prior says; each state is drawn from
        those that the group's own chains had at that level, with probabilities in proportion to
        their weights.
    log_weights : ndarray of shape (M, K)
        log f_k / f_0 accumulated by every chain on its way: the mean of its exponential over chains
        is Z_k / Z_0.
    """
    bounds = segments(n_sweeps, setup.path.n_moves_per_segment)
    blocks = setup.blocks
    carries = run_segments(
        functools.partial(_begin, setup, blocks, log_prior, n_sweeps),
        functools.partial(_advance, setup, blocks, bounds),
        len(blocks),
        len(bounds) - 1,
        stage="pilot",
        **setup.options,
    )
    log_weights = np.concatenate([carry[2] for carry in carries])
    check_alive(log_weights[:, -1])
    stand = []
    for block, carry in zip(blocks, carries):
        first = setup.first[block] - setup.first[block[0]]
        stand += apart(setup.path, Chains(*carry[3:]), first)
    return stand, check_finite(log_weights, allow_zero=True)


def _levels_passed(sweeps, n_sweeps, n_levels):
    """Level after each of some sweeps of the pass: evenly from the first to the last."""
    return (2 * sweeps * (n_levels - 1) + n_sweeps) // (2 * n_sweeps)


def _begin(setup, blocks, log_prior, n_sweeps, block):
    groups = blocks[block][:-1]
    state, memory, levels = together([setup.base_chains(FIRST_PASS, group) for group in groups])
    quantiles = np.concatenate([_quantiles(setup, group) for group in groups])
    n_levels = len(log_prior)
    levels = np.minimum(np.searchsorted(np.cumsum(np.exp(log_prior)), quantiles), n_levels - 1)
    n_stops = min(n_sweeps, n_levels - 1)
    visited = _levels_passed(np.arange(n_stops + 1), n_stops, n_levels)
    starts = (
        map_state(np.copy, state),
        map_state(np.copy, memory),
        visited[np.searchsorted(visited, levels)],
    )
    return state, memory, np.zeros((len(levels), n_levels)), *starts


def _quantiles(setup, group):
    """Evenly spread over (0, 1), one for every chain of a group, moved by chance."""
    n = np.diff(setup.first)[group]
    return (np.arange(n) + setup.stream(LEVELS, group).generator().random()) / n


def _advance(setup, blocks, bounds, block, segment, carry):
    """Weigh the chains at each next level and move them there. Chains of production that
    begin at this level start from states that are resampled by weight.
    """
    state, memory, log_weights, first_state, first_memory, levels = carry
    log_weights = log_weights.copy()
    begin = bounds[segment]
    end = bounds[segment + 1]
    groups = blocks[block][:-1]
    group_of = np.repeat(groups, np.diff(setup.first)[groups])
    # before sweep begin, begin + 1, …
    at = _levels_passed(np.arange(begin, end + 2), bounds[-1], log_weights.shape[1])
    rises = begin + 1 + np.flatnonzero(np.diff(at[1:-1]))
    for t, stop in zip([begin, *rises], [*rises, end]):
        old, new = at[t - begin], at[t + 1 - begin]
        if new > old:
            log_f = setup.path.log_f_ladder(state)
            with np.errstate(invalid="ignore"):
                rise = np.where(log_f == -np.inf, -np.inf, log_f - log_f[:, [old]])
            log_weights[:, old + 1 : new + 1] = log_weights[:, [old]] + rise[:, old + 1 : new + 1]
        if new > 0 or setup.first_ratio is None:  # base draws stay where the target has mass
            stay = np.full((stop - t + 1, len(levels)), new)
            stream = setup.stream(FIRST_PASS, groups[0], t + 1)
            with np.errstate(invalid="ignore"):  # of chains where all densities are 0
                state, memory, _ = programs.anneal(
                    setup.path, setup.transition, state, memory, stay, stream
                )
        leaving = stop == bounds[-1] or at[stop + 1 - begin] != new
        for group in groups if leaving else ():
            own = np.flatnonzero(group_of == group)
            here = np.flatnonzero((group_of == group) & (levels == new))
            if not len(here):
                continue
            rng = setup.stream(RESAMPLE, group, stop).generator()
            chosen = own[_resample(log_weights[own, new], len(here), rng)]
            first_state = put(first_state, here, setup.path.take(state, chosen))
            first_memory = put(first_memory, here, take(memory, chosen))
    return state, memory, log_weights, first_state, first_memory, levels


def _resample(log_weights, n, rng):
    check_finite(log_weights, allow_zero=True)
    if not np.any(log_weights > -np.inf):  # they leave for the base at their first redraw
        log_weights = np.zeros(len(log_weights))
    return rng.choice(len(log_weights), size=n, p=shares(log_weights))

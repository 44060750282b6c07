"""Populations of particles that go up the ladder and are resampled on their way: sequential Monte
Carlo samplers.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import REDRAW, Stream, joined_streams
from sklpf.paths._base import concatenate, n_chains, take
from sklpf.programs import _programs as programs
from sklpf.programs._plain import weighted_sums
from sklpf.programs._plan import (
    check_finite,
    equal_blocks,
    running_log_partition,
    segments,
    side_by_side,
)
from sklpf.sampling import systematic
from sklpf.uncertainty import effective_sample_size, log_mean_exp

_LARGEST_BLOCK = 32  # of reverse chains


class Populations(NamedTuple):
    """G populations of N particles at a level: the particles, one population after the other, the
    log of each estimate so far, and what happened at every level.
    """

    state: Any
    auxiliary: tuple
    # (G, N), with a mean of 1 on the way, since the last resampling
    log_weights: Array
    # (G,): log of the product of the mean weights at earlier resamplings
    log_mean: Array
    ancestors: Integers  # (G, N)
    # (G, levels passed, 4): log mean, effective size, resampled, sum of acceptance
    records: Array


def ascend(
    path,
    transition,
    n_populations,
    n_particles,
    resample_at,
    key,
    n_jobs=None,
    checkpoint=None,
    chain_length=None,
) -> Populations:
    """Populations that went up the whole ladder from exact base draws (Del Moral, Doucet & Jasra
    2006).

    At every level particles are weighted, resampled if their effective number is less than
    `resample_at` times n_particles, and moved. With a `chain_length` they are waste-free and always
    resampled.
    """
    bounds = segments(len(path.ladder) - 1, path.n_moves_per_segment)
    n = n_particles
    first = np.arange(n_populations + 1)  # population of every block, and the end
    if transition.joins_rows:
        first = side_by_side(path, transition, n_populations, n_populations * n)

    def begin(block) -> Populations:
        populations = np.arange(*first[block : block + 2])
        streams = [Stream(key, int(population) * n) for population in populations]
        states = [path.sample_base(n, stream) for stream in streams]
        auxiliaries = [
            transition.start(path, state, stream) for state, stream in zip(states, streams)
        ]
        shape = len(populations), n
        return Populations(
            state=concatenate(states),
            auxiliary=concatenate(auxiliaries),
            log_weights=np.zeros(shape),
            log_mean=np.zeros(len(populations)),
            ancestors=np.tile(np.arange(n), (len(populations), 1)),
            records=np.empty((len(populations), 0, 4)),
        )

    tells = path.base_log_partition is not None and n_populations > 1  # not of a pilot
    blocks = run_segments(
        begin,
        functools.partial(
            _advance, path, transition, key, resample_at, chain_length, first, bounds
        ),
        len(first) - 1,
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="populations",
        so_far=functools.partial(_so_far, path, bounds) if tells else None,
    )
    return Populations(*(concatenate(parts) for parts in zip(*blocks)))


def _so_far(path, bounds, segment, blocks) -> str:
    """log Z of the level that populations have reached, with its standard error."""
    log_means = [each.log_mean + log_mean_exp(each.log_weights, axis=1) for each in blocks]
    return running_log_partition(path, int(bounds[segment + 1]), np.concatenate(log_means))


def _advance(
    path, transition, key, resample_at, chain_length, first, bounds, block, segment, populations
) -> Populations:
    n = populations.log_weights.shape[1]
    chains = [int(population) * n for population in range(*first[block : block + 2])]
    records = [populations.records]
    for level in range(bounds[segment], bounds[segment + 1]):
        if chain_length is None:
            streams = [Stream(key, chain, level + 1) for chain in chains]
            populations, *record = _step(path, transition, resample_at, streams, level, populations)
        else:
            streams = [Stream(key, chain, 1 + level * chain_length) for chain in chains]
            populations, *record = waste_free_step(
                path, transition, chain_length, streams, level, populations
            )
        records.append(np.stack(record, axis=1, dtype=float)[:, np.newaxis])
    return populations._replace(records=np.concatenate(records, axis=1))


def _step(path, transition, resample_at, streams, level, populations) -> tuple:
    """One level up, and the columns of its record. Particles that are then resampled have moved in
    vain: they move anew, from where they were.
    """
    state, auxiliary, log_weights, log_mean, ancestors, _ = populations
    n = log_weights.shape[1]
    moved_state, moved_auxiliary, rises, accepted = _moved(
        path, transition, state, auxiliary, (level, level + 1), streams
    )
    log_weights = log_weights + check_finite(rises, allow_zero=path.has_boundary)
    effective = effective_sample_size(log_weights, axis=1)
    total = log_mean + log_mean_exp(log_weights, axis=1)
    resample = (effective > 0) & (effective < resample_at * n)
    again = np.flatnonzero(resample)
    if len(again):
        uniforms = [float(streams[g].aside("resampling").uniform(1, REDRAW)[0]) for g in again]
        chosen = [systematic(log_weights[g], n, uniform) for g, uniform in zip(again, uniforms)]
        index = (again[:, np.newaxis] * n + chosen).ravel()
        new_state, new_auxiliary, _, accepted[again] = _moved(
            path,
            transition,
            path.take(state, index),
            take(auxiliary, index),
            (level + 1, level + 1),
            [streams[g].aside("moves after resampling") for g in again],
        )
        place = np.arange(log_weights.size).reshape(log_weights.shape)
        place[again] = log_weights.size + np.arange(len(index)).reshape(-1, n)
        moved_state = path.take(concatenate([moved_state, new_state]), place.ravel())
        moved_auxiliary = take(concatenate([moved_auxiliary, new_auxiliary]), place.ravel())
        ancestors = ancestors.copy()
        ancestors[again] = np.take_along_axis(ancestors[again], np.array(chosen), axis=1)
        log_weights[again] = 0
        log_mean = np.where(resample, total, log_mean)
    populations = populations._replace(
        state=moved_state,
        auxiliary=moved_auxiliary,
        log_weights=log_weights,
        log_mean=log_mean,
        ancestors=ancestors,
    )
    return populations, total, effective, resample, accepted


def _moved(path, transition, state, auxiliary, passed, streams) -> tuple:
    """State and auxiliary variables of populations after a move from one level to the other in
    `passed`, the increments of log f (G, N), and the mean acceptance probabilities (G,).
    """
    n_all = n_chains(state)
    n = n_all // len(streams)
    levels = np.full((2, n_all), np.reshape(passed, (2, 1)))
    before = transition.accepted(auxiliary)
    state, auxiliary, rises = programs.anneal(
        path, transition, state, auxiliary, levels, joined_streams(streams, n)
    )
    rates = np.full(len(streams), np.nan)
    if before is not None:
        rates = np.sum((transition.accepted(auxiliary) - before).reshape(-1, n), axis=1) / n
    return state, auxiliary, rises.reshape(-1, n), rates


def descend(
    path, transition, starts, key, n_jobs=None, checkpoint=None, chain_length=None
) -> Array:
    """log f_(k+1) - log f_k (n, K - 1) of reverse chains; as `PopulationRun` keeps them."""
    blocks = equal_blocks(n_chains(starts), path.n_chains_per_block or _LARGEST_BLOCK, 1)
    first = np.concatenate([[0], np.cumsum(blocks)])
    bounds = segments(len(path.ladder) - 1, path.n_moves_per_segment)

    def begin(block):
        state = path.take(starts, np.arange(first[block], first[block + 1]))
        auxiliary = transition.start(path, state, Stream(key, int(first[block])))
        return state, auxiliary, np.empty((blocks[block], 0))

    carries = run_segments(
        begin,
        functools.partial(_advance_down, path, transition, key, chain_length, first, bounds),
        len(blocks),
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="down",
    )
    return np.concatenate([rises for _, _, rises in carries])[:, ::-1].copy()


def _advance_down(path, transition, key, chain_length, first, bounds, block, segment, carry):
    state, auxiliary, rises = carry
    columns = [rises]
    start = int(first[block])
    for step in range(bounds[segment], bounds[segment + 1]):
        if chain_length is None:
            state, auxiliary, rise = _fall(
                path, transition, Stream(key, start, step + 1), step, state, auxiliary
            )
        else:
            state, auxiliary, rise = waste_free_fall(
                path, transition, chain_length, key, start, step, state, auxiliary
            )
        columns.append(rise[:, np.newaxis])
    return state, auxiliary, np.concatenate(columns, axis=1)


def _fall(path, transition, stream, step, state, auxiliary):
    """One level down."""
    level = len(path.ladder) - 1 - step
    levels = np.full((2, n_chains(state)), [[level], [level - 1]])
    state, auxiliary, fall = programs.anneal(
        path, transition, state, auxiliary, levels, stream, reverse=True
    )
    return state, auxiliary, -check_finite(fall, allow_zero=path.has_boundary)


def family_weights(populations: Populations) -> Array:
    """Log of the weight of the descendants of every particle that started, (G, N)."""
    log_weights = populations.log_mean[:, np.newaxis] + populations.log_weights
    largest = log_weights.max(axis=1, keepdims=True)
    largest = np.where(largest == -np.inf, 0.0, largest)
    n_populations, n = log_weights.shape
    family = np.arange(n_populations)[:, np.newaxis] * n + populations.ancestors
    weights = np.exp(log_weights - largest)
    sums = np.bincount(family.ravel(), weights=weights.ravel(), minlength=family.size)
    with np.errstate(divide="ignore"):
        return largest + np.log(sums.reshape(n_populations, n))


def target_summaries(path, populations: Populations) -> Array:
    """Weighted means of the summaries of populations' states and of their squares, (G, 2, S); NaN
    without weights.
    """
    log_weights = populations.log_weights
    with np.errstate(invalid="ignore"):  # -inf - (-inf)
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    summaries = path.summary(populations.state).reshape(*weights.shape, -1)
    return np.array([weighted_sums(*each) for each in zip(weights, summaries)])


def waste_free_step(path, transition, chain_length, streams, level, populations) -> tuple:
    """One level up (Dau & Chopin 2022): of N particles N / P are drawn by weight and move P - 1
    times.

    Returns the populations, whose weights are equal, and the columns of the level's record.
    """
    shape = populations.log_weights.shape
    n_starts = shape[1] // chain_length
    rises = log_rises(path, populations.state, level).reshape(shape)
    effective = effective_sample_size(rises, axis=1)
    log_mean = populations.log_mean + log_mean_exp(rises, axis=1)
    starts = np.tile(np.arange(n_starts), (len(streams), 1))
    for g in np.flatnonzero(effective > 0):
        uniform = float(streams[g].aside("resampling").uniform(1, REDRAW)[0])
        starts[g] = systematic(rises[g], n_starts, uniform)
    index = (np.arange(len(streams))[:, np.newaxis] * shape[1] + starts).ravel()
    first = path.take(populations.state, index), take(populations.auxiliary, index)
    stream = joined_streams(streams, n_starts)
    chain = [first, *_walk(path, transition, first, level + 1, chain_length - 1, stream)]
    rates = np.full(len(streams), np.nan)
    before = transition.accepted(chain[0][1])
    if before is not None:
        gained = (transition.accepted(chain[-1][1]) - before).reshape(-1, n_starts)
        rates = np.sum(gained, axis=1) / (shape[1] - n_starts)
    # Particles are sorted by population, by the place in the chain, and by the start.
    order = np.arange(rises.size).reshape(chain_length, -1, n_starts).swapaxes(0, 1).ravel()
    states, auxiliaries = zip(*chain)
    log_weights = np.where(log_mean > -np.inf, 0.0, -np.inf)
    populations = populations._replace(
        state=path.take(concatenate(states), order),
        auxiliary=take(concatenate(auxiliaries), order),
        log_weights=np.repeat(log_weights[:, np.newaxis], shape[1], axis=1),
        log_mean=log_mean,
        ancestors=np.tile(
            np.take_along_axis(populations.ancestors, starts, axis=1), (1, chain_length)
        ),
    )
    return populations, log_mean, effective, effective > 0, rates


def waste_free_fall(path, transition, chain_length, key, first, step, state, auxiliary):
    """One level down: the starts at the level below, and the log of the mean of f_(k+1) / f_k over
    their chains.

    A particle at level k + 1 was one of P in a chain at level k, any of them: some moves lead back
    to the start of that chain, and the others on to its end.
    """
    level = len(path.ladder) - 2 - step
    stream = Stream(key, first, 1 + step * chain_length)
    n_back = int(stream.aside("place").uniform(1, REDRAW)[0] * chain_length)
    here = state, auxiliary
    back = _walk(path, transition, here, level, n_back, stream, reverse=True)
    ahead = _walk(
        path, transition, here, level, chain_length - 1 - n_back, stream.at(stream.step + n_back)
    )
    rises = [log_rises(path, states, level) for states, _ in (here, *back, *ahead)]
    return *(back[-1] if back else here), log_mean_exp(np.array(rises), axis=0)


def _walk(path, transition, start, level, n_moves, stream, reverse=False) -> list[tuple]:
    """State and auxiliary variables after each of some moves at a level."""
    state, auxiliary = start
    passed = []
    levels = np.full((2, n_chains(state)), level)
    for move in range(n_moves):
        now = stream.at(stream.step + move)
        state, auxiliary, _ = programs.anneal(
            path, transition, state, auxiliary, levels, now, reverse=reverse
        )
        passed.append((state, auxiliary))
    return passed


def log_rises(path, state, level) -> Array:
    """log f_(level + 1) - log f_level of every chain, (n,); -inf where the density ends."""
    old, new = (path.log_f(state, np.full(n_chains(state), k)) for k in (level, level + 1))
    with np.errstate(invalid="ignore"):
        return check_finite(np.where(new == -np.inf, new, new - old), allow_zero=path.has_boundary)

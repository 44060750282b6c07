"""Populations of particles that are resampled on their way through the ladder: sequential Monte
Carlo samplers.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import REDRAW, Stream, concatenate_streams, systematic
from sklpf.paths import n_chains
from sklpf.programs._plan import (
    blocks_of_groups,
    check_finite,
    equal_blocks,
    running_log_partition,
    segments,
)
from sklpf.programs._programs import Chains, anneal, concatenate_chains, weighted_sums
from sklpf.transitions import stream_uniforms
from sklpf.uncertainty import effective_sample_size, log_mean_exp

_LARGEST_BLOCK = 32  # of reverse chains


class Populations(NamedTuple):
    """G populations of N particles at a level: the particles, one population after the other, the
    log of each estimate so far, and what happened at every level.
    """

    chains: Chains
    # (G, N), with a mean of 1 on the way, since the last resampling
    log_weights: Array
    # (G,): log of the product of the mean weights at earlier resamplings
    log_mean: Array
    ancestors: Integers  # (G, N)
    # (G, levels passed, 4): log mean, effective size, resampled, sum of acceptance
    records: Array


def run_populations(
    path,
    transition,
    n_populations,
    n_particles,
    resample_at,
    key,
    n_jobs=None,
    checkpoint=None,
) -> Populations:
    """Run populations through the whole ladder from exact base draws (Del Moral, Doucet & Jasra
    2006).

    At every level particles are weighted, resampled if their effective number is less than
    `resample_at` times n_particles, and moved.
    """
    bounds = segments(len(path.ladder) - 1, path.n_moves_per_segment)
    n = n_particles
    step = functools.partial(_step, path, transition, resample_at)
    blocks = list(np.arange(n_populations)[:, np.newaxis])  # populations of every block
    if transition.joins_rows:
        blocks = blocks_of_groups(path, transition, n_populations, n_populations * n)

    def begin(block) -> Populations:
        populations = blocks[block]
        streams = [Stream(key, int(population) * n) for population in populations]
        chains = [
            Chains.start(path, transition, path.sample_base(n, stream), stream)
            for stream in streams
        ]
        shape = len(populations), n
        return Populations(
            chains=concatenate_chains(chains),
            log_weights=np.zeros(shape),
            log_mean=np.zeros(len(populations)),
            ancestors=np.tile(np.arange(n), (len(populations), 1)),
            records=np.empty((len(populations), 0, 4)),
        )

    summarises = path.base_log_partition is not None and n_populations > 1  # not of a pilot
    carries = run_segments(
        begin,
        functools.partial(_advance, step, key, blocks),
        len(blocks),
        bounds,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="populations",
        so_far=functools.partial(_so_far, path) if summarises else None,
    )
    chains, *parts = zip(*carries)
    return Populations(concatenate_chains(chains), *map(np.concatenate, parts))


def _so_far(path, level, carries) -> str:
    """log Z of the level that populations have reached, with its standard error."""
    log_means = [each.log_mean + log_mean_exp(each.log_weights, axis=1) for each in carries]
    return running_log_partition(path, level, np.concatenate(log_means))


def _advance(step, key, blocks, block, begin, end, populations) -> Populations:
    """Populations after some levels."""
    n = populations.log_weights.shape[1]
    chains = [int(population) * n for population in blocks[block]]
    records = [populations.records]
    for level in range(begin, end):
        streams = [Stream(key, chain, 1 + level) for chain in chains]
        populations, *record = step(streams, level, populations)
        records.append(np.stack(record, axis=1, dtype=float)[:, np.newaxis])
    return populations._replace(records=np.concatenate(records, axis=1))


def _step(path, transition, resample_at, streams, level, populations) -> tuple:
    """One level up, and the columns of its record. Particles that are then resampled have moved in
    vain: they move anew, from where they were.
    """
    chains, log_weights, log_mean, ancestors, _ = populations
    n = log_weights.shape[1]
    moved, rises, accepted = _moved(path, transition, chains, (level, level + 1), streams)
    log_weights = log_weights + check_finite(rises, allow_zero=path.has_boundary)
    effective = effective_sample_size(log_weights, axis=1)
    total = log_mean + log_mean_exp(log_weights, axis=1)
    resample = (effective > 0) & (effective < resample_at * n)
    again = np.flatnonzero(resample)
    if len(again):
        chosen = [_resampled(log_weights[g], n, streams[g]) for g in again]
        index = (again[:, np.newaxis] * n + chosen).ravel()
        asides = [streams[g].of("moves after resampling") for g in again]
        anew, _, accepted[again] = _moved(
            path, transition, chains.take(path, index), (level + 1, level + 1), asides
        )
        place = np.arange(log_weights.size).reshape(log_weights.shape)
        place[again] = log_weights.size + np.arange(len(index)).reshape(-1, n)
        moved = concatenate_chains([moved, anew]).take(path, place.ravel())
        ancestors = ancestors.copy()
        ancestors[again] = np.take_along_axis(ancestors[again], np.array(chosen), axis=1)
        log_weights[again] = 0
        log_mean = np.where(resample, total, log_mean)
    populations = populations._replace(
        chains=moved,
        log_weights=log_weights,
        log_mean=log_mean,
        ancestors=ancestors,
    )
    return populations, total, effective, resample, accepted


def _resampled(log_weights, n, stream) -> Integers:
    """Indices (n,) of the particles of a population that are drawn by weight."""
    return systematic(log_weights, n, float(stream_uniforms(stream.of("resampling"), 1, REDRAW)[0]))


def _moved(path, transition, chains, passed, streams) -> tuple:
    """Chains of populations after a move from one level to the other in `passed`, the increments
    of log f (G, N), and the mean acceptance probabilities (G,).
    """
    n_all = len(chains.levels)
    n = n_all // len(streams)
    levels = np.full((2, n_all), np.reshape(passed, (2, 1)))
    moved, rises = anneal(path, transition, chains, levels, concatenate_streams(streams, n))
    rates = _accepted_between(transition, chains, moved, len(streams)) / n
    return moved, rises.reshape(-1, n), rates


def _accepted_between(transition, before, after, n_groups) -> Array:
    """Sums of the acceptance probabilities of each group's chains (n_groups,); NaN where no move is
    ever rejected.
    """
    accepted = transition.accepted(before.auxiliary)
    if accepted is None:
        return np.full(n_groups, np.nan)
    gained = transition.accepted(after.auxiliary) - accepted
    return np.sum(gained.reshape(n_groups, -1), axis=1)


def run_reverse_chains(path, transition, starts, key, n_jobs=None, checkpoint=None) -> Array:
    """log f_(k+1) - log f_k (n, K - 1) of reverse chains; as `PopulationRun` keeps them."""
    blocks = equal_blocks(n_chains(starts), path.n_chains_per_block or _LARGEST_BLOCK, 1)
    first = np.concatenate([[0], np.cumsum(blocks)])
    bounds = segments(len(path.ladder) - 1, path.n_moves_per_segment)

    def begin(block):
        state = path.take(starts, np.arange(first[block], first[block + 1]))
        chains = Chains.start(path, transition, state, Stream(key, int(first[block])))
        return chains, np.empty((blocks[block], 0))

    carries = run_segments(
        begin,
        functools.partial(_advance_reverse, path, transition, key, first),
        len(blocks),
        bounds,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="reverse",
    )
    return np.concatenate([rises for _, rises in carries])[:, ::-1].copy()


def _advance_reverse(path, transition, key, first, block, begin, end, carry):
    chains, rises = carry
    columns = [rises]
    for step in range(begin, end):
        stream = Stream(key, int(first[block]), 1 + step)
        chains, rise = _fall(path, transition, stream, step, chains)
        columns.append(rise[:, np.newaxis])
    return chains, np.concatenate(columns, axis=1)


def _fall(path, transition, stream, step, chains):
    """One level down."""
    level = len(path.ladder) - 1 - step
    levels = np.full((2, len(chains.levels)), [[level], [level - 1]])
    chains, fall = anneal(path, transition, chains, levels, stream, reverse=True)
    return chains, -check_finite(fall, allow_zero=path.has_boundary)


def ancestor_weights_of(populations: Populations) -> Array:
    """Log of the weight of the descendants of every particle that started, (G, N)."""
    log_weights = populations.log_mean[:, np.newaxis] + populations.log_weights
    largest = log_weights.max(axis=1, keepdims=True)
    largest = np.where(largest == -np.inf, 0.0, largest)
    n_populations, n = log_weights.shape
    ancestor = np.arange(n_populations)[:, np.newaxis] * n + populations.ancestors
    weights = np.exp(log_weights - largest)
    sums = np.bincount(ancestor.ravel(), weights=weights.ravel(), minlength=ancestor.size)
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
    summaries = path.summary(populations.chains.state).reshape(*weights.shape, -1)
    return np.array([weighted_sums(*each) for each in zip(weights, summaries)])

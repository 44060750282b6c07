"""Populations of particles that go up the ladder and are resampled on their way: sequential Monte
Carlo samplers.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.parallel import run_segments
from sklpf._utils.random import REDRAW, Stream
from sklpf.paths._base import n_chains, take
from sklpf.programs import _programs as programs
from sklpf.programs._plain import weighted_sums
from sklpf.programs._plan import check_finite, equal_blocks, running_log_partition, segments
from sklpf.programs._waste_free import waste_free_fall, waste_free_step
from sklpf.sampling._elementary import systematic
from sklpf.uncertainty import effective_sample_size, log_mean_exp

_LARGEST_BLOCK = 32  # of reverse chains


class Population(NamedTuple):
    """One population at a level: its particles, the log of its estimate so far, and what happened
    at every level.
    """

    state: Any
    memory: tuple
    log_weights: NDArray[np.float64]  # (N,), with a mean of 1 on the way, since the last resampling
    # (): log of the product of the mean weights at earlier resamplings
    log_mean: NDArray[np.float64]
    ancestors: NDArray[np.int64]  # (N,)
    # (levels passed, 4): log mean, effective size, resampled, sum of acceptance
    records: NDArray[np.float64]


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
):
    """Populations that went up the whole ladder from exact base draws (Del Moral, Doucet & Jasra
    2006).

    At every level particles are weighted, resampled if their effective number is less than
    `resample_at` times n_particles, and moved. With a `chain_length` they are waste-free and always
    resampled.
    """
    bounds = segments(len(path.ladder) - 1, path.n_moves_per_segment)
    n = n_particles

    def begin(block) -> Population:
        stream = Stream(key, block * n)
        state = path.sample_base(n, stream)
        memory = transition.init(path, state, stream.aside("memory"))
        return Population(state, memory, np.zeros(n), np.zeros(()), np.arange(n), np.empty((0, 4)))

    tells = path.base_log_partition is not None and n_populations > 1  # not of a pilot
    return run_segments(
        begin,
        functools.partial(_advance, path, transition, key, resample_at, chain_length, bounds),
        n_populations,
        len(bounds) - 1,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
        stage="populations",
        so_far=functools.partial(_so_far, path, bounds) if tells else None,
    )


def _so_far(path, bounds, segment, populations) -> str:
    """log Z of the level that populations have reached, with its standard error."""
    log_means = [each.log_mean + log_mean_exp(each.log_weights) for each in populations]
    return running_log_partition(path, int(bounds[segment + 1]), np.array(log_means))


def _advance(
    path, transition, key, resample_at, chain_length, bounds, block, segment, population
) -> Population:
    n = len(population.ancestors)
    records = [population.records]
    for level in range(bounds[segment], bounds[segment + 1]):
        if chain_length is None:
            stream = Stream(key, block * n, level + 1)
            population, record = _step(path, transition, resample_at, stream, level, population)
        else:
            population, record = waste_free_step(
                path, transition, chain_length, key, level, block, population
            )
        records.append(np.array([record], dtype=float))
    return population._replace(records=np.concatenate(records))


def _step(path, transition, resample_at, stream, level, population) -> tuple[Population, tuple]:
    """One level up. Particles that are then resampled have moved in vain: they move anew, from
    where they were.
    """
    state, memory, log_weights, log_mean, ancestors, _ = population
    n = len(ancestors)
    levels = np.full((2, n), [[level], [level + 1]])
    with np.errstate(invalid="ignore"):  # inf - inf: reported here
        moved = programs.anneal(path, transition, state, memory, levels, stream)
    log_weights = log_weights + check_finite(moved[2], allow_zero=path.has_walls)
    effective = effective_sample_size(log_weights)
    total = log_mean + log_mean_exp(log_weights)
    resample = 0 < effective < resample_at * n
    if resample:
        chosen = systematic(log_weights, n, float(stream.aside("resampling").uniform(1, REDRAW)[0]))
        state = path.take(state, chosen)
        memory = take(memory, chosen)
        ancestors = ancestors[chosen]
        log_weights = np.zeros(n)
        log_mean = total
        levels = np.full((2, n), level + 1)
        again = stream.aside("moves after resampling")
        moved = programs.anneal(path, transition, state, memory, levels, again)
    before = transition.accepted(memory)
    after = transition.accepted(moved[1])
    rate = np.nan if before is None else np.sum(after - before) / n
    population = population._replace(
        state=moved[0],
        memory=moved[1],
        log_weights=log_weights,
        log_mean=np.asarray(log_mean),
        ancestors=ancestors,
    )
    return population, (float(total), effective, resample, rate)


def descend(
    path, transition, starts, key, n_jobs=None, checkpoint=None, chain_length=None
) -> NDArray[np.float64]:
    """log f_(k+1) - log f_k (n, K - 1) of reverse chains; as `PopulationRun` keeps them."""
    blocks = equal_blocks(n_chains(starts), path.n_chains_per_block or _LARGEST_BLOCK, 1)
    first = np.concatenate([[0], np.cumsum(blocks)])
    bounds = segments(len(path.ladder) - 1, path.n_moves_per_segment)

    def begin(block):
        state = path.take(starts, np.arange(first[block], first[block + 1]))
        memory = transition.init(path, state, Stream(key, int(first[block])).aside("memory"))
        return state, memory, np.empty((blocks[block], 0))

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
    state, memory, rises = carry
    columns = [rises]
    start = int(first[block])
    for step in range(bounds[segment], bounds[segment + 1]):
        if chain_length is None:
            state, memory, rise = _fall(
                path, transition, Stream(key, start, step + 1), step, state, memory
            )
        else:
            state, memory, rise = waste_free_fall(
                path, transition, chain_length, key, start, step, state, memory
            )
        columns.append(rise[:, np.newaxis])
    return state, memory, np.concatenate(columns, axis=1)


def _fall(path, transition, stream, step, state, memory):
    """One level down."""
    level = len(path.ladder) - 1 - step
    levels = np.full((2, n_chains(state)), [[level], [level - 1]])
    with np.errstate(invalid="ignore"):
        state, memory, fall = programs.anneal(
            path, transition, state, memory, levels, stream, reverse=True
        )
    return state, memory, -check_finite(fall, allow_zero=path.has_walls)


def family_weights(population: Population) -> NDArray[np.float64]:
    """Log of the weight of the descendants of every particle that started, (N,)."""
    log_weights = population.log_mean + population.log_weights
    largest = log_weights.max()
    if largest == -np.inf:
        return log_weights
    sums = np.bincount(
        population.ancestors, weights=np.exp(log_weights - largest), minlength=len(log_weights)
    )
    with np.errstate(divide="ignore"):
        return largest + np.log(sums)


def target_summaries(path, population: Population) -> NDArray[np.float64]:
    """Weighted means of the summaries of a population's states and of their squares, (2, S); NaN
    without weights.
    """
    with np.errstate(invalid="ignore"):  # -inf - (-inf)
        weights = np.exp(population.log_weights - population.log_weights.max())
    return weighted_sums(weights / weights.sum(), path.summary(population.state))

"""Waste-free populations: few particles are resampled, and every state of the chains that start at
them is one.
"""

from __future__ import annotations

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import REDRAW, Stream, joined_streams
from sklpf.paths._base import concatenate, n_chains, take
from sklpf.programs import _programs as programs
from sklpf.programs._plan import check_finite
from sklpf.sampling._elementary import systematic
from sklpf.uncertainty import effective_sample_size, log_mean_exp


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
    first = path.take(populations.state, index), take(populations.memory, index)
    stream = joined_streams(streams, n_starts)
    chain = [first, *_walk(path, transition, first, level + 1, chain_length - 1, stream)]
    rates = np.full(len(streams), np.nan)
    before = transition.accepted(chain[0][1])
    if before is not None:
        gained = (transition.accepted(chain[-1][1]) - before).reshape(-1, n_starts)
        rates = np.sum(gained, axis=1) / (shape[1] - n_starts)
    # Particles are sorted by population, by the place in the chain, and by the start.
    order = np.arange(rises.size).reshape(chain_length, -1, n_starts).swapaxes(0, 1).ravel()
    states, memories = zip(*chain)
    log_weights = np.where(log_mean > -np.inf, 0.0, -np.inf)
    populations = populations._replace(
        state=path.take(concatenate(states), order),
        memory=take(concatenate(memories), order),
        log_weights=np.repeat(log_weights[:, np.newaxis], shape[1], axis=1),
        log_mean=log_mean,
        ancestors=np.tile(
            np.take_along_axis(populations.ancestors, starts, axis=1), (1, chain_length)
        ),
    )
    return populations, log_mean, effective, effective > 0, rates


def waste_free_fall(path, transition, chain_length, key, first, step, state, memory):
    """One level down: the starts at the level below, and the log of the mean of f_(k+1) / f_k over
    their chains.

    A particle at level k + 1 was one of P in a chain at level k, any of them: some moves lead back
    to the start of that chain, and the others on to its end.
    """
    level = len(path.ladder) - 2 - step
    stream = Stream(key, first, 1 + step * chain_length)
    n_back = int(stream.aside("place").uniform(1, REDRAW)[0] * chain_length)
    here = state, memory
    back = _walk(path, transition, here, level, n_back, stream, reverse=True)
    ahead = _walk(
        path, transition, here, level, chain_length - 1 - n_back, stream.at(stream.step + n_back)
    )
    rises = [log_rises(path, states, level) for states, _ in (here, *back, *ahead)]
    return *(back[-1] if back else here), log_mean_exp(np.array(rises), axis=0)


def _walk(path, transition, start, level, n_moves, stream, reverse=False) -> list[tuple]:
    """State and memory after each of some moves at a level."""
    state, memory = start
    passed = []
    levels = np.full((2, n_chains(state)), level)
    for move in range(n_moves):
        now = stream.at(stream.step + move)
        with np.errstate(invalid="ignore"):  # inf - inf of particles without weight
            state, memory, _ = programs.anneal(
                path, transition, state, memory, levels, now, reverse=reverse
            )
        passed.append((state, memory))
    return passed


def log_rises(path, state, level) -> Array:
    """log f_(level + 1) - log f_level of every chain, (n,); -inf where the density ends."""
    old, new = (path.log_f(state, np.full(n_chains(state), k)) for k in (level, level + 1))
    with np.errstate(invalid="ignore"):
        return check_finite(np.where(new == -np.inf, new, new - old), allow_zero=path.has_walls)

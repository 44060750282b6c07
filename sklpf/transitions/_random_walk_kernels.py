"""RandomWalk as a part of the compiled programs, for densities that implement `evaluate`."""

import math
from typing import NamedTuple

import numpy as np

from sklpf._utils.random import ACCEPT, FIRST
from sklpf.kernels import implements, uniform
from sklpf.kernels._densities import Values, evaluate
from sklpf.kernels._random import chains_bits, normals
from sklpf.transitions._continuous_kernels import (
    ChainSteps,
    Steps,
    chain_steps,
    copy_row,
    log_density,
    move_chains,
    reflect,
    rotate,
    set_steps,
    work_space,
)


class RandomWalkMove(NamedTuple):
    """The move as the pilot froze it."""

    steps: Steps


class Work(NamedTuple):
    """Work space of n chains."""

    values: Values
    steps: ChainSteps
    proposal: np.ndarray  # (n, d)
    step: np.ndarray  # (n, d)
    rotated: np.ndarray  # (n, d)
    bits: np.ndarray  # (4, n)


@implements(work_space, RandomWalkMove)
def _work_space(move, n, d):
    values = Values(np.empty(n), np.empty(n), np.empty((n, d)), np.empty((n, d)))
    proposal = np.empty((n, d))
    step = np.empty((n, d))
    rotated = np.empty((n, d))
    return Work(values, chain_steps(n, d), proposal, step, rotated, np.empty((4, n), np.uint32))


@implements(move_chains, RandomWalkMove)
def _walk(move, density, state, betas, reverse, keys, work):
    """A random walk is its own time reversal."""
    points, (accepted,) = state
    steps = move.steps
    proposal = work.proposal
    step = work.step
    first = work.steps.first
    lengths = work.steps.lengths
    n, d = proposal.shape
    set_steps(steps, betas, work.steps)

    normals(keys, FIRST, step)
    if steps.matrices.shape[0] > 0:
        rotate(steps.matrices, work.steps.knots, step, False, work.rotated)
        step = work.rotated
    for c in range(n):
        for j in range(d):
            proposal[c, j] = points.position[c, j] + lengths[first[c], j] * step[c, j]
        if steps.low.shape[0] > 0:
            reflect(steps.low, steps.high, proposal[c], step[c])

    evaluate(density, proposal, work.values)
    new_log_base = work.values.log_base
    new_gain = work.values.gain
    chains_bits(work.bits, 1, keys, ACCEPT)
    for c in range(n):
        new = log_density(betas[c], new_log_base[c], new_gain[c])
        log_accept = new - log_density(betas[c], points.log_base[c], points.gain[c])
        rate = 0.0 if math.isnan(log_accept) else math.exp(min(log_accept, 0.0))
        accepted[c] += rate
        if uniform(work.bits[0, c]) < rate:
            points.log_base[c] = new_log_base[c]
            points.gain[c] = new_gain[c]
            copy_row(proposal, points.position, c)

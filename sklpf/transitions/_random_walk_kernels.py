"""RandomWalk as a part of the compiled programs, for densities that implement `evaluate`."""

import math
from typing import NamedTuple

from sklpf._utils.random import ACCEPT, FIRST
from sklpf.kernels import implements, uniform
from sklpf.kernels._densities import evaluate
from sklpf.kernels._programs import log_density
from sklpf.kernels._random import bits_of_all_chains, normals
from sklpf.transitions._continuous_kernels import (
    Steps,
    copy_row,
    move_chains,
    reflect,
    rotate,
    set_steps,
)


class RandomWalkMove(NamedTuple):
    """The move as the pilot froze it."""

    steps: Steps


@implements(move_chains, RandomWalkMove)
def _walk(move, density, state, betas, reverse, keys, work):
    """A random walk is its own time reversal."""
    points, (accepted,) = state
    steps = move.steps
    proposal = work.position
    step = work.normals
    first = work.steps.first
    lengths = work.steps.lengths
    n, d = proposal.shape
    set_steps(steps, betas, work.steps)

    normals(keys, FIRST, step)
    if steps.matrices.shape[0] > 0:
        rotate(steps.matrices, work.steps.knots, step, False, work.moved)
        step = work.moved
    for c in range(n):
        for j in range(d):
            proposal[c, j] = points.position[c, j] + lengths[first[c], j] * step[c, j]
    if steps.low.shape[0] > 0:
        reflect(steps.low, steps.high, proposal, step)

    evaluate(density, proposal, work.values)
    new_log_base = work.values.log_base
    new_gain = work.values.gain
    bits_of_all_chains(work.bits, 1, keys, ACCEPT)
    for c in range(n):
        new = log_density(betas[c], new_log_base[c], new_gain[c])
        log_accept = new - log_density(betas[c], points.log_base[c], points.gain[c])
        rate = 0.0 if math.isnan(log_accept) else math.exp(min(log_accept, 0.0))
        accepted[c] += rate
        if uniform(work.bits[0, c]) < rate:
            points.log_base[c] = new_log_base[c]
            points.gain[c] = new_gain[c]
            copy_row(proposal, points.position, c)

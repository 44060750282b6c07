"""RandomWalk as a part of the compiled programs, for densities that implement `evaluate`."""

from typing import NamedTuple

from sklpf._utils.random import FIRST
from sklpf.kernels import implements
from sklpf.kernels._densities import evaluate
from sklpf.kernels._random import normals
from sklpf.transitions._continuous_kernels import (
    Steps,
    decide,
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
    points, (rates,) = state
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
    decide(points, rates, betas, keys, work)

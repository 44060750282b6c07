"""Numba pieces of the programs that fused kernels share: where a block stands, swaps of levels, redraws of levels."""

import math
from typing import NamedTuple

import numpy as np

from sklpf._random import SWAP
from sklpf.kernels import exp64, njit, random_bits, uniform
from sklpf.transitions._base import MAX_EXPONENT

_SWAP = SWAP
Q_OFFSET = 600.0  # q(level | x) is summed as exp(log q + 600), which keeps terms down to e^-1300


class Keys(NamedTuple):
    """Where a block stands in its random stream."""

    key0: int
    key1: int
    chain: int
    step: int


@njit
def swap_levels(up, down, levels, ends, shift, start, keys, chain_at, sums):
    """Offer the even or the odd pairs of one ladder's levels a swap; returns the round trips that end here.

    The ladder's chains are start, …, start + K - 1; up and down hold each one's log f at the next level, above and
    below, less that at its own. Adds to sums (K - 1, 5) what `Transition.exchange` says; chain_at (K,) is scratch.
    """
    n_levels, trips = chain_at.shape[0], 0
    bits = np.empty(4, np.uint32)
    for c in range(start, start + n_levels):
        chain_at[levels[c]] = c
    for k in range(n_levels - 1):
        low, high = chain_at[k], chain_at[k + 1]
        u, r = up[low], down[high]
        accept = exp64(min(0.0, u + r))
        pair = sums[k]
        forward, reverse = exp64(min(u - shift[k], MAX_EXPONENT)), exp64(min(r + shift[k], MAX_EXPONENT))
        pair[0] += forward / (1.0 + forward)  # the logistic
        pair[1] += reverse / (1.0 + reverse)
        pair[2] += forward
        pair[3] += reverse
        pair[4] += 1.0 - accept
        if (k + keys.step) % 2 == 0:
            random_bits(bits, 1, keys.key0, keys.key1, keys.step, keys.chain + low, _SWAP)
            if uniform(bits[0]) < accept:
                levels[low], levels[high] = k + 1, k
    for c in range(start, start + n_levels):
        if levels[c] == 0:
            trips += ends[c] == 1
            ends[c] = -1
        elif levels[c] == n_levels - 1 and ends[c] == -1:
            ends[c] = 1
    return trips


@njit
def redraw(log_densities, log_prior, u, q_sums, cumulative):
    """Draw a level from softmax(log_densities + log_prior), whose probabilities are added to q_sums."""
    largest = -np.inf
    for k in range(log_densities.shape[0]):
        largest = max(largest, log_densities[k] + log_prior[k])
    for k in range(log_densities.shape[0]):
        cumulative[k] = exp64(log_densities[k] + log_prior[k] - largest)
    total = 0.0
    for k in range(log_densities.shape[0]):
        total += cumulative[k]
        cumulative[k] = total
    log_total = math.log(total) + largest
    for k in range(log_densities.shape[0]):
        log_q = log_densities[k] + log_prior[k] - log_total
        if log_q > -1300.0:
            q_sums[k] += exp64(log_q + Q_OFFSET)
    threshold = np.float64(u) * total
    level = 0
    while level < log_densities.shape[0] - 1 and cumulative[level] < threshold:
        level += 1
    return level

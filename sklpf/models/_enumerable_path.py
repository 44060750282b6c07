"""What paths of binary units share: enumeration of their states, and a lower bound of log Z."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf.partition import Exact, ParallelTempering, PartitionEstimator
from sklpf.paths._kernel_path import KernelPath

MAX_EXACT = 20  # 2^20 states take about a second
_UNITS_PER_BLOCK = 14  # an enumeration block holds 2^14 states

# The mixture that bounds log Z from below: its parts, the sweeps of the chains that find them, and
# the groups of draws from it.
N_CENTRES = 100
CENTRE_SWEEPS = 50
BOUND_GROUPS = 10


class EnumerablePath(KernelPath):
    """A path of n binary units, whose 2^n states can be enumerated."""

    _estimator_of_many: type[PartitionEstimator] = ParallelTempering

    @property
    def log2_states(self) -> int:
        """Number of units that are enumerated: they have 2 to this power states."""
        raise NotImplementedError

    @property
    def n_enumeration_blocks(self) -> int:
        """Number of blocks of states that `enumerate_block` takes."""
        return 1 << (self.log2_states - self._units_of_a_block)

    @property
    def _units_of_a_block(self) -> int:
        """Units whose states a block goes through; the block's number has those of the others."""
        return min(self.log2_states, _UNITS_PER_BLOCK)

    def default_estimator(self) -> PartitionEstimator:
        """Return `Exact` where at most 20 units are enumerated, else what samples.

        Returns
        -------
        PartitionEstimator
            Not fitted.
        """
        return Exact() if self.log2_states <= MAX_EXACT else self._estimator_of_many()

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log weights at `level` of the states of one block, in nats."""
        raise NotImplementedError


class UnitsPath(EnumerablePath):
    """A path of one model of binary units, which has exact draws of few units and a bound of many.

    A subclass defines `_state_of_units`, `_random_chains`, `_centres` and `_mixture_log_weights`.
    """

    _in_gray_code = False  # the order in which `enumerate_block` goes through the states

    def sample_enumerated(self, log_block_sums: NDArray, n: int, rng: np.random.Generator) -> Any:
        """Return chains at exact draws from the target.

        Parameters
        ----------
        log_block_sums : ndarray of shape (n_enumeration_blocks,)
            Log sums of all blocks' weights, in nats.
        n : int
            Number of chains.
        rng : numpy.random.Generator
            Where the random numbers come from.

        Returns
        -------
        state : NamedTuple
        """
        level = len(self.ladder) - 1
        n_low = self._units_of_a_block
        blocks = rng.choice(len(log_block_sums), size=n, p=softmax(log_block_sums))
        states = blocks.astype(np.int64) << n_low
        for block in np.unique(blocks):
            chosen = blocks == block
            shares = softmax(self.enumerate_block(block, level))
            codes = rng.choice(1 << n_low, size=chosen.sum(), p=shares)
            states[chosen] |= codes ^ (codes >> 1) if self._in_gray_code else codes
        return self._state_of_units(bits(states, self.log2_states), rng)

    def bound_draws(self, stream: Stream) -> Array:
        """Return log weights (10, 100) of draws from a mixture with a part for each of 100 centres
        (PRML 11.73), in nats.

        The centres are where plain Gibbs chains at the target are after 50 sweeps from random
        units.
        """
        rng = stream.generator()
        state = self._random_chains(rng)
        self.move_at_target(state, CENTRE_SWEEPS, stream.at(1))
        centres = self._centres(state, rng)
        return np.array([self._mixture_log_weights(centres, rng) for _ in range(BOUND_GROUPS)])

    def _state_of_units(self, units: NDArray[np.uint8], rng) -> Any:
        """Chains with these enumerated units (n, log2_states), all others drawn given them."""
        raise NotImplementedError

    def _random_chains(self, rng) -> Any:
        """100 chains at random units."""
        raise NotImplementedError

    def _centres(self, state, rng) -> Any:
        """The centres of a mixture, from where chains at the target have arrived."""
        raise NotImplementedError

    def _mixture_log_weights(self, centres, rng) -> Array:
        """log f less the log density of the mixture, at a draw from each of its parts, in nats."""
        raise NotImplementedError


def bits(codes: NDArray, n: int) -> NDArray[np.uint8]:
    """Return the lowest n bits of every number, lowest first, (len(codes), n)."""
    return (codes[:, np.newaxis] >> np.arange(n) & 1).astype(np.uint8)

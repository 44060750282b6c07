"""Chains at levels, in groups that share nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Integers
from sklpf.paths._base import concatenate, take


class Chains(NamedTuple):
    """n chains, each at a level of its own.

    Attributes
    ----------
    state : object
        State of the chains, into which only the path looks.
    memory : tuple
        Auxiliary variables of the move, such as velocities.
    levels : ndarray of shape (n,)
    """

    state: Any
    memory: tuple
    levels: Integers

    def take(self, path: Any, index: Integers) -> Chains:
        """Return the chains with some indices."""
        return Chains(path.take(self.state, index), take(self.memory, index), self.levels[index])


def together(groups: Sequence[Chains]) -> Chains:
    """The chains of some groups, one group after the other."""
    return Chains(*(concatenate(parts) for parts in zip(*groups)))


def apart(path: Any, chains: Chains, first: Integers) -> list[Chains]:
    """The chains of each group, from the first chain of every group and the end."""
    return [chains.take(path, np.arange(*ends)) for ends in zip(first, first[1:])]


def with_base_renewed(path: Any, transition: Any, chains: Chains, stream: Any) -> Chains:
    """The same chains, but for those at the base, which are drawn anew from it."""
    at_base = np.flatnonzero(chains.levels == 0)
    if len(at_base) == 0:
        return chains
    fresh = path.sample_base(len(at_base), stream)
    memory = transition.init(path, fresh, stream.aside("memory"))
    n = len(chains.levels)
    index = np.arange(n)
    index[at_base] = n + np.arange(len(at_base))
    return together([chains, Chains(fresh, memory, chains.levels[at_base])]).take(path, index)

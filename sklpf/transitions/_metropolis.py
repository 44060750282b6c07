"""Metropolis-Hastings moves with the path's own proposal."""

from __future__ import annotations

import numpy as np

from sklpf._utils.random import ACCEPT
from sklpf.paths import Proposal
from sklpf.paths._base import choose
from sklpf.transitions._base import Transition


class Metropolis(Transition):
    """Accept or reject the path's proposal (Hastings 1970).

    Needs ``path.propose(state, levels, stream) -> (proposal, log_ratio)`` where log_ratio (n,) is
    log q(state | proposal) - log q(proposal | state), zero for a symmetric proposal. The proposal
    must not use ``stream.uniform``, which decides about acceptance; ``stream.generator()`` is its
    own.

    Examples
    --------
    >>> from sklpf import AIS
    >>> from sklpf.transitions import Metropolis
    >>> AIS(transition=Metropolis())
    AIS(transition=Metropolis())
    """

    requires = (Proposal,)

    def move(self, path, state, memory, levels, stream, reverse=False):
        proposal, log_ratio = path.propose(state, levels, stream)
        log_accept = path.log_f(proposal, levels) - path.log_f(state, levels) + log_ratio
        accept = np.log(stream.uniform(len(levels), ACCEPT)) < log_accept
        return choose(accept, proposal, state), memory

"""Gibbs and Metropolis moves, as the path defines them."""

from __future__ import annotations

from sklpf._utils.random import ACCEPT
from sklpf.paths import choose, has
from sklpf.transitions._base import Transition, acceptance, stream_uniforms


class Gibbs(Transition):
    """One systematic sweep of the path's own Gibbs sampler.

    Needs ``path.gibbs(state, levels, stream)``. A sampler whose sweep is not reversible takes a
    further argument ``reverse`` and sets ``gibbs_is_reversible = False``.

    Examples
    --------
    >>> from sklpf import AIS, BernoulliRBM
    >>> from sklpf.transitions import Gibbs
    >>> rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    >>> ais = AIS(n_temperatures=20, transition=Gibbs(), random_state=0)
    >>> ais.fit(rbm).converged_  # its default
    True
    """

    requires = ("gibbs",)

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        if reverse and not path.gibbs_is_reversible:
            return path.gibbs(state, levels, stream, reverse=True), auxiliary
        return path.gibbs(state, levels, stream), auxiliary

    def compiled(self, path):
        return path.packed if has(path, "packed") else None


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

    requires = ("propose",)

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        proposal, log_ratio = path.propose(state, levels, stream)
        rate = acceptance(path, state, proposal, levels, log_ratio)
        accept = stream_uniforms(stream, len(levels), ACCEPT) < rate
        return choose(accept, proposal, state), auxiliary

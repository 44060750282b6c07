"""Gibbs sweeps, as the path defines them."""

from __future__ import annotations

from sklpf.paths import Compiled, GibbsMove
from sklpf.paths._capabilities import has
from sklpf.transitions._base import Transition


class Gibbs(Transition):
    """One systematic sweep of the path's own Gibbs sampler.

    Needs ``path.gibbs(state, levels, stream)``. A sampler whose sweep is not reversible takes a
    further argument ``reverse`` and sets ``gibbs_is_reversible = False``.

    Examples
    --------
    >>> from sklpf import AIS, BernoulliRBM
    >>> from sklpf.transitions import Gibbs
    >>> rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    >>> AIS(n_temperatures=20, transition=Gibbs(), random_state=0).fit(
    ...     rbm
    ... ).converged_  # its default
    True
    """

    requires = (GibbsMove,)

    def move(self, path, state, memory, levels, stream, reverse=False):
        if reverse and not path.gibbs_is_reversible:
            return path.gibbs(state, levels, stream, reverse=True), memory
        return path.gibbs(state, levels, stream), memory

    def compiled(self, path):
        return path.packed if has(path, Compiled) else None

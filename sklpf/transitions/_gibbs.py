"""Gibbs sweeps, as the path defines them."""

from __future__ import annotations

from sklpf.paths import GibbsMove
from sklpf.transitions._base import Transition


class Gibbs(Transition):
    """One systematic sweep of the path's own Gibbs sampler.

    Needs ``path.gibbs(state, levels, stream)``. A sampler whose sweep is not reversible takes a further argument
    ``reverse`` and sets ``gibbs_is_reversible = False``.
    """

    requires = (GibbsMove,)

    def move(self, path, state, memory, levels, stream, reverse=False):
        if reverse and not getattr(path, "gibbs_is_reversible", True):
            return path.gibbs(state, levels, stream, reverse=True), memory
        return path.gibbs(state, levels, stream), memory

    def compiled(self, path):
        return getattr(path, "packed", None)

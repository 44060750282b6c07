"""Gibbs sweeps, as the path defines them."""

from __future__ import annotations

from sklpf.transitions._base import Transition


class Gibbs(Transition):
    """One systematic sweep of the path's own Gibbs sampler.

    Needs ``path.gibbs(state, levels, stream)``. The fused forms ``gibbs_anneal``, ``gibbs_exchange`` and
    ``gibbs_temper`` are used where the path has them. A sampler whose sweep is not reversible takes a further
    argument ``reverse`` and sets ``gibbs_is_reversible = False``.
    """

    requires = ("gibbs",)

    def move(self, path, state, levels, stream, reverse=False):
        if reverse and not getattr(path, "gibbs_is_reversible", True):
            return path.gibbs(state, levels, stream, reverse=True)
        return path.gibbs(state, levels, stream)

    def anneal(self, path, state, levels, stream, reverse=False):
        if hasattr(path, "gibbs_anneal"):
            return path.gibbs_anneal(state, levels, stream, reverse)
        return super().anneal(path, state, levels, stream, reverse)

    def exchange(self, path, state, levels, ends, shift, n_scans, stream):
        if hasattr(path, "gibbs_exchange"):
            return path.gibbs_exchange(state, levels, ends, shift, n_scans, stream)
        return super().exchange(path, state, levels, ends, shift, n_scans, stream)

    def temper(self, path, state, levels, log_prior, n_redraws, sweeps_per_redraw, stride, stream):
        if hasattr(path, "gibbs_temper"):
            return path.gibbs_temper(state, levels, log_prior, n_redraws, sweeps_per_redraw, stride, stream)
        return super().temper(path, state, levels, log_prior, n_redraws, sweeps_per_redraw, stride, stream)

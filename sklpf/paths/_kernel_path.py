"""KernelPath: what paths share whose Gibbs sweeps are numba kernels."""

from __future__ import annotations

import importlib

import numpy as np
from numpy.typing import NDArray

from sklpf._random import Stream
from sklpf.paths._base import Path, map_state, n_chains


class KernelPath(Path):
    """A path whose programs are fused with its Gibbs sweeps, in numba kernels of one module.

    A subclass names that module in `_kernels` and defines `_pack`. The kernels ``anneal``, ``exchange`` and ``temper``
    work in place; they take `_arguments`, the arrays of the state, and what the methods here add.
    """

    _kernels: str

    def _pack(self) -> tuple:
        """Return the read-only arrays and numbers that the kernels need besides a state."""
        raise NotImplementedError

    @property
    def _packed(self):
        cached = self.__dict__.get("_pack_kept")
        if cached is None:
            cached = self.__dict__["_pack_kept"] = self._pack()
        return cached

    @property
    def _arguments(self) -> tuple:
        return (self._packed,)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_pack_kept"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.ladder = self.ladder.view()
        self.ladder.setflags(write=False)  # pickling forgets it, and kernels are compiled for read-only ladders

    # -- fused programs --------------------------------------------------------------------------
    def gibbs_anneal(self, state, levels, stream, reverse=False):
        """Fused form of `Transition.anneal` for Gibbs sweeps."""
        state, log_weights = map_state(np.array, state), np.zeros(n_chains(state))
        self._run("anneal", state, self.ladder[levels], reverse, keys(stream), log_weights)
        return state, log_weights

    def gibbs_exchange(self, state, levels, ends, shift, n_scans, stream):
        """Fused form of `Transition.exchange` for Gibbs sweeps."""
        state, levels, ends = map_state(np.array, state), np.array(levels), np.array(ends)
        n_levels = len(self.ladder)
        sums = np.zeros((len(levels) // n_levels, n_levels - 1, 5))
        trips = np.zeros(len(sums), dtype=np.int64)
        self._run("exchange", state, levels, ends, self.ladder, shift, n_scans, keys(stream), sums, trips)
        return state, levels, ends, sums, trips

    def gibbs_temper(self, state, levels, log_prior, n_redraws, sweeps_per_redraw, stride, stream):
        """Fused form of `Transition.temper` for Gibbs sweeps."""
        from sklpf.transitions._kernels import Q_OFFSET

        state, levels = map_state(np.array, state), np.array(levels)
        shape = (len(levels), len(self.ladder))
        q_sums, counts = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        vectors = np.empty((-(-n_redraws // stride), *shape))
        vector_levels = np.empty(vectors.shape[:2], dtype=np.int64)
        self._run(
            "temper", state, levels, self.ladder, log_prior, n_redraws, sweeps_per_redraw, stride, keys(stream),
            q_sums, counts, vectors, vector_levels,
        )  # fmt: skip
        with np.errstate(divide="ignore"):
            return state, levels, np.log(q_sums) - Q_OFFSET, counts, vectors, vector_levels

    def _run(self, kernel: str, state, *arguments) -> None:
        getattr(importlib.import_module(self._kernels), kernel)(*self._arguments, *state, *arguments)


def keys(stream: Stream):
    """Where a block stands in its random stream, as kernels want it."""
    from sklpf.transitions._kernels import Keys

    return Keys(*stream.key, stream.chain, stream.step)


def read_only(array, dtype=np.float64) -> NDArray:
    """Return a read-only, C-contiguous view or copy: what kernels are compiled for."""
    array = np.ascontiguousarray(array, dtype=dtype).view()
    array.setflags(write=False)
    return array

"""KernelPath: what paths share whose densities and Gibbs sweeps are numba kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream
from sklpf.paths._base import Path, map_state, n_chains


class CompiledPrograms:
    """A path with programs that are compiled for it, in the module of numba kernels that `_kernels`
    names.

    A subclass defines `_pack`. Programs run on `packed` and a state that they change in place.
    """

    _kernels: str
    ladder: Array
    n_rows: int | None

    def kernel(self, name: str) -> Any:
        """Return one of the compiled programs.

        Parameters
        ----------
        name : str
            Of a program, as in `sklpf.kernels`.

        Returns
        -------
        callable
            Compiled for this kind of path.
        """
        from sklpf.kernels import _programs

        return _programs.compiled(getattr(_programs, name), self._kernels)

    def _pack(self) -> Any:
        """Return the NamedTuple of read-only arrays and numbers that the hooks are chosen by and
        work on.
        """
        raise NotImplementedError(f"{type(self).__name__} must define _pack()")

    @property
    def packed(self) -> Any:
        """The model as the kernels want it."""
        cached = self.__dict__.get("_pack_kept")
        if cached is None:
            if self.n_rows is not None:
                raise ValueError(
                    "this path has one log Z for each row of X: choose one with row(t)"
                )
            cached = self.__dict__["_pack_kept"] = self._pack()
        return cached

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_pack_kept"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        # Pickling forgets that the ladder is read-only, which kernels are compiled for.
        self.ladder = self.ladder.view()
        self.ladder.setflags(write=False)


class KernelPath(CompiledPrograms, Path):
    """A path whose hooks are implemented in a module of numba kernels (see `sklpf.kernels`)."""

    def move_at_target(self, state: Any, n_sweeps: int, stream: Stream) -> None:
        """Make sweeps of all chains at the target, in place.

        Parameters
        ----------
        state : NamedTuple
            The chains.
        n_sweeps : int
            Number of sweeps.
        stream : Stream
            Random numbers.
        """
        n = n_chains(state)
        betas = np.ones((n_sweeps + 1, n))
        self.kernel("anneal")(self.packed, state, betas, False, stream.keys, np.zeros(n))

    def log_f(self, state: Any, levels: Integers) -> Array:
        """Return log f_k of every chain at its own level, in nats."""
        out = np.empty(n_chains(state))
        self.kernel("log_f")(self.packed, state, self.ladder[levels], out)
        return out

    def log_f_ladder(self, state: Any) -> Array:
        """Return log f_k of every chain at every level, shape (n, K), in nats."""
        out = np.empty((n_chains(state), len(self.ladder)))
        self.kernel("log_f_ladder")(self.packed, state, self.ladder, out)
        return out

    def derivatives(self, state: Any, levels: Integers) -> Array:
        """Return U = d log f / d beta and dU / dbeta of every chain at its own level,
        shape (n, 2).
        """
        out = np.empty((n_chains(state), 2))
        self.kernel("log_f_derivatives")(self.packed, state, self.ladder[levels], out)
        return out

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary."""
        raise NotImplementedError

    def summary(self, state: Any) -> Array:
        """Return what tells the modes of the target apart, of every chain, shape (n,
        n_summaries).
        """
        out = np.empty((n_chains(state), self.n_summaries))
        self.kernel("summaries")(self.packed, state, out)
        return out

    def gibbs(self, state: Any, levels: Integers, stream: Stream, reverse: bool = False) -> Any:
        """One Gibbs sweep of every chain at its level, or its time reversal."""
        return self._sweep(state, self.ladder[levels], stream, reverse)

    def _sweep(self, state, betas, stream, reverse=False):
        state = map_state(np.array, state)
        unweighted = np.stack([betas, betas])
        self.kernel("anneal")(
            self.packed, state, unweighted, reverse, stream.keys, np.zeros(len(betas))
        )
        return state


def values_at(density: Any, position: Array) -> Any:
    """Return log f_0, log f_1 - log f_0 and their gradients at points (n, d), of a compiled
    density: (n,), (n,), (n, d) and (n, d), in nats.
    """
    from sklpf.kernels import compiled
    from sklpf.kernels._densities import Values, write_values

    n, d = position.shape
    values = Values(np.empty(n), np.empty(n), np.empty((n, d)), np.empty((n, d)))
    write = compiled(write_values, type(density).__module__)
    write(density, read_only(position), values)
    return values


def density_at(density: Any, position: Array) -> tuple[NDArray, NDArray]:
    """Return log f and its gradient at points (n, d), of a compiled density: (n,) in nats, and
    (n, d).
    """
    from sklpf.kernels import compiled
    from sklpf.kernels._densities import write_density

    n, d = position.shape
    log_density = np.empty(n)
    slope = np.empty((n, d))
    write = compiled(write_density, type(density).__module__)
    write(density, read_only(position), log_density, slope)
    return log_density, slope


def read_only(array, dtype=np.float64) -> NDArray:
    """Return a read-only, C-contiguous view or copy: what kernels are compiled for."""
    array = np.ascontiguousarray(array, dtype=dtype).view()
    array.setflags(write=False)
    return array

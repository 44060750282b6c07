"""Matrix products by BLAS, on parts of matrices, and threads that wait for one another."""

import os
from typing import NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.linalg import _BLAS

from sklpf.kernels._compile import inlined

_SPINS = 1000  # looks at the others, 20 µs or so, before a thread lets others have its core
_LINE = 16  # numbers of int64 between two threads' counts: two lines of the cache
_SINGLE = np.int8(ord("s"))
_AS_IS = np.int8(ord("n"))
_TRANSPOSED = np.int8(ord("t"))

_gemm = _BLAS().numba_xxgemm(types.float32)
_yield = types.ExternalFunction(
    "SwitchToThread" if os.name == "nt" else "sched_yield", types.intc()
)


@inlined
def add_product(out, keep, a, b, a_transposed, b_transposed):
    """out = a @ b + keep * out, of one thread.

    Parameters
    ----------
    out : array of shape (m, n)
    keep : float
        What is left of `out`; with 0 it may hold anything.
    a, b : array of shape (m, k) and (k, n)
        All are float32 and lie by rows, which may be parts of longer ones; (k, m) and (n, k) where
        they are to be transposed.
    """
    m, n = out.shape
    k = a.shape[0] if a_transposed else a.shape[1]
    one = np.ones(1, np.float32)
    beta = np.full(1, keep, np.float32)
    # BLAS thinks in columns: what it takes for out is the transpose of out.
    _gemm(
        _SINGLE,
        _TRANSPOSED if b_transposed else _AS_IS,
        _TRANSPOSED if a_transposed else _AS_IS,
        n,
        m,
        k,
        one.ctypes,
        b.ctypes,
        b.strides[0] // 4,
        a.ctypes,
        a.strides[0] // 4,
        beta.ctypes,
        out.ctypes,
        out.strides[0] // 4,
    )


class Team(NamedTuple):
    """Threads that run one kernel at the same time, each on its share of every step."""

    thread: int  # number of this one
    n_threads: int
    arrived: np.ndarray  # (n_threads * 16,) int64, zeros: how often each has waited for the others


def team(n_threads: int) -> list[Team]:
    """Members of a team, for each thread the one that its kernel takes."""
    arrived = np.zeros(n_threads * _LINE, np.int64)
    return [Team(thread, n_threads, arrived) for thread in range(n_threads)]


@intrinsic
def _fence(typing_context):
    """What was written before is seen by other threads, and what they wrote is read anew."""

    def emit(context, builder, signature, arguments):
        builder.fence("seq_cst")
        return cgutils.get_null_value(context.get_value_type(types.none))

    return types.none(), emit


@inlined
def wait_for_all(team):
    """Wait until all threads of a team have come here."""
    if team.n_threads > 1:
        arrived = team.arrived
        _fence()
        number = arrived[team.thread * _LINE] + 1
        arrived[team.thread * _LINE] = number
        for other in range(team.n_threads):
            spins = 0
            _fence()
            while arrived[other * _LINE] < number:
                spins += 1
                if spins > _SPINS:
                    _yield()
                _fence()

"""Threads that run one kernel at the same time and wait for one another."""

import os
from typing import NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sklpf.kernels._compile import borrowing

_SPINS = 1000  # looks at the others, 20 µs or so, before a thread lets others have its core
_LINE = 16  # numbers of int64 between two threads' counts: two lines of the cache

_yield = types.ExternalFunction(
    "SwitchToThread" if os.name == "nt" else "sched_yield", types.intc()
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
    """Memory fence: earlier writes are seen by other threads, and theirs are read anew."""

    def emit(context, builder, signature, arguments):
        builder.fence("seq_cst")
        return cgutils.get_null_value(context.get_value_type(types.none))

    return types.none(), emit


@borrowing
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

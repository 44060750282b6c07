"""Transition: a move that leaves every level of a path invariant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklpf._random import Stream
from sklpf.paths import Path
from sklpf.paths._capabilities import require


class Transition(BaseEstimator):
    """A move on the states of a path. Subclasses define `move` and name the groups of capabilities that they need.

    Beside the path's state a move may keep a memory of its own (a direction, a momentum): a tuple of arrays with one
    entry a chain, which `init` makes and `move` hands on.
    """

    requires: tuple[type, ...] = ()
    _parameter_constraints: dict[str, Any] = {}

    def check(self, path: Path) -> None:
        """Raise TypeError if the path lacks a capability of this transition, ValueError for its parameters."""
        self._validate_params()
        for group in self.requires:
            require(path, group, type(self).__name__)

    def init(self, path: Path, state: Any, stream: Stream) -> tuple:
        """Return the memory of chains that start, drawn from its stationary distribution; empty where there is none."""
        return ()

    def tune(self, path: Path, key: tuple[int, int]) -> Transition:
        """Return the transition with what a pilot found, as functions of beta, and frozen; again, it returns itself.

        With ``ladder="adaptive"`` a transition without a `pilot` is tuned twice: on an even ladder, and on the one that
        its spread there gives.
        """
        return self

    @property
    def pilot(self) -> Any:
        """What `tune` found, or None: ``betas``, the ``spread`` of log f_1 - log f_0 there, ``n_moves``, step(betas).

        Of a move with a pilot paths with rows also read ``step_size`` and ``target_acceptance``.
        """
        return None

    def move(
        self,
        path: Path,
        state: Any,
        memory: tuple,
        levels: NDArray[np.int64],
        stream: Stream,
        reverse: bool = False,
    ) -> tuple[Any, tuple]:
        """Return state and memory after one move of every chain at its level; `reverse` asks for the time reversal."""
        raise NotImplementedError(f"{type(self).__name__} must define move")

    def auxiliary(self, memory: tuple) -> tuple:
        """Return what of the memory has a stationary distribution of its own, independent of the state."""
        return memory

    def accepted(self, memory: tuple) -> NDArray[np.float64] | None:
        """Return the sum of the acceptance probabilities of every chain's moves so far; None if none is rejected."""
        return None

    def compiled(self, path: Path) -> Any:
        """Return what the compiled programs of the path know this move by, or None if it is made in plain loops."""
        return None

"""Transition: a move that leaves every level of a path invariant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sklpf._utils.random import Stream
from sklpf._utils.sklearn import Parameters
from sklpf.paths import Path
from sklpf.paths._capabilities import require


class Transition(Parameters, BaseEstimator):
    """A move on the states of a path. Subclasses define `move` and name the groups of capabilities
    that they need.

    Beside the path's state a move may keep a memory of its own (a direction, a momentum): a tuple
    of arrays with one entry a chain, which `init` makes and `move` hands on.

    Examples
    --------
    >>> from sklpf import AIS, BernoulliRBM
    >>> from sklpf.transitions import Transition
    >>> class Twice(Transition):
    ...     def move(self, path, state, memory, levels, stream, reverse=False):
    ...         for part in (stream, stream.aside("second sweep")):
    ...             state = path.gibbs(state, levels, part)
    ...         return state, memory
    >>> rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    >>> AIS(n_temperatures=20, transition=Twice(), random_state=0).fit(rbm).converged_
    True
    """

    requires: tuple[type, ...] = ()
    # Chains of several rows can move in one array (see `TunedTransition.side_by_side`): all that
    # `move` takes from the transition are `steps_at`, and all random numbers are drawn by chain.
    joins_rows: bool = False
    _parameter_constraints: dict[str, Any] = {}

    def check(self, path: Path) -> None:
        """Raise TypeError if the path lacks a capability of this transition, ValueError for its
        parameters.

        Parameters
        ----------
        path : Path
            What is moved on.
        """
        self._validate_params()
        for group in self.requires:
            require(path, group, type(self).__name__)

    def init(self, path: Path, state: Any, stream: Stream) -> tuple:
        """Return the memory of chains that start, drawn from its stationary distribution.

        Parameters
        ----------
        path : Path
            What is moved on.
        state : array or tuple of arrays
            The chains, along the first axis of each array.
        stream : Stream
            Where all random numbers come from.

        Returns
        -------
        tuple of arrays
            Chains first; empty where nothing is remembered.
        """
        return ()

    def tune(self, path: Path, key: tuple[int, int]) -> Transition:
        """Return the transition with what a pilot found, as functions of beta, and frozen; again,
        it returns itself.

        With ``ladder="adaptive"`` a transition without a `pilot` is tuned twice: on an even ladder,
        and on the one that its spread there gives.

        Parameters
        ----------
        path : Path
            What is moved on.
        key : tuple of two int
            Of the pilot's random numbers, as `stream_key` gives it.

        Returns
        -------
        Transition
            A frozen copy; the move itself where it has nothing to tune.
        """
        return self

    @property
    def pilot(self) -> Any:
        """What `tune` found, or None: ``betas``, the ``spread`` of log f_1 - log f_0 there,
        ``n_moves``, step(betas).

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
        """Make one move of every chain at its level.

        Parameters
        ----------
        path : Path
            What is moved on.
        state : array or tuple of arrays
            The chains, along the first axis of each array.
        memory : tuple of arrays
            As `init` or the last move left it.
        levels : ndarray of shape (n,)
            The level of each chain.
        stream : Stream
            Where all random numbers come from.
        reverse : bool, default=False
            Whether the time reversal of the move is wanted.

        Returns
        -------
        state : array or tuple of arrays
            After the move; the one given is not changed.
        memory : tuple of arrays
            After the move.
        """
        raise NotImplementedError(f"{type(self).__name__} must define move")

    def auxiliary(self, memory: tuple) -> tuple:
        """Return the part of the memory that has a stationary distribution of its own, independent
        of the state.

        Parameters
        ----------
        memory : tuple of arrays
            As `init` or the last move left it.

        Returns
        -------
        tuple of arrays
            All of the memory, unless a move says otherwise.
        """
        return memory

    def accepted(self, memory: tuple) -> NDArray[np.float64] | None:
        """Return the sum of the acceptance probabilities of every chain's moves so far.

        Parameters
        ----------
        memory : tuple of arrays
            As `init` or the last move left it.

        Returns
        -------
        ndarray of shape (n,) or None
            None if no move is ever rejected.
        """
        return None

    def compiled(self, path: Path) -> Any:
        """Return what the compiled programs of a path know this move by.

        Parameters
        ----------
        path : Path
            What is moved on.

        Returns
        -------
        NamedTuple or None
            None if it is made in plain loops.
        """
        return None

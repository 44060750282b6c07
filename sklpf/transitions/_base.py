"""Transition: a move that leaves every level of a path invariant, also of chains of several rows of
data in one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import RowStreams, Stream
from sklpf._utils.sklearn import BaseEstimator
from sklpf._utils.validation import ValidatedParameters
from sklpf.paths import Path, State, require

_FIRST = np.zeros(1, dtype=np.int64)


def stream_uniforms(stream: Stream | RowStreams, n: int, purpose: int) -> Array:
    """Return a uniform number in (0, 1) for each of n chains of a stream, exact in float32; another
    purpose gives other numbers.
    """
    from sklpf.kernels._random import uniforms

    out = np.empty(n)
    for row_stream, chains in stream.rows():
        uniforms(row_stream.keys, purpose, out[chains])
    return out


class Transition(ValidatedParameters, BaseEstimator):
    """A move on the states of a path. Subclasses define `move` and name the optional methods of
    paths that they need, as ``requires = ("position", "gradients")``.

    Beside the path's state a move may keep auxiliary variables (a direction, a momentum): a tuple
    of arrays with one entry a chain, which `init` makes and `move` hands on.

    Attributes
    ----------
    pilot : object or None
        What `tune` found: ``betas``, the ``spread`` of log f_1 - log f_0 there, ``n_moves``,
        step(betas). Of a move with a pilot paths with rows also read ``step_size`` and
        ``target_acceptance``.

    Examples
    --------
    >>> from sklpf import AIS, BernoulliRBM
    >>> from sklpf.transitions import Transition
    >>> class Twice(Transition):
    ...     def move(self, path, state, auxiliary, levels, stream, reverse=False):
    ...         for part in (stream, stream.of("second sweep")):
    ...             state = path.gibbs(state, levels, part)
    ...         return state, auxiliary
    >>> rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    >>> AIS(n_temperatures=20, transition=Twice(), random_state=0).fit(rbm).converged_
    True
    """

    requires: tuple[str, ...] = ()
    # Chains of several rows can move in one array (see `TunedTransition.batch_rows`): all that
    # `move` takes from the transition are `steps_at`, and all random numbers are drawn by chain.
    joins_rows: bool = False
    pilot: Any = None
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
        for name in self.requires:
            require(path, name, type(self).__name__)

    def init(self, path: Path, state: State, stream: Stream) -> tuple:
        """Return auxiliary variables of chains that start, from their stationary distribution.

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

    def start(self, path: Path, state: State, stream: Stream) -> tuple:
        """Return what `init` gives, from numbers that the state was not drawn with.

        Parameters
        ----------
        path : Path
            What is moved on.
        state : array or tuple of arrays
            The chains, along the first axis of each array.
        stream : Stream
            Where the numbers of the state came from.

        Returns
        -------
        tuple of arrays
            As of `init`.
        """
        return self.init(path, state, stream.of("memory"))

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

    def move(
        self,
        path: Path,
        state: State,
        auxiliary: tuple,
        levels: Integers,
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
        auxiliary : tuple of arrays
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
        auxiliary : tuple of arrays
            After the move.
        """
        raise NotImplementedError(f"{type(self).__name__} must define move")

    def random_auxiliary(self, auxiliary: tuple) -> tuple:
        """Return the auxiliary variables that are random, with a stationary distribution
        independent of the state.

        Parameters
        ----------
        auxiliary : tuple of arrays
            As `init` or the last move left it.

        Returns
        -------
        tuple of arrays
            All auxiliary variables, unless a move says otherwise.
        """
        return auxiliary

    def accepted(self, auxiliary: tuple) -> Array | None:
        """Return the sum of the acceptance probabilities of every chain's moves so far.

        Parameters
        ----------
        auxiliary : tuple of arrays
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


class RowBatch(NamedTuple):
    """Path, move and stream of the chains of several rows, row after row; of one row its own path
    and move.
    """

    path: Any  # of all chains, on the ladders of all rows, one after the other
    transition: Any
    stream: Any
    first_levels: Integers  # (n_rows,): where the ladder of each row begins


def batch_rows(rows: Sequence[Any], streams: Sequence[Stream], n_chains: int) -> RowBatch:
    """Return what n chains of each row move on; a row has a `path` and a `transition`."""
    if len(rows) == 1:
        return RowBatch(rows[0].path, rows[0].transition, streams[0], _FIRST)
    first_levels = np.cumsum([0, *(len(row.path.ladder) for row in rows[:-1])])
    path = rows[0].path.batch_rows([row.path for row in rows], n_chains)
    path.ladder = np.concatenate([row.path.ladder for row in rows])
    transition = rows[0].transition.batch_rows(rows, path.ladder)
    return RowBatch(path, transition, RowStreams(streams, n_chains), first_levels)


def acceptance(
    path: Path, state: State, proposal: State, levels: Integers, *log_ratios: Array
) -> Array:
    """Return the acceptance probabilities (n,) of proposals (Hastings 1970), where log f and the
    log ratios to be added rise; 0 where their sum is NaN.
    """
    new = path.log_f(proposal, levels)
    old = path.log_f(state, levels)
    with np.errstate(invalid="ignore", over="ignore"):
        log_ratio = sum(log_ratios, new - old)
    return np.where(np.isnan(log_ratio), 0.0, np.exp(np.minimum(log_ratio, 0.0)))

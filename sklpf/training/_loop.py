"""The loop over passes that models train with: what is said, who is called, and when it ends or has
settled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from sklpf._utils.progress import clock, in_words, passes
from sklpf._utils.warnings import warn

_FADING = 2  # power of an update's number that its share of the average is proportional to
_SILENCE = 1.0  # seconds between two lines, but for the last


class RunningAverage:
    """By how much each update moves the average of the parameters (Polyak & Juditsky 1992).

    A trainer moves the average by a share of its distance to the parameters after each update. With
    `average=True` the k-th update counts in proportion to k ** 2 (polynomial decay, Shamir & Zhang
    2013), so that the average forgets where training began, and may end at any time. With a number
    of rows all updates after these count alike.

    Parameters
    ----------
    average : bool or int
        As of the model.
    n_rows : int, default=0
        Rows that training has seen.
    n_averaged : int, default=0
        Updates in the average.

    """

    def __init__(self, average: bool | int, n_rows: int = 0, n_averaged: int = 0):
        self.first_row = int(average)
        self.power = _FADING if average is True else 0
        self.n_rows = n_rows
        self.n_averaged = n_averaged if average else 0

    def shares(self, batches: NDArray[np.integer]) -> NDArray[np.float32]:
        """Shares of the next updates, which see batches of as many rows; 0 where none is averaged
        yet.

        Parameters
        ----------
        batches : ndarray of shape (n,)
            Rows of each batch.

        Returns
        -------
        ndarray of shape (n,)
            In float32.
        """
        n_rows = self.n_rows + np.cumsum(batches)
        averaged = (self.first_row > 0) & (n_rows >= self.first_row)
        number = self.n_averaged + np.cumsum(averaged)
        self.n_rows = int(n_rows[-1])
        self.n_averaged = int(number[-1])
        shares = (self.power + 1) / (self.power + np.maximum(number, 1))
        return np.where(averaged, shares, 0).astype(np.float32)


def train(
    trainer: Any,
    n_passes: int,
    *,
    report: Callable[[Any, int], str] | None = None,
    callbacks: Iterable[Callable[[Any, int], bool | None]] = (),
    store: Callable[[Any], Any] | None = None,
) -> tuple[int, bool]:
    """Make passes over the data until one of the callbacks ends it.

    Within `fit` of a model every pass is a task of the callbacks of scikit-learn, which may end
    training as well.

    Parameters
    ----------
    trainer : object
        Its ``run()`` makes a pass.
    n_passes : int
        Most passes.
    report : callable or None, default=None
        Says in words what the trainer has arrived at after the pass (from 1). It is only called
        within `fit` of a model with `verbose`, after the first and the last pass and at most once a
        second between them. The line also says how long the pass took and how long all others may
        take.
    callbacks : iterable of callable, default=()
        All called with the trainer and the pass, after it and before the line. One that returns
        true ends training.
    store : callable or None, default=None
        ``store(model)`` writes to a model what the trainer has arrived at: callbacks of
        scikit-learn that want a fitted model after a pass are given a copy that was written to.

    Returns
    -------
    n_passes : int
        Passes made.
    ended : bool
        Whether one of `callbacks` ended it.
    """
    said = -math.inf
    with passes(n_passes) as progress:
        for iteration in range(1, n_passes + 1):
            began = clock()
            if progress is not None:
                progress.begin("pass", 0)
            trainer.run()
            ended = [callback(trainer, iteration) for callback in callbacks]
            stop = False
            if progress is not None:
                is_last = any(ended) or iteration == n_passes
                if progress.verbose and (is_last or clock() - said > _SILENCE):
                    said = clock()
                    words = None if report is None else report(trainer, iteration)
                    progress.say(_line(iteration, n_passes, words, clock() - began))
                stop = progress.end(store)
            if any(ended) or stop:
                return iteration, any(ended)
    return n_passes, False


def check_not_diverged(*parameters: Any) -> None:
    """Check that training has not diverged.

    Parameters
    ----------
    *parameters : array-like
        Learned parameters.

    Raises
    ------
    ValueError
        If a parameter is not finite.
    """
    if not all(np.all(np.isfinite(part)) for part in parameters):
        raise ValueError(
            "training diverged: the parameters are no longer finite; lower learning_rate if there"
            " is one, or rescale X"
        )


def _line(iteration, n_passes, words, seconds) -> str:
    """A pass, what it has arrived at, its time, and how long all that are left may take."""
    parts = [f"pass {iteration} of {n_passes}", words, in_words(seconds)]
    if iteration < n_passes:
        parts.append(f"at most {in_words(seconds * (n_passes - iteration))} left")
    return ", ".join(part for part in parts if part)


_LOWERED = 0.3  # what the learning rate is multiplied by
_FEWEST_RATES = 3  # that are tried before training ends


def has_settled(losses: Sequence[float], tol: float, n_passes: int) -> bool:
    """Whether the mean of the last losses is not below that of as many before by `tol`."""
    if len(losses) < 2 * n_passes:
        return False
    before, after = np.reshape(losses[-2 * n_passes :], (2, n_passes)).mean(axis=1)
    return bool(before - after <= tol)


def warn_unsettled(n_passes: int, what: str = "training", remedy: str = "max_iter or tol") -> None:
    """Warn that what is learned still changes after so many passes, and say what to raise."""
    warn(f"{what} has not settled after {n_passes} passes: raise {remedy}", ConvergenceWarning)


class Settled:
    """A callback of `train` that keeps the loss after every pass, lowers the learning rate, and
    ends training.

    A trainer with a `learning_rate` goes on with a lower one when its loss has settled, and ends
    when it has with the third too.

    Parameters
    ----------
    loss : callable
        Loss, a function of the trainer's parameters (P,).
    tol : float
        In the unit of the loss: it has settled when its mean is not lower by more than that.
    n_passes : int
        Number of passes that a mean is taken over.

    Examples
    --------
    >>> from sklpf.training import Settled, train
    >>> class Halving:
    ...     parameters = 1.0
    ...
    ...     def run(self):
    ...         self.parameters /= 2
    >>> train(Halving(), 100, callbacks=[Settled(float, tol=0.01, n_passes=2)])[1]
    True
    """

    def __init__(self, loss: Callable[[Any], float], tol: float, n_passes: int):
        self.loss = loss
        self.tol = tol
        self.n_passes = n_passes
        self.curve: list[float] = []
        self.n_rates = 1
        self.began = 0

    def __call__(self, trainer: Any, iteration: int) -> bool:
        self.curve.append(self.loss(trainer.parameters))
        if not has_settled(self.curve[self.began :], self.tol, self.n_passes):
            return False
        if not hasattr(trainer, "learning_rate") or self.n_rates == _FEWEST_RATES:
            return True
        trainer.learning_rate *= _LOWERED
        self.n_rates += 1
        self.began = len(self.curve)
        return False


class Lowered:
    """A callback of `train` that lowers the learning rate after a half and three quarters of the
    passes, without a loss, and never ends training.

    Parameters
    ----------
    n_passes : int
        All passes that training makes.
    """

    def __init__(self, n_passes: int):
        self.at = {n_passes // 2, 3 * n_passes // 4}

    def __call__(self, trainer: Any, iteration: int) -> bool:
        if iteration in self.at and hasattr(trainer, "learning_rate"):
            trainer.learning_rate *= _LOWERED
        return False

"""When training has settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklpf._utils.warnings import warn

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

"""When training has settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_LOWERED = 0.3  # what the learning rate is multiplied by
_FEWEST_RATES = 3  # that are tried before training ends


class Settled:
    """A callback of `train` that keeps the loss after every pass, lowers the learning rate, and ends training.

    The loss has settled if its mean over the last passes is not below that over as many before by `tol`. A trainer with
    a `learning_rate` then goes on with a lower one, and ends when the third has settled too.

    Parameters
    ----------
    loss : callable
        Of the trainer's parameters (P,).
    tol : float
    n_passes : int
        That a mean is taken over.
    """

    def __init__(self, loss: Callable[[Any], float], tol: float, n_passes: int):
        self.loss, self.tol, self.n_passes = loss, tol, n_passes
        self.curve: list[float] = []
        self.n_rates, self.began = 1, 0

    def __call__(self, trainer: Any, iteration: int) -> bool:
        self.curve.append(self.loss(trainer.parameters))
        recent = self.curve[self.began :]
        if len(recent) < 2 * self.n_passes:
            return False
        before, after = np.reshape(recent[-2 * self.n_passes :], (2, self.n_passes)).mean(axis=1)
        if before - after > self.tol:
            return False
        if not hasattr(trainer, "learning_rate") or self.n_rates == _FEWEST_RATES:
            return True
        trainer.learning_rate *= _LOWERED
        self.n_rates, self.began = self.n_rates + 1, len(self.curve)
        return False

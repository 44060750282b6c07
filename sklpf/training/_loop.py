"""The loop over passes that models train with: what is printed, who is called, and when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any


def train(
    trainer: Any,
    n_passes: int,
    *,
    report: Callable[[Any, int, float], str] | None = None,
    callbacks: Iterable[Callable[[Any, int], bool | None]] = (),
) -> tuple[int, bool]:
    """Make passes over the data until one of the callbacks ends it.

    Parameters
    ----------
    trainer : object
        Its ``run()`` makes a pass.
    n_passes : int
        Most passes.
    report : callable or None, default=None
        Gives the line to print for the trainer, the pass (from 1) and its seconds. None prints nothing.
    callbacks : iterable of callable, default=()
        All called with the trainer and the pass, after it and before the line. One that returns true ends training.

    Returns
    -------
    n_passes : int
        Passes made.
    ended : bool
        Whether a callback ended it.
    """
    for iteration in range(1, n_passes + 1):
        began = time.time()
        trainer.run()
        ended = [callback(trainer, iteration) for callback in callbacks]
        if report is not None:
            print(report(trainer, iteration, time.time() - began))
        if any(ended):
            return iteration, True
    return n_passes, False

"""What models share that `partial_fit` trains on a stream of minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


class StreamMixin:
    """A model with `random_state` and `learning_rate_schedule` that learns minibatch by
    minibatch.
    """

    random_state: Any
    learning_rate_schedule: str

    def _stream_of_numbers(self) -> np.random.RandomState:
        """The generator that goes on from call to call of `partial_fit` and `gibbs`."""
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        return self.random_state_

    def _check_learns_streams(self) -> None:
        """Raise ValueError if a parameter asks for what has passes."""
        if self.learning_rate_schedule == "linear":
            raise ValueError(
                "partial_fit does not know after how many updates a linear schedule should arrive"
                ' at 0: set learning_rate_schedule="constant" and lower learning_rate between the'
                " calls, or call fit"
            )

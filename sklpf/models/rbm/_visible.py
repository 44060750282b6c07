"""What RBMs of any visible units keep of their training: weights, chains, and some of the rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sklpf._utils.sklearn import NOT_NEGATIVE, POSITIVE, Interval, StrOptions, at_least
from sklpf.models._enumerable_path import BinaryUnits

# of the parameters that `Trainer` reads
TRAINING: dict[str, Any] = {
    "n_components": [at_least(1)],
    "learning_rate": [POSITIVE],
    "batch_size": [at_least(1)],
    "average": ["boolean", Interval(Integral, 1, None, closed="neither")],
    "learning_rate_schedule": [StrOptions({"constant", "linear"})],
    "n_chains": [at_least(1), None],
    "weight_decay": [NOT_NEGATIVE],
}
_MOST_STARTS = 50  # rows, and chains, of training that are kept to look for regions


class TrainedByChains:
    """An RBM that learns by persistent contrastive divergence, as a `Trainer` takes it.

    A model has the parameters of `StreamMixin`, and may have other `_visible_units`.
    """

    _visible_units: BinaryUnits = BinaryUnits()
    track_trajectory = False
    _n_chains: int
    components_: Any
    intercept_visible_: Any

    def _set_weights(self, components, intercept_visible, intercept_hidden) -> None:
        """Set the weights, with chains whose hidden units are off, and no rows seen."""
        n_components, n_features = components.shape
        self.components_ = components
        self.intercept_visible_ = intercept_visible
        self.intercept_hidden_ = intercept_hidden
        self.h_samples_ = np.zeros((self._n_chains, n_components), dtype=components.dtype)
        self._n_features_out = n_components
        self._n_seen = 0
        self._visible_sum = np.zeros(n_features)
        for name in ("_training", "_trajectory"):
            self.__dict__.pop(name, None)

    def _count(self, X) -> None:
        """Add rows to the means of the visible units, and keep some of them."""
        some = np.linspace(0, X.shape[0] - 1, min(_MOST_STARTS, X.shape[0])).astype(int)
        rows = X[some]
        self._some_rows = (rows.toarray() if sp.issparse(rows) else rows) > 0.5
        self._n_seen += X.shape[0]
        self._visible_sum = self._visible_sum + np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
        self.visible_mean_ = self._visible_units.smoothed_means(self._visible_sum, self._n_seen)

    def _starts(self) -> NDArray | None:
        """Rows that training has left, from which chains look for regions of the model: some of its
        own, and the modes of p(v | h) of its chains; None without training.
        """
        if "_some_rows" not in self.__dict__:
            return None
        inputs = self.h_samples_[:_MOST_STARTS] @ self.components_ + self.intercept_visible_
        return np.concatenate([self._some_rows, self._visible_units.modes(inputs)])

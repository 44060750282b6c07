"""Training of the Bernoulli RBM: what lies between the model's attributes and the training kernel."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from sklpf._layout import LANES, aligned_zeros, padded
from sklpf._random import draw_seed, stream_key

_VALUES_AT_ONCE = 1 << 24  # of X whose non-zero values are listed at a time


class Trainer:
    """The weights of a model in both layouts of the kernel, its chains, the data, and the place in the random stream.

    Parameters
    ----------
    model : BernoulliRBM
        With `components_`, both intercepts and `h_samples_`.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    batch_size : int
        Rows in a minibatch; the last one is shorter if need be.
    rng : RandomState
        One number is drawn from it.
    """

    def __init__(self, model, X, batch_size: int, rng: np.random.RandomState):
        n_components, n_features = model.components_.shape
        self.by_visible = _zeros(n_features + 1, n_components)
        self.by_visible[:-1, :n_components] = model.components_.T
        self.by_visible[-1, :n_components] = model.intercept_hidden_
        self.by_hidden = _zeros(n_components + 1, n_features)
        self.by_hidden[:-1, :n_features] = model.components_
        self.by_hidden[-1, :n_features] = model.intercept_visible_
        self.h = np.array(model.h_samples_ != 0, dtype=np.uint8, order="C")
        self.X, self.batch_size = X, min(int(batch_size), X.shape[0])
        self.scratch = (
            _zeros(len(self.h), n_features),
            _zeros(self.batch_size + len(self.h), n_components),
        )
        self.learning_rate, self.step = float(model.learning_rate), 0
        self.key = stream_key(draw_seed(rng))
        at_once = max(1, _VALUES_AT_ONCE // (self.batch_size * n_features)) * self.batch_size
        self.chunks = list(gen_batches(X.shape[0], at_once))
        self.lists: tuple | None = None

    def run(self) -> None:
        """Make one pass over the data."""
        from sklpf.models.rbm._fit_kernels import train

        for rows in self.chunks:
            if self.lists is None or len(self.chunks) > 1:
                self.lists = _lists(self.X[rows])
            n = rows.stop - rows.start
            edges = np.array([*range(0, n, self.batch_size), n])
            train(
                self.by_visible, self.by_hidden, self.h, *self.scratch, *self.lists, edges,
                self.learning_rate, *self.key, self.step,
            )  # fmt: skip
            self.step += len(edges) - 1

    @property
    def parameters(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Weights (J, M), visible (M,) and hidden biases (J,); ValueError if training has diverged."""
        if not np.all(np.isfinite(self.by_hidden)):
            raise ValueError("training diverged: the weights are no longer finite; lower learning_rate or rescale X")
        n_visible, n_hidden = len(self.by_visible) - 1, len(self.by_hidden) - 1
        hidden_bias = self.by_visible[-1, :n_hidden]
        return self.by_hidden[:-1, :n_visible], self.by_hidden[-1, :n_visible], hidden_bias

    def store(self, model) -> None:
        """Write weights and chains to the model, in its dtype; ValueError if training has diverged."""
        dtype = model.components_.dtype
        parameters = (part.astype(dtype) for part in self.parameters)
        model.components_, model.intercept_visible_, model.intercept_hidden_ = parameters
        model.h_samples_ = self.h.astype(dtype)


def _zeros(n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Zeros with rows an odd number of cache lines apart, so that a column of tiles uses all of the cache's sets."""
    return aligned_zeros(n_rows, LANES * (padded(n_columns) // LANES | 1))


def _lists(X):
    """Non-zero values of X by row: indptr (int64), indices (int32), values (float32)."""
    if sp.issparse(X):
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        with np.errstate(over="ignore"):  # infinite values make training diverge, which is reported
            return X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float32)
    from sklpf.models.rbm._fit_kernels import compress

    n_values = np.count_nonzero(X)
    lists = np.zeros(len(X) + 1, np.int64), np.empty(n_values, np.int32), np.empty(n_values, np.float32)
    X = np.asarray(X).view()
    X.setflags(write=False)
    compress(X, *lists)
    return lists

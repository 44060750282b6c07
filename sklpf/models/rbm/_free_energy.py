"""What the parameters of an RBM say of rows of its visible units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot

from sklpf._utils.numbers import Array
from sklpf.models._enumerable_path import BinaryUnits
from sklpf.models._validation import rows_without

_ROWS_AT_ONCE = 1024  # of the float64 inputs of the hidden layer
_LARGEST_EXPONENT = 700.0  # of a product of exponentials that must stay finite


class Parameters(NamedTuple):
    """Weights and biases."""

    components: NDArray[np.floating]  # (J, M)
    intercept_visible: NDArray[np.floating]  # (M,)
    intercept_hidden: NDArray[np.floating]  # (J,)

    @classmethod
    def of(cls, model) -> Parameters:
        """Those of a fitted model."""
        return cls(model.components_, model.intercept_visible_, model.intercept_hidden_)

    def copy(self) -> Parameters:
        """Copies of all arrays."""
        return Parameters(*(part.copy() for part in self))

    def astype(self, dtype) -> Parameters:
        """All arrays, C-contiguous, of a type."""
        return Parameters(*(np.array(part, dtype=dtype, order="C") for part in self))

    def hidden_means(self, v) -> NDArray:
        """Probabilities of the hidden units given visible ones, (n, J)."""
        return expit(v @ self.components.T + self.intercept_hidden)

    def gibbs(self, h, rng, units: BinaryUnits) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Visible units drawn given hidden ones, and hidden ones given these, (n, M) and (n, J)."""
        inputs = h @ self.components + self.intercept_visible
        v = units.draw(inputs, rng, dtype=np.float32).astype(np.float32)
        mean = self.hidden_means(v)
        return v, (rng.random(mean.shape, dtype=np.float32) < mean).astype(np.float32)

    def log_f(self, v) -> Array:
        """log f of rows v, (n,)."""
        fields = (v @ self.components.T + self.intercept_hidden).astype(np.float64)
        linear = v @ self.intercept_visible.astype(np.float64)
        return linear + np.logaddexp(0, fields).sum(axis=1)

    def as_one(self) -> NDArray:
        """All parameters in one array (J + 1, M + 1), with 0 in the corner."""
        visible = np.append(self.intercept_visible, 0)
        return np.vstack([np.c_[self.components, self.intercept_hidden], visible])


def log_f(model, X) -> Array:
    """Log of the unnormalised probability of every row, the hidden units summed out, (n,)."""
    from sklpf.models.rbm._free_energy_kernels import softplus_sums

    bias = model.intercept_visible_.astype(np.float64)
    out = np.empty(X.shape[0])
    for rows, x, fields in _hidden_fields(model, X):
        softplus_sums(fields, out[rows])
        out[rows] += safe_sparse_dot(x, bias)
    return out


def pseudo_log_likelihood(model, X) -> Array:
    """The sum over visible units of log p(x_i | all other units of x) of every row, (n,)."""
    from sklpf.models.rbm import _free_energy_kernels as kernels

    by_visible = np.array(model.components_.T, dtype=np.float64, order="C")
    bias = model.intercept_visible_.astype(np.float64)
    out = np.empty(X.shape[0])
    most = int(_LARGEST_EXPONENT / max(np.abs(by_visible).max(), 1e-3))
    turned = (np.exp(by_visible), np.exp(-by_visible)) if most > 0 else None
    for rows, x, fields in _hidden_fields(model, X):
        x = x.toarray() if sp.issparse(x) else np.array(x, order="C")
        if turned and np.all((x == 0) | (x == 1)):
            kernels.pseudo_log_likelihood_binary(
                *turned, bias, x, expit(-fields), expit(fields), most, out[rows]
            )
        else:
            kernels.pseudo_log_likelihood(by_visible, bias, x, fields, out[rows])
    return out


def _hidden_fields(model, X):
    """Blocks of rows: (slice, rows as float64, input of the hidden units (n, n_components))."""
    weights = model.components_.T.astype(np.float64)
    bias = model.intercept_hidden_.astype(np.float64)
    for rows in gen_batches(X.shape[0], _ROWS_AT_ONCE):
        x = X[rows].astype(np.float64)
        yield rows, x, np.ascontiguousarray(safe_sparse_dot(x, weights, dense_output=True) + bias)


def binary_rows(X) -> NDArray[np.bool_]:
    """Which rows hold nothing but 0 and 1, (n,)."""
    if not sp.issparse(X):
        return np.all((X == 0) | (X == 1), axis=1)
    return rows_without(X, (X.data != 0) & (X.data != 1))


def short_run_mean(model) -> Array:
    """Visible means of 100 chains after 20 Gibbs sweeps from random hidden units, pulled a tenth of
    the way to those of units without inputs.

    Rounded, so that they do not depend on the number of BLAS threads.
    """
    rng = np.random.default_rng(0)
    parameters = Parameters.of(model)
    units = model._visible_units
    hidden = rng.random((100, len(parameters.components))) < 0.5
    for _ in range(20):
        inputs = hidden @ parameters.components + parameters.intercept_visible
        visible = units.draw(inputs, rng)
        hidden = rng.random(hidden.shape) < parameters.hidden_means(visible)
    mean = units.means(inputs).mean(axis=0, dtype=np.float64)
    return np.round(0.9 * mean + 0.1 * units.means(np.zeros(mean.shape)), 6)

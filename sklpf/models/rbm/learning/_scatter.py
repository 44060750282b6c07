"""How much the log-likelihood of an RBM scatters between the last passes of its training."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from sklpf._utils.parallel import one_blas_thread
from sklpf.models.rbm.learning._contrastive_divergence import Parameters

_N_PASSES = 5  # that are compared
_N_ROWS = 200  # of the data, and chains for the model
_N_SWEEPS = 5  # of the chains at each pass


class LastPasses:
    """A callback of `train` that keeps the parameters of the last passes."""

    def __init__(self):
        self.parameters: deque[Parameters] = deque(maxlen=_N_PASSES)

    def __call__(self, trainer, iteration: int) -> bool:
        """Keep those of this pass; never ends training."""
        self.parameters.append(Parameters(*(part.copy() for part in trainer.parameters)))
        return False


def log_likelihood_scatter(passes: Sequence[Parameters], X, h: NDArray, seed: int) -> float:
    """Standard deviation of the log-likelihood around its trend over consecutive passes.

    log f_b - log f_a is averaged over rows of the data; log Z_b - log Z_a is about its average over
    draws from both models, which Gibbs chains supply that start where the chains of training have
    ended.

    Parameters
    ----------
    passes : sequence of Parameters
        After each pass.
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
        Rows that training has seen.
    h : ndarray of shape (n_chains, n_components)
        Hidden units of the chains of training, after the last pass.
    seed : int

    Returns
    -------
    scatter : float
        In nats per row; NaN for fewer than three passes, as two have no scatter around a trend.
    """
    if len(passes) < 3:
        return np.nan
    rng = np.random.default_rng(seed)
    rows = X[np.linspace(0, X.shape[0] - 1, min(_N_ROWS, X.shape[0])).astype(int)]
    rows = rows.toarray() if sp.issparse(rows) else rows
    rows = np.asarray(rows, dtype=np.float32)
    h = np.resize(h, (_N_ROWS, h.shape[1])).astype(np.float32)

    draws = []
    with one_blas_thread(), np.errstate(over="ignore"):
        for parameters in passes:
            for _ in range(_N_SWEEPS):
                v, h = _sweep(parameters, h, rng)
            draws.append(v)
        gains = [
            _mean_ratio(a, b, rows)
            - 0.5 * (_mean_ratio(a, b, draws_a) + _mean_ratio(a, b, draws_b))
            for (a, b), (draws_a, draws_b) in zip(pairwise(passes), pairwise(draws))
        ]
    return _scatter_around_line(np.cumsum([0.0, *gains]))


def _sweep(parameters, h, rng):
    """Draw v given h, and h given v."""
    components, intercept_visible, intercept_hidden = parameters
    mean = expit(h @ components + intercept_visible)
    v = (rng.random(mean.shape, dtype=np.float32) < mean).astype(np.float32)
    mean = expit(v @ components.T + intercept_hidden)
    return v, (rng.random(mean.shape, dtype=np.float32) < mean).astype(np.float32)


def _mean_ratio(a, b, v) -> float:
    """Mean over rows v of log f_b(v) - log f_a(v)."""
    return float(np.mean(_log_f(b, v) - _log_f(a, v)))


def _log_f(parameters, v):
    """log f of rows v, (n,)."""
    components, intercept_visible, intercept_hidden = parameters
    fields = (v @ components.T + intercept_hidden).astype(np.float64)
    return v @ intercept_visible.astype(np.float64) + np.logaddexp(0, fields).sum(axis=1)


def _scatter_around_line(values) -> float:
    """Standard deviation of values around the straight line that fits them best."""
    time = np.arange(len(values))
    residuals = values - np.polyval(np.polyfit(time, values, 1), time)
    return float(np.sqrt(np.sum(residuals**2) / (len(values) - 2)))

"""What generative models of real rows share: centred rows, chains for them, training by EM."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from sklpf._warnings import warn

_ENOUGH_CHAINS = 200  # of few rows each has several


def centred(model: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set the model's `mean_` and return the rows less it."""
    with np.errstate(over="ignore", invalid="ignore"):
        model.mean_ = X.mean(axis=0)
        X = X - model.mean_
        if not np.isfinite(np.sum(X**2)):
            raise ValueError("X holds values too large to be squared; rescale X")
    return X


def repeated(X: NDArray[np.float64], n_draws: int | None) -> NDArray[np.float64]:
    """Return the rows once for each chain; None: few rows have several."""
    return np.tile(X, (-(-_ENOUGH_CHAINS // len(X)) if n_draws is None else n_draws, 1))


def train_by_em(model: Any, em: Any) -> None:
    """Run an `EM` as the model's parameters say, keep its losses, and warn if they have not settled."""
    em.fit(model.max_iter, report=_report(model) if model.verbose else None)
    model.loss_curve_, model.n_iter_, model.converged_ = np.array(em.losses), len(em.losses), em.converged
    if not em.converged:
        warn(f"training has not settled after {model.max_iter} passes: raise max_iter or tol", ConvergenceWarning)


def check_latent(X: Any, n: int) -> NDArray[np.float64]:
    """Return values of n latent variables (n_samples, n) or raise ValueError."""
    X = check_array(X, dtype=np.float64, input_name="X")
    if X.shape[1] != n:
        raise ValueError(f"X must have a column for each of {n} latent variables, got {X.shape[1]}")
    return X


def _report(model):
    name = type(model).__name__
    return lambda em, iteration, seconds: f"[{name}] Pass {iteration}, loss = {em.losses[-1]:.3f}, {seconds:.2f}s"

"""A mixture of t distributions that is fitted to weighted points."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.random import systematic
from sklpf.paths import DEGREES_OF_FREEDOM, FittedParts, Mixture, with_tails

_MOST_PARTS = 30
_MOST_POINTS = (2000, 100)  # to which a mixture is fitted, or for each dimension
_PATIENCE = 2  # parts more than the best mixture has, beyond which none is tried
_POINTS_OF_A_PART = 3.0  # effective points that a part needs, for each dimension
_MOST_STEPS = 25  # of EM
_GAIN = 3e-3  # nats of the mean log-likelihood, by which EM goes on
_LEAST_WEIGHT = 1e-8  # of the largest: points below it are left out
_RIDGE = 1e-7  # of the variances, which keeps covariances invertible


def fit_mixture(points: Array, log_weights: Array, rng: np.random.Generator) -> Mixture:
    """Return a mixture of t distributions, a little wider than the points.

    EM of Gaussians by weights (as in Cappe et al. 2008), started by k-means++ in whitened
    coordinates, with as many parts as the Bayesian information criterion at the effective sample
    size asks for, its penalty halved: a part too few costs a proposal more than one too many.
    Covariances are widened by what few effective points leave unknown of them.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    log_weights : ndarray of shape (n,)
        Up to a constant, at least one finite.
    rng : numpy.random.Generator
        For where EM begins.

    Returns
    -------
    Mixture
    """
    weights = np.exp(log_weights - logsumexp(log_weights))
    kept = weights > _LEAST_WEIGHT * weights.max()
    x = points[kept]
    w = weights[kept] / weights[kept].sum()
    d = x.shape[1]
    n_fitted = max(_MOST_POINTS[0], _MOST_POINTS[1] * d)
    if len(x) > n_fitted:
        x = x[systematic(np.log(w), n_fitted, rng.random())]
        x, numbers = np.unique(x, axis=0, return_counts=True)
        w = numbers / n_fitted
    n_effective = 1 / np.sum(w**2)
    mean = w @ x
    spread = np.sqrt(w @ (x - mean) ** 2)
    # One point may have all the weight.
    spread = np.maximum(spread, 1e-6 * (1 + np.abs(mean)))
    scaled = (x - mean) / spread
    n_numbers = (d + 1) * (d + 2) / 2  # share, mean and covariance of a part

    best, least, n_worse = None, np.inf, 0
    most = int(np.clip(n_effective / (_POINTS_OF_A_PART * d), 1, _MOST_PARTS))
    for n_parts in range(1, most + 1):
        fitted = _fit_gaussians(scaled, w, n_parts, rng)
        if fitted is None:
            break
        criterion = -2 * n_effective * fitted[3] + 0.5 * n_parts * n_numbers * np.log(n_effective)
        n_worse += 1
        if criterion < least:
            best, least, n_worse = fitted, criterion, 0
        if n_worse == _PATIENCE:
            break
    assert best is not None  # one part can always be fitted
    shares, means, covariances, _, sizes = best
    # By so much variances are underestimated, where the mean log density of new points counts.
    widening = 1 + np.minimum(1.0, 2 * d / sizes)
    covariances = covariances * widening[:, np.newaxis, np.newaxis]
    covariances = covariances * np.outer(spread, spread)
    means = mean + spread * means
    parts = FittedParts(means, covariances, shares)
    tails = [with_tails(parts, df, widening=1.0) for df in DEGREES_OF_FREEDOM]
    return max(tails, key=lambda mixture: w @ mixture.log_density(x))


def _fit_gaussians(x: Array, w: Array, n_parts: int, rng: np.random.Generator) -> Any:
    """Shares, means, covariances, the mean log-likelihood and effective points of each part; None
    where a part has none.
    """
    n, d = x.shape
    ridge = _RIDGE * np.eye(d)
    whole = _covariances(x, w[:, np.newaxis], (w @ x)[np.newaxis])[0]
    n_effective = 1 / np.sum(w**2)
    if n_effective < 2 * d:  # too few for a covariance: that of independent coordinates
        ridge = np.diag(np.diag(whole)) * min(1.0, d / n_effective) + ridge
    parts = _started(x, w, whole + ridge, n_parts, rng)
    last = -np.inf
    for _ in range(_MOST_STEPS):
        joint_weights = parts * w[:, np.newaxis]
        sizes = joint_weights.sum(axis=0)
        effective = sizes**2 / np.maximum(np.sum(joint_weights**2, axis=0), 1e-300)
        if n_parts > 1 and not np.all(effective > 2 * d):
            return None
        means = joint_weights.T @ x / sizes[:, np.newaxis]
        covariances = _covariances(x, joint_weights / sizes, means) + ridge
        try:
            roots = np.linalg.inv(np.linalg.cholesky(covariances))
        except np.linalg.LinAlgError:
            return None
        z = np.einsum("kij,knj->kni", roots, x - means[:, np.newaxis])
        log_dets = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        joint = np.log(sizes) + log_dets - 0.5 * (np.sum(z**2, axis=2).T + d * LOG_TAU)
        total = logsumexp(joint, axis=1)
        parts = np.exp(joint - total[:, np.newaxis])
        log_likelihood = float(w @ total)
        if log_likelihood < last + _GAIN:
            break
        last = log_likelihood
    return sizes / sizes.sum(), means, covariances, log_likelihood, effective


def _covariances(x: Array, weights: Array, means: Array) -> Array:
    """Weighted covariances (K, d, d) of points, by columns of weights (n, K) that sum to 1."""
    centred = x - means[:, np.newaxis]
    return np.einsum("nk,kni,knj->kij", weights, centred, centred, optimize=True)


def _started(x: Array, w: Array, covariance: Array, n_parts: int, rng) -> Array:
    """Return the part that each point belongs to at first, (n, K), by k-means++."""
    y = x @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    distances = np.empty((len(x), n_parts))
    nearest = np.ones(len(x))
    for k in range(n_parts):
        chances = w * nearest
        centre = y[rng.choice(len(x), p=chances / chances.sum())]
        distances[:, k] = np.sum((y - centre) ** 2, axis=1)
        nearest = distances[:, : k + 1].min(axis=1)
        if not np.any(w * nearest > 0):
            return np.eye(n_parts)[distances[:, : k + 1].argmin(axis=1)]
    return np.eye(n_parts)[distances.argmin(axis=1)]

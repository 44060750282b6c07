"""MBAR: log normalisers of all levels from pooled samples of several (Shirts & Chodera 2008)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import as_float64
from sklpf.reweighting._newton import minimise

_FIXED_POINT_STEPS = 4
_RIDGE = 1e-12  # of the counts; keeps the Hessian invertible
_TOLERANCE = 1e-9  # nats by which a log normaliser may change in the last step
_SMALLEST_STEP = 1e-3  # of Newton's


def mbar(vectors: ArrayLike, counts: ArrayLike, start: ArrayLike | None = None):
    """Multistate Bennett acceptance ratio estimate of log Z_k - log Z_0.

    The samples of all levels, n_k of them drawn at level k, are pooled. With zeta_k = log Z_k the
    estimate minimises the convex function (Carlson et al. 2016, eq. 18, which is printed with the
    sign of its negative)

        J(zeta) = sum_i log sum_k n_k exp(log f_k(x_i) - zeta_k) + sum_k n_k zeta_k,

    by a few fixed-point steps (where no start is given) and then Newton's method, whose steps are
    halved until J does not rise. It needs samples that are in equilibrium at their own levels; how
    the levels were visited does not matter.

    Parameters
    ----------
    vectors : array-like of shape (N, K)
        log f_k(x_i) of every sample at every level, in nats. -inf is allowed where the density is
        0.
    counts : array-like of shape (K,)
        Number n_k of samples that were drawn at level k, N in all. Levels without samples are
        allowed: their normalisers follow from the samples of the others.
    start : array-like of shape (K,) or None, default=None
        First guess of log Z_k, in nats. The minimum is unique if the levels overlap; else it
        matters.

    Returns
    -------
    ndarray of shape (K,)
        log Z_k - log Z_0 in nats; entry 0 is 0.

    Raises
    ------
    ValueError
        If the arguments do not fit together.
    """
    all_vectors, all_counts = _check(vectors, counts)
    sampled = np.flatnonzero(all_counts)
    log_counts = np.log(all_counts[sampled])
    used = all_vectors[:, sampled]
    if start is not None:
        zeta = np.array(start, dtype=float)[sampled]
    else:
        zeta = np.zeros(len(sampled))
        for _ in range(_FIXED_POINT_STEPS):
            zeta = _self_consistent(used, _log_mixture(used, log_counts - zeta))
    zeta = _minimise(used, all_counts[sampled], zeta)
    curve = _self_consistent(all_vectors, _log_mixture(used, log_counts - zeta))
    return curve - curve[0]


def overlap_matrix(vectors: NDArray, counts: NDArray, zeta: NDArray) -> NDArray[np.float64]:
    """Overlap of the levels that have samples, in the symmetric form (Klimovich, Shirts & Mobley
    2015).

    O_kl = sum_i W_ik W_il / sqrt(n_k n_l), where W_ik = n_k f_k(x_i) / Z_k / sum_j n_j f_j(x_i) /
    Z_j is the probability that sample i came from level k. It has the eigenvalues of the stochastic
    matrix sum_i W_ik W_il / n_l: the largest is 1, and a second one near 1 says that levels fall
    into two parts that share no samples.

    Parameters
    ----------
    vectors, counts
        As in `mbar`.
    zeta : ndarray of shape (K,)
        log Z_k in nats, but for a constant.

    Returns
    -------
    ndarray of shape (K, K)
        With zeros where a level has no samples.
    """
    sampled = np.flatnonzero(counts)
    n = np.asarray(counts, dtype=float)[sampled]
    log_weights = vectors[:, sampled] + np.log(n) - np.asarray(zeta)[sampled]
    weights = np.exp(log_weights - _log_mixture(log_weights, 0.0))
    return weights.T @ weights / np.sqrt(np.outer(n, n))


def _check(vectors, counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    vectors = as_float64(vectors, "vectors")
    counts = as_float64(counts, "counts")
    if vectors.ndim != 2 or counts.shape != vectors.shape[1:]:
        raise ValueError(
            f"vectors must have the shape (N, K) and counts (K,), got {vectors.shape} and"
            f" {counts.shape}"
        )
    if np.any(counts < 0) or counts.sum() != len(vectors) or len(vectors) == 0:
        raise ValueError(
            f"counts must be the numbers of the {len(vectors)} samples at each level, got {counts}"
        )
    if np.any(np.isnan(vectors)) or np.any(vectors == np.inf):
        raise ValueError("vectors must not hold NaN or +inf: check the path's log_f")
    return vectors, counts


def _log_mixture(vectors, log_weights):
    """log sum_k exp(log f_k(x_i) + log_weights_k), shape (N, 1)."""
    terms = vectors + log_weights
    largest = terms.max(axis=1, keepdims=True)
    if not np.all(np.isfinite(largest)):
        raise ValueError(
            "vectors has samples with density 0 at every sampled level: check vectors and counts"
        )
    terms -= largest
    np.exp(terms, out=terms)
    return np.log(terms.sum(axis=1, keepdims=True)) + largest


def _self_consistent(vectors, log_mixture):
    """log sum_i f_k(x_i) / mixture(x_i), shape (K,): one step of the fixed-point iteration."""
    terms = vectors - log_mixture
    largest = terms.max(axis=0)
    return np.log(np.exp(terms - largest).sum(axis=0)) + largest


def _minimise(vectors, counts, zeta):
    log_counts = np.log(counts)

    def evaluate(zeta):
        log_mixture = _log_mixture(vectors, log_counts - zeta)
        return log_mixture.sum() + counts @ zeta, log_mixture

    return minimise(
        evaluate,
        lambda zeta, log_mixture: _newton_step(vectors + (log_counts - zeta) - log_mixture, counts),
        zeta,
        tol=_TOLERANCE,
        smallest=_SMALLEST_STEP,
        fallback=lambda zeta, log_mixture: _self_consistent(vectors, log_mixture) - zeta,
    )


def _newton_step(log_weights, counts):
    weights = np.exp(log_weights)
    share = weights.sum(axis=0)
    hessian = np.diag(share + _RIDGE * counts) - weights.T @ weights
    step = np.zeros(len(counts))
    step[1:] = np.linalg.solve(hessian[1:, 1:], share[1:] - counts[1:])
    return step

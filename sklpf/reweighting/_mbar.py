"""MBAR: log normalisers of all levels from pooled samples of several (Shirts & Chodera 2008)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.validation import as_float64
from sklpf.uncertainty import log_mean_exp

_BLOCK = 2**16  # entries of the vectors at once, which stay in the cache


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
    vectors, counts = _check(vectors, counts)
    sampled = np.flatnonzero(counts)
    n = counts[sampled]
    used = vectors if len(sampled) == len(counts) else vectors[:, sampled]
    if start is not None:
        zeta = np.array(start, dtype=float)[sampled]
    else:
        zeta = np.zeros(len(sampled))
        for _ in range(4):
            zeta = _self_consistent(used, n, zeta)

    def evaluate(zeta):
        sums = mixture_sums(used, n, zeta)
        return sums.log_mixture + n @ zeta, (sums.shares, sums.products, sums.shares - n)

    zeta = minimise(
        evaluate,
        zeta,
        tol=1e-9,  # nats by which a log normaliser may change in the last step
        smallest=1e-3,
        fallback=lambda zeta: _self_consistent(used, n, zeta) - zeta,
    )
    everywhere = np.zeros(len(counts))
    everywhere[sampled] = zeta
    curve = _self_consistent(vectors, counts, everywhere)
    return curve - curve[0]


class MixtureSums(NamedTuple):
    """Sums over samples of their weights W_ik = n_k f_k(x_i) / Z_k / mixture(x_i), with mixture =
    sum_j n_j f_j / Z_j, and 1 in the place of n_k of a level without samples.

    Attributes
    ----------
    log_mixture : float
        sum_i log mixture(x_i), in nats.
    shares : ndarray of shape (K,)
        sum_i W_ik. At the MBAR estimate of Z_k it is n_k, or 1 without samples.
    products : ndarray of shape (K, K)
        sum_i W_ik W_il.
    """

    log_mixture: float
    shares: Array
    products: Array


def mixture_sums(vectors: NDArray, counts: NDArray, zeta: NDArray) -> MixtureSums:
    """Return the sums of the samples' weights at all levels.

    Parameters
    ----------
    vectors, counts
        As in `mbar`.
    zeta : ndarray of shape (K,)
        log Z_k in nats, but for a constant.

    Returns
    -------
    MixtureSums
    """
    total = 0.0
    shares = np.zeros(len(counts))
    products = np.zeros((len(counts), len(counts)))
    for _, weights, log_mixture in mixture_weights(vectors, counts, zeta):
        total += log_mixture.sum()
        shares += weights.sum(axis=0)
        products += weights.T @ weights
    return MixtureSums(float(total), shares, products)


def mixture_weights(
    vectors: NDArray, counts: NDArray, zeta: NDArray
) -> Iterator[tuple[slice, Array, Array]]:
    """Yield the weights of samples at all levels, some samples at a time.

    Parameters
    ----------
    vectors, counts, zeta
        As in `mixture_sums`.

    Yields
    ------
    rows : slice
        Which samples.
    weights : ndarray of shape (n, K)
        W_ik of `MixtureSums`.
    log_mixture : ndarray of shape (n, 1)
        log sum_j n_j f_j(x_i) / Z_j, in nats.
    """
    sampled = counts > 0
    log_weights = np.log(np.where(sampled, counts, 1.0)) - zeta
    which = slice(None) if sampled.all() else sampled
    n_rows = max(_BLOCK // vectors.shape[1], 1)
    for first in range(0, len(vectors), n_rows):
        rows = slice(first, first + n_rows)
        terms = vectors[rows] + log_weights
        largest = terms[:, which].max(axis=1, keepdims=True)
        if not np.all(np.isfinite(largest)):
            raise ValueError(
                "vectors has samples with density 0 at every sampled level: check vectors and"
                " counts"
            )
        terms -= largest
        with np.errstate(over="ignore"):  # at levels without samples
            np.exp(terms, out=terms)
        total = terms[:, which].sum(axis=1, keepdims=True)
        terms /= total
        yield rows, terms, np.log(total) + largest


def overlap_matrix(vectors: NDArray, counts: NDArray, zeta: NDArray) -> Array:
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
        Of the levels that have samples alone.
    """
    sampled = np.flatnonzero(counts)
    n = np.asarray(counts, dtype=float)[sampled]
    products = mixture_sums(vectors[:, sampled], n, np.asarray(zeta)[sampled]).products
    return products / np.sqrt(np.outer(n, n))


def _check(vectors, counts) -> tuple[Array, Array]:
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
    if not vectors.max() < np.inf:  # NaN is not
        raise ValueError("vectors must not hold NaN or +inf: check the path's log_f")
    return vectors, counts


def _self_consistent(vectors, counts, zeta):
    """log sum_i f_k(x_i) / mixture(x_i), shape (K,): one step of the fixed-point iteration, in
    which zeta enters only at levels with samples.
    """
    log_sums = np.full(len(counts), -np.inf)
    for rows, _, log_mixture in mixture_weights(vectors, counts, zeta):
        terms = vectors[rows] - log_mixture
        log_sums = np.logaddexp(log_sums, log_mean_exp(terms, axis=0) + np.log(len(terms)))
    return log_sums


def newton_step(
    shares: NDArray,
    products: NDArray,
    right: NDArray,
    *,
    ridge: float = 1e-12,  # of the diagonal; keeps the Hessian invertible
) -> Array:
    """Solve H step = right with step_0 = 0; H = diag(shares) - products, scaled to a unit
    diagonal.
    """
    scale = 1 / np.sqrt(np.maximum(shares, 1e-300))
    hessian = (1 + ridge) * np.eye(len(right)) - products * np.outer(scale, scale)
    step = np.zeros(len(right))
    step[1:] = scale[1:] * np.linalg.solve(hessian[1:, 1:], (scale * right)[1:])
    return step


def minimise(
    evaluate: Callable[[NDArray], tuple[float, tuple[NDArray, NDArray, NDArray]]],
    start: NDArray,
    *,
    tol: float,
    smallest: float,
    fallback: Callable[[NDArray], NDArray] | None = None,
    most_steps: int = 100,
) -> Array:
    """Return the minimiser of a convex function, from `start`.

    Parameters
    ----------
    evaluate : callable
        Returns the function's value, and the arguments of `newton_step`.
    start : ndarray
    tol : float
        Largest change in the last step.
    smallest : float
        A step is halved until the function does not rise, but not below this share of it.
    fallback : callable or None, default=None
        The step to take where Newton's would be halved below that; None takes the halved one.
    """
    x = start
    value, derivatives = evaluate(x)
    for _ in range(most_steps):
        step = newton_step(*derivatives)
        size = 1.0
        new_value, new_derivatives = evaluate(x + step)
        # NaN is a rise too
        while not new_value <= value + 1e-12 * abs(value) and size > smallest:
            size /= 2
            # far off the Hessian may be nearly singular
            if size < smallest and fallback is not None:
                step = fallback(x)
                size = 1.0
                new_value, new_derivatives = evaluate(x + step)
                break
            new_value, new_derivatives = evaluate(x + size * step)
        x = x + size * step
        value = new_value
        derivatives = new_derivatives
        if np.abs(size * step).max() < tol:
            break
    return x

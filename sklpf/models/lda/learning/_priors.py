"""Dirichlet priors that fit expected or sampled counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma, psi

# of a learned prior, which has no maximum where all documents are alike
_PRIOR_RANGE = 1e-10, 1e10
_SMALLEST_CURVATURE = 1e-12
_NEWTON_STEPS = 20  # for every update in batch learning


def fit_prior(alpha: NDArray, gamma: NDArray, rate: float) -> NDArray:
    """alpha after `rate` of a Newton step towards the one that fits the documents best; at rate 1
    after many.

    The tokens' topics stay and gamma = alpha + counts moves along, so that what rises is the
    likelihood of the expected counts when theta is integrated out. (With gamma fixed instead, as
    Blei et al. 2003 have it, steps are shorter by the share of documents that have a topic.) The
    steps are in log alpha, where the Hessian is diagonal plus rank one.
    """
    if len(alpha) == 1:
        return alpha  # all shares are 1
    counts = gamma - alpha
    for _ in range(_NEWTON_STEPS if rate == 1 else 1):
        alpha = np.clip(alpha * np.exp(rate * _log_step(alpha, counts)), *_PRIOR_RANGE)
    return alpha


def _log_step(alpha, counts):
    """Newton step of log alpha, at most a factor of e; positive curvature is left out."""
    from sklpf.models.lda.learning._word_kernels import mean_polygammas

    total = alpha.sum()
    first, second = mean_polygammas(alpha, counts)
    sums = counts.sum(axis=1, keepdims=True)
    first_sum, second_sum = mean_polygammas(np.array([total]), sums)
    slope = alpha * (first - psi(alpha) - first_sum + psi(total))
    curvature = alpha**2 * (second - polygamma(1, alpha))
    diagonal = curvature + np.minimum(slope, 0) - _SMALLEST_CURVATURE * alpha
    common = polygamma(1, total) - second_sum[0]

    # The Hessian is diagonal plus common alpha alpha', which Sherman and Morrison invert.
    with np.errstate(divide="ignore", over="ignore"):  # common is 0 where no document has words
        shared = np.sum(alpha * slope / diagonal) / (1 / common + np.sum(alpha**2 / diagonal))
    return np.clip(-(slope - shared * alpha) / diagonal, -1.0, 1.0)


def fit_symmetric_prior(eta: float, counts, totals, rate: float) -> float:
    """eta after `rate` (in log eta) of a step of Minka's fixed point (2000, equation 55, for equal
    parameters).

    Parameters
    ----------
    eta : float
        Concentration of the symmetric Dirichlet prior over V words, whose multinomial draws are
        `counts`.
    counts : ndarray of shape (V, K or more)
        Further columns are 0.
    totals : ndarray of shape (K,)
        Sums over words.
    rate : float
    """
    from sklpf.models.lda.learning._word_kernels import mean_polygammas

    n_features = len(counts)
    mean = mean_polygammas(np.full(counts.shape[1], eta), counts)[0]
    slope = np.sum(mean - psi(eta)) / np.sum(psi(totals + n_features * eta) - psi(n_features * eta))
    return float(np.clip(eta * slope**rate, *_PRIOR_RANGE))

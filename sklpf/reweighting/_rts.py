"""RTS: the estimate, its variance and its bias from averaged level probabilities (Carlson et al.
2016).

A round of simulated tempering runs with a fixed log pseudo-prior a_k = log r_k - log Z_k estimate.
Its level probabilities q(k | x) average to shares c_k. Shares are kept as logs, since they may
underflow in the first rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp

from sklpf._utils.numbers import Array, Integers
from sklpf.reweighting._mbar import minimise, newton_step
from sklpf.reweighting._ratios import with_first_ratio
from sklpf.uncertainty import MeanWeight


def rts_curve(log_pseudo_prior: ArrayLike, log_shares: ArrayLike) -> Array:
    """Return the curve of one round (Carlson et al. 2016, equation 12).

    Parameters
    ----------
    log_pseudo_prior : array-like of shape (..., K)
        log r_k minus the estimate of log Z_k.
    log_shares : array-like of shape (..., K)
        Logs of the averages c_k.

    Returns
    -------
    ndarray of shape (..., K)
        log Z_k - log Z_0 in nats.
    """
    curve = np.asarray(log_shares, dtype=float) - np.asarray(log_pseudo_prior, dtype=float)
    return curve - curve[..., :1]


def combine_rounds(log_pseudo_prior: ArrayLike, log_shares: ArrayLike, sizes: ArrayLike) -> Array:
    """log Z_k - log Z_0 from several rounds with different weights (Carlson et al. 2016, equation
    14 and appendix A).

    Maximises the concave sum over rounds t of

        sizes_t (sum_k c_tk zeta_k - log sum_k exp(zeta_k + a_tk)),    zeta_k = log Z_k, zeta_0 = 0,

    by Newton's method with step halving, from the estimate of the last round. One round gives
    equation 12.

    Parameters
    ----------
    log_pseudo_prior : array-like of shape (T, K)
        a_tk = log r_k - log Z_k estimate of every round.
    log_shares : array-like of shape (T, K)
        Logs of the averages c_tk, normalised within each round.
    sizes : array-like of shape (T,)
        Effective numbers of samples, up to a common factor.

    Returns
    -------
    ndarray of shape (K,)
    """
    log_pseudo_prior = np.asarray(log_pseudo_prior, dtype=float)
    shares = np.exp(log_shares)
    sizes = np.asarray(sizes, dtype=float) / np.max(sizes)
    zeta = rts_curve(log_pseudo_prior, log_shares)[-1]
    if len(log_pseudo_prior) == 1:
        return zeta

    def evaluate(zeta):
        log_q = zeta + log_pseudo_prior
        probabilities = np.exp(log_softmax(log_q, axis=1))
        value = -np.sum(sizes * (shares @ zeta - logsumexp(log_q, axis=1)))
        return value, (*_hessian(probabilities, sizes), sizes @ (shares - probabilities))

    return minimise(evaluate, zeta, tol=1e-12, smallest=1e-9)


def influence(log_pseudo_prior, shares, sizes, zeta, level, origin=0):
    """Influence of every chain on the estimate of log Z_level - log Z_origin, shape (M,).

    The variance of the estimate is the variance of the influences divided by M. For one round the
    influence of a chain is c_level / mean(c_level) - c_0 / mean(c_0), which gives equation 16 with
    variances and covariances of averages over whole chains.

    Parameters
    ----------
    log_pseudo_prior : ndarray of shape (T, K)
        Log pseudo-priors of every round, in nats.
    shares : ndarray of shape (T, M, K)
        Every chain's own averages c_k.
    sizes : ndarray of shape (T,)
        As in `combine_rounds`.
    zeta : ndarray of shape (K,)
        The estimate.
    level, origin : int
        The two levels whose log Z are compared.

    Returns
    -------
    ndarray of shape (M,)
        In nats.
    """
    probabilities = np.exp(log_softmax(zeta + log_pseudo_prior, axis=1))
    target = np.zeros(len(zeta))
    target[level] = 1.0
    target[origin] -= 1.0  # zeta_0 = 0 is fixed: what stands there has no effect
    direction = newton_step(*_hessian(probabilities, sizes), target)
    scores = np.einsum("t,tmk->mk", sizes, shares - probabilities[:, np.newaxis])
    return scores @ direction


def bias(shares: NDArray, origin: int = 0) -> float:
    """Second-order bias of log Z_(K-1) - log Z_origin of one round in nats (equation 15), from
    chains' averages.

    Parameters
    ----------
    shares : ndarray of shape (M, K)
        Averages of every chain.
    origin : int, default=0
        The level that log Z is compared with.

    Returns
    -------
    float
        NaN where one of the two averages is 0 in all chains.
    """
    ends = shares[:, [origin, -1]]
    with np.errstate(invalid="ignore"):  # 0 / 0 where no chain was at an end
        ends = ends / ends.mean(axis=0)
    variances = ends.var(axis=0, ddof=1) / len(shares)
    return float(variances[0] - variances[1]) / 2


@dataclass(frozen=True)
class Pooled:
    """log Z_k - log Z_0 as a function of the groups of chains to use.

    Attributes
    ----------
    log_pseudo_prior : ndarray of shape (T, K)
        log r_k minus the estimate of log Z_k, of each round.
    log_sums : ndarray of shape (T, G, K)
        Log of every group's sums of q(k | x) or of its counts, in each round.
    sizes : ndarray of shape (T,)
        As in `combine_rounds`.
    log_extra : float
        Log of what is added to the pooled sums.
    first_ratio : MeanWeight or None
        log Z_1 / Z_0, where it is known otherwise: the sums then give the ratios of the other
        levels alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.reweighting import Pooled
    >>> sums = np.array([[[1.0, 3.0], [2.0, 6.0]]])  # one round, two groups, two levels
    >>> Pooled(np.zeros((1, 2)), np.log(sums))(np.arange(2)).round(3)
    array([0.   , 1.099])
    """

    log_pseudo_prior: Array
    log_sums: Array
    sizes: Any = (1.0,)
    log_extra: float = -np.inf
    first_ratio: MeanWeight | None = None

    @property
    def origin(self) -> int:
        """The first level that the sums are used for."""
        return int(self.first_ratio is not None)

    def log_shares(self, keep: NDArray) -> NDArray:
        """Return the logs of the averages c_k of some groups.

        Parameters
        ----------
        keep : ndarray of int
            Indices of the groups.

        Returns
        -------
        ndarray of shape (T, K)
            Logs of their averages, in each round.
        """
        pooled = logsumexp(self.log_sums[:, keep], axis=1)
        return log_softmax(np.logaddexp(pooled, self.log_extra), axis=1)

    def __call__(self, keep: NDArray) -> NDArray:
        curve = combine_rounds(self.log_pseudo_prior, self.log_shares(keep), self.sizes)
        return with_first_ratio(curve, self.first_ratio)


def _hessian(probabilities, sizes) -> tuple[Array, Array]:
    """sum_t sizes_t (diag p_t - p_t p_t'), as `newton_step` takes it."""
    return sizes @ probabilities, (probabilities.T * sizes) @ probabilities


def level_process(vectors: NDArray, levels: Integers, log_pseudo_prior: NDArray) -> Array:
    """Return log Z_k - log Z_0 from the process level → x → level.

    A state x of level j has the level k next with probability q(k | x). Its average over the states
    of level j is row j of a transition matrix whose stationary law is the share of each level at
    equilibrium, in proportion to Z_k exp(log_pseudo_prior_k). How often each level has been visited
    does not enter, so that states need to be in equilibrium at their own levels only.

    Parameters
    ----------
    vectors : ndarray of shape (N, K)
        log f_k(x), but for a constant of every x, in nats.
    levels : ndarray of shape (N,)
        The level that each x was moved at. Levels without states follow from the states of the
        others.
    log_pseudo_prior : ndarray of shape (K,)
        log r_k minus an estimate of log Z_k.

    Returns
    -------
    ndarray of shape (K,)
        In nats; NaN if the states connect some levels with no others.
    """
    log_weights = vectors + log_pseudo_prior
    visited, row, counts = np.unique(levels, return_inverse=True, return_counts=True)
    log_total = np.logaddexp.reduce(log_weights[:, visited], axis=1, keepdims=True)
    with np.errstate(divide="ignore", over="ignore"):
        q = np.exp(log_weights - log_total)
        law = stationary([q[row == r][:, visited].mean(axis=0) for r in range(len(visited))])
        log_shares = np.log((law / counts)[row] @ q)
    return rts_curve(log_pseudo_prior, log_shares)


def stationary(transitions: ArrayLike) -> Array:
    """Stationary law of a stochastic matrix, by elimination without subtractions (Grassmann, Taksar
    & Heyman).

    Parameters
    ----------
    transitions : array-like of shape (K, K)
        Rows sum to 1.

    Returns
    -------
    ndarray of shape (K,)
        Sums to 1.
    """
    a = np.array(transitions, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        for n in range(len(a) - 1, 0, -1):
            a[:n, n] /= a[n, :n].sum()
            a[:n, :n] += np.outer(a[:n, n], a[n, :n])
        law = np.ones(len(a))
        for n in range(1, len(a)):
            law[n] = law[:n] @ a[:n, n]
        return law / law.sum()

"""RTS at continuous inverse temperatures: the law of beta given a state on a tempered path, and
averages of it.

The coordinate is the ladder's: t runs from k to k + 1 while beta goes from beta_k to beta_(k+1), so
that the ladder says where chains spend their time, as it does for levels. With log weights a that
are linear between the nodes,

    log q(t | x) = a(t) + beta(t) gain(x) - log normaliser(x),    gain = log f_1 - log f_0,

is linear between them too: normaliser and draws are exact (Carlson et al. 2016, appendix C).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.special import log_softmax, logsumexp, softmax

from sklpf._utils.numbers import Array

_FLAT = 1e-200  # the least slope that is told from 0


class NodeSums(NamedTuple):
    """Sums over the states of chains, or of groups of them.

    Attributes
    ----------
    log_sums : ndarray of shape (n, K)
        Log of the sum of q at every node.
    slopes : ndarray of shape (n, K)
        Means of log f_1 - log f_0 under q there.
    """

    log_sums: Array
    slopes: Array

    def of(self, keep: NDArray) -> tuple[NDArray, NDArray]:
        """Return the sums of several together.

        Parameters
        ----------
        keep : ndarray of int
            Indices of the chains or groups.

        Returns
        -------
        log_sums, slopes : ndarray of shape (K,)
            Log of the sum of q at every node, and d log Z / dbeta there.
        """
        weights = softmax(self.log_sums[keep], axis=0)
        return logsumexp(self.log_sums[keep], axis=0), np.sum(weights * self.slopes[keep], axis=0)

    def grouped(self, first: NDArray) -> NodeSums:
        """Return the sums of groups of chains.

        Parameters
        ----------
        first : ndarray of shape (G + 1,)
            First chain of every group, and the end.

        Returns
        -------
        NodeSums
            The sums of the groups.
        """
        return _stack([self.of(np.arange(start, end)) for start, end in zip(first, first[1:])])


def log_densities(log_weights: NDArray, ladder: NDArray, gains: NDArray) -> Array:
    """Return log q(t | x) at the nodes t = 0, …, K - 1.

    Parameters
    ----------
    log_weights : ndarray of shape (K,)
        a at the nodes, between which it is linear.
    ladder : ndarray of shape (K,)
        Inverse temperatures of the nodes.
    gains : ndarray of shape (n,)
        log f_1 - log f_0 of the states.

    Returns
    -------
    ndarray of shape (n, K)
        Log densities by t.
    """
    log_q = log_weights + ladder * gains[:, np.newaxis]
    return log_q - logsumexp(_log_masses(log_q), axis=1, keepdims=True)


def draw_betas(log_weights: NDArray, ladder: NDArray, gains: NDArray, uniforms: NDArray) -> Array:
    """Draw beta from q(. | x) of states by uniform numbers.

    Parameters
    ----------
    log_weights : ndarray of shape (K,)
        a at the nodes, between which it is linear.
    ladder : ndarray of shape (K,)
        Inverse temperatures of the nodes.
    gains : ndarray of shape (n,)
        log f_1 - log f_0 of the states.
    uniforms : ndarray of shape (2, n)
        Uniform numbers in [0, 1).

    Returns
    -------
    ndarray of shape (n,)
        Inverse temperatures.
    """
    log_q = log_weights + ladder * gains[:, np.newaxis]
    rows = np.arange(len(gains))
    masses = np.cumsum(np.exp(log_softmax(_log_masses(log_q), axis=1)), axis=1)
    cell = np.argmax(masses > uniforms[0, :, np.newaxis] * masses[:, -1:], axis=1)
    rise = log_q[rows, cell + 1] - log_q[rows, cell]
    size = np.maximum(np.abs(rise), _FLAT)
    below_top = np.minimum(-np.log1p(uniforms[1] * np.expm1(-size)) / size, 1.0)
    share = np.where(rise > 0, 1 - below_top, below_top)
    return np.clip(
        ladder[cell] + share * (ladder[cell + 1] - ladder[cell]), ladder[cell], ladder[cell + 1]
    )


def _log_masses(log_q):
    """Log integrals over t between neighbouring nodes, of exponentials of what is linear in t
    there, (n, K - 1).
    """
    return log_mean_between(log_q[:, :-1], log_q[:, 1:])


def log_mean_between(log_left: NDArray, log_right: NDArray) -> Array:
    """Return the log of the mean over an interval of the exponential of what is linear on it.

    Parameters
    ----------
    log_left, log_right : ndarray
        Values of the linear functions at both ends of the intervals.

    Returns
    -------
    ndarray
        The log means, of the same shape; exp of them times the interval's width is the integral.
    """
    fall = np.maximum(np.abs(log_right - log_left), _FLAT)
    return np.maximum(log_left, log_right) + np.log(-np.expm1(-fall) / fall)


def node_sums(log_weights: NDArray, ladder: NDArray, gains: NDArray) -> NodeSums:
    """Return the sums of every chain over its states.

    Parameters
    ----------
    log_weights : ndarray of shape (K,)
        a at the nodes, between which it is linear.
    ladder : ndarray of shape (K,)
        Inverse temperatures of the nodes.
    gains : ndarray of shape (M, T)
        log f_1 - log f_0 of every chain's states.

    Returns
    -------
    NodeSums
        The sums of every chain.
    """
    n_parts = -(-gains.shape[1] // 10_000)
    chains = [
        _stack([_sums(log_weights, ladder, part) for part in np.array_split(chain, n_parts)])
        for chain in gains
    ]
    return _stack([chain.of(np.arange(n_parts)) for chain in chains])


def _sums(log_weights, ladder, gains):
    log_q = log_densities(log_weights, ladder, gains)
    log_sums = logsumexp(log_q, axis=0)
    return log_sums, gains @ np.exp(log_q - log_sums)


def _stack(sums):
    return NodeSums(*map(np.array, zip(*sums)))


def between_nodes(
    log_weights: NDArray, ladder: NDArray, log_shares: NDArray, slopes: NDArray, betas: NDArray
) -> tuple[NDArray, NDArray]:
    """Log of the density of t, and d log Z / dbeta, at some inverse temperatures, by cubic
    interpolation of log Z between nodes.

    Parameters
    ----------
    log_weights : ndarray of shape (K,)
        a at the nodes, between which it is linear.
    ladder : ndarray of shape (K,)
        Inverse temperatures of the nodes.
    log_shares : ndarray of shape (K,)
        Log of the density at the nodes.
    slopes : ndarray of shape (K,)
        d log Z / dbeta at the nodes.
    betas : ndarray of shape (n,)
        Where it is wanted.

    Returns
    -------
    value, slope : ndarray of shape (n,)
        Log of the density of t, and d log Z / dbeta.
    """
    log_partition = CubicHermiteSpline(ladder, log_shares - log_weights, slopes)
    value = np.interp(betas, ladder, log_weights) + log_partition(betas)
    return value, log_partition(betas, 1)

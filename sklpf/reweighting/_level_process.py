"""Shares of levels as the stationary law of the process that redraws them (Carlson et al. 2016,
appendix G).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from sklpf._utils.numbers import Array, Integers
from sklpf.reweighting._rts import rts_curve


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
    visited, row = np.unique(levels, return_inverse=True)
    q = np.exp(log_softmax(log_weights[:, visited], axis=1))
    rows = np.zeros((len(visited), len(visited)))
    np.add.at(rows, row, q)
    counts = np.bincount(row)
    law = stationary(rows / counts[:, np.newaxis])
    with np.errstate(divide="ignore", over="ignore"):
        from_visited = np.exp(
            log_weights - np.logaddexp.reduce(log_weights[:, visited], axis=1)[:, np.newaxis]
        )
        log_shares = np.log((law[row] / counts[row]) @ from_visited)
    return rts_curve(log_pseudo_prior, log_shares)


def stationary(transitions: NDArray) -> Array:
    """Stationary law of a stochastic matrix, by elimination without subtractions (Grassmann, Taksar
    & Heyman).

    Parameters
    ----------
    transitions : ndarray of shape (K, K)
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

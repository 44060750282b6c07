"""Boltzmann machines with a mode that samplers miss."""

import numpy as np
from known_problems import all_rows
from scipy.optimize import brentq
from scipy.special import logsumexp

from sklpf import BoltzmannMachine


def model_with_clique(seed, share):
    """Sixteen units with couplings of sd 0.4, and a clique of eight that are on or off together:
    states with most of it on have this share of Z, and few chains from the base meet them.
    """
    rng = np.random.default_rng(seed)
    couplings = np.triu(rng.normal(0, 0.4, (16, 16)), 1)
    couplings[:8, :8] = 3 * np.triu(np.ones((8, 8)), 1)
    couplings += couplings.T
    intercept = rng.normal(0, 0.5, 16)
    X = all_rows(16)
    height = X @ intercept + np.sum(X @ couplings * X, axis=1) / 2
    is_on = X[:, :8].sum(axis=1) > 4

    def excess(bias):
        """Of the log odds of these states."""
        at_bias = height + bias * X[:, :8].sum(axis=1)
        log_odds = logsumexp(at_bias[is_on]) - logsumexp(at_bias[~is_on])
        return log_odds - np.log(share / (1 - share))

    intercept[:8] += brentq(excess, -40, 40)
    return BoltzmannMachine.from_parameters(couplings, intercept)

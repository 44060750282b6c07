"""Moves of chains of hidden units, the visible ones integrated out.

Block Gibbs sweeps between v and h can't leave a mode where components are large beside the standard
deviations: training with these alone diverges, as the chains don't find what the model has become.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from sklpf.models.gaussian_rbm.learning._parameters import Array, Parameters
from sklpf.uncertainty import log_mean_exp

_LEAST_ACTIVITY = 0.02  # of a unit in proposals, and as much from 1


def log_marginal(parameters: Parameters, h) -> Array:
    """log f(h), shape (n,), in nats up to a constant: c @ h + sum (h @ W)² / 2 s²."""
    pull = h @ parameters.components
    return h @ parameters.intercept_hidden + 0.5 * pull**2 @ (1 / parameters.variances)


def sweep(parameters: Parameters, h, rng) -> Array:
    """Draw the hidden units in turn, each given all others."""
    weighted = parameters.components / parameters.variances
    couplings = weighted @ parameters.components.T
    linear = parameters.intercept_hidden + 0.5 * np.diag(couplings)
    np.fill_diagonal(couplings, 0)
    h = h.astype(np.float64)
    for j, row in enumerate(couplings):
        h[:, j] = rng.random(len(h)) < expit(linear[j] + h @ row)
    return h


def jump(parameters: Parameters, h, rows, rng) -> Array:
    """A Metropolis-Hastings step to hidden units that are proposed whatever h is.

    Half of the proposals are drawn given one of the rows, and half from independent units with the
    mean activities given the rows.
    """
    fields = parameters.hidden_fields(rows)
    on = expit(fields)
    mean = on.mean(axis=0).clip(_LEAST_ACTIVITY, 1 - _LEAST_ACTIVITY)

    def log_proposal(units):
        log_given_rows = units @ fields.T - np.logaddexp(0, fields).sum(axis=1)
        log_independent = units @ np.log(mean) + (1 - units) @ np.log1p(-mean)
        return np.logaddexp(log_mean_exp(log_given_rows, axis=1), log_independent)

    given_row = rng.random((len(h), 1)) < 0.5
    probabilities = np.where(given_row, on[rng.integers(len(rows), size=len(h))], mean)
    proposed = (rng.random(h.shape) < probabilities).astype(np.float64)
    log_rate = log_marginal(parameters, proposed) - log_marginal(parameters, h)
    log_rate += log_proposal(h) - log_proposal(proposed)
    accept = np.log(rng.random(len(h))) < log_rate
    return np.where(accept[:, np.newaxis], proposed, h)

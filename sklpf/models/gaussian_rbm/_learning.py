"""Persistent contrastive divergence of a Gaussian RBM (Tieleman 2008; Cho et al. 2011).

Chains also move over the hidden units alone, the visible ones integrated out: block Gibbs sweeps
between v and h can't leave a mode where components are large beside the standard deviations, and
training with these alone diverges, as the chains don't find what the model has become.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sklpf._utils.numbers import Array
from sklpf.models._learning import same_values
from sklpf.training._loop import RunningAverage, check_not_diverged
from sklpf.uncertainty import log_mean_exp

_LEAST_ACTIVITY = 0.02  # of a unit in proposals, and as much from 1
_FIRST_WEIGHTS = 0.1  # standard deviation, in those of the data
_FIRST_SHARE = 0.3  # of the difference between two rows
_CURVATURE = 16.0  # |u|² at which the steps of the weights and variances are halved


class Parameters(NamedTuple):
    """log f(v, h) = c @ h - sum (v - b)² / 2 s² + h @ W @ ((v - b) / s²)."""

    components: Array  # W (J, M)
    intercept_visible: Array  # b (M,)
    intercept_hidden: Array  # c (J,)
    variances: Array  # s² (M,)

    def hidden_fields(self, v) -> Array:
        """Inputs of the hidden units, (n, J)."""
        return self._residuals(v) @ self.components.T + self.intercept_hidden

    def visible_means(self, h) -> Array:
        """Means of the visible units given hidden ones, (n, M)."""
        return self.intercept_visible + h @ self.components

    def log_f(self, v) -> Array:
        """log f(v), the hidden units summed out, (n,), in nats."""
        away = v - self.intercept_visible
        square = np.einsum("ij,ij->i", away, self._residuals(v))
        return np.logaddexp(0, self.hidden_fields(v)).sum(axis=1) - 0.5 * square

    def _residuals(self, v):
        return (v - self.intercept_visible) / self.variances

    def rescaled(self, location, scale) -> Parameters:
        """The same model of rows location + scale * v, for scales (M,)."""
        return Parameters(
            self.components * scale,
            location + scale * self.intercept_visible,
            self.intercept_hidden,
            scale**2 * self.variances,
        )


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


class Trainer:
    """Weights, their average and the chains, in coordinates where every column has variance 1.

    A step goes along the gradient by W, b, c and log s², in which that by a visible unit's weights
    and bias is multiplied by its variance. Without that, steps would grow as variances fall. The
    curvature by the weights of a hidden unit, and by log s², grows with |u|², u = (v - b) / s, and
    their steps are divided by 1 + |u|² / 16. With full steps of log s² a model whose variances are
    small goes astray again and again, as all modes change their weights at once. Each unit's
    weights start at a share of the difference between two rows and some noise: from noise alone
    several units often learn the same direction. Each step is followed by three moves of the
    chains: a jump and a sweep over the hidden units, and a Gibbs step to the visible ones and back.

    Parameters
    ----------
    model : GaussianRBM
        Its parameters say how to train.
    X : ndarray of shape (n_samples, n_features)
        Rows, whose means and standard deviations give the coordinates.
    seed : int
        Seed of all random numbers.
    start : Parameters or None, default=None
        Initial parameters, in the coordinates of X; None draws weights.
    """

    def __init__(self, model, X, seed: int, start: Parameters | None = None):
        self.rng = np.random.default_rng(seed)
        self.location = X.mean(axis=0)
        spread = X.std(axis=0)
        # Of a constant column rounding errors are all that would be scaled up.
        constant = spread <= 1e-10 * np.abs(self.location)
        self.scale = np.where(constant, 1.0, spread)
        if not np.all(np.isfinite(self.scale)):
            raise ValueError("X holds such large values that its variances overflow: rescale it")
        self.X = self._coordinates(X)
        self.current = self._first(model.n_components) if start is None else self._scaled(start)
        self.averaged = self.current
        self.shown = self.current  # by the model, whose user may replace them
        self.average = RunningAverage(model.average)
        units = self.rng.random((model._n_chains, len(self.current.components))) < 0.5
        self.h = units.astype(np.float64)
        self.n_updates = np.inf
        if model.learning_rate_schedule == "linear":
            self.n_updates = model.n_iter * -(-len(X) // model.batch_size)
        self._configure(model)
        self.step_number = 0

    def go_on(self, model) -> None:
        """Take the model's parameters as they are now, with a constant learning rate, and its
        weights where a user has set them.
        """
        self._configure(model)
        self.n_updates = np.inf
        self.average = RunningAverage(model.average, self.average.n_rows, self.average.n_averaged)
        self.h = np.resize(self.h, (model._n_chains, self.h.shape[1]))
        if not same_values(self.shown, model._parameters):
            self.current = self._scaled(model._parameters)
            self.averaged = self.current
            self.average.n_averaged = 0

    def _configure(self, model) -> None:
        self.batch_size = model.batch_size
        self.learning_rate = model.learning_rate
        self.variance_floor = model.variance_floor

    def _scaled(self, parameters) -> Parameters:
        """Parameters of X in the coordinates of training."""
        return parameters.rescaled(-self.location / self.scale, 1 / self.scale)

    def _first(self, n_components) -> Parameters:
        """Parameters to start from, in the coordinates of training."""
        n_features = self.X.shape[1]
        first, second = self.rng.integers(len(self.X), size=(2, n_components))
        weights = self.rng.normal(scale=_FIRST_WEIGHTS, size=(n_components, n_features))
        weights += _FIRST_SHARE * (self.X[first] - self.X[second])
        zeros = np.zeros(n_features)
        return Parameters(weights, zeros, np.zeros(n_components), np.ones(n_features))

    def _coordinates(self, X):
        return (X - self.location) / self.scale

    @property
    def parameters(self) -> Parameters:
        """What was learned, in the coordinates of the rows; ValueError if training has diverged."""
        check_not_diverged(*self.current)
        learned = self.averaged if self.average.n_averaged else self.current
        return learned.rescaled(self.location, self.scale)

    def run(self) -> None:
        """Make one pass over the rows, in random order."""
        order = self.rng.permutation(len(self.X))
        for first in range(0, len(order), self.batch_size):
            self._ascend(self.X[order[first : first + self.batch_size]])

    def step(self, X) -> None:
        """Make one step on rows of X, one minibatch."""
        self._ascend(self._coordinates(X))

    def _ascend(self, rows):
        here = self.current
        rate = self.learning_rate * (1 - self.step_number / self.n_updates)
        h = sweep(here, jump(here, self.h, rows, self.rng), self.rng)
        noise = self.rng.standard_normal((len(h), rows.shape[1]))
        v = here.visible_means(h) + np.sqrt(here.variances) * noise
        self.h = (self.rng.random(h.shape) < expit(here.hidden_fields(v))).astype(np.float64)

        data = gradient(here, rows)
        model = gradient(here, v)
        square = np.mean((rows - here.intercept_visible) ** 2, axis=0) @ (1 / here.variances)
        damping = 1 / (1 + square / _CURVATURE)
        ascent = [rate * (first - second) for first, second in zip(data, model)]
        self.current = Parameters(
            here.components + damping * here.variances * ascent[0],
            here.intercept_visible + here.variances * ascent[1],
            here.intercept_hidden + ascent[2],
            np.maximum(here.variances * np.exp(damping * ascent[3]), self.variance_floor),
        )
        self.step_number += 1

        share = float(self.average.shares(np.array([len(rows)]))[0])
        if share > 0:
            ends = zip(self.averaged, self.current)
            self.averaged = Parameters(*(a + share * (b - a) for a, b in ends))


def gradient(parameters: Parameters, v) -> tuple[Array, Array, Array, Array]:
    """The gradient of the mean of log f(v) over rows by W, b, c and log s²."""
    away = v - parameters.intercept_visible
    on = expit(parameters.hidden_fields(v))
    pull = on @ parameters.components
    variances = parameters.variances
    return (
        on.T @ away / len(v) / variances,
        (away - pull).mean(axis=0) / variances,
        on.mean(axis=0),
        (away * (0.5 * away - pull)).mean(axis=0) / variances,
    )

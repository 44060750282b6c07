"""Persistent contrastive divergence of a Gaussian RBM (Tieleman 2008; Cho et al. 2011)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from sklpf.models._learning import same_values
from sklpf.models.gaussian_rbm.learning._hidden_chains import jump, sweep
from sklpf.models.gaussian_rbm.learning._parameters import Array, Parameters
from sklpf.training._averages import RunningAverage
from sklpf.training._loop import check_not_diverged

_FIRST_WEIGHTS = 0.1  # standard deviation, in those of the data
_FIRST_SHARE = 0.3  # of the difference between two rows
_CURVATURE = 16.0  # |u|² at which the steps of the weights and variances are halved


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
    n_passes : int or None, default=None
        After which the rate of a linear schedule is 0.
    start : Parameters or None, default=None
        Initial parameters, in the coordinates of X; None draws weights.
    """

    def __init__(self, model, X, seed: int, n_passes: int | None = None, start=None):
        self.rng = np.random.default_rng(seed)
        self.location = X.mean(axis=0)
        spread = X.std(axis=0)
        # Of a constant column rounding errors are all that would be scaled up.
        constant = spread <= 1e-10 * np.abs(self.location)
        self.scale = np.where(constant, 1.0, spread)
        if not np.all(np.isfinite(self.scale)):
            raise ValueError("X holds such large values that its variances overflow: rescale it")
        self.X = self._coordinates(X)
        self.current = self._start(model.n_components, start)
        self.averaged = self.current
        self.shown = self.current  # by the model, whose user may replace them
        self.average = RunningAverage(model.average)
        units = self.rng.random((_n_chains(model), len(self.current.components))) < 0.5
        self.h = units.astype(np.float64)
        self.n_updates = np.inf
        if model.learning_rate_schedule == "linear":
            self.n_updates = n_passes * -(-len(X) // model.batch_size)
        self._configure(model)
        self.step_number = 0

    def go_on(self, model) -> None:
        """Take the model's parameters as they are now, and its weights where a user has set
        them.
        """
        self._configure(model)
        self.average = RunningAverage(model.average, self.average.n_rows, self.average.n_averaged)
        self.h = np.resize(self.h, (_n_chains(model), self.h.shape[1]))
        if not same_values(self.shown, model._parameters):
            self.current = self._start(None, model._parameters)
            self.averaged = self.current
            self.average.n_averaged = 0

    def _configure(self, model) -> None:
        self.batch_size = model.batch_size
        self.learning_rate = model.learning_rate
        self.variance_floor = model.variance_floor

    def _start(self, n_components, start):
        if start is not None:
            return start.rescaled(-self.location / self.scale, 1 / self.scale)
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

    @property
    def at_floor(self) -> Array:
        """Which visible units have a variance at the floor, (M,)."""
        return self.current.variances <= self.variance_floor

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
        ascent = [rate * (first - second) for first, second in zip(data, model)]
        square = np.mean((rows - here.intercept_visible) ** 2, axis=0) @ (1 / here.variances)
        damping = 1 / (1 + square / _CURVATURE)
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


def _n_chains(model) -> int:
    return model.batch_size if model.n_chains is None else model.n_chains


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

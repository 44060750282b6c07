"""Densities that are fitted to draws of a posterior: what a bridge connects the posterior with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array
from sklpf.paths import Gaussian, Mixture, StudentT
from sklpf.paths._mixture_fit import fit_parts

LogDensity = Callable[[Array], Array]

KINDS = ("normal", "t", "warp3", "mixture")

_DEGREES_OF_FREEDOM = (100.0, 30.0, 15.0, 8.0, 5.0, 3.0, 2.0, 1.0)
_N_EM_STEPS = 5  # with each
_MOST_COMPONENTS = 10


class FittedProposal(NamedTuple):
    """A normalised density g to draw from, and whether the target is made symmetric about its
    center first: f(x) becomes (f(x) + f(2 center - x)) / 2, with the same integral.
    """

    density: Any
    symmetric: bool = False

    def log_weights(self, log_density: LogDensity, points: Array, log_target: Array) -> Array:
        """Return log f - log g at points (n, d), where log f is log_target: (n,), in nats."""
        if self.symmetric:
            mirrored = log_density(2 * self.density.center - points)
            log_target = np.logaddexp(log_target, mirrored) - np.log(2)
        return log_target - self.density.log_density(points)


def fit_proposal(
    kind: str, points: Array, n_effective: float, rng: np.random.Generator
) -> FittedProposal:
    """Fit a proposal to points (n, d), which are worth so many independent ones.

    A Gaussian has their mean and covariance; "warp3" is the same one for the target without its
    skewness (Meng & Schilling 2002, Warp-III). A mixture has at most 10 Gaussians, as many as the
    Bayesian information criterion asks for.
    """
    if kind == "t":
        return FittedProposal(_fit_t(points))
    whole = Gaussian.fit(points)
    parts = None
    if kind == "mixture":
        parts = fit_parts(points, whole, n_effective, _MOST_COMPONENTS, rng)
    if parts is None:  # a Gaussian has its shrinkage
        return FittedProposal(whole, symmetric=kind == "warp3")
    gaussians = [Gaussian(*each) for each in zip(parts.means, parts.covariances)]
    return FittedProposal(Mixture(gaussians, parts.weights))


def _fit_t(points: Array) -> StudentT:
    """A t distribution by maximum likelihood, with degrees of freedom from 1 to 100.

    Of the EM algorithm for location and scale matrix a prior matrix (d, d) counts as d points, so
    that there is always an inverse.
    """
    n, n_dimensions = points.shape
    start = Gaussian.fit(points)
    density = StudentT(start.mean, start.covariance, _DEGREES_OF_FREEDOM[0])
    best = density
    highest = -np.inf
    for df in _DEGREES_OF_FREEDOM:
        for _ in range(_N_EM_STEPS):
            squares = density.squared_distances(points)
            weights = (df + n_dimensions) / (df + squares)
            mean = weights @ points / weights.sum()
            apart = points - mean
            scatter = (weights[:, np.newaxis] * apart).T @ apart + n_dimensions * start.covariance
            scale = scatter / (n + n_dimensions)
            density = StudentT(mean, (scale + scale.T) / 2, df)
        log_likelihood = density.log_density(points).mean()
        if log_likelihood > highest:
            best = density
            highest = log_likelihood
    return best

"""Densities of several modes, and draws that have all of them or miss some by construction."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from sklpf import Gaussian, GeometricPath


class ModeProblem(NamedTuple):
    """A density, draws of all of it and of a part."""

    path: Any
    draws: np.ndarray  # (4, 500, d)
    some: np.ndarray  # those of the same kind that miss the other modes
    missed: float  # their share of the mass


class Mixture:
    """Weighted Gaussians or t distributions (df < inf), normalised, with a scale for each
    coordinate.
    """

    def __init__(self, means, scales, weights, df):
        self.means = means
        self.scales = scales
        self.weights = weights
        self.df = df

    def _parts(self, x):
        away = (x[:, np.newaxis] - self.means) / self.scales
        square = np.sum(away**2, axis=2)
        constant = np.log(self.weights) - np.log(self.scales).sum(axis=1)
        if np.isinf(self.df):
            return away, constant - square / 2, np.ones_like(square)
        d = self.means.shape[1]
        slope = (self.df + d) / (self.df + square)
        return away, constant - (self.df + d) / 2 * np.log1p(square / self.df), slope

    def __call__(self, x):
        return logsumexp(self._parts(x)[1], axis=1)

    def grad(self, x):
        away, parts, slope = self._parts(x)
        weights = softmax(parts, axis=1) * slope
        return -np.einsum("nk,nkd->nd", weights, away / self.scales)

    def draw(self, which, rng):
        """Draws of the components `which`."""
        d = self.means.shape[1]
        z = rng.normal(size=(*which.shape, d))
        if np.isfinite(self.df):
            z /= np.sqrt(rng.chisquare(self.df, size=which.shape) / self.df)[..., np.newaxis]
        return self.means[which] + z * self.scales[which]


def make_mode_problem(seed):
    """Two to four modes in 1 to 8 dimensions, 6 to 40 standard deviations apart and up to 5 times
    as wide as each other, of which draws have one or some; 5 to 80 % of the mass is missed.

    Every second is a function without a gradient, the others have a gradient and a wide base.
    """
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    k = int(rng.integers(2, 5))
    df = rng.choice([np.inf, 10.0])
    scales = np.exp(rng.uniform(-0.8, 0.8, size=(k, 1))) * np.exp(rng.normal(0, 0.3, (k, d)))
    directions = rng.normal(size=(k, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    apart = rng.uniform(6, 40) * np.sqrt(2)
    means = directions * apart * (np.arange(k) if d == 1 else np.ones(k))[:, np.newaxis]
    if d == 1:
        means = apart * np.arange(k)[:, np.newaxis] * 1.0
    while True:
        weights = rng.dirichlet(np.ones(k))
        kept = rng.permutation(k)[: rng.integers(1, k)]
        missed = 1 - weights[kept].sum()
        if 0.05 < missed < 0.8 and weights.min() > 0.02:
            break
    density = Mixture(means, scales, weights, df)
    which = rng.choice(k, p=weights, size=(4, 500))
    some = rng.choice(kept, p=weights[kept] / weights[kept].sum(), size=(4, 500))
    path = density
    if seed % 2:
        spread = np.full(d, (apart * (k if d == 1 else 1)) ** 2)
        path = GeometricPath(density, grad=density.grad, base=Gaussian(np.zeros(d), spread))
    return ModeProblem(path, density.draw(which, rng), density.draw(some, rng), missed)

"""Compiled densities on R^d: from a base to a target, a user's functions, and the bases."""

from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.limits import BadValue
from sklpf.kernels import implements, inlined
from sklpf.kernels._densities import evaluate, evaluate_density
from sklpf.paths._bases import Parts


class TemperedDensity(NamedTuple):
    """log f_beta = (1 - beta) log base + beta log target, both with `evaluate_density`."""

    target: Any
    base: Any


@implements(evaluate, TemperedDensity)
def _interpolate(density, position, values):
    log_base, gain, base_slope, gain_slope = values
    evaluate_density(density.base, position, log_base, base_slope)
    evaluate_density(density.target, position, gain, gain_slope)
    n, d = position.shape
    for c in range(n):
        if gain[c] == -np.inf:  # outside of the target's support, where moves need no slopes
            for j in range(d):
                base_slope[c, j] = 0.0
                gain_slope[c, j] = 0.0
            continue
        if log_base[c] == -np.inf:
            raise BadValue("base has density 0 where the target has not")
        gain[c] -= log_base[c]
        for j in range(d):
            gain_slope[c, j] -= base_slope[c, j]


# ---- a user's functions
class LogDensity(NamedTuple):
    """A user's function of points, compiled by numba."""

    log_density: Any


class DensityWithGradient(NamedTuple):
    """A user's functions of points, compiled by numba."""

    log_density: Any
    grad: Any


@inlined
def _copy_checked(given, log_density):
    """Points where the density is NaN are treated as if they lay outside of its support."""
    for c in range(given.shape[0]):
        if given[c] == np.inf:
            raise BadValue("log_density gave +inf")
        log_density[c] = -np.inf if np.isnan(given[c]) else given[c]


@implements(evaluate_density, LogDensity)
def _without_gradient(density, position, log_density, slope):
    """Such densities are moved on by moves that look at no slopes."""
    _copy_checked(density.log_density(position), log_density)
    slope[:] = 0.0


@implements(evaluate_density, DensityWithGradient)
def _with_gradient(density, position, log_density, slope):
    _copy_checked(density.log_density(position), log_density)
    given = density.grad(position)
    n, d = slope.shape
    for c in range(n):
        for j in range(d):
            slope[c, j] = given[c, j] if np.isfinite(given[c, j]) else 0.0


# ---- bases
@implements(evaluate_density, Parts)
def _mixture(base, position, log_density, slope):
    # Arrays are taken from the base once: numba would count references to them at every use.
    means = base.means
    roots = base.roots
    low = base.low
    high = base.high
    n_parts, d = means.shape
    z = np.empty(d)
    joint = np.empty(n_parts)
    slopes = np.empty((n_parts, d))
    for c in range(len(position)):
        for k in range(n_parts):
            if roots.shape[1] < d:  # a diagonal
                for i in range(d):
                    z[i] = (position[c, i] - means[k, i]) * roots[k, 0, i]
                    slopes[k, i] = -z[i] * roots[k, 0, i]
            else:
                _turn(position[c], means[k], roots[k], z, slopes[k])
            inside = True
            square = 0.0
            for i in range(d):
                inside &= (low[k, i] <= position[c, i]) & (position[c, i] <= high[k, i])
                square += z[i] * z[i]
            df = base.dfs[k]
            if not inside:
                joint[k] = -np.inf
            elif df == np.inf:
                joint[k] = base.log_norms[k] - 0.5 * square
            else:
                joint[k] = base.log_norms[k] - 0.5 * (df + d) * np.log1p(square / df)
                for j in range(d):
                    slopes[k, j] *= (df + d) / (df + square)
        highest = joint.max()
        log_density[c] = highest
        if n_parts == 1 or highest == -np.inf:  # the same numbers, without exponentials
            for j in range(d):
                slope[c, j] = 0.0 if highest == -np.inf else slopes[0, j]
            continue
        total = 0.0
        for k in range(n_parts):
            joint[k] = np.exp(joint[k] - highest)
            total += joint[k]
        for j in range(d):
            slope[c, j] = 0.0
        for k in range(n_parts):
            share = joint[k] / total
            for j in range(d):
                slope[c, j] += share * slopes[k, j]
        log_density[c] += np.log(total)


@inlined
def _turn(x, mean, root, z, slope):
    """Write root (x - mean) to z, and minus root' z to slope."""
    for i in range(len(x)):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * (x[j] - mean[j])
        z[i] = total
        slope[i] = 0.0
        for j in range(i + 1):
            slope[j] -= root[i, j] * total

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
    n_parts, d = base.means.shape
    z = np.empty(d)
    joint = np.empty(n_parts)
    slopes = np.empty((n_parts, d))
    for c in range(position.shape[0]):
        if n_parts == 1:  # the same numbers, without exponentials
            log_density[c] = _log_part(base, 0, position[c], z, slope[c])
            if log_density[c] == -np.inf:
                slope[c] = 0.0
            continue
        highest = -np.inf
        for k in range(n_parts):
            joint[k] = _log_part(base, k, position[c], z, slopes[k])
            highest = max(highest, joint[k])
        for j in range(d):
            slope[c, j] = 0.0
        if highest == -np.inf:
            log_density[c] = -np.inf
            continue
        total = 0.0
        for k in range(n_parts):
            total += np.exp(joint[k] - highest)
        for k in range(n_parts):
            share = np.exp(joint[k] - highest) / total
            for j in range(d):
                slope[c, j] += share * slopes[k, j]
        log_density[c] = highest + np.log(total)


@inlined
def _log_part(base, k, x, z, slope):
    """Log of weight times density of a part at x (d,); writes the gradient to slope (d,)."""
    d = len(x)
    mean = base.means[k]
    if base.roots.shape[1] < d:  # a diagonal
        diagonal = base.roots[k, 0]
        for i in range(d):
            z[i] = (x[i] - mean[i]) * diagonal[i]
            slope[i] = -z[i] * diagonal[i]
    else:
        root = base.roots[k]
        for i in range(d):
            total = 0.0
            for j in range(i + 1):
                total += root[i, j] * (x[j] - mean[j])
            z[i] = total
            slope[i] = 0.0
            for j in range(i + 1):
                slope[j] -= root[i, j] * total
    inside = True
    square = 0.0
    for i in range(d):
        inside &= (base.low[k, i] <= x[i]) & (x[i] <= base.high[k, i])
        square += z[i] * z[i]
    if not inside:
        return -np.inf
    df = base.dfs[k]
    if df == np.inf:
        return base.log_norms[k] - 0.5 * square
    for j in range(d):
        slope[j] *= (df + d) / (df + square)
    return base.log_norms[k] - 0.5 * (df + d) * np.log1p(square / df)

"""Compiled densities on R^d: a user's compiled functions and the base densities, as compiled moves
call them.
"""

from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.limits import BadValue
from sklpf.kernels import implements, inlined
from sklpf.kernels._programs import add_base, evaluate
from sklpf.paths._bases import (
    GaussianParameters,
    StudentTParameters,
    TruncatedParameters,
    UniformParameters,
)


class Compiled(NamedTuple):
    """A path's functions, compiled by numba, and the parameters of its base."""

    log_density: Any
    grad: Any
    base: Any


@implements(evaluate, Compiled)
def _evaluate(density, position, values):
    log_target, slope = density.log_density(position), density.grad(position)
    add_base(density.base, position, values)
    for c in range(position.shape[0]):
        if log_target[c] == np.inf:
            raise BadValue("log_density gave +inf")
        outside = log_target[c] == -np.inf or np.isnan(log_target[c])
        if not outside and values.log_base[c] == -np.inf:
            raise BadValue("base has density 0 where the target has not")
        values.gain[c] = -np.inf if outside else log_target[c] - values.log_base[c]
        base_slope, gain_slope, given = values.base_slope[c], values.gain_slope[c], slope[c]
        for j in range(given.shape[0]):
            own = given[j] if np.isfinite(given[j]) else 0.0
            gain_slope[j] = 0.0 if outside else own - base_slope[j]
            base_slope[j] = 0.0 if outside else base_slope[j]


@inlined
def _whiten(base, position, c, z, slope):
    """z = R (x - mean); writes -R'z to the slope (d,) and returns |z|²."""
    d, square = position.shape[1], 0.0
    if base.is_diagonal:
        for j in range(d):
            z[j] = (position[c, j] - base.mean[j]) * base.diagonal[j]
            slope[j] = -z[j] * base.diagonal[j]
            square += z[j] * z[j]
        return square
    for i in range(d):
        total = 0.0
        for j in range(i + 1):
            total += base.root[i, j] * (position[c, j] - base.mean[j])
        z[i] = total
        square += total * total
        slope[i] = 0.0
        for j in range(i + 1):
            slope[j] -= base.root[i, j] * total
    return square


@implements(add_base, GaussianParameters)
def _gaussian(base, position, values):
    z = np.empty(position.shape[1])
    for c in range(position.shape[0]):
        values.log_base[c] = base.log_norm - 0.5 * _whiten(
            base, position, c, z, values.base_slope[c]
        )


@implements(add_base, StudentTParameters)
def _student_t(base, position, values):
    d = position.shape[1]
    z = np.empty(d)
    for c in range(position.shape[0]):
        square = _whiten(base, position, c, z, values.base_slope[c])
        values.log_base[c] = base.log_norm - 0.5 * (base.df + d) * np.log1p(square / base.df)
        for j in range(d):
            values.base_slope[c, j] *= (base.df + d) / (base.df + square)


@implements(add_base, UniformParameters)
def _uniform(base, position, values):
    for c in range(position.shape[0]):
        inside = True
        for j in range(position.shape[1]):
            inside = inside and base.low[j] <= position[c, j] <= base.high[j]
            values.base_slope[c, j] = 0.0
        values.log_base[c] = base.log_norm if inside else -np.inf


@implements(add_base, TruncatedParameters)
def _truncated(base, position, values):
    for c in range(position.shape[0]):
        inside, square = True, 0.0
        for j in range(position.shape[1]):
            x = position[c, j]
            inside = inside and base.low[j] <= x <= base.high[j]
            z = (x - base.mean[j]) * base.diagonal[j]
            square += z * z
            values.base_slope[c, j] = -z * base.diagonal[j]
        values.log_base[c] = base.log_norm - 0.5 * square if inside else -np.inf

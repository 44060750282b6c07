"""Experts as compiled densities, in float64."""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import SUMS, implements, log64
from sklpf.kernels._densities import evaluate_density


class LaplaceExperts(NamedTuple):
    """exp(constant - sum |u|), u = filters @ x."""

    filters: np.ndarray  # (K, d)
    constant: float


class StudentTExperts(NamedTuple):
    """exp(constant - sum exponents log(1 + u²)), u = filters @ x."""

    filters: np.ndarray  # (K, d)
    exponents: np.ndarray  # (K,)
    constant: float


@implements(evaluate_density, LaplaceExperts, **SUMS)
def _laplace(experts, position, log_density, slope):
    u = np.dot(position, experts.filters.T)
    for c in range(u.shape[0]):
        energy = 0.0
        for k in range(u.shape[1]):
            energy += abs(u[c, k])
            u[c, k] = -1.0 if u[c, k] > 0.0 else (1.0 if u[c, k] < 0.0 else 0.0)
        log_density[c] = experts.constant - energy
    np.dot(u, experts.filters, slope)


@implements(evaluate_density, StudentTExperts, **SUMS)
def _student_t(experts, position, log_density, slope):
    exponents = experts.exponents
    u = np.dot(position, experts.filters.T)
    for c in range(u.shape[0]):
        energy = 0.0
        for k in range(u.shape[1]):
            s = 1.0 + u[c, k] * u[c, k]
            energy += exponents[k] * log64(s)
            u[c, k] *= -2.0 * exponents[k] / s
        log_density[c] = experts.constant - energy
    np.dot(u, experts.filters, slope)

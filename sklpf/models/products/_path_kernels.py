"""Experts as a compiled density, in float64."""

from typing import NamedTuple

import numpy as np

from sklpf.kernels import SUMS, implements, log64
from sklpf.kernels._densities import evaluate_density


class PackedExperts(NamedTuple):
    """exp(constant - sum of energies), u = filters @ x: |u| of Laplace experts, exponents log(1 +
    u²) of Student-t ones.
    """

    filters: np.ndarray  # (K, d)
    exponents: np.ndarray  # (K,), or (0,) of Laplace experts
    constant: float


@implements(evaluate_density, PackedExperts, **SUMS)
def _experts(experts, position, log_density, slope):
    exponents = experts.exponents
    u = np.dot(position, experts.filters.T)
    for c in range(u.shape[0]):
        energy = 0.0
        for k in range(u.shape[1]):
            if exponents.shape[0] == 0:
                energy += abs(u[c, k])
                u[c, k] = -1.0 if u[c, k] > 0.0 else (1.0 if u[c, k] < 0.0 else 0.0)
            else:
                s = 1.0 + u[c, k] * u[c, k]
                energy += exponents[k] * log64(s)
                u[c, k] *= -2.0 * exponents[k] / s
        log_density[c] = experts.constant - energy
    np.dot(u, experts.filters, slope)

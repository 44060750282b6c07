"""Square lattices of spins, and their exact log Z."""

import numpy as np
from scipy.special import logsumexp

CRITICAL_COUPLING = np.log(1 + np.sqrt(2)) / 2


def lattice(n, m):
    """Neighbours on an n x m square lattice that is closed to a torus, (nm, nm)."""
    sites = np.arange(n * m).reshape(n, m)
    pairs = np.zeros((n * m, n * m))
    for axis in (0, 1):
        neighbours = np.roll(sites, -1, axis=axis)
        np.add.at(pairs, (sites.ravel(), neighbours.ravel()), 1.0)
    return pairs + pairs.T


def kaufman(n, m, coupling):
    """log Z of the n x m torus without a field (Kaufman 1949)."""
    angles = np.pi * np.arange(2 * n) / n
    cosh = np.cosh(2 * coupling) ** 2 / np.sinh(2 * coupling) - np.cos(angles)
    gamma = np.arccosh(np.maximum(cosh, 1))
    gamma[0] = 2 * coupling + np.log(np.tanh(coupling))
    logs, signs = [], []
    for half in (gamma[1::2], gamma[::2]):
        logs.append(np.logaddexp(m * half / 2, -m * half / 2).sum())
        signs.append(1.0)
        size = m * np.abs(half)
        with np.errstate(divide="ignore"):
            logs.append(np.sum(size / 2 + np.log(-np.expm1(-size))))
        signs.append(np.prod(np.sign(half)))
    return n * m / 2 * np.log(2 * np.sinh(2 * coupling)) - np.log(2) + logsumexp(logs, b=signs)

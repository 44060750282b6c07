"""Correlated draws of normal densities."""

import numpy as np


def autoregressive(correlation, shape, seed=0):
    """Standard normal series along the second axis of this shape, each with an autocorrelation of
    `correlation` ** lag.
    """
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * x[:, t]
    return x

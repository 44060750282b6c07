"""The mean of independent weights: the estimate of annealed importance sampling and of particle
filters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf.uncertainty import log_mean_exp, standard_error


class MeanWeight(NamedTuple):
    """Log of a mean weight, and how sure it is.

    Attributes
    ----------
    log_mean : float
        In nats.
    delta, jackknife : float
        Its standard error by the delta method and by the jackknife.
    """

    log_mean: float
    delta: float
    jackknife: float

    @property
    def std_error(self) -> float:
        """The larger of the two."""
        return max(self.delta, self.jackknife)


def mean_weight(log_weights: Array) -> MeanWeight:
    """Log of the mean of independent weights (Neal 2001; Carlson et al. 2016, eq. 23).

    Parameters
    ----------
    log_weights : ndarray of shape (n,)
        In nats.

    Returns
    -------
    MeanWeight
        The log of the mean, and its standard errors.
    """
    n = len(log_weights)
    log_mean = float(log_mean_exp(log_weights))
    relative = np.exp(log_weights - log_mean)
    delta = standard_error(relative)
    # log mean of the others, less log_mean
    without = np.log(np.maximum(n - relative, np.finfo(float).tiny) / (n - 1))
    jackknife = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    return MeanWeight(log_mean, delta, jackknife)


class SeenFromTarget(NamedTuple):
    """Relative variance and effective share of the weights, as chains from the target say."""

    variance: float
    share: float


def seen_from_target(log_weights: Array, log_mean: float, alive: float = 1.0) -> SeenFromTarget:
    """What chains that went down from the target, with weights w' of the way up, say about the
    weights w of the others.

    Seen from there E w' = E w^2 / E w and E 1 / w' = P(w > 0) / E w, so that
    Var w / (E w)^2 = E w' E 1 / w' / P(w > 0) - 1.

    Parameters
    ----------
    log_weights : ndarray of shape (m,)
        log w', minus the increments on the way down.
    log_mean : float
        Log of the mean of w.
    alive : float, default=1.0
        P(w > 0).

    Returns
    -------
    SeenFromTarget
        ``variance``, relative, and the effective ``share`` of the weights.
    """
    up = float(log_mean_exp(log_weights))
    inverse = float(log_mean_exp(-log_weights))
    with np.errstate(over="ignore"):
        variance = float(np.expm1(max(up + inverse, 0.0) - np.log(alive)))
    return SeenFromTarget(variance, float(np.exp(min(log_mean - up, 0.0))))


def population_seen_from_target(
    down: NDArray,
    resampled: NDArray,
    log_means: NDArray,
    n_particles: int,
    log_weights: Array | float = 0.0,
) -> float:
    """Relative variance of a population's estimate of Z, as chains that went down from the target
    say.

    A population that holds a draw from the target, with its path, has the estimate Z' with E Z' / Z
    = E Z_hat^2 / Z^2. Its other N - 1 particles are taken for average ones: then the draw
    multiplies the mean weight between one resampling and the next by 1 + (r - 1) / N, r its own
    weight there relative to that mean.

    Parameters
    ----------
    down : ndarray of shape (n, K - 1) or (G, n, K - 1)
        log f_(k+1) - log f_k of the chains on their way; of chains of its own for each population.
    resampled : ndarray of shape (G, K)
        Whether the populations were resampled at each level.
    log_means : ndarray of shape (G, K)
        Their estimates of log Z_k / Z_0, all finite.
    n_particles : int
        Particles N of a population.
    log_weights : ndarray of shape (G,), default=0.0
        Logs of the populations' weights, whose mean is 1. Where the estimates of Z differ much,
        weights in proportion to these, which Z' multiplies, make the variance no larger than it is.

    Returns
    -------
    float
        Var Z_hat / Z^2.
    """
    down = np.broadcast_to(down, (len(log_means), *down.shape[-2:]))
    growth = np.empty(down.shape[:2])
    for g in range(len(log_means)):
        up = np.column_stack([np.zeros(down.shape[1]), np.cumsum(down[g], axis=1)])
        cuts = np.r_[0, np.flatnonzero(resampled[g, 1:-1]) + 1, up.shape[1] - 1]
        with np.errstate(over="ignore"):
            relative = np.exp(np.diff(up[:, cuts], axis=1) - np.diff(log_means[g, cuts]))
        growth[g] = np.sum(np.log1p((relative - 1) / n_particles), axis=1)
    growth += np.reshape(log_weights, (-1, 1))
    with np.errstate(over="ignore"):
        return float(np.expm1(max(float(log_mean_exp(growth)), 0.0)))

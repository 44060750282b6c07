"""The path from one RBM of discrete units to another, whose log Z is the log ratio of theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from sklpf._utils.numbers import Bits, Integers
from sklpf._utils.random import Stream
from sklpf.models._enumerable_path import BinaryUnits
from sklpf.models.comparing._density_ratio_path import N_GROUPS, draw_alarms, draws_of_both
from sklpf.models.rbm._checkpoints_path import CheckpointsPath, CheckpointState
from sklpf.models.rbm._learning import Parameters
from sklpf.partition import ParallelTempering
from sklpf.paths._base import check_ladder
from sklpf.uncertainty import between_groups

_N_SWEEPS = 4096
_N_DRAWS = 128  # of each model, for every ladder
_LEAST_ALIKE = 0.5


class RBMRatioPath(CheckpointsPath):
    """Path from one RBM to another with the same visible units: all parameters change linearly, h
    is summed out.

    Hidden units of the two that do the same are one unit of the path (`match_units`); others of
    either model have a counterpart of zeros at the other end. With n_0 and n_1 such counterparts at
    the ends

        log f_beta(v) = c_beta @ v + sum_j log(1 + e^(v @ W_beta_j + b_beta_j)) - ((1 - beta) n_0 +
        beta n_1) log 2,

    c_beta = (1 - beta) c_a + beta c_b and so on, so that f_0 and f_1 are the models' own densities
    and log Z_1 - log Z_0 = log Z_b - log Z_a. Level 0 counts as normalised: this path's log Z is
    that log ratio.

    No level mixes better than the models do. The states at both ends are therefore replaced, at
    every fourth sweep, by draws of the models. Each ladder has its own, from chains of its own, so
    that ladders stay independent.

    Parameters
    ----------
    a, b : Parameters
    draws_a, draws_b : ndarray of shape (G, N, M)
        N draws of 0 and 1 from the two models for each of G ladders.
    ladder : array-like of shape (K,)
    visible_units : BinaryUnits, default=BinaryUnits()
    """

    betas = np.array([0.0, 1.0])

    def __init__(
        self,
        a: Parameters,
        b: Parameters,
        draws_a: NDArray,
        draws_b: NDArray,
        ladder: ArrayLike = (0, 1),
        visible_units: BinaryUnits = CheckpointsPath.visible_units,
    ):
        self.visible_units = visible_units
        self.draws = np.stack([draws_a, draws_b]).astype(np.uint8)
        mean = self.draws.mean(axis=(0, 1, 2))
        pairs = match_units(a.components, b.components, mean * (1 - mean))
        self.weights, self.hidden = align(a, b, pairs)
        self.visible = np.stack([a.intercept_visible, b.intercept_visible])
        n_hidden = np.array([len(a.components), len(b.components)])
        self.constants = -np.log(2) * (self.hidden.shape[1] - n_hidden)
        self.ladder = check_ladder(ladder)

    def default_estimator(self) -> ParallelTempering:
        """Return what estimates the log ratio.

        Returns
        -------
        ParallelTempering
            Not fitted.
        """
        return ParallelTempering(N_GROUPS, n_sweeps=_N_SWEEPS)

    @property
    def draw_alarms(self) -> tuple[str, ...]:
        """Alarms about the draws, in sentences."""
        sums = self.draws.sum(axis=2, dtype=np.float64)
        shares = [between_groups(ladders, ladders, self.draws.shape[2]) for ladders in sums]
        return draw_alarms(shares)

    def sample_base(self, n: int, stream: Stream) -> CheckpointState:
        """Return n chains of one ladder, from its draws of the first model."""
        ladder = stream.chain // n % self.draws.shape[1]
        own = self.draws[0, ladder]
        return self.state_from_rows(own[stream.generator().integers(len(own), size=n)], ladder)


# ---- two models side by side
def match_units(weights_a: NDArray, weights_b: NDArray, variance: NDArray) -> Integers:
    """Return pairs of hidden units (n, 2) of two models that do nearly the same at visible units of
    a given variance.

    Units are alike by 2 Cov(x, y) / (Var x + Var y) of their inputs x and y, and matched so that
    the pairs are alike by as much above 1/2 as they can be, weighted by their variance (an
    assignment problem).
    """
    covariance = (weights_a * variance) @ weights_b.T
    var_a, var_b = ((w * variance * w).sum(axis=1) for w in (weights_a, weights_b))
    gain = covariance - _LEAST_ALIKE / 2 * (var_a[:, np.newaxis] + var_b)
    pairs = np.stack(linear_sum_assignment(np.maximum(gain, 0), maximize=True), axis=1)
    return pairs[gain[pairs[:, 0], pairs[:, 1]] > 0]


def align(a: Parameters, b: Parameters, pairs: Integers) -> tuple[NDArray, NDArray]:
    """Weights (2, n, M) and biases (2, n) of one hidden layer at both ends: pairs, then units of a,
    then those of b.
    """
    pairs_a, pairs_b = pairs.T
    none_a, none_b = len(a.components), len(b.components)  # numbers of units of zeros
    alone_a = np.setdiff1d(np.arange(none_a), pairs_a)
    alone_b = np.setdiff1d(np.arange(none_b), pairs_b)
    units_a = np.r_[pairs_a, alone_a, np.full(len(alone_b), none_a)]
    units_b = np.r_[pairs_b, np.full(len(alone_a), none_b), alone_b]

    ends = []
    for model, units in ((a, units_a), (b, units_b)):
        layer = np.c_[model.components, model.intercept_hidden]
        ends.append(np.vstack([layer, np.zeros(layer.shape[1])])[units])
    layers = np.stack(ends)
    return layers[:, :, :-1], layers[:, :, -1]


# ---- from models
def ratio_path(model_a: Any, model_b: Any) -> RBMRatioPath | None:
    """Return the path from one fitted RBM to another, with draws of both; None if a run that draws
    has not converged.
    """
    models = model_a, model_b
    paths = [model.path() for model in models]
    draws = draws_of_both(models, paths, _N_DRAWS, _exact_rows)
    if draws is None:
        return None
    a, b = (Parameters.of(model).astype(np.float64) for model in models)
    draws_a, draws_b = draws
    return RBMRatioPath(a, b, draws_a, draws_b, visible_units=model_a._visible_units)


def _exact_rows(path, seed) -> Bits | None:
    """Exact draws for every ladder, (G, N, M); None where units are too many to be enumerated."""
    exact = path.default_estimator()
    if isinstance(exact, ParallelTempering):
        return None
    v = exact.sample(path, N_GROUPS * _N_DRAWS, np.random.default_rng(seed)).v
    return v.reshape(_N_DRAWS, N_GROUPS, -1).swapaxes(0, 1)

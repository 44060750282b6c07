"""Checkpoints of training, so close that neighbours exchange states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf.models._enumerable_path import BinaryUnits
from sklpf.models.rbm._free_energy import Parameters

_LEAST_ACCEPTANCE = 0.5  # of swaps between neighbours, unless training jumps
_FIRST = 10  # updates before the first look
_GROWTH = 1.1  # of the number of updates from look to look
_N_CHAINS = 100
_N_SWEEPS = 5  # of the chains at each look
_SMALLEST_PIECE = 0.02  # rejection rate that a piece of the path has at least


class Point(NamedTuple):
    """An RBM and draws from it."""

    parameters: Parameters
    v: NDArray[np.bool_]  # (n, M)

    def log_f(self, v: NDArray[np.bool_]) -> Array:
        """log f of rows v, (n,)."""
        return self.parameters.log_f(v.astype(np.float32))


@dataclass(frozen=True)
class Trajectory:
    """What is kept of training until an update, from independent units on.

    An RBM is looked at whenever the number of updates has grown by a tenth, by chains that move
    along. It is kept if the last one that was kept would exchange states with a later one too
    rarely. What training did before it was nearest to the base is forgotten: weights and biases
    begin at 0, but the base has the means of the data.

    Attributes
    ----------
    kept : tuple of Point
        The base and the checkpoints.
    rejections : tuple of float
        Of swaps between neighbours, one fewer.
    latest : Point
        The RBM at the last look.
    h : ndarray of shape (100, J)
        Hidden units of the chains.
    distance : float
        The smallest symmetrised Kullback-Leibler divergence of an RBM from the base, in nats.
    n_updates, next_look : int
        Updates that were made, and that the next look waits for.
    seed : int
    units : BinaryUnits
        The visible units.
    """

    kept: tuple[Point, ...]
    rejections: tuple[float, ...]
    latest: Point
    h: NDArray[np.float32]
    distance: float
    seed: int
    units: BinaryUnits
    n_updates: int = 0
    next_look: int = _FIRST

    @classmethod
    def of(cls, model) -> Trajectory:
        """What a model's training has left, else independent units with its data's means."""
        kept = vars(model).get("_trajectory")
        if kept is not None:
            return kept
        rng = np.random.default_rng([model._partition_seed, 0])
        mean = model.visible_mean_
        n_hidden = len(model.components_)
        units = model._visible_units
        logits = units.logits_of(mean)
        weights = np.zeros((n_hidden, len(mean)), dtype=np.float32)
        base = Parameters(weights, logits.astype(np.float32), weights[:, 0])
        h = (rng.random((_N_CHAINS, n_hidden)) < 0.5).astype(np.float32)
        v, h = base.gibbs(h, rng, units)
        start = Point(base, v > 0)
        return cls((start,), (), start, h, np.inf, model._partition_seed, units)

    @property
    def n_until_look(self) -> int:
        """Number of updates after which the next look is due."""
        return self.next_look - self.n_updates

    def after(self, n: int, trainer) -> Trajectory:
        """Return what is kept after n further updates, at most as many as until the next look."""
        now = replace(self, n_updates=self.n_updates + n)
        if now.n_until_look:
            return now
        next_look = max(now.n_updates + 1, int(_GROWTH * now.n_updates))
        return replace(now, next_look=next_look)._look(trainer.parameters)

    def _look(self, parameters: Parameters) -> Trajectory:
        rng = np.random.default_rng([self.seed, self.n_updates])
        h = self.h
        for _ in range(_N_SWEEPS):
            v, h = parameters.gibbs(h, rng, self.units)
        here = Point(parameters.astype(np.float32), v > 0)
        now = replace(self, latest=here, h=h)
        distance = _divergence(self.kept[0], here)
        if 0 < distance < self.distance:  # negative where chains lag far behind
            return replace(now, kept=self.kept[:1], rejections=(), distance=distance)
        last = self.kept[-1]
        if self.latest is last or acceptance(last, here) >= _LEAST_ACCEPTANCE:
            return now
        rejections = *self.rejections, 1 - acceptance(last, self.latest)
        return replace(now, kept=(*self.kept, self.latest), rejections=rejections)

    def to_path(self) -> tuple[NDArray[np.float32], Array]:
        """Return the checkpoints (C, J + 1, M + 1), weights with biases below and beside them, and
        their betas (C,), so that levels at equal distances reject about equally often.
        """
        rejections = *self.rejections, 1 - acceptance(self.kept[-1], self.latest)
        lengths = np.cumsum(np.maximum(rejections, _SMALLEST_PIECE))
        parameters = np.stack([point.parameters.as_one() for point in self.kept])
        return parameters[1:].astype(np.float32), lengths[:-1] / lengths[-1]


def acceptance(first: Point, second: Point) -> float:
    """Mean probability with which draws of two RBMs are swapped."""
    gain_first, gain_second = _gains(first, second)
    return float(np.mean(np.exp(np.minimum(np.subtract.outer(gain_first, gain_second), 0.0))))


def _divergence(first: Point, second: Point) -> float:
    """Symmetrised Kullback-Leibler divergence in nats."""
    gain_first, gain_second = _gains(first, second)
    return float(gain_second.mean() - gain_first.mean())


def _gains(first: Point, second: Point) -> tuple[Array, Array]:
    """log f_second - log f_first at the draws of both."""
    a, b = (second.log_f(point.v) - first.log_f(point.v) for point in (first, second))
    return a, b

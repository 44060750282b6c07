"""Training of RBMs of discrete units: the weights in the layouts of the kernel, what lies between
these and the model's attributes, and the checkpoints that training leaves.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from sklpf._utils.layout import LANES, aligned_zeros, padded
from sklpf._utils.numbers import Array, Array32
from sklpf._utils.parallel import SideBySide, n_threads_for
from sklpf._utils.random import draw_seed, stream_key
from sklpf.models._enumerable_path import BinaryUnits
from sklpf.models._learning import same_values
from sklpf.models._missing import Completion
from sklpf.models.rbm._path import Parameters
from sklpf.training import RunningAverage, check_not_diverged

_VALUES_AT_ONCE = 1 << 24  # of X whose non-zero values are listed at a time
# Rows times visible times hidden units of an update for each part of the visible units, of which a
# thread takes at least one: with a quarter of the units on half a millisecond or so
_WORK_OF_PART = 1 << 25
_MOST_PARTS = 8  # whose sums are added up
_FIRST = 10  # updates before the first look at a trajectory
_N_CHAINS = 100  # of a trajectory


def zeros(n_rows: int, n_columns: int) -> Array32:
    """Zeros with rows an odd number of cache lines apart, so that a column of tiles uses all of the
    cache's sets.
    """
    return aligned_zeros(n_rows, LANES * (padded(n_columns) // LANES | 1))


class Weights(NamedTuple):
    """All parameters in the layout of the kernel, padded with zeros to multiples of a register."""

    matrix: Array32  # (M padded + 1, J padded + 16): a row and a column of biases last
    n_visible: int
    n_hidden: int

    @classmethod
    def of(cls, parameters: Parameters) -> Weights:
        """Lay out the parameters."""
        n_hidden, n_visible = parameters.components.shape
        matrix = zeros(padded(n_visible) + 1, padded(n_hidden) + LANES)
        weights = cls(matrix, n_visible, n_hidden)
        for part, values in zip(weights.parameters, parameters):
            part[:] = values
        return weights

    @property
    def parameters(self) -> Parameters:
        """Views of the parameters."""
        m = self.n_visible
        n = self.n_hidden
        matrix = self.matrix
        return Parameters(matrix[:m, :n].T, matrix[:m, padded(n)], matrix[-1, :n])


class Training(NamedTuple):
    """State from which `partial_fit` goes on, beside the model's attributes."""

    n_rows: int = 0  # that were seen
    n_averaged: int = 0
    shown: Parameters | None = None  # where the model's weights are an average: these
    last: Parameters | None = None  # and those after the last update


class Trainer:
    """The weights of a model, their average, the chains, the data, and the place in the random
    stream.

    Parameters
    ----------
    model : BernoulliRBM
        With `components_`, both intercepts and `h_samples_`. Where these weights are the average
        that training has left, it goes on from those after the last update.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    batch_size : int
        Rows in a minibatch; the last one is shorter if need be.
    rng : RandomState
        One number is drawn from it.
    """

    def __init__(self, model, X, batch_size: int, rng: np.random.RandomState):
        shown = Parameters.of(model)
        kept = vars(model).get("_training", Training())
        if kept.shown is None or not same_values(kept.shown, shown):
            kept = Training(kept.n_rows, last=shown)
        self.weights = Weights.of(kept.last)
        # without averages nothing is written to them
        self.averaged = Weights.of(shown) if model.average else self.weights
        self.average = RunningAverage(model.average, kept.n_rows, kept.n_averaged)
        n_components, n_features = shown.components.shape
        self.chains = zeros(model._n_chains, n_components)
        self.h[:] = np.resize(model.h_samples_ != 0, self.h.shape)
        self.batch_size = min(int(batch_size), X.shape[0])
        n_rows = self.batch_size + len(self.chains)
        most_parts = min(_MOST_PARTS, padded(n_features) // LANES)
        n_parts = max(1, min(most_parts, n_rows * n_components * n_features // _WORK_OF_PART))
        n_threads = min(n_threads_for(model.n_jobs), n_parts)
        self.block, self.team = _block(
            self.chains, self.batch_size, n_features, n_components, n_parts, n_threads
        )

        self.learning_rate = model.learning_rate
        self.weight_decay = model.weight_decay
        linear = model.learning_rate_schedule == "linear"
        self.n_updates = model.n_iter * -(-X.shape[0] // self.batch_size) if linear else np.inf
        self.step = 0
        seed = draw_seed(rng)
        self.key = stream_key(seed)
        units = model._visible_units
        self.starts = units.starts
        missing = units.missing(X)
        self.completion = None
        if missing is not None:
            self.completion = Completion(X, missing, units, model.visible_mean_, seed)
        self.X = X if self.completion is None else self.completion.X
        self.trajectory = Trajectory.of(model) if model.track_trajectory else None

        at_once = max(1, _VALUES_AT_ONCE // (self.batch_size * n_features)) * self.batch_size
        self.chunks = list(gen_batches(X.shape[0], at_once))
        self.values: Any = None
        self.threads = SideBySide(n_threads)
        self.is_compiled = False

    @property
    def h(self) -> Array32:
        """Hidden units of the chains, (B, J)."""
        return self.chains[:, : self.weights.n_hidden]

    def run(self) -> None:
        """Make one pass over the data."""
        for rows in self.chunks:
            if self.completion is not None:
                self.completion.renew(self.weights.parameters, rows)
            if self.values is None or len(self.chunks) > 1 or self.completion is not None:
                self.values = _values(self.X[rows])
            updates = self._updates(rows.stop - rows.start)
            first = 0
            while first < len(updates.rates):
                first = self._make(updates, first)
            self.step += first

    def _make(self, updates, first: int) -> int:
        """Make updates from `first` on until the trajectory is to be looked at; returns the number
        of the next one.
        """
        from sklpf.models.rbm._learning_kernels import train

        n = len(updates.rates) - first
        if self.trajectory is not None:
            n = min(n, self.trajectory.n_until_look)
        begin = functools.partial(
            train,
            self.weights.matrix,
            self.averaged.matrix,
            self.values,
            self.block,
            self.starts,
            updates,
            first,
        )
        place = self.key, self.step
        if not self.is_compiled:
            begin(first, *place, self.team[0])
            self.is_compiled = True
        self.threads.run(lambda thread: begin(first + n, *place, self.team[thread]))
        if self.trajectory is not None:
            self.trajectory = self.trajectory.after(n, self)
        return first + n

    def _updates(self, n_rows: int):
        """The updates by as many rows."""
        from sklpf.models.rbm._learning_kernels import Updates

        edges = np.append(np.arange(0, n_rows, self.batch_size), n_rows)
        batches = np.diff(edges)
        number = np.arange(self.step, self.step + len(batches))
        rate = self.learning_rate * (1 - number / self.n_updates)
        # Each phase is a mean. scikit-learn divides the sum over the chains by the rows of the
        # batch, so that a short last batch is a step away from what the chains have learned.
        rates = np.column_stack([rate / batches, rate / len(self.h)])
        shrinkages = np.minimum(self.weight_decay * rate, 1.0).astype(np.float32)
        return Updates(edges, rates, self.average.shares(batches), shrinkages)

    @property
    def parameters(self) -> Parameters:
        """The weights, averaged once an average has begun; ValueError if training has diverged."""
        check_not_diverged(self.weights.matrix)
        return (self.averaged if self.average.n_averaged else self.weights).parameters

    def snapshot(self) -> tuple:
        """A copy of what `restore` goes back to."""
        return *copy.deepcopy(
            (self.weights, self.averaged, self.average, self.chains)
        ), self.trajectory

    def restore(self, snapshot: tuple) -> None:
        """Go back to a snapshot."""
        self.weights, self.averaged, self.average, chains, self.trajectory = snapshot
        self.chains[:] = chains  # which are part of the block

    def store(self, model) -> None:
        """Write weights and chains to the model, in its dtype; ValueError if training has
        diverged.
        """
        dtype = model.components_.dtype
        parameters = self.parameters.astype(dtype)
        model.components_, model.intercept_visible_, model.intercept_hidden_ = parameters
        model.h_samples_ = self.h.astype(dtype)
        model._trajectory = self.trajectory
        model._training = Training(self.average.n_rows)
        if self.average.n_averaged:
            shown = Parameters.of(model).copy()
            last = self.weights.parameters.copy()
            model._training = Training(self.average.n_rows, self.average.n_averaged, shown, last)


def _values(X):
    """The non-zero values of X as the kernel takes them."""
    from sklpf.models.rbm._learning_kernels import Values, compress

    if sp.issparse(X):
        if not np.all(X.data):
            X = X.copy()
            X.eliminate_zeros()
        with np.errstate(over="ignore"):  # infinite values make training diverge, which is reported
            values = X.data.astype(np.float32)
        return Values(X.indptr.astype(np.int64), X.indices.astype(np.int32), values)

    n_values = np.count_nonzero(X)
    values = Values(
        np.zeros(len(X) + 1, np.int64),
        np.empty(n_values, np.int32),
        np.empty(n_values, np.float32),
    )
    X = np.asarray(X).view()
    X.setflags(write=False)
    compress(X, *values)
    return values


def _block(chains, n_rows: int, n_visible: int, n_hidden: int, n_parts: int, n_threads: int):
    """The kernel's work space for chains, as many rows of data and units, and its team of
    threads.
    """
    from sklpf.kernels import layer
    from sklpf.kernels._teams import team
    from sklpf.models.rbm._learning_kernels import PANEL, Block

    n_rows += len(chains)
    visible = zeros(padded(n_rows), n_visible)
    parts = padded(n_visible) // LANES * np.arange(n_parts + 1) // n_parts * LANES
    fields = _by_part(zeros(n_parts * n_rows, n_hidden), n_parts)
    alone = fields[0] if n_threads == 1 else zeros(n_rows, n_hidden)
    block = Block(
        visible=visible,
        parts=parts,
        by_part=_layer(n_parts, n_rows, np.diff(parts).max(), visible, n_visible),
        fields=fields,
        hidden=alone,
        width=padded(n_hidden),
        chains=layer(len(chains), n_hidden + LANES)._replace(
            units=chains, off=np.zeros(n_hidden, np.uint8)
        ),
        by_unit=_layer(
            n_threads, PANEL, n_rows, _by_part(zeros(n_threads * PANEL, n_rows), n_threads), n_rows
        ),
        panel=_by_part(zeros(n_threads * (padded(n_hidden) + LANES), PANEL), n_threads),
        coefficients=np.empty(n_rows, np.float32),
        changes=np.empty((n_threads, PANEL), np.float32),
        bits=np.empty((n_threads, max(n_visible, n_hidden) + 4), np.uint32),
        units=np.empty((n_threads, max(n_visible, n_hidden)), np.uint8),
    )
    return block, team(n_threads)


def _layer(n_layers: int, n_rows: int, most: int, units, n_units: int):
    """Room for several layers' products of rows, of which at most `most` of `n_units` units are
    on.
    """
    from sklpf.kernels import Layer

    room = most + LANES
    return Layer(
        np.empty((n_layers, n_rows, room), np.int32),
        np.empty((n_layers, n_rows, room), np.float32),
        np.zeros((n_layers, n_rows), np.int64),
        units,
        np.zeros(n_units, np.uint8),
    )


def _by_part(rows, n_parts: int):
    """Equal parts of rows, along a new first axis."""
    return rows.reshape(n_parts, -1, *rows.shape[1:])


# ---- checkpoints of training, so close that neighbours exchange states
class Point(NamedTuple):
    """An RBM and draws from it."""

    parameters: Parameters
    v: Array32  # (n, M)


@dataclass(frozen=True)
class Trajectory:
    """Record of training until an update, from independent units on.

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
    h: Array32
    distance: float
    seed: int
    units: BinaryUnits
    n_updates: int = 0
    next_look: int = _FIRST

    @classmethod
    def of(cls, model) -> Trajectory:
        """Trajectory that a model's training has left, else independent units with its data's
        means.
        """
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
        start = Point(base, v)
        return cls((start,), (), start, h, np.inf, model._partition_seed, units)

    @property
    def n_until_look(self) -> int:
        """Number of updates after which the next look is due."""
        return self.next_look - self.n_updates

    def after(self, n: int, trainer) -> Trajectory:
        """Return what is kept after n further updates, at most as many as until the next look."""
        growth = 1.1  # of the number of updates from look to look
        now = replace(self, n_updates=self.n_updates + n)
        if now.n_until_look:
            return now
        next_look = max(now.n_updates + 1, int(growth * now.n_updates))
        return replace(now, next_look=next_look)._look(trainer.parameters)

    def _look(self, parameters: Parameters) -> Trajectory:
        least_acceptance = 0.5  # of swaps between neighbours, unless training jumps
        n_sweeps = 5  # of the chains at each look
        rng = np.random.default_rng([self.seed, self.n_updates])
        h = self.h
        for _ in range(n_sweeps):
            v, h = parameters.gibbs(h, rng, self.units)
        here = Point(parameters.astype(np.float32), v)
        now = replace(self, latest=here, h=h)
        gain_base, gain_here = _gains(self.kept[0], here)
        distance = float(gain_here.mean() - gain_base.mean())  # of Kullback and Leibler, both ways
        if 0 < distance < self.distance:  # negative where chains lag far behind
            return replace(now, kept=self.kept[:1], rejections=(), distance=distance)
        last = self.kept[-1]
        if self.latest is last or acceptance(last, here) >= least_acceptance:
            return now
        rejections = *self.rejections, 1 - acceptance(last, self.latest)
        return replace(now, kept=(*self.kept, self.latest), rejections=rejections)

    def to_path(self) -> tuple[Array32, Array]:
        """Return the checkpoints (C, J + 1, M + 1), weights with biases below and beside them, and
        their betas (C,), so that levels at equal distances reject about equally often.
        """
        smallest_piece = 0.02  # rejection rate that a piece of the path has at least
        rejections = *self.rejections, 1 - acceptance(self.kept[-1], self.latest)
        lengths = np.cumsum(np.maximum(rejections, smallest_piece))
        parameters = np.stack([point.parameters.as_one() for point in self.kept])
        return parameters[1:].astype(np.float32), lengths[:-1] / lengths[-1]


def acceptance(first: Point, second: Point) -> float:
    """Mean probability with which draws of two RBMs are swapped."""
    gain_first, gain_second = _gains(first, second)
    return float(np.mean(np.exp(np.minimum(np.subtract.outer(gain_first, gain_second), 0.0))))


def _gains(first: Point, second: Point) -> tuple[Array, Array]:
    """log f_second - log f_first at the draws of both."""
    a, b = (second.parameters.log_f(v) - first.parameters.log_f(v) for v in (first.v, second.v))
    return a, b

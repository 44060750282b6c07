"""Learning of a Boltzmann machine: by its pseudo-likelihood, or from persistent chains.

Both maximise the objective less the penalty alpha (r sum |J_ij| + (1 - r) sum J_ij² / 2) over the
pairs i < j that may be coupled, with r = l1_ratio.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream
from sklpf.models.boltzmann._path import BoltzmannPath

_ITERATIONS = 50  # of L-BFGS in a pass
_STEPS = 10  # of persistent chains in a pass
_SETTLED = 0.5  # share of the updates after which the average begins
_NUMBERS_AT_ONCE = 1 << 16  # of columns that are copied beside each other


class Parameters(NamedTuple):
    """Learned parameters."""

    intercept: Array  # (M,)
    couplings: Array  # (n_pairs,)


class Pairs(NamedTuple):
    """The pairs of units i < j that may be coupled."""

    first: Integers
    second: Integers
    n_units: int
    are_sparse: bool

    def matrix(self, couplings) -> Array | sp.csr_array:
        """Return the symmetric matrix (M, M) of the pairs' couplings."""
        shape = self.n_units, self.n_units
        if self.are_sparse:
            upper = sp.csr_array((couplings, (self.first, self.second)), shape=shape)
            return sp.csr_array(upper + upper.T)
        matrix = np.zeros(shape)
        matrix[self.first, self.second] = couplings
        matrix[self.second, self.first] = couplings
        return matrix

    def products(self, A, B) -> Array:
        """Return the sums over rows of A_i B_j at the pairs, (n_pairs,)."""
        if not self.are_sparse:
            return (A.T @ B)[self.first, self.second]
        sums = np.empty(len(self.first))
        columns_of_a = np.ascontiguousarray(A.T)
        columns_of_b = np.ascontiguousarray(B.T)
        length = max(1, _NUMBERS_AT_ONCE // len(A))
        for start in range(0, len(sums), length):
            block = slice(start, start + length)
            columns = columns_of_a[self.first[block]], columns_of_b[self.second[block]]
            sums[block] = np.einsum("pr,pr->p", *columns)
        return sums


class Penalty(NamedTuple):
    """An elastic net on the couplings, per row of data."""

    l1: float
    l2: float

    def __call__(self, couplings) -> float:
        return self.l1 * float(np.abs(couplings).sum()) + self.l2 / 2 * float(couplings @ couplings)


def log_pseudo_likelihood(X, intercept, couplings) -> Array:
    """Sum over units of log p(x_i | all other units of x) of every row, (n,), in nats."""
    return _log_probabilities(X, X @ couplings + intercept).sum(axis=1)


def _log_probabilities(X, fields) -> Array:
    """x log p(on) + (1 - x) log p(off) of every unit given its input, (n, M), in nats."""
    on = X > 0
    return log_expit(np.where(on, fields, -fields)) - on * (1 - X) * fields


class PseudoLikelihood:
    """Climbs the mean log pseudo-likelihood less the penalty, which is concave, by L-BFGS.

    A coupling is the difference of two numbers of at least 0 where there is an L1 penalty, which
    makes it smooth.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_units)
        Rows of 0 and 1.
    pairs : Pairs
        The pairs of units that may be coupled.
    penalty : Penalty
    """

    def __init__(self, X, pairs: Pairs, penalty: Penalty):
        self.X = X
        self.pairs = pairs
        self.penalty = penalty
        mean = X.mean(axis=0).clip(0.5 / len(X), 1 - 0.5 / len(X))
        self.parameters = Parameters(np.log(mean / (1 - mean)), np.zeros(len(pairs.first)))
        self.objectives: list[float] = []

    def run(self) -> None:
        """Make some iterations of L-BFGS."""
        intercept, couplings = self.parameters
        parts = [intercept, couplings]
        bounds = None
        if self.penalty.l1 > 0:
            parts[1:] = [np.maximum(couplings, 0), np.maximum(-couplings, 0)]
            bounds = [(None, None)] * len(intercept) + [(0, None)] * (2 * len(couplings))
        options = {"maxiter": _ITERATIONS, "maxcor": 20, "ftol": 1e-14, "gtol": 1e-9}
        found = minimize(
            self._loss,
            np.concatenate(parts),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=options,
        )
        self.parameters = self._unpack(found.x)
        self.objectives.append(-float(found.fun))

    def _unpack(self, values) -> Parameters:
        intercept, rest = np.split(values, [self.pairs.n_units])
        if self.penalty.l1 > 0:
            positive, negative = np.split(rest, 2)
            rest = positive - negative
        return Parameters(intercept, rest)

    def _loss(self, values):
        X = self.X
        intercept, couplings = self._unpack(values)
        fields = X @ self.pairs.matrix(couplings) + intercept
        loss = -_log_probabilities(X, fields).sum() / len(X)
        residuals = (expit(fields) - X) / len(X)
        slopes = self.pairs.products(X, residuals) + self.pairs.products(residuals, X)
        by_coupling = slopes + self.penalty.l2 * couplings
        by_value = [residuals.sum(axis=0), by_coupling]
        if self.penalty.l1 > 0:
            by_value[1:] = [by_coupling + self.penalty.l1, self.penalty.l1 - by_coupling]
        return loss + self.penalty(couplings), np.concatenate(by_value)


class PersistentChains:
    """Climbs the likelihood less the penalty: the data's moments less those of persistent chains.

    The gradient needs E[x_i] and E[x_i x_j] alone: those of all rows, and of chains that make one
    Gibbs sweep after every step (Younes 1989; Tieleman 2008). The learning rate falls linearly to
    0, and the parameters are averages over the second half of the steps.

    Parameters
    ----------
    model : BoltzmannMachine
        Its parameters say how to train, its `mean_` where chains start.
    begun : PseudoLikelihood
        What has climbed the pseudo-likelihood of the same rows.
    stream : Stream
        Where all random numbers come from.
    """

    def __init__(self, model, begun: PseudoLikelihood, stream: Stream):
        self.pairs = begun.pairs
        self.penalty = begun.penalty
        self.current = begun.parameters
        self.average = begun.parameters
        self.n_averaged = 0
        self.learning_rate = model.learning_rate
        self.n_updates = model.max_iter * _STEPS
        self.step = 0
        self.stream = stream
        self.base_mean = model.mean_
        self.mean, self.products = self._moments(begun.X)
        self.state = self._path().sample_base(model.n_chains, stream.of("starts"))

    @property
    def parameters(self) -> Parameters:
        """The average, once it has begun."""
        return self.average if self.n_averaged else self.current

    def run(self) -> None:
        """Make some steps."""
        for _ in range(_STEPS):
            self._ascend(self.learning_rate * (1 - self.step / self.n_updates))
            self.step += 1
            if self.step > _SETTLED * self.n_updates:
                self.n_averaged += 1
                ends = zip(self.average, self.current)
                self.average = Parameters(*(a + (b - a) / self.n_averaged for a, b in ends))

    def _ascend(self, rate):
        betas = np.ones(len(self.state.x))
        self.state = self._path()._sweep(self.state, betas, self.stream.at(self.step))
        mean, products = self._moments(self.state.x.astype(np.float64))
        intercept, couplings = self.current
        intercept = intercept + rate * (self.mean - mean)
        couplings = couplings + rate * (self.products - products - self.penalty.l2 * couplings)
        shrunk = np.maximum(np.abs(couplings) - rate * self.penalty.l1, 0)
        self.current = Parameters(intercept, np.copysign(shrunk, couplings))

    def _moments(self, X):
        return X.mean(axis=0), self.pairs.products(X, X) / len(X)

    def _path(self):
        largest_parameter = 1e30  # that is no sign of divergence
        intercept, couplings = self.current
        if not np.all(np.abs(np.concatenate(self.current)) < largest_parameter):
            raise ValueError(
                "training diverged: the parameters are no longer finite; lower learning_rate"
            )
        return BoltzmannPath(self.pairs.matrix(couplings), intercept, self.base_mean)

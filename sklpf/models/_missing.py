"""Missing values of RBMs: sums over the visible units that are not known, given those that are.

Given what is known of a row, its missing units and the hidden ones are an RBM of their own: the
known units only change the inputs of the hidden ones. Where its smaller layer can be enumerated
the sum is exact; columns that share no hidden unit are apart. Else its log Z is estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, softmax

from sklpf._utils.numbers import LOG_TAU, Array, Booleans, Integers
from sklpf._utils.validation import rows_by_pattern
from sklpf.models._enumerable_path import BinaryUnits, bits, quadratic_sums, subset_sums
from sklpf.partition import AIS, ParallelTempering
from sklpf.paths import Path

_MOST_STATES = 1 << 20  # that are enumerated for a row, as for log Z
_MOST_NUMBERS = 1 << 22  # units in a table of all states
_ROWS_AT_ONCE = 1024
_NEGLIGIBLE = 1e-13  # probability of a state that is left out of means, whose error is below 1e-7


class Layers(NamedTuple):
    """Layers of an RBM, as sums over missing units need them.

    log f(v, h) = known(v) + h @ (bias + weights @ v), and the sum of f over units of the visible
    layer with the inputs x is exp(units.log_norms(x)).
    """

    weights: NDArray  # (J, M)
    visible_bias: NDArray  # (M,), inputs of the visible units without hidden ones
    units: Any  # visible units, such as `BinaryUnits`
    starts: Integers  # (C + 1,) first unit of each column
    path: Callable[[Part, Array], Any]  # of a part of one row, with the inputs of hidden units (j,)
    axes: Any = None  # where units depend on other columns than their own

    def parts(self, missing: Booleans) -> list[Part]:
        """Return the RBMs of the missing columns (C,), those that share hidden units in one."""
        columns = np.flatnonzero(missing)
        joined = np.add.reduceat(self.weights != 0, self.starts[:-1], axis=1) > 0
        joined = joined[:, columns]
        if joined.all():
            return [Part.of(self, columns, np.arange(len(joined)))]
        graph = sp.block_array([[None, joined], [joined.T, None]])
        _, labels = connected_components(graph, directed=False)
        of_hidden, of_columns = np.split(labels, [len(joined)])
        return [
            Part.of(self, columns[of_columns == label], np.flatnonzero(of_hidden == label))
            for label in np.unique(of_columns)
        ]


class Part(NamedTuple):
    """Missing columns, and the hidden units that these share."""

    layers: Layers
    columns: Integers
    visible: Integers  # (m,) their units
    hidden: Integers  # (j,)

    @classmethod
    def of(cls, layers: Layers, columns: Integers, hidden: Integers) -> Part:
        """Return the part of some columns."""
        starts = layers.starts
        units = [np.arange(starts[c], starts[c + 1]) for c in columns]
        return cls(layers, columns, np.concatenate(units), hidden)

    @property
    def weights(self) -> Array:
        """Weights between its units, (j, m)."""
        return self.layers.weights[np.ix_(self.hidden, self.visible)]

    @property
    def bias(self) -> Array:
        """Inputs of its visible units without hidden ones, (m,)."""
        return self.layers.visible_bias[self.visible]

    @property
    def units(self) -> Any:
        """Its visible units."""
        return self.layers.units.of_columns(self.columns)

    def states(self) -> States | None:
        """Return the states of its smaller layer, None where there are too many."""
        with np.errstate(over="ignore"):  # infinite beyond 1e308
            n_visible = self.units.n_states(len(self.visible))
            n_hidden = float(np.exp2(len(self.hidden)))
        by_visible = n_visible * len(self.hidden)
        by_hidden = n_hidden * len(self.visible)
        most = _MOST_NUMBERS / max(self.weights.shape, default=1)
        most_visible = _MOST_STATES if self.units.are_independent else min(most, _MOST_STATES)
        if n_visible <= most_visible and (by_visible <= by_hidden or n_hidden > _MOST_STATES):
            if self.units.are_independent:
                return BinaryStates(self)
            return VisibleStates(self, self.units.all_states())
        return HiddenStates(self) if n_hidden <= _MOST_STATES else None

    def path(self, fields: Array) -> Path:
        """Return the path to the RBM of one row, whose hidden units have these inputs (J,)."""
        return self.layers.path(self, fields[self.hidden])


class VisibleStates:
    """States of the missing units of a part (S, m): all of them, or draws given one row."""

    def __init__(self, part: Part, v: Array):
        self.v = np.asarray(v, dtype=np.float64)
        self.hidden = part.hidden
        self.linear = self.v @ part.bias
        self.inputs = np.ascontiguousarray(self.v @ part.weights.T)

    def log_weights(self, fields: Array) -> Array:
        """Return log f of the states of a row whose hidden units have these inputs, (S,)."""
        from sklpf.models.rbm._free_energy_kernels import softplus_sums

        sums = np.empty(len(self.v))
        softplus_sums(self.inputs + fields[self.hidden], sums)
        return self.linear + sums

    def hidden_means(self, shares: Array, fields: Array) -> Array:
        """Return the probabilities of the hidden units (j,), given those of the states."""
        return shares @ expit(self.inputs + fields[self.hidden])

    def visible_means(self, shares: Array) -> Array:
        """Return the means of the missing units (m,)."""
        return shares @ self.v

    def draw(self, shares: Array, rng: np.random.Generator) -> Array:
        """Return missing units (m,) drawn in proportion to shares."""
        return self.v[rng.choice(len(shares), p=shares)]


class BinaryStates:
    """All states of the missing units of a part that are binary, 2^m."""

    def __init__(self, part: Part):
        self.hidden = part.hidden
        self.weights = part.weights
        self.bias = part.bias

    def log_weights(self, fields: Array) -> Array:
        """Return log f of the states, as `VisibleStates.log_weights`."""
        hidden = BinaryUnits()
        return hidden.log_norms_of_states(self.weights.T, fields[self.hidden], self.bias)

    def hidden_means(self, shares: Array, fields: Array) -> Array:
        """Return the probabilities of the hidden units (j,)."""
        means = np.zeros(len(self.hidden))
        for likely in _likely_states(shares, max(self.weights.shape)):
            v = bits(likely, len(self.bias))
            means += shares[likely] @ expit(v @ self.weights.T + fields[self.hidden])
        return means

    def visible_means(self, shares: Array) -> Array:
        """Return the means of the missing units (m,)."""
        return bit_means(shares)

    def draw(self, shares: Array, rng: np.random.Generator) -> Array:
        """Return missing units (m,) drawn in proportion to shares."""
        return bits(rng.choice(len(shares), size=1, p=shares), len(self.bias))[0]


class HiddenStates:
    """All states of the hidden units of a part, 2^j."""

    def __init__(self, part: Part):
        self.hidden = part.hidden
        self.weights = part.weights
        self.bias = part.bias
        self.units = part.units
        self.log_norms = self.units.log_norms_of_states(self.weights, self.bias)

    def log_weights(self, fields: Array) -> Array:
        """Return log f of the states, as `VisibleStates.log_weights`."""
        return self.log_norms + subset_sums(fields[self.hidden])

    def hidden_means(self, shares: Array, fields: Array) -> Array:
        """Return the probabilities of the hidden units (j,)."""
        return bit_means(shares)

    def visible_means(self, shares: Array) -> Array:
        """Return the means of the missing units (m,)."""
        means = np.zeros(len(self.bias))
        for likely in _likely_states(shares, max(self.weights.shape)):
            means += shares[likely] @ self.units.means(self._inputs(likely))
        return means

    def draw(self, shares: Array, rng: np.random.Generator) -> Array:
        """Return missing units (m,) drawn in proportion to shares."""
        state = rng.choice(len(shares), size=1, p=shares)
        return self.units.draw(self._inputs(state), rng)[0]

    def _inputs(self, states):
        """Inputs of the missing units, (n, m)."""
        return self.bias + bits(states, len(self.hidden)) @ self.weights


States = VisibleStates | BinaryStates | HiddenStates


def _likely_states(shares: Array, width: int) -> Iterator[Integers]:
    """Yield blocks of the states that matter for means of `width` numbers each."""
    likely = np.flatnonzero(shares > _NEGLIGIBLE)
    n = max(1, _MOST_NUMBERS // width)
    for begin in range(0, len(likely), n):
        yield likely[begin : begin + n]


def bit_means(shares: Array) -> Array:
    """Return the means of the bits of s under probabilities (2^n,), lowest first."""
    n = len(shares).bit_length() - 1
    return np.array([shares.reshape(-1, 2, 1 << j)[:, 1].sum() for j in range(n)])


class KnownRows(NamedTuple):
    """Rows as far as they are known."""

    layers: Any  # `Layers`, or what has their `parts`
    fields: Array  # (n, J) inputs of the hidden units by known units and biases
    log_f: Array  # (n,) terms of log f that hold known visible units alone
    missing: Any  # (n, C) columns that are not known

    def by_pattern(self) -> Iterator[tuple[Integers, list[Part]]]:
        """Yield the rows that miss the same columns, and the parts of these."""
        for rows, pattern in rows_by_pattern(self.missing):
            if pattern.any():
                yield rows, self.layers.parts(pattern)


def log_sums(known: KnownRows) -> tuple[Array, Integers, list[Path]]:
    """Sum f over the missing and hidden units of every row.

    Returns
    -------
    log_f : ndarray of shape (n,)
        Log of the sum over what can be enumerated, in nats.
    rows : ndarray of int
        Rows whose sum also has a factor that can't.
    paths : list of Path
        Paths whose log Z are the logs of these factors.
    """
    log_f = known.log_f + np.logaddexp(0, known.fields).sum(axis=1)
    rows: list[int] = []
    paths: list[Path] = []
    for chosen, parts in known.by_pattern():
        for part in parts:
            log_f[chosen] -= np.logaddexp(0, known.fields[np.ix_(chosen, part.hidden)]).sum(axis=1)
            states = part.states()
            for t in chosen:
                if states is None:
                    rows.append(t)
                    paths.append(part.path(known.fields[t]))
                else:
                    log_f[t] += np.logaddexp.reduce(states.log_weights(known.fields[t]))
    return log_f, np.array(rows, dtype=np.int64), paths


def posteriors(
    known: KnownRows, draw: Callable[[Part, Path], tuple[Array, Array]]
) -> Iterator[tuple[int, Part, States, Array]]:
    """Yield (row, part, states, their probabilities) of every part of every row; states that can't
    be enumerated are draws with their shares, `draw(part, path)`.
    """
    for chosen, parts in known.by_pattern():
        for part in parts:
            states = part.states()
            for t in chosen:
                if states is None:
                    v, shares = draw(part, part.path(known.fields[t]))
                    yield t, part, VisibleStates(part, v), shares
                else:
                    yield t, part, states, softmax(states.log_weights(known.fields[t]))


def weighted_rows(
    path: Path, rng: np.random.Generator, n_jobs: int | None
) -> tuple[NDArray, Array]:
    """Return 100 rows drawn from the target of a path, and the share of each (100,): of annealed
    chains, or where their weights are not trusted of tempered ones.
    """
    n = 100
    for n_temperatures in (100, 1000):
        seed = int(rng.integers(2**31))
        annealed = AIS(n, n_temperatures, checks=False, random_state=seed, n_jobs=n_jobs)._fit(path)
        if annealed.converged_:
            draws: Any = annealed.result_.draws
            return draws.points, softmax(draws.log_weights)
    state = ParallelTempering(n_jobs=n_jobs).sample(path, n, rng)
    return path.rows(state), np.full(n, 1 / n)


def check_columns_known(missing: Booleans | None) -> None:
    """Raise ValueError if a column of rows to train on has no value that is known."""
    if missing is None:
        return
    unknown = np.flatnonzero(missing.all(axis=0))
    if unknown.size:
        raise ValueError(
            f"column {unknown[0]} of X holds no value, only NaN, so that nothing can be learned of"
            " it: leave it out"
        )


def column_moments(X: Array) -> tuple[Any, Array, Array]:
    """Return the number of known values of the columns of X, one number if it is the same of all,
    and their means and variances, 0 where there are none.
    """
    known = ~np.isnan(X)
    if known.all():
        return len(X), X.mean(axis=0), X.var(axis=0)
    n = known.sum(axis=0)
    mean = np.sum(X, axis=0, where=known) / np.maximum(n, 1)
    away = np.where(known, X - mean, 0.0)
    return n, mean, np.sum(away**2, axis=0) / np.maximum(n, 1)


class Completion:
    """Rows to train on, whose missing units are drawn given the known ones.

    Draws go on from those of the pass before: with the chains of training this is a stochastic
    approximation of the gradient of the likelihood of the known values.

    Parameters
    ----------
    X : matrix of shape (n, M)
        Rows of units.
    missing : ndarray of shape (n, C)
        Columns that are not known.
    units : BinaryUnits
        The visible units.
    means : ndarray of shape (M,)
        Means of independent units, from which the first draws are.
    seed : int
        Seed of the draws.
    """

    def __init__(self, X, missing: Booleans, units: Any, means: Array, seed: int):
        self.units = units
        self.rng = np.random.default_rng([seed, 1])
        X = units.without_missing(X)
        self.X = np.array(X.toarray() if sp.issparse(X) else X)
        sizes = np.diff(units.column_starts(self.X.shape[1]))
        self.missing = np.repeat(missing, sizes, axis=1)
        self.incomplete: Booleans = np.any(missing, axis=1)
        inputs = np.broadcast_to(units.logits_of(means), self.X.shape)
        np.copyto(self.X, units.draw(inputs, self.rng), where=self.missing)

    def renew(self, parameters: Any, rows: slice) -> None:
        """Draw the missing units of some rows anew, by Gibbs sweeps given the known ones."""
        n_sweeps = 5
        chosen = np.arange(self.X.shape[0])[rows]
        chosen = chosen[self.incomplete[chosen]]
        for first in range(0, len(chosen), _ROWS_AT_ONCE):
            batch = chosen[first : first + _ROWS_AT_ONCE]
            v = self.X[batch].astype(np.float32)
            missing = self.missing[batch]
            for _ in range(n_sweeps):
                means = expit(parameters.hidden_fields(v))
                h = (self.rng.random(means.shape, dtype=np.float32) < means).astype(np.float32)
                drawn = self.units.draw(parameters.visible_fields(h), self.rng)
                np.copyto(v, drawn, where=missing)
            self.X[batch] = v


def content(path: object) -> bytes:
    """Return the parameters of the RBM of a row's missing units."""
    names = ("components", "intercept_visible", "intercept_hidden", "variances")
    arrays = (getattr(path, name, np.empty(0)) for name in names)
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


@dataclass(frozen=True)
class NormalUnits:
    """Visible units u = (v - b) / s of a Gaussian RBM, which are normal around their inputs."""

    scales: Array  # (M,) standard deviations s
    are_independent: ClassVar[bool] = True

    def of_columns(self, columns: Integers) -> NormalUnits:
        """Return the units of some columns."""
        return NormalUnits(self.scales[columns])

    def n_states(self, n: int) -> float:
        """Return infinity."""
        return np.inf

    def log_norms_of_states(self, weights: Array, bias: Array) -> Array:
        """Return log integrals over v for all states of the hidden units, (2^j,)."""
        constant = 0.5 * LOG_TAU * len(self.scales) + np.log(self.scales).sum()
        quadratic = quadratic_sums(weights @ weights.T, len(weights), np.empty(0))
        return 0.5 * quadratic + constant

    def means(self, inputs: Array) -> Array:
        """Return the means of units with these inputs."""
        return inputs

    def draw(self, inputs: Array, rng: np.random.Generator) -> Array:
        """Return units drawn given their inputs."""
        return inputs + rng.standard_normal(inputs.shape)


class RowPaths(Path):
    """Several paths as one with a row for each."""

    def __init__(self, paths: list[Any]):
        self.paths = paths
        self.n_rows = len(paths)
        self.ladder = paths[0].ladder

    def row(self, t: int) -> Any:
        """Return the path of row t."""
        return self.paths[t]

    def row_content(self, t: int) -> bytes:
        """Return the parameters of row t's model."""
        return content(self.paths[t])

    def row_cost(self, rows: Integers) -> Array:
        """Return the numbers of weights."""
        return np.array([float(self.paths[t].components.size) for t in rows])

    @property
    def log2_states(self) -> int:  # type: ignore[override]
        """The largest of the rows."""
        return max(path.log2_states for path in self.paths)

    def default_estimator(self) -> AIS:
        """Return `AIS`, for rows with more states than can be enumerated."""
        return AIS()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "paths":
            raise AttributeError(name)
        return getattr(self.paths[0], name)

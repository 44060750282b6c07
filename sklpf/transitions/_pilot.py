"""Shared parts of moves on R^d: a pilot that tunes them along the path, normal numbers,
reflection.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from sklpf._utils.context import OnTheWay, note
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import FIRST, Stream
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import INSIDE_0_1, POSITIVE
from sklpf.paths import COVER, Path, has, n_chains, read_only, shrunk_covariance, take
from sklpf.transitions._base import Transition, batch_rows
from sklpf.uncertainty import effective_sample_size, log_mean_exp


class Pilot(NamedTuple):
    """Step sizes, metric and spread that a pilot found at some inverse temperatures 0 = betas[0] <
    … < betas[J - 1] = 1.

    `roots` whiten the density: points move by root @ velocity. They are numbers (J, 1), or one for
    each dimension (J, d), or matrices (J, d, d).
    """

    betas: Array  # (J,)
    log_steps: Array  # (J,)
    roots: Array  # (J, 1), (J, d) or (J, d, d)
    spread: Array  # (J,): standard deviation of log f_1 - log f_0
    n_moves: int

    @property
    def sizes(self) -> Array:
        """Geometric mean scale of every matrix, shape (J, 1)."""
        return np.exp(np.linalg.slogdet(self.roots)[1] / self.roots.shape[1])[:, np.newaxis]

    def step(self, betas: Array) -> Array:
        """Step size of chains at some inverse temperatures, shape (n,)."""
        return np.exp(np.interp(betas, self.betas, self.log_steps))

    def scales(self, betas: Array) -> Array:
        """Scale of chains at some inverse temperatures (n, 1), or of every dimension (n, d); not
        for matrices.
        """
        return self._between(self.roots, betas)

    def at(self, ladder: Array) -> MoveSteps:
        """Step sizes and roots at all levels of a ladder (K,)."""
        step_sizes = self.step(ladder)[:, np.newaxis]
        knots = np.searchsorted(self.betas, ladder, side="right") - 1
        if self.roots.ndim == 2:
            return MoveSteps(step_sizes, self.scales(ladder), knots)
        sizes = self.sizes
        scales = self._between(sizes, ladder) / sizes[knots]
        return MoveSteps(step_sizes, scales, knots, self.roots)

    def _between(self, scales, betas):
        """Scales (J, m) at some inverse temperatures: precisions are linear in between, as a
        Gaussian's are.
        """
        upper = np.minimum(np.searchsorted(self.betas, betas, side="right"), len(self.betas) - 1)
        lower = np.maximum(upper - 1, 0)
        width = np.where(upper > lower, self.betas[upper] - self.betas[lower], 1.0)
        share = ((betas - self.betas[lower]) / width)[:, np.newaxis]
        return ((1 - share) * scales[lower] ** -2.0 + share * scales[upper] ** -2.0) ** -0.5


class MoveSteps(NamedTuple):
    """Step sizes and roots of n chains, or of the levels of a ladder."""

    step_sizes: Array  # (n, 1)
    scales: Array  # (n, 1) or (n, d); of matrices what they are multiplied by
    knots: Integers  # (n,): which of the matrices
    matrices: Array = np.empty(0)  # (J, d, d), or empty

    def of(self, levels: Integers) -> MoveSteps:
        """Those of chains at some levels (n,)."""
        steps = self.step_sizes[levels], self.scales[levels], self.knots[levels]
        return MoveSteps(*steps, self.matrices)

    def color(self, vectors: Array) -> NDArray:
        """root @ vector of every chain, of vectors (n, d)."""
        return self.scales * self._each(vectors, lambda own, root: own @ root.T)

    def color_transposed(self, vectors: Array) -> NDArray:
        """root.T @ vector of every chain."""
        return self.scales * self._each(vectors, np.matmul)

    def whiten(self, vectors: Array) -> NDArray:
        """The inverse of root @ vector of every chain."""
        vectors = vectors / self.scales
        return self._each(vectors, lambda own, root: np.linalg.solve(root, own.T).T)

    def _each(self, vectors, function):
        """A function of the vectors and the matrix of chains that share one; else the vectors."""
        if not len(self.matrices):
            return vectors
        out = np.empty_like(vectors)
        for knot in np.unique(self.knots):
            chains = self.knots == knot
            out[chains] = function(vectors[chains], self.matrices[knot])
        return out


def fixed_pilot(log_step: float, root: Array) -> Pilot:
    """The same step size and root everywhere."""
    return Pilot(np.zeros(1), np.array([log_step]), root[np.newaxis], np.zeros(1), 0)


@dataclass
class _Row:
    """State of the pilot's chains of one row, between base and target."""

    path: Any
    untuned: Any
    stream: Stream
    rng: np.random.Generator
    log_step: Any
    root: Array
    beta: float = 0.0
    log_mean: float = 0.0  # of the product of mean weights so far
    records: list[tuple] = field(default_factory=list)

    @property
    def transition(self) -> TunedTransition:
        """The move with the row's step size and root."""
        return self.untuned.with_pilot(fixed_pilot(self.log_step, self.root))

    def rise(
        self,
        gain: Array,
        n_moves: int,
        *,
        most_levels: int = 200,
        effective_share: float = 0.7,  # of the chains at the next level
        smallest_beta: float = 1e-50,  # of the first level after the base
    ) -> Integers:
        """Note what was found at this level, and go on to the next; returns which of the row's
        chains go there, none from the target.
        """
        if not np.any(gain > -np.inf):
            raise ValueError(
                f"none of {len(gain)} draws of the base has mass at the target: take AdaptiveSMC"
                f" for a density, which draws more, or {COVER}"
            )
        with np.errstate(over="ignore"):
            spread = np.std(gain[np.isfinite(gain)])
        self.records.append((self.beta, self.log_step, self.root, spread, n_moves))
        if self.beta == 1:
            return np.empty(0, dtype=np.int64)
        new = 1.0
        if len(self.records) < most_levels:
            new = next_beta(gain, self.beta, effective_share)
        if new < smallest_beta:
            raise ValueError(
                "log f_1 - log f_0 is too large to be tempered: rescale the data, or give another"
                " base"
            )
        log_weights = (new - self.beta) * gain
        self.log_mean += float(log_mean_exp(log_weights))
        self.beta = new
        self.path = self.path.with_ladder(np.unique([0.0, new, 1.0]))
        return self.rng.choice(len(gain), size=len(gain), p=softmax(log_weights))

    def pilot(self, n_chains: int) -> Pilot:
        """Return the pilot's findings."""
        betas, log_steps, roots, spread, counts = map(np.array, zip(*self.records))
        return Pilot(betas, _smooth(log_steps), roots, spread, n_chains * int(counts.sum()))


def run_pilots(
    paths: Sequence[Any],
    transition: TunedTransition,
    keys: Sequence[tuple[int, int]],
    *,
    fewest_chains: int = 64,
    most_chains: int = 400,
    fewest_moves: int = 6,  # of each chain at a level
    n_first_moves: int = 40,  # at the base, where no step size is known yet
    moves_of_all: int = 768,  # of all chains, at a level
) -> list[Pilot]:
    """Take chains of every row from base draws to the target by small steps of beta with
    resampling, and tune on the way. Rows have steps and levels of their own.

    Each step up leaves most of the chains effective. A level's scales are estimated from the chains
    there; then its step size follows the mean acceptance probability (Robbins & Monro 1951).
    """
    d = paths[0].n_dimensions
    n = fewest_chains
    if transition.metric is not None:
        n = int(np.clip(2 * d, fewest_chains, most_chains))
    step = np.log(transition.first_step(d))
    rows = [
        _Row(
            path.with_ladder([0.0, 1.0]),
            transition,
            Stream(key),
            np.random.default_rng(key),
            step,
            np.ones(1),
        )
        for path, key in zip(paths, keys)
    ]
    batch = batch_rows(rows, [row.stream for row in rows], n)
    state = batch.path.sample_base(n * len(rows), batch.stream)
    auxiliary = transition.start(batch.path, state, batch.stream)
    for row, (_, own) in zip(rows, batch.stream.rows()):
        points = [batch.path.position(state)[own]]
        row.root = root_of(points, [], transition.metric, row.path.bounds)
    rising = rows
    n_moves = n_first_moves
    n_done = 0
    while rising:
        state, auxiliary = _tune_level(rising, state, auxiliary, n_moves, 1 + n_done)
        gains = np.split(batch.path.ends(state)[1], len(rising))
        if len(rows) == 1:
            note_on_the_way(rows[0].log_mean, rows[0].beta, gains[0])
        chosen = [row.rise(gain, n_moves) for row, gain in zip(rising, gains)]
        index = np.concatenate([n * t + own for t, own in enumerate(chosen)])
        state, auxiliary = batch.path.take(state, index), take(auxiliary, index)
        rising = [row for row, own in zip(rising, chosen) if len(own)]
        n_done += n_moves
        n_moves = max(moves_of_all // n, fewest_moves)
    return [row.pilot(n) for row in rows]


def note_on_the_way(log_mean: float, beta: float, gain: Array) -> None:
    """Note the estimate of log Z / Z_0 of particles at an inverse temperature, with log f_1 - log
    f_0 (n,), who have had mean weights of this product so far.
    """
    if beta < 1:
        log_mean += float(log_mean_exp((1 - beta) * gain))
    note(OnTheWay(beta, log_mean))


def _tune_level(
    rows,
    state,
    auxiliary,
    n_moves,
    first_sweep,
    *,
    largest_step=2.0,  # in scales of the density
):
    """Move chains at each row's level: half of the time for its scales, and half for the step size
    with them.
    """
    untuned = rows[0].untuned
    n = n_chains(state) // len(rows)
    streams = [row.stream for row in rows]
    points: list[NDArray] = []
    slopes: list[NDArray] = []
    tried: list[list[float]] = []
    for i in range(n_moves):
        if i == n_moves // 2:
            for t, row in enumerate(rows):
                own = slice(t * n, (t + 1) * n)
                forces = [slope[own] for slope in slopes]
                bounds = row.path.bounds
                row.root = root_of([p[own] for p in points], forces, untuned.metric, bounds)
        path, move, stream, first_levels = batch_rows(rows, streams, n)
        levels = np.repeat(first_levels + [row.beta > 0 for row in rows], n)
        before = untuned.accepted(auxiliary)
        state, auxiliary = move.move(path, state, auxiliary, levels, stream.at(first_sweep + i))
        if before is not None:
            rates = (untuned.accepted(auxiliary) - before).reshape(-1, n).mean(axis=1)
            for row, rate in zip(rows, rates.tolist()):
                row.log_step += (
                    (rate - untuned.target_acceptance) * 2 * (1 + i % (n_moves // 2)) ** -0.6
                )
                row.log_step = min(row.log_step, np.log(largest_step))
        points.append(path.position(state))
        slopes += untuned.slopes(auxiliary, path.ladder[levels][:, np.newaxis])
        tried.append([row.log_step for row in rows])
    for row, steps in zip(rows, zip(*tried)):
        row.log_step = np.mean(steps[-(n_moves // 4) :])
    return state, auxiliary


def next_beta(gain: Array, beta: float, share: float, log_weights: Array | None = None) -> float:
    """The inverse temperature that the largest step leads to which leaves a share of the chains
    effective, by bisection; of weighted ones, where this share of them is effective before.
    """
    finite = gain[np.isfinite(gain)]
    needed = min(share * len(gain), 0.9 * len(finite))
    here = 0.0 if log_weights is None else log_weights[np.isfinite(gain)]

    def effective(step):
        return effective_sample_size(here + step * finite)

    low, high = 0.0, 1 - beta
    if not len(finite) or effective(high) >= needed:
        return 1.0
    n_halvings = 0
    while n_halvings < 50 or low == 0:
        n_halvings += 1
        middle = (low + high) / 2
        low, high = (middle, high) if effective(middle) >= needed else (low, middle)
    return min(1.0, max(beta + low, np.nextafter(beta, 2)))


def root_of(points, slopes, metric, bounds):
    """Return the scale that whitens points: their root mean square spread (1,), or for each
    dimension (d,), or as a matrix (d, d).

    With gradients of log f at the points, the last two are chosen so that whitened points and
    whitened gradients have the same covariance; for a normal density this holds for any points.
    """
    points = np.concatenate(points)
    n, d = points.shape
    variances = np.maximum(points.var(axis=0, ddof=1), np.finfo(float).tiny)
    if metric is None:
        return np.sqrt(variances.mean(keepdims=True))
    forces = np.concatenate(slopes).var(axis=0, ddof=1) if slopes else 1 / variances
    scales = np.sqrt(np.sqrt(variances / np.maximum(forces, np.finfo(float).tiny)))
    most = np.where(bounds.is_open.all(axis=0), 1e3, 1.0)
    scales = np.clip(scales, 1e-3 * np.sqrt(variances), most * np.sqrt(variances))
    if metric == "diag" or d == 1:
        return scales
    root = np.linalg.cholesky(shrunk_covariance((points - points.mean(axis=0)) / scales))
    if slopes:
        values, vectors = np.linalg.eigh(
            root.T @ np.cov(np.concatenate(slopes).T * scales[:, np.newaxis]) @ root
        )
        root = root @ (vectors * np.maximum(values, 1e-6 * values.max()) ** -0.25)
    return scales[:, np.newaxis] * root


def _smooth(values, *, n_neighbours=2, many_levels=10):
    """Means over neighbours on either side, unless levels are few and differ too much."""
    width = min(n_neighbours, len(values) // many_levels)
    padded = np.pad(values, width, mode="edge")
    return np.mean([padded[i : i + len(values)] for i in range(2 * width + 1)], axis=0)


TUNED = {  # parameters that a pilot may find
    "step_size": [POSITIVE, StrOptions({"auto"})],
    "target_acceptance": [INSIDE_0_1],
    "metric": [StrOptions({"diag", "dense"}), None],
}


class TunedTransition(Transition):
    """A move on R^d whose `step_size` and `metric` a pilot may find, as functions of beta."""

    step_size: Any
    metric: str | None
    target_acceptance: float
    _known_steps: tuple[Any, Any] = (None, None)  # a ladder, and the steps at its levels

    def check(self, path: Path) -> None:
        """Raise TypeError if the path lacks a capability, ValueError if a parameter can't be used
        on it.
        """
        super().check(path)
        if self.metric == "dense" and path.bounds.has_sides:
            raise ValueError(
                'metric must be None or "diag" on a path with bounds: chains are reflected by'
                " coordinates"
            )

    def slopes(self, auxiliary: tuple, beta: Any) -> list[NDArray]:
        """Return the gradients of log f_beta at the chains.

        Parameters
        ----------
        auxiliary : tuple of arrays
            As `init` or the last move left it.
        beta : float or ndarray of shape (n, 1)
            Inverse temperatures of the chains.

        Returns
        -------
        list of ndarray of shape (n, d)
            One gradient, or none where the move needs none.
        """
        return []

    def first_step(self, n_dimensions: int) -> float:
        """First step size of the tuning, in scales of the density."""
        raise NotImplementedError(f"{type(self).__name__} must define first_step(n_dimensions)")

    def tune(self, path: Path, key: tuple[int, int]) -> TunedTransition:
        """Return the move with step sizes and metric from a pilot, frozen as functions of beta."""
        return self.tune_rows([path], [key])[0]

    def tune_rows(
        self, paths: Sequence[Any], keys: Sequence[tuple[int, int]]
    ) -> list[TunedTransition]:
        """Return the move as `tune` gives it for each of several rows of data.

        Parameters
        ----------
        paths : sequence of length T
            The path of each row.
        keys : sequence of length T
            The key of each row's random numbers, pairs of int.

        Returns
        -------
        list of length T
            The tuned moves.
        """
        if self.pilot is not None:
            return [self] * len(paths)
        if self.step_size != "auto" and self.metric is None:
            return [self.with_pilot(self.frozen)] * len(paths)
        return [self.with_pilot(pilot) for pilot in run_pilots(paths, self, keys)]

    @property
    def frozen(self) -> Pilot:
        """Pilot by which moves are made; a given step size needs no `tune`."""
        if self.pilot is not None:
            return self.pilot
        if self.step_size == "auto" or self.metric is not None:
            raise ValueError(
                f"{type(self).__name__} must be tuned before it moves: call tune(path, key)"
            )
        return fixed_pilot(np.log(self.step_size), np.ones(1))

    def steps_at(self, ladder: Array, levels: Integers) -> MoveSteps:
        """Return step sizes and roots of chains at levels of a ladder.

        Parameters
        ----------
        ladder : ndarray of shape (K,)
            Of the path that is moved on.
        levels : ndarray of shape (n,)
            The level of each chain.

        Returns
        -------
        MoveSteps
        """
        return self._level_steps(ladder).of(levels)

    def _level_steps(self, ladder: Array) -> MoveSteps:
        """Step sizes and roots at the levels of a ladder, computed once for each ladder."""
        known, steps = self._known_steps
        if known is not ladder:
            steps = self.frozen.at(ladder)
            self._known_steps = ladder, steps
        return steps

    def batch_rows(self, rows: Sequence[Any], ladder: Array) -> Self:
        """Return the move on the ladders of several rows, one after the other: at each it has the
        step sizes and metric of that row's `transition`.
        """
        steps = [row.transition._level_steps(row.path.ladder) for row in rows]
        first = np.cumsum([0, *(len(own.matrices) for own in steps[:-1])])
        steps = [own._replace(knots=own.knots + k) for own, k in zip(steps, first)]
        batch = copy.copy(self)
        batch._known_steps = ladder, MoveSteps(*map(np.concatenate, zip(*steps)))
        return batch

    def with_pilot(self, pilot: Pilot) -> TunedTransition:
        """Return the move with these step sizes and scales, or with its own step size where one was
        given.

        Parameters
        ----------
        pilot : Pilot
            What `tune` found.

        Returns
        -------
        TunedTransition
            A frozen copy.
        """
        if self.step_size != "auto":
            pilot = pilot._replace(log_steps=np.full(len(pilot.betas), np.log(self.step_size)))
        tuned = type(self)(**self.get_params(deep=False))
        tuned.pilot = pilot
        return tuned

    def _moved_density(self, path: Path, move_class: type, *parameters: Any) -> Any:
        """A path's compiled density with the tuned move, move_class(steps, *parameters), as
        `compiled` gives it; None where the path has none.
        """
        density = path.packed if has(path, "packed") else None
        if density is None:
            return None
        from sklpf.transitions._continuous_kernels import MovedDensity, Steps

        pilot = self.frozen
        matrices = np.empty((0, path.n_dimensions, path.n_dimensions))
        scales = pilot.roots
        if scales.ndim == 3:
            scales = pilot.sizes
            matrices = pilot.roots / scales[:, np.newaxis]
        low, high = path.bounds if path.bounds.has_sides else np.empty((2, 0))
        arrays = pilot.betas, pilot.log_steps, scales, matrices, low, high
        steps = Steps(*(read_only(array) for array in arrays))
        return MovedDensity(density, move_class(steps, *parameters))


def stream_normals(stream: Stream, out: Any) -> Any:
    """Fill out (n, d) with the normal numbers of the stream's chains."""
    from sklpf.kernels._random import normals

    for row_stream, chains in stream.rows():
        normals(row_stream.keys, FIRST, out[chains])
    return out


def reflect(bounds, position, velocity):
    """Fold positions (n, d) back into a box, turning the velocity at every side that is met."""
    if not bounds.has_sides:
        return position, velocity
    from sklpf.transitions._continuous_kernels import reflect as reflect_in_place

    position, velocity = (
        np.array(part, dtype=np.float64, order="C") for part in (position, velocity)
    )
    reflect_in_place(*map(read_only, bounds), position, velocity)
    return position, velocity

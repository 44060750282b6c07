"""Random walks from the outermost of some points, which look for more of the target."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from sklpf._utils.numbers import Array, Integers
from sklpf.paths import GeometricPath, Mixture, State, choose, fit_base, full_roots
from sklpf.transitions import acceptance

_N_MOVES = (20, 10)  # of each walk: for all, and for each dimension


class Walked(NamedTuple):
    """Points that walks found.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        The given ones, some of them left out where they were many, and those that walks found.
    found : ndarray of shape (m, d)
        Those alone.
    is_new : bool
        Whether walks found points with larger weights than all before.
    exploration_incomplete : bool
        Whether one of the last two rounds of walks still did.
    n_sweeps : int
        Moves of all walks together.
    """

    points: Array
    found: Array
    is_new: bool
    exploration_incomplete: bool
    n_sweeps: int


def walk_outwards(
    path: GeometricPath,
    points: Array,
    found: Array,
    rng: np.random.Generator,
    *,
    most_fitted: int = 2000,  # points, and half as many of those that walks have found
    most_rounds: int = 20,  # of walks
    largest_gain: float = 2.0,  # nats of log weight, above those of the points
    rounds_to_end: int = 2,  # in a row that find nothing more, after which it ends
) -> Walked:
    """Walk from the outermost points until no walk gets further.

    A mixture is fitted to all points. Outermost are those with the largest weights, target over
    mixture, and the smallest and largest in each coordinate: if particles have missed a part of the
    target, these are next to it. Walks leave the target invariant. If the points already covered
    the target, walks would return to them. Where a walk reaches a larger weight, its places join
    the points, and the next walks start further out.

    Parameters
    ----------
    path : GeometricPath
        Whose level 1 is the target.
    points : ndarray of shape (n, d)
        Where particles have been.
    found : ndarray of shape (m, d)
        Where earlier walks have been.
    rng : numpy.random.Generator
        Of all random numbers.

    Returns
    -------
    Walked
    """
    points = points[rng.permutation(len(points))[:most_fitted]]
    n_moves = _N_MOVES[0] + _N_MOVES[1] * path.n_dimensions
    n_sweeps = 0
    is_new = False
    n_quiet = 0
    fewest = 1
    for _ in range(most_rounds):
        known = np.concatenate([points, found])
        n_effective = len(np.unique(known, axis=0))
        mixture = fit_base(known, n_effective, path.bounds, rng, fewest, is_rough=fewest > 1)
        fewest = max(1, len(mixture.weights) // 2)
        log_weights = _log_weights(path, mixture, known)
        starts = known[_outermost(known, log_weights, rng)]
        visited = _walk(path, MixtureWalk(mixture), starts, n_moves, rng)
        n_sweeps += len(starts) * n_moves
        gain = _log_weights(path, mixture, visited).max() - log_weights.max()
        if gain > largest_gain:
            is_new = True
            n_quiet = 0
        else:
            n_quiet += 1
        exploration_incomplete = is_new and n_quiet < rounds_to_end
        if not exploration_incomplete:
            break
        found = np.concatenate([found, visited])
        found = found[rng.permutation(len(found))[: most_fitted // 2]]
    return Walked(np.concatenate([points, found]), found, is_new, exploration_incomplete, n_sweeps)


def _log_weights(path, mixture, points):
    """Log of target over mixture, (n,)."""
    levels = np.ones(len(points), dtype=np.int64)
    return path.log_f(path.at(points), levels) - mixture.log_density(points)


def _outermost(
    points,
    log_weights,
    rng,
    *,
    n_outermost=50,  # by weight, and by coordinates
):
    """Choose the points to walk from."""
    by_weight = np.argsort(-log_weights)[:n_outermost]
    by_coordinate = np.concatenate([points.argmin(axis=0), points.argmax(axis=0)])
    return np.concatenate([by_weight, rng.permutation(by_coordinate)[:n_outermost]])


def _walk(
    path,
    walk,
    starts,
    n_moves,
    rng,
    *,
    n_noted=8,  # times at which positions are kept
):
    """Positions of walks at some times, (m, d)."""
    state = path.at(starts)
    levels = np.ones(len(starts), dtype=np.int64)
    noted = np.linspace(0, n_moves, n_noted + 1).astype(int)[1:]
    visited = []
    for i in range(1, n_moves + 1):
        state = walk.move(path, state, levels, rng)
        if i in noted:
            visited.append(path.position(state))
    return np.concatenate(visited)


class MixtureWalk:
    """A random walk with the covariance of that part of a mixture where a particle is.

    A step that leads to another part is corrected for the density of the step back. The size of
    the steps of each part follows their acceptance.

    Parameters
    ----------
    mixture : Mixture
        The parts.
    """

    def __init__(
        self,
        mixture: Mixture,
        *,
        first_step: float = 2.4,  # over the root of d, in scales of a part
    ):
        self.mixture = mixture
        d = mixture.n_dimensions
        self.roots = full_roots(mixture.packed.roots)  # inverse square roots of covariances
        self.log_det_roots = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1)
        self.log_steps = np.full(len(self.roots), np.log(first_step / np.sqrt(d)))
        self.n_moves = 0

    def move(
        self,
        path: GeometricPath,
        state: State,
        levels: Integers,
        rng: np.random.Generator,
        *,
        target_acceptance: float = 0.25,
    ) -> Any:
        """Return the state after one step of each particle at its level."""
        old = path.position(state)
        here = self._part_of(old)
        z = rng.standard_normal(old.shape)
        step = self._each(here, z, _colored)
        new = old + step
        outside = ~path.bounds.contains(new)
        new[outside] = old[outside]
        new_state = path.at(new)
        there = self._part_of(new)
        back = self._each(there, step, _whitened)

        scales = self._log_scale(there) - self._log_scale(here)
        steps = 0.5 * np.sum(z**2 - back**2, axis=1)
        rate = acceptance(path, state, new_state, levels, scales, steps)
        rate[outside] = 0.0

        self.n_moves += 1
        for k in np.unique(here):
            excess = rate[here == k].mean() - target_acceptance
            self.log_steps[k] += excess * self.n_moves**-0.5
        return choose(rng.random(len(old)) < rate, new_state, state)

    def _part_of(self, points):
        return self.mixture._log_parts(points).argmax(axis=0)

    def _log_scale(self, parts):
        """Log determinant of the whitening of steps from some parts."""
        return self.log_det_roots[parts] - self.mixture.n_dimensions * self.log_steps[parts]

    def _each(self, parts, values, function):
        """A function of the values in each part, its root and its step."""
        results = np.empty_like(values)
        for k in np.unique(parts):
            mine = parts == k
            results[mine] = function(values[mine], self.roots[k], np.exp(self.log_steps[k]))
        return results


def _colored(z, root, size):
    return size * linalg.solve_triangular(root, z.T, lower=True).T


def _whitened(step, root, size):
    return step @ root.T / size

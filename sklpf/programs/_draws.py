"""Draws from the target that a run keeps: for its users, and for what compares runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import systematic
from sklpf._utils.tables import imported
from sklpf.paths import Path, State, has
from sklpf.sampling import RandomState

MOST_DRAWS = 1000  # that a run keeps


class Draws(NamedTuple):
    """Draws from the target with their weights, in independent groups.

    Attributes
    ----------
    points : ndarray of shape (n, d)
        Rows where the path is a model's, else points of R^d.
    log_weights : ndarray of shape (n,)
        Up to a constant that is common to all.
    groups : ndarray of shape (n,)
        The independent group that each comes from: a chain, a population, a ladder or a group of
        chains.
    """

    points: NDArray
    log_weights: Array
    groups: Integers

    def __repr__(self) -> str:
        n, d = self.points.shape
        return f"Draws({n} points of {d} coordinates in {len(np.unique(self.groups))} groups)"

    def resample(self, n: int | None = None, random_state: RandomState = None) -> Draws:
        """Return draws of equal weight: each as often as its weight says, in the same order.

        Draws that come up several times stand next to each other, and those of a group stay
        together, so that autocorrelations show how many independent ones there are.

        Parameters
        ----------
        n : int or None, default=None
            How many; None is as many as there are.
        random_state : int, RandomState or None, default=None
            Seed of the one random number that systematic resampling takes. None takes the middle,
            the same at every call.

        Returns
        -------
        Draws
            With log weights of 0.

        Raises
        ------
        ValueError
            If n is not positive, or no draw has a weight.

        Examples
        --------
        >>> draws = Draws(np.array([[1.0], [2.0]]), np.log([0.25, 0.75]), np.array([0, 1]))
        >>> draws.resample(4).points.ravel()
        array([1., 2., 2., 2.])
        """
        n = len(self.points) if n is None else n
        if n < 1 or not np.any(self.log_weights > -np.inf):
            raise ValueError(
                f"n must be positive and a draw must have a weight, got n = {n} of"
                f" {len(self.points)} draws"
            )
        uniform = 0.5 if random_state is None else check_random_state(random_state).random_sample()
        index = systematic(self.log_weights, n, uniform)
        return Draws(self.points[index], np.zeros(n), self.groups[index])

    def to_datatree(
        self, path: Path | None = None, n: int | None = None, random_state: RandomState = None
    ) -> Any:
        """Return draws of equal weight with the names of their parameters, as ArviZ takes them.

        Parameters
        ----------
        path : Path or None, default=None
            That the draws are of. One with `parameter_shapes` names them, such as that of
            `sklpf.interop.from_prior_transform`; of others, and without, the points are called "x".
        n, random_state
            As in `resample`.

        Returns
        -------
        xarray.DataTree
            With a group ``posterior``, of one chain. ArviZ 1.0 takes it as it is, earlier versions
            by ``arviz.from_datatree(tree)``.

        Raises
        ------
        ImportError
            If xarray is not installed.
        """
        xr = imported("xarray", "to_datatree")

        points = self.resample(n, random_state).points
        values = {"x": points}
        if path is not None and has(path, "constrain"):
            values = path.constrain(points)
        variables = {}
        for name, array in values.items():
            own = [f"{name}_dim_{i}" for i in range(array.ndim - 1)]
            variables[name] = (("chain", "draw", *own), array[np.newaxis])
        numbers = {"chain": [0], "draw": np.arange(len(points))}
        return xr.DataTree.from_dict({"posterior": xr.Dataset(variables, coords=numbers)})

    def thinned(self) -> Draws | None:
        """Return at most a thousand of them; None if there is none with a weight.

        Returns
        -------
        Draws or None
            The draws that systematic resampling takes, each once, with the log of the number of
            times as its weight.
        """
        if not np.any(self.log_weights > -np.inf):
            return None
        if len(self.log_weights) <= MOST_DRAWS:
            return self
        chosen = systematic(self.log_weights, MOST_DRAWS, 0.5)
        index, counts = np.unique(chosen, return_counts=True)
        return Draws(self.points[index], np.log(counts), self.groups[index])


def draws_of(path: Path, state: State, log_weights: NDArray, groups: NDArray) -> Draws | None:
    """At most a thousand draws from the weighted chains of a state; None where the path knows no
    points.
    """
    if not has_points(path):
        return None
    return Draws(points_of(path, state), log_weights, groups).thinned()


def concatenate_draws(parts: Sequence[Draws]) -> Draws:
    """All draws of several parts."""
    return Draws(*(np.concatenate(arrays) for arrays in zip(*parts)))


def no_draws(path: Path, state: State) -> Draws:
    """None yet, of the chains of a state."""
    points = points_of(path, path.take(state, [0]))[:0] if has_points(path) else np.empty((0, 0))
    return Draws(points, np.empty(0), np.empty(0, dtype=np.int64))


def has_points(path: Path) -> bool:
    """True if a path says where its chains are, in rows or in R^d."""
    return has(path, "rows") or has(path, "position")


def points_of(path: Path, state: State) -> NDArray:
    """Rows or points of chains, (n, d)."""
    return path.rows(state) if has(path, "rows") else path.position(state)

"""What reweighting reads of a run, whichever program left it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.tables import import_xarray
from sklpf.runs._run import Run


class Samples(NamedTuple):
    """The N states that a run kept, a systematic thinning.

    Attributes
    ----------
    vectors : ndarray of shape (N, K)
        log f_k(x) at every level, but for a constant of every x, in nats.
    slopes : ndarray of shape (N, K), (N, 1) or (N, 0)
        U = d log f / d beta at every level; one number where it is the same at all, none where the
        path has no derivatives.
    levels : ndarray of shape (N,)
        The level that each x was moved at.
    groups : ndarray of shape (N,)
        Its independent group.
    """

    vectors: NDArray[np.float64]
    slopes: NDArray[np.floating]
    levels: NDArray[np.int64]
    groups: NDArray[np.int64]

    def of(self, keep: NDArray[np.int64]) -> Samples:
        """Those of some groups."""
        chosen = np.isin(self.groups, keep)
        return Samples(
            self.vectors[chosen], self.slopes[chosen], self.levels[chosen], self.groups[chosen]
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """States of every level, shape (K,)."""
        return np.bincount(self.levels, minlength=self.vectors.shape[1])


@dataclass(frozen=True, repr=False, kw_only=True)
class LevelRun(Run):
    """A run whose chains are in equilibrium at K levels, in G independent groups: what reweighting
    reads.

    Attributes
    ----------
    has_walls : bool
        Whether states of level 0 may have f_1 = 0.
    """

    has_walls: bool = False

    if TYPE_CHECKING:  # fields or properties of the classes that extend it

        @property
        def n_groups(self) -> int:
            """G."""

        @property
        def shift(self) -> NDArray[np.float64]:
            """Reference of the sums over pairs, shape (K - 1,)."""

        @property
        def level_sums(self) -> NDArray[np.float64]:
            """Number of states, sums of U, U^2 and dU / dbeta, of both halves: shape (2,
            G, K, 4).
            """

        @property
        def vector_levels(self) -> NDArray[np.int64]:
            """The levels at which the kept states were moved, one row for each chain or ladder."""

        @property
        def slopes(self) -> NDArray[np.floating]:
            """U of the kept states."""

    def pairs(self, half: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums over pairs of both halves or of one.

        Parameters
        ----------
        half : int or None, default=None
            0 or 1; None takes both together.

        Returns
        -------
        sums : ndarray of shape (G, K - 1, 4 or more)
            Of the states of both levels of every pair.
        counts : ndarray of shape (G, K)
            States of every level in them.
        """
        raise NotImplementedError

    @property
    def samples(self) -> Samples:
        """The states that were kept."""
        raise NotImplementedError

    def to_xarray(self) -> Any:
        """Return an xarray.Dataset of the states that were kept, with the dimensions chain, draw
        and level.

        ``log_f`` (chain, draw, level) is log f_k(x) at every level, but for a constant of every x
        (nats); ``moved_at`` (chain, draw) the level that x was moved at; ``slope`` d log f / d beta
        where the path has derivatives, at all levels, or one number where it is the same at all. A
        chain is a ladder of `ParallelTempering`, whose draws are those of its levels in turn. ArviZ
        takes the dataset as it is: ``arviz.ess(run.to_xarray()["log_f"])``.

        Returns
        -------
        xarray.Dataset
            Numbers in nats.

        Raises
        ------
        ImportError
            If xarray is not installed.
        """
        xarray = import_xarray()
        samples = self.samples
        levels = self.vector_levels
        variables: dict[str, Any] = {
            "log_f": (("chain", "draw", "level"), samples.vectors.reshape(*levels.shape, -1)),
            "moved_at": (("chain", "draw"), levels),
        }
        n_slopes = samples.slopes.shape[1]
        if n_slopes:
            slopes = samples.slopes.reshape(*levels.shape, n_slopes)
            one = n_slopes < len(self.ladder)
            variables["slope"] = (
                (("chain", "draw"), slopes[..., 0]) if one else (("chain", "draw", "level"), slopes)
            )
        return xarray.Dataset(variables, coords={"beta": ("level", self.ladder)})


def fewest_columns(blocks: Sequence[NDArray[np.float64]]) -> NDArray[np.floating]:
    """Slopes (..., K) of all blocks as a run keeps them: one float64 where all levels have the
    same, else float32.
    """
    if all(
        np.array_equal(slopes, np.broadcast_to(slopes[..., :1], slopes.shape)) for slopes in blocks
    ):
        return np.concatenate([slopes[..., :1].copy() for slopes in blocks])
    return np.concatenate([slopes.astype(np.float32, order="C") for slopes in blocks])


def linear_vectors(ladder: NDArray[np.float64], gains: NDArray[np.floating]) -> NDArray[np.float64]:
    """beta_k (log f_1 - log f_0), shape (N, K), of gains (N, 1), which may be -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(ladder == 0, 0.0, ladder * gains)

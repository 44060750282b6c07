"""The path from one density on R^d to another, whose log Z is the log ratio of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream, stream_key
from sklpf.partition import (
    BDMC,
    Exact,
    ParallelTempering,
    PartitionResult,
    default_estimator,
    regions_to_cover,
)
from sklpf.paths import GeometricPath, Path, Points, coordinates_of_rows, has
from sklpf.uncertainty import MOST_BETWEEN, between_groups

N_DRAWS = 100  # of each model in every group, one for each chain
_N_LEVELS = 100  # between the two
N_GROUPS = 10  # of independent chains, each with draws of the two models of its own


class BetweenDraws(BDMC):
    """BDMC between independent groups of draws at both ends: the error is that between groups."""

    most_groups = N_GROUPS


class DensityRatioPath(GeometricPath):
    """Path from one density on R^d to another: log f_beta = (1 - beta) log f_a + beta log f_b.

    Level 0 counts as normalised, so that this path's log Z is log Z_b - log Z_a. Forward
    chains begin at draws of the first density and reverse chains at draws of the second, each chain
    at one of its own.

    Parameters
    ----------
    a, b : GeometricPath
        Paths to the two densities, with ``rows(state)``, an affine function of the position. Chains
        move in the coordinates of the first.
    draws_a, draws_b : ndarray of shape (G, N, d)
        Rows drawn from the two densities, N in each of G independent groups.
    """

    tail_alarms = ()  # draws of both ends, not a base, say where the mass is
    n_chains_per_block = 250

    def __init__(self, a: GeometricPath, b: GeometricPath, draws_a: Array, draws_b: Array):
        origin, root = coordinates_of_rows(a)
        origin_b, root_b = coordinates_of_rows(b)
        self.draws = [_solve(root, draws - origin) for draws in (draws_a, draws_b)]
        self._b = b
        self._turn = np.linalg.solve(root_b, root)
        self._shift = _solve(root_b, origin - origin_b)
        self._log_volume = float(np.linalg.slogdet(self._turn)[1])
        super().__init__(self._log_density, grad=self._grad, base=_Drawn(a, self.draws[0]))

    def _log_density(self, y):
        """log f_b in the coordinates of the first path, with the volume that they change by."""
        return self._b.log_density(y @ self._turn.T + self._shift) + self._log_volume

    def _grad(self, y):
        """Gradient of `_log_density`."""
        assert self._b.grad is not None  # paths of models have one
        return self._b.grad(y @ self._turn.T + self._shift) @ self._turn

    def sample_base(self, n: int, stream: Stream) -> Points:
        """Return n chains at draws of the first density, each at its own."""
        return self._at_draws(0, n, stream)

    def sample_target(self, n: int, stream: Stream) -> Points:
        """Return n chains at draws of the second density, each at its own."""
        return self._at_draws(1, n, stream)

    def _at_draws(self, end, n, stream):
        """Chains at the draws of one end, each at its own."""
        draws = self.draws[end].reshape(-1, self.n_dimensions)
        return self.at(draws[(stream.chain + np.arange(n)) % len(draws)])

    def default_estimator(self) -> BetweenDraws:
        """Return what estimates the log ratio.

        Returns
        -------
        BetweenDraws
            Not fitted.
        """
        return BetweenDraws(N_GROUPS * N_DRAWS, _N_LEVELS, ladder="adaptive")

    @property
    def regions(self) -> Any:  # type: ignore[override]
        """None: masses of the second density alone say nothing of a ratio."""
        raise AttributeError("masses of regions are known for densities with a normalised base")

    @property
    def draw_alarms(self) -> tuple[str, ...]:
        """Alarms about the draws, in sentences."""
        shares = [between_groups(y.sum(axis=1), (y**2).sum(axis=1), y.shape[1]) for y in self.draws]
        return draw_alarms(shares)


class _Drawn:
    """The base of the path: a density of which there are draws."""

    normalised = True

    def __init__(self, path, draws):
        self.log_density = path.log_density
        self.grad_log_density = path.grad
        self.draws = draws.reshape(-1, draws.shape[-1])
        self.n_dimensions = draws.shape[-1]
        self.center = np.zeros(self.n_dimensions)
        self.scale = np.ones(self.n_dimensions)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n of the draws, shape (n, d)."""
        return self.draws[rng.integers(len(self.draws), size=n)]


def _solve(root, x):
    """inv(root) @ x of every x (..., d)."""
    return np.linalg.solve(root, x.reshape(-1, len(root)).T).T.reshape(x.shape)


# ---- from models
def draws_of_both(models: Sequence[Any], n_draws: int) -> Any:
    """Return rows (N_GROUPS, n_draws, d) of two fitted models each; None if a run that draws has
    not converged.

    They are exact where the path or `Exact` draws such, and no `ParallelTempering` was asked for;
    else from as many independent tempered ladders.
    """
    seeds = [model._partition_seed for model in models]
    draws = []
    for number, model in enumerate(models):
        path = model.path()
        seed = (*seeds, number)
        estimator = model.partition_estimator
        rows = None
        if not isinstance(estimator, ParallelTempering):
            estimator = ParallelTempering()
            rows = _exact_rows(path, n_draws, seed)
        if rows is None:
            rng = np.random.default_rng(seed)
            rows, result = tempered_rows(path, estimator, n_draws, rng, model.n_jobs)
            if not result.converged:
                return None
        draws.append(rows)
    return draws


def _exact_rows(path, n_draws, seed) -> NDArray | None:
    """Exact draws (N_GROUPS, n_draws, d); None of a path that has none."""
    n = N_GROUPS * n_draws
    if has(path, "sample_target"):
        state = path.sample_target(n, Stream(stream_key(seed)))
        return path.rows(state).reshape(N_GROUPS, n_draws, -1)
    exact = default_estimator(path)
    if not isinstance(exact, Exact):
        return None
    state = exact.sample(path, n, np.random.default_rng(seed))
    return path.rows(state).reshape(n_draws, N_GROUPS, -1).swapaxes(0, 1)


def tempered_rows(
    path: Path,
    estimator: ParallelTempering,
    n_draws: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[NDArray, PartitionResult]:
    """Return rows (N_GROUPS, n_draws, d) of a model from as many independent tempered ladders, and
    what their run says.

    Where the run has missed a region of the model others follow until one is trusted, from bases
    that cover it: chains between two models never leave what the draws at both ends have seen.
    """
    estimator = clone(estimator).set_params(n_ladders=N_GROUPS, checkpoint=None, n_jobs=n_jobs)

    def draw(path):
        state, run = estimator._draw(path, N_GROUPS * n_draws, rng)
        run = estimator._with_findings(path, int(rng.integers(2**31)), run)
        rows = path.rows(state).reshape(n_draws, N_GROUPS, -1).swapaxes(0, 1)
        return rows, run, run.read()

    rows, run, result = draw(path)
    for regions in regions_to_cover(path, run, result):
        rows, _, result = draw(path.with_regions(regions))
        if result.converged:
            break
    return rows, result


def draw_alarms(shares: Sequence[float]) -> tuple[str, ...]:
    """Alarms about draws of the two models, in sentences, from the shares of their variance that
    lie between ladders.
    """
    return tuple(
        f"draws of the {name} model differ between ladders ({share:.0%} of the variance lies"
        " between them)"
        for name, share in zip(("first", "second"), shares)
        if share > MOST_BETWEEN
    )

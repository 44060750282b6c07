"""Shared parts of models that explain real rows by latent variables on R^d and noise:
GenerativeModel, learned by EM, its path with a target for every row, and the density that EM
asks for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklpf._utils.context import reporting
from sklpf._utils.numbers import Array
from sklpf._utils.parallel import run_tasks
from sklpf._utils.random import Stream, draw_seed
from sklpf._utils.sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    in_container,
)
from sklpf._utils.validation import (
    NOT_NEGATIVE,
    POSITIVE,
    as_float64,
    at_least,
    check_count,
    check_fitted,
    check_scale,
    check_squares,
)
from sklpf._utils.warnings import warn
from sklpf.models._learning import all_or_nothing
from sklpf.paths import Box, CompiledPrograms, Points, PointsPath, check_ladder, values_at
from sklpf.scoring import SCORING, RowLikelihoodMixin
from sklpf.training import EM, parts_of, warn_unsettled

# of a learned noise, as a share of the columns' root mean square: without a bound the likelihood
# may have no maximum
_LEAST_NOISE = 1e-3


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeModel(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowLikelihoodMixin, BaseEstimator
):
    """fit, path and sample of a model x = mean_ + function of latent variables + noise.

    A model has the parameters below, and defines

    - ``_learn(X, rng)``: sets what is learned from centred rows, `noise_std_` among it, and
      `_n_features_out`;
    - ``_fitted_shapes``: dimensions of the fitted attributes;
    - ``_path(X)``: the path with one target for each of the centred rows X, which can ``simulate(n,
      rng)``.
    """

    noise_std: float | None = None
    n_draws: int | None = None
    tol: float = 0.01
    max_iter: int = 300
    verbose: int = 0
    _learn: ClassVar[Callable[..., None]]
    _path: ClassVar[Callable[..., Any]]
    _parameter_constraints = {
        **SCORING,
        "noise_std": [POSITIVE, None],
        "n_draws": [at_least(1), None],
        "tol": [NOT_NEGATIVE],
        "max_iter": [at_least(1)],
    }

    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Fit to X by maximum likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter can't be used, or if values of X are too large; the model is then as it
            was.

        Warns
        -----
        ConvergenceWarning
            If the loss still fell after `max_iter` passes, or a learned noise is at its floor.
        """
        if self.noise_std is not None:
            check_scale(self.noise_std, "noise_std")
        X = self._validate(X, reset=True)
        self.mean_ = X.mean(axis=0)
        rng = check_random_state(self.random_state)
        self._learn(X - self.mean_, rng)
        self._partition_seed = draw_seed(rng)
        if self.noise_std is None and self.noise_std_ <= least_noise_std(X - self.mean_):
            warn(
                f"the learned noise is at its floor, {_LEAST_NOISE:g} of the columns' root mean"
                " square: the score depends on the floor; give noise_std, lower n_components, or"
                " drop columns that others determine",
                ConvergenceWarning,
            )
        return self

    def _repeated(self, X):
        """The rows once for each chain; of few rows each has several."""
        enough_chains = 200  # of few rows each has several
        n = -(-enough_chains // len(X)) if self.n_draws is None else self.n_draws
        return np.tile(X, (n, 1))

    def _train(self, latents, position, rng, **options) -> None:
        """Train a `LatentModel` by EM as the parameters say, keep its losses, and warn if they have
        not settled.
        """
        em = EM(latents, position, rng, tol=self.tol, **options)
        em.fit(self.max_iter)
        self.loss_curve_ = np.array(em.losses)
        self.n_iter_ = len(em.losses)
        self.converged_ = em.converged
        if not em.converged:
            warn_unsettled(self.max_iter)

    # -- log-likelihood
    def path(self, X) -> Any:
        """Return the path with one target a row, whose normaliser is that row's likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        path : Path
        """
        return self._path(self._scorable(X))

    def sample(self, n_samples=1, random_state=None) -> Array:
        """Draw independent rows from the model, exactly.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_fitted(self)
        check_count(n_samples, "n_samples")
        path = self._path(np.empty((0, len(self.mean_))))
        rng = np.random.default_rng(draw_seed(random_state))
        return in_container(self, self.mean_ + path.simulate(n_samples, rng))

    def _validate(self, X, reset=False):
        X = super()._validate(X, reset)
        check_squares(X)
        return X

    def _scorable(self, X):
        return super()._scorable(X) - self.mean_


def least_noise_std(X: Array) -> float:
    """Return the floor of a learned noise for centred rows, in their units."""
    return _LEAST_NOISE * (float(np.sqrt(np.mean(X**2))) or 1.0)


def first_noise_std(X: Array, n_components: int) -> float:
    """Return the noise that learning starts from: what principal components leave of centred rows
    (Tipping & Bishop 1999, eq. 8), or a share of their size where nothing is left.
    """
    first = 0.1  # where there are as many components as features
    n_features = X.shape[1]
    if n_components >= n_features:
        return first / _LEAST_NOISE * least_noise_std(X)
    values = np.linalg.svd(X, compute_uv=False)
    left = np.sum(values[n_components:] ** 2) / len(X) / (n_features - n_components)
    return max(float(np.sqrt(left)), least_noise_std(X))


class LatentRowsPath(CompiledPrograms, PointsPath):
    """One target for each row of X, the latent variables of that row: log Z is log p(x).

    Chains live in coordinates of their own, in which the base is easy to draw from. A subclass
    names its kernels' module in `_kernels`, sets `n_dimensions` and `n_features`, and defines
    `_at_row` (computes what all chains of a row share), `simulate` (draws rows from the model),
    `_pack` (a row's compiled density, with `evaluate`) and `sample_base`.
    """

    base_log_partition = 0.0
    n_chains_per_block = 64
    n_dimensions: int
    n_features: int

    def __init__(self, X: ArrayLike, ladder: ArrayLike):
        X = as_float64(X, "X", copy=True)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"X must have the shape (n_rows, {self.n_features}) to match components, got"
                f" {X.shape}"
            )
        check_squares(X)
        self.X = np.ascontiguousarray(X)
        self.bounds = Box.everywhere(self.n_dimensions)
        self.ladder = check_ladder(ladder)
        self.n_rows: int | None = len(self.X)

    # -- rows
    def row(self, t: int) -> Self:
        """Return the path of row t alone."""
        return self._alone(self.X[t])

    def row_content(self, t: int) -> bytes:
        """Return row t."""
        return self.X[t].tobytes()

    def simulated_row(self, stream: Stream) -> Self:
        """Return the path of one row drawn from the model."""
        return self._alone(self.simulate(1, stream.generator())[0])

    def _alone(self, x):
        row = copy.copy(self)
        row.X = np.array(x)
        row.n_rows = None
        row._at_row()
        return row

    def _at_row(self) -> None:
        """Compute what all chains of a row share, of a path whose X is that row."""

    def simulate(self, n: int, rng: np.random.Generator) -> Array:
        """Return n rows drawn from the model, shape (n, n_features)."""
        raise NotImplementedError

    # -- states
    def at(self, position: Array) -> Points:
        """Return the state of chains at some points (n, n_dimensions)."""
        values = values_at(self.packed, position)
        return Points(position, values.log_base, values.gain)

    def gradients(self, state: Points) -> tuple[Array, Array]:
        """Return the gradients of log f_0 and of log f_1 - log f_0, both (n, n_dimensions)."""
        values = values_at(self.packed, state.position)
        return values.base_slope, values.gain_slope


class LatentDensity:
    """The density of latent variables of every row, as `sklpf.training.EM` asks for it.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Centred rows, repeated where there are several chains a row.
    noise_std : float
        Standard deviation of the noise, or the one to start from.
    learns_noise : bool
        Whether M-steps change it.
    """

    _density: Callable[[slice], Any]  # compiled, of some rows

    def __init__(self, X: Array, noise_std: float, learns_noise: bool):
        self.X = X
        self.noise_std = noise_std
        self._least_noise = least_noise_std(X) if learns_noise else None

    def _learn_noise(self, residual: Array, rate: float) -> None:
        """Move the noise's variance towards the mean square of the residuals (n, n_features).

        They are those of latent variables drawn from the posterior, so that their square has the
        posterior variance in it, and its mean is the M-step.
        """
        if self._least_noise is not None:
            variance = (1 - rate) * self.noise_std**2 + rate * float(np.mean(residual**2))
            self.noise_std = max(float(np.sqrt(variance)), self._least_noise)

    def log_density(self, position: Array) -> Array:
        """Return log p(row, latent) of every chain up to a constant, shape (n,)."""
        return self._in_parts(position, lambda values: values.log_base + values.gain)

    def grad(self, position: Array) -> Array:
        """Return its gradient, shape (n, d)."""
        return self._in_parts(position, lambda values: values.base_slope + values.gain_slope)

    def _in_parts(self, position, result):
        def evaluate(rows):
            return result(values_at(self._density(rows), position[rows]))

        return np.concatenate(run_tasks(evaluate, parts_of(position)))

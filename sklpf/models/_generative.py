"""GenerativeModel: what models share that explain real rows by latent variables and noise, learned
by EM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from sklpf._utils.numbers import Array, check_count, check_scale, check_squares
from sklpf._utils.progress import reporting
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import (
    NOT_NEGATIVE,
    POSITIVE,
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    at_least,
)
from sklpf.models._learning import all_or_nothing
from sklpf.models._validation import check_fitted, named_by_model, validate_data
from sklpf.models.scoring._likelihood import SCORING, RowLikelihoodMixin
from sklpf.training import EM
from sklpf.training._loop import warn_unsettled

_ENOUGH_CHAINS = 200  # of few rows each has several


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeModel(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowLikelihoodMixin, BaseEstimator
):
    """fit, path and sample of a model x = mean_ + function of latent variables + noise_std N(0, I).

    A model has the parameters below, and defines

    - ``_learn(X, rng)``: sets what is learned from centred rows, and `_n_features_out`;
    - ``_fitted_shapes``: dimensions of the fitted attributes;
    - ``_path(X)``: the path with one target for each of the centred rows X, which can ``simulate(n,
      rng)``.
    """

    noise_std: float = 0.1
    n_draws: int | None = None
    tol: float = 0.01
    max_iter: int = 300
    verbose: int = 0
    _learn: ClassVar[Callable[..., None]]
    _path: ClassVar[Callable[..., Any]]
    _parameter_constraints = {
        **SCORING,
        "noise_std": [POSITIVE],
        "n_draws": [at_least(1), None],
        "tol": [NOT_NEGATIVE],
        "max_iter": [at_least(1)],
    }

    @named_by_model
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
            If the loss still fell after `max_iter` passes.
        """
        self._validate_params()
        check_scale(self.noise_std, "noise_std")
        X = self._validate(X, reset=True)
        self.mean_ = X.mean(axis=0)
        rng = check_random_state(self.random_state)
        self._learn(X - self.mean_, rng)
        self._partition_seed = draw_seed(rng)
        return self

    def _repeated(self, X):
        """The rows once for each chain; of few rows each has several."""
        n = -(-_ENOUGH_CHAINS // len(X)) if self.n_draws is None else self.n_draws
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
        return self.mean_ + path.simulate(n_samples, rng)

    def _validate(self, X, reset=False):
        X = validate_data(self, X, reset=reset, dtype=np.float64)
        check_squares(X)
        return X

    def _scorable(self, X):
        check_fitted(self)
        return self._validate(X) - self.mean_

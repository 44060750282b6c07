"""LinearGenerativeModel: rows as sums of independent causes with noise; `score` is a
log-likelihood.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import StrOptions, at_least
from sklpf.models._generative import GenerativeModel, check_latent
from sklpf.models._validation import check_fitted
from sklpf.models.linear._path import GaussianPosterior, LinearPath
from sklpf.models.linear._trainer import (
    LaplaceCauses,
    gaussian_components,
    independent_components,
    sparse_causes,
)


@dataclass(eq=False, repr=False)
class LinearGenerativeModel(GenerativeModel):
    """Rows as sums of independent causes with noise; `score` is a log-likelihood.

    x = `mean_` + `components_`.T @ a + `noise_std` N(0, I) with causes a_i of density ``exp(-|a_i|)
    / 2`` (sparse coding, and independent component analysis with noise) or N(0, 1) (probabilistic
    PCA whose noise is known); see Sohl-Dickstein & Culpepper 2012, eq. 30 to 32.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of causes, which may exceed the number of features. None: as many as features.
    prior : {"laplace", "gaussian"}, default="laplace"
        Of the causes.
    noise_std : float, default=0.1
        Standard deviation of the noise, in the units of X. It is not learned: choose it by
        cross-validation.
    n_draws : int or None, default=None
        Chains of causes for every row in the E-step: 1 is stochastic EM, more are Monte-Carlo EM
        (Bishop 2006, eq. 11.29). None: 1, or with few rows as many as give 200 chains.
    tol : float, default=0.01
        Training has settled when the mean of `loss_curve_` over 10 passes is lower than over the 10
        passes before by less than this, in nats a row.
    max_iter : int, default=300
        Largest number of passes: those until the loss settles, and half as many again (at least 20)
        with ever smaller steps.
    verbose : int, default=0
        Whether to print the loss after a pass, at most once a second.
    random_state : int, RandomState or None, default=None
        Seed of the components, the chains and the estimates of `score`.
    partition_estimator : PartitionEstimator or None, default=None
        How log p(x) of a row is computed. None: in closed form where the prior is Gaussian, else by
        `HAIS`. If its `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do with rows whose estimate can't be trusted.
    n_jobs : int or None, default=None
        For the rows of `score`, in threads unless ``joblib.parallel_config`` says otherwise. Never
        changes a number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Contribution to a row of one unit of a cause: the transpose of the mixing matrix Phi, as in
        FactorAnalysis. (In FastICA it corresponds to ``mixing_.T``, and not to ``components_``, the
        unmixing matrix.) Signs and order are arbitrary.
    mean_ : ndarray of shape (n_features,)
        Means of the columns, as in FastICA.
    loss_curve_ : ndarray of shape (`n_iter_`,)
        Estimates of -log p(x) of the training rows, in nats a row, after every pass: thermodynamic
        integration by the trapezoid rule of two points, with a bias of a few nats if there are many
        more causes than features. With a Gaussian prior the exact value.
    n_iter_ : int
        Passes.
    converged_ : bool
        Whether the loss settled, and the passes after that were made.
    partition_estimator_ : PartitionEstimator
        Fitted to the rows that were scored last.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With a Gaussian prior the components are those of maximum likelihood, in closed form. With a
    Laplace prior training starts from FastICA's components, scaled to causes of variance 2;
    additional components start small and at random. Training continues by `sklpf.training.EM` with
    natural-gradient M-steps. The likelihood has local optima.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import LinearGenerativeModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.laplace(size=(500, 2)) @ [[2.0, 1.0], [0.0, 1.0]]
    >>> model = LinearGenerativeModel(random_state=0).fit(X)
    >>> model.components_.shape
    (2, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    prior: Literal["laplace", "gaussian"] = "laplace"

    _parameter_constraints = {
        **GenerativeModel._parameter_constraints,
        "n_components": [at_least(1), None],
        "prior": [StrOptions({"laplace", "gaussian"})],
    }

    # -- training
    def _learn(self, X, rng):
        self._n_features_out = X.shape[1] if self.n_components is None else self.n_components
        if self.prior == "gaussian":
            self._fit_gaussian(X)
        else:
            self._fit_laplace(X, rng)

    def _fit_gaussian(self, X):
        self.components_ = gaussian_components(X, self._n_features_out, self.noise_std)
        log_likelihood = GaussianPosterior(self.components_, self.noise_std, 1.0).log_likelihood(X)
        self.loss_curve_ = np.array([-log_likelihood.mean()])
        self.n_iter_ = 1
        self.converged_ = True

    def _fit_laplace(self, X, rng):
        start = independent_components(X, self._n_features_out, rng)
        rows = self._repeated(X)
        causes = LaplaceCauses(rows, start, self.noise_std)
        draws = np.random.default_rng(draw_seed(rng))
        self._train(causes, draws.standard_normal((len(rows), len(start))), draws)
        self.components_ = causes.components

    _fitted_shapes = {"components_": ("n_components", "n_features"), "mean_": ("n_features",)}

    # -- causes
    def transform(self, X) -> Array:
        """Most probable causes of every row.

        With a Gaussian prior that is their posterior mean; with a Laplace prior a sparse code, by
        coordinate descent (scikit-learn's `Lasso`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        causes : ndarray of shape (n_samples, n_components)
        """
        X = self._scorable(X)
        if self.prior == "gaussian":
            return GaussianPosterior(self.components_, self.noise_std, 1.0).center(X)
        return sparse_causes(X, self.components_, self.noise_std)

    def inverse_transform(self, X) -> Array:
        """Rows without noise that causes make.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Causes, such as `transform` returns.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        check_fitted(self)
        return check_latent(X, len(self.components_)) @ self.components_ + self.mean_

    # -- log-likelihood
    def _path(self, X):
        return LinearPath(X, self.components_, self.noise_std, self.prior)

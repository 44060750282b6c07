"""BilinearGenerativeModel: rows whose causes are products of content and style; `score` is a
log-likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import at_least
from sklpf.models._generative import GenerativeModel
from sklpf.models.bilinear._path import BilinearPath
from sklpf.models.bilinear._trainer import (
    BilinearLatents,
    Parameters,
    posterior_modes,
    starting_parameters,
)

_N_LEAPFROG = 5


@dataclass(eq=False, repr=False)
class BilinearGenerativeModel(GenerativeModel):
    """Latent variables that are products of content and style; `score` is a log-likelihood.

    x = `mean_` + Phi a + `noise_std` N(0, I) with a = (Theta c) * (Psi d), content c_i of density
    ``exp(-|c_i|) / 2`` and style d_j >= 0 of density exp(-d_j); see Sohl-Dickstein & Culpepper
    2012, eq. 33 to 35.

    Parameters
    ----------
    n_components, n_content, n_style : int or None, default=None
        Lengths of a, c and d. None: the number of features.
    noise_std : float, default=0.1
        Standard deviation of the noise, in the units of X. It is not learned.
    n_draws : int or None, default=None
        Chains of content and style for every row in the E-step. None: 1, or with few rows as many
        as give 200 chains.
    tol : float, default=0.01
        Training has settled when the mean of `loss_curve_` over 10 passes is lower than over the 10
        passes before by less than this, in nats a row.
    max_iter : int, default=300
        Largest number of passes: those until the loss settles, and half as many again (at least 20)
        with ever smaller steps.
    verbose : int, default=0
        Whether to print the loss after a pass, at most once a second.
    random_state : int, RandomState or None, default=None
        Seed of the parameters, the chains and the estimates of `score`.
    partition_estimator : PartitionEstimator or None, default=None
        How log p(x) of a row is computed. None: by ``HAIS(n_temperatures=30_000, tol=0.1)``, a
        standard error of 0.1 nats with at most 30,000 levels; with more than 40 content and style
        variables ``tol=0.2``. A smaller `tol` costs more levels, about in proportion to its inverse
        square. If its `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do with rows whose estimate can't be trusted.
    n_jobs : int or None, default=None
        For the rows of `score`, in threads unless ``joblib.parallel_config`` says otherwise. Never
        changes a number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Contribution to a row of one unit of an entry of a: the transpose of Phi.
    content_weights_ : ndarray of shape (n_components, n_content)
        Theta.
    style_weights_ : ndarray of shape (n_components, n_style)
        Psi, which may have negative entries.
    mean_ : ndarray of shape (n_features,)
        Means of the columns.
    loss_curve_ : ndarray of shape (`n_iter_`,)
        After every pass the mean of -log p(x | d), computed as if content were normal, over at most
        1000 rows at their draws of d. It falls with -log p(x) in training, but is no estimate of
        it.
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
    Training starts from FastICA's components, with one content variable each and a style that acts
    on all equally, and continues by `sklpf.training.EM`.

    Rows are hard to score: annealing starts at the prior, which is far from the posterior of a row
    with little noise. Of 16 image patches and three trainings (36 whitened dimensions, 49 content
    and 49 style variables, ``noise_std=0.1``) 46 of 48 rows were converged with at most 30,000
    levels, at 5 s a row on one core and with a mean standard error of 0.1 nats; with 10,000 levels
    36 were.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import HAIS, BilinearGenerativeModel
    >>> X = np.random.default_rng(0).laplace(size=(200, 2))
    >>> model = BilinearGenerativeModel(
    ...     noise_std=0.5, partition_estimator=HAIS(), random_state=0
    ... ).fit(X)
    >>> model.style_weights_.shape
    (2, 2)
    """

    n_components: int | None = None
    n_content: int | None = None
    n_style: int | None = None

    _parameter_constraints = {
        **GenerativeModel._parameter_constraints,
        "n_components": [at_least(1), None],
        "n_content": [at_least(1), None],
        "n_style": [at_least(1), None],
    }

    # -- training
    def _learn(self, X, rng):
        sizes = [
            X.shape[1] if n is None else n
            for n in (self.n_components, self.n_content, self.n_style)
        ]
        rows = self._repeated(X)
        latents = BilinearLatents(rows, starting_parameters(X, sizes, rng), self.noise_std)
        draws = np.random.default_rng(draw_seed(rng))
        self._train(latents, latents.start(), draws, n_leapfrog=_N_LEAPFROG, bounds=latents.bounds)
        self.components_, self.content_weights_, self.style_weights_ = latents.parameters
        self._n_features_out = sum(sizes[1:])

    _fitted_shapes = {
        "components_": ("n_components", "n_features"),
        "content_weights_": ("n_components", "n_content"),
        "style_weights_": ("n_components", "n_style"),
        "mean_": ("n_features",),
    }

    # -- content and style
    def transform(self, X) -> Array:
        """Content and style of every row, near a mode of their posterior: where a climb from d = 1
        arrives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        latents : ndarray of shape (n_samples, n_content + n_style)
            Content first.
        """
        X = self._scorable(X)
        return posterior_modes(X, self._parameters(), self.noise_std)

    # -- log-likelihood
    def _path(self, X):
        return BilinearPath(
            X, self.components_, self.content_weights_, self.style_weights_, self.noise_std
        )

    def _parameters(self):
        return Parameters(self.components_, self.content_weights_, self.style_weights_)

"""BilinearGenerativeModel: rows whose causes are products of content and style; `score` is a
log-likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import one_blas_thread
from sklpf._utils.random import draw_seed
from sklpf._utils.validation import at_least
from sklpf.models._generative import GenerativeModel, LatentDensity, first_noise_std
from sklpf.models.bilinear._path import BilinearPath, bounds_of, pack_row
from sklpf.models.linear import WIDTH, independent_components
from sklpf.paths import Box

_N_LEAPFROG = 5
# of the content's variance that stays with one variable a component, where there are more of them
_SHARE = 0.95


@dataclass(eq=False, repr=False)
class BilinearGenerativeModel(GenerativeModel):
    """Latent variables that are products of content and style; `score` is a log-likelihood.

    x = `mean_` + Phi a + `noise_std_` N(0, I) with a = (Theta c) * (Psi d), content c_i of density
    ``exp(-|c_i|) / 2`` and style d_j >= 0 of density exp(-d_j); see Sohl-Dickstein & Culpepper
    2012, eq. 33 to 35.

    Parameters
    ----------
    n_components, n_content, n_style : int or None, default=None
        Lengths of a, c and d. None: the number of features.
    noise_std : float or None, default=None
        Standard deviation of the noise, in the units of X. None learns it, as
        `LinearGenerativeModel` does.
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
        How log p(x) of a row is computed. None: by
        ``DecoderImportance(n_temperatures=30_000, tol=0.1)``, importance sampling at the modes of
        content and style, and where it fails `HAIS` with at most 30,000 levels; with more than 40
        content and style variables ``tol=0.2``. If its `random_state` or `n_jobs` is None, that of
        the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do with rows whose estimate can't be trusted.
    n_jobs : int or None, default=None
        For the rows of `score`, in threads unless ``joblib.parallel_config`` says otherwise, and
        for those of `fit`, always in threads. Never changes a number.

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
    noise_std_ : float
        Standard deviation of the noise: the one that was learned, or `noise_std`.
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
    >>> settings = dict(partition_estimator=HAIS(), random_state=0)
    >>> model = BilinearGenerativeModel(noise_std=0.5, **settings).fit(X)
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
        latents = BilinearLatents(
            rows,
            starting_parameters(X, sizes, rng),
            self.noise_std or first_noise_std(X, min(sizes[:2])),
            learns_noise=self.noise_std is None,
        )
        draws = np.random.default_rng(draw_seed(rng))
        self._train(latents, latents.start(), draws, n_leapfrog=_N_LEAPFROG, bounds=latents.bounds)
        self.components_, self.content_weights_, self.style_weights_ = latents.parameters
        self.noise_std_ = latents.noise_std
        self._n_features_out = sum(sizes[1:])

    _fitted_shapes = {
        "components_": ("n_components", "n_features"),
        "content_weights_": ("n_components", "n_content"),
        "style_weights_": ("n_components", "n_style"),
        "mean_": ("n_features",),
        "noise_std_": (),
    }
    _positive = ("noise_std_",)

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
        with one_blas_thread():
            return posterior_modes(X, self._parameters(), self.noise_std_)

    # -- log-likelihood
    def _path(self, X):
        return BilinearPath(X, *self._parameters(), self.noise_std_)

    def _parameters(self) -> Parameters:
        return Parameters(self.components_, self.content_weights_, self.style_weights_)


class Parameters(NamedTuple):
    """Learned parameters: the transpose of Phi, Theta and Psi."""

    components: Array  # (K, D)
    content_weights: Array  # (K, C)
    style_weights: Array  # (K, S)


def starting_parameters(X: NDArray, sizes: Sequence[int], rng: np.random.RandomState) -> Parameters:
    """Return FastICA's components, content that drives one component each, and style that drives
    them all alike.
    """
    n_components, n_content, n_style = sizes
    content = np.zeros((n_components, n_content))
    n = min(n_components, n_content)
    share = _SHARE if n_content > n_components else 1.0
    content[:n, :n] = np.sqrt(share) * np.eye(n)
    content[:, n:] = rng.standard_normal((n_components, n_content - n))
    content[:, n:] *= np.sqrt((1 - share) / max(1, n_content - n))
    if n_components > n:  # components that no content drives by itself
        content[n:] = rng.standard_normal((n_components - n, n_content)) / np.sqrt(n_content)
    style = rng.exponential(size=(n_components, n_style))
    # E (Psi d)² = 1
    style /= np.sqrt(
        style.sum(axis=1, keepdims=True) ** 2 + np.sum(style**2, axis=1, keepdims=True)
    )
    return Parameters(independent_components(X, n_components, rng), content, style)


class BilinearLatents(LatentDensity):
    """Content and style of every row as `sklpf.training.EM` draws them, at the points of
    `BilinearPath`.

    M-steps follow natural gradients of the likelihood: each of the three matrices moves along M Mᵀ
    times its gradient, so that no units matter. Of Theta, integrated by parts, that is Theta
    (E[sign(c) cᵀ] - I).

    Parameters
    ----------
    X, noise_std, learns_noise
        As of `LatentDensity`.
    parameters : Parameters
    """

    def __init__(self, X, parameters, noise_std, learns_noise=False):
        super().__init__(X, noise_std, learns_noise)
        self.parameters = parameters
        self._n_content = parameters.content_weights.shape[1]

    @property
    def bounds(self) -> Box:
        """Box of the points, of n_content + n_style coordinates."""
        return bounds_of(self._n_content, self.parameters.style_weights.shape[1])

    def _density(self, rows):
        return pack_row(self.X[rows], self.parameters, self.noise_std, 0.0)

    def start(self) -> Array:
        """Return points that explain the rows: d = 1, and c as if all else were linear."""
        components, theta, psi = self.parameters
        mixing = (theta * psi.sum(axis=1, keepdims=True)).T @ components
        ridge = mixing @ mixing.T + self.noise_std**2 / WIDTH * np.eye(self._n_content)
        content = self.X @ np.linalg.lstsq(ridge, mixing, rcond=None)[0].T
        return np.concatenate([content, np.ones((len(self.X), psi.shape[1]))], axis=1)

    def maximise(self, position: Array, rate: float) -> None:
        """Move all three matrices along their natural gradients, and the noise to its M-step."""
        # of the natural gradients, for the style, whose draws can't follow
        style_share = 0.3
        components, theta, psi = self.parameters
        n = len(position)
        c = position[:, : self._n_content]
        d = position[:, self._n_content :]
        content = c @ theta.T
        style = d @ psi.T
        a = content * style
        residual = (self.X - a @ components) / self.noise_std
        slope = residual @ components.T / self.noise_std
        of_content = rate * _limited(np.sign(c).T @ c / n - np.eye(self._n_content))
        of_style = rate * style_share * _limited(((slope * content) @ psi).T @ d / n)
        change = np.linalg.lstsq(a.T @ a, a.T @ residual, rcond=None)[0] * self.noise_std
        self.parameters = Parameters(
            components + rate * change, theta + theta @ of_content, psi + psi @ of_style
        )
        c -= np.linalg.solve(np.eye(self._n_content) + of_content, of_content @ c.T).T
        self._learn_noise(self.noise_std * residual, rate)

    def loss(self, position: Array) -> float:
        """Return the mean of -log N(x; 0, 2 B(d) B(d)ᵀ + noise_std² I) at draws of d, of at most
        1000 rows, in nats.

        With x = B(d) c + noise that is the likelihood of a row with known style, were its content
        normal.
        """
        rounding = 1e-13  # of a covariance
        most_rows = 1000
        rows = np.linspace(0, len(position) - 1, min(most_rows, len(position))).astype(int)
        components, theta, psi = self.parameters
        style = position[rows, self._n_content :] @ psi.T
        root = np.einsum("nk,kd,kc->ndc", style, components, theta, optimize=True)
        covariance = WIDTH * root @ root.transpose(0, 2, 1)
        noise = (
            self.noise_std**2
            + rounding * np.trace(covariance, axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
        )
        covariance += noise * np.eye(self.X.shape[1])
        squares = np.einsum(
            "nd,nd->n",
            self.X[rows],
            np.linalg.solve(covariance, self.X[rows, :, np.newaxis])[..., 0],
        )
        return 0.5 * float(np.mean(squares + np.linalg.slogdet(2 * np.pi * covariance)[1]))


def posterior_modes(X: NDArray, parameters: Parameters, noise_std: float) -> Array:
    """Return content and style (n, n_content + n_style) of every row where L-BFGS arrives in its
    posterior.
    """
    found = []
    for x in X:
        latents = BilinearLatents(x[np.newaxis], parameters, noise_std)

        def loss(z, latents=latents):
            position = z[np.newaxis]
            return -latents.log_density(position)[0], -latents.grad(position)[0]

        climb = minimize(
            loss,
            latents.start()[0],
            jac=True,
            method="L-BFGS-B",
            bounds=np.transpose(latents.bounds),
        )
        found.append(climb.x)
    return np.array(found)


def _limited(slope):
    """A step along a slope, shorter where that is large."""
    step = 0.2  # of the natural gradients
    return step * slope / max(1.0, float(np.linalg.norm(slope, 2)))

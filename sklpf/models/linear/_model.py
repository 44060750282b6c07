"""LinearGenerativeModel: rows as sums of independent causes with noise; `score` is a
log-likelihood.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf
from sklearn.utils.extmath import svd_flip

from sklpf._utils.numbers import Array
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import at_least, check_fitted, check_parameter
from sklpf.models._generative import GenerativeModel, LatentDensity, first_noise_std
from sklpf.models.linear._path import WIDTH, GaussianPosterior, LinearPath, pack_causes

_STEP = 0.5  # of the natural gradient
_SHARE = 0.95  # of the variance that the independent components keep beside more of them


@dataclass(eq=False, repr=False)
class LinearGenerativeModel(GenerativeModel):
    """Rows as sums of independent causes with noise; `score` is a log-likelihood.

    x = `mean_` + `components_`.T @ a + `noise_std_` N(0, I) with causes a_i of density
    ``exp(-|a_i|) / 2`` (sparse coding, and independent component analysis with noise) or N(0, 1)
    (probabilistic PCA); see Sohl-Dickstein & Culpepper 2012, eq. 30 to 32.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of causes, which may exceed the number of features. None: as many as features.
    prior : {"laplace", "gaussian"}, default="laplace"
        Of the causes.
    noise_std : float or None, default=None
        Standard deviation of the noise, in the units of X. None learns it.
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
        For the rows of `score`, in threads unless ``joblib.parallel_config`` says otherwise, and
        for those of `fit`, always in threads. Never changes a number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Contribution to a row of one unit of a cause: the transpose of the mixing matrix Phi, as in
        FactorAnalysis. (In FastICA it corresponds to ``mixing_.T``, and not to ``components_``, the
        unmixing matrix.) Signs and order are arbitrary.
    mean_ : ndarray of shape (n_features,)
        Means of the columns, as in FastICA.
    noise_std_ : float
        Standard deviation of the noise: the one that was learned, at least a thousandth of the
        columns' root mean square, or `noise_std`.
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
    With a Gaussian prior the components and the noise are those of maximum likelihood, in closed
    form. With a Laplace prior training starts from FastICA's components, scaled to causes of
    variance 2; additional components start small and at random. Training continues by
    `sklpf.training.EM` with natural-gradient M-steps; the noise's variance becomes the mean square
    of what the drawn causes leave. The likelihood has local optima. With as many causes as
    features it says little of the noise, which then stays near where it starts, a tenth of the
    columns' root mean square.

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
            # With as many components as features several noises are as good: the largest of them.
            n_noisy = min(self._n_features_out, X.shape[1] - 1)
            self.noise_std_: float = self.noise_std or first_noise_std(X, n_noisy)
            self.components_ = gaussian_components(X, self._n_features_out, self.noise_std_)
            posterior = GaussianPosterior(self.components_, self.noise_std_, 1.0)
            self.loss_curve_ = np.array([-posterior.log_likelihood(X).mean()])
            self.n_iter_ = 1
            self.converged_ = True
            return
        start = independent_components(X, self._n_features_out, rng)
        rows = self._repeated(X)
        noise_std = self.noise_std or first_noise_std(X, len(start))
        causes = LaplaceCauses(rows, start, noise_std, learns_noise=self.noise_std is None)
        draws = np.random.default_rng(draw_seed(rng))
        self._train(causes, draws.standard_normal((len(rows), len(start))), draws)
        self.components_ = causes.components
        self.noise_std_ = causes.noise_std

    _fitted_shapes = {
        "components_": ("n_components", "n_features"),
        "mean_": ("n_features",),
        "noise_std_": (),
    }
    _positive = ("noise_std_",)

    # -- causes
    def transform(self, X) -> Array:
        """Most probable causes of every row.

        With a Gaussian prior that is their posterior mean; with a Laplace prior a sparse code, by
        coordinate descent, as scikit-learn's `Lasso` finds it.

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
            return GaussianPosterior(self.components_, self.noise_std_, 1.0).center(X)
        return sparse_causes(X, self.components_, self.noise_std_)

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
        X = check_parameter(X, "X", dtype=np.float64)
        n = len(self.components_)
        if X.shape[1] != n:
            raise ValueError(
                f"X must have a column for each of {n} latent variables, got {X.shape[1]}"
            )
        return X @ self.components_ + self.mean_

    # -- log-likelihood
    def _path(self, X):
        return LinearPath(X, self.components_, self.noise_std_, self.prior)


def gaussian_components(X: NDArray, n_components: int, noise_std: float) -> Array:
    """Return the components of greatest likelihood where causes are N(0, 1): probabilistic PCA
    given its noise.

    X is centred. Directions whose variance is below the noise's have none (Tipping & Bishop 1999,
    eq. 15).
    """
    values, right = _svd(X)
    variances = np.maximum((values / np.sqrt(len(X))) ** 2 - noise_std**2, 0)
    components = np.zeros((n_components, X.shape[1]))
    n = min(n_components, len(values))
    components[:n] = np.sqrt(variances[:n, np.newaxis]) * right[:n]
    return components


def independent_components(X: NDArray, n_components: int, rng: np.random.RandomState) -> Array:
    """Return the components of FastICA for causes of variance 2; and random ones, where more are
    wanted.

    X is centred. Its covariance is that of the model but for the noise.
    """
    values, right = _svd(X)
    rank = min(n_components, int(np.sum(values > 1e-10 * values.max(initial=0.0))))
    components = np.zeros((n_components, X.shape[1]))
    if rank == 0:
        return components
    # white rows @ whitening are those of X
    whitening = right[:rank] * (values[:rank, np.newaxis] / np.sqrt(len(X)))
    rotation = _rotation(X @ right[:rank].T * (np.sqrt(len(X)) / values[:rank]), rng)
    share = _SHARE if n_components > rank else 1.0
    components[:rank] = np.sqrt(share) * rotation @ whitening
    others = rng.standard_normal((n_components - rank, rank))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    components[rank:] = np.sqrt((1 - share) * rank / max(1, len(others))) * others @ whitening
    return components / np.sqrt(WIDTH)


def _svd(X):
    _, values, right = np.linalg.svd(X, full_matrices=False)
    return values, svd_flip(None, right, u_based_decision=False)[1]


def _rotation(Z: Array, rng: np.random.RandomState) -> Array:
    """Orthonormal rows that make white data independent, by the fixed-point iteration of FastICA
    with the nonlinearity tanh (Hyvärinen & Oja 2000, eq. 40 and 45); as far as it has come where it
    does not converge.
    """
    tol = 1e-4
    max_steps = 200
    rotation = _nearest_rotation(rng.standard_normal((Z.shape[1], Z.shape[1])))
    if len(Z) < 2:
        return rotation
    for _ in range(max_steps):
        slopes = np.tanh(Z @ rotation.T)
        curvatures = np.mean(1 - slopes**2, axis=0)
        previous = rotation
        rotation = _nearest_rotation(slopes.T @ Z / len(Z) - curvatures[:, np.newaxis] * previous)
        cosines = np.sum(rotation * previous, axis=1)
        if np.max(np.abs(np.abs(cosines) - 1)) < tol:
            break
    return rotation


def _nearest_rotation(matrix: Array) -> Array:
    left, _, right = np.linalg.svd(matrix)
    return left @ right


def sparse_causes(X: NDArray, components: NDArray, noise_std: float) -> Array:
    """Return the causes of greatest posterior density of every row, (n, n_components), where their
    prior is Laplace.
    """
    from sklpf.models.linear._path_kernels import descend_coordinates

    tol = 1e-10  # of the largest cause
    max_sweeps = 10_000

    # numbers of at most about 1, whatever the units
    size = max(float(np.abs(components).max(initial=0.0)), noise_std)
    features = components / size
    causes = np.zeros((len(X), len(components)))
    descend_coordinates(
        causes,
        X @ features.T / size,
        features @ features.T,
        (noise_std / size) ** 2,
        tol,
        max_sweeps,
    )
    return causes


class LaplaceCauses(LatentDensity):
    """Causes of every row as `sklpf.training.EM` draws them, in the coordinates of `LinearPath`.

    The M-step follows the natural gradient of the likelihood (Lewicki & Sejnowski 2000): with
    causes drawn from their posterior, that by the components Cᵀ = Phi is Phiᵀ d log p / d Phi =
    E[sign(a) aᵀ] - I, integrated by parts, and Phi moves along Phi Phiᵀ times the gradient. It goes
    as far at any noise, where the M-step in closed form moves Phi by a share of it that is as small
    as the noise's variance.

    Parameters
    ----------
    X, noise_std, learns_noise
        As of `LatentDensity`.
    components : ndarray of shape (n_components, n_features)
    """

    def __init__(self, X, components, noise_std, learns_noise):
        super().__init__(X, noise_std, learns_noise)
        self._set(components)

    def _set(self, components):
        self.components = components
        self._posterior = GaussianPosterior(components, self.noise_std, WIDTH)
        self._center = self._posterior.center(self.X)

    def _density(self, rows):
        return pack_causes(self._posterior, self._center[rows], 0.0, is_laplace=True)

    def maximise(self, position: Array, rate: float) -> None:
        """Move the components along the natural gradient, and the noise to its M-step."""
        causes = self._center + position @ self._posterior.root
        self._learn_noise(self.X - causes @ self.components, rate)
        slope = causes.T @ np.sign(causes) / len(causes) - np.eye(len(self.components))
        # far from the optimum a slope may be large
        step = _STEP / max(1.0, float(np.linalg.norm(slope, 2)))
        self._set(self.components + rate * step * slope @ self.components)

    def loss(self, position: Array) -> float:
        """Return an estimate of -log p(x), nats a row: thermodynamic integration by the trapezoid
        rule.

        The mean of log f_1 - log f_0 at the base, where it is known in closed form, and at the
        draws.
        """
        n_components = len(self.components)
        spread = np.linalg.norm(self._posterior.root, axis=0)
        ratio = self._center / (np.sqrt(2) * spread)
        # E |a| at the base
        length = spread * np.sqrt(2 / np.pi) * np.exp(-(ratio**2)) + self._center * erf(ratio)
        at_base = np.sum((self._center**2 + spread**2) / (2 * WIDTH) - length, axis=1)
        at_target = self._in_parts(position, lambda values: values.gain)
        log_base = self._posterior.log_likelihood(self.X) + n_components * (
            0.5 * np.log(2 * np.pi * WIDTH) - np.log(2)
        )
        return -float(np.mean(log_base + 0.5 * (at_base + at_target)))

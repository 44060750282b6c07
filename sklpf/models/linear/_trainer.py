"""What trains the linear generative model: starting values, its causes in the E-step, and its
M-steps.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.utils.extmath import svd_flip

from sklpf._utils.numbers import Array
from sklpf.models.linear._path import WIDTH, GaussianPosterior, pack_causes
from sklpf.paths._base import values_at

_STEP = 0.5  # of the natural gradient
_SHARE = 0.95  # of the variance that the independent components keep beside more of them
# of coordinate descent
_SPARSE_TOL = 1e-10
_SPARSE_SWEEPS = 10_000


def gaussian_components(X: NDArray, n_components: int, noise_std: float) -> Array:
    """Return the components of greatest likelihood where causes are N(0, 1): probabilistic PCA with
    known noise.

    X is centred. Directions whose variance is below the noise's have none (Tipping & Bishop 1999,
    eq. 15).
    """
    _, values, right = _svd(X)
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
    _, values, right = _svd(X)
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
    left, values, right = np.linalg.svd(X, full_matrices=False)
    return left, values, svd_flip(None, right, u_based_decision=False)[1]


def _rotation(Z, rng):
    """Orthonormal rows that make the rows of white data independent; random ones where FastICA
    fails.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        found = (
            FastICA(whiten=False, random_state=rng).fit(Z).components_
            if len(Z) > 1
            else np.eye(Z.shape[1])
        )
    if np.all(np.isfinite(found)) and np.allclose(found @ found.T, np.eye(len(found)), atol=1e-6):
        return found
    return np.linalg.qr(rng.standard_normal((Z.shape[1], Z.shape[1])))[0]


def sparse_causes(X: NDArray, components: NDArray, noise_std: float) -> Array:
    """Return the causes of greatest posterior density of every row, (n, n_components), where their
    prior is Laplace.
    """
    # numbers of at most about 1, whatever the units
    size = max(float(np.abs(components).max(initial=0.0)), noise_std)
    alpha = (noise_std / size) ** 2 / X.shape[1]  # Lasso divides squares by the number of features
    causes = np.empty((len(X), len(components)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for t, x in enumerate(X):
            lasso = Lasso(alpha, fit_intercept=False, tol=_SPARSE_TOL, max_iter=_SPARSE_SWEEPS)
            causes[t] = lasso.fit(components.T / size, x / size).coef_
    return causes


class LaplaceCauses:
    """Causes of every row as `sklpf.training.EM` draws them, in the coordinates of `LinearPath`.

    The M-step follows the natural gradient of the likelihood (Lewicki & Sejnowski 2000): with
    causes drawn from their posterior, that by the components Cᵀ = Phi is Phiᵀ d log p / d Phi =
    E[sign(a) aᵀ] - I, integrated by parts, and Phi moves along Phi Phiᵀ times the gradient. It goes
    as far at any noise, where the M-step in closed form moves Phi by a share of it that is as small
    as the noise's variance.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Centred rows, repeated where there are several chains a row.
    components : ndarray of shape (n_components, n_features)
    noise_std : float
    """

    def __init__(self, X, components, noise_std):
        self.X = X
        self.noise_std = noise_std
        self._set(components)

    def _set(self, components):
        self.components = components
        self._posterior = GaussianPosterior(components, self.noise_std, WIDTH)
        self._center = self._posterior.center(self.X)
        self._density = pack_causes(self._posterior, self._center, 0.0, is_laplace=True)

    def _causes(self, position):
        return self._center + position @ self._posterior.root

    def log_density(self, position: Array) -> Array:
        """Return log p(x, a) of every chain up to a constant, shape (n,)."""
        values = values_at(self._density, position)
        return values.log_base + values.gain

    def grad(self, position: Array) -> Array:
        """Return its gradient, shape (n, n_components)."""
        values = values_at(self._density, position)
        return values.base_slope + values.gain_slope

    def maximise(self, position: Array, rate: float) -> None:
        """Move the components along the natural gradient."""
        causes = self._causes(position)
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
        at_target = values_at(self._density, position).gain
        log_base = self._posterior.log_likelihood(self.X) + n_components * (
            0.5 * np.log(2 * np.pi * WIDTH) - np.log(2)
        )
        return -float(np.mean(log_base + 0.5 * (at_base + at_target)))

"""What trains the bilinear generative model: starting values, its latent variables in the E-step,
and its M-steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sklpf._utils.numbers import Array
from sklpf.models.bilinear._path import pack_row
from sklpf.models.linear._model import independent_components
from sklpf.models.linear._path import WIDTH
from sklpf.paths._base import values_at

_STEP = 0.2  # of the natural gradients
_STYLE_SHARE = 0.3  # of it, for the style, whose draws can't follow
# of the content's variance that stays with one variable a component, where there are more of them
_SHARE = 0.95
_ROUNDING = 1e-13  # of a covariance
_MOST_ROWS = 1000  # whose loss is computed


class Parameters(NamedTuple):
    """What is learned: the transpose of Phi, Theta and Psi."""

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


class BilinearLatents:
    """Content and style of every row as `sklpf.training.EM` draws them, at the points of
    `BilinearPath`.

    M-steps follow natural gradients of the likelihood: each of the three matrices moves along M Mᵀ
    times its gradient, so that no units matter. Of Theta, integrated by parts, that is Theta
    (E[sign(c) cᵀ] - I).

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Centred rows, repeated where there are several chains a row.
    parameters : Parameters
    noise_std : float
    """

    def __init__(self, X, parameters, noise_std):
        self.X = X
        self.parameters = parameters
        self.noise_std = noise_std
        self._n_content = parameters.content_weights.shape[1]

    @property
    def bounds(self) -> Array:
        """Box of the points, shape (2, n_content + n_style): style is not negative."""
        low = np.r_[
            np.full(self._n_content, -np.inf), np.zeros(self.parameters.style_weights.shape[1])
        ]
        return np.stack([low, np.full(len(low), np.inf)])

    def start(self) -> Array:
        """Return points that explain the rows: d = 1, and c as if all else were linear."""
        components, theta, psi = self.parameters
        mixing = (theta * psi.sum(axis=1, keepdims=True)).T @ components
        ridge = mixing @ mixing.T + self.noise_std**2 / WIDTH * np.eye(self._n_content)
        content = self.X @ np.linalg.lstsq(ridge, mixing, rcond=None)[0].T
        return np.concatenate([content, np.ones((len(self.X), psi.shape[1]))], axis=1)

    def _parts(self, position):
        """Content and style as the components see them, and the slope of log p(x | a) by a."""
        components, theta, psi = self.parameters
        content = position[:, : self._n_content] @ theta.T
        style = position[:, self._n_content :] @ psi.T
        residual = (self.X - (content * style) @ components) / self.noise_std
        return content, style, residual

    def log_density(self, position: Array) -> Array:
        """Return log p(x, c, d) of every chain up to a constant, shape (n,)."""
        values = self._values(position)
        return values.log_base + values.gain

    def grad(self, position: Array) -> Array:
        """Return its gradient, shape (n, n_content + n_style)."""
        values = self._values(position)
        return values.base_slope + values.gain_slope

    def _values(self, position):
        return values_at(pack_row(self.X, self.parameters, self.noise_std, 0.0), position)

    def maximise(self, position: Array, rate: float) -> None:
        """Move all three matrices along their natural gradients."""
        content, style, residual = self._parts(position)
        components, theta, psi = self.parameters
        n = len(position)
        c = position[:, : self._n_content]
        d = position[:, self._n_content :]
        slope = residual @ components.T / self.noise_std
        a = content * style
        of_content = rate * _limited(np.sign(c).T @ c / n - np.eye(self._n_content))
        of_style = rate * _STYLE_SHARE * _limited(((slope * content) @ psi).T @ d / n)
        change = np.linalg.lstsq(a.T @ a, a.T @ residual, rcond=None)[0] * self.noise_std
        self.parameters = Parameters(
            components + rate * change, theta + theta @ of_content, psi + psi @ of_style
        )
        c -= np.linalg.solve(np.eye(self._n_content) + of_content, of_content @ c.T).T

    def loss(self, position: Array) -> float:
        """Return the mean of -log N(x; 0, 2 B(d) B(d)ᵀ + noise_std² I) at draws of d, of at most
        1000 rows, in nats.

        With x = B(d) c + noise that is the likelihood of a row with known style, were its content
        normal.
        """
        rows = np.linspace(0, len(position) - 1, min(_MOST_ROWS, len(position))).astype(int)
        components, theta, psi = self.parameters
        style = position[rows, self._n_content :] @ psi.T
        root = np.einsum("nk,kd,kc->ndc", style, components, theta, optimize=True)
        covariance = WIDTH * root @ root.transpose(0, 2, 1)
        noise = (
            self.noise_std**2
            + _ROUNDING * np.trace(covariance, axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
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
        climb = minimize(
            lambda z, latents=latents: _negative(latents, z[np.newaxis]),
            latents.start()[0],
            jac=True,
            method="L-BFGS-B",
            bounds=latents.bounds.T,
        )
        found.append(climb.x)
    return np.array(found)


def _negative(latents, position):
    return -latents.log_density(position)[0], -latents.grad(position)[0]


def _limited(slope):
    """A step along a slope, shorter where that is large."""
    return _STEP * slope / max(1.0, float(np.linalg.norm(slope, 2)))

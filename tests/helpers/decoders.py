"""Decoders in NumPy for tests: small networks, whose likelihood a grid gives, linear ones, and one
with two modes.
"""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from sklpf.interop import from_decoder


class Layers:
    """A network with tanh units, as `decoder` and `pullback`."""

    def __init__(self, sizes, scale, seed=0, n_points=641):
        rng = np.random.default_rng(seed)
        self.n_points = n_points  # of a grid's axis
        pairs = list(zip(sizes, sizes[1:]))
        self.weights = [rng.normal(0, scale / np.sqrt(a), (a, b)) for a, b in pairs]
        self.biases = [rng.normal(0, 0.3, b) for _, b in pairs]

    def _hidden(self, z):
        units = [z]
        for weights, bias in zip(self.weights[:-1], self.biases[:-1]):
            units.append(np.tanh(units[-1] @ weights + bias))
        return units

    def decoder(self, z):
        return self._hidden(z)[-1] @ self.weights[-1] + self.biases[-1]

    def pullback(self, z, g):
        units = self._hidden(z)
        g = g @ self.weights[-1].T
        for weights, unit in zip(self.weights[-2::-1], units[:0:-1]):
            g = (g * (1 - unit**2)) @ weights.T
        return g

    def model(self, **parameters):
        n_latents = len(self.weights[0])
        options = {"random_state": 0} | parameters
        return from_decoder(self.decoder, n_latents, pullback=self.pullback, **options)

    def log_likelihood(self, X, noise_std=None):
        """log p(x) of every row by a grid over one or two latent variables."""
        axis = np.linspace(-8, 8, self.n_points)
        d = len(self.weights[0])
        z = np.stack(np.meshgrid(*[axis] * d), axis=-1).reshape(-1, d)
        a = self.decoder(z)
        if noise_std is None:
            given = X @ a.T - np.logaddexp(0, a).sum(axis=1)
        else:
            squares = np.sum(X**2, axis=1)[:, np.newaxis] - 2 * X @ a.T + np.sum(a**2, axis=1)
            log_norm = X.shape[1] * np.log(noise_std * np.sqrt(2 * np.pi))
            given = -0.5 * squares / noise_std**2 - log_norm
        log_prior = -0.5 * np.sum(z**2, axis=1) - d / 2 * np.log(2 * np.pi)
        return logsumexp(given + log_prior, axis=1) + d * np.log(axis[1] - axis[0])


class Blocks:
    """Networks with two latent variables each, side by side, whose latent variables are rotated
    together: p(x) is a product of integrals over a plane.
    """

    def __init__(self, n_blocks, sizes, scale, seed=0, n_points=641):
        seeds = 100 * seed + np.arange(n_blocks)
        self.parts = [Layers([2, *sizes], scale, each, n_points) for each in seeds]
        self.n_latents = 2 * n_blocks
        matrix = np.random.default_rng(seed).normal(size=(self.n_latents, self.n_latents))
        self.rotation = np.linalg.qr(matrix)[0]

    def _split(self, array):
        return np.split(array, len(self.parts), axis=1)

    def decoder(self, z):
        pairs = zip(self.parts, self._split(z @ self.rotation))
        return np.hstack([part.decoder(own) for part, own in pairs])

    def pullback(self, z, g):
        groups = zip(self.parts, self._split(z @ self.rotation), self._split(g))
        return np.hstack([part.pullback(*own) for part, *own in groups]) @ self.rotation.T

    def model(self, **parameters):
        options = {"random_state": 0} | parameters
        return from_decoder(self.decoder, self.n_latents, pullback=self.pullback, **options)

    def log_likelihood(self, X, *noise_std):
        pairs = zip(self.parts, self._split(X))
        return sum(part.log_likelihood(own, *noise_std) for part, own in pairs)


class Bump:
    """A decoder of 18 fair coins, but for a row of ones that it has learned by heart, in a part of
    the latent plane as narrow as `width` around a place.
    """

    def __init__(self, place, width, height):
        self.place, self.width, self.height = np.array(place), width, height

    def decoder(self, z):
        squares = np.sum((z - self.place) ** 2, axis=1, keepdims=True)
        return np.repeat(self.height * np.exp(-0.5 * squares / self.width**2), 18, axis=1)

    def pullback(self, z, g):
        slope = np.sum(g * self.decoder(z), axis=1, keepdims=True)
        return -slope * (z - self.place) / self.width**2

    def model(self, **parameters):
        options = {"random_state": 0, "outputs": "logits"} | parameters
        return from_decoder(self.decoder, 2, pullback=self.pullback, **options)

    def log_likelihood(self):
        """log p of the row of ones, with and without the bump."""
        without = -18 * np.log(2)
        axis = np.linspace(-6, 6, 301) * self.width
        z = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2) + self.place
        gains = -18 * np.logaddexp(0, -self.decoder(z)[:, 0]) - without
        priors = np.exp(norm.logpdf(z).sum(axis=1)) * (axis[1] - axis[0]) ** 2
        return without + np.log1p(np.sum(np.expm1(gains) * priors)), without


class Linear:
    """x = Wᵀ z + bias + noise, whose density is normal."""

    def __init__(self, n_latents, n_features, noise_std, seed=0):
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=(n_latents, n_features))
        self.bias = rng.normal(size=n_features)
        self.noise_std = noise_std

    def decoder(self, z):
        return z @ self.weights + self.bias

    def pullback(self, z, g):
        return g @ self.weights.T

    def encoder(self, X):
        """The posterior's mean, and the log of the variances of each latent variable given the
        others.
        """
        precision = self.weights @ self.weights.T / self.noise_std**2 + np.eye(len(self.weights))
        mean = (X - self.bias) @ self.weights.T / self.noise_std**2 @ np.linalg.inv(precision)
        return mean, np.broadcast_to(-np.log(np.diag(precision)), mean.shape)

    def model(self, **parameters):
        options = {"likelihood": "gaussian", "noise_std": self.noise_std, "random_state": 0}
        options = options | parameters
        return from_decoder(self.decoder, len(self.weights), pullback=self.pullback, **options)

    def log_likelihood(self, X):
        n_features = len(self.bias)
        cov = self.weights.T @ self.weights + self.noise_std**2 * np.eye(n_features)
        return multivariate_normal(self.bias, cov).logpdf(X)


class Square:
    """x = z^2 w + noise, so that log p(z, x) has two modes; the encoder knows one of them."""

    weights = np.array([[1.0, -0.5, 2.0]])
    noise_std = 0.2

    def decoder(self, z):
        return z**2 @ self.weights

    def pullback(self, z, g):
        return 2 * z * (g @ self.weights.T)

    def encoder(self, X):
        length = np.sum(self.weights**2)
        square = np.maximum(X @ self.weights.T / length, 0.1)
        return np.sqrt(square), np.log(self.noise_std**2 / length / (4 * square))

    def model(self, **parameters):
        options = {"likelihood": "gaussian", "noise_std": self.noise_std, "random_state": 0}
        return from_decoder(self.decoder, 1, pullback=self.pullback, **options | parameters)

    def log_likelihood(self, X):
        z = np.linspace(-8, 8, 20_001)[:, np.newaxis]
        given = norm.logpdf(X[:, np.newaxis], self.decoder(z), self.noise_std).sum(axis=2)
        return logsumexp(given + norm.logpdf(z[:, 0]), axis=1) + np.log(z[1, 0] - z[0, 0])

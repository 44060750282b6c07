"""A decoder as paths call it: in chunks of one shape, with the density of rows and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf.models.decoder._likelihoods import Likelihood

_N_CHECKED = 5  # points at which a decoder is tried
_WIDTHS = 1e-3, 1e-5  # of differences that pullbacks are compared with: one of them must agree
_TOLERANCE = 1e-2  # relative; float32 is no better
_NOISE = 1e-5  # relative, of outputs that are computed twice
# of latent variables: outputs, and the function that takes a gradient by outputs back to latents
Forward = Callable[[NDArray], tuple[NDArray, Callable[[NDArray], NDArray]]]


class RowPoints(NamedTuple):
    """Latent variables at which the density of rows is wanted, a row for each point."""

    latents: NDArray[np.float64]  # (n, n_latents)
    X: NDArray[np.float64]  # (n, n_features)


class Network(NamedTuple):
    """A decoder, and the likelihood of rows given its outputs."""

    forward: Forward
    likelihood: Likelihood
    chunk_size: int

    def draw(self, latents: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Return a row drawn for each point of latent variables, shape (n, n_features)."""
        parts = [self._outputs(chunk)[0][:n] for chunk, n in self._chunks(latents)]
        return self.likelihood.draw(np.concatenate(parts), rng)

    def log_likelihood(self, points: RowPoints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log p(x | z) of points, (n,), in nats, and its gradient by z, (n, n_latents).

        Points go through the decoder in chunks of one shape, so that a point's numbers don't
        depend on how many there are.
        """
        values = np.empty(len(points.latents))
        slopes = np.empty(points.latents.shape)
        first = 0
        for chunk, n in self._chunks(points.latents):
            part = slice(first, first + n)
            outputs, pullback = self._outputs(chunk)
            log_densities, by_outputs = self.likelihood.log_density(points.X[part], outputs[:n])
            values[part] = log_densities
            slopes[part] = self._pulled_back(pullback, by_outputs, chunk)[:n]
            first += n
        return values, slopes

    def _chunks(self, latents):
        """Chunks of points, padded to one shape, and how many of a chunk's points are wanted."""
        for first in range(0, len(latents), self.chunk_size):
            part = latents[first : first + self.chunk_size]
            yield self._padded(part), len(part)

    def _padded(self, array):
        """The array with its first entry repeated up to the size of a chunk, always a copy."""
        n = min(len(array), self.chunk_size)
        padded = np.empty((self.chunk_size, array.shape[1]))
        padded[:n] = array
        padded[n:] = array[:1]
        return padded

    def _outputs(self, chunk):
        outputs, pullback = self.forward(chunk)
        outputs = _numbers("decoder", outputs)
        if outputs.ndim != 2 or len(outputs) != len(chunk):
            raise ValueError(
                f"decoder must give the shape ({len(chunk)}, n_features) for {len(chunk)} points,"
                f" got {outputs.shape}"
            )
        _check_finite("decoder", outputs, chunk)
        return outputs, pullback

    def _pulled_back(self, pullback, by_outputs, chunk):
        """The gradient by the latent variables of a chunk, given that by its first outputs."""
        gradient = _numbers("the decoder's gradient", pullback(self._padded(by_outputs)))
        if gradient.shape != chunk.shape:
            raise ValueError(
                f"the decoder's gradient must have the shape {chunk.shape} of the latent variables,"
                f" got {gradient.shape}"
            )
        _check_finite("the decoder's gradient", gradient, chunk)
        return gradient


def check_network(network: Network, n_latents: int) -> int:
    """Return how many features a decoder gives, or raise ValueError for what it can't be used
    for.
    """
    rng = np.random.default_rng(0)
    latents = rng.standard_normal((_N_CHECKED, n_latents))
    chunk = network._padded(latents)
    outputs, pullback = network._outputs(chunk)
    size = np.abs(outputs).max()
    if not np.allclose(outputs, network._outputs(chunk)[0], rtol=_NOISE, atol=_NOISE * size):
        raise ValueError(
            "decoder is random: it gave two outputs for the same latent variables; switch off"
            " dropout and noise"
        )

    by_outputs = network._padded(rng.standard_normal(outputs[:_N_CHECKED].shape))
    gradient = network._pulled_back(pullback, by_outputs, chunk)
    step = rng.choice([-1.0, 1.0], size=chunk.shape)
    slope = np.sum(gradient * step, axis=1)
    wrong = np.ones(len(chunk), dtype=bool)
    for width in _WIDTHS:
        ends = [network._outputs(chunk + sign * width * step)[0] for sign in (1, -1)]
        difference = np.sum(by_outputs * (ends[0] - ends[1]), axis=1) / (2 * width)
        allowed = _TOLERANCE * (np.linalg.norm(gradient * step, axis=1) + np.abs(difference))
        wrong &= np.abs(difference - slope) > allowed + _NOISE * size
    if wrong[:_N_CHECKED].all():  # one point may lie at a kink
        raise ValueError(
            "pullback disagrees with decoder: pullback(z, g) must return the gradient by z of"
            " sum(g * decoder(z))"
        )
    return outputs.shape[1]


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, got {values!r:.80}") from error


def _check_finite(name, values, latents):
    finite = np.isfinite(values)
    if not finite.all():
        bad = ~finite.all(axis=1)
        point = np.array2string(latents[bad][0], precision=4, threshold=8)
        raise ValueError(f"{name} is NaN or infinite at the latent variables {point}")

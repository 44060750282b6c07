"""A decoder as paths call it: in chunks of few shapes, with rows' densities and gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import expit

from sklpf._utils.numbers import LOG_TAU, Array, Integers
from sklpf._utils.validation import LARGEST
from sklpf.paths import values_of

# of a log probability, as in PyTorch's binary cross entropy: an output of 0 or 1 may be rounded
_LEAST = np.exp(-100.0)
_LEAST_VARIANCE = 1e-30  # p (1 - p) by which slopes are divided: single precision holds the rest
_N_CHECKED = 5  # points at which a decoder is tried
_WIDTHS = 1e-3, 1e-5  # of differences that pullbacks are compared with: one of them must agree
_NOISE = 1e-5  # relative, of outputs that are computed twice
# of latent variables: outputs, and the function that takes a gradient by outputs back to latents
Forward = Callable[[NDArray], tuple[NDArray, Callable[[NDArray], NDArray]]]


class Likelihood:
    """log p(x | output of the decoder), of any rows and any outputs."""

    def check_outputs(self, outputs: Array) -> None:
        """Raise ValueError if outputs of the decoder are none of this likelihood."""

    def check(self, X: Array) -> None:
        """Raise ValueError if rows are none of this likelihood."""

    def log_density(self, X: Array, outputs: Array) -> tuple[Array, Array]:
        """Return log p(x | output), (n,), in nats, and its gradient by the outputs,
        (n, n_features).
        """
        raise NotImplementedError

    def log_densities(self, X: Array, outputs: Array) -> Array:
        """Return log p(x | output) of every row for every output, (n_rows, n_outputs)."""
        raise NotImplementedError

    def draw(self, outputs: Array, rng: np.random.Generator) -> Array:
        """Return a row for each output."""
        raise NotImplementedError


class Bernoulli(Likelihood):
    """Independent binary features, the outputs are their logits."""

    def check(self, X):
        """Raise ValueError unless all features are 0 or 1."""
        if not np.all((X == 0) | (X == 1)):
            raise ValueError(
                'X must hold only 0 and 1 for likelihood="bernoulli": make it binary, by a'
                ' threshold or by drawing, or choose likelihood="gaussian"; a Bernoulli likelihood'
                " of grey values is no density"
            )

    def log_density(self, X, outputs):
        """Return the sum of x a - log(1 + exp a) over the features, and x - sigmoid(a)."""
        small = np.exp(-np.abs(outputs))
        log_norms = np.maximum(outputs, 0) + np.log1p(small)
        slopes = X - np.where(outputs >= 0, 1.0, small) / (1 + small)
        return np.sum(X * outputs - log_norms, axis=1), slopes

    def log_densities(self, X, outputs):
        """Return the sums over the features of every row and output."""
        log_norms = np.maximum(outputs, 0) + np.log1p(np.exp(-np.abs(outputs)))
        return X @ outputs.T - log_norms.sum(axis=1)

    def draw(self, outputs, rng):
        """Return binary rows."""
        return (rng.random(outputs.shape) < expit(outputs)).astype(np.float64)


class BernoulliProbabilities(Bernoulli):
    """Independent binary features, the outputs are the probabilities of 1."""

    def check_outputs(self, outputs):
        """Raise ValueError unless all are probabilities."""
        wrong = outputs[(outputs < 0) | (outputs > 1)]
        if len(wrong):
            raise ValueError(
                'decoder must give numbers in [0, 1] with outputs="probabilities", got'
                f' {wrong[0]:.4g}: choose outputs="logits"'
            )

    def log_density(self, X, outputs):
        """Return the sum of log p or log(1 - p) over the features, each at least -100, and
        (x - p) / (p (1 - p)).
        """
        probabilities = np.where(X == 1, outputs, 1 - outputs)
        variances = np.maximum(outputs * (1 - outputs), _LEAST_VARIANCE)
        log_densities = np.log(np.maximum(probabilities, _LEAST))
        return np.sum(log_densities, axis=1), (X - outputs) / variances

    def log_densities(self, X, outputs):
        """Return the sums over the features of every row and output."""
        log_on = np.log(np.maximum(outputs, _LEAST))
        log_off = np.log(np.maximum(1 - outputs, _LEAST))
        return X @ (log_on - log_off).T + log_off.sum(axis=1)

    def draw(self, outputs, rng):
        """Return binary rows."""
        return (rng.random(outputs.shape) < outputs).astype(np.float64)


class GaussianNoise(Likelihood):
    """Features with independent noise N(0, noise_std²) around the outputs."""

    def __init__(self, noise_std: float):
        self._noise_std = noise_std

    def log_density(self, X, outputs):
        """Return log N(x; output, noise_std² I), and its gradient by the output."""
        errors = (X - outputs) / self._noise_std
        log_norm = X.shape[1] * (np.log(self._noise_std) + 0.5 * LOG_TAU)
        return -0.5 * np.sum(errors**2, axis=1) - log_norm, errors / self._noise_std

    def log_densities(self, X, outputs):
        """Return log N(x; output, noise_std² I) of every row and output."""
        log_norm = X.shape[1] * (np.log(self._noise_std) + 0.5 * LOG_TAU)
        squares = cdist(X, outputs, "sqeuclidean")
        return -0.5 * squares / self._noise_std**2 - log_norm

    def draw(self, outputs, rng):
        """Return the outputs with noise."""
        return outputs + self._noise_std * rng.normal(size=outputs.shape)


class _WeightedSum(Likelihood):
    """The sum of x * output in the place of a log-likelihood: x is then the gradient by outputs."""

    def log_density(self, X, outputs):
        return np.sum(X * outputs, axis=1), X


class Network(NamedTuple):
    """A decoder, and the likelihood of rows given its outputs."""

    forward: Forward
    likelihood: Likelihood
    chunk_size: int

    def draw(self, latents: Array, rng: np.random.Generator) -> Array:
        """Return a row drawn for each point of latent variables, shape (n, n_features)."""
        return self.likelihood.draw(self.outputs(latents), rng)

    def outputs(self, latents: Array) -> Array:
        """Return what the decoder gives at points, shape (n, n_features)."""
        return np.concatenate([self._outputs(chunk)[0][:n] for chunk, n in self._chunks(latents)])

    @contextlib.contextmanager
    def unchanged(self, n_latents: int) -> Iterator[None]:
        """Raise ValueError at the end if the decoder gives other outputs than at the beginning."""
        latents = probes(n_latents)
        before = self._same_twice(latents)
        yield
        after = self._same_twice(latents)
        if not _agree(before, after):
            raise ValueError(
                "decoder has changed while it was used: for the same latent variables it gives"
                " other outputs than at the beginning; leave its weights alone until the end"
            )

    def _same_twice(self, latents):
        """The outputs at points, of a decoder that gives the same ones again."""
        outputs = self.outputs(latents)
        if not _agree(outputs, self.outputs(latents)):
            raise ValueError(
                "decoder is random: it gave two outputs for the same latent variables; switch off"
                " dropout and noise"
            )
        return outputs

    def log_densities(self, latents: Array, X: Array, rows: Integers) -> Array:
        """Return log p(x | z), (n,), in nats, of points z and of the row of X that belongs to each;
        points of one row are next to each other.
        """
        values = np.empty(len(latents))
        first = 0
        for chunk, n in self._chunks(latents):
            outputs = self._outputs(chunk)[0]
            own = rows[first : first + n]
            cuts = np.flatnonzero(np.diff(own)) + 1
            for begin, end in pairwise([0, *cuts.tolist(), n]):
                x = X[own[begin] : own[begin] + 1]
                found = self.likelihood.log_densities(x, outputs[begin:end])[0]
                values[first + begin : first + end] = found
            first += n
        return values

    def log_densities_of_all(self, latents: Array, X: Array) -> Array:
        """Return log p(x | z) of every row of X at every point, (n_rows, n), in nats."""
        parts = []
        for chunk, n in self._chunks(latents):
            parts.append(self.likelihood.log_densities(X, self._outputs(chunk)[0][:n]))
        return np.concatenate(parts, axis=1)

    def log_likelihood(self, latents: Array, X: Array) -> tuple[Array, Array]:
        """Return log p(x | z) of rows x at points z, (n,), in nats, and its gradient by z,
        (n, n_latents).

        Points go through the decoder in chunks of few shapes, so that a point's numbers hardly
        depend on how many there are, and a decoder is compiled a few times.
        """
        values = np.empty(len(latents))
        slopes = np.empty(latents.shape)
        first = 0
        for chunk, n in self._chunks(latents):
            part = slice(first, first + n)
            outputs, pullback = self._outputs(chunk)
            log_densities, by_outputs = self.likelihood.log_density(X[part], outputs[:n])
            values[part] = log_densities
            padded = _padded(by_outputs, len(chunk))
            slope = values_of("the decoder's gradient", pullback(padded))
            if slope.shape != chunk.shape:
                raise ValueError(
                    f"the decoder's gradient must have the shape {chunk.shape} of the latent"
                    f" variables, got {slope.shape}"
                )
            _check_finite("the decoder's gradient", slope, chunk)
            slopes[part] = slope[:n]
            first += n
        return values, slopes

    def _chunks(self, latents):
        """Chunks of points, the last one padded to a power of two, and how many of a chunk's points
        are wanted.
        """
        smallest = 16  # points
        for first in range(0, len(latents), self.chunk_size):
            part = latents[first : first + self.chunk_size]
            size = max(smallest, 1 << (len(part) - 1).bit_length())
            yield _padded(part, min(size, self.chunk_size)), len(part)

    def _outputs(self, chunk):
        outputs, pullback = self.forward(chunk.copy())
        outputs = values_of("decoder", outputs)
        if outputs.ndim != 2 or len(outputs) != len(chunk) or not outputs.size:
            raise ValueError(
                f"decoder must give the shape ({len(chunk)}, n_features) for {len(chunk)} points,"
                f" got {outputs.shape}"
            )
        _check_finite("decoder", outputs, chunk)
        self.likelihood.check_outputs(outputs)
        return outputs, pullback


def _padded(array: Array, n: int) -> Array:
    """The array with its first entry repeated up to n of them, always a copy."""
    padded = np.empty((n, array.shape[1]))
    padded[: len(array)] = array
    padded[len(array) :] = array[:1]
    return padded


def check_network(network: Network, n_latents: int) -> int:
    """Return how many features a decoder gives, or raise ValueError for what it can't be used
    for.
    """
    tolerance = 1e-2  # relative; float32 is no better
    latents = probes(n_latents)
    outputs = network._same_twice(latents)
    size = np.abs(outputs).max()
    if _is_half_precision(outputs):
        raise ValueError(
            "decoder gives outputs in half precision, as of bfloat16 or float16, whose rounding"
            " moves likelihoods: convert it by decoder.float(), and leave out autocast"
        )

    rng = np.random.default_rng(0)
    by_outputs = rng.standard_normal(outputs.shape)
    weighted = network._replace(likelihood=_WeightedSum())
    gradient = weighted.log_likelihood(latents, by_outputs)[1]
    step = rng.choice([-1.0, 1.0], size=latents.shape)
    slope = np.sum(gradient * step, axis=1)
    wrong = np.ones(len(latents), dtype=bool)
    for width in _WIDTHS:
        ends = [network.outputs(latents + sign * width * step) for sign in (1, -1)]
        difference = np.sum(by_outputs * (ends[0] - ends[1]), axis=1) / (2 * width)
        allowed = tolerance * (np.linalg.norm(gradient * step, axis=1) + np.abs(difference))
        wrong &= np.abs(difference - slope) > allowed + _NOISE * size
    if wrong.all():  # one point may lie at a kink
        raise ValueError(
            "the decoder's gradient disagrees with differences of its outputs: pullback(z, g) must"
            " return the gradient by z of sum(g * decoder(z)); without pullback no part of decoder"
            " may be rounded or detached"
        )
    return outputs.shape[1]


def _is_half_precision(outputs: Array) -> bool:
    """True if several different outputs all have no more significant bits than float16."""
    n_bits = 11  # significant ones of float16; bfloat16 has 8
    significands = np.unique(np.frexp(outputs)[0])
    scaled = np.ldexp(significands, n_bits)
    return len(significands) >= _N_CHECKED and bool(np.all(scaled == np.rint(scaled)))


def check_logits(network: Network, n_latents: int) -> None:
    """Raise ValueError if a decoder's outputs all lie in [0, 1], as probabilities do."""
    n_judged = 256  # draws from the prior, and as many wider ones
    widening = 3.0  # standard deviations of the latter
    draws = probes(n_latents, n_judged)
    # Few points first: they are enough for most decoders of logits.
    for latents in (draws[:_N_CHECKED], draws, widening * draws):
        for chunk, _ in network._chunks(latents):
            outputs = network._outputs(chunk)[0]
            if np.any((outputs < 0) | (outputs > 1)):
                return
    raise ValueError(
        "decoder gives outputs in [0, 1] alone, as of a last layer with a sigmoid: give logits, the"
        ' inputs of that layer, or outputs="probabilities"; if they are logits, outputs="logits"'
    )


def probes(n_latents: int, n: int = _N_CHECKED) -> Array:
    """Latent variables at which a decoder is tried, always the same."""
    return np.random.default_rng(0).standard_normal((n, n_latents))


def _agree(first, second):
    size = np.abs(first).max()
    return np.allclose(first, second, rtol=_NOISE, atol=_NOISE * size)


def _check_finite(name, values, latents):
    # Squares and products of what is larger overflow; a NaN is not smaller either.
    usable = np.abs(values) <= LARGEST
    if not usable.all():
        bad = ~usable.all(axis=1)
        point = np.array2string(latents[bad][0], precision=4, threshold=8)
        what = "beyond 1e100" if np.isfinite(values[bad][0]).all() else "NaN or infinite"
        raise ValueError(f"{name} is {what} at the latent variables {point}")

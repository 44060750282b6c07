"""Densities of a row given what a decoder makes of its latent variables."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import expit

from sklpf._utils.numbers import Array, check_scale

_LOG_TAU = np.log(2 * np.pi)


# of a log probability, as in PyTorch's binary cross entropy: an output of 0 or 1 may be rounded
_LEAST = np.exp(-100.0)
_LEAST_VARIANCE = 1e-30  # p (1 - p) by which slopes are divided: single precision holds the rest


class Likelihood(Protocol):
    """log p(x | output of the decoder)."""

    def check_outputs(self, outputs: Array) -> None:
        """Raise ValueError if outputs of the decoder are none of this likelihood."""

    def check(self, X: Array) -> None:
        """Raise ValueError if rows are none of this likelihood."""

    def log_density(self, X: Array, outputs: Array) -> tuple[Array, Array]:
        """Return log p(x | output), (n,), in nats, and its gradient by the outputs,
        (n, n_features).
        """

    def draw(self, outputs: Array, rng: np.random.Generator) -> Array:
        """Return a row for each output."""


class _Binary:
    """Independent binary features."""

    def check(self, X: Array) -> None:
        """Raise ValueError unless all features are 0 or 1."""
        if not np.all((X == 0) | (X == 1)):
            raise ValueError(
                'X must hold only 0 and 1 for likelihood="bernoulli": make it binary, by a'
                ' threshold or by drawing, or choose likelihood="gaussian"; a Bernoulli likelihood'
                " of grey values is no density"
            )


class Bernoulli(_Binary):
    """Independent binary features, the outputs are their logits."""

    def check_outputs(self, outputs):
        """Take any outputs."""

    def log_density(self, X, outputs):
        """Return the sum of x a - log(1 + exp a) over the features, and x - sigmoid(a)."""
        small = np.exp(-np.abs(outputs))
        log_norms = np.maximum(outputs, 0) + np.log1p(small)
        slopes = X - np.where(outputs >= 0, 1.0, small) / (1 + small)
        return np.sum(X * outputs - log_norms, axis=1), slopes

    def draw(self, outputs, rng):
        """Return binary rows."""
        return (rng.random(outputs.shape) < expit(outputs)).astype(np.float64)


class BernoulliProbabilities(_Binary):
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

    def draw(self, outputs, rng):
        """Return binary rows."""
        return (rng.random(outputs.shape) < outputs).astype(np.float64)


class GaussianNoise:
    """Features with independent noise N(0, noise_std²) around the outputs."""

    def __init__(self, noise_std: float):
        self._noise_std = noise_std

    def check_outputs(self, outputs):
        """Take any outputs."""

    def check(self, X: Array) -> None:
        """Take any rows."""

    def log_density(self, X, outputs):
        """Return log N(x; output, noise_std² I), and its gradient by the output."""
        errors = (X - outputs) / self._noise_std
        log_norm = X.shape[1] * (np.log(self._noise_std) + 0.5 * _LOG_TAU)
        return -0.5 * np.sum(errors**2, axis=1) - log_norm, errors / self._noise_std

    def draw(self, outputs, rng):
        """Return the outputs with noise."""
        return outputs + self._noise_std * rng.normal(size=outputs.shape)


def make_likelihood(kind: str, noise_std: Any, outputs: str | None) -> Likelihood:
    """Return the likelihood of a name."""
    if kind == "gaussian":
        return GaussianNoise(check_scale(noise_std, "noise_std"))
    return BernoulliProbabilities() if outputs == "probabilities" else Bernoulli()

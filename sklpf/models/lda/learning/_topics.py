"""The variational posterior of topics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

_SMALLEST_SCALE = 1e-6
# in units of the smallest component, to which a difference from it leaves enough digits
_LARGEST_PRIOR = 1e3


class Topics:
    """q(beta): topics that are Dirichlet(lambda_k) with lambda = base + scale * weights.

    Decaying lambda towards the prior only changes the first two, so an update costs what the words
    of its batch cost. The base is the prior, but where that would swallow the smallest of the
    components: then it comes from 0.

    Parameters
    ----------
    components : ndarray of shape (n_topics, n_features)
        lambda.
    prior : float
    """

    def __init__(self, components: NDArray, prior: float):
        self.prior = float(prior)
        self.scale = 1.0
        self.base = self.prior if prior <= _LARGEST_PRIOR * components.min() else 0.0
        self.weights = np.ascontiguousarray(
            (components - self.base).T.astype(components.dtype, copy=False)
        )
        self.totals = self.weights.sum(axis=0, dtype=np.float64)
        self._components: NDArray | None = None

    @property
    def sums(self) -> NDArray[np.float64]:
        """Sums of lambda over words, (n_topics,)."""
        return self.base * len(self.weights) + self.scale * self.totals

    @property
    def components(self) -> NDArray:
        """lambda, (n_topics, n_features), read-only; computed when asked for."""
        if self._components is None:
            components = self.weights.T.copy(order="C")
            components *= components.dtype.type(self.scale)
            components += components.dtype.type(self.base)
            components.flags.writeable = False
            self._components = components
        return self._components

    def exp_expected_log(self) -> NDArray:
        """exp(E log beta), (n_topics, n_features)."""
        from sklpf.models.lda.learning._word_kernels import expected_log

        return np.exp(expected_log(self.components.astype(np.float64))).astype(self.weights.dtype)

    def decay(self, rate: float) -> None:
        """lambda = (1 - rate) lambda + rate * prior."""
        self._components = None
        self.scale *= 1 - rate
        self.base += rate * (self.prior - self.base)
        if self.scale < _SMALLEST_SCALE:
            self.weights *= self.weights.dtype.type(self.scale)
            self.scale = 1.0
            self.totals = self.weights.sum(axis=0, dtype=np.float64)

    def bound(self) -> float:
        """E_q[log p(beta) - log q(beta)], in nats."""
        from sklpf.models.lda.learning._word_kernels import word_terms

        n_features, n_topics = self.weights.shape
        value = word_terms(
            self.prior, self.base, self.scale, self.weights, psi(self.sums)
        ) - np.sum(gammaln(self.sums))
        return float(
            value + n_topics * (gammaln(n_features * self.prior) - n_features * gammaln(self.prior))
        )

    def log_power_sums(self, powers: NDArray) -> NDArray[np.float64]:
        """log E_q[sum_v beta_kv^s] for every power s, (n_powers, n_topics)."""
        from sklpf.models.lda.learning._word_kernels import power_sums

        sums = np.array(
            [power_sums(self.base, self.scale, self.weights, power) for power in powers]
        )
        return np.log(sums) + gammaln(self.sums) - gammaln(self.sums + np.asarray(powers)[:, None])

"""The tempered path of a Bernoulli RBM from a mixture of independent units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf.models.rbm._path import RBMPath, RBMState, aligned


class RBMMixturePath(RBMPath):
    """Path from a mixture of K products of Bernoulli distributions to an RBM.

    With weights w_k, base logits a_k and log f_beta(v, h; a) as an `RBMPath` has it for one base

        f_beta(v, h) = sum_k w_k f_beta(v, h; a_k),

    so that f_0 is normalised and f_1 the RBM. A sweep draws h given v, then k given v, with
    probabilities proportional to w_k q_k(v)^(1 - beta), and then v given k and h; at beta = 0 all
    are drawn anew.

    Parameters
    ----------
    path : RBMPath
        Path to the same RBM; its base is the first part.
    means : ndarray of shape (K - 1, n_visible)
        Means of the other parts' units, inside (0, 1).
    weights : ndarray of shape (K,)
        Weights of the parts; their sum is 1.
    """

    _kernels = "sklpf.models.rbm._mixture_path_kernels"
    base_is_ours = False  # one second try is enough

    def __init__(self, path: RBMPath, means: NDArray, weights: NDArray):
        self.__dict__.update(path.__getstate__())
        self.ladder = path.ladder
        self.logits = np.vstack([path.base_logit, np.log(means) - np.log1p(-means)])
        self.log_weights = np.log(weights)

    def _pack(self):
        from sklpf.models.rbm._mixture_path_kernels import MixtureParameters

        log_norms = np.logaddexp(0, self.logits).sum(axis=1)
        more = self.logits[1:] - self.base_logit
        single = super()._pack()
        columns = [*self._linear_columns(), *more]
        biases = [self.intercept_hidden, [0.0, 0.0], log_norms[0] - log_norms[1:]]
        single = single._replace(
            by_visible=aligned(np.column_stack([self.components.T, *columns])),
            hidden_bias=aligned(np.concatenate(biases)),
        )
        log_weights = self.log_weights.copy()
        log_weights.setflags(write=False)
        return MixtureParameters(single, aligned(self.logits), log_weights)

    @property
    def _layouts(self):
        return self.packed.single

    def sample_base(self, n: int, stream: Stream) -> RBMState:
        """Return n exact draws from level 0: of visible units, and one sweep from there."""
        rng = stream.generator()
        parts = rng.choice(len(self.logits), size=n, p=np.exp(self.log_weights))
        v = rng.random((n, self.logits.shape[1])) < expit(self.logits[parts])
        return self._sweep(self.state_from_rows(v), np.zeros(n), stream)

    @property
    def _sum_of_terms(self) -> np.float64:
        return super()._sum_of_terms + 2 * np.abs(self.logits).sum(axis=1).max()

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log weights at `level` of one block of states of the smaller layer, the other
        and k summed out.
        """
        parts = []
        for logit, log_weight in zip(self.logits, self.log_weights):
            part = RBMPath(
                self.components,
                self.intercept_visible,
                self.intercept_hidden,
                expit(logit),
                self.ladder,
            )
            parts.append(log_weight + part.enumerate_block(block, level))
        return logsumexp(parts, axis=0)

"""What sklpf is measured against: a Gibbs sweep in NumPy, one with GEMM and fused sampling, and the
package rbms.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from sklpf._utils.random import FIRST, SECOND
from sklpf.kernels import exp32, njit, random_bits, uniform


def numpy_sweeps(path, v, betas, rng):
    """Sweeps of the chains v (n, M) in float64 NumPy, with betas (n_sweeps, n); returns v."""
    weights, by_hidden = path.components.T.copy(), path.components
    for beta in betas[:, :, np.newaxis]:
        h = rng.random((len(v), len(by_hidden))) < expit(
            beta * (v @ weights + path.intercept_hidden)
        )
        field = beta * (h.astype(float) @ by_hidden + path.intercept_visible)
        if np.any(beta != 1):
            field += (1 - beta) * path.logits[0]
        v = (rng.random(v.shape) < expit(field)).astype(float)
    return v


class GemmSweeps:
    """Sweeps in float32: matrix products by BLAS, then one compiled loop that adds biases, draws
    bits and samples.
    """

    def __init__(self, path, n_chains):
        self.by_visible = np.ascontiguousarray(path.components.T, dtype=np.float32)
        self.by_hidden = np.ascontiguousarray(path.components, dtype=np.float32)
        self.hidden_bias, self.visible_bias, self.base_logit = (
            array.astype(np.float32)
            for array in (path.intercept_hidden, path.intercept_visible, path.logits[0])
        )
        n_hidden, n_visible = path.components.shape
        self.hidden, self.visible = (
            np.empty((n_chains, n), np.float32) for n in (n_hidden, n_visible)
        )
        self.bits = np.empty(max(n_hidden, n_visible) + 4, np.uint32)

    def run(self, v, betas, key):
        """Return v (n, M) float32 after len(betas) sweeps; betas (n_sweeps, n)."""
        v = v.copy()
        for step, beta in enumerate(betas):
            np.matmul(v, self.by_visible, out=self.hidden)
            _sample(
                self.hidden,
                self.hidden_bias,
                self.hidden_bias,
                beta,
                False,
                key,
                step,
                FIRST,
                self.bits,
            )
            np.matmul(self.hidden, self.by_hidden, out=v)
            _sample(v, self.visible_bias, self.base_logit, beta, True, key, step, SECOND, self.bits)
        return v


@njit
def _sample(units, bias, offset, betas, with_offset, key, step, purpose, bits):
    """Replace the products in `units` by draws of 0 or 1 given them."""
    n_chains, n = units.shape
    one = np.float32(1.0)
    for c in range(n_chains):
        random_bits(bits, n, key[0], key[1], step, c, purpose)
        beta = np.float32(betas[c])
        shift = one - beta if with_offset else np.float32(0.0)
        for j in range(n):
            negative = -(beta * (units[c, j] + bias[j]) + shift * offset[j])
            units[c, j] = np.float32(uniform(bits[j]) * (one + exp32(negative)) < one)


def rbms_ais(path, same_base=False):
    """A function (n_chains, n_temperatures, seed) -> log Z by the AIS of rbms (torch, one thread,
    float32).

    rbms anneals from the model's own visible biases. `same_base` calls its building blocks on the
    base of `path` instead, which is what our estimators start from.
    """
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.partition_function.ais import (
        compute_partition_function_ais,
        interpolate_ebm,
        update_weights_ais,
    )

    torch.set_num_threads(1)
    weights, visible, hidden, base = (
        torch.tensor(array, dtype=torch.float32)
        for array in (
            path.components.T,
            path.intercept_visible,
            path.intercept_hidden,
            path.logits[0],
        )
    )
    rbm = BBRBM(weights, visible, hidden)
    reference = BBRBM(torch.zeros_like(weights), base, torch.zeros_like(hidden))

    def own(n_chains, n_temperatures, seed):
        torch.manual_seed(seed)
        return compute_partition_function_ais(n_chains, n_temperatures, rbm)

    def from_base(n_chains, n_temperatures, seed):
        torch.manual_seed(seed)
        chains, log_weights = reference.init_chains(n_chains), torch.zeros(n_chains)
        steps = interpolate_ebm(reference, rbm, torch.linspace(0, 1, n_temperatures))
        previous = next(steps)
        for current in steps:
            log_weights, chains = update_weights_ais(previous.clone(), current, chains, log_weights)
            previous = current
        return float(torch.logsumexp(log_weights, 0)) - np.log(n_chains) + reference.ref_log_z()

    return from_base if same_base else own

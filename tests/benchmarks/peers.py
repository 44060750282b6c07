"""What sklpf is measured against: Gibbs sweeps in NumPy, and the package rbms."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


class SimpleSweeps:
    """Sweeps at the target in ten lines: NumPy in float32, products by BLAS."""

    def __init__(self, path, n_chains):
        self.weights = np.ascontiguousarray(path.components.T, np.float32)
        self.visible_bias = path.intercept_visible.astype(np.float32)
        self.hidden_bias = path.intercept_hidden.astype(np.float32)
        self.rng = np.random.default_rng(0)
        self.v = self._draw(np.tile(path.logits[0].astype(np.float32), (n_chains, 1)))

    def _draw(self, inputs):
        on = self.rng.random(inputs.shape, dtype=np.float32) < expit(inputs)
        return on.astype(np.float32)

    def run(self, n):
        for _ in range(n):
            h = self._draw(self.v @ self.weights + self.hidden_bias)
            self.v = self._draw(h @ self.weights.T + self.visible_bias)

    def multiply(self, n):
        """The two products of each sweep, and nothing else."""
        hidden = np.ones((len(self.v), len(self.hidden_bias)), np.float32)
        visible = np.empty_like(self.v)
        for _ in range(n):
            np.matmul(self.v, self.weights, out=hidden)
            np.matmul(hidden, self.weights.T, out=visible)
            hidden.fill(1)


class TorchSweeps:
    """The same sweeps by rbms (torch, one thread, float32)."""

    def __init__(self, path, n_chains):
        import torch
        from rbms.bernoulli_bernoulli.classes import BBRBM

        torch.set_num_threads(1)
        weights, visible, hidden = (
            torch.tensor(array, dtype=torch.float32)
            for array in (path.components.T, path.intercept_visible, path.intercept_hidden)
        )
        self.rbm = BBRBM(weights, visible, hidden)
        on = torch.sigmoid(torch.tensor(path.logits[0], dtype=torch.float32))
        self.chains = {"visible": torch.bernoulli(on.repeat(n_chains, 1))}

    def run(self, n):
        for _ in range(n):
            self.rbm.sample_hiddens(self.chains)
            self.rbm.sample_visibles(self.chains)


def rbms_training(X, n_hidden, batch_size):
    """A function that makes a pass of persistent contrastive divergence over rows by rbms."""
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    rng = np.random.default_rng(0)
    weights = torch.tensor(rng.normal(0, 0.01, (X.shape[1], n_hidden)), dtype=torch.float32)
    rbm = BBRBM(weights, torch.zeros(X.shape[1]), torch.zeros(n_hidden))
    parameters = rbm.parameters()
    for each in parameters:
        each.grad = torch.zeros_like(each)
    optimiser = torch.optim.SGD(parameters, lr=1e-4, maximize=True)
    rows = torch.tensor(X)
    ones = torch.ones(batch_size)
    chains = [rbm.init_chains(batch_size)]

    def run():
        for first in range(0, len(rows), batch_size):
            batch = rows[first : first + batch_size], ones
            chains[0] = fit_batch_pcd(batch, chains[0], rbm, 1, 1.0)[0]
            optimiser.step()

    return run


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

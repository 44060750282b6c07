"""Does the gradient of tempered chains train RBMs better than that of persistent chains?

    SKLPF_DATA=FOLDER python tests/benchmarks/rbm_tempered_gradient.py [--seeds 2]

One NumPy program for both, 64 hidden units, batches of 10, rate 0.05, averages of the last 1000
updates. Tempered chains redraw their levels after every sweep, with r_k in proportion to exp(2
beta_k); the model's part of the gradient is their mean by q(target | x), and log Z_k follows
equation 24 of Carlson et al. (2016). Seconds are processor time. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from measure import row, table
from rbm_training import load
from scipy.special import expit, log_softmax, softmax

from sklpf import BernoulliRBM

N_HIDDEN, N_ROWS, RATE, N_CHAINS = 64, 10, 0.05, 50
SLOPE, GAIN, SHORTEST = 2.0, 0.2, 2.0
SECONDS = (1.0, 3.0, 10.0)
N_LEVELS = {"persistent": 1, "tempered": 10}


class ModelPhase:
    """Chains at one level or at several, and the weights by which they stand for the model."""

    def __init__(self, base, n_levels, rng):
        self.base = base
        self.betas = np.linspace(0, 1, n_levels) if n_levels > 1 else np.ones(1)
        self.log_prior = log_softmax(SLOPE * self.betas)
        self.curve = np.sum(np.logaddexp(0, base)) + N_HIDDEN * np.log(2) + np.zeros(n_levels)
        self.levels = np.full(N_CHAINS, n_levels - 1)
        self.v = (rng.random((N_CHAINS, len(base))) < expit(base)).astype(np.float32)
        self.rng = rng

    def move(self, weights, visible, hidden):
        """A sweep of every chain at its level, and new levels; returns the weights (n,)."""
        beta = self.betas[self.levels, np.newaxis].astype(np.float32)
        on = expit(beta * (self.v @ weights.T + hidden))
        h = (self.rng.random(on.shape, dtype=np.float32) < on).astype(np.float32)
        on = expit((1 - beta) * self.base + beta * (h @ weights + visible))
        self.v = (self.rng.random(on.shape, dtype=np.float32) < on).astype(np.float32)
        if len(self.betas) == 1:
            return np.full(N_CHAINS, 1 / N_CHAINS)
        field = self.v @ weights.T + hidden
        log_f = np.logaddexp(0, self.betas[:, np.newaxis] * field[:, np.newaxis]).sum(axis=2)
        log_f += np.outer(self.v @ self.base, 1 - self.betas)
        log_f += np.outer(self.v @ visible, self.betas)
        shares = softmax(log_f + self.log_prior - self.curve, axis=1)
        above = self.rng.random((N_CHAINS, 1)) > shares.cumsum(axis=1)
        self.levels = np.minimum(above.sum(axis=1), len(self.betas) - 1)
        log_shares = np.log(shares.mean(axis=0) + 1e-300) - self.log_prior
        self.curve += GAIN * np.clip(log_shares - log_shares[0], -5, 5)
        return shares[:, -1] / max(shares[:, -1].sum(), 1e-12)


def snapshots(X, n_levels, seed):
    """Averaged weights and the number of updates after each of SECONDS."""
    rng = np.random.default_rng(seed)
    n, d = X.shape
    means = (X.sum(axis=0) + 1) / (n + 2)
    base = np.log(means / (1 - means)).astype(np.float32)
    weights = (0.01 * rng.standard_normal((N_HIDDEN, d))).astype(np.float32)
    parameters = [weights, base.copy(), np.zeros(N_HIDDEN, np.float32)]
    average = [np.zeros_like(part) for part in parameters]
    chains = ModelPhase(base, n_levels, rng)
    n_updates = 0
    began = time.process_time()
    found = []
    while len(found) < len(SECONDS):
        x = X[rng.integers(n, size=N_ROWS)]
        shares = chains.move(*parameters).astype(np.float32)[:, np.newaxis]
        weights, _, hidden = parameters
        of_rows = expit(x @ weights.T + hidden)
        of_model = shares * expit(chains.v @ weights.T + hidden)
        parameters[0] = weights + RATE * (of_rows.T @ x / N_ROWS - of_model.T @ chains.v)
        parameters[1] = parameters[1] + RATE * (x.mean(axis=0) - (shares * chains.v).sum(axis=0))
        parameters[2] = hidden + RATE * (of_rows.mean(axis=0) - of_model.sum(axis=0))
        n_updates += 1
        step = max(1e-3, SHORTEST / (n_updates + SHORTEST))
        average = [old + step * (new - old) for old, new in zip(average, parameters)]
        if time.process_time() - began > SECONDS[len(found)]:
            found.append((average, n_updates))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    table("data", "chains", "seed", "seconds", "updates", "training rows", "test rows", "log Z")
    warnings.simplefilter("ignore")
    for name in ("digits", "dna", "mushrooms"):
        rows = load(name)
        if rows is None:
            continue
        for seed in range(arguments.seeds):
            for chains, n_levels in N_LEVELS.items():
                found = snapshots(rows[0], n_levels, seed)
                for seconds, (average, n_updates) in zip(SECONDS, found):
                    weights, visible, hidden = (part.astype(float) for part in average)
                    rbm = BernoulliRBM.from_parameters(weights, visible, hidden, random_state=seed)
                    test = rbm.score_interval(rows[1])
                    training = rbm.score_samples(rows[0]).mean()
                    scores = f"{training:.2f}", f"{test.mean:.2f}"
                    trusted = "trusted" if test.converged else "not trusted"
                    row(name, chains, seed, seconds, n_updates, *scores, trusted)


if __name__ == "__main__":
    main()

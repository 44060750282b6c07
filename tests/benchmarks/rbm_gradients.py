"""What centred gradients and tempered negative chains would bring to the training of an RBM, at
equal passes and time.

usage: python tests/benchmarks/rbm_gradients.py [--seeds 4] [--passes 40] [DATA ...]

Prototypes beside the training kernel, whose parts they call: the library has neither, since neither
wins.
"""

import argparse
import time

import numpy as np
from numba import njit
from rbm_training import load, quiet_score
from sklearn.utils import check_random_state

from sklpf import BernoulliRBM
from sklpf.kernels import OPTIONS, draw_units, random_bits, uniform
from sklpf.models.rbm import _learning_kernels as kernels
from sklpf.models.rbm._learning import Trainer, _lists

_SWAP = np.int64(7)  # draws of swaps, in a place of the random stream that training leaves alone


@njit(**OPTIONS)
def train_centred(
    by_visible,
    by_hidden,
    h,
    visible,
    hidden,
    indptr,
    indices,
    values,
    updates,
    average_v,
    average_h,
    key0,
    key1,
    step,
    mean_v,
    mean_h,
):
    """As the library's `train`, with the centred gradient of Melchior, Fischer & Wiskott (2016).

    Offsets are the means of the data, mean_v (M,), and a running mean of the hidden probabilities,
    mean_h (J,).
    """
    edges = updates.edges
    n_visible, n_hidden, n_chains = by_visible.shape[0] - 1, by_hidden.shape[0] - 1, h.shape[0]
    rows = kernels._empty_lists(hidden.shape[0], n_visible + 1)
    chains = kernels._empty_lists(n_chains, kernels._BLOCK + 1)
    units = kernels._empty_lists(n_visible + 1, hidden.shape[0])
    totals = np.empty(n_visible + 1, np.float32)
    along_h, along_v = np.empty(hidden.shape[0]), np.empty(hidden.shape[0])
    step_v, step_h, both = np.empty(n_visible), np.empty(n_hidden), np.empty(n_hidden)
    for t in range(edges.shape[0] - 1):
        n = edges[t + 1] - edges[t]
        keys = key0, key1, step + t
        for r in range(n):
            kernels._list_row(indptr, indices, values, edges[t] + r, n_visible, rows, r)
        kernels._negative_phase(by_hidden, h, visible, np.zeros(1, np.int64), keys, chains, rows, n)
        kernels._hidden_phase(by_visible, h, hidden[: n + n_chains], keys, rows, n)
        for j in range(n_hidden):
            mean = 0.0
            for r in range(n):
                mean += hidden[r, j]
            mean_h[j] += 0.01 * (mean / n - mean_h[j])

        # (h - mean_h) takes the place of h, so that the sums over v need a correction by mean_v
        # alone.
        both[:] = 0.0
        step_v[:] = 0.0
        step_h[:] = 0.0
        for r in range(n + n_chains):
            rate = updates.rates[t, 0] if r < n else -updates.rates[t, 1]
            along_h[r] = 0.0
            for j in range(n_hidden):
                hidden[r, j] -= mean_h[j]
                both[j] += rate * hidden[r, j]
                along_h[r] += hidden[r, j] * mean_h[j]
            along_v[r] = 0.0
            for i in range(n_visible):
                along_v[r] -= mean_v[i] * mean_v[i]
                step_v[i] += rate * along_h[r] * mean_v[i]
            for p in range(rows.counts[r] - 1):
                along_v[r] += rows.values[r, p] * mean_v[rows.indices[r, p]]
                step_v[rows.indices[r, p]] -= rate * along_h[r] * rows.values[r, p]
            for j in range(n_hidden):
                step_h[j] -= rate * along_v[r] * hidden[r, j]
        kernels._list_by_unit(rows, n, n + n_chains, updates.rates[t], units, totals)
        bias = by_hidden[n_hidden]
        for i in range(n_visible):
            bias[i] += totals[i] + step_v[i]
        kernels._add_rows(by_visible, hidden, units, n_hidden, kernels._SHORT_TILE)
        for i in range(n_visible):
            for j in range(n_hidden):
                by_visible[i, j] -= np.float32(mean_v[i] * both[j])
        for j in range(n_hidden):
            by_visible[n_visible, j] += step_h[j]
        kernels._transpose(by_visible, n_visible, n_hidden, by_hidden)
        if updates.shares[t] > 0:
            kernels._move_average(average_v, updates.shares[t], by_visible)
            kernels._move_average(average_h[n_hidden:], updates.shares[t], by_hidden[n_hidden:])


@njit(**OPTIONS)
def train_tempered(
    by_visible,
    by_hidden,
    h,
    visible,
    hidden,
    indptr,
    indices,
    values,
    updates,
    average_v,
    average_h,
    key0,
    key1,
    step,
    base,
    betas,
):
    """As the library's `train`, with chains at several inverse temperatures that swap (Desjardins
    et al. 2010).

    h (n_levels * n_ladders, J) holds the ladders level by level, the last level at beta = 1, whose
    chains alone stand for the model. base (M,) are the log odds of the data's means, to which beta
    = 0 belongs.
    """
    edges = updates.edges
    n_visible, n_hidden, n_chains = by_visible.shape[0] - 1, by_hidden.shape[0] - 1, h.shape[0]
    n_levels = betas.shape[0]
    n_ladders = n_chains // n_levels
    rows = kernels._empty_lists(hidden.shape[0], n_visible + 1)
    listed = kernels._empty_lists(n_chains, n_visible + 1)
    hot = kernels._empty_lists(n_chains, n_hidden + 1)
    units = kernels._empty_lists(n_visible + 1, hidden.shape[0])
    totals = np.empty(n_visible + 1, np.float32)
    bits, drawn = np.empty(max(n_visible, n_hidden) + 4, np.uint32), np.empty(n_visible, np.uint8)
    energy = np.empty(n_chains)
    fields = np.zeros((n_chains, by_visible.shape[1]), np.float32)
    for t in range(edges.shape[0] - 1):
        n = edges[t + 1] - edges[t]
        for r in range(n):
            kernels._list_row(indptr, indices, values, edges[t] + r, n_visible, rows, r)

        # Every chain makes a Gibbs sweep at its inverse temperature.
        visible[:] = 0.0
        for c in range(n_chains):
            hot.counts[c] = kernels._list_on(h[c], np.int64(0), hot.indices[c])
        kernels._add_rows(visible, by_hidden, hot, n_visible, kernels._BLOCK_TILE)
        for c in range(n_chains):
            beta = np.float32(betas[c // n_ladders])
            for i in range(n_visible):
                field = visible[c, i] + by_hidden[n_hidden, i]
                visible[c, i] = beta * field + (np.float32(1.0) - beta) * base[i]
            random_bits(bits, n_visible, key0, key1, step + t, c, kernels._VISIBLE)
            draw_units(visible[c], np.zeros(1, np.int64), bits, n_visible, drawn)
            count = kernels._list_on(drawn, np.int64(0), listed.indices[c])
            listed.indices[c, count], listed.counts[c] = n_visible, count + 1
        fields[:] = 0.0
        kernels._add_rows(fields, by_visible, listed, n_hidden, kernels._LONG_TILE)
        for c in range(n_chains):
            beta = np.float32(betas[c // n_ladders])
            random_bits(bits, n_hidden, key0, key1, step + t, c, kernels._HIDDEN)
            energy[c] = 0.0
            for p in range(listed.counts[c] - 1):
                i = listed.indices[c, p]
                energy[c] += by_hidden[n_hidden, i] - base[i]
            for j in range(n_hidden):
                probability = 1.0 / (1.0 + np.exp(-beta * fields[c, j]))
                h[c, j] = np.uint8(uniform(bits[j]) < probability)
                energy[c] += h[c, j] * fields[c, j]

        # The chains at beta = 1 go into the gradient.
        first = n_chains - n_ladders
        for r in range(n_ladders):
            rows.counts[n + r] = listed.counts[first + r]
            for p in range(listed.counts[first + r]):
                rows.indices[n + r, p] = listed.indices[first + r, p]
                rows.values[n + r, p] = 1.0
        both = hidden[: n + n_ladders]
        both[:] = 0.0
        kernels._add_rows(both, by_visible, rows, n_hidden, kernels._LONG_TILE)
        for r in range(n + n_ladders):
            kernels._to_probability(both[r], n_hidden)

        # Neighbouring levels swap their hidden units, even and odd pairs in turn.
        random_bits(bits, 4, key0, key1, step + t, 0, _SWAP)
        for level in range((step + t) % 2, n_levels - 1, 2):
            for ladder in range(n_ladders):
                a, b = level * n_ladders + ladder, (level + 1) * n_ladders + ladder
                random_bits(bits, 4, key0, key1, step + t, a, _SWAP)
                if np.log(uniform(bits[0]) + 1e-9) < (betas[level + 1] - betas[level]) * (
                    energy[a] - energy[b]
                ):
                    for j in range(n_hidden):
                        h[a, j], h[b, j] = h[b, j], h[a, j]

        kernels._list_by_unit(rows, n, n + n_ladders, updates.rates[t], units, totals)
        bias = by_hidden[n_hidden]
        for i in range(n_visible):
            bias[i] += totals[i]
        kernels._add_rows(by_visible, hidden, units, n_hidden, kernels._SHORT_TILE)
        kernels._transpose(by_visible, n_visible, n_hidden, by_hidden)
        if updates.shares[t] > 0:
            kernels._move_average(average_v, updates.shares[t], by_visible)
            kernels._move_average(average_h[n_hidden:], updates.shares[t], by_hidden[n_hidden:])


class Centred(Trainer):
    """A trainer by the centred gradient."""

    def __init__(self, model, X, batch_size, rng):
        super().__init__(model, X, batch_size, rng)
        self.mean_v = model.visible_mean_.copy()
        self.mean_h = np.full(len(model.intercept_hidden_), 0.5)

    def run(self):
        self.lists = self.lists or _lists(self.X)
        updates = self._updates(len(self.X))
        train_centred(
            *self.weights,
            self.h,
            *self.scratch,
            *self.lists,
            updates,
            *self.averaged,
            *self.key,
            self.step,
            self.mean_v,
            self.mean_h,
        )
        self.step += len(updates.rates)


class Tempered(Trainer):
    """A trainer whose chains at beta = 1 swap with hotter ones."""

    n_levels = 5

    def __init__(self, model, X, batch_size, rng):
        super().__init__(model, X, batch_size, rng)
        self.n_ladders = len(self.h) // self.n_levels
        self.h = self.h[: self.n_ladders * self.n_levels]
        self.base = np.log(model.visible_mean_ / (1 - model.visible_mean_)).astype(np.float32)
        self.betas = np.linspace(0, 1, self.n_levels + 1)[1:]

    def run(self):
        self.lists = self.lists or _lists(self.X)
        updates = self._updates(len(self.X))
        updates.rates[:, 1] *= len(self.h) / self.n_ladders
        train_tempered(
            *self.weights,
            self.h,
            *self.scratch,
            *self.lists,
            updates,
            *self.averaged,
            *self.key,
            self.step,
            self.base,
            self.betas,
        )
        self.step += len(updates.rates)


TRAINERS = {"as it is": Trainer, "centred": Centred, "tempered": Tempered}


def fitted(trainer_class, X, n_passes, seed, **options):
    """A model that a trainer has trained for some passes, and the processor time of these."""
    rng = check_random_state(seed)
    model = BernoulliRBM(n_iter=n_passes, random_state=seed, **options)
    model._begin(X, rng)
    trainer = trainer_class(model, X, model.batch_size, rng)
    began = time.process_time()
    for _ in range(n_passes):
        trainer.run()
    seconds = time.process_time() - began
    trainer.store(model)
    model.n_features_in_ = X.shape[1]
    return model, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=["digits", "dna", "mushrooms", "nltcs"])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--units", type=int, nargs="*", default=[16, 64])
    arguments = parser.parse_args()
    options = {"learning_rate": 0.05, "batch_size": 20, "n_chains": 50, "average": True}
    print(f"{options}, seeds 0 to {arguments.seeds - 1}")
    print(
        "| data | units | gradient | passes | seconds | test log-likelihood, mean | standard"
        " deviation |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in arguments.data:
        X, X_test = load(name)
        for n in arguments.units:
            for label, trainer in TRAINERS.items():
                fitted(trainer, X, 1, 0, n_components=n, **options)  # compiles
                measure(name, X, X_test, n, label, arguments.passes, arguments.seeds, options)
            # as long as the dearest of them takes
            _, plain = fitted(Trainer, X, 5, 0, n_components=n, **options)
            _, tempered = fitted(Tempered, X, 5, 0, n_components=n, **options)
            n_passes = round(arguments.passes * tempered / plain)
            measure(name, X, X_test, n, "as it is", n_passes, arguments.seeds, options)


def measure(name, X, X_test, n, label, n_passes, n_seeds, options):
    """Fit with each seed, and print a line of the table."""
    fits = [
        fitted(TRAINERS[label], X, n_passes, seed, n_components=n, **options)
        for seed in range(n_seeds)
    ]
    scores = [quiet_score(model, X_test) for model, _ in fits]
    seconds = np.mean([each for _, each in fits])
    cells = (
        name,
        n,
        label,
        n_passes,
        f"{seconds:.2f}",
        f"{np.nanmean(scores):.2f}",
        f"{np.nanstd(scores, ddof=1):.3f}",
    )
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()

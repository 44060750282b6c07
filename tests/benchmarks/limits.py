"""What limits a Gibbs sweep: the rates of its parts, and how far the sweep is from their sum."""

from __future__ import annotations

from functools import partial

import numpy as np
from measure import KEY, N_CHAINS, REGIMES, equilibrated, interleave, large, row, sweeps, table

from sklpf._utils.random import Stream
from sklpf.kernels import add_rows, draw_units, list_differences, njit, random_bits

_ROW_RATE = "adding weight rows from the whole matrix, GB/s"


@njit
def _random(n_repeats, n_chains, n, bits):
    for r in range(n_repeats):
        for c in range(n_chains):
            random_bits(bits, n, 1, 2, r, c, 1)


@njit
def _draw(n_repeats, field, offset, betas, bits, drawn):
    inputs = np.empty(drawn.shape[0], np.float32)
    no_groups = np.zeros(1, np.int64)
    for _ in range(n_repeats):
        for c in range(field.shape[0]):
            beta = np.float32(betas[c])
            for j in range(drawn.shape[0]):
                inputs[j] = beta * field[c, j] + (np.float32(1.0) - beta) * offset[j]
            draw_units(inputs, no_groups, bits, drawn.shape[0], drawn)


@njit
def _list(n_repeats, before, after, indices):
    """List the units that differ, chain by chain: what follows each draw."""
    total = 0
    for _ in range(n_repeats):
        for c in range(before.shape[0]):
            total += list_differences(after[c], before[c], before.shape[1], indices)
            for j in range(before.shape[1]):
                total += np.int64(after[c, j])
    return total


@njit
def _add(n_repeats, accumulators, rows, indices, signs, counts):
    for _ in range(n_repeats):
        add_rows(accumulators, rows, indices, signs, counts)


def limits():
    name, path = large()
    print(f"\n## What limits a sweep ({name}, one thread)")
    rates, costs = (
        _rates(path),
        _costs(path),
    )  # calls with their work: floating-point operations or bytes; units
    times = interleave({what: call for what, (call, _) in (rates | costs).items()}, 41)
    per_second = {what: work / np.median(times[what]) / 1e9 for what, (_, work) in rates.items()}
    per_unit = {what: np.median(times[what]) / work * 1e9 for what, (_, work) in costs.items()}
    table("limit", "measured")
    for what, value in per_second.items():
        row(what, f"{value:.0f}")
    for what, value in per_unit.items():
        row(what, f"{value:.3f}")
    _explain(path, sum(per_unit.values()), per_second[_ROW_RATE])


def _rates(path):
    """Matrix products, and sums of 200 random weight rows for every chain."""
    rows, rng, n_added = path.packed.by_visible, np.random.default_rng(0), 200
    square, product = np.ones((1000, 1000), np.float32), np.empty((1000, 1000), np.float32)
    v, weights = (
        np.ones((N_CHAINS, len(rows)), np.float32),
        np.ones((len(rows), len(path.components)), np.float32),
    )
    hidden = np.empty((N_CHAINS, len(path.components)), np.float32)
    signs, counts = np.ones((N_CHAINS, n_added), np.float32), np.full(N_CHAINS, n_added)
    sums = np.zeros((N_CHAINS, rows.shape[1]), np.float32)
    any_rows = np.stack(
        [np.sort(rng.choice(len(rows), n_added, replace=False)) for _ in range(N_CHAINS)]
    )
    n_bytes = 4 * N_CHAINS * n_added * rows.shape[1]

    def add(indices):
        return partial(_add, 5, sums, rows, indices.astype(np.int32), signs, counts), 5 * n_bytes

    return {
        "sgemm 1000 x 1000 x 1000, GFLOP/s": (partial(np.matmul, square, square, out=product), 2e9),
        "sgemm 100 x 784 x 500, GFLOP/s": (
            partial(np.matmul, v, weights, out=hidden),
            2 * N_CHAINS * weights.size,
        ),
        _ROW_RATE: add(any_rows),
        "adding weight rows, 8 of them that stay in L1, GB/s": add(any_rows % 8),
    }


def _costs(path):
    """What happens to every unit: a random number, its draw, and the comparison with what
    it was.
    """
    betas = np.linspace(0, 1, N_CHAINS)
    before = equilibrated(path, betas)
    after = sweeps(path, before, betas[np.newaxis], Stream(KEY, 0, 301))
    offset, n = path.packed.logits[0], len(path.logits[0])
    bits, drawn, indices = np.empty(n + 4, np.uint32), np.empty(n, np.uint8), np.empty(n, np.int32)
    units = 20 * N_CHAINS * n
    return {
        "random number, ns": (partial(_random, 20, N_CHAINS, n, bits), units),
        "sampling of a unit, ns": (
            partial(_draw, 20, before.visible_field, offset, betas, bits, drawn),
            units,
        ),
        "comparing and listing of a unit, ns": (
            partial(_list, 20, before.v, after.v, indices),
            units,
        ),
    }


def _explain(path, per_unit, rate):
    """Compare the time of a sweep with the sum of its parts at the measured rates."""
    w = path.packed
    units = N_CHAINS * (len(path.logits[0]) + len(path.components))
    table(
        "chains",
        "hidden units flipped, rows added",
        "visible units flipped, rows added",
        "units, ms",
        "rows, ms",
        "sum, ms",
        "sweep, ms",
        "sweep / sum",
    )
    for regime, betas in REGIMES.items():
        state, n_sweeps = equilibrated(path, betas), 20
        call = partial(sweeps, path, state, np.tile(betas, (n_sweeps, 1)), Stream(KEY, 0, 1000))
        times = interleave({"sweep": call}, 41)
        counted, now = [], state
        for step in range(n_sweeps):
            new = sweeps(path, now, betas[np.newaxis], Stream(KEY, 0, 1000 + step))
            counted.append([*_rows_added(now.h, new.h), *_rows_added(now.v, new.v)])
            now = new
        h_flips, h_rows, v_flips, v_rows = np.mean(counted, axis=0)
        rows_ms = (
            4
            * N_CHAINS
            * (h_rows * w.by_hidden.shape[1] + v_rows * w.by_visible.shape[1])
            / rate
            / 1e6
        )
        units_ms, sweep_ms = units * per_unit / 1e6, np.median(times["sweep"]) / n_sweeps * 1e3
        row(
            regime,
            f"{h_flips:.0f}, {h_rows:.0f}",
            f"{v_flips:.0f}, {v_rows:.0f}",
            f"{units_ms:.3f}",
            f"{rows_ms:.3f}",
            f"{units_ms + rows_ms:.3f}",
            f"{sweep_ms:.3f}",
            f"{sweep_ms / (units_ms + rows_ms):.2f}",
        )


def _rows_added(old, new):
    """Mean flips of a chain, and mean rows that it adds: the flipped units or the active ones."""
    flips, active = (old != new).sum(axis=1), new.sum(axis=1, dtype=int)
    return flips.mean(), np.minimum(flips, active).mean()

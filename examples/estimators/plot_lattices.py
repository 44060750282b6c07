"""
How far can log Z of a lattice be trusted?
==========================================

The model is the Ising model: spins on a square lattice, closed to a torus, with
a coupling K between neighbours. Without a field its log Z is known in closed
form (Kaufman 1949), also at the critical coupling, where Gibbs sweeps are
slowest and clusters of spins have every size. `BoltzmannMachine` holds the same
model as units of 0 and 1, and estimates log Z by parallel tempering.
"""

# %%
# The exact log Z
# ---------------

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

from sklpf import BoltzmannMachine

SIZE = 10
CRITICAL = np.log(1 + np.sqrt(2)) / 2


def lattice(n):
    """Neighbours on an n x n torus, 1 where two sites are neighbours."""
    sites = np.arange(n * n).reshape(n, n)
    pairs = np.zeros((n * n, n * n))
    for axis in (0, 1):
        neighbours = np.roll(sites, -1, axis=axis)
        np.add.at(pairs, (sites.ravel(), neighbours.ravel()), 1.0)
    return pairs + pairs.T


def kaufman(n, coupling):
    """log Z of the n x n torus."""
    angles = np.pi * np.arange(2 * n) / n
    cosh = np.cosh(2 * coupling) ** 2 / np.sinh(2 * coupling) - np.cos(angles)
    gamma = np.arccosh(np.maximum(cosh, 1))
    gamma[0] = 2 * coupling + np.log(np.tanh(coupling))
    logs, signs = [], []
    for half in (gamma[1::2], gamma[::2]):
        size = n * np.abs(half)
        logs += [np.logaddexp(size / 2, -size / 2).sum()]
        with np.errstate(divide="ignore"):  # 0 at the critical point
            logs += [np.sum(size / 2 + np.log(-np.expm1(-size)))]
        signs += [1.0, np.prod(np.sign(half))]
    log_prefactor = n * n / 2 * np.log(2 * np.sinh(2 * coupling)) - np.log(2)
    return log_prefactor + logsumexp(logs, b=signs)


# %%
# Five couplings, and one estimate each
# -------------------------------------
# Every estimate is a default run with its own seed.

couplings = np.sort([*np.linspace(0.2, 0.6, 4), CRITICAL])
neighbours = lattice(SIZE)
errors, half_widths = [], []
# The first run compiles, which is not timed.
BoltzmannMachine.from_spins(0.1 * neighbours).estimate_log_partition()
for seed, coupling in enumerate(couplings):
    K = coupling * neighbours
    spins = BoltzmannMachine.from_spins(K, random_state=seed)
    began = time.perf_counter()
    spins.estimate_log_partition()
    seconds = time.perf_counter() - began
    low, high = spins.log_partition_interval_
    errors.append(spins.log_partition_ - kaufman(SIZE, coupling))
    half_widths.append((high - low) / 2)
    estimate = f"{spins.log_partition_:.3f} [{low:.3f}, {high:.3f}]"
    exact = f"exact {kaufman(SIZE, coupling):.3f}"
    print(f"K = {coupling:.3f}: log Z = {estimate}, {exact}, {seconds:.1f} s")

# %%
# Errors beside the intervals that come with them
# -----------------------------------------------

_, left = plt.subplots(figsize=(5, 3.6), layout="constrained")
left.errorbar(couplings, errors, half_widths, fmt="o", capsize=3)
left.axhline(0, color="0.5", linewidth=1)
left.axvline(CRITICAL, color="0.5", linewidth=1, linestyle="--")
left.set(xlabel="coupling K", ylabel="log Z less exact log Z (nats)")
left.set_title("95 % intervals (dashed: critical coupling)")

critical = BoltzmannMachine.from_spins(CRITICAL * neighbours, random_state=0)
draw = critical.sample(1, random_state=3).reshape(SIZE, SIZE)
_, right = plt.subplots(figsize=(3.6, 3.6), layout="constrained")
right.imshow(draw, cmap="gray_r")
_ = right.set(title="a draw at the critical coupling", xticks=[], yticks=[])

# %%
# What physics asks for follows from log Z
# ----------------------------------------
# The entropy, in nats a spin, falls from log 2 as the lattice orders.

for coupling in (0.2, CRITICAL, 0.5):
    model = BoltzmannMachine.from_spins(coupling * neighbours, random_state=0)
    entropy = model.entropy_interval(500, random_state=0)
    low, high = np.array(entropy.combined) / SIZE**2
    print(f"K = {coupling:.3f}: entropy a spin {low:.4f} to {high:.4f} nats")

plt.show()

# %%
# The answer
# ----------
# On a larger lattice (32 x 32) deep in the ordered phase a run is flagged.

n_right = np.sum(np.abs(errors) <= np.array(half_widths))
wider = max(half_widths) / half_widths[0]
print(f"{n_right} of {len(couplings)} intervals hold the exact log Z; at and")
print(f"above the critical coupling they are up to {wider:.0f} times as wide.")

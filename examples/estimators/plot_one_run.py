"""
What do other estimators read from one run?
===========================================

Figure 2 of Carlson et al. (2016) compares what several methods estimate from
the same tempered samples. The target is two Gaussians in ten dimensions;
samples come from Hamiltonian Monte Carlo whose steps are tuned at every
temperature (appendix E). Nearly all methods agree, and the right Riemann sum
looks best. This page repeats the comparison, with bias and spread shown
separately. They explain the result: the error of the discretised integral has
the opposite sign of the error that all methods share.

A run of `RTS` keeps what all methods need, so that all estimates use the same
chains. ``SKLPF_FULL=1`` makes more and longer runs,
and repeats them with steps of a fixed size.
"""

# %%
# Two Gaussians
# -------------
# One Gaussian is twice as wide as the other, their distance is ten, and the
# base N(0, 5 I) is wider than both. log Z is 0.

import os
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklpf import RTS, Gaussian, GeometricPath, Mixture
from sklpf.partition import BAR, MBAR, ThermodynamicIntegration
from sklpf.transitions import HMC

D, DISTANCE, NARROW = 10, 5.0, 0.5
CENTER = np.eye(D)[0] * DISTANCE
parts = [Gaussian(-CENTER, 1.0), Gaussian(CENTER, NARROW**2)]
target = Mixture(parts, [0.5, 0.5])
base = Gaussian(np.zeros(D), 5.0)
grad = target.grad_log_density
path = GeometricPath(target.log_density, grad=grad, base=base)

# %%
# Runs and readings
# -----------------
# Ten chains, 50 levels (100 with ``SKLPF_FULL=1``, as in the paper); each sweep
# is one trajectory of five steps. `RTS` gives a tenth of its sweeps to a
# pilot and at most another to burn-in; the rest are samples. The estimate from
# counts of levels (the paper's TS) uses the same run.

full = os.environ.get("SKLPF_FULL") == "1"
MOVES = {"tuned steps": HMC(n_leapfrog=5)}
if full:
    MOVES["steps of 0.2"] = HMC(0.2, n_leapfrog=5)
READINGS = {
    "RTS": RTS(),
    "counts (TS)": RTS(rao_blackwell=False),
    "BAR": BAR(),
    "MBAR": MBAR(),
    "TI, right": ThermodynamicIntegration(rule="right"),
    "TI, trapezoid": ThermodynamicIntegration(rule="trapezoid"),
    "TI, corrected": ThermodynamicIntegration(rule="corrected"),
    "TI-RB": ThermodynamicIntegration(rule="trapezoid", rao_blackwell=True),
}
N_LEVELS, N_SWEEPS, N_RUNS = 50, [200, 400], 5
if full:
    N_LEVELS, N_SWEEPS, N_RUNS = 100, [400, 800, 1600, 3200, 6400], 20


def estimates(move, n_sweeps, seed):
    """What every method reads from one run, whether it trusts it, and
    whether its interval holds the truth.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        settings = {"transition": move, "random_state": seed}
        rts = RTS(10, N_LEVELS, n_sweeps, **settings).fit(path)
        fitted = [reading.fit(rts.run_) for reading in READINGS.values()]
    read = []
    for estimator in fitted:
        low, high = estimator.log_partition_interval_
        covers = low <= 0 <= high
        read.append((estimator.log_partition_, estimator.converged_, covers))
    return read


found = {}  # (budgets, runs, methods, 3)
for name, move in MOVES.items():
    runs = [[estimates(move, n, i) for i in range(N_RUNS)] for n in N_SWEEPS]
    found[name] = np.array(runs)

# %%
# Bias, spread and RMSE in nats
# -----------------------------
# Nearly all estimates are too low: the narrow Gaussian can only be reached from
# the wide base, and ten chains return there only a few times. Nearly all of
# these runs raise an alarm: chains have not crossed the ladder, groups of them
# lie in different modes, or climbs have found a region that chains hardly met.

head = "sweeps | moves        | reading       |  bias | spread | RMSE"
print(head, "| converged | cover")
for name, values in found.items():
    for n, of_runs in zip(N_SWEEPS, values):
        of_budget, trusted, covered = np.moveaxis(of_runs, 2, 0)
        counts = trusted.sum(axis=0), (trusted * covered).sum(axis=0)
        for reading, column, good, right in zip(READINGS, of_budget.T, *counts):
            bias, spread = column.mean(), column.std(ddof=1)
            rmse = np.sqrt(np.mean(column**2))
            line = f"{n:6d} | {name:12} | {reading:13} | {bias:+.2f} |"
            line += f" {spread:6.2f} | {rmse:.2f} | {good:2.0f} of {N_RUNS:2d}"
            print(f"{line}  | {right:2.0f} of {good:2.0f}")

for name, values in found.items():
    figure, axis = plt.subplots(figsize=(5, 4), layout="constrained")
    rmse = np.sqrt(np.mean(values[..., 0] ** 2, axis=1))
    axis.loglog(N_SWEEPS, rmse, "o-", ms=4, label=list(READINGS))
    axis.set(xlabel="sweeps of ten chains", ylabel="RMSE of log Z (nats)")
    axis.set_title(name)
    axis.set_xticks(N_SWEEPS, N_SWEEPS)
    axis.set_xticks([], minor=True)
    figure.legend(fontsize="small", ncols=3, loc="outside lower center")
    figure.savefig(f"one_run_{name.replace(' ', '_')}.png", dpi=120)

# %%
# From one run they read nearly the same: what differs by more than the error of
# the run is the right Riemann sum, and that by luck.

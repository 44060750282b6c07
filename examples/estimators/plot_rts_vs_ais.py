"""
How many more sweeps does AIS need than RTS?
============================================

Figure 3 of Carlson et al. (2016) says that annealed importance sampling needs
more than ten times the Gibbs sweeps to match what Rao-Blackwellised tempered
sampling (RTS) achieves with 1000. This page repeats the comparison: every
method gets the same number of sweeps of 100 chains. This number
includes the pilot and burn-in of RTS and all rounds of parallel tempering. It
does not include the reverse chains of AIS, which only serve its error bar.

By default the model is an RBM with 20 hidden units fitted to scikit-learn's
digits, whose log Z is enumerated. With ``SKLPF_FULL=1`` and the reference data
it is the paper's: 784 visible and 500 hidden units, trained on MNIST
(Salakhutdinov & Murray 2008), where the truth is the mean of the longest AIS
and RTS runs.
"""

# %%
# The model
# ---------

import os
import time
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, RTS, BernoulliRBM, Exact, ParallelTempering
from sklpf.partition import RAISE
from sklpf.testing import find_shared_data

file = find_shared_data("rbm/mnist_cd25_500.npz")
full = os.environ.get("SKLPF_FULL") == "1" and file is not None
if full:
    parameters = np.load(file, allow_pickle=False)
    mnist = np.load(find_shared_data("binary/mnist.npz"), allow_pickle=False)
    train = np.unpackbits(mnist["train"], axis=1)
    test = np.unpackbits(mnist["test"], axis=1)
    names = ("components", "intercept_visible", "intercept_hidden")
    mean = (train.sum(axis=0) + 1) / (len(train) + 2)
    given = [parameters[name] for name in names]
    rbm = BernoulliRBM.from_parameters(*given, visible_mean=mean)
    budgets, n_repeats = [1000, 3162, 10_000, 31_623, 100_000], 10
else:
    digits = (load_digits().data > 7).astype(float)
    train, test = digits[:1500], digits[1500:]
    settings = {"learning_rate": 0.1, "n_iter": 100, "batch_size": 100}
    rbm = BernoulliRBM(20, **settings, random_state=0).fit(train)
    budgets, n_repeats = [300, 1000], 4

# %%
# Matched budgets
# ---------------
# RAISE starts from 10 test rows, 10 chains each, as Burda et al. (2015) do.
# Data are not samples of the model, so its number is conservative, but not a
# bound.


def reverse(n, seed):
    rows = np.random.default_rng(seed).choice(test, 10, replace=False)
    return RAISE(10, 10, n + 1, starts=rows, random_state=seed, n_jobs=2)


def tempering(n, seed):
    return ParallelTempering(5, 20, n, random_state=seed, n_jobs=2)


METHODS = {
    "AIS": lambda n, seed: AIS(100, n + 1, random_state=seed, n_jobs=2),
    "RTS": lambda n, seed: RTS(100, 100, n, random_state=seed, n_jobs=2),
    "RAISE": reverse,
    "ParallelTempering": tempering,
}

values, seconds, trusted = {}, {}, {}
for n_sweeps in budgets:
    for method, make in METHODS.items():
        runs = []
        for seed in range(n_repeats):
            started = time.process_time()
            with warnings.catch_warnings():
                # The table's last column counts them.
                warnings.simplefilter("ignore", ConvergenceWarning)
                estimator = make(n_sweeps, seed).fit(rbm)
            took = time.process_time() - started
            found = estimator.log_partition_, took, estimator.converged_
            runs.append(found)
        of_all = np.array(runs).T
        values[method, n_sweeps] = of_all[0]
        seconds[method, n_sweeps] = of_all[1]
        trusted[method, n_sweeps] = of_all[2]

# %%
# Means and errors
# ----------------
# Seconds are processor time, of both threads.

longest = [values[method, budgets[-1]] for method in ("AIS", "RTS")]
truth = np.mean(longest) if full else Exact().fit(rbm).log_partition_
rmse = {
    key: np.sqrt(np.mean((runs - truth) ** 2)) for key, runs in values.items()
}
print(f"true log Z {truth:.3f}; {n_repeats} repeats of 100 chains")
print("| method | sweeps | mean | RMSE | median seconds | converged |")
print("|---|---|---|---|---|---|")
for key, runs in values.items():
    took, n_trusted = np.median(seconds[key]), int(trusted[key].sum())
    line = f"| {key[0]} | {key[1]} | {runs.mean():.3f} | {rmse[key]:.3f} |"
    print(f"{line} {took:.2f} | {n_trusted} of {n_repeats} |")
for method in ("RTS", "ParallelTempering"):
    ratios = [(rmse["AIS", n] / rmse[method, n]) ** 2 for n in budgets]
    costs = [
        np.median(seconds[method, n]) / np.median(seconds["AIS", n])
        for n in budgets
    ]
    sweeps = ", ".join(f"{ratio:.1f}" for ratio in ratios)
    pairs = zip(ratios, costs)
    times = ", ".join(f"{ratio / cost:.1f}" for ratio, cost in pairs)
    print(f"for equal RMSE AIS needs {sweeps} times the sweeps of {method}")
    print(f"and {times} times its seconds, at {budgets}")

# %%
# The pictures
# ------------

_, right = plt.subplots(figsize=(5, 3.6), layout="constrained")
_, left = plt.subplots(figsize=(5, 3.6), layout="constrained")
for method in METHODS:
    means = [values[method, n].mean() for n in budgets]
    spread = [values[method, n].std(ddof=1) for n in budgets]
    left.errorbar(budgets, means, spread, fmt="o-", capsize=3, label=method)
    right.plot(budgets, [rmse[method, n] for n in budgets], "o-", label=method)
left.axhline(truth, color="k", lw=0.8, ls=":", label="truth")
left.set(xscale="log", ylabel="log Z: mean ± standard deviation")
right.set(xscale="log", yscale="log", ylabel="RMSE (nats)")
for axis, name in ((left, "values"), (right, "errors")):
    axis.set_xlabel("sweeps of each of 100 chains")
    axis.legend()
    axis.figure.savefig(f"rts_vs_ais_{name}.png", dpi=110)

# %%
# On this model it needs fewer, not ten times as many, and less time than that.

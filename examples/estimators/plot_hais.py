"""
How many levels do Hamiltonian moves save?
==========================================

Sohl-Dickstein and Culpepper (2012) anneal with Hamiltonian moves whose
velocities are kept from level to level. On densities with known log Z, their
figures compare this method with moves whose velocity is drawn again at every
level, and with Gaussian Metropolis steps. This page repeats the comparison: the
error of log Z against the number of levels.

- A complete product of Student-t experts in 36 dimensions, from a Student-t
  base (a Gaussian has lighter tails than the target and would be confidently
  wrong); with ``SKLPF_FULL=1`` also one of Laplace experts.
- The evidence of a stiff linear-Gaussian model, whose prior is the base.

The paper's moves have a fixed step of 0.2; ``HMC()`` tunes its own.
"""

# %%
# The densities
# -------------
# A model gives its own path.

import os
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, HAIS, Exact, Gaussian, GeometricPath, ProductOfExperts
from sklpf.transitions import HMC, RandomWalk

D = 36
rng = np.random.default_rng(0)
rotation = np.linalg.qr(rng.normal(size=(D, D)))[0]
W = rotation * np.exp(rng.uniform(-0.3, 0.3, D))[:, np.newaxis]
student = ProductOfExperts.from_parameters(W, np.full(D, 2.5)).path()

# One row y = A x + noise of standard deviation 0.3, x ~ N(0, I): the evidence
# is normal.
SIGMA = 0.3
A = rng.normal(size=(D, D)) / np.sqrt(D)
y = A @ rng.normal(size=D) + SIGMA * rng.normal(size=D)


def linear(x):
    r = (y - x @ A.T) / SIGMA
    squares = (r * r).sum(axis=1) + (x * x).sum(axis=1)
    return -0.5 * squares - D * np.log(2 * np.pi * SIGMA)


def linear_grad(x):
    return ((y - x @ A.T) @ A) / SIGMA**2 - x


covariance = A @ A.T + SIGMA**2 * np.eye(D)
evidence = multivariate_normal(np.zeros(D), covariance).logpdf(y)
stiff = GeometricPath(linear, grad=linear_grad, base=Gaussian(np.zeros(D), 1.0))

PROBLEMS = {
    "product of Student t": (student, Exact().fit(student).log_partition_),
    "linear Gaussian": (stiff, evidence),
}
full = os.environ.get("SKLPF_FULL") == "1"
if full:
    laplace = ProductOfExperts.from_parameters(W).path()
    truth = Exact().fit(laplace).log_partition_
    PROBLEMS["product of Laplace"] = laplace, truth

# %%
# Error against levels
# --------------------
# Root mean square and median absolute error over repeats of 40 chains (with
# ``SKLPF_FULL=1`` 200, as in the paper) on a linear ladder, without the checks
# beside the chains.

CHAINS, LEVELS, REPEATS = 40, [30, 100, 300], 4
if full:
    CHAINS, LEVELS, REPEATS = 200, [30, 100, 300, 1000, 3000, 10_000], 20


def hamiltonian(*step, **options):
    return HAIS(CHAINS, ladder="linear", transition=HMC(*step, **options))


METHODS = {
    "HAIS, tuned": hamiltonian(),
    "HAIS, step 0.2": hamiltonian(0.2, half_life=1),
    "full refresh, step 0.2": hamiltonian(0.2, half_life=None),
    "Metropolis": AIS(CHAINS, transition=RandomWalk()),
}


def error(method, k, seed, path, truth):
    settings = {"n_temperatures": k, "checks": False, "random_state": seed}
    estimator = clone(method).set_params(**settings)
    return estimator.fit(path).log_partition_ - truth


errors = {}
with warnings.catch_warnings():
    # With few levels most runs say that they did not converge.
    warnings.simplefilter("ignore", ConvergenceWarning)
    for problem, (path, truth) in PROBLEMS.items():
        print(f"\n{problem}: root mean square error (median absolute error)")
        print(f"{'levels':<24}" + "".join(f"{k:>16}" for k in LEVELS))
        for name, method in METHODS.items():
            line = f"{name:<24}"
            errors[problem, name] = []
            for k in LEVELS:
                off = [error(method, k, i, path, truth) for i in range(REPEATS)]
                rmse = np.sqrt(np.mean(np.square(off)))
                errors[problem, name].append(rmse)
                line += f"{rmse:>8.3f} ({np.median(np.abs(off)):.3f})"
            print(line)

for problem in PROBLEMS:
    figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    for name in METHODS:
        ax.loglog(LEVELS, errors[problem, name], "o-", label=name)
    ax.set_title(problem)
    ax.set_xticks(LEVELS, LEVELS)
    ax.set_xticks([], minor=True)
    ax.set_xlabel("levels")
    ax.set_ylabel("root mean square error of log Z (nats)")
    ax.legend(fontsize="small")
    figure.savefig(f"hais_{problem.replace(' ', '_')}.png", dpi=100)

# %%
# The answer
# ----------
# Nine levels of ten, if both errors are about the same. Four repeats tell an
# error to about a third.

for problem in PROBLEMS:
    few, *_ = errors[problem, "HAIS, tuned"]
    *_, many = errors[problem, "Metropolis"]
    print(f"{problem}: {few:.2f} nats by {LEVELS[0]} levels of tuned moves,")
    print(f"{many:.2f} by {LEVELS[-1]} of Metropolis steps")

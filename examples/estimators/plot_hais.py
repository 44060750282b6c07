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
# Their functions are compiled by numba, so that chains run in compiled
# programs.

import os
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numba
import numpy as np
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, HAIS, Gaussian, GeometricPath, StudentT
from sklpf.transitions import HMC, RandomWalk

D, SHAPE = 36, 2.5
rng = np.random.default_rng(0)
W = (
    np.linalg.qr(rng.normal(size=(D, D)))[0]
    * np.exp(rng.uniform(-0.3, 0.3, D))[:, np.newaxis]
)
WT = np.ascontiguousarray(W.T)


@numba.njit
def laplace(x):
    return -np.abs(x @ WT).sum(axis=1)


@numba.njit
def laplace_grad(x):
    return -(np.sign(x @ WT) @ W)


@numba.njit
def student(x):
    return -SHAPE * np.log1p((x @ WT) ** 2).sum(axis=1)


@numba.njit
def student_grad(x):
    u = x @ WT
    return -2 * SHAPE * ((u / (1 + u * u)) @ W)


log_det = np.linalg.slogdet(W)[1]
log_t = 0.5 * np.log(np.pi) + gammaln(SHAPE - 0.5) - gammaln(SHAPE)

# One row y = A x + noise of standard deviation 0.3, x ~ N(0, I): the evidence
# is normal.
SIGMA = 0.3
A = rng.normal(size=(D, D)) / np.sqrt(D)
y = A @ rng.normal(size=D) + SIGMA * rng.normal(size=D)
AT = np.ascontiguousarray(A.T)


@numba.njit
def linear(x):
    r = (y - x @ AT) / SIGMA
    return (
        -0.5 * (r * r).sum(axis=1)
        - 0.5 * (x * x).sum(axis=1)
        - D * np.log(2 * np.pi * SIGMA)
    )


@numba.njit
def linear_grad(x):
    return ((y - x @ AT) @ A) / SIGMA**2 - x


covariance = A @ A.T + SIGMA**2 * np.eye(D)
evidence = -0.5 * (
    y @ np.linalg.solve(covariance, y)
    + np.linalg.slogdet(2 * np.pi * covariance)[1]
)
prior = Gaussian(np.zeros(D), 1.0)

student_base = StudentT(np.zeros(D), 0.5, 2 * SHAPE - 1)
PROBLEMS = {
    "product of Student t": (
        GeometricPath(student, grad=student_grad, base=student_base),
        D * log_t - log_det,
    ),
    "linear Gaussian": (
        GeometricPath(linear, grad=linear_grad, base=prior),
        evidence,
    ),
}
full = os.environ.get("SKLPF_FULL") == "1"
if full:
    PROBLEMS["product of Laplace"] = (
        GeometricPath(laplace, grad=laplace_grad, base=prior),
        D * np.log(2) - log_det,
    )

# %%
# Error against levels
# --------------------
# Root mean square and median absolute error over repeats of 200 chains on a
# linear ladder, as in the paper, without the checks beside the chains.

LEVELS, REPEATS = (
    ([30, 100, 300, 1000, 3000, 10_000], 20) if full else ([30, 100, 300], 5)
)


def linear_hais(move):
    return lambda k, seed: HAIS(
        200,
        k,
        ladder="linear",
        transition=move,
        checks=False,
        random_state=seed,
    )


METHODS = {
    "HAIS, tuned": linear_hais(HMC()),
    "HAIS, step 0.2": linear_hais(HMC(0.2, half_life=1)),
    "full refresh, step 0.2": linear_hais(HMC(0.2, half_life=None)),
    "Metropolis": lambda k, seed: AIS(
        200, k, transition=RandomWalk(), checks=False, random_state=seed
    ),
}

errors = {}
with warnings.catch_warnings():
    # With few levels most runs say that they did not converge.
    warnings.simplefilter("ignore", ConvergenceWarning)
    for problem, (path, truth) in PROBLEMS.items():
        print(f"\n{problem}: root mean square error (median absolute error)")
        print(f"{'levels':<24}" + "".join(f"{k:>16}" for k in LEVELS))
        for method, make in METHODS.items():
            line = f"{method:<24}"
            for k in LEVELS:
                off = np.array(
                    [
                        make(k, seed).fit(path).log_partition_ - truth
                        for seed in range(REPEATS)
                    ]
                )
                rmse = np.sqrt(np.mean(off**2))
                errors[problem, method, k] = rmse
                line += f"{rmse:>8.3f} ({np.median(np.abs(off)):.3f})"
            print(line)

# %%
# Metropolis steps need many times the levels. If every velocity is drawn again,
# the error at 300 levels is two to three times as large on a product, whose
# scales are all alike, and more than four times on the stiff model.

for problem in PROBLEMS:
    figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    for method in METHODS:
        ax.loglog(
            LEVELS,
            [errors[problem, method, k] for k in LEVELS],
            "o-",
            label=method,
        )
    ax.set_title(problem)
    ax.set_xticks(LEVELS, LEVELS)
    ax.set_xticks([], minor=True)
    ax.set_xlabel("levels")
    ax.set_ylabel("root mean square error of log Z (nats)")
    ax.legend()
    figure.savefig(f"hais_{problem.replace(' ', '_')}.png", dpi=100)

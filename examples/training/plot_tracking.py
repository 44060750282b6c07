"""
Does an RBM still improve while it trains?
==========================================

Figure 5 of Carlson et al. (2016) shows the log-likelihood of training and of
validation rows while an RBM is trained. log Z is tracked from epoch to epoch,
at a fraction of the cost of a new estimate, and is compared now and then with
annealed importance sampling (AIS). Their figure shows an RBM with 500 hidden
units on the splice junctions of ``dna``.

By default this page trains 32 hidden units on scikit-learn's digits. With
``SKLPF_FULL=1`` and the reference data it is ``dna`` with 500 hidden units.
"""

# %%
# Two ways to track log Z
# -----------------------
# "particles" has an error bar, which ``early_stopping`` needs. "rts" is
# equation 24 of the paper, and has none. Tracking changes no other number, so
# the two trainings below have the same weights.

import os
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklpf import AIS, BernoulliRBM
from sklpf.testing import find_shared_data

file = find_shared_data("binary/dna.npz")
full = os.environ.get("SKLPF_FULL") == "1" and file is not None
if full:
    data = np.load(file, allow_pickle=False)
    parts = [
        np.unpackbits(data[part], axis=1)[:, : int(data["n_features"])]
        for part in ("train", "valid")
    ]
    X = np.concatenate(parts).astype(float)
    options = {
        "n_components": 500,
        "learning_rate": 0.01,
        "n_iter": 60,
        "n_iter_no_change": 15,
    }
    passes, n_levels = (1, 2, 5, 10, 20, 40, 60), 10_000
else:
    X = (load_digits().data > 7).astype(float)
    options = {"n_components": 32, "learning_rate": 0.02, "n_iter": 40}
    passes, n_levels = (1, 2, 5, 10, 20, 40), 1000

stopped = BernoulliRBM(early_stopping=True, random_state=0, **options).fit(X)
n_passes = len(stopped.validation_scores_)
print(f"{n_passes} passes; the best one is number {stopped.best_iteration_}")

# %%
# References
# ----------
# The same training is repeated up to several epochs, with the same held-out
# rows and the same weights: those of ``random_state=0``. AIS then estimates log
# Z from the beginning.

rng = np.random.RandomState(0)
train, validation = train_test_split(X, test_size=0.1, random_state=rng)


def retrained(n_iter, **more):
    rng = np.random.RandomState(0)
    train_test_split(X, test_size=0.1, random_state=rng)
    settings = options | {"n_iter": n_iter, "random_state": rng} | more
    return BernoulliRBM(**settings).fit(train)


references = []
numbers = {n for n in passes if n <= n_passes} | {stopped.best_iteration_}
annealing = AIS(100, n_levels, random_state=0)
for n_iter in sorted(numbers):
    rbm = retrained(n_iter, partition_estimator=annealing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # early passes score badly
        scores = rbm.score(train), rbm.score(validation)
    log_z, error = rbm.log_partition_, rbm.log_partition_std_error_
    references.append((n_iter, log_z, error, *scores))
    tracked = stopped.log_partition_curve_[n_iter - 1]
    its_error = stopped.log_partition_std_errors_[n_iter - 1]
    trusted = rbm.partition_estimator_.converged_
    line = f"pass {n_iter}: log Z tracked {tracked:.2f} ± {its_error:.2f}, AIS"
    line += f" {log_z:.2f} ± {error:.2f}"
    print(line + ("" if trusted else ", not converged"))
tempered = retrained(n_passes, track_log_partition="rts")

# %%
# The picture
# -----------
# The band is two standard errors of log Z, which all rows share.

iterations = np.arange(1, n_passes + 1)
mean_log_f = stopped.validation_scores_ + stopped.log_partition_curve_
_, left = plt.subplots(figsize=(5, 4), layout="constrained")
_, right = plt.subplots(figsize=(5, 4), layout="constrained")
scores = stopped.validation_scores_
errors = stopped.validation_score_std_errors_
left.plot(iterations, scores, label="validation rows, particles")
low, high = scores - 2 * errors, scores + 2 * errors
left.fill_between(iterations, low, high, alpha=0.3)
by_rts = mean_log_f - tempered.log_partition_curve_
left.plot(iterations, by_rts, "--", label="validation rows, equation 24")
n, log_z, std_error, on_train, on_validation = np.transpose(references)
n = n.astype(int)
gap = stopped.log_partition_curve_[n - 1] - log_z
looks = {"ms": 4, "capsize": 3, "label": "validation rows, AIS"}
left.errorbar(n, on_validation, 2 * std_error, fmt="ko", **looks)
left.plot(n, on_train - gap, label="training rows, particles")
looks |= {"mfc": "none", "label": "training rows, AIS"}
left.errorbar(n, on_train, 2 * std_error, fmt="ks", **looks)
looks = {"color": "k", "lw": 0.8, "ls": ":"}
left.axvline(stopped.best_iteration_, label="weights kept", **looks)
left.set(xlabel="pass", ylabel="mean log-likelihood (nats)")
left.legend(fontsize="small")
joint = np.hypot(std_error, stopped.log_partition_std_errors_[n - 1])
right.errorbar(n, gap, 2 * joint, fmt="o", capsize=3, label="particles")
by_rts = tempered.log_partition_curve_[n - 1] - log_z
right.plot(n, by_rts, "x", label="equation 24")
right.axhline(0, color="k", lw=0.8)
right.set(xlabel="pass", ylabel="log Z: tracked less AIS (nats)")
right.legend()
left.figure.savefig("tracking_likelihood.png", dpi=110)
right.figure.savefig("tracking_log_partition.png", dpi=110)

# %%
# It does: the held-out log-likelihood rises up to the last pass, and the log Z
# that was tracked on the way agrees with `AIS` within its error.

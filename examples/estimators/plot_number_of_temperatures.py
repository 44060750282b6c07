"""
How many temperatures does RTS need?
====================================

Rao-Blackwellised tempered sampling averages probabilities of levels instead of
counting visits, so that more levels cost less precision: Carlson et al. (2016),
figure 4. Here every number of levels has its own runs, and five methods
estimate log Z from each. Counting (TS) needs enough visits to every level;
thermodynamic integration needs levels that lie close together, and its
Rao-Blackwellised form becomes `RTS` as they do (appendix C); MBAR has no error
of quadrature.

By default the model is an RBM with 20 hidden units fitted to scikit-learn's
digits, whose log Z is enumerated. With ``SKLPF_FULL=1`` and the reference data
it is the paper's, 784 visible and 500 hidden units, against the published
value.
"""

# %%
# The model
# ---------

import os
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklpf import RTS, BernoulliRBM, Exact
from sklpf.partition import MBAR, ThermodynamicIntegration
from sklpf.testing import find_shared_data

file = find_shared_data("rbm/mnist_cd25_500.npz")
full = os.environ.get("SKLPF_FULL") == "1" and file is not None
if full:
    parameters = np.load(file, allow_pickle=False)
    mnist = np.load(find_shared_data("binary/mnist.npz"), allow_pickle=False)
    train = np.unpackbits(mnist["train"], axis=1)
    names = ("components", "intercept_visible", "intercept_hidden")
    mean = (train.sum(axis=0) + 1) / (len(train) + 2)
    given = [parameters[name] for name in names]
    rbm = BernoulliRBM.from_parameters(*given, visible_mean=mean)
    truth = 451.28
    n_runs, n_sweeps = 10, 1000
    n_temperatures = [10, 20, 50, 100, 200, 500, 1000]
else:
    digits = (load_digits().data > 7).astype(float)
    settings = {"learning_rate": 0.1, "n_iter": 100, "batch_size": 100}
    rbm = BernoulliRBM(20, **settings, random_state=0).fit(digits)
    truth = Exact().fit(rbm).log_partition_
    n_runs, n_sweeps = 4, 500
    n_temperatures = [3, 7, 20]

# %%
# Runs and readings
# -----------------

READINGS = {
    "RTS": RTS(),
    "TS": RTS(rao_blackwell=False),
    "MBAR": MBAR(),
    "TI": ThermodynamicIntegration(rule="trapezoid"),
    "TI-RB": ThermodynamicIntegration(rule="trapezoid", rao_blackwell=True),
}
errors = np.empty((len(n_temperatures), n_runs, len(READINGS)))
converged = np.empty(errors.shape, dtype=bool)
for i, n_levels in enumerate(n_temperatures):
    for seed in range(n_runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            rts = RTS(100, n_levels, n_sweeps, random_state=seed, n_jobs=2)
            run = rts.fit(rbm).run_
            fitted = [reading.fit(run) for reading in READINGS.values()]
        errors[i, seed] = [
            estimator.log_partition_ - truth for estimator in fitted
        ]
        converged[i, seed] = [estimator.converged_ for estimator in fitted]

# %%
# RMSE and bias in nats
# ---------------------
# Each run has 100 chains. The bias with few levels is that of the
# trapezoidal rule; `converged` says which method raised an alarm.

rmse = np.sqrt(np.mean(errors**2, axis=1))
names = " | ".join(f"{name:>20}" for name in READINGS)
print(f"levels | {names}   (RMSE, bias, converged)")
columns = rmse, errors.mean(axis=1), converged.sum(axis=1)
for n_levels, of_rmse, of_bias, good in zip(n_temperatures, *columns):
    cells = [
        f"{r:6.3f} {b:+7.3f} {n:2d}/{n_runs}"
        for r, b, n in zip(of_rmse, of_bias, good)
    ]
    print(f"{n_levels:6d} | " + " | ".join(f"{cell:>20}" for cell in cells))

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.loglog(n_temperatures, rmse, "o-", ms=4, label=list(READINGS))
axis.set_xlabel("number of inverse temperatures K")
axis.set_ylabel("RMSE of log Z (nats)")
axis.set_xticks(n_temperatures, n_temperatures)
axis.set_xticks([], minor=True)
axis.legend()
figure.savefig("number_of_temperatures.png", dpi=120)

# %%
# The answer
# ----------

first = np.argmax(converged.all(axis=1), axis=0)
enough = np.array(n_temperatures)[first]
print(f"{enough[0]} levels are enough for RTS (error {rmse[first[0], 0]:.3f}),")
print(f"{enough[3]} for the trapezoidal rule. With {n_temperatures[-1]}")
print(f"levels the error of RTS is {rmse[-1, 0]:.3f} nats.")

"""Training of RBMs: held-out log-likelihood, how much it depends on the seed, and what substitutes
for it say.

usage: python tests/benchmarks/rbm_training.py seeds RESULTS [--seeds 10] [--units 16 64 256] [DATA
...]
       python tests/benchmarks/rbm_training.py patient RESULTS [as above]
       python tests/benchmarks/rbm_training.py mnist RESULTS [--seeds 3] [--passes 120]
           [--rate 0.02] [--batch 20] [--chains 50] [--decay 0.0002]
       python tests/benchmarks/rbm_training.py table RESULTS

patient: more passes with 500 chains and a learning rate that falls to 0. mnist: 784 x 500, all
60,000 training rows, log Z by AIS with 100 chains and 10,000 temperatures.

RESULTS is a file of JSON lines, to which every finished fit is appended; what it holds already is
not fitted again.
"""

import argparse
import collections
import json
import pathlib
import time
import warnings

import numpy as np
from measure import row, table
from scipy.special import expit
from sklearn import neural_network
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklpf import AIS, BernoulliRBM
from sklpf.testing import find_shared_data

PASSES = {"digits": 60, "dna": 60, "mushrooms": 60, "nltcs": 20, "mnist": 5}
SETTINGS = {
    "constant rate": {"learning_rate": 0.05},
    "average": {"learning_rate": 0.05, "average": True},
    "average, 50 chains": {"learning_rate": 0.05, "average": True, "n_chains": 50},
}
PATIENT_PASSES = {"digits": 180, "dna": 180, "mushrooms": 180, "nltcs": 60, "mnist": 20}
PATIENT = {
    "500 chains, falling rate": {
        "learning_rate": 0.1,
        "learning_rate_schedule": "linear",
        "batch_size": 50,
        "n_chains": 500,
        "average": True,
    }
}


def load(name, parts=("train", "test")):
    """Rows of the parts of a data set, float32; None where the reference data is absent."""
    if name == "digits":
        return train_test_split(
            (load_digits().data > 7).astype(np.float32), test_size=0.25, random_state=0
        )
    file = find_shared_data(f"binary/{name}.npz")
    if file is None:
        return None
    with np.load(file) as data:
        n = int(data["n_features"])
        return [np.unpackbits(data[part], axis=1)[:, :n].astype(np.float32) for part in parts]


def quiet_score(model, X):
    """Mean held-out log-likelihood, NaN where log Z is not trusted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(on_nonconvergence="nan").score(X)


# ---- measuring
def fit_and_score(X, X_test, n_units, n_passes, seed, **options):
    """One fit as a record: scores in nats per row, seconds of processor time."""
    began = time.process_time()
    model = BernoulliRBM(n_units, n_iter=n_passes, random_state=seed, **options).fit(X)
    seconds = time.process_time() - began
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interval = model.score_interval(X_test)
        training = float(model.score_samples(X).mean())
    return {
        "n_units": n_units,
        "n_passes": n_passes,
        "seed": seed,
        "seconds": seconds,
        "training": training,
        "test": interval.mean,
        "half_width": (interval.combined[1] - interval.combined[0]) / 2,
        "converged": interval.converged,
        "scatter": model.log_likelihood_scatter_,
    } | substitutes(model, X_test)


def substitutes(model, X_test):
    """What is used in place of a likelihood, higher is better."""
    theirs = neural_network.BernoulliRBM(random_state=0)
    theirs.components_ = model.components_
    theirs.intercept_visible_ = model.intercept_visible_
    theirs.intercept_hidden_ = model.intercept_hidden_
    reconstructed = expit(model.transform(X_test) @ model.components_ + model.intercept_visible_)
    return {
        "pseudo_likelihood": float(model.pseudo_log_likelihood(X_test).mean()),
        "score_of_scikit_learn": float(theirs.score_samples(X_test).mean()),
        "reconstruction": -float(np.mean(np.sum((reconstructed - X_test) ** 2, axis=1))),
    }


def measure_seeds(results, data, units, n_seeds, settings, passes):
    """Every setting on every data set and size with seeds 0, 1, ..., and as many passes
    for each.
    """
    done = {(r["data"], r["n_units"], r["setting"], r["seed"]) for r in read(results)}
    for name in data:
        rows = load(name)
        if rows is None:
            print(f"{name} is not here")
            continue
        X, X_test = rows
        for n_units in units:
            BernoulliRBM(n_units, n_iter=3, random_state=0).fit(X)  # compiles
            for seed in range(n_seeds):
                for setting, options in settings.items():
                    if (name, n_units, setting, seed) not in done:
                        record = fit_and_score(X, X_test, n_units, passes[name], seed, **options)
                        append(results, {"data": name, "setting": setting} | record)


def measure_mnist(results, n_seeds, n_passes, options):
    """784 x 500 with a rate that falls to 0; a setting is named by its options."""
    X, X_valid, X_test = load("mnist", ("train", "valid", "test"))
    X = np.vstack([X, X_valid])
    setting = ", ".join(f"{name}={value}" for name, value in options.items())
    done = {(r["setting"], r["n_passes"], r["seed"]) for r in read(results)}
    for seed in range(n_seeds):
        if (setting, n_passes, seed) not in done:
            estimator = AIS(n_chains=100, n_temperatures=10_000, random_state=seed)
            record = fit_and_score(
                X,
                X_test,
                500,
                n_passes,
                seed,
                average=True,
                learning_rate_schedule="linear",
                partition_estimator=estimator,
                **options,
            )
            append(results, {"data": "mnist", "setting": setting} | record)


# ---- records
def read(results):
    """All records of a file that may not exist yet."""
    file = pathlib.Path(results)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def append(results, record):
    """Write a record at once, and say it."""
    print(record, flush=True)
    with open(results, "a") as file:
        file.write(json.dumps(record) + "\n")


def print_table(results):
    """Mean, spread and best of each cell, in Markdown."""
    cells = collections.defaultdict(list)
    for record in read(results):
        cells[record["data"], record["n_units"], record["setting"]].append(record)
    columns = (
        "data",
        "units",
        "setting",
        "passes",
        "seeds",
        "mean",
        "between seeds",
        "best",
        "worst",
        "scatter",
    )
    table(*columns, "interval", "seconds")
    for (data, n_units, setting), records in cells.items():
        trusted = [record for record in records if record["converged"]]
        test = np.array([record["test"] for record in trusted])
        mean = {
            key: np.mean([record[key] for record in records])
            for key in ("scatter", "half_width", "seconds")
        }
        lost = (
            "" if len(trusted) == len(records) else f" ({len(records) - len(trusted)} not trusted)"
        )
        if len(test) > 1:
            said = (
                f"{test.mean():.2f}",
                f"{test.std(ddof=1):.3f}",
                f"{test.max():.2f}",
                f"{test.min():.2f}",
            )
        else:
            said = ("", "", "", "")
        times = (f"{mean['scatter']:.3f}", f"± {mean['half_width']:.2f}", f"{mean['seconds']:.2f}")
        row(data, n_units, setting, records[0]["n_passes"], f"{len(records)}{lost}", *said, *times)


def print_substitutes(results):
    """How often a substitute says the opposite of the log-likelihood, of fits that are both
    trusted, in Markdown.
    """
    records = {(r["data"], r["n_units"], r["setting"], r["seed"]): r for r in read(results)}
    last, averaged, *_ = SETTINGS
    substitutes = ("reconstruction", "score_of_scikit_learn", "pseudo_likelihood")
    columns = (
        "data",
        "units",
        "pairs",
        "gain of averages",
        "wrong by reconstruction",
        "by scikit-learn's score",
    )
    table(*columns, "by pseudo-likelihood", "its gain")
    for data, n_units in dict.fromkeys(key[:2] for key in records):
        pairs = [
            (records[data, n_units, last, seed], records[data, n_units, averaged, seed])
            for seed in range(100)
            if (data, n_units, averaged, seed) in records
        ]
        pairs = [(a, b) for a, b in pairs if a["converged"] and b["converged"]]
        if not pairs:
            continue
        gains = {
            name: np.array([b[name] - a[name] for a, b in pairs]) for name in ("test", *substitutes)
        }
        wrong = (int(np.sum((gains[name] > 0) != (gains["test"] > 0))) for name in substitutes)
        gain = (f"{gains[name].mean():.2f}" for name in ("test", "pseudo_likelihood"))
        first, second = gain
        row(data, n_units, len(pairs), first, *wrong, second)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["seeds", "patient", "mnist", "table"])
    parser.add_argument("results")
    parser.add_argument("data", nargs="*", default=list(PASSES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--units", type=int, nargs="*", default=[16, 64, 256])
    parser.add_argument("--passes", type=int, default=120)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--chains", type=int, default=50)
    parser.add_argument("--decay", type=float, default=2e-4)
    arguments = parser.parse_args()
    if arguments.what in ("seeds", "patient"):
        plan = (SETTINGS, PASSES) if arguments.what == "seeds" else (PATIENT, PATIENT_PASSES)
        measure_seeds(arguments.results, arguments.data, arguments.units, arguments.seeds, *plan)
    elif arguments.what == "mnist":
        options = {
            "learning_rate": arguments.rate,
            "batch_size": arguments.batch,
            "n_chains": arguments.chains,
            "weight_decay": arguments.decay,
        }
        measure_mnist(arguments.results, arguments.seeds, arguments.passes, options)
    print_table(arguments.results)
    print_substitutes(arguments.results)


if __name__ == "__main__":
    main()

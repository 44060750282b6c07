"""How the benchmarks measure, what they measure on, and the Markdown that they print."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import binom
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from sklpf import StudentT
from sklpf.testing import find_shared_data

LOG_2PI = float(np.log(2 * np.pi))
TINY = 1e-6  # nats: smaller standard errors are judged by the error itself


# ---- options
def options(doc, results, seeds, others=None, **names):
    """Parse the command line.

    Parameters
    ----------
    doc : str
    results : str
        Default of `--results`, the file of JSON lines from which an interrupted benchmark goes on.
    seeds : int
        Default of `--seeds`.
    others : dict, optional
        Defaults of further options; one that is False is a flag, of a list there may be several.
    **names : iterable of str
        Of each further option what there is to choose from, by names or by parts of these.
    """
    kept = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=kept)
    text = "their number, or the first and the one after the last; 0 prints the table alone"
    parser.add_argument("--seeds", type=int, nargs="+", default=[seeds], help=text)
    parser.add_argument("--results", default=results)
    for name, default in (others or {}).items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(default, list):
            parser.add_argument(f"--{name}", nargs="*", type=type(default[0]), default=default)
        else:
            kind = str if default is None else type(default)
            parser.add_argument(f"--{name}", type=kind, default=default)
    for name in names:
        parser.add_argument(f"--{name}", nargs="*", default=[""])
    found = parser.parse_args()
    found.seeds = range(*found.seeds)
    for name, known in names.items():
        setattr(found, name, chosen(known, getattr(found, name)))
    return found


def chosen(names, words):
    """Those of the names that are among the words, or of which a word that is none is a part."""
    parts = [word for word in words if word not in names]
    return [name for name in names if name in words or any(part in name for part in parts)]


# ---- measuring
def interleave(calls, rounds, clock=time.process_time):
    """Seconds of every call in every round, {name: (rounds,)}, after one call of each that is not
    timed.
    """
    seconds = {name: [] for name in calls}
    for measured in range(-1, rounds):
        for name, call in calls.items():
            began = clock()
            call()
            if measured >= 0:
                seconds[name].append(clock() - began)
    return {name: np.array(values) for name, values in seconds.items()}


def quiet_fit(estimator, path, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(path, **given)


def judged(estimator, path, truth, truth_error=0.0, **given):
    """Fit, and return the `records_of` what was found."""
    began = time.process_time()
    result = quiet_fit(estimator, path, **given).result_
    return records_of(result, truth, truth_error, time.process_time() - began)


def records_of(result, truth, truth_error, seconds):
    """A record for each log Z: its error and standard error in nats, whether the interval covers,
    whether it converged, and kinds of alarms.

    What is not known of the truth, `truth_error`, widens interval and standard error.
    """
    low, high = (np.atleast_1d(end) for end in result.interval())
    half = np.where(np.isfinite(high - low), (high - low) / 2, 0.0)
    slack = np.hypot(half, 1.96 * np.asarray(truth_error)) - half + TINY
    off = np.atleast_1d(result.log_partition) - truth
    columns = {
        "off": off,
        "error": np.hypot(np.atleast_1d(result.std_error), truth_error),
        "covers": (low - slack <= truth) & (truth <= high + slack),
        "converged": np.broadcast_to(
            result.diagnostics.get("converged", result.converged), off.shape
        ),
    }
    alarms = sorted({alarm.kind for alarm in result.alarms})
    rows = zip(*(values.tolist() for values in columns.values()))
    return [dict(zip(columns, row)) | {"alarms": alarms, "seconds": seconds} for row in rows]


def read(file):
    """Records of a file of JSON lines, which need not exist; a line that was cut short is not
    one.
    """
    path = Path(file)
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def measured(file, tasks, run):
    """Make the runs that a file of JSON lines lacks, append their records, and return all of it.

    Parameters
    ----------
    tasks : iterable of dict
        What names each run.
    run : callable
        `run(**task)` returns a record, a dictionary, or several.
    """
    tasks = list(tasks)
    names = tuple(tasks[0]) if tasks else ()
    done = {tuple(map(str, map(record.get, names))) for record in read(file)}
    missing = [task for task in tasks if tuple(map(str, task.values())) not in done]
    with open(file, "a", encoding="utf-8") as opened:
        for task in missing:
            records = run(**task)
            for record in [records] if isinstance(records, dict) else records:
                opened.write(json.dumps(task | record, default=float) + "\n")
            opened.flush()
    return read(file)


class Counted:
    """A function of points (n, d), or of one point, that counts these.

    Beyond `most` evaluations it raises TimeoutError.
    """

    def __init__(self, function, most=np.inf, vectorized=True):
        self.function = function
        self.most = most
        self.vectorized = vectorized
        self.n_points = 0

    def __call__(self, x):
        self.n_points += len(x) if self.vectorized else 1
        if self.n_points > self.most:
            raise TimeoutError
        with np.errstate(all="ignore"):
            return self.function(x)


def by_importance(log_density, mean, covariance, df=5, sizes=(20_000, 20_000, 50_000, 200_000)):
    """log Z of a density with one mode, and its standard error: the last of some importance
    samples, each from a t distribution with the moments of the one before.
    """
    for n in sizes:
        proposal = StudentT(mean, covariance, df=df)
        draws = proposal.sample(n, np.random.default_rng(n))
        parts = [log_density(x) - proposal.log_density(x) for x in np.array_split(draws, 100)]
        log_weights = np.concatenate(parts)
        log_z = logsumexp(log_weights) - np.log(n)
        weights = np.exp(log_weights - log_z)
        mean = weights @ draws / weights.sum()
        covariance = 1.2 * np.cov(draws.T, aweights=weights)
    return float(log_z), float(np.std(weights) / np.sqrt(n))


# ---- Markdown
def ratio(slow, fast):
    """Median and quartiles of the rounds' ratios, as text."""
    low, middle, high = np.percentile(slow / fast, [25, 50, 75])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def table(*columns):
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def groups(records, *names):
    """Records by the values of the named fields, in the order in which these come."""
    found = {}
    for record in records:
        found.setdefault(tuple(record[name] for name in names), []).append(record)
    return found


COVERAGE = ("runs", "converged", "cover", "share", "> 3 SE", "> 5 SE", "RMSE, largest")
COVERAGE += ("median SE", "s")


def coverage_cells(records):
    """Cells of a row of coverage; all but those of runs, standard errors and seconds, which are
    medians, are of the runs that converged.

    A share fails if it is of 40 runs or more, and below the 0.05 % quantile of Bin(n, 0.94).
    """
    good = [each for each in records if each["converged"]]
    off, error = (np.array([each[name] for each in good]) for name in ("off", "error"))
    far = np.abs(off) / np.maximum(error, TINY)
    covers = sum(each["covers"] for each in good)
    fails = len(good) >= 40 and covers < binom.ppf(5e-4, len(good), 0.94)
    return (
        len(records),
        len(good),
        covers,
        f"{covers / len(good):.1%}{', fails' * fails}" if good else "",
        np.sum(far > 3),
        np.sum(far > 5),
        f"{np.sqrt(np.mean(off**2)):.3f}, {max(off, key=abs):+.3f}" if good else "",
        f"{np.median([each['error'] for each in records]):.3f}",
        f"{np.median([each['seconds'] for each in records]):.2f}",
    )


def print_coverage(records, *names, medians=()):
    """A line for each value of the named fields, with medians of others; records without an error
    are no runs.
    """
    table(*names, *COVERAGE, *medians)
    for values, found in groups([each for each in records if "off" in each], *names).items():
        more = (np.median([each[name] for each in found]) for name in medians)
        row(*values, *coverage_cells(found), *(f"{value:,.6g}" for value in more))


# ---- data
def reference(name):
    """Arrays of a file of the reference data."""
    file = find_shared_data(name)
    if file is None:
        raise FileNotFoundError(f"{name}: set SKLPF_DATA to the folder of the reference data")
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def binary(name, part="train"):
    """Rows of 0 and 1, float32."""
    data = reference(f"binary/{name}.npz")
    n = int(data["n_features"])
    return np.unpackbits(data[part], axis=1)[:, :n].astype(np.float32)


def digits():
    """scikit-learn's, as rows of 0 and 1, float32."""
    return (load_digits().data > 7).astype(np.float32)

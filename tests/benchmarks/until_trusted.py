"""Does what UntilTrusted answers cover, over all that it tries? Problems made anew for each seed.

    python tests/benchmarks/until_trusted.py [--seeds 50] [--first 0] [--kinds NAME ...]
    [--max-seconds 20] [--results until_trusted.jsonl] [--report]

Mixtures of one to three normal or t distributions with random shapes, rotated and bent, and
logistic regressions, from bases that are far wider; posteriors in prior transforms; RBMs that are
enumerated. log Z has a closed form but for the regressions, where importance sampling from a t
distribution at the mode has a standard error below 0.005. UntilTrusted has its defaults (for RBMs
those of larger ones, as Exact would answer), or "short runs first": SMC with 30, 100 and 300 levels
come before. It begins no further estimator after `--max-seconds`, here of the processor, so that a
busy machine changes no answer.
Every run is appended to the results file as it ends, and an interrupted benchmark goes on where it
stopped. Prints Markdown, by kind and by the attempt whose number was the answer.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
import types
import warnings
from unittest import mock

import numpy as np
from adaptive_smc import of_family
from fresh_models import exact, rbm
from posteriors import LOG_2PI, read
from scipy.optimize import minimize
from scipy.special import expit, gammaln, logsumexp

from sklpf import (
    SMC,
    AdaptiveSMC,
    BernoulliRBM,
    Gaussian,
    GeometricPath,
    ParallelTempering,
    StudentT,
    UntilTrusted,
)
from sklpf.interop import from_prior_transform

_MADE_BEFORE = 1000  # of the family in adaptive_smc.py
_TINY = 1e-6  # nats


class Parts:
    """Normal or t distributions, rotated, and bent along the square of the first coordinate."""

    def __init__(self, rng, d, df=np.inf):
        n_parts = int(rng.integers(1, 4))
        self.d = d
        self.df = df
        self.log_weights = np.log(rng.dirichlet(np.full(n_parts, 3.0)))
        self.means = rng.normal(size=(n_parts, d)) * rng.uniform(0, 4)
        widths = np.exp(0.5 * rng.normal(size=(n_parts, d)))
        rotations = np.linalg.qr(rng.normal(size=(n_parts, d, d)))[0]
        self.roots = rotations * widths[:, np.newaxis]
        self.inverses = np.linalg.inv(self.roots)
        self.log_heights = self.log_weights - np.log(widths).sum(axis=1) + self.log_norm()
        self.bend = rng.choice([0.0, rng.uniform(0, 0.3)])
        self.log_partition = float(5 * rng.normal())

    def log_norm(self):
        if np.isinf(self.df):
            return -0.5 * self.d * LOG_2PI
        half = 0.5 * self.df
        whole = half + 0.5 * self.d
        return gammaln(whole) - gammaln(half) - 0.5 * self.d * np.log(self.df * np.pi)

    def sample(self, n, rng):
        which = rng.choice(len(self.means), n, p=np.exp(self.log_weights))
        z = rng.normal(size=(n, self.d))
        if np.isfinite(self.df):
            z /= np.sqrt(rng.chisquare(self.df, size=(n, 1)) / self.df)
        x = self.means[which] + np.einsum("nij,nj->ni", self.roots[which], z)
        x[:, 1] += self.bend * x[:, 0] ** 2
        return x

    def parts(self, x):
        """Log density of each part, and minus its slope in half of the squared distance."""
        straight = np.array(x)
        straight[:, 1] -= self.bend * x[:, 0] ** 2
        away = np.einsum("kij,nkj->nki", self.inverses, straight[:, np.newaxis] - self.means)
        squares = np.sum(away**2, axis=2)
        if np.isinf(self.df):
            return self.log_heights - 0.5 * squares, np.ones_like(squares), away
        log_parts = -0.5 * (self.df + self.d) * np.log1p(squares / self.df)
        return self.log_heights + log_parts, (self.df + self.d) / (self.df + squares), away

    def log_density(self, x):
        return self.log_partition + logsumexp(self.parts(x)[0], axis=1)

    def grad(self, x):
        log_parts, pull, away = self.parts(x)
        shares = pull * np.exp(log_parts - logsumexp(log_parts, axis=1, keepdims=True))
        slope = -np.einsum("nk,nki,kij->nj", shares, away, self.inverses)
        slope[:, 0] -= 2 * self.bend * x[:, 0] * slope[:, 1]
        return slope

    def path(self, rng, has_gradient):
        grad = self.grad if has_gradient else None
        base = Gaussian(np.zeros(self.d), np.exp(rng.uniform(np.log(5), np.log(100))) ** 2)
        return GeometricPath(self.log_density, grad=grad, base=base)


# ---- kinds: a path, its log Z with a standard error, and draws or None
def bent_normals(rng, seed):
    target = Parts(rng, int(rng.integers(2, 9)))
    return target.path(rng, bool(rng.integers(2))), target.log_partition, 0.0, None


def bent_students(rng, seed):
    target = Parts(rng, int(rng.integers(2, 9)), df=rng.uniform(2, 10))
    return target.path(rng, bool(rng.integers(2))), target.log_partition, 0.0, None


def many_dimensions(rng, seed):
    df = rng.choice([np.inf, rng.uniform(4, 20)])
    target = Parts(rng, int(rng.integers(21, 31)), df)
    return target.path(rng, True), target.log_partition, 0.0, None


def with_draws(rng, seed):
    """Four chains of independent draws."""
    df = rng.choice([np.inf, rng.uniform(3, 10)])
    target = Parts(rng, int(rng.integers(2, 9)), df)
    n = int(np.exp(rng.uniform(np.log(20), np.log(1000))))
    draws = target.sample(4 * n, rng).reshape(4, n, target.d)
    return target.path(rng, False), target.log_partition, 0.0, draws


def narrow_in_prior(rng, seed):
    log_likelihood, transform, d, truth = of_family(_MADE_BEFORE + seed)
    path = from_prior_transform(log_likelihood, transform, d, vectorized=True)
    return path, float(truth), 0.0, None


def logistic(rng, seed):
    d = int(rng.integers(2, 9))
    n = int(rng.integers(20, 200))
    scale = 10 ** rng.uniform(0, 2)
    A = np.column_stack([np.ones(n), rng.normal(size=(n, d - 1)) * np.exp(rng.normal(size=d - 1))])
    signed = A * np.where(rng.random(n) < expit(A @ rng.normal(size=d)), 1.0, -1.0)[:, np.newaxis]

    def log_density(w):
        log_prior = -0.5 * np.sum((w / scale) ** 2, axis=1) - d * (np.log(scale) + LOG_2PI / 2)
        return log_prior - np.logaddexp(0, -w @ signed.T).sum(axis=1)

    def grad(w):
        return expit(-w @ signed.T) @ signed - w / scale**2

    def hessian(w):
        shares = expit(signed @ w)
        return (signed * (shares * (1 - shares))[:, np.newaxis]).T @ signed + np.eye(d) / scale**2

    mode = minimize(
        lambda w: -log_density(w[np.newaxis])[0],
        np.zeros(d),
        jac=lambda w: -grad(w[np.newaxis])[0],
        hess=hessian,
        method="trust-exact",
    ).x
    path = GeometricPath(log_density, grad=grad, base=Gaussian(np.zeros(d), scale**2))
    return path, *by_importance(log_density, mode, 1.5 * np.linalg.inv(hessian(mode))), None


def by_importance(log_density, mean, covariance):
    """log Z and its standard error; the proposal is fitted to its own draws three times."""
    for n in (20_000, 20_000, 50_000, 200_000):
        proposal = StudentT(mean, covariance, df=5)
        draws = proposal.sample(n, np.random.default_rng(n))
        log_weights = log_density(draws) - proposal.log_density(draws)
        log_z = logsumexp(log_weights) - np.log(n)
        weights = np.exp(log_weights - log_z)
        mean = weights @ draws / weights.sum()
        covariance = 1.2 * np.cov(draws.T, aweights=weights)
    return float(log_z), float(np.std(weights) / np.sqrt(n))


def trained_rbm(rng, seed):
    path, (truth, _) = rbm(rng, seed)
    return path, float(truth[0]), 0.0, None


def random_rbm(rng, seed):
    """Without training: weights from weak to beyond a phase transition."""
    n_hidden, n_visible = int(rng.integers(5, 16)), int(rng.integers(10, 61))
    shapes = (n_hidden, n_visible), n_visible, n_hidden
    scale = rng.uniform(0.2, 3)
    model = BernoulliRBM.from_parameters(*(rng.normal(scale=scale, size=s) for s in shapes))
    path = model.path()
    return path, float(exact(path)[0][0]), 0.0, None


KINDS = {
    "mixtures of normals, bent, 2 to 8-D": bent_normals,
    "mixtures of t, bent, 2 to 8-D": bent_students,
    "mixtures, bent, 21 to 30-D": many_dimensions,
    "mixtures, bent, with draws": with_draws,
    "mixtures in a prior transform, 1 to 12-D": narrow_in_prior,
    "logistic regressions, 2 to 8-D": logistic,
    "RBMs, trained": trained_rbm,
    "RBMs, random weights": random_rbm,
    "mixtures of normals, short runs first": bent_normals,
    "mixtures of t, short runs first": bent_students,
    "RBMs, random weights, short runs first": random_rbm,
}
TEMPERING = [ParallelTempering(n_sweeps=n, tol=0.1) for n in (16_384, 65_536)]
PROCESSOR = types.SimpleNamespace(time=time.process_time, perf_counter=time.process_time)
SHORT = [SMC(n_temperatures=n) for n in (30, 100, 300)]


def estimators_of(kind):
    """None for the defaults, which `Exact` answers if an RBM is small."""
    is_rbm = kind.startswith("RBMs")
    if kind.endswith("short runs first"):
        return SHORT + ([SMC(n_temperatures=1000)] if is_rbm else [AdaptiveSMC()]) + TEMPERING
    return [ParallelTempering(), SMC(n_temperatures=1000), *TEMPERING] if is_rbm else None


def run(kind, seed, max_seconds):
    rng = np.random.default_rng([43, list(KINDS).index(kind), seed])
    row = {"kind": kind, "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, truth, truth_error, draws = KINDS[kind](rng, seed)
        if truth_error > 0.005:
            return row | {"left out": truth_error}
        started = time.process_time()
        estimator = UntilTrusted(estimators_of(kind), max_seconds=max_seconds, random_state=seed)
        with mock.patch("sklpf._utils.context.time", PROCESSOR):
            result = estimator.fit(path, draws=draws).result_
    seconds = time.process_time() - started
    values = [each.log_partition for each in estimator.attempts_]
    low, high = result.interval()
    slack = 1.96 * truth_error + _TINY
    return row | {
        "off": result.log_partition - truth,
        "error": float(np.hypot(result.std_error, truth_error)),
        "converged": bool(result.converged),
        "covers": bool(low - slack <= truth <= high + slack),
        "answered": values.index(result.log_partition) + 1,
        "method": result.method,
        "attempts": [
            [each.method, each.log_partition - truth, float(each.std_error), bool(each.converged)]
            for each in estimator.attempts_
        ],
        "alarms": sorted({alarm.kind for alarm in result.alarms}),
        "seconds": seconds,
    }


def report(rows):
    rows = [row for row in rows if "left out" not in row]
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["kind"]].append(row)
    for row in sorted(rows, key=lambda row: row["answered"]):
        name = f"attempt {row['answered']}" if row["converged"] else "none (flagged)"
        groups[f"answered by {name}"].append(row)
    groups["all"] = rows
    print("| problems | runs | converged | cover | > 3 SE | > 5 SE | median SE | mean s |")
    print("|" + "---|" * 8)
    for name, found in groups.items():
        ends = [row for row in found if row["converged"]]
        far = np.array([abs(row["off"]) / max(row["error"], _TINY) for row in ends])
        covers = sum(row["covers"] for row in ends)
        error = np.median([row["error"] for row in ends]) if ends else np.nan
        seconds = np.mean([row["seconds"] for row in found])
        print(
            f"| {name} | {len(found)} | {len(ends)} | {covers} | {np.sum(far > 3)} |"
            f" {np.sum(far > 5)} | {error:.3f} | {seconds:.1f} |"
        )
    for row in rows:
        if row["converged"] and abs(row["off"]) > 3 * max(row["error"], _TINY):
            print("*", row["kind"], row["seed"], f"{row['off']:+.3f} at {row['error']:.3f}", row)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--max-seconds", type=float, default=20)
    parser.add_argument("--results", default="until_trusted.jsonl")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()

    done = {(row["kind"], row["seed"]) for row in read(options.results)}
    seeds = [] if options.report else range(options.first, options.first + options.seeds)
    for seed in seeds:
        for kind in options.kinds:
            if (kind, seed) not in done:
                row = run(kind, seed, options.max_seconds)
                with open(options.results, "a") as file:
                    file.write(json.dumps(row, default=float) + "\n")
    report(read(options.results))


if __name__ == "__main__":
    main()

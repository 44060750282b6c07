"""Are Bayes factors by bridge sampling calibrated? doc/benchmarks/bayes_factors.md

python tests/benchmarks/bayes_factors.py --simulations 1000

Pairs of models with conjugate priors, so that draws of the posterior are exact.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.special import gammaln, log_expit
from scipy.stats import multivariate_normal, norm

from sklpf import BridgeSampling
from sklpf.testing import check_bayes_factors

DRAWS = (4, 100)


def bridge(log_density, draws, rng):
    return BridgeSampling("normal", checks=False, random_state=int(rng.integers(2**31))).fit(
        log_density, draws=draws
    )


class Linear:
    """y = X b + noise of unit variance, with or without the last columns; b ~ N(0, spread^2)."""

    def __init__(self, n, few, many, spread):
        self.X = np.random.default_rng(0).normal(size=(n, many))
        self.columns = {"few": few, "many": many}
        self.spread = spread

    def simulate(self, name, rng):
        X = self.X[:, : self.columns[name]]
        return X @ rng.normal(scale=self.spread, size=X.shape[1]) + rng.normal(size=len(X))

    def posterior(self, name, y, rng):
        X = self.X[:, : self.columns[name]]
        covariance = np.linalg.inv(X.T @ X + np.eye(X.shape[1]) / self.spread**2)
        draws = rng.multivariate_normal(covariance @ X.T @ y, covariance, size=DRAWS)

        def log_density(b):
            return norm.logpdf(y[:, np.newaxis], X @ b.T).sum(axis=0) + norm.logpdf(
                b, scale=self.spread
            ).sum(axis=1)

        return log_density, draws

    def exact(self, name, y):
        X = self.X[:, : self.columns[name]]
        return multivariate_normal.logpdf(
            y, np.zeros(len(y)), np.eye(len(y)) + self.spread**2 * X @ X.T
        )

    def bic(self, name, y):
        X = self.X[:, : self.columns[name]]
        rest = y - X @ np.linalg.lstsq(X, y)[0]
        return norm.logpdf(rest).sum() - X.shape[1] / 2 * np.log(len(y))


class Counts:
    """Poisson with a gamma prior, or geometric with a beta prior, of n counts."""

    def __init__(self, n, a):
        self.n = n
        self.a = a

    def simulate(self, name, rng):
        if name == "poisson":
            return rng.poisson(rng.gamma(self.a), size=self.n)
        return rng.geometric(rng.beta(self.a, self.a), size=self.n) - 1

    def posterior(self, name, y, rng):
        total = y.sum()
        constant = -gammaln(y + 1).sum()
        if name == "poisson":
            draws = np.log(rng.gamma(self.a + total, 1 / (1 + self.n), size=(*DRAWS, 1)))

            def log_density(u):  # with the Jacobian of log
                u = u[:, 0]
                return (self.a + total) * u - (1 + self.n) * np.exp(u) + constant - gammaln(self.a)

            return log_density, draws
        p = rng.beta(self.a + self.n, self.a + total, size=(*DRAWS, 1))
        log_beta = 2 * gammaln(self.a) - gammaln(2 * self.a)

        def log_density(u):
            u = u[:, 0]
            return (self.a + self.n) * log_expit(u) + (self.a + total) * log_expit(-u) - log_beta

        return log_density, np.log(p) - np.log1p(-p)

    def exact(self, name, y):
        total = y.sum()
        if name == "poisson":
            return (
                gammaln(self.a + total)
                - (self.a + total) * np.log(1 + self.n)
                - gammaln(self.a)
                - gammaln(y + 1).sum()
            )
        one, two = self.a + self.n, self.a + total
        return (
            gammaln(one)
            + gammaln(two)
            - gammaln(one + two)
            - (2 * gammaln(self.a) - gammaln(2 * self.a))
        )

    def bic(self, name, y):
        mean = max(y.mean(), 1e-9)
        if name == "poisson":
            best = y.sum() * np.log(mean) - self.n * mean - gammaln(y + 1).sum()
        else:
            p = 1 / (1 + mean)
            best = self.n * np.log(p) + y.sum() * np.log1p(-p)
        return best - 0.5 * np.log(self.n)


class Absolute:
    """y ~ N(|m|, 1) with m ~ N(0, spread^2), whose posterior has two modes, or y ~ N(0, 1 + s)."""

    def __init__(self, n, spread):
        self.n = n
        self.spread = spread

    def simulate(self, name, rng):
        mean = 0.0 if name == "zero" else abs(rng.normal(scale=self.spread))
        return mean + rng.normal(size=self.n)

    def _curve(self, y):
        m = np.linspace(-8 * self.spread, 8 * self.spread, 20_001)
        return m, norm.logpdf(y[:, np.newaxis], np.abs(m)).sum(axis=0) + norm.logpdf(
            m, scale=self.spread
        )

    def posterior(self, name, y, rng, missing=False):
        def log_density(m):
            return norm.logpdf(y[:, np.newaxis], np.abs(m[:, 0])).sum(axis=0) + norm.logpdf(
                m[:, 0], scale=self.spread
            )

        m, log_f = self._curve(y)
        cumulated = np.cumsum(np.exp(log_f - log_f.max()))
        draws = np.interp(rng.random((*DRAWS, 1)) * cumulated[-1], cumulated, m)
        return log_density, np.abs(draws) if missing else draws

    def exact(self, name, y):
        if name == "zero":
            return norm.logpdf(y).sum()
        m, log_f = self._curve(y)
        return np.log(np.sum(np.exp(log_f - log_f.max())) * (m[1] - m[0])) + log_f.max()


DESIGNS = {
    "regression, 1 or 2 predictors, 10 rows, spread 1": (Linear(10, 1, 2, 1.0), ("few", "many")),
    "regression, 1 or 2 predictors, 10 rows, spread 0.3": (
        Linear(10, 1, 2, 0.3),
        ("few", "many"),
    ),
    "regression, 1 or 2 predictors, 30 rows, spread 5": (Linear(30, 1, 2, 5.0), ("few", "many")),
    "regression, 2 or 5 predictors, 30 rows, spread 0.3": (
        Linear(30, 2, 5, 0.3),
        ("few", "many"),
    ),
    "regression, 3 or 8 predictors, 40 rows, spread 0.2": (
        Linear(40, 3, 8, 0.2),
        ("few", "many"),
    ),
    "Poisson or geometric, 5 counts, a = 1": (Counts(5, 1.0), ("poisson", "geometric")),
    "Poisson or geometric, 5 counts, a = 3": (Counts(5, 3.0), ("poisson", "geometric")),
    "Poisson or geometric, 20 counts, a = 2": (Counts(20, 2.0), ("poisson", "geometric")),
    "mean or none by |m|, 5 values, spread 2": (Absolute(5, 2.0), ("zero", "absolute")),
    "mean or none by |m|, 10 values, spread 1": (Absolute(10, 1.0), ("zero", "absolute")),
}


def check(design, names, log_evidence, n):
    """The outcome in words."""
    simulators = {name: lambda rng, name=name: design.simulate(name, rng) for name in names}
    try:
        found = check_bayes_factors(simulators, log_evidence, n_simulations=n, random_state=1)
    except AssertionError as error:
        return f"fails: {str(error).split('(p =')[0]}"
    worst = min(found.p_values.values())
    return f"passes, smallest p {worst:.2g}, {found.n_left_out} left out"


def main(n):
    """A line for each design and evidence."""
    rng = np.random.default_rng(0)
    for title, (design, names) in DESIGNS.items():
        started = time.perf_counter()

        def by_bridge(name, y, design=design, **options):
            if name == "zero":
                return design.exact(name, y)
            log_density, draws = design.posterior(name, y, rng, **options)
            if isinstance(design, Absolute):
                estimator = BridgeSampling("mixture", checks=False, random_state=0)
                return estimator.fit(log_density, draws=draws)
            return bridge(log_density, draws, rng)

        print(f"| {title} | bridge | {check(design, names, by_bridge, n)} |", flush=True)
        print(f"|  | exact | {check(design, names, design.exact, n)} |", flush=True)
        if isinstance(design, Absolute):

            def missing(name, y, by_bridge=by_bridge):
                found = by_bridge(name, y, **({"missing": True} if name != "zero" else {}))
                return getattr(found, "log_partition_", found)  # whether it converged or not

            said = check(design, names, missing, n)
            print(f"|  | bridge of draws of one of two modes, its alarms ignored | {said} |")
        else:
            print(f"|  | BIC | {check(design, names, design.bic, n)} |")
        print(f"   {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--simulations", type=int, default=1000)
    warnings.simplefilter("ignore")
    main(parser.parse_args().simulations)

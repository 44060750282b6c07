"""Do runs on ordinary posteriors converge, and do they cover? Twenty models that users meet, from a
base at the mode and from the prior.

    python tests/benchmarks/posteriors.py [--seeds 3] [--results posteriors.jsonl]
        [--posteriors WORD ...] [--estimators WORD ...]

Regressions with an unknown scale, logistic and Poisson regressions, hierarchies in non-centred
form, Gaussian processes' hyperparameters, a GARCH and autoregressions, on data that are simulated
here. The true log evidence is importance sampling's, with 200,000 draws from a Student t that is
fitted to draws before. Every run is appended to the results as it ends, and an interrupted
benchmark goes on where it stopped. Prints Markdown.
"""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
from measure import LOG_2PI, by_importance, judged, measured, options, print_coverage
from scipy.special import expit, gammaln, logsumexp

from sklpf import AIS, HAIS, RTS, SMC, AdaptiveSMC, Gaussian, GeometricPath, ParallelTempering
from sklpf.transitions import HMC, RandomWalk

DIFFERENCE = 1e-5  # steps of gradients by differences
SMALL = 0.02  # nats: smaller errors count as covered


class Posterior:
    """A log posterior of points (n, d) with a normal prior, independent in every coordinate."""

    def __init__(self, log_likelihood, prior_scale, start=None):
        self.log_likelihood = log_likelihood
        self.scale = np.asarray(prior_scale, dtype=float)
        self.start = np.zeros(len(self.scale)) if start is None else np.asarray(start, dtype=float)

    def log_prior(self, x):
        return -np.sum((x / self.scale) ** 2 / 2 + np.log(self.scale) + LOG_2PI / 2, axis=1)

    def log_density(self, x):
        with np.errstate(all="ignore"):
            return self.log_prior(x) + self.log_likelihood(x)

    def grad(self, x):
        """Central differences, a step in every coordinate of every point at once."""
        n, d = x.shape
        steps = DIFFERENCE * self.scale * np.eye(d)
        ends = [(x[:, np.newaxis] + sign * steps).reshape(n * d, d) for sign in (1, -1)]
        above, below = (self.log_density(end).reshape(n, d) for end in ends)
        with np.errstate(invalid="ignore"):
            return (above - below) / (2 * DIFFERENCE * self.scale)


def normal_errors(residuals, log_scale):
    """Log density of residuals (n, rows), whose scale is exp(log_scale), (n,)."""
    standardised = residuals * np.exp(-log_scale)[:, np.newaxis]
    return -0.5 * np.sum(standardised**2, axis=1) - residuals.shape[1] * (log_scale + LOG_2PI / 2)


def design(rng, n, d, scales=1.0):
    return np.c_[np.ones(n), rng.normal(size=(n, d - 1)) * scales]


def linear(seed, n, d, scales=1.0, df=None):
    """Coefficients and log sigma; with `df` the noise and the model are Student t."""
    rng = np.random.default_rng(seed)
    A = design(rng, n, d, scales)
    noise = rng.normal(size=n) if df is None else rng.standard_t(df, size=n)
    y = A @ rng.normal(size=d) + 0.5 * noise

    def log_likelihood(x):
        residuals, log_scale = y - x[:, :d] @ A.T, x[:, d]
        if df is None:
            return normal_errors(residuals, log_scale)
        squares = (residuals * np.exp(-log_scale)[:, np.newaxis]) ** 2 / df
        constant = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(df * np.pi) / 2
        return -(df + 1) / 2 * np.sum(np.log1p(squares), axis=1) + n * (constant - log_scale)

    return Posterior(log_likelihood, [*[5.0] * d, 2.0])


def logistic(seed, n, d):
    rng = np.random.default_rng(seed)
    A = design(rng, n, d)
    y = rng.random(n) < expit(A @ rng.normal(size=d))
    sign = np.where(y, 1.0, -1.0)
    return Posterior(lambda x: -np.sum(np.logaddexp(0, -(x @ A.T) * sign), axis=1), [3.0] * d)


def poisson(seed, n, d, dispersed=False):
    """Counts; negative binomial ones, with log dispersion, if `dispersed`."""
    rng = np.random.default_rng(seed)
    A = design(rng, n, d, 0.5)
    mean = np.exp(A @ (0.5 * rng.normal(size=d)) + 0.5)
    y = rng.poisson(mean * (rng.gamma(3, 1 / 3, size=n) if dispersed else 1.0))

    def log_likelihood(x):
        eta = x[:, :d] @ A.T
        if not dispersed:
            return np.sum(y * eta - np.exp(eta) - gammaln(y + 1), axis=1)
        size = np.exp(x[:, d])[:, np.newaxis]
        ways = gammaln(y + size) - gammaln(size) - gammaln(y + 1)
        log_total = np.logaddexp(np.log(size), eta)
        return np.sum(ways + size * (np.log(size) - log_total) + y * (eta - log_total), axis=1)

    return Posterior(log_likelihood, [3.0] * d + [1.5] * dispersed)


def schools():
    """Rubin's eight schools: mu, log tau and eight effects in units of tau."""
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    sigma = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def log_likelihood(x):
        effects = x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:]
        return np.sum(-(((y - effects) / sigma) ** 2) / 2 - np.log(sigma) - LOG_2PI / 2, axis=1)

    return Posterior(log_likelihood, [10.0, 1.5, *[1.0] * 8])


def groups(seed, kind, n_groups, n_each):
    """mu, log tau and intercepts of groups in units of tau."""
    rng = np.random.default_rng(seed)
    member = np.repeat(np.arange(n_groups), n_each)
    eta = 0.3 + 0.7 * rng.normal(size=n_groups)[member]
    y = rng.poisson(np.exp(eta)) if kind == "poisson" else rng.random(len(eta)) < expit(eta)

    def log_likelihood(x):
        eta = (x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:])[:, member]
        if kind == "poisson":
            return np.sum(y * eta - np.exp(eta) - gammaln(y + 1), axis=1)
        return -np.sum(np.logaddexp(0, np.where(y, -eta, eta)), axis=1)

    return Posterior(log_likelihood, [2.0, 1.0, *[1.0] * n_groups])


def gaussian_process(seed, n, d=1):
    """Log amplitude, d log lengths and log noise of a squared exponential."""
    rng = np.random.default_rng(seed)
    inputs = rng.random((n, d)) * 4
    y = np.sin(2 * inputs).sum(axis=1) + 0.2 * rng.normal(size=n)
    squares = (inputs[:, np.newaxis] - inputs) ** 2

    def log_likelihood(x):
        out = np.full(len(x), -np.inf)
        usable = np.all(np.abs(x) < 15, axis=1)
        x = x[usable]
        distances = np.einsum("ijk,mk->mij", squares, np.exp(-2 * x[:, 1 : 1 + d]))
        covariance = np.exp(2 * x[:, 0])[:, np.newaxis, np.newaxis] * np.exp(-distances / 2)
        noise = np.exp(2 * x[:, -1]) + 1e-6
        covariance[:, np.arange(n), np.arange(n)] += noise[:, np.newaxis]
        quadratic = np.linalg.solve(covariance, np.broadcast_to(y[:, np.newaxis], (len(x), n, 1)))
        log_det = np.linalg.slogdet(covariance)[1]
        out[usable] = -0.5 * (quadratic[..., 0] @ y + log_det + n * LOG_2PI)
        return out

    return Posterior(log_likelihood, [1.0] * (d + 2), start=[0.0, *[0.0] * d, -1.0])


def garch(seed, n):
    """log omega and the logits of (alpha, beta, rest), of a GARCH(1, 1)."""
    rng = np.random.default_rng(seed)
    y, variance = np.empty(n), 1.0
    for t in range(n):
        y[t] = np.sqrt(variance) * rng.normal()
        variance = 0.2 + 0.2 * y[t] ** 2 + 0.6 * variance

    def log_likelihood(x):
        logits = np.c_[x[:, 1:], np.zeros(len(x))]
        alpha, beta, _ = np.exp(logits - logsumexp(logits, axis=1, keepdims=True)).T
        omega, variance = np.exp(x[:, 0]), np.full(len(x), y.var())
        total = np.zeros(len(x))
        for value in y:
            total -= 0.5 * (LOG_2PI + np.log(variance) + value**2 / variance)
            variance = omega + alpha * value**2 + beta * variance
        return total

    return Posterior(log_likelihood, [1.5, 1.5, 1.5])


def autoregression(seed, n, order):
    """A constant, `order` coefficients and log sigma, given the first values."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n)
    for t in range(order, n):
        y[t] = 0.3 + y[t - order : t] @ np.linspace(0.1, 0.6, order) + 0.5 * rng.normal()
    lagged = [y[order - lag : n - lag] for lag in range(1, order + 1)]
    A = np.stack([np.ones(n - order), *lagged], axis=1)

    def log_likelihood(x):
        return normal_errors(y[order:] - x[:, :-1] @ A.T, x[:, -1])

    return Posterior(log_likelihood, [5.0, *[1.0] * order, 2.0])


POSTERIORS = {
    "linear, 2 coefficients, 20 rows": functools.partial(linear, 0, 20, 2),
    "linear, 2 coefficients, 100 rows": functools.partial(linear, 1, 100, 2),
    "linear, 5 coefficients, 40 rows": functools.partial(linear, 2, 40, 5),
    "linear, scales 1 to 100": functools.partial(linear, 3, 40, 3, np.array([1.0, 100.0])),
    "linear, Student t noise": functools.partial(linear, 4, 50, 3, 1.0, 4.0),
    "logistic, 3 coefficients": functools.partial(logistic, 5, 50, 3),
    "logistic, 6 coefficients": functools.partial(logistic, 6, 80, 6),
    "logistic, 10 coefficients": functools.partial(logistic, 7, 60, 10),
    "Poisson, 3 coefficients": functools.partial(poisson, 8, 40, 3),
    "Poisson, 5 coefficients": functools.partial(poisson, 9, 80, 5),
    "negative binomial": functools.partial(poisson, 10, 60, 3, True),
    "eight schools": schools,
    "groups, Poisson": functools.partial(groups, 11, "poisson", 6, 8),
    "groups, logistic": functools.partial(groups, 12, "logistic", 5, 12),
    "Gaussian process, 15 rows": functools.partial(gaussian_process, 13, 15),
    "Gaussian process, 30 rows": functools.partial(gaussian_process, 14, 30),
    "Gaussian process, 2 inputs": functools.partial(gaussian_process, 15, 20, 2),
    "GARCH(1, 1)": functools.partial(garch, 16, 150),
    "AR(1)": functools.partial(autoregression, 17, 60, 1),
    "AR(2)": functools.partial(autoregression, 18, 100, 2),
}
BASES = ("mode", "prior")
ESTIMATORS = {
    "HAIS, dense": HAIS(n_temperatures=300, transition=HMC(metric="dense")),
    "AIS, random walk": AIS(
        n_temperatures=1000, ladder="adaptive", transition=RandomWalk(metric="dense")
    ),
    "SMC": SMC(),
    "AdaptiveSMC, random walk": AdaptiveSMC(transition=RandomWalk(metric="dense")),
    "HAIS, dense, 3000 levels": HAIS(n_temperatures=3000, transition=HMC(metric="dense")),
    "ParallelTempering": ParallelTempering(),
    "RTS": RTS(),
}
# gradients by differences take minutes where a density is a loop or a matrix a point
SLOW = ("Gaussian process", "GARCH")
WITHOUT_GRADIENT = ("AIS, random walk", "SMC", "AdaptiveSMC, random walk")


@functools.lru_cache(maxsize=1)
def reference(name):
    """A posterior, its mode, log Z and the standard error of that."""
    posterior = POSTERIORS[name]()
    mode = Gaussian.at_mode(posterior.log_density, posterior.start)
    truth = by_importance(posterior.log_density, mode.mean, 1.5 * mode.covariance)
    return posterior, mode, *truth


def run(posterior, base, estimator, seed):
    known, mode, *truth = reference(posterior)
    prior = Gaussian(np.zeros(len(known.scale)), known.scale**2)
    start = mode if base == "mode" else prior
    path = GeometricPath(known.log_density, grad=known.grad, base=start)
    records = judged(ESTIMATORS[estimator].set_params(random_state=seed), path, *truth)
    return [each | {"covers": each["covers"] or abs(each["off"]) < SMALL} for each in records]


def main():
    names = {"posteriors": POSTERIORS, "estimators": ESTIMATORS}
    args = options(__doc__, "posteriors.jsonl", 3, **names)
    runs = product(args.posteriors, BASES, args.estimators, args.seeds)
    tasks = [
        {"posterior": name, "base": base, "estimator": estimator, "seed": seed}
        for name, base, estimator, seed in runs
        if estimator in WITHOUT_GRADIENT or not name.startswith(SLOW)
    ]
    records = measured(args.results, tasks, run)
    print_coverage(records, "posterior", "base")
    print_coverage(records, "estimator", "base")


if __name__ == "__main__":
    main()

"""Are posteriors whose likelihood takes milliseconds right or flagged, and how many evaluations do
they need? Nine models of public data, beside dynesty.

    python tests/benchmarks/slow_posteriors.py [--posteriors WORD ...] [--methods WORD ...]
        [--seeds 3] [--most 300_000] [--results slow_posteriors.jsonl]

Data come from statsmodels and scikit-learn, or are tables in this file. Likelihoods take one point
and are written as a user would write them. Priors are in the docstrings, where "log-normal (m, s)"
has the median m, and its log the standard deviation s. dynesty has 500 live points and random
walks: it warns that its default, draws within ellipsoids, is inefficient for some of these. It and
UntilTrusted end after `--most` evaluations, and are then not trusted. Every run is appended to the
results as it ends, and an interrupted benchmark goes on where it stopped.

Prints Markdown: medians of evaluations, of their processor milliseconds and of standard errors, the
mean of log Z, and of trusted runs the largest distance, in standard errors, from the mean of
dynesty's runs, or, of the Nile, from quadrature.
"""

from __future__ import annotations

import time
import warnings
from itertools import product

import numpy as np
from measure import LOG_2PI, Counted, groups, measured, options, row, table
from scipy.integrate import solve_ivp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, toeplitz
from scipy.special import gammaln, logsumexp, ndtr, ndtri
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from statsmodels import datasets

from sklpf import UntilTrusted
from sklpf.interop import from_prior_transform
from sklpf.partition import ImportanceSampling


def log_normal(u, medians, spreads=1.0):
    return np.asarray(medians) * np.exp(spreads * ndtri(u))


def positive_normal(u, mean, scale):
    below = ndtr(-mean / scale)
    return mean + scale * ndtri(below + u * (1 - below))


def of_gaussian(y, covariance):
    """Log density of N(0, covariance) at y; -inf where rounding leaves no Cholesky factor."""
    try:
        factor = cho_factor(covariance, lower=True, overwrite_a=True)
    except (LinAlgError, ValueError):
        return -np.inf
    log_det = 2 * np.log(np.diag(factor[0])).sum()
    return -0.5 * (y @ cho_solve(factor, y) + log_det + len(y) * LOG_2PI)


def kalman(y, transition, loading, noise, irregular, state, covariance):
    """Log density of a series in a linear Gaussian state-space model, by its filter."""
    total = -0.5 * len(y) * LOG_2PI
    for value in y:
        gain = covariance @ loading
        variance = loading @ gain + irregular
        residual = value - loading @ state
        total -= 0.5 * (np.log(variance) + residual**2 / variance)
        state = transition @ (state + gain * (residual / variance))
        covariance = covariance - np.outer(gain, gain) / variance
        covariance = transition @ covariance @ transition.T + noise
    return total


def solved(rates, start, times):
    """Solution (states, times) of a differential equation; NaN where none is found."""
    ends = times[0], times[-1]
    found = solve_ivp(rates, ends, start, "LSODA", t_eval=times, rtol=1e-6, atol=1e-6)
    return found.y if found.success else np.full((len(start), len(times)), np.nan)


# ---- posteriors: log likelihood and prior transform of one point, dimensions
def co2():
    """Monthly CO2 on Mauna Loa from 1976 (statsmodels), minus its mean, a Gaussian process: trend,
    season times decay, rational quadratic, noise.

    Log-normal of spread 1: amplitudes 50, 2.5 and 0.5 ppm, lengths 50, 50 and 1 years, roughness
    1 of the season, shape 1, noise 0.2 ppm.
    """
    months = datasets.co2.load_pandas().data["co2"].resample("MS").mean().interpolate()
    y = (months - months.mean())["1976":].to_numpy()
    lags = np.arange(len(y)) / 12
    sine = 2 * np.sin(np.pi * lags) ** 2

    def log_likelihood(x):
        trend, length, season, decay, rough, irregular, short, shape, noise = x
        kernel = trend**2 * np.exp(-((lags / length) ** 2) / 2)
        kernel += season**2 * np.exp(-((lags / decay) ** 2) / 2 - sine / rough**2)
        kernel += irregular**2 * (1 + (lags / short) ** 2 / (2 * shape)) ** -shape
        kernel[0] += noise**2
        return of_gaussian(y, toeplitz(kernel))

    medians = [50, 50, 2.5, 50, 1, 0.5, 1, 1, 0.2]
    return log_likelihood, lambda u: log_normal(u, medians), 9


def sunspots():
    """Roots of yearly sunspots (statsmodels), a quasi-periodic Gaussian process.

    Mean N(5, 3^2), log-normal amplitude (3, 1), roughness (1, 1), decay (50 years, 1) and noise (1,
    1), period log-uniform from 2 to 100 years.
    """
    y = np.sqrt(datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy())
    lags = np.arange(len(y))

    def log_likelihood(x):
        mean, amplitude, rough, decay, noise, period = x
        sine = 2 * np.sin(np.pi * lags / period) ** 2
        kernel = amplitude**2 * np.exp(-((lags / decay) ** 2) / 2 - sine / rough**2)
        kernel[0] += noise**2
        return of_gaussian(y - mean, toeplitz(kernel))

    def transform(u):
        positive = log_normal(u[1:5], [3, 1, 50, 1])
        return np.array([5 + 3 * ndtri(u[0]), *positive, 2 * 50 ** u[5]])

    return log_likelihood, transform, 6


def two_periods():
    """The same, minus their mean: two sinusoids and a Matérn 3/2 process.

    Frequencies uniform from 0.01 to 0.2 a year, in order; normal coefficients, integrated out,
    whose scales are log-normal (2, 1); amplitude (3, 1), length (5 years, 1) and noise (1, 1).
    """
    y = np.sqrt(datasets.sunspots.load_pandas().data["SUNACTIVITY"].to_numpy())
    y -= y.mean()
    lags = np.arange(len(y))

    def log_likelihood(x):
        scaled = np.sqrt(3) * lags / x[5]
        kernel = x[4] ** 2 * (1 + scaled) * np.exp(-scaled)
        for frequency, scale in zip(x[:2], x[2:4]):
            kernel += scale**2 * np.cos(2 * np.pi * frequency * lags)
        kernel[0] += x[6] ** 2
        return of_gaussian(y, toeplitz(kernel))

    def transform(u):
        high = np.sqrt(u[0])
        frequencies = 0.01 + 0.19 * np.array([high, high * u[1]])
        return np.array([*frequencies, *log_normal(u[2:], [2, 2, 3, 5, 1])])

    return log_likelihood, transform, 7


def diabetes():
    """The first 200 rows of scikit-learn's diabetes, standardised: a Gaussian process.

    Log-normal of spread 1: ten lengths 3, amplitude 1, noise 0.7.
    """
    X, y = load_diabetes(return_X_y=True)
    X, y = (X / X.std(axis=0))[:200], ((y - y.mean()) / y.std())[:200]
    squares = ((X[:, np.newaxis] - X) ** 2).reshape(-1, 10)

    def log_likelihood(x):
        covariance = x[10] ** 2 * np.exp(-0.5 * squares @ x[:10] ** -2.0).reshape(len(y), len(y))
        covariance[np.diag_indices(len(y))] += x[11] ** 2
        return of_gaussian(y, covariance)

    return log_likelihood, lambda u: log_normal(u, [*[3] * 10, 1, 0.7]), 12


NILE = datasets.nile.load_pandas().data["volume"].to_numpy()
FIRST, BREAK = 500.0, 300.0  # prior standard deviations of the first level and the break


def nile():
    """The Nile's volume (statsmodels), a random walk with noise and a break in an unknown year.

    Log-normal (100, 1) noise and (30, 1) steps, break N(0, 300^2), year uniform from the second to
    the last, first level N(1000, 500^2). The likelihood is constant within each year.
    """
    one = np.ones((1, 1))

    def log_likelihood(x):
        noise, step, change, year = x
        shift = change * (np.arange(len(NILE)) >= year)
        start = np.array([1000.0]), FIRST**2 * one
        return kalman(NILE - shift, one, one[0], step**2 * one, noise**2, *start)

    def transform(u):
        last = (len(NILE) - 1) * u[3]
        return np.array([*log_normal(u[:2], [100, 30]), BREAK * ndtri(u[2]), last])

    return log_likelihood, transform, 4


def nile_by_quadrature(half_width=5.0, n=101):
    """Log Z of `nile`, over two log scales; the break is integrated out, years are summed."""
    line = np.linspace(-half_width, half_width, n)
    n_years = len(NILE)
    walk = np.minimum.outer(np.arange(n_years), np.arange(n_years))
    after = np.tril(np.ones((n_years, n_years)))[:, 1:]  # a column for each year of the break
    residual = NILE - 1000
    total = []
    for a in line:
        for b in line:
            noise, step = 100 * np.exp(a), 30 * np.exp(b)
            covariance = FIRST**2 + step**2 * walk + noise**2 * np.eye(n_years)
            solved = np.linalg.solve(covariance, np.column_stack([residual, after]))
            spread = 1 + BREAK**2 * np.einsum("ij,ij->j", after, solved[:, 1:])
            gain = (BREAK * after.T @ solved[:, 0]) ** 2 / spread - np.log(spread)
            value = logsumexp(0.5 * gain) - np.log(n_years - 1)
            log_prior = norm.logpdf(a) + norm.logpdf(b)
            total.append(value + of_gaussian(residual, covariance) + log_prior)
    return float(logsumexp(total) + 2 * np.log(line[1] - line[0]))


def cycle():
    """100 log GDP of the USA (statsmodels): trend, damped cycle and noise, by a Kalman filter.

    Log-normal of spread 1: steps of level 0.5 and slope 0.1, of the cycle 0.5, noise 0.2. Period
    uniform from 1.5 to 12 years, damping a quarter uniform from 0 to 1. First level N(first row,
    10^2), slope N(0.8, 1), cycle N(0, 3^2).
    """
    y = 100 * np.log(datasets.macrodata.load_pandas().data["realgdp"].to_numpy())

    def log_likelihood(x):
        level, slope, swing, noise, period, damping = x
        angle = 2 * np.pi / period
        transition = np.zeros((4, 4))
        transition[:2, :2] = [[1, 1], [0, 1]]
        turn = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
        transition[2:, 2:] = damping * np.array(turn)
        steps = np.diag([level**2, slope**2, swing**2, swing**2])
        start = np.array([y[0], 0.8, 0, 0]), np.diag([100.0, 1, 9, 9])
        return kalman(y, transition, np.array([1.0, 0, 1, 0]), steps, noise**2, *start)

    def transform(u):
        return np.array([*log_normal(u[:4], [0.5, 0.1, 0.5, 0.2]), 6 + 42 * u[4], u[5]])

    return log_likelihood, transform, 6


def influenza():
    """Boys in bed of 763 in a boarding school, 1978: an SIR model, negative binomial counts.

    Infection N(2, 1) and recovery N(0.4, 0.5^2) a day, above 0; 1 / size exponential of mean 0.2;
    first infected log-normal (1, 1).
    """
    y = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
    days = np.arange(len(y) + 1.0)

    def log_likelihood(x):
        infection, recovery, over, first = x

        def rates(t, state):
            infected = infection * state[0] * state[1] / 763
            return -infected, infected - recovery * state[1]

        mean = solved(rates, [763 - first, first], days)[1, 1:]
        mean, size = np.maximum(mean, 1e-9), 1 / over
        ways = gammaln(y + size) - gammaln(size) - gammaln(y + 1)
        return np.sum(ways - size * np.log1p(mean / size) - y * np.log1p(size / mean))

    def transform(u):
        first = min(log_normal(u[3], 1), 700)
        rates = positive_normal(u[:2], np.array([2, 0.4]), np.array([1, 0.5]))
        return np.array([*rates, -0.2 * np.log1p(-u[2]), first])

    return log_likelihood, transform, 4


def lynx():
    """Pelts of hares and lynxes in thousands, Hudson Bay 1900 to 1920: Lotka and Volterra's
    equations, log-normal errors.

    Birth of hares and death of lynxes N(1, 0.5^2), the other rates N(0.05, 0.05^2), above 0; first
    numbers log-normal (10, 1), errors (e^-1, 1).
    """
    pelts = """30 47.2 70.2 77.4 36.3 20.6 18.1 21.4 22 25.4 27.1 40.3 57 76.6 52.3 19.5 11.2 7.6
        14.6 16.2 24.7 4 6.1 9.8 35.2 59.4 41.7 19 13 8.3 9.1 7.4 8 12.3 19.5 45.7 51.1 29.7 15.8
        9.7 10.1 8.6"""
    log_y = np.log(np.array(pelts.split(), dtype=float)).reshape(2, 21).T
    years = np.arange(21.0)

    def log_likelihood(x):
        def rates(t, logs):
            hares, lynxes = np.exp(logs)
            return x[0] - x[2] * lynxes, x[3] * hares - x[1]

        logs = solved(rates, np.log(x[4:6]), years)
        value = norm.logpdf(log_y, logs.T, x[6:]).sum() - log_y.sum()
        return value if np.isfinite(value) else -np.inf

    means, scales = np.array([1, 1, 0.05, 0.05]), np.array([0.5, 0.5, 0.05, 0.05])

    def transform(u):
        others = log_normal(u[4:], [10, 10, np.exp(-1), np.exp(-1)])
        return np.concatenate([positive_normal(u[:4], means, scales), others])

    return log_likelihood, transform, 8


def theophylline():
    """Concentrations of subject 1 after 4.02 mg/kg: absorption and elimination of first order,
    normal errors. With both rates exchanged and another volume the fit is the same.

    Log-normal of spread 1: both rates 0.5 an hour, volume 0.5 l/kg, concentration before 0.5 mg/l,
    errors 0.5 mg/l.
    """
    hours = np.array([0, 0.25, 0.57, 1.12, 2.02, 3.82, 5.1, 7.03, 9.05, 12.12, 24.37])
    y = np.array([0.74, 2.84, 6.57, 10.5, 9.66, 8.58, 8.36, 7.47, 6.89, 5.94, 3.28])

    def log_likelihood(x):
        absorption, elimination, volume, before, error = x

        def rates(t, state):
            absorbed = absorption * state[0]
            return -absorbed, absorbed / volume - elimination * state[1]

        return norm.logpdf(y, solved(rates, [4.02, before], hours)[1], error).sum()

    return log_likelihood, lambda u: log_normal(u, 0.5), 5


POSTERIORS = {
    "CO2, Gaussian process": co2,
    "sunspots, Gaussian process": sunspots,
    "sunspots, two periods": two_periods,
    "diabetes, Gaussian process": diabetes,
    "Nile with a break": nile,
    "GDP, trend and cycle": cycle,
    "influenza, SIR": influenza,
    "lynx and hare": lynx,
    "theophylline": theophylline,
}


# ---- methods: log Z, its standard error, whether it is trusted, and why not
def ours(estimator):
    def method(log_likelihood, transform, d, seed, most):
        estimator.set_params(random_state=seed)
        if isinstance(estimator, UntilTrusted):
            estimator.set_params(max_evaluations=most)
        result = estimator.fit(from_prior_transform(log_likelihood, transform, d)).result_
        says = "; ".join(result.reasons)
        return result.log_partition, result.std_error, bool(result.converged), says

    return method


def dynesty(log_likelihood, transform, d, seed, most):
    from dynesty import NestedSampler

    log_likelihood.most = most
    rng = np.random.default_rng(seed)
    try:
        sampler = NestedSampler(log_likelihood, transform, d, nlive=500, sample="rwalk", rstate=rng)
        sampler.run_nested(print_progress=False)
    except TimeoutError:
        return np.nan, np.nan, False, "too many evaluations"
    return sampler.results.logz[-1], sampler.results.logzerr[-1], True, ""


METHODS = {
    "explored": ours(ImportanceSampling(200_000, proposal="explored", tol=0.1)),
    "UntilTrusted": ours(UntilTrusted(tol=0.1)),
    "dynesty": dynesty,
}


def run(posterior, method, seed, most):
    log_likelihood, transform, d = POSTERIORS[posterior]()
    counted = Counted(log_likelihood, vectorized=False)
    started = time.process_time()
    found = METHODS[method](counted, transform, d, seed, most)
    seconds = time.process_time() - started
    record = dict(zip(("log_z", "error", "trusted", "says"), found))
    return record | {"evaluations": counted.n_points, "seconds": seconds}


def truth_of(name, records):
    """Quadrature's log Z, or the mean of dynesty's runs, and its standard error."""
    if name == "Nile with a break":
        return nile_by_quadrature(), 0.0
    runs = groups(records, "posterior", "method", "trusted").get((name, "dynesty", True))
    if runs is None:
        return np.nan, np.nan
    error = np.linalg.norm([each["error"] for each in runs]) / len(runs)
    return np.mean([each["log_z"] for each in runs]), error


def report(records):
    columns = "trusted", "evaluations", "ms", "log Z", "SE", "farthest"
    table("posterior", "method", *columns)
    for (name, method), found in groups(records, "posterior", "method").items():
        trusted = [each for each in found if each["trusted"]]
        truth, truth_error = truth_of(name, records)
        off = [abs(run["log_z"] - truth) / np.hypot(run["error"], truth_error) for run in trusted]
        evaluations, error = (
            np.median([each[key] for each in found]) for key in ("evaluations", "error")
        )
        ms = 1000 * np.median([each["seconds"] / each["evaluations"] for each in found])
        log_z = np.mean([each["log_z"] for each in found])
        cells = f"{len(trusted)} of {len(found)}", f"{evaluations:,.0f}", f"{ms:.1f}"
        numbers = f"{log_z:.2f}", f"{error:.3f}", f"{max(off, default=np.nan):.1f}"
        row(name, method, *cells, *numbers)
    for each in records:
        if each["says"]:
            print("*", each["posterior"], each["method"], each["seed"], each["says"][:200])


def main():
    names = {"posteriors": POSTERIORS, "methods": METHODS}
    args = options(__doc__, "slow_posteriors.jsonl", 3, {"most": 300_000}, **names)
    warnings.simplefilter("ignore")
    runs = product(args.seeds, args.posteriors, args.methods)
    tasks = [
        {"posterior": name, "method": method, "seed": seed, "most": args.most}
        for seed, name, method in runs
    ]
    report(measured(args.results, tasks, run))


if __name__ == "__main__":
    main()

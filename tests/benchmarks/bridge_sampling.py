"""Coverage of BridgeSampling over independent sets of draws, and what its alarms cost.

    python tests/benchmarks/bridge_sampling.py [--sets 200] [--cells NAME] [--proposals warp3,t]

Prints Markdown: of each posterior and proposal how many runs converged, how many of these cover
with their 95 % interval, and how many are beyond 3 and 5 standard errors, and 3 and 0.1 nats.
Draws are exact where possible, else by a plain HMC whose chains begin close to the posterior.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklpf import BridgeSampling, Gaussian, GeometricPath, StudentT

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import make_density_problem

N_CHAINS = 4


class Posterior(NamedTuple):
    """A path, log Z, and a function (n_sets, rng) of sets of draws (n_chains, n_draws, d)."""

    path: GeometricPath
    log_partition: float
    draw: object


# -- draws
def exact(kind, n_draws=500, n_chains=N_CHAINS):
    problem = make_density_problem(kind)

    def draw(n_sets, rng):
        for _ in range(n_sets):
            points = problem.path.draw(n_chains * n_draws, rng)
            yield points.reshape(n_chains, n_draws, -1)

    return Posterior(problem.path, problem.log_partition, draw)


def autoregressive(n_dimensions, correlation, n_draws, n_chains=N_CHAINS):
    """Stationary normal AR(1) chains (n_chains, n_draws, d)."""

    def normals(rng):
        noise = rng.standard_normal((n_chains, n_draws, n_dimensions))
        x = noise.copy()
        for t in range(1, n_draws):
            x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
        return x

    return normals


def log_gamma(n_dimensions, shape, correlation=0.0, n_draws=500, n_chains=N_CHAINS):
    """Logs of independent gamma variables, skewed to the left: rates a user has on a log scale."""

    def log_density(x):
        return np.sum(shape * x - np.exp(np.minimum(x, 700)), axis=1)

    normals = autoregressive(n_dimensions, correlation, n_draws, n_chains)

    def draw(n_sets, rng):
        for _ in range(n_sets):
            uniform = stats.norm.cdf(normals(rng))
            yield np.log(np.maximum(stats.gamma.ppf(uniform, shape), 1e-300))

    path = GeometricPath(log_density, base=Gaussian(np.zeros(n_dimensions), 4.0))
    return Posterior(path, n_dimensions * float(gammaln(shape)), draw)


def correlated_gaussian(n_dimensions, correlation, n_draws=500, n_chains=N_CHAINS):
    def log_density(x):
        return -0.5 * np.sum(x**2, axis=1)

    normals = autoregressive(n_dimensions, correlation, n_draws, n_chains)

    def draw(n_sets, rng):
        for _ in range(n_sets):
            yield normals(rng)

    path = GeometricPath(log_density, base=Gaussian(np.zeros(n_dimensions), 4.0))
    return Posterior(path, 0.5 * n_dimensions * np.log(2 * np.pi), draw)


def banana(n_pairs=5, curvature=0.5, n_draws=500):
    """Pairs (x, y) with x ~ N(0, 1) and y ~ N(curvature x^2, 0.25), as Rosenbrock's function."""

    def log_density(z):
        x, y = z[:, ::2], z[:, 1::2]
        return -0.5 * np.sum(x**2 + 4 * (y - curvature * x**2) ** 2, axis=1)

    def draw(n_sets, rng):
        for _ in range(n_sets):
            z = rng.standard_normal((N_CHAINS, n_draws, 2 * n_pairs))
            z[..., 1::2] = curvature * z[..., ::2] ** 2 + 0.5 * z[..., 1::2]
            yield z

    path = GeometricPath(log_density, base=Gaussian(np.zeros(2 * n_pairs), 9.0))
    return Posterior(path, n_pairs * float(np.log(2 * np.pi * 0.5)), draw)


def independent(log_density, sample, n_dimensions, log_partition=0.0, n_draws=500):
    """Exact draws by a function (shape, rng), of a density with this log Z."""

    def draw(n_sets, rng):
        for _ in range(n_sets):
            yield sample((N_CHAINS, n_draws), rng)

    path = GeometricPath(log_density, base=Gaussian(np.zeros(n_dimensions), 4.0))
    return Posterior(path, log_partition, draw)


def skew_normal(n_dimensions, slant):
    def log_density(x):
        return np.sum(stats.norm.logpdf(x) + stats.norm.logcdf(slant * x) + np.log(2), axis=1)

    def sample(shape, rng):
        first, second = rng.standard_normal((2, *shape, n_dimensions))
        return (slant * np.abs(first) + second) / np.hypot(1, slant)

    return independent(log_density, sample, n_dimensions)


def dirichlet(concentrations):
    """Shares as log ratios to the last one, with the Jacobian."""
    alpha = np.asarray(concentrations)

    def log_density(x):
        log_odds = np.concatenate([x, np.zeros((len(x), 1))], axis=1)
        return log_odds @ alpha - alpha.sum() * logsumexp(log_odds, axis=1)

    def sample(shape, rng):
        logs = np.log(rng.gamma(alpha, size=(*shape, len(alpha))))
        return logs[..., :-1] - logs[..., -1:]

    log_partition = float(gammaln(alpha).sum() - gammaln(alpha.sum()))
    return independent(log_density, sample, len(alpha) - 1, log_partition)


def logistics(n_dimensions):
    def sample(shape, rng):
        return rng.logistic(size=(*shape, n_dimensions))

    return independent(lambda x: stats.logistic.logpdf(x).sum(axis=1), sample, n_dimensions)


def student(n_dimensions, df):
    density = StudentT(np.zeros(n_dimensions), np.eye(n_dimensions), df)

    def sample(shape, rng):
        return density.sample(shape[0] * shape[1], rng).reshape(*shape, n_dimensions)

    return independent(density.log_density, sample, n_dimensions)


def hmc(log_density, grad, starts, n_draws, n_warm_up, step, n_leapfrog, rng):
    """Draws (n_chains, n_draws, d) of independent chains; the step is tuned in the warm-up."""
    x = starts
    value, slope = log_density(x), grad(x)
    kept = np.empty((len(x), n_draws, x.shape[1]))
    for t in range(-n_warm_up, n_draws):
        velocity = rng.standard_normal(x.shape)
        energy = value - 0.5 * np.sum(velocity**2, axis=1)
        length = step * rng.uniform(0.7, 1.3)
        y, y_slope = x, slope
        with np.errstate(all="ignore"):
            for _ in range(n_leapfrog):
                velocity = velocity + 0.5 * length * y_slope
                y = y + length * velocity
                y_slope = grad(y)
                velocity = velocity + 0.5 * length * y_slope
            y_value = log_density(y)
            log_rate = y_value - 0.5 * np.sum(velocity**2, axis=1) - energy
        log_rate = np.where(np.isnan(log_rate), -np.inf, log_rate)
        accept = np.log(rng.random(len(x))) < log_rate
        x = np.where(accept[:, np.newaxis], y, x)
        slope = np.where(accept[:, np.newaxis], y_slope, slope)
        value = np.where(accept, y_value, value)
        if t < 0:
            step *= np.exp(0.05 * (np.exp(np.minimum(log_rate, 0)).mean() - 0.85))
        else:
            kept[:, t] = x
    return kept


def sampled(path, log_partition, start, step, n_leapfrog, n_draws=500, n_warm_up=300):
    """HMC on a path's density; all sets move side by side."""

    def draw(n_sets, rng):
        starts = start(n_sets * N_CHAINS, rng)
        draws = hmc(path._target, path.grad, starts, n_draws, n_warm_up, step, n_leapfrog, rng)
        yield from draws.reshape(n_sets, N_CHAINS, n_draws, -1)

    return Posterior(path, log_partition, draw)


def logistic_regression():
    problem = make_density_problem("logistic regression")
    mode = Gaussian.at_mode(
        problem.path.log_density, np.zeros(problem.path.n_dimensions), grad=problem.path.grad
    )
    return sampled(problem.path, problem.log_partition, mode.sample, 0.2, 12)


SCHOOLS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
SCALE = 5.0  # of the priors mu ~ N(0, 5^2) and tau ~ half-Cauchy(5)


def schools_evidence():
    """theta and mu integrated in closed form, tau by quadrature."""
    y, sigma = SCHOOLS

    def given(tau):
        covariance = np.diag(sigma**2 + tau**2) + SCALE**2
        log_prior = np.log(2) + stats.cauchy.logpdf(tau, scale=SCALE)
        return np.exp(stats.multivariate_normal.logpdf(y, cov=covariance) + log_prior + 30)

    return float(
        np.log(integrate.quad(given, 0, np.inf, epsabs=0, epsrel=1e-10, limit=500)[0]) - 30
    )


def eight_schools(centred):
    """Coordinates mu, log tau and eight effects, of themselves or in units of tau."""
    y, sigma = SCHOOLS
    constant = (
        np.log(2 / (np.pi * SCALE))
        - 0.5 * np.log(2 * np.pi) * 17
        - np.log(SCALE)
        - np.log(sigma).sum()
    )

    def parts(x):
        mu, log_tau, effects = x[:, :1], x[:, 1:2], x[:, 2:]
        tau = np.exp(np.minimum(log_tau, 300))
        if centred:
            return mu, log_tau, tau, effects, (effects - mu) / tau
        return mu, log_tau, tau, mu + tau * effects, effects

    def log_density(x):
        mu, log_tau, tau, theta, z = parts(x)
        log_f = constant - 0.5 * (mu[:, 0] / SCALE) ** 2
        log_f += log_tau[:, 0] - np.log1p((tau[:, 0] / SCALE) ** 2)
        log_f -= 0.5 * np.sum(z**2 + ((y - theta) / sigma) ** 2, axis=1)
        return log_f - 8 * log_tau[:, 0] if centred else log_f

    def grad(x):
        mu, log_tau, tau, theta, z = parts(x)
        residual = (y - theta) / sigma**2
        slope = np.empty_like(x)
        square = (tau[:, 0] / SCALE) ** 2
        slope[:, 1] = 1 - 2 * square / (1 + square)
        if centred:
            slope[:, 0] = -mu[:, 0] / SCALE**2 + np.sum(z / tau, axis=1)
            slope[:, 1] += np.sum(z**2, axis=1) - 8
            slope[:, 2:] = residual - z / tau
        else:
            slope[:, 0] = -mu[:, 0] / SCALE**2 + residual.sum(axis=1)
            slope[:, 1] += tau[:, 0] * np.sum(residual * z, axis=1)
            slope[:, 2:] = tau * residual - z
        return slope

    def start(n, rng):
        x = np.zeros((n, 10))
        x[:, 0] = rng.normal(4, 3, n)
        x[:, 1] = rng.normal(1, 0.7, n)
        x[:, 2:] = rng.standard_normal((n, 8))
        if centred:
            x[:, 2:] = x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:]
        return x

    path = GeometricPath(log_density, grad=grad, base=Gaussian(np.zeros(10), 25.0))
    return sampled(path, schools_evidence(), start, 0.3, 12)


def stuck(n_in_first, n_draws=500):
    """Modes with 0.3 and 0.7 of the mass; that many of the chains sit in the first for good."""
    problem = make_density_problem("two gaussians 2-D")
    first, second, _ = problem.path.log_density.constants
    centers = np.where(np.arange(N_CHAINS)[:, np.newaxis] < n_in_first, first, second)

    def draw(n_sets, rng):
        for _ in range(n_sets):
            yield centers[:, np.newaxis] + rng.standard_normal((N_CHAINS, n_draws, 2))

    return Posterior(problem.path, problem.log_partition, draw)


def wrong_density(scale):
    """Draws of a Gaussian with other standard deviations than the density says."""
    right = correlated_gaussian(10, 0.0)

    def draw(n_sets, rng):
        for draws in right.draw(n_sets, rng):
            yield scale * draws

    return right._replace(draw=draw)


POSTERIORS = {
    "Gaussian, 20-D, condition 100": lambda: exact("gaussian 20-D, condition 100"),
    "product of Laplace, 6-D": lambda: exact("laplace 6-D"),
    "product of t, 6-D": lambda: exact("student-t 6-D"),
    "two Gaussians, 10-D": lambda: exact("two gaussians 10-D"),
    "funnel, 6-D": lambda: exact("funnel"),
    "linear regression, 8-D": lambda: exact("linear regression"),
    "beta-binomial, 1-D": lambda: exact("beta-binomial, beta prior"),
    "box Gaussian, 10-D": lambda: exact("box gaussian"),
    "banana, 10-D": banana,
    "log gamma(0.5), 10-D": lambda: log_gamma(10, 0.5),
    "log gamma(2), 30-D": lambda: log_gamma(30, 2.0),
    "logistic regression, 31-D, HMC": logistic_regression,
    "eight schools, not centred, HMC": lambda: eight_schools(False),
    "Gaussian, 10-D, AR 0.9, 4 x 2000": lambda: correlated_gaussian(10, 0.9, 2000),
    "log gamma(1), 5-D, AR 0.9, 4 x 1000": lambda: log_gamma(5, 1.0, 0.9, 1000),
    "log gamma(1), 5-D, AR 0.9, 1 x 4000": lambda: log_gamma(5, 1.0, 0.9, 4000, 1),
    "skew normal(5), 8-D": lambda: skew_normal(8, 5.0),
    "Dirichlet, log ratios of 8": lambda: dirichlet(np.linspace(0.7, 4, 8)),
    "product of logistic, 15-D": lambda: logistics(15),
    "t with 10 degrees of freedom, 5-D": lambda: student(5, 10.0),
    "Gaussian, 100-D": lambda: exact("gaussian 100-D, condition 100"),
}
TRAPS = {
    "4 x 25 draws, Gaussian 20-D": lambda: correlated_gaussian(20, 0.0, 25),
    "4 x 50 draws, log gamma(0.5), 10-D": lambda: log_gamma(10, 0.5, n_draws=50),
    "log gamma(1), 5-D, AR 0.9": lambda: log_gamma(5, 1.0, 0.9),
    "Gaussian, 10-D, AR 0.98": lambda: correlated_gaussian(10, 0.98),
    "log gamma(1), 5-D, AR 0.98": lambda: log_gamma(5, 1.0, 0.98),
    "log gamma(1), 5-D, AR 0.995": lambda: log_gamma(5, 1.0, 0.995),
    "eight schools, centred, HMC": lambda: eight_schools(True),
    "product of t, 36-D": lambda: exact("student-t 36-D"),
    "2 of 4 chains in the mode of mass 0.3": lambda: stuck(2),
    "1 of 4 chains in the mode of mass 0.3": lambda: stuck(1),
    "no chain in the mode of mass 0.3": lambda: stuck(0),
    "draws 10 % too wide": lambda: wrong_density(1.1),
    "draws 10 % too narrow": lambda: wrong_density(0.9),
}


def measure(posterior, proposal, n_sets):
    """One row for every set of draws, its alarms, and seconds a fit."""
    rng = np.random.default_rng(0)
    rows, kinds, seconds = [], collections.Counter(), 0.0
    for seed, draws in enumerate(posterior.draw(n_sets, rng)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            started = time.process_time()
            bridge = BridgeSampling(proposal, random_state=seed).fit(posterior.path, draws=draws)
            seconds += time.process_time() - started
        off = bridge.log_partition_ - posterior.log_partition
        low, high = bridge.log_partition_interval_
        covers = low <= posterior.log_partition <= high
        rows.append((off, bridge.log_partition_std_error_, bridge.converged_, covers))
        kinds.update({alarm.kind for alarm in bridge.result_.alarms})
    return np.array(rows, dtype=float), kinds, seconds / n_sets


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--cells", default="")
    parser.add_argument("--proposals", default="warp3")
    parser.add_argument("--traps", action="store_true")
    args = parser.parse_args()
    columns = (
        "posterior",
        "proposal",
        "bias",
        "RMSE",
        "median SE",
        "all cover",
        "converged",
        "of these cover",
        "> 3 SE",
        "> 5 SE",
        "off by 3 SE and 0.1",
        "alarms",
        "s",
    )
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for name, make in (TRAPS if args.traps else POSTERIORS).items():
        if args.cells not in name:
            continue
        posterior = make()
        for proposal in args.proposals.split(","):
            rows, kinds, seconds = measure(posterior, proposal, args.sets)
            off, error, converged, covers = rows.T
            good = converged > 0
            far = np.abs(off[good]) / error[good]
            wrong = (far > 3) & (np.abs(off[good]) > 0.1)
            said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
            print(
                f"| {name} | {proposal} | {off.mean():+.4f} | {np.sqrt(np.mean(off**2)):.4f} |"
                f" {np.median(error):.4f} | {covers.mean():.1%} | {good.mean():.0%} |"
                f" {int(covers[good].sum())} of {good.sum()} | {np.sum(far > 3)} |"
                f" {np.sum(far > 5)} | {wrong.sum()} | {said} |"
                f" {seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

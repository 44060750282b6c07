"""Does BridgeSampling cover over independent sets of draws, what do its alarms cost, and are draws
in other orders put into order?

    python tests/benchmarks/bridge_sampling.py [--seeds 200] [--kind {posteriors,traps,walkers}]
        [--problems WORD ...] [--proposals warp3 mixture t] [--orders right]
        [--results bridge_sampling.jsonl]

Draws are exact where possible, else by a plain HMC whose chains begin close to the posterior; of
traps they are few, wrong or stuck. Walkers are 16 to 100 in 4 to 10 dimensions, with sizes from the
seed, whose draws are handed over in orders that are right, flat, transposed, shuffled or "one after
another"; nothing was chosen by those that are "held out", and emcee is needed for its kinds alone.
Every run is appended to the results, and not made again. Prints Markdown.
"""

from __future__ import annotations

import functools
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import chosen, groups, judged, measured, options, print_coverage, row, table
from scipy import integrate, stats
from scipy.special import gammaln, logsumexp

from sklpf import BridgeSampling, Gaussian, GeometricPath, StudentT
from sklpf.partition.weights._posterior_draws import posterior_draws

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import make_density_problem

N_CHAINS = 4


class Posterior(NamedTuple):
    """A path, log Z, and a function of a generator that draws (n_chains, n_draws, d)."""

    path: GeometricPath
    log_partition: float
    draw: object


def of_density(log_density, n_dimensions, log_partition, draw, base_variance=4.0):
    path = GeometricPath(log_density, base=Gaussian(np.zeros(n_dimensions), base_variance))
    return Posterior(path, log_partition, draw)


# ---- draws
def exact(kind, n_draws=500):
    problem = make_density_problem(kind)

    def draw(rng):
        return problem.path.draw(N_CHAINS * n_draws, rng).reshape(N_CHAINS, n_draws, -1)

    return Posterior(problem.path, problem.log_partition, draw)


def autoregressive(shape, correlation, rng):
    """Stationary normal AR(1) chains (n_chains, n_draws, d)."""
    noise = rng.standard_normal(shape)
    x = noise.copy()
    for t in range(1, shape[1]):
        x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return x


def log_gamma(n_dimensions, shape, correlation=0.0, n_draws=500, n_chains=N_CHAINS):
    """Logs of independent gamma variables, skewed to the left: rates a user has on a log scale."""

    def log_density(x):
        return np.sum(shape * x - np.exp(np.minimum(x, 700)), axis=1)

    def draw(rng):
        normals = autoregressive((n_chains, n_draws, n_dimensions), correlation, rng)
        return np.log(np.maximum(stats.gamma.ppf(stats.norm.cdf(normals), shape), 1e-300))

    return of_density(log_density, n_dimensions, n_dimensions * float(gammaln(shape)), draw)


def correlated_gaussian(n_dimensions, correlation, n_draws=500):
    def log_density(x):
        return -0.5 * np.sum(x**2, axis=1)

    def draw(rng):
        return autoregressive((N_CHAINS, n_draws, n_dimensions), correlation, rng)

    return of_density(log_density, n_dimensions, 0.5 * n_dimensions * np.log(2 * np.pi), draw)


def banana(n_pairs=5, curvature=0.5, n_draws=500):
    """Pairs (x, y) with x ~ N(0, 1) and y ~ N(curvature x^2, 0.25), as Rosenbrock's function."""

    def log_density(z):
        x, y = z[:, ::2], z[:, 1::2]
        return -0.5 * np.sum(x**2 + 4 * (y - curvature * x**2) ** 2, axis=1)

    def draw(rng):
        z = rng.standard_normal((N_CHAINS, n_draws, 2 * n_pairs))
        z[..., 1::2] = curvature * z[..., ::2] ** 2 + 0.5 * z[..., 1::2]
        return z

    return of_density(log_density, 2 * n_pairs, n_pairs * float(np.log(np.pi)), draw, 9.0)


def independent(log_density, sample, n_dimensions, log_partition=0.0, n_draws=500):
    """Exact draws by a function (shape, rng), of a density with this log Z."""
    draw = functools.partial(sample, (N_CHAINS, n_draws))
    return of_density(log_density, n_dimensions, log_partition, draw)


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
    """HMC on a path's density."""

    def draw(rng):
        starts = start(N_CHAINS, rng)
        return hmc(path._target, path.grad, starts, n_draws, n_warm_up, step, n_leapfrog, rng)

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

    def draw(rng):
        return centers[:, np.newaxis] + rng.standard_normal((N_CHAINS, n_draws, 2))

    return Posterior(problem.path, problem.log_partition, draw)


def wrong_density(scale):
    """Draws of a Gaussian with other standard deviations than the density says."""
    right = correlated_gaussian(10, 0.0)
    return right._replace(draw=lambda rng: scale * right.draw(rng))


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


# ---- walkers: densities with log Z = 0
def normal(x):
    return stats.norm.logpdf(x).sum(axis=1)


def t_with_8(x):
    return stats.t.logpdf(x, 8).sum(axis=1)


def log_gamma_2(x):
    return np.sum(2 * x - np.exp(np.minimum(x, 700)), axis=1) - x.shape[1] * gammaln(2)


def correlated(x):
    """Normal, with a correlation of .8 between neighbours."""
    steps = (x[:, 1:] - 0.8 * x[:, :-1]) / 0.6
    return normal(x[:, :1]) + normal(steps) - steps.shape[1] * np.log(0.6)


def two_modes(x):
    """Two normal modes with weights .3 and .7 at a distance of 3.5."""
    shifted = x - 3.5 * (np.arange(x.shape[1]) == 0)
    return logsumexp([normal(x) + np.log(0.3), normal(shifted) + np.log(0.7)], axis=0)


def ar(correlation, to_density=lambda x: x):
    def draw(shape, rng):
        return to_density(autoregressive(shape, correlation, rng))

    return draw


def metropolis(log_density, width, n_thin=1):
    def draw(shape, rng):
        n_walkers, n_steps, d = shape
        x = rng.standard_normal((n_walkers, d))
        value = log_density(x)
        kept = np.empty(shape)
        for t in range(-1000, n_steps * n_thin):
            y = x + width / np.sqrt(d) * rng.standard_normal(x.shape)
            proposed = log_density(y)
            accept = np.log(rng.random(n_walkers)) < proposed - value
            x = np.where(accept[:, np.newaxis], y, x)
            value = np.where(accept, proposed, value)
            if t >= 0:
                kept[:, t // n_thin] = x
        return kept

    return draw


def ensemble(log_density):
    def draw(shape, rng):
        import emcee

        n_walkers, n_steps, d = shape
        n_walkers += n_walkers % 2
        sampler = emcee.EnsembleSampler(n_walkers, d, log_density, vectorize=True)
        starts = rng.standard_normal((n_walkers, d))
        state = np.random.RandomState(rng.integers(2**31)).get_state()
        sampler.run_mcmc(starts, 500 + n_steps, rstate0=state)
        return sampler.get_chain(discard=500).swapaxes(0, 1)

    return draw


def to_student(x):
    return stats.t.ppf(stats.norm.cdf(x), 8)


# log density, walkers, and steps of each: about 20 autocorrelation times
WALKERS = {
    "AR .5, normal": (normal, ar(0.5), 200),
    "AR .9, normal": (normal, ar(0.9), 500),
    "AR .97, normal": (normal, ar(0.97), 1200),
    "Metropolis thinned by 4, log gamma": (log_gamma_2, metropolis(log_gamma_2, 2.4, 4), 400),
    "emcee, correlated normal": (correlated, ensemble(correlated), 1500),
    "held out, AR .8, t with 8 df": (t_with_8, ar(0.8, to_student), 300),
    "held out, AR .95, normal": (normal, ar(0.95), 900),
    "held out, Metropolis, two modes": (two_modes, metropolis(two_modes, 2.4), 1200),
    "held out, Metropolis thinned by 9, t": (t_with_8, metropolis(t_with_8, 2.4, 9), 200),
    "held out, emcee, log gamma": (log_gamma_2, ensemble(log_gamma_2), 1500),
}


def walkers(name, rng):
    log_density, draw, n_steps = WALKERS[name]
    d = int(rng.integers(4, 11))
    n_walkers = max(round(np.exp(rng.uniform(np.log(16), np.log(100)))), 2 * d)
    return of_density(log_density, d, 0.0, functools.partial(draw, (n_walkers, n_steps, d)))


ORDERS = {  # of draws (walkers, steps, d)
    "right": lambda x, rng: x,
    "flat": lambda x, rng: x.swapaxes(0, 1).reshape(-1, x.shape[2]),
    "transposed": lambda x, rng: x.swapaxes(0, 1),
    "shuffled": lambda x, rng: rng.permutation(x.reshape(-1, x.shape[2])),
    "one after another": lambda x, rng: x.reshape(-1, x.shape[2]),
}


# ---- runs
PROBLEMS = {"posteriors": POSTERIORS, "traps": TRAPS, "walkers": WALKERS}


@functools.lru_cache(maxsize=1)
def fixed(kind, problem):
    return PROBLEMS[kind][problem]()


def run(kind, problem, order, proposal, seed):
    rng = np.random.default_rng([seed, *problem.encode()])
    posterior = walkers(problem, rng) if kind == "walkers" else fixed(kind, problem)
    right = posterior.draw(rng)
    draws = ORDERS[order](right, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = posterior_draws(draws).points
        estimator = BridgeSampling(proposal, random_state=seed)
        (record,) = judged(estimator, posterior.path, posterior.log_partition, draws=draws)
    is_right = points.shape == right.shape and np.array_equal(points, right)
    return record | {"in order": bool(is_right)}


def main():
    others = {"kind": "posteriors", "problems": [""], "proposals": ["warp3"], "orders": ["right"]}
    args = options(__doc__, "bridge_sampling.jsonl", 200, others)
    problems = chosen(PROBLEMS[args.kind], args.problems)
    names = ("problem", "order", "proposal", "seed")
    cells = product(problems, chosen(ORDERS, args.orders), args.proposals, args.seeds)
    tasks = [{"kind": args.kind} | dict(zip(names, cell)) for cell in cells]
    records = measured(args.results, tasks, run)
    records = [each for each in records if each["kind"] == args.kind]
    if args.kind == "walkers":
        table("walkers", "order", "put into order")
        for names, found in groups(records, "problem", "order").items():
            row(*names, f"{sum(each['in order'] for each in found)} of {len(found)}")
    print_coverage(records, "problem", "order", "proposal")


if __name__ == "__main__":
    main()

"""How far do the evidences of the guide's first advice reach, beside those of other libraries?

    python tests/benchmarks/reach.py [--seeds 20] [--results reach.jsonl] [--problems WORD ...]
        [--methods WORD ...] [--limit 60] [--target 0.03]

Each problem is a log likelihood in normal coordinates: z ~ N(0, I) under the prior. The true log Z
is quadrature's, of the logistic regression importance sampling's. Methods are at their defaults;
where a library has none, the options stand in this file. Gradients come from JAX; NumPyro, dynesty,
nautilus-sampler, ultranest and pocomc are needed too. Every run is appended to the results as it
ends, and an interrupted benchmark goes on where it stopped. Where a run exceeds the limit of
seconds (of the processor), later seeds of that cell are left out. The horseshoe, Rosenbrock's
function and the 45 effects are slow: three seeds are enough. Prints Markdown.

Evaluations to 0.1 nats are those of a run times the square of its standard error over 0.1.
Gradients count as one each. With a target other than 0.1 samplers have live points, draws or
particles in inverse proportion to its square, of what is their default for 0.1, so that little is
left to scale.
"""

from __future__ import annotations

import functools
import signal
import time
import warnings
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from measure import LOG_2PI, Counted, by_importance, groups, measured, options, row, table
from scipy.special import expit, logsumexp, ndtri
from scipy.stats import multivariate_normal, norm

from sklpf import (
    HAIS,
    SMC,
    AdaptiveSMC,
    BridgeSampling,
    Gaussian,
    GeometricPath,
    ParallelTempering,
    UntilTrusted,
)
from sklpf.interop import from_prior_transform
from sklpf.partition import ImportanceSampling

jax.config.update("jax_enable_x64", True)


class Problem:
    """A log likelihood of normal coordinates (n, d), with NumPy or JAX as its first argument."""

    def __init__(self, n_dimensions, log_likelihood, truth):
        self.n_dimensions = n_dimensions
        self.log_likelihood = log_likelihood
        self.truth = truth


def log_trapezoid(log_values, points):
    """log of the integral of exp(log_values) over an even grid, along the first axis."""
    return logsumexp(log_values, axis=0) + np.log(points[1] - points[0])


def grid_evidence(problem, half_width=7.0, n=81):
    """log Z of a problem in three dimensions, by the trapezoidal rule."""
    line = np.linspace(-half_width, half_width, n)
    plane = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    slices = []
    for x in line:
        z = np.c_[np.full(len(plane), x), plane]
        log_f = problem.log_likelihood(np, z) + norm.logpdf(z).sum(axis=1)
        slices.append(logsumexp(log_f))
    return float(logsumexp(slices) + 3 * np.log(line[1] - line[0]))


# ---- hierarchies
def hierarchy(y, sigma, mean_scale, log_scale):
    """y ~ N(effect, sigma^2), effect ~ N(mu, tau^2), mu ~ N(0, mean_scale^2), log tau normal.

    With `mean_scale` 0 there is no mu.
    """
    n = len(y)
    first = int(mean_scale > 0)

    def log_likelihood(xp, z):
        mu = mean_scale * z[:, :1] if first else 0.0
        tau = xp.exp(log_scale * z[:, first : first + 1])
        effects = mu + tau * z[:, first + 1 :]
        return xp.sum(-(((y - effects) / sigma) ** 2) / 2 - np.log(sigma) - LOG_2PI / 2, axis=1)

    def truth():
        points = np.linspace(-9, 9, 3001)
        common = mean_scale**2 * np.ones((n, n))
        values = []
        for point in points:
            covariance = np.diag(sigma**2 + np.exp(2 * log_scale * point)) + common
            values.append(multivariate_normal.logpdf(y, np.zeros(n), covariance))
        return float(log_trapezoid(np.array(values) + norm.logpdf(points), points))

    return Problem(n + 1 + first, log_likelihood, truth)


def schools():
    y = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    return hierarchy(y, np.array([15.0, 10, 16, 11, 9, 11, 10, 18]), 10.0, 1.5)


def funnel():
    """Neal's funnel with v = 2 log tau ~ N(0, 3^2), and data that say little."""
    y = np.random.default_rng(0).normal(size=9)
    return hierarchy(y, np.full(9, 5.0), 0.0, 1.5)


def poisson_effects(n_groups=45, n_each=4):
    """Counts of 45 groups: mu, log tau and effects in units of tau."""
    rng = np.random.default_rng(1)
    total = rng.poisson(n_each * np.exp(0.5 + 0.7 * rng.normal(size=n_groups)))

    def log_rate(xp, z):
        return z[:, :1] + xp.exp(z[:, 1:2]) * z[:, 2:]

    def log_likelihood(xp, z):
        eta = log_rate(xp, z)
        return xp.sum(total * eta - n_each * xp.exp(xp.minimum(eta, 50.0)), axis=1)

    def truth():
        line = np.linspace(-6, 6, 201)
        effects = np.linspace(-9, 9, 601)
        sums, counts = np.unique(total, return_counts=True)
        log_z = np.empty((len(line), len(line)))
        for i, mu in enumerate(line):
            eta = mu + np.exp(line)[:, np.newaxis] * effects
            log_f = -n_each * np.exp(np.minimum(eta, 50.0)) + norm.logpdf(effects)
            each = [log_trapezoid((s * eta + log_f).T, effects) for s in sums]
            log_z[i] = counts @ np.array(each) + norm.logpdf(line) + norm.logpdf(mu)
        return float(log_trapezoid(log_trapezoid(log_z, line), line))

    return Problem(n_groups + 2, log_likelihood, truth)


def horseshoe(n_coefficients=10, scale=0.2, global_scale=0.1):
    """Regression on orthonormal inputs, with half-Cauchy scales: estimates ~ N(coefficient,
    scale^2).
    """
    rng = np.random.default_rng(2)
    coefficients = np.r_[2.0, -1.5, 1.0, np.zeros(n_coefficients - 3)]
    estimates = coefficients + scale * rng.normal(size=n_coefficients)

    def half_cauchy(xp, z):
        # tan(pi Phi(z) / 2), by the upper tail where that is small
        tail = jax.scipy.stats.norm.sf(z) if xp is jnp else norm.sf(z)
        return 1 / xp.tan(xp.pi / 2 * xp.maximum(tail, 1e-300))

    def log_likelihood(xp, z):
        scales = global_scale * half_cauchy(xp, z[:, :1]) * half_cauchy(xp, z[:, 1 : d + 1])
        standardised = (estimates - scales * z[:, d + 1 :]) / scale
        return xp.sum(-(standardised**2) / 2 - np.log(scale) - LOG_2PI / 2, axis=1)

    def truth():
        line = np.linspace(-9, 9, 1801)
        half = half_cauchy(np, line)
        values = []
        for overall in half:
            scales = np.hypot(scale, global_scale * overall * half)[:, np.newaxis]
            log_f = norm.logpdf(estimates, 0, scales) + norm.logpdf(line)[:, np.newaxis]
            values.append(log_trapezoid(log_f, line).sum())
        return float(log_trapezoid(np.array(values) + norm.logpdf(line), line))

    d = n_coefficients
    return Problem(2 * d + 1, log_likelihood, truth)


def mixture():
    """The means, each N(0, 5^2), of three normals with known scales and shares."""
    rng = np.random.default_rng(3)
    y = np.array([-4.0, 0.0, 3.0])[rng.integers(3, size=60)] + rng.normal(size=60)

    def log_likelihood(xp, z):
        squares = (y - 5.0 * z[:, :, np.newaxis]) ** 2
        largest = xp.max(-squares / 2, axis=1)
        parts = xp.exp(-squares / 2 - largest[:, np.newaxis])
        return xp.sum(largest + xp.log(xp.sum(parts, axis=1) / 3) - LOG_2PI / 2, axis=1)

    def truth():
        means = np.linspace(-20, 20, 401)
        density = norm.pdf(y, means[:, np.newaxis])
        log_prior = norm.logpdf(means, 0, 5)
        slices = []
        for first in range(len(means)):
            pairs = density[first] + density[:, np.newaxis] + density
            log_f = np.log(np.maximum(pairs / 3, 1e-300)).sum(axis=2)
            slices.append(logsumexp(log_f + log_prior + log_prior[:, np.newaxis]))
        step = np.log(means[1] - means[0])
        return float(logsumexp(np.array(slices) + log_prior) + 3 * step)

    return Problem(3, log_likelihood, truth)


def rosenbrock(d=10):
    """Rosenbrock's function in a chain, with a uniform prior on (-5, 5)^d."""

    def log_likelihood(xp, z):
        u = jax.scipy.stats.norm.cdf(z) if xp is jnp else norm.cdf(z)
        x = 10 * u - 5
        return -xp.sum(100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2, axis=1)

    def truth(n=3001):
        line = np.linspace(-5, 5, n)
        step = line[1] - line[0]
        kernel = np.exp(-100 * (line - line[:, np.newaxis] ** 2) ** 2)
        kernel *= np.exp(-((1 - line[:, np.newaxis]) ** 2)) * step / 10
        below = np.ones(n)
        for _ in range(d - 1):
            below = kernel @ below
        return float(np.log(below.sum() * step / 10))

    return Problem(d, log_likelihood, truth)


# ---- three parameters
def gaussian_process(n=20):
    """Log amplitude, log length and log noise.

    1e-6 and 1e-10 of the amplitude's variance are added to the noise's, so that float64 resolves
    the smallest eigenvalue of every covariance.
    """
    rng = np.random.default_rng(4)
    inputs = np.sort(rng.random(n) * 4)
    y = np.sin(2 * inputs) + 0.2 * rng.normal(size=n)
    squares = (inputs[:, np.newaxis] - inputs) ** 2

    def log_likelihood(xp, z):
        amplitude, length, noise = xp.exp(xp.clip(2 * z, -30.0, 30.0)).T[
            :, :, np.newaxis, np.newaxis
        ]
        least = 1e-6 + 1e-10 * amplitude
        covariance = amplitude * xp.exp(-squares / length / 2) + (noise + least) * np.eye(n)
        columns = xp.broadcast_to(xp.asarray(y)[:, np.newaxis], (len(z), n, 1))
        quadratic = xp.linalg.solve(covariance, columns)[..., 0] @ y
        return -0.5 * (quadratic + xp.linalg.slogdet(covariance)[1] + n * LOG_2PI)

    problem = Problem(3, log_likelihood, None)
    problem.truth = functools.partial(grid_evidence, problem)
    return problem


def garch(n=100):
    """log omega and the logits of (alpha, beta, rest), of a GARCH(1, 1)."""
    rng = np.random.default_rng(5)
    y = np.empty(n)
    variance = 1.0
    for t in range(n):
        y[t] = np.sqrt(variance) * rng.normal()
        variance = 0.2 + 0.2 * y[t] ** 2 + 0.6 * variance

    def log_likelihood(xp, z):
        odds = xp.exp(1.5 * z[:, 1:])
        shares = odds / (1 + xp.sum(odds, axis=1, keepdims=True))
        omega = xp.exp(1.5 * z[:, 0])

        def step(variance, value):
            term = -0.5 * (LOG_2PI + xp.log(variance) + value**2 / variance)
            return omega + shares[:, 0] * value**2 + shares[:, 1] * variance, term

        variance = xp.full(len(z), y.var())
        if xp is jnp:
            return jax.lax.scan(step, variance, jnp.asarray(y))[1].sum(axis=0)
        total = 0.0
        for value in y:
            variance, term = step(variance, value)
            total = total + term
        return total

    problem = Problem(3, log_likelihood, None)
    problem.truth = functools.partial(grid_evidence, problem)
    return problem


# ---- regressions
def design(rng, n, d):
    return np.c_[np.ones(n), rng.normal(size=(n, d - 1))]


def linear(n=40, d=5):
    """Coefficients N(0, 5^2) and log sigma N(0, 2^2)."""
    rng = np.random.default_rng(6)
    A = design(rng, n, d)
    y = A @ rng.normal(size=d) + 0.5 * rng.normal(size=n)

    def log_likelihood(xp, z):
        log_scale = 2 * z[:, d:]
        standardised = (y - 5 * z[:, :d] @ A.T) * xp.exp(-log_scale)
        return xp.sum(-(standardised**2) / 2 - log_scale - LOG_2PI / 2, axis=1)

    def truth():
        line = np.linspace(-2, 6, 801)
        values = [
            multivariate_normal.logpdf(y, np.zeros(n), np.exp(4 * s) * np.eye(n) + 25 * A @ A.T)
            for s in line
        ]
        return float(log_trapezoid(np.array(values) + norm.logpdf(line), line))

    return Problem(d + 1, log_likelihood, truth)


def logistic(n=80, d=6):
    """Coefficients N(0, 3^2)."""
    rng = np.random.default_rng(7)
    A = design(rng, n, d)
    sign = np.where(rng.random(n) < expit(A @ rng.normal(size=d)), 1.0, -1.0)

    def log_likelihood(xp, z):
        return -xp.sum(xp.logaddexp(0.0, -(3 * z @ A.T) * sign), axis=1)

    def truth():
        def log_density(z):
            return log_likelihood(np, z) + norm.logpdf(z).sum(axis=1)

        mode = Gaussian.at_mode(log_density, np.zeros(d))
        return by_importance(log_density, mode.mean, 1.3 * mode.covariance)[0]

    return Problem(d, log_likelihood, truth)


PROBLEMS = {
    "eight schools": schools,
    "funnel, 10-D": funnel,
    "horseshoe, 21-D": horseshoe,
    "mixture, label switching": mixture,
    "Rosenbrock, 10-D": rosenbrock,
    "Poisson, 45 effects": poisson_effects,
    "Gaussian process": gaussian_process,
    "GARCH(1, 1)": garch,
    "linear regression": linear,
    "logistic regression": logistic,
}
TARGET = 0.1  # nats


@functools.cache
def make(name):
    """Return the problem and its true log Z."""
    problem = PROBLEMS[name]()
    return problem, problem.truth()


def times(number, fewest=50):
    """A default number of points, for the error that is aimed at."""
    return max(fewest, round(number * (0.1 / TARGET) ** 2))


def log_density_of(problem):
    """log likelihood + log prior in JAX, of one point (d,)."""

    def log_density(z):
        log_likelihood = problem.log_likelihood(jnp, z[np.newaxis])[0]
        return log_likelihood - 0.5 * jnp.sum(z**2) - problem.n_dimensions * LOG_2PI / 2

    return log_density


def as_numpy(log_likelihood):
    return lambda z: log_likelihood(np, z)


@functools.cache
def compiled_gradient(name):
    return jax.jit(jax.vmap(jax.grad(log_density_of(make(name)[0]))))


def gradient(name):
    """A gradient whose points are filled up to a power of two: JAX compiles for every length."""
    function = compiled_gradient(name)

    def grad(points):
        n = len(points)
        length = 1 << (n - 1).bit_length()
        filled = np.concatenate([points, np.zeros((length - n, points.shape[1]))])
        return np.array(function(filled))[:n]

    return grad


# ---- methods: each returns log Z, its standard error or nan, evaluations, and what it says
def ours(fitted, *counted):
    low, high = fitted.log_partition_interval_
    says = {"converged": bool(fitted.converged_), "says": list(fitted.result_.reasons)}
    says["interval"] = [float(low), float(high)]
    n_points = sum(function.n_points for function in counted)
    return fitted.log_partition_, fitted.log_partition_std_error_, n_points, says


def prior_transform(estimator):
    def method(name, seed):
        problem = make(name)[0]
        log_likelihood = Counted(as_numpy(problem.log_likelihood))
        path = from_prior_transform(log_likelihood, ndtri, problem.n_dimensions, vectorized=True)
        return ours(estimator(random_state=seed).fit(path), log_likelihood)

    return method


def at_mode(name, seed):
    problem = make(name)[0]

    def log_f(z):
        return problem.log_likelihood(np, z) + norm.logpdf(z).sum(axis=1)

    log_density = Counted(log_f)
    grad = Counted(gradient(name))
    base = Gaussian.at_mode(log_density, np.zeros(problem.n_dimensions))
    path = GeometricPath(log_density, grad=grad, base=base)
    return ours(HAIS(random_state=seed).fit(path), log_density, grad)


def new_nuts(name):
    from numpyro.infer import MCMC, NUTS

    log_density = log_density_of(make(name)[0])
    kernel = NUTS(potential_fn=lambda z: -log_density(z), target_accept_prob=0.9)
    # a second run of the same object fails: every seed compiles anew
    return MCMC(
        kernel, num_warmup=500, num_samples=500, num_chains=4, chain_method="vectorized",
        progress_bar=False,
    )  # fmt: skip


def bridge(name, seed):
    problem = make(name)[0]
    nuts = new_nuts(name)
    starts = np.random.default_rng(seed).normal(size=(4, problem.n_dimensions))
    nuts.run(jax.random.PRNGKey(seed), init_params=starts, extra_fields=("num_steps",))
    draws = np.asarray(nuts.get_samples(group_by_chain=True))
    # steps of the warm-up are not kept: about as many a draw
    n_steps = 2 * int(np.sum(nuts.get_extra_fields()["num_steps"]))
    log_density = Counted(lambda z: problem.log_likelihood(np, z) + norm.logpdf(z).sum(axis=1))
    path = GeometricPath(log_density, base=Gaussian(np.zeros(problem.n_dimensions), 1.0))
    fitted = BridgeSampling(random_state=seed).fit(path, draws=draws)
    log_z, error, n_points, fields = ours(fitted, log_density)
    return log_z, error, n_points + n_steps, fields


def dynesty(name, seed):
    from dynesty import NestedSampler

    problem = make(name)[0]
    log_likelihood = Counted(as_numpy(problem.log_likelihood))
    sampler = NestedSampler(
        lambda z: float(log_likelihood(z[np.newaxis])[0]),
        ndtri,
        problem.n_dimensions,
        nlive=times(500),
        rstate=np.random.default_rng(seed),
    )
    sampler.run_nested(print_progress=False)
    results = sampler.results
    return results.logz[-1], results.logzerr[-1], log_likelihood.n_points, {}


def nautilus(name, seed):
    from nautilus import Sampler

    problem = make(name)[0]
    log_likelihood = Counted(as_numpy(problem.log_likelihood))
    sampler = Sampler(
        ndtri, log_likelihood, n_dim=problem.n_dimensions, vectorized=True, pass_dict=False,
        n_live=min(times(2000, 500), 2000), seed=seed,
    )  # fmt: skip
    sampler.run(n_eff=10_000 if TARGET == 0.1 else 1 / TARGET**2)
    error = 1 / np.sqrt(max(sampler.n_eff, 1))
    return sampler.log_z, error, log_likelihood.n_points, {}


def ultranest(name, seed):
    from ultranest import ReactiveNestedSampler

    problem = make(name)[0]
    np.random.seed(seed)  # noqa: NPY002 (UltraNest takes no seed)
    log_likelihood = Counted(as_numpy(problem.log_likelihood))
    names = [f"z{i}" for i in range(problem.n_dimensions)]
    sampler = ReactiveNestedSampler(names, log_likelihood, ndtri, vectorized=True)
    results = sampler.run(show_status=False, viz_callback=False, min_num_live_points=times(400))
    return results["logz"], results["logzerr"], log_likelihood.n_points, {}


def pocomc(name, seed):
    from pocomc import Prior, Sampler

    problem = make(name)[0]
    log_likelihood = Counted(as_numpy(problem.log_likelihood))
    prior = Prior([norm()] * problem.n_dimensions)
    sampler = Sampler(prior, log_likelihood, vectorize=True, random_state=seed)
    sampler.run(n_total=times(4096), n_evidence=times(4096), progress=False)
    log_z, error = sampler.evidence()
    return log_z, error, log_likelihood.n_points, {}


METHODS = {
    "explored": prior_transform(
        lambda **seed: ImportanceSampling(200_000, proposal="explored", tol=TARGET, **seed)
    ),
    "UntilTrusted": prior_transform(lambda **seed: UntilTrusted(tol=TARGET, **seed)),
    "AdaptiveSMC": prior_transform(AdaptiveSMC),
    "AdaptiveSMC, longer": prior_transform(functools.partial(AdaptiveSMC, max_sweeps=10_000_000)),
    "SMC": prior_transform(SMC),
    "ParallelTempering": prior_transform(ParallelTempering),
    "HAIS, mode": at_mode,
    "NUTS + BridgeSampling": bridge,
    "dynesty": dynesty,
    "nautilus": nautilus,
    "ultranest": ultranest,
    "pocomc": pocomc,
}


def out_of_time(signal_number, frame):
    raise TimeoutError


def run(problem, method, seed, target, limit):
    if (problem, method) in late:
        return []
    truth = make(problem)[1]
    # processor time; again and again, as an exception is lost where it meets a callback
    signal.signal(signal.SIGPROF, out_of_time)
    signal.setitimer(signal.ITIMER_PROF, limit, 1.0)
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log_z, error, n_points, fields = METHODS[method](problem, seed)
    except TimeoutError:
        late.add((problem, method))
        return {"failed": f"more than {limit} s"}
    except Exception as failure:  # what a user would see; the table counts it
        late.add((problem, method))
        return {"failed": f"{type(failure).__name__}: {failure}"[:300]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - started
    off = log_z - truth
    low, high = fields.pop("interval", (log_z - 1.96 * error, log_z + 1.96 * error))
    covers = bool(low <= truth <= high or abs(off) < 0.02)
    found = {"off": off, "error": error, "covers": covers, "n_points": n_points}
    return found | {"seconds": seconds} | fields


late = set()


def report(records, target):
    columns = "runs", "error (rms)", "stated", "converged", "of these cover"
    table("problem", "method", *columns, "evaluations", f"to {target} nats", "seconds")
    for (name, method), found in groups(records, "problem", "method").items():
        fine = [each for each in found if "off" in each]
        if not fine:
            row(name, method, found[0]["failed"], *7 * [""])
            continue
        off, stated = (np.sqrt(np.mean([each[k] ** 2 for each in fine])) for k in ("off", "error"))
        converged = [each for each in fine if each.get("converged", True)]
        n_points = np.mean([each["n_points"] for each in fine])
        seconds = np.median([each["seconds"] for each in fine])
        covered = sum(each["covers"] for each in converged)
        counts = f"{off:.3f}", f"{stated:.3g}", len(converged), covered
        costs = f"{n_points:,.0f}", f"{n_points * (stated / target) ** 2:,.0f}", f"{seconds:.1f}"
        row(name, method, len(fine), *counts, *costs)
    for each in records:
        if each.get("says"):
            print("*", each["problem"], each["method"], each["seed"], *each["says"])


def main():
    others = {"limit": 60, "target": 0.1}
    args = options(__doc__, "reach.jsonl", 20, others, problems=PROBLEMS, methods=METHODS)
    global TARGET
    TARGET = args.target
    fixed = {"target": args.target, "limit": args.limit}
    tasks = [
        {"problem": problem, "method": method, "seed": seed} | fixed
        for seed, problem, method in product(args.seeds, args.problems, args.methods)
    ]
    report(measured(args.results, tasks, run), args.target)


if __name__ == "__main__":
    main()

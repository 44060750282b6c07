"""Is AdaptiveSMC right? Narrow posteriors in wide priors, densities that users bring, and targets
with thin arms, necks, far modes and heavy tails, all with known log Z.

    python tests/benchmarks/adaptive_smc.py [--seeds 20] [--problems WORD ...]
        [--results adaptive_smc.jsonl]

- known: likelihoods and prior transforms without gradients; closed forms and quadrature.
- mixtures made anew: of 1 to 3 Gaussians in 1 to 12 dimensions, in uniform and normal priors.
- users: nine kinds that users bring, with sizes, widths and places from the seed; nothing was tuned
  on these or on the mixtures.
- target: densities on R^d with gradients, from Gaussian bases that are not fitted to them:
  definitions of the sampling literature where there are any; closed forms, quadrature or a transfer
  matrix.

Every run is appended to the results as it ends, and an interrupted benchmark goes on where it
stopped. Prints Markdown.
"""

from __future__ import annotations

import functools
from itertools import product

import numpy as np
from measure import LOG_2PI, judged, measured, options, print_coverage
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp, ndtri
from scipy.stats import multivariate_normal

from sklpf import AdaptiveSMC, Gaussian, GeometricPath
from sklpf.interop import from_prior_transform


# ---- log likelihood, prior transform, dimensions, log Z
def cube(half_width):
    return lambda u: half_width * (2 * u - 1)


def log_gaussian(x, mean, root):
    z = np.linalg.solve(root, (x - mean).T)
    return -0.5 * np.sum(z**2, axis=0) - np.linalg.slogdet(root)[1] - len(mean) / 2 * LOG_2PI


def narrow(d, ratio, correlation=0.6):
    """A prior from -1 to 1 that is `ratio` times as wide as the standard deviations."""
    covariance = (2 / ratio) ** 2 * (correlation + (1 - correlation) * np.eye(d))
    root = np.linalg.cholesky(covariance)
    mean = 0.13 * np.cos(np.arange(d))
    return lambda x: log_gaussian(x, mean, root), cube(1), d, -d * np.log(2)


def two_modes(d, widths, share, distance):
    def log_likelihood(x):
        parts = [
            np.log(weight) + log_gaussian(x, np.full(d, center), width * np.eye(d))
            for weight, center, width in [
                (share, -distance / 2, widths[0]),
                (1 - share, distance / 2, widths[1]),
            ]
        ]
        return np.logaddexp(*parts)

    return log_likelihood, cube(10), d, -d * np.log(20)


def egg_box():
    cosines = np.cos((np.arange(4000) + 0.5) / 4000 * 5 * np.pi)
    truth = logsumexp([logsumexp((2 + c * cosines) ** 5) for c in cosines]) - 2 * np.log(4000)

    def log_likelihood(x):
        return (2 + np.cos(x[:, 0] / 2) * np.cos(x[:, 1] / 2)) ** 5

    return log_likelihood, lambda u: 10 * np.pi * u, 2, truth


def shells(d):
    centers = np.zeros((2, d))
    centers[:, 0] = -3.5, 3.5

    def log_likelihood(x):
        radii = np.linalg.norm(x[:, np.newaxis] - centers, axis=2)
        return logsumexp(-0.5 * ((radii - 2) / 0.1) ** 2, axis=1) - 0.5 * LOG_2PI - np.log(0.1)

    mass = quad(
        lambda r: np.exp(-0.5 * ((r - 2) / 0.1) ** 2) / np.sqrt(2 * np.pi) / 0.1 * r ** (d - 1),
        1,
        3,
    )[0]
    log_area = np.log(2) + d / 2 * np.log(np.pi) - gammaln(d / 2)
    return log_likelihood, cube(6), d, np.log(2 * mass) + log_area - d * np.log(12)


def log_gamma(d):
    def skewed(x, center):
        z = 30 * (x - center)
        return z - np.exp(z) + np.log(30)

    def normal(x, center):
        return -0.5 * (30 * (x - center)) ** 2 + np.log(30) - 0.5 * LOG_2PI

    kinds = [skewed, normal] + [skewed if i < (d + 2) / 2 else normal for i in range(2, d)]
    centers = [[1 / 3, 2 / 3]] * 2 + [[2 / 3]] * (d - 2)

    def part(i, x):
        return logsumexp([kinds[i](x, c) for c in centers[i]], axis=0) - np.log(len(centers[i]))

    grid = (np.arange(200_000) + 0.5) / 200_000
    truth = sum(logsumexp(part(i, grid)) - np.log(len(grid)) for i in range(d))
    return lambda x: sum(part(i, x[:, i]) for i in range(d)), lambda u: u, d, truth


def regression(n, d, seed):
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n, d))
    design[:, 1] = 0.95 * design[:, 0] + 0.1 * design[:, 1]
    target = design @ rng.normal(size=d) + 0.5 * rng.normal(size=n)

    def log_likelihood(x):
        squares = np.sum((target - x @ design.T) ** 2, axis=1)
        return -2 * squares - n * np.log(0.5) - n / 2 * LOG_2PI

    covariance = 100 * design @ design.T + 0.25 * np.eye(n)
    truth = multivariate_normal(np.zeros(n), covariance).logpdf(target)
    return log_likelihood, lambda u: 10 * ndtri(u), d, truth


def hierarchy(d):
    """Observations of effects whose spread is unknown, in non-centred form."""
    seen = 2 * np.random.default_rng(5).normal(size=d - 1)

    def transform(u):
        z = ndtri(u)
        return np.column_stack([3 * z[:, 0], np.exp(1.5 * z[:, :1]) * z[:, 1:]])

    def log_likelihood(x):
        return np.sum(-2 * (x[:, 1:] - seen) ** 2 - np.log(0.5) - 0.5 * LOG_2PI, axis=1)

    v = np.linspace(-30, 30, 60_001)
    variances = np.exp(v) + 0.25
    heights = -0.5 * np.sum(seen**2) / variances - (d - 1) / 2 * np.log(2 * np.pi * variances)
    heights -= v**2 / 18 + np.log(3) + 0.5 * LOG_2PI
    return log_likelihood, transform, d, logsumexp(heights) + np.log(v[1] - v[0])


def rosenbrock():
    def log_likelihood(x):
        return -10 * (x[:, 1] - x[:, 0] ** 2) ** 2 - (1 - x[:, 0]) ** 2 / 10

    grid = np.linspace(-5, 5, 4001)
    fine = np.linspace(-5, 5, 40_001)
    heights = [logsumexp(-10 * (fine - a * a) ** 2) - (1 - a) ** 2 / 10 for a in grid]
    steps = np.log(grid[1] - grid[0]) + np.log(fine[1] - fine[0])
    return log_likelihood, cube(5), 2, logsumexp(heights) + steps - 2 * np.log(10)


def of_family(seed):
    """A mixture of Gaussians in a prior, made anew."""
    rng = np.random.default_rng([77, seed])
    d = int(rng.choice([1, 2, 3, 5, 8, 12]))
    k = int(rng.choice([1, 1, 2, 3]))
    is_uniform = rng.random() < 0.5
    means = rng.uniform(-7, 7, (k, d))
    shares = rng.dirichlet(np.full(k, 3.0))
    width = 0.5 * 10 ** rng.uniform(-2, 0)
    roots = []
    for j in range(k):
        widths = width * 10 ** (rng.uniform(-0.5, 0.5, d) + (j > 0) * rng.uniform(-0.2, 0.2))
        rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
        roots.append(widths[:, np.newaxis] * rotation * 10 ** rng.uniform(-0.3, 0.3, d))
        sd = np.linalg.norm(roots[j], axis=1)
        means[j] = np.clip(means[j], -10 + 6 * sd, 10 - 6 * sd)

    def log_likelihood(x):
        parts = zip(shares, means, roots)
        return logsumexp([np.log(s) + log_gaussian(x, m, r) for s, m, r in parts], axis=0)

    if is_uniform:
        return log_likelihood, cube(10), d, -d * np.log(20)
    wider = [np.linalg.cholesky(root @ root.T + 25 * np.eye(d)) for root in roots]
    parts = zip(shares, means, wider)
    origin = np.zeros((1, d))
    truth = logsumexp([np.log(s) + log_gaussian(origin, m, r)[0] for s, m, r in parts])
    return log_likelihood, lambda u: 5 * ndtri(u), d, truth


def users_egg_box(rng):
    n, power = rng.uniform(2, 6), rng.uniform(2, 6)
    cosines = np.cos((np.arange(4000) + 0.5) / 4000 * n * np.pi)
    truth = logsumexp([logsumexp((2 + c * cosines) ** power) for c in cosines]) - 2 * np.log(4000)

    def log_likelihood(x):
        return (2 + np.cos(x[:, 0]) * np.cos(x[:, 1])) ** power

    return log_likelihood, lambda u: n * np.pi * u, 2, truth


def users_boundary(rng):
    """Mass at sides of the box."""
    rates = rng.choice([-1, 1], size=rng.integers(2, 9)) * 10 ** rng.uniform(0, 2)
    truth = np.sum(np.log(np.expm1(rates) / rates))
    return lambda x: x @ rates, lambda u: u, len(rates), truth


def users_rods(rng):
    """Hard rods on a line."""
    n = int(rng.integers(2, 7))
    length = rng.uniform(0.2, 0.6) / (n - 1)

    def log_likelihood(x):
        apart = np.diff(np.sort(x, axis=1), axis=1).min(axis=1) > length
        return np.where(apart, 0.0, -np.inf)

    return log_likelihood, lambda u: u, n, n * np.log(1 - (n - 1) * length)


def users_order(rng):
    """Parameters in ascending order."""
    d = int(rng.integers(2, 7))
    sd = rng.uniform(0.5, 2)

    def log_likelihood(x):
        normal = -0.5 * np.sum((x / sd) ** 2, axis=1) - d * (np.log(sd) + LOG_2PI / 2)
        return np.where(np.all(np.diff(x, axis=1) > 0, axis=1), normal, -np.inf)

    return log_likelihood, cube(8 * sd), d, -gammaln(d + 1) - d * np.log(16 * sd)


def users_separable(rng):
    """Logistic regression whose classes a line separates."""
    n, sd = int(rng.integers(8, 40)), rng.uniform(3, 30)
    X = rng.normal(size=(n, 2))
    signed = X * np.sign(X @ rng.normal(size=2))[:, np.newaxis]

    def log_likelihood(w):
        return -np.sum(np.logaddexp(0, -w @ signed.T), axis=1)

    grid = sd * np.linspace(-8, 8, 1601)
    points = np.stack(np.meshgrid(grid, grid), axis=-1)
    values = [log_likelihood(row) - 0.5 * np.sum((row / sd) ** 2, axis=1) for row in points]
    truth = logsumexp(values) + 2 * np.log(grid[1] - grid[0]) - 2 * np.log(sd) - LOG_2PI
    return log_likelihood, lambda u: sd * ndtri(u), 2, truth


def users_waves(rng):
    """A Gaussian prior with a sinusoid."""
    d = int(rng.integers(1, 6))
    height, frequency = rng.uniform(1, 4), rng.uniform(1, 5)
    grid = np.linspace(-9, 9, 20_001)
    values = height * np.sin(frequency * grid) - 0.5 * grid**2
    truth = d * (logsumexp(values) + np.log(grid[1] - grid[0]) - LOG_2PI / 2)
    return lambda x: height * np.sum(np.sin(frequency * x), axis=1), ndtri, d, truth


def users_spike(rng):
    """A cube with a share of the mass, on a plateau."""
    d = int(rng.integers(1, 4))
    width, share = 10 ** rng.uniform(-1.5, -0.3), rng.uniform(0.2, 0.9)
    corner = rng.uniform(0, 1 - width, d)
    height = np.log1p(share / (1 - share) / width**d)

    def log_likelihood(x):
        return np.where(np.all((x > corner) & (x < corner + width), axis=1), height, 0.0)

    return log_likelihood, lambda u: u, d, np.log1p(share / (1 - share))


def users_cigar(rng):
    d = int(rng.integers(3, 11))
    widths = 10 ** rng.uniform(-4, -0.5, d)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    root = rotation * widths
    mean = rng.uniform(-3, 3, d)
    return lambda x: log_gaussian(x, mean, root), cube(6), d, -d * np.log(12)


def users_narrow(rng):
    """A narrow mode in a wide one."""
    d = int(rng.choice([2, 3, 5]))
    widths = 1.0, 10 ** rng.uniform(-2, -0.3)
    share = rng.uniform(0.2, 0.8)
    centers = rng.uniform(-3, 3, d), np.zeros(d)

    def log_likelihood(x):
        parts = zip((share, 1 - share), centers, widths)
        return np.logaddexp(*(np.log(s) + log_gaussian(x, c, w * np.eye(d)) for s, c, w in parts))

    return log_likelihood, cube(10), d, -d * np.log(20)


USERS = {
    "egg box": users_egg_box,
    "mass at sides": users_boundary,
    "hard rods": users_rods,
    "parameters in order": users_order,
    "separable logistic regression": users_separable,
    "sinusoids": users_waves,
    "spike on a plateau": users_spike,
    "cigar": users_cigar,
    "narrow mode in a wide one": users_narrow,
}
KNOWN = {
    "prior 1000 times as wide, 2-D": lambda: narrow(2, 1e3),
    "prior 100 times as wide, 5-D": lambda: narrow(5, 100),
    "prior 10,000 times as wide, 10-D": lambda: narrow(10, 1e4),
    "prior 100 times as wide, 20-D": lambda: narrow(20, 100, 0.3),
    "two modes, 2-D": lambda: two_modes(2, (0.5, 0.1), 0.3, 8),
    "two modes, 5-D": lambda: two_modes(5, (0.5, 0.15), 0.3, 6),
    "two modes, 10-D": lambda: two_modes(10, (0.5, 0.3), 0.5, 6),
    "egg box, 2-D": egg_box,
    "Gaussian shells, 2-D": lambda: shells(2),
    "Gaussian shells, 5-D": lambda: shells(5),
    "Gaussian shells, 10-D": lambda: shells(10),
    "LogGamma, 2-D": lambda: log_gamma(2),
    "LogGamma, 10-D": lambda: log_gamma(10),
    "Rosenbrock, 2-D": rosenbrock,
    "linear regression, 4-D": lambda: regression(40, 4, 0),
    "linear regression, 8-D": lambda: regression(60, 8, 1),
    "linear regression, 15-D": lambda: regression(80, 15, 2),
    "hierarchy, 10-D": lambda: hierarchy(10),
}


# ---- log density, gradient, dimensions, standard deviation of the base, log Z
def funnel(d):
    """Neal's, in its own coordinates."""

    def log_density(x):
        v = x[:, 0]
        first = -(v**2) / 18 - np.log(3) - 0.5 * LOG_2PI
        rest = np.sum(x[:, 1:] ** 2, axis=1) * np.exp(-v) + (d - 1) * (v + LOG_2PI)
        return first - 0.5 * rest

    def grad(x):
        v = x[:, 0]
        precision = np.exp(-v)
        squares = np.sum(x[:, 1:] ** 2, axis=1)
        first = -v / 9 + 0.5 * squares * precision - 0.5 * (d - 1)
        return np.column_stack([first, -x[:, 1:] * precision[:, np.newaxis]])

    return log_density, grad, d, 3.0, 0.0


def many_well(n_wells):
    def log_density(x):
        a = x[:, :n_wells]
        return np.sum(-(a**4) + 6 * a**2 + 0.5 * a - 0.5 * x[:, n_wells:] ** 2, axis=1)

    def grad(x):
        a = x[:, :n_wells]
        return np.column_stack([-4 * a**3 + 12 * a + 0.5, -x[:, n_wells:]])

    well = quad(lambda a: np.exp(-(a**4) + 6 * a * a + 0.5 * a), -5, 5)[0]
    return log_density, grad, 2 * n_wells, 2.0, n_wells * (np.log(well) + 0.5 * LOG_2PI)


def mixture(centers, base_scale, log_part, pull):
    """Equal parts: `log_part` of squared distances, and `pull`, minus its slope in half of them."""
    norms = np.sum(centers**2, axis=1)

    def squares(x):
        return np.maximum(np.sum(x**2, axis=1)[:, np.newaxis] - 2 * x @ centers.T + norms, 0)

    def log_density(x):
        return logsumexp(log_part(squares(x)), axis=1) - np.log(len(centers))

    def grad(x):
        distances = squares(x)
        shares = log_part(distances)
        shares = np.exp(shares - logsumexp(shares, axis=1, keepdims=True)) * pull(distances)
        return shares @ centers - x * shares.sum(axis=1, keepdims=True)

    return log_density, grad, centers.shape[1], base_scale, 0.0


def gaussians(d, base_scale=40.0):
    centers = np.random.default_rng(0).uniform(-40, 40, (40, d))
    return mixture(centers, base_scale, lambda s: -0.5 * s - 0.5 * d * LOG_2PI, np.ones_like)


def students(d, df=2.0):
    centers = np.random.default_rng(1).uniform(-10, 10, (10, d))
    log_norm = gammaln(0.5 * (df + d)) - gammaln(0.5 * df) - 0.5 * d * np.log(df * np.pi)

    def log_part(squares):
        return log_norm - 0.5 * (df + d) * np.log1p(squares / df)

    return mixture(centers, 15.0, log_part, lambda squares: (df + d) / (df + squares))


def banana(d, base_scale):
    """A Gaussian with standard deviation 10 in the first coordinate, bent along its square."""

    def bent(x):
        return x[:, 1] + 0.1 * x[:, 0] ** 2 - 10

    def log_density(x):
        squares = x[:, 0] ** 2 / 100 + bent(x) ** 2 + np.sum(x[:, 2:] ** 2, axis=1)
        return -0.5 * squares - np.log(10) - 0.5 * d * LOG_2PI

    def grad(x):
        slope = -x
        slope[:, 0] = -x[:, 0] / 100 - 0.2 * x[:, 0] * bent(x)
        slope[:, 1] = -bent(x)
        return slope

    return log_density, grad, d, base_scale, 0.0


def long_rosenbrock(d):
    """All other coordinates follow the square of the first one."""

    def log_density(x):
        rest = x[:, 1:] - x[:, :1] ** 2
        return -0.05 * (x[:, 0] - 1) ** 2 - 5 * np.sum(rest**2, axis=1)

    def grad(x):
        rest = x[:, 1:] - x[:, :1] ** 2
        first = -0.1 * (x[:, 0] - 1) + 20 * x[:, 0] * rest.sum(axis=1)
        return np.column_stack([first, -10 * rest])

    log_z = 0.5 * np.log(np.pi / 0.05) + 0.5 * (d - 1) * np.log(np.pi / 5)
    return log_density, grad, d, 5.0, log_z


def two_widths(d, widths=(1.0, 0.3), distance=3.0):
    centers = np.array([np.full(d, -distance), np.full(d, distance)])
    variances = np.square(widths)

    def parts(x):
        squares = np.sum((x[:, np.newaxis] - centers) ** 2, axis=2)
        return -0.5 * squares / variances - 0.5 * d * (np.log(variances) + LOG_2PI) - np.log(2)

    def grad(x):
        shares = parts(x)
        shares = np.exp(shares - logsumexp(shares, axis=1, keepdims=True)) / variances
        return shares @ centers - x * shares.sum(axis=1, keepdims=True)

    return lambda x: logsumexp(parts(x), axis=1), grad, d, 5.0, 0.0


def lattice(length):
    """phi^4 on 2 x length sites with periodic boundaries."""

    def log_density(x):
        phi = x.reshape(-1, 2, length)
        links = sum((phi - np.roll(phi, -1, axis)) ** 2 for axis in (1, 2))
        return -np.sum(links - 4 * phi**2 + phi**4, axis=(1, 2))

    def grad(x):
        phi = x.reshape(-1, 2, length)
        slope = -8 * phi + 4 * phi**3
        for axis in (1, 2):
            slope += 2 * (2 * phi - np.roll(phi, -1, axis) - np.roll(phi, 1, axis))
        return -slope.reshape(len(x), -1)

    grid, step = np.linspace(-3.6, 3.6, 61, retstep=True)
    a, b = (each.ravel() for each in np.meshgrid(grid, grid))
    column = 2 * (a - b) ** 2 - 4 * (a**2 + b**2) + a**4 + b**4
    action = 0.5 * (column[:, np.newaxis] + column)
    action += (a[:, np.newaxis] - a) ** 2 + (b[:, np.newaxis] - b) ** 2
    values = np.linalg.eigvalsh(np.exp(-action) * step**2)
    largest = values[-1]
    log_z = length * np.log(largest) + np.log(np.sum((values / largest) ** length))
    return log_density, grad, 2 * length, 2.0, log_z


TARGETS = {
    "funnel, 10-D": lambda: funnel(10),
    "banana, 5-D, base half as wide": lambda: banana(5, 5.0),
    "banana, 20-D": lambda: banana(20, 10.0),
    "Rosenbrock, 4-D": lambda: long_rosenbrock(4),
    "Rosenbrock, 10-D": lambda: long_rosenbrock(10),
    "40 Gaussians, 2-D": lambda: gaussians(2),
    "40 Gaussians, 2-D, base a quarter as wide": lambda: gaussians(2, 10.0),
    "40 Gaussians, 5-D, base a quarter as wide": lambda: gaussians(5, 10.0),
    "ten Student-t, 10-D": lambda: students(10),
    "two widths, 10-D": lambda: two_widths(10),
    "phi^4, 2 x 16 sites": lambda: lattice(16),
    "ManyWell, 32-D": lambda: many_well(16),
    "ten Student-t, 50-D": lambda: students(50),
    "40 Gaussians, 50-D": lambda: gaussians(50),
}


PROBLEMS = {
    **{f"known, {name}": make for name, make in KNOWN.items()},
    "mixtures made anew": of_family,
    **{f"users, {name}": make for name, make in USERS.items()},
    **{f"target, {name}": make for name, make in TARGETS.items()},
}


@functools.cache
def fixed(problem):
    return PROBLEMS[problem]()


def make(problem, seed):
    """A path and its log Z."""
    if problem.startswith("target"):
        log_density, grad, d, base_scale, truth = fixed(problem)
        base = Gaussian(np.zeros(d), base_scale**2)
        return GeometricPath(log_density, grad=grad, base=base), truth
    if problem.startswith("known"):
        *prior, truth = fixed(problem)
    elif problem.startswith("users"):
        name = problem.removeprefix("users, ")
        *prior, truth = PROBLEMS[problem](np.random.default_rng([78, seed, *name.encode()]))
    else:
        *prior, truth = of_family(seed)
    return from_prior_transform(*prior, vectorized=True), truth


def run(problem, seed):
    return judged(AdaptiveSMC(random_state=seed), *make(problem, seed))


def main():
    args = options(__doc__, "adaptive_smc.jsonl", 20, problems=PROBLEMS)
    pairs = product(args.seeds, args.problems)
    tasks = ({"problem": problem, "seed": seed} for seed, problem in pairs)
    print_coverage(measured(args.results, tasks, run), "problem")


if __name__ == "__main__":
    main()

"""Do results that explore a density cover? Densities of 31 kinds in 2 to 12 dimensions and others,
each made anew from its seed.

    python tests/benchmarks/exploring.py [--seeds 4] [--kinds WORD ...]
        [--estimator {explored,UntilTrusted,short runs first}] [--max-evaluations N]
        [--dimensions D ...] [--results exploring.jsonl]

explored: `ImportanceSampling(proposal="explored")`. UntilTrusted has its defaults, for RBMs those
of larger ones, as `Exact` would answer; "short runs first" begins with SMC with 30 to 300 levels.
Kinds that `UntilTrusted` alone is for: bent mixtures, also in 21 to 30 dimensions and with draws,
mixtures in a prior transform, and RBMs.

log Z has a closed form or is quadrature's; of logistic, Poisson and robust regressions it is
importance sampling's from a t distribution at the mode, with a standard error below 0.005. Nothing
was chosen on seeds from 1000 on. Every run is appended to the results as it ends, and an
interrupted benchmark goes on where it stopped. Prints Markdown; evaluations are those of exploring
and checks, medians.
"""

from __future__ import annotations

import itertools
import warnings
import zlib

import numpy as np
from adaptive_smc import of_family
from fresh_models import rbm
from measure import LOG_2PI, by_importance, judged, measured, options, print_coverage
from scipy import integrate, stats
from scipy.optimize import minimize
from scipy.special import expit, gammaln, logsumexp, multigammaln

from sklpf import (
    SMC,
    AdaptiveSMC,
    BernoulliRBM,
    Exact,
    Gaussian,
    GeometricPath,
    ParallelTempering,
    Uniform,
    UntilTrusted,
)
from sklpf.interop import from_prior_transform
from sklpf.partition import ImportanceSampling


def normal(x, mean=0.0, sd=1.0):
    return (-0.5 * (((x - mean) / sd) ** 2 + LOG_2PI) - np.log(sd)).sum(axis=-1)


def linear_evidence(A, y, scale, noise):
    """log N(y | 0, scale^2 A A' + noise^2)."""
    n, d = A.shape
    precision = A.T @ A / noise**2 + np.eye(d) / scale**2
    b = A.T @ y / noise**2
    log_det = np.linalg.slogdet(precision)[1] + 2 * d * np.log(scale) + 2 * n * np.log(noise)
    return -0.5 * (n * LOG_2PI + log_det + y @ y / noise**2 - b @ np.linalg.solve(precision, b))


def log_trapezoid(logs, grid):
    return float(logsumexp(logs) + np.log(grid[1] - grid[0]))


def with_one_mode(log_density, d):
    """log Z by importance sampling."""
    x = np.zeros(d)
    for _ in range(3):
        x = minimize(lambda x: -log_density(x[np.newaxis])[0], x).x
    i, j = 1e-3 * np.eye(d)[:, np.newaxis], 1e-3 * np.eye(d)
    corners = (x + i + j, x - i - j), (x + i - j, x - i + j)
    above, below = (sum(log_density(at.reshape(-1, d)) for at in each) for each in corners)
    covariance = 1.2 * np.linalg.inv((below - above).reshape(d, d) / 4e-6)
    log_z, error = by_importance(log_density, x, covariance, 5 + d)
    assert error < 0.005
    return log_z


class Parts:
    """Normal or t distributions with shares, means (K, d) and roots of covariances (K, d, d), bent
    along the square of the first coordinate.
    """

    def __init__(self, shares, means, roots, df=np.inf, bend=0.0):
        self.log_shares, self.means, self.roots = np.log(shares), means, roots
        self.df, self.bend = df, bend
        self.inverses = np.linalg.inv(roots)
        self.log_dets = np.linalg.slogdet(self.inverses)[1]

    def sample(self, n, rng):
        which = rng.choice(len(self.means), n, p=np.exp(self.log_shares))
        z = rng.normal(size=(n, self.means.shape[1]))
        if np.isfinite(self.df):
            z /= np.sqrt(rng.chisquare(self.df, size=(n, 1)) / self.df)
        x = self.means[which] + np.einsum("nij,nj->ni", self.roots[which], z)
        x[:, 1] += self.bend * x[:, 0] ** 2
        return x

    def parts(self, x):
        """Log density of each part (K, n), minus its slope in half of the squared distance, and
        standardised points (K, n, d).
        """
        d = x.shape[1]
        straight = np.array(x)
        straight[:, 1] -= self.bend * x[:, 0] ** 2
        z = np.einsum("kij,knj->kni", self.inverses, straight - self.means[:, np.newaxis])
        squares = np.sum(z**2, axis=2)
        if np.isinf(self.df):
            logs, pull = -0.5 * (squares + d * LOG_2PI), np.ones_like(squares)
        else:
            half = (self.df + d) / 2
            logs = gammaln(half) - gammaln(self.df / 2) - d / 2 * np.log(self.df * np.pi)
            logs = logs - half * np.log1p(squares / self.df)
            pull = (self.df + d) / (self.df + squares)
        return logs + (self.log_shares + self.log_dets)[:, np.newaxis], pull, z

    def __call__(self, x):
        return logsumexp(self.parts(x)[0], axis=0)

    def grad(self, x):
        logs, pull, z = self.parts(x)
        shares = pull * np.exp(logs - logsumexp(logs, axis=0))
        slope = -np.einsum("kn,kni,kij->nj", shares, z, self.inverses)
        slope[:, 0] -= 2 * self.bend * x[:, 0] * slope[:, 1]
        return slope


def turned_roots(rng, widths):
    """Roots of covariances (K, d, d) of parts with widths (K, d)."""
    n_parts, d = widths.shape
    rotations = np.linalg.qr(rng.normal(size=(n_parts, d, d)))[0]
    return rotations * widths[:, np.newaxis]


def wide_base(rng, d, low=3.0, high=6.0):
    return Gaussian(np.zeros(d), rng.uniform(low, high) ** 2)


# ---- mixtures
def even_mixture(rng, d):
    n = rng.integers(2, 5)
    widths = np.full((n, d), rng.uniform(0.3, 1.0))
    parts = Parts(
        rng.dirichlet(np.full(n, 5)), rng.uniform(-4, 4, (n, d)), turned_roots(rng, widths)
    )
    return parts, wide_base(rng, d), None, 0.0


def unequal_mixture(rng, d):
    n = rng.integers(2, 5)
    widths = np.exp(rng.uniform(np.log(0.3), np.log(1.5), (n, 1))) * np.ones(d)
    parts = Parts(
        rng.dirichlet(np.full(n, 2)), rng.normal(0, 2.5, (n, d)), turned_roots(rng, widths)
    )
    return parts, wide_base(rng, d), None, 0.0


def turned_mixture(rng, d):
    n = rng.integers(2, 5)
    widths = np.exp(rng.uniform(np.log(0.2), np.log(1.5), (n, d)))
    parts = Parts(
        rng.dirichlet(np.full(n, 3)), rng.normal(0, 2.5, (n, d)), turned_roots(rng, widths)
    )
    return parts, wide_base(rng, d), None, 0.0


def far_mixture(rng, d):
    n = rng.integers(2, 5)
    directions = rng.normal(size=(n, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    widths = np.exp(rng.uniform(np.log(0.12), np.log(1.2), (n, d)))
    means = directions * rng.uniform(0, 13, (n, 1))
    parts = Parts(rng.dirichlet(np.full(n, 3)), means, turned_roots(rng, widths))
    return parts, wide_base(rng, d, 1, 3), None, 0.0


def boxed_mixture(rng, d):
    n = rng.integers(2, 5)
    widths = np.exp(rng.uniform(np.log(0.02), np.log(0.08), (n, d)))
    roots = widths[:, np.newaxis] * np.eye(d)
    parts = Parts(rng.dirichlet(np.full(n, 3)), rng.uniform(0.4, 0.6, (n, d)), roots)
    parts.means = np.where(rng.random((n, d)) < 0.5, parts.means, rng.uniform(0.25, 0.75, (n, d)))
    low, high = (0 - parts.means) / widths, (1 - parts.means) / widths
    inside = np.log(stats.norm.cdf(high) - stats.norm.cdf(low)).sum(axis=1)
    return parts, Uniform(np.zeros(d), np.ones(d)), (0, 1), logsumexp(parts.log_shares + inside)


def student_mixture(rng, d):
    n = rng.integers(1, 4)
    widths = np.exp(rng.uniform(np.log(0.3), np.log(1.0), (n, d)))
    means = rng.normal(0, 2.5, (n, d))
    parts = Parts(
        rng.dirichlet(np.full(n, 3)), means, turned_roots(rng, widths), rng.uniform(4, 12)
    )
    return parts, wide_base(rng, d), None, 0.0


def needles(rng, d):
    """One or two parts a thousandth as wide as the base."""
    n = rng.integers(1, 3)
    widths = 10 ** rng.uniform(-3, -2, (1, d)) * np.ones((n, 1))
    means = rng.normal(0, 2, (n, d))
    return Parts(np.full(n, 1 / n), means, turned_roots(rng, widths)), wide_base(rng, d), None, 0.0


def labels(rng, d):
    """One mode for each order of three groups of coordinates, or of two."""
    n = 3 if d % 3 == 0 else 2
    size = d // n
    groups = rng.normal(0, 2, (n, size))
    rest = rng.normal(0, 2, d - n * size)
    orders = list(itertools.permutations(range(n)))
    means = np.array([np.concatenate([groups[list(order)].ravel(), rest]) for order in orders])
    roots = np.broadcast_to(rng.uniform(0.2, 0.6) * np.eye(d), (len(orders), d, d))
    return Parts(np.full(len(orders), 1 / len(orders)), means, roots), wide_base(rng, d), None, 0.0


def correlated(rng, d):
    """One normal distribution with condition numbers up to 10^6."""
    widths = 10 ** rng.uniform(-2, 1, (1, d))
    parts = Parts([1.0], rng.normal(0, 1, (1, d)), turned_roots(rng, widths))
    return parts, wide_base(rng, d, 5, 10), None, 0.0


# ---- regressions
def design(rng, n, d):
    return np.c_[np.ones(n), rng.normal(size=(n, d - 1)) * np.exp(0.5 * rng.normal(size=d - 1))]


def regression(rng, d):
    n = int(rng.integers(d + 5, 5 * d + 30))
    A = rng.normal(size=(n, d)) + rng.normal(size=(n, 1)) * rng.choice([0, 1, 2])
    scale, noise = rng.uniform(1, 5), rng.uniform(0.3, 2)
    y = A @ rng.normal(size=d) + noise * rng.normal(size=n)

    def log_density(x):
        return normal(x, 0, scale) + normal(y - x @ A.T, 0, noise)

    return log_density, Gaussian(np.zeros(d), scale**2), None, linear_evidence(A, y, scale, noise)


def collinear(rng, d):
    n = 8 * d
    share = 10 ** rng.uniform(-3, -1)
    A = np.sqrt(share) * rng.normal(size=(n, d)) + np.sqrt(1 - share) * rng.normal(size=(n, 1))
    y = A @ np.ones(d) + rng.normal(size=n)

    def log_density(x):
        return normal(x, 0, 3) + normal(y - x @ A.T)

    return log_density, Gaussian(np.zeros(d), 9.0), None, linear_evidence(A, y, 3.0, 1.0)


def unknown_noise(rng, d):
    """d - 1 coefficients and the log of the noise."""
    n = int(rng.integers(d + 5, 5 * d + 30))
    A = design(rng, n, d - 1)
    y = A @ rng.normal(size=d - 1) + rng.uniform(0.2, 2) * rng.normal(size=n)

    def log_density(x):
        noise = np.exp(np.clip(x[:, -1:], -200, 200))
        return normal(x, 0, np.append(np.full(d - 1, 4.0), 1.5)) + normal(y, x[:, :-1] @ A.T, noise)

    grid = np.linspace(-8, 8, 4001)
    logs = [linear_evidence(A, y, 4.0, np.exp(v)) + normal(np.array([v]), 0, 1.5) for v in grid]
    base = Gaussian(np.zeros(d), np.append(np.full(d - 1, 16.0), 2.25))
    return log_density, base, None, log_trapezoid(logs, grid)


def logistic(rng, d):
    A = design(rng, int(rng.integers(15 * d, 50 * d)), d)
    scale = rng.uniform(1, 5)
    signed = A * np.where(rng.random(len(A)) < expit(A @ rng.normal(size=d)), 1, -1)[:, np.newaxis]

    def log_density(x):
        return normal(x, 0, scale) - np.logaddexp(0, -x @ signed.T).sum(axis=1)

    return log_density, Gaussian(np.zeros(d), scale**2), None, with_one_mode(log_density, d)


def poisson(rng, d):
    A = design(rng, int(rng.integers(10 * d, 30 * d)), d)
    y = rng.poisson(np.exp(np.minimum(0.4 * A @ rng.normal(size=d), 5)))

    def log_density(x):
        eta = x @ A.T
        with np.errstate(over="ignore"):
            return normal(x, 0, 2.0) + (y * eta - np.exp(eta) - gammaln(y + 1)).sum(axis=1)

    return log_density, Gaussian(np.zeros(d), 4.0), None, with_one_mode(log_density, d)


def robust(rng, d):
    """Errors of a t distribution with four degrees of freedom."""
    A = design(rng, int(rng.integers(10 * d, 20 * d)), d)
    y = A @ rng.normal(size=d) + 0.5 * rng.standard_t(4, size=len(A))

    def log_density(x):
        return normal(x, 0, 3.0) + stats.t.logpdf(y - x @ A.T, 4, 0, 0.5).sum(axis=1)

    return log_density, Gaussian(np.zeros(d), 9.0), None, with_one_mode(log_density, d)


def along_a_line(rng, d, columns, grid, log_prior, to_base):
    """Coefficients of d - 1 columns that depend on one more parameter, which comes first."""
    n = 60
    t = np.sort(rng.uniform(0, 1, n))
    others = rng.normal(size=(n, d))
    place = to_base(rng)
    A = columns(t, others, place)
    noise = rng.uniform(0.2, 1)
    y = A @ rng.normal(0, 1.5, size=d - 1) + noise * rng.normal(size=n)

    def log_density(x):
        means = np.array([columns(t, others, row[0]) @ row[1:] for row in x])
        return log_prior(x[:, 0]) + normal(x[:, 1:], 0, 3) + normal(y, means, noise)

    logs = [linear_evidence(columns(t, others, v), y, 3.0, noise) for v in grid]
    return log_density, log_trapezoid(logs + log_prior(grid), grid)


def period(rng, d):
    """A sinusoid of unknown frequency, and other columns."""

    def columns(t, others, log_f):
        angle = 2 * np.pi * np.exp(np.clip(log_f, -9, 9)) * t
        return np.c_[np.sin(angle), np.cos(angle), others][:, : d - 1]

    def log_prior(v):
        return -0.5 * (((v - 1.5) / 0.7) ** 2 + LOG_2PI) - np.log(0.7)

    grid = np.linspace(-3, 6, 18_001)
    made = along_a_line(rng, d, columns, grid, log_prior, lambda rng: rng.uniform(0.5, 3))
    base = Gaussian(np.append(1.5, np.zeros(d - 1)), np.append(0.49, np.full(d - 1, 9.0)))
    return made[0], base, None, made[1]


def change_point(rng, d):
    """A step at an unknown place, and other columns: the density jumps."""

    def columns(t, others, place):
        return np.c_[t > place, others][:, : d - 1]

    def log_prior(v):
        return np.where((v > 0) & (v < 1), 0.0, -np.inf)

    grid = (np.arange(20_000) + 0.5) / 20_000
    made = along_a_line(rng, d, columns, grid, log_prior, lambda rng: rng.uniform(0.2, 0.8))

    class Base:
        """Uniform in the first coordinate, normal in the others."""

        normalised = True
        n_dimensions = d
        center = np.append(0.5, np.zeros(d - 1))
        scale = np.append(0.3, np.full(d - 1, 3.0))

        def sample(self, n, rng):
            return np.c_[rng.random(n), rng.normal(0, 3, (n, d - 1))]

        def log_density(self, x):
            return log_prior(x[:, 0]) + normal(x[:, 1:], 0, 3)

    bounds = (np.append(0.0, np.full(d - 1, -np.inf)), np.append(1.0, np.full(d - 1, np.inf)))
    return made[0], Base(), bounds, made[1]


# ---- hierarchies
def effects_of(rng, n):
    errors = rng.uniform(0.5, 2, size=n)
    return rng.normal() + rng.normal(size=n) * rng.uniform(0.3, 3) + errors * rng.normal(
        size=n
    ), errors


def hierarchy_evidence(y, errors):
    """Of effects around a mean ~ N(0, 9) with a log scale ~ N(0, 1)."""
    grid = np.linspace(-7, 7, 2001)
    logs = []
    for v in grid:
        variances = errors**2 + np.exp(2 * v)
        total, weighted = np.sum(1 / variances), np.sum(y / variances)
        log_n = -0.5 * np.sum(y**2 / variances + np.log(variances) + LOG_2PI)
        logs.append(log_n + 0.5 * weighted**2 / (total + 1 / 9) - 0.5 * np.log1p(9 * total))
    return log_trapezoid(np.array(logs) + stats.norm.logpdf(grid), grid)


def not_centred(rng, d):
    y, errors = effects_of(rng, d - 2)

    def log_density(x):
        effects = x[:, :1] + np.exp(np.clip(x[:, 1:2], -99, 99)) * x[:, 2:]
        return normal(x, 0, np.append(3.0, np.ones(d - 1))) + normal(y, effects, errors)

    base = Gaussian(np.zeros(d), np.append(9.0, np.ones(d - 1)))
    return log_density, base, None, hierarchy_evidence(y, errors)


def centred(rng, d):
    """The same with a scale of which the data say more: no funnel."""
    y, errors = effects_of(rng, d - 2)
    errors = errors * 0.2

    def log_density(x):
        scale = np.exp(np.clip(x[:, 1:2], -99, 99))
        log_prior = normal(x[:, :2], 0, np.array([3.0, 1.0])) + normal(x[:, 2:], x[:, :1], scale)
        return log_prior + normal(y, x[:, 2:], errors)

    base = Gaussian(np.zeros(d), np.concatenate([[9.0, 1.0], np.full(d - 2, 16.0)]))
    return log_density, base, None, hierarchy_evidence(y, errors)


def sparse_means(rng, d):
    """Means and the logs of their scales, in pairs."""
    n = d // 2
    y = rng.normal(size=n) + rng.choice([0, 4], size=n)

    def log_density(x):
        scales = np.exp(np.clip(2 * x[:, n : 2 * n] - 1, -99, 99))
        return normal(x) + normal(y, scales * x[:, :n])

    grid = np.linspace(-8, 8, 4001)
    spread = np.hypot(1, np.exp(2 * grid - 1))
    logs = [stats.norm.logpdf(v, 0, spread) + stats.norm.logpdf(grid) for v in y]
    return (
        log_density,
        Gaussian(np.zeros(d), 1.0),
        None,
        sum(log_trapezoid(each, grid) for each in logs),
    )


# ---- bounds and shapes
def shapes_of_beta(rng, d):
    return rng.choice([1.0, 2.0, 8.0, 60.0], size=d), rng.choice([1.0, 3.0, 20.0], size=d)


def bounded(rng, d):
    """Beta distributions within a box, some of them at its sides."""
    a, b = shapes_of_beta(rng, d)
    base = Uniform(np.full(d, -2.0), np.full(d, 2.0))
    return lambda x: stats.beta.logpdf((x + 2) / 4, a, b).sum(axis=1), base, (-2, 2), d * np.log(4)


def logits(rng, d):
    """The logits of parameters between 0 and 1."""
    a, b = shapes_of_beta(rng, d)

    def log_density(x):
        logs = -a * np.logaddexp(0, -x) - b * np.logaddexp(0, x)
        return (logs + gammaln(a + b) - gammaln(a) - gammaln(b)).sum(axis=1)

    return log_density, wide_base(rng, d, 2.5, 4), None, 0.0


def positive(rng, d):
    """Gamma distributions above 0."""
    shape, rate = rng.uniform(1, 8, d), np.exp(rng.normal(size=d))

    class Base:
        """Log-normal."""

        normalised = True
        n_dimensions = d
        center = np.exp(0.5 * 2.25) * np.ones(d)
        scale = 3 * np.ones(d)

        def sample(self, n, rng):
            return np.exp(1.5 * rng.normal(size=(n, d)))

        def log_density(self, x):
            return stats.lognorm.logpdf(x, 1.5).sum(axis=1)

    return lambda x: stats.gamma.logpdf(x, shape, 0, 1 / rate).sum(axis=1), Base(), (0, np.inf), 0.0


def ordered(rng, d):
    """Normal coordinates in falling order."""
    n = min(d, 4)

    def log_density(x):
        is_in = np.all(np.diff(x[:, :n], axis=1) < 0, axis=1)
        return np.where(is_in, normal(x, 0, 2), -np.inf)

    return log_density, wide_base(rng, d), None, -gammaln(n + 1)


def wishart(rng, d):
    """Log variances and correlations of a Wishart matrix: its Cholesky factor, logs of diagonal."""
    n = 2 if d < 6 else 3
    d_used = n * (n + 1) // 2
    dof = n + rng.uniform(2, 20)
    low = np.tril_indices(n, -1)

    def log_density(x):
        L = np.zeros((len(x), n, n))
        diagonal = np.exp(np.clip(x[:, :n], -50, 50))
        L[:, np.arange(n), np.arange(n)] = diagonal
        L[:, low[0], low[1]] = x[:, n:d_used]
        log_jacobian = n * np.log(2) + (x[:, :n] * (n - np.arange(n) + 1)).sum(axis=1)
        log_f = (dof - n - 1) * x[:, :n].sum(axis=1) - 0.5 * np.sum(L**2, axis=(1, 2))
        rest = normal(x[:, d_used:]) if d > d_used else 0.0
        return log_f + log_jacobian + rest

    log_z = dof * n / 2 * np.log(2) + multigammaln(dof / 2, n)
    return log_density, wide_base(rng, d), None, log_z


def banana(rng, d):
    bend, width = rng.uniform(0.05, 0.4), rng.uniform(0.3, 1)

    def log_density(x):
        y = x.copy()
        y[:, 1] = x[:, 1] + bend * (x[:, 0] ** 2 - 4)
        return normal(y, 0, np.append(2.0, np.full(d - 1, width)))

    return log_density, Gaussian(np.zeros(d), 16.0), None, 0.0


def student(rng, d):
    """Coordinates with tails of three to eight degrees of freedom, turned."""
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    df, scale, mean = rng.uniform(3, 8), rng.uniform(0.1, 1, size=d), rng.normal(size=d)

    def log_density(x):
        return stats.t.logpdf((x - mean) @ turn / scale, df).sum(axis=1) - np.log(scale).sum()

    return log_density, Gaussian(np.zeros(d), 9.0), None, 0.0


def skewed(rng, d):
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    skew, scale, mean = rng.uniform(-6, 6, d), np.exp(rng.uniform(-2, 0.5, d)), rng.normal(size=d)

    def log_density(x):
        return (
            stats.skewnorm.logpdf((x - mean) @ turn / scale, skew).sum(axis=1) - np.log(scale).sum()
        )

    return log_density, wide_base(rng, d), None, 0.0


# ---- kinds on which exploring may be flagged
def funnel(rng, d):
    """A scale whose d - 1 effects are hardly measured, centred."""
    width = rng.uniform(0.5, 1.2)
    y = rng.normal(size=d - 1)

    def log_density(x):
        effects = normal(x[:, 1:], 0, np.exp(np.clip(width * x[:, :1], -99, 99)))
        return stats.norm.logpdf(x[:, 0]) + effects + normal(y, x[:, 1:], 3.0)

    def integrand(v):
        return np.exp(stats.norm.logpdf(v) + normal(y, 0, np.hypot(3.0, np.exp(width * v))))

    log_z = np.log(integrate.quad(integrand, -9, 9)[0])
    return log_density, Gaussian(np.zeros(d), 4.0), None, log_z


def shell(rng, d):
    radius, width = rng.uniform(1, 3), rng.uniform(0.1, 0.4)

    def log_density(x):
        return stats.norm.logpdf(np.linalg.norm(x, axis=1), radius, width)

    area = np.log(2) + d / 2 * np.log(np.pi) - gammaln(d / 2)
    grid = np.linspace(1e-9, radius + 12 * width, 20_001)
    logs = area + (d - 1) * np.log(grid) + stats.norm.logpdf(grid, radius, width)
    return log_density, Gaussian(np.zeros(d), 9.0), None, log_trapezoid(logs, grid)


def spike(rng, d):
    """A mode 5 to 50 times narrower in a wide one."""
    roots = np.array([np.eye(d), np.exp(rng.uniform(np.log(0.02), np.log(0.2))) * np.eye(d)])
    means = np.array([np.zeros(d), rng.normal(size=d)])
    return Parts([0.5, 0.5], means, roots), wide_base(rng, d), None, 0.0


# ---- kinds for UntilTrusted alone: a path, its log Z, and draws or None
def bent(rng, d, df=np.inf):
    n = int(rng.integers(1, 4))
    roots = turned_roots(rng, np.exp(0.5 * rng.normal(size=(n, d))))
    means = rng.normal(size=(n, d)) * rng.uniform(0, 4)
    bend = rng.choice([0.0, rng.uniform(0, 0.3)])
    return Parts(rng.dirichlet(np.full(n, 3.0)), means, roots, df, bend)


def bent_path(rng, parts, has_gradient):
    """From a base that is far wider."""
    grad = parts.grad if has_gradient else None
    base = Gaussian(
        np.zeros(parts.means.shape[1]), np.exp(rng.uniform(np.log(5), np.log(100))) ** 2
    )
    return GeometricPath(parts, grad=grad, base=base)


def bent_normals(rng, seed):
    parts = bent(rng, int(rng.integers(2, 9)))
    return bent_path(rng, parts, bool(rng.integers(2))), 0.0, None


def bent_students(rng, seed):
    parts = bent(rng, int(rng.integers(2, 9)), rng.uniform(2, 10))
    return bent_path(rng, parts, bool(rng.integers(2))), 0.0, None


def bent_in_many_dimensions(rng, seed):
    parts = bent(rng, int(rng.integers(21, 31)), rng.choice([np.inf, rng.uniform(4, 20)]))
    return bent_path(rng, parts, True), 0.0, None


def bent_with_draws(rng, seed):
    """Four chains of independent draws."""
    parts = bent(rng, int(rng.integers(2, 9)), rng.choice([np.inf, rng.uniform(3, 10)]))
    n = int(np.exp(rng.uniform(np.log(20), np.log(1000))))
    draws = parts.sample(4 * n, rng).reshape(4, n, -1)
    return bent_path(rng, parts, False), 0.0, draws


def prior_transform(rng, seed):
    *prior, truth = of_family(1000 + seed)
    return from_prior_transform(*prior, vectorized=True), float(truth), None


def trained_rbm(rng, seed):
    path, (truth, _) = rbm(rng, seed)
    return path, float(truth[0]), None


def random_rbm(rng, seed):
    """Without training: weights from weak to beyond a phase transition."""
    n_hidden, n_visible = int(rng.integers(5, 16)), int(rng.integers(10, 61))
    shapes = (n_hidden, n_visible), n_visible, n_hidden
    scale = rng.uniform(0.2, 3)
    model = BernoulliRBM.from_parameters(*(rng.normal(scale=scale, size=s) for s in shapes))
    path = model.path()
    return path, Exact().fit(path).log_partition_, None


PATHS = (bent_normals, bent_students, bent_in_many_dimensions, bent_with_draws, prior_transform)
PATHS += (trained_rbm, random_rbm)


MIXTURES = (even_mixture, unequal_mixture, turned_mixture, far_mixture, boxed_mixture)
MIXTURES += (student_mixture, needles, labels)
OTHERS = (correlated, regression, collinear, unknown_noise, logistic, poisson, robust, period)
OTHERS += (change_point, not_centred, centred, sparse_means, bounded, logits, positive, ordered)
OTHERS += (wishart, banana, student, skewed)
HARD = (funnel, shell, spike)
GROUPS = {
    kind.__name__: group
    for group, kinds in {
        "mixtures": MIXTURES,
        "others": OTHERS,
        "hard": HARD,
        "paths": PATHS,
    }.items()
    for kind in kinds
}
KINDS = {kind.__name__: kind for kind in (*MIXTURES, *OTHERS, *HARD, *PATHS)}
FEWEST = {"unknown_noise": 3, "period": 4, "change_point": 3, "not_centred": 4, "centred": 5}
FEWEST |= {"wishart": 3}


def made(kind, seed, dimensions):
    """A path, its log Z, draws or None, and the dimensions of a density, one of those given."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    if GROUPS[kind] == "paths":
        return *KINDS[kind](rng, seed), 0
    d = max(int(rng.choice(dimensions)), FEWEST.get(kind, 2))
    log_density, base, bounds, log_z = KINDS[kind](rng, d)
    return GeometricPath(log_density, base=base, bounds=bounds), log_z, None, d


def estimators_of(name, kind):
    """None for the defaults, which `Exact` answers if an RBM is small."""
    tempering = [ParallelTempering(n_sweeps=n, tol=0.1) for n in (16_384, 65_536)]
    if name == "short runs first":
        last = SMC(n_temperatures=1000) if kind.endswith("rbm") else AdaptiveSMC()
        return [*(SMC(n_temperatures=n) for n in (30, 100, 300)), last, *tempering]
    if kind.endswith("rbm"):
        return [ParallelTempering(), SMC(n_temperatures=1000), *tempering]
    return None


def run(kind, seed, estimator, most, dimensions):
    path, log_z, draws, d = made(kind, seed, list(map(int, dimensions.split())))
    budget = {"max_evaluations": most, "random_state": seed}
    if estimator == "explored":
        sampler = ImportanceSampling(200_000, proposal="explored", tol=0.1, **budget)
        (record,) = judged(sampler, path, log_z)
    else:
        sampler = UntilTrusted(estimators_of(estimator, kind), **budget)
        (record,) = judged(sampler, path, log_z, draws=draws)
    result = sampler.result_
    at = "" if d == 0 else f", {'2 to 7' if d < 8 else '8 to 12' if d < 13 else 'more'}-D"
    return record | {
        "group": GROUPS[kind] + at,
        "d": d,
        "evaluations": result.n_sweeps + result.check_evaluations,
        "basin": float(result.diagnostics.get("smallest_basin", 1.0)),
        "answered": result.method,
    }


def main():
    others = {"estimator": "explored", "max-evaluations": None, "dimensions": [*range(2, 13)]}
    args = options(__doc__, "exploring.jsonl", 4, others, kinds=KINDS)
    most = None if args.max_evaluations is None else int(args.max_evaluations)
    kinds = [kind for kind in args.kinds if args.estimator != "explored" or GROUPS[kind] != "paths"]
    fixed = {"estimator": args.estimator, "most": most}
    fixed["dimensions"] = " ".join(map(str, args.dimensions))
    pairs = itertools.product(args.seeds, kinds)
    tasks = [{"kind": kind, "seed": seed} | fixed for seed, kind in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = measured(args.results, tasks, run)
    for names in (("kind",), ("group",), ("estimator", "answered")):
        print_coverage(records, *names, medians=("evaluations",))


if __name__ == "__main__":
    main()

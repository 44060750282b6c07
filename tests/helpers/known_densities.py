"""Densities on R^d whose log partition function is known, for tests and benchmarks of
`GeometricPath`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betaln, comb, gammaln, ndtr, ndtri

from sklpf.paths import Gaussian, GeometricPath, Stream, StudentT, Uniform
from sklpf.testing import Problem

Array = NDArray[np.float64]
_LOG_2PI = float(np.log(2 * np.pi))


class _Function:
    """A function of points (n, d) and of constants: it can be pickled, and compiled by numba."""

    def __init__(self, function: Callable[..., Array], *constants: Any) -> None:
        self.function = function
        self.constants = constants

    def __call__(self, x: Array) -> Array:
        return self.function(x, *self.constants)

    def compiled(self) -> Callable[[Array], Array]:
        """The same as a numba function of points alone, with the constants in its closure."""
        import numba

        inner = numba.njit(self.function)
        if len(self.constants) == 1:
            (a,) = self.constants
            return numba.njit(lambda x: inner(x, a))
        if len(self.constants) == 2:
            a, b = self.constants
            return numba.njit(lambda x: inner(x, a, b))
        a, b, c = self.constants
        return numba.njit(lambda x: inner(x, a, b, c))


class _Target(NamedTuple):
    """A density before it has a base: log density, gradient, log Z with its standard error, exact
    draws (n, rng).
    """

    log_density: _Function
    grad: _Function
    log_partition: float
    draw: Callable[[int, np.random.Generator], Array] | None = None
    std_error: float = 0.0


class SampledPath(GeometricPath):
    """A geometric path whose target can be sampled: `draw` (n, rng) gives points (n, d)."""

    def __init__(
        self, log_density: Any, *, draw: Callable[[int, np.random.Generator], Array], **options: Any
    ) -> None:
        super().__init__(log_density, **options)
        self.draw = draw

    def sample_target(self, n: int, stream: Stream) -> Any:
        """Return n exact draws from the target."""
        return self.at(self.draw(n, stream.generator()))


def make_density_problem(kind: str, random_state: int = 0, *, compiled: bool = False) -> Problem:
    """Return a path to a density on R^d, with gradients, and its log Z.

    Kinds, of `DENSITY_PROBLEMS`:

    - "gaussian 2-D, condition 1" and so on: covariances rotated at random, largest variance 1; base
      N(0, 4 I).
    - "laplace 6-D", 36-D: complete products of experts, from N(0, I); "student-t 6-D", 36-D: those
      of exp(-sum lambda_l log(1 + u_l^2)), from a t with the tails of the product, or N(0, I),
      whose tails are too light.
    - "two gaussians 2-D", 10-D: unit variances, 10 apart, masses 0.3 and 0.7; base N(midpoint, 25
      I), or N(m, 4 I) "on one", the heavier: what chains never see can't be known.
    - "box exponential", "box gaussian": in [0, 1]^10; base uniform.
    - "funnel": v ~ N(0, 1), five x_i ~ N(0, e^v); base t with 3 degrees of freedom, or N(0, 4 I).
    - "linear regression", "beta-binomial" (a uniform prior or Beta(2, 3)): base the prior.
    - "logistic regression": breast cancer data of scikit-learn; base the prior. log Z from
      importance sampling: 4,000,000 draws of a t with the posterior's moments.

    The path has `sample_target` for all but the last; functions are numba's where `compiled`.
    """
    if kind not in _MAKERS:
        raise ValueError(f"kind must be one of {DENSITY_PROBLEMS}, got {kind!r}")
    target, options = _MAKERS[kind](np.random.default_rng(random_state))
    functions = [f.compiled() if compiled else f for f in (target.log_density, target.grad)]
    if target.draw is None:
        path = GeometricPath(functions[0], grad=functions[1], **options)
    else:
        path = SampledPath(functions[0], grad=functions[1], draw=target.draw, **options)
    return Problem(kind, path, target.log_partition, target.std_error)


# -- densities and gradients at points x (n, d), as numba takes them
def _gaussian(x, mean, root):
    """Root R is transposed: precision R R', a vector where it is diagonal."""
    return -0.5 * np.sum(((x - mean) @ root) ** 2, axis=1)


def _gaussian_grad(x, mean, root):
    return -((x - mean) @ root) @ root.T


def _two(x, first, second, log_odds):
    """exp(log_odds) e^(-|x - first|^2 / 2) + e^(-|x - second|^2 / 2)."""
    a = log_odds - 0.5 * np.sum((x - first) ** 2, axis=1)
    return np.logaddexp(a, -0.5 * np.sum((x - second) ** 2, axis=1))


def _two_grad(x, first, second, log_odds):
    a = log_odds - 0.5 * np.sum((x - first) ** 2, axis=1)
    share = 0.5 + 0.5 * np.tanh(0.5 * (a + 0.5 * np.sum((x - second) ** 2, axis=1)))
    return np.outer(share, first - second) + second - x


def _laplace(x, filters):
    return -np.sum(np.abs(x @ filters), axis=1)


def _laplace_grad(x, filters):
    return -np.sign(x @ filters) @ filters.T


def _student_t(x, filters, weights):
    return -np.log1p((x @ filters) ** 2) @ weights


def _student_t_grad(x, filters, weights):
    u = x @ filters
    return -(2 * weights * u / (1 + u**2)) @ filters.T


def _exponential(x, rates):
    return -x @ rates


def _exponential_grad(x, rates):
    return np.zeros_like(x) - rates


def _independent(x, mean, inverse_scale):
    return -0.5 * np.sum(((x - mean) * inverse_scale) ** 2, axis=1)


def _independent_grad(x, mean, inverse_scale):
    return -(x - mean) * inverse_scale**2


def _funnel(x, log_norm):
    v = x[:, 0]
    squares = np.sum(x[:, 1:] ** 2, axis=1)
    return log_norm - 0.5 * v**2 - 0.5 * (x.shape[1] - 1) * v - 0.5 * np.exp(-v) * squares


def _funnel_grad(x, log_norm):
    v = x[:, 0]
    precision = np.exp(-x[:, 0])
    grad = -precision.reshape(-1, 1) * x
    grad[:, 0] = -v - 0.5 * (x.shape[1] - 1) + 0.5 * precision * np.sum(x[:, 1:] ** 2, axis=1)
    return grad


def _regression(x, design, y, constants):
    """Prior N(0, constants[0]), noise variance constants[1], log normaliser constants[2]; design
    (d, n).
    """
    squares = np.sum((y - x @ design) ** 2, axis=1) / constants[1]
    return constants[2] - 0.5 * (squares + np.sum(x**2, axis=1) / constants[0])


def _regression_grad(x, design, y, constants):
    return ((y - x @ design) @ design.T) / constants[1] - x / constants[0]


def _beta(x, powers, log_norm):
    """p^powers[0] (1 - p)^powers[1]."""
    p, q = np.maximum(x[:, 0], 1e-300), np.maximum(1 - x[:, 0], 1e-300)
    return log_norm + powers[0] * np.log(p) + powers[1] * np.log(q)


def _beta_grad(x, powers, log_norm):
    return powers[0] / np.maximum(x, 1e-300) - powers[1] / np.maximum(1 - x, 1e-300)


def _logistic(x, design, log_norm):
    """Prior N(0, I); design (d, n) with its columns negated where the class is 0."""
    return log_norm - np.sum(np.logaddexp(0.0, -(x @ design)), axis=1) - 0.5 * np.sum(x**2, axis=1)


def _logistic_grad(x, design, log_norm):
    return (0.5 - 0.5 * np.tanh(0.5 * (x @ design))) @ design.T - x


# -- exact draws
def _draw_gaussian(mean, factor, n, rng):
    return mean + rng.standard_normal((n, len(mean))) @ factor.T


def _draw_two(first, second, share, n, rng):
    means = np.where(rng.random((n, 1)) < share, first, second)
    return means + rng.standard_normal(means.shape)


def _draw_laplace(inverse, n, rng):
    return rng.laplace(size=(n, len(inverse))) @ inverse.T


def _draw_student_t(inverse, df, n, rng):
    return rng.standard_t(df, size=(n, len(df))) / np.sqrt(df) @ inverse.T


def _draw_exponential(rates, n, rng):
    return -np.log1p(rng.random((n, len(rates))) * np.expm1(-rates)) / rates


def _draw_independent(mean, scale, n, rng):
    low, high = ndtr(-mean / scale), ndtr((1 - mean) / scale)
    return np.clip(mean + scale * ndtri(low + (high - low) * rng.random((n, len(mean)))), 0, 1)


def _draw_funnel(n, rng):
    x = rng.standard_normal((n, 6))
    x[:, 1:] *= np.exp(0.5 * x[:, :1])
    return x


def _draw_beta(a, b, n, rng):
    return rng.beta(a, b, size=(n, 1))


# -- targets and their bases
def _both(log_density, grad, *constants) -> tuple[_Function, _Function]:
    return _Function(log_density, *constants), _Function(grad, *constants)


def _rotation(d, rng):
    if d == 1:
        return np.ones((1, 1))
    return np.ascontiguousarray(stats.ortho_group.rvs(d, random_state=rng))


def _make_gaussian(d, condition, rng):
    rotation = _rotation(d, rng)
    scales = np.geomspace(1, condition**-0.5, d)
    mean = np.zeros(d)
    functions = _both(_gaussian, _gaussian_grad, mean, rotation / scales)
    draw = functools.partial(_draw_gaussian, mean, rotation * scales)
    log_partition = 0.5 * d * _LOG_2PI + float(np.log(scales).sum())
    return _Target(*functions, log_partition, draw), {"base": Gaussian(mean, 4.0)}


def _filters(scales, rng):
    """W = diag(scales) Q S Q' with S from 0.7 to 1.4: W, its inverse and log |det W|."""
    d = len(scales)
    rotation = _rotation(d, rng)
    shape = _rotation(d, rng)
    W = scales[:, np.newaxis] * (rotation @ (shape * np.geomspace(0.7, 1.4, d)) @ shape.T)
    return W, np.linalg.inv(W), float(np.linalg.slogdet(W)[1])


def _make_laplace(d, rng):
    W, inverse, log_det = _filters(np.full(d, np.sqrt(2)), rng)
    functions = _both(_laplace, _laplace_grad, np.ascontiguousarray(W.T))
    draw = functools.partial(_draw_laplace, inverse)
    return _Target(*functions, d * np.log(2) - log_det, draw), {"base": Gaussian(np.zeros(d), 1.0)}


def _make_student_t(d, heavy, rng):
    weights = np.linspace(1, 3, d)
    W, inverse, log_det = _filters((2 * weights - 1) ** -0.5, rng)
    functions = _both(_student_t, _student_t_grad, np.ascontiguousarray(W.T), weights)
    logs = 0.5 * np.log(np.pi) + gammaln(weights - 0.5) - gammaln(weights)
    draw = functools.partial(_draw_student_t, inverse, 2 * weights - 1)
    df = min(8.0, 2 * weights.min() - 1)
    base = StudentT(np.zeros(d), 1.0, df) if heavy else Gaussian(np.zeros(d), 1.0)
    return _Target(*functions, float(logs.sum()) - log_det, draw), {"base": base}


def _make_two(d, on_one, rng):
    direction = rng.standard_normal(d)
    first = 5 * direction / np.linalg.norm(direction)
    functions = _both(_two, _two_grad, first, -first, float(np.log(0.3 / 0.7)))
    draw = functools.partial(_draw_two, first, -first, 0.3)
    base = Gaussian(-first, 4.0) if on_one else Gaussian(np.zeros(d), 25.0)
    return _Target(*functions, 0.5 * d * _LOG_2PI - np.log(0.7), draw), {"base": base}


def _make_box_exponential(rng):
    rates = rng.permutation(np.linspace(-20, 20, 10))
    functions = _both(_exponential, _exponential_grad, rates)
    log_partition = float(np.log(-np.expm1(-rates) / rates).sum())
    draw = functools.partial(_draw_exponential, rates)
    return _Target(*functions, log_partition, draw), _unit_box(10)


def _make_box_gaussian(rng):
    mean = rng.random(10)
    scale = rng.permutation(np.geomspace(0.03, 1, 10))
    functions = _both(_independent, _independent_grad, mean, 1 / scale)
    mass = ndtr((1 - mean) / scale) - ndtr(-mean / scale)
    log_partition = 5 * _LOG_2PI + float(np.log(scale * mass).sum())
    draw = functools.partial(_draw_independent, mean, scale)
    return _Target(*functions, log_partition, draw), _unit_box(10)


def _unit_box(d):
    return {"base": Uniform(np.zeros(d), np.ones(d)), "bounds": (0.0, 1.0)}


def _make_funnel(heavy, rng):
    functions = _both(_funnel, _funnel_grad, -3 * _LOG_2PI)
    base = StudentT(np.zeros(6), 1.0, 3) if heavy else Gaussian(np.zeros(6), 4.0)
    return _Target(*functions, 0.0, _draw_funnel), {"base": base}


def _make_regression(rng):
    n = 50
    d = 8
    prior = 1.0
    noise = 0.25
    X = rng.standard_normal((n, d)) @ (0.5 * rng.standard_normal((d, d)) + 1)
    y = X @ rng.standard_normal(d) + np.sqrt(noise) * rng.standard_normal(n)
    covariance = np.linalg.inv(X.T @ X / noise + np.eye(d) / prior)
    log_norms = n * np.log(2 * np.pi * noise) + d * np.log(2 * np.pi * prior)
    constants = np.array([prior, noise, -0.5 * log_norms])
    functions = _both(_regression, _regression_grad, np.ascontiguousarray(X.T), y, constants)
    marginal = noise * np.eye(n) + prior * X @ X.T
    log_evidence = stats.multivariate_normal(np.zeros(n), marginal).logpdf(y)
    mean = covariance @ X.T @ y / noise
    draw = functools.partial(_draw_gaussian, mean, np.linalg.cholesky(covariance))
    return _Target(*functions, float(log_evidence), draw), {"base": Gaussian(np.zeros(d), prior)}


def _make_beta(a, b, base, rng):
    n = 20
    k = 5
    log_norm = float(np.log(comb(n, k)) - betaln(a, b))
    functions = _both(_beta, _beta_grad, np.array([k + a - 1.0, n - k + b - 1.0]), log_norm)
    log_partition = log_norm + float(betaln(k + a, n - k + b))
    target = _Target(*functions, log_partition, functools.partial(_draw_beta, k + a, n - k + b))
    if base == "uniform":
        return target, _unit_box(1)
    grad_base = _Function(_beta_grad, np.array([a - 1.0, b - 1.0]), 0.0)
    return target, {"base": stats.beta(a, b), "bounds": (0.0, 1.0), "grad_base": grad_base}


def _make_logistic(rng):
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)])
    design = np.ascontiguousarray((X * (2 * y - 1)[:, np.newaxis]).T)
    functions = _both(_logistic, _logistic_grad, design, -0.5 * len(design) * _LOG_2PI)
    target = _Target(*functions, _LOGISTIC, std_error=_LOGISTIC_STD_ERROR)
    return target, {"base": Gaussian(np.zeros(len(design)), 1.0)}


# log Z, by importance sampling with a t distribution at the posterior (4 million draws)
_LOGISTIC = -55.2230
_LOGISTIC_STD_ERROR = 0.0004

_MAKERS: dict[str, Callable[[np.random.Generator], tuple[_Target, dict[str, Any]]]] = {
    **{
        f"gaussian {d}-D, condition {condition:g}": functools.partial(_make_gaussian, d, condition)
        for d in (2, 20, 100)
        for condition in (1, 100, 10_000)
    },
    **{f"laplace {d}-D": functools.partial(_make_laplace, d) for d in (6, 36)},
    **{f"student-t {d}-D": functools.partial(_make_student_t, d, True) for d in (6, 36)},
    **{
        f"student-t {d}-D, gaussian base": functools.partial(_make_student_t, d, False)
        for d in (6, 36)
    },
    **{f"two gaussians {d}-D": functools.partial(_make_two, d, False) for d in (2, 10)},
    **{f"two gaussians {d}-D, base on one": functools.partial(_make_two, d, True) for d in (2, 10)},
    "box exponential": _make_box_exponential,
    "box gaussian": _make_box_gaussian,
    "funnel": functools.partial(_make_funnel, True),
    "funnel, gaussian base": functools.partial(_make_funnel, False),
    "linear regression": _make_regression,
    "beta-binomial": functools.partial(_make_beta, 1.0, 1.0, "uniform"),
    "beta-binomial, beta prior": functools.partial(_make_beta, 2.0, 3.0, "beta"),
    "logistic regression": _make_logistic,
}
DENSITY_PROBLEMS = tuple(_MAKERS)

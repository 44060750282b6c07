"""Does HAIS cover where a scale may be near 0: python tests/benchmarks/scales.py [--seeds 60]

Coordinates are s = log tau, so that the density has a tail e^s under the Gaussian base at its mode.
Every seed makes densities of its own, whose log Z is known by sums over a grid or in closed form:

- scales: 1 to 5 independent tau_i of y_j ~ N(0, sigma_j² + tau_i²), 3 to 15 of these each; priors
  exponential, half-normal, half-t and half-Cauchy.
- groups: mu, log tau and 1 to 4 eta_j of y_j ~ N(mu + tau eta_j, sigma_j²), with the same priors.
- one side: exp(s - e^(k s)), whose tail is sqrt(k) standard deviations of the base long.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from measure import quiet_fit
from scipy.special import gammaln, logsumexp

from sklpf import HAIS, Gaussian, GeometricPath

DF = {"exponential": None, "half-normal": np.inf, "half-t": 3.0, "half-Cauchy": 1.0}
GRID = np.linspace(-60.0, 40.0, 50_001)


def log_prior(kind, scale, tau):
    """Log density of tau, without its normaliser, and its slope."""
    u = tau / scale
    if kind == "exponential":
        return -u, -np.ones_like(u) / scale
    if kind == "half-normal":
        return -(u**2) / 2, -u / scale
    df = DF[kind]
    return -(df + 1) / 2 * np.log1p(u**2 / df), -(df + 1) * u / df / scale / (1 + u**2 / df)


def on_grid(log_density):
    values = np.concatenate([log_density(part[:, np.newaxis]) for part in np.split(GRID[1:], 50)])
    return float(logsumexp(values) + np.log(GRID[1] - GRID[0]))


def one_scale(rng):
    n = int(rng.integers(3, 16))
    sigma2 = np.exp(rng.normal(0, 0.7, n))
    y2 = rng.normal(size=n) ** 2 * (sigma2 + np.exp(2 * rng.normal(-0.7, 1.0)))
    kind = rng.choice(list(DF))
    scale = np.exp(rng.normal(0, 0.7))

    def log_density(s):
        variance = sigma2 + np.exp(2 * s)
        prior = log_prior(kind, scale, np.exp(s[:, 0]))[0]
        return prior + s[:, 0] - 0.5 * np.sum(np.log(variance) + y2 / variance, axis=1)

    def grad(s):
        variance = sigma2 + np.exp(2 * s)
        tau = np.exp(s)
        by_tau = tau**2 * np.sum(y2 / variance**2 - 1 / variance, axis=1, keepdims=True)
        return log_prior(kind, scale, tau)[1] * tau + 1 + by_tau

    return log_density, grad, on_grid(log_density)


def scales(rng, seed):
    d = 1 + seed % 5
    parts = [one_scale(rng) for _ in range(d)]
    return (
        lambda x: sum(part[0](x[:, [i]]) for i, part in enumerate(parts)),
        lambda x: np.hstack([part[1](x[:, [i]]) for i, part in enumerate(parts)]),
        sum(part[2] for part in parts),
        np.zeros(d),
    )


def groups(rng, seed):
    n = 1 + seed % 4
    sigma = np.exp(rng.normal(0, 0.5, n))
    y = (
        rng.normal()
        + np.exp(rng.normal(-0.5, 0.8)) * rng.normal(size=n)
        + sigma * rng.normal(size=n)
    )
    kind = rng.choice(list(DF))
    scale = np.exp(rng.normal(0, 0.7))

    def residuals(x):
        return y - x[:, [0]] - np.exp(x[:, [1]]) * x[:, 2:]

    def log_density(x):
        squares = np.sum(x[:, 2:] ** 2 + (residuals(x) / sigma) ** 2, axis=1)
        prior = log_prior(kind, scale, np.exp(x[:, 1]))[0] - x[:, 0] ** 2 / 18
        return prior + x[:, 1] - squares / 2

    def grad(x):
        tau = np.exp(x[:, 1])
        forces = residuals(x) / sigma**2
        by_log_tau = (
            log_prior(kind, scale, tau)[1] * tau + 1 + tau * np.sum(forces * x[:, 2:], axis=1)
        )
        by_eta = -x[:, 2:] + tau[:, np.newaxis] * forces
        return np.column_stack([forces.sum(axis=1) - x[:, 0] / 9, by_log_tau, by_eta])

    def marginal(s):  # mu and eta integrated out
        variance = sigma**2 + np.exp(2 * s)
        precision = 1 / 9 + np.sum(1 / variance, axis=1)
        fitted = np.sum(y / variance, axis=1) ** 2 / precision
        volume = np.log(precision) + np.sum(np.log(variance / sigma**2), axis=1)
        prior = log_prior(kind, scale, np.exp(s[:, 0]))[0] + s[:, 0]
        return prior - 0.5 * (np.sum(y**2 / variance, axis=1) - fitted + volume)

    return log_density, grad, on_grid(marginal) + (n + 1) / 2 * np.log(2 * np.pi), np.zeros(2 + n)


def one_side(rng, seed):
    k = (4.0, 9.0, 16.0)[seed % 3]
    return (
        lambda x: x[:, 0] - np.exp(k * x[:, 0]),
        lambda x: 1 - k * np.exp(k * x),
        float(gammaln(1 / k) - np.log(k)),
        np.zeros(1),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=60)
    n_seeds = parser.parse_args().seeds
    print("| densities | runs | converged | mean error | beyond 2, 3, 5 SE |")
    print("|---|---|---|---|---|", flush=True)
    for make in (scales, groups, one_side):
        errors = []
        sizes = []
        for seed in range(n_seeds):
            log_density, grad, log_z, start = make(np.random.default_rng([82, seed]), seed)
            base = Gaussian.at_mode(log_density, start, grad=grad)
            fitted = quiet_fit(
                HAIS(random_state=seed), GeometricPath(log_density, grad=grad, base=base)
            )
            if fitted.converged_:
                errors.append(fitted.log_partition_ - log_z)
                sizes.append(fitted.log_partition_std_error_)
        z = np.abs(np.array(errors) / sizes)
        beyond = ", ".join(str(int(np.sum(z > bound))) for bound in (2, 3, 5))
        mean = f"{np.mean(errors):+.4f} ± {np.std(errors, ddof=1) / np.sqrt(len(errors)):.4f}"
        print(f"| {make.__name__} | {n_seeds} | {len(errors)} | {mean} | {beyond} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)  # of overflow far out, which is a density of 0
    main()

"""Draws of several states that are, or are not, of the densities that they are said to be from.

    python tests/benchmarks/misread_states.py [--sets 100] [--first-seed 0] [--out FILE]

Every set is made anew from its seed: the kind of the states, how many they are and how far apart,
their draws, and how correlated these are. Then something is done to it. Prints Markdown: of every
mistake how many sets `MBAR`, `BAR` and `SteppingStone` trust, of these how many are wrong, and how
many by more than 5 standard errors.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.signal import lfilter
from scipy.special import gammaln, ive

from sklpf.interop import from_pymbar
from sklpf.partition import BAR, MBAR, SteppingStone

ESTIMATORS = (MBAR, BAR, SteppingStone)


class States(NamedTuple):
    """K states: `draw(k, uniforms)` maps uniform numbers (n, d) to draws (n, d) of state k, and
    `potentials` gives u (K, n) of draws; `log_z` (K,).
    """

    d: int
    draw: object
    potentials: object
    log_z: np.ndarray


def independent(laws, one_potential, log_z, d):
    """d independent coordinates that have the same law."""
    return States(
        d,
        lambda k, uniforms: laws[k].ppf(uniforms),
        lambda x: np.array([one_potential(k, x).sum(axis=-1) for k in range(len(laws))]),
        d * np.asarray(log_z),
    )


# -- kinds of states
def gammas(rng, K, d):
    """x^(a - 1) exp(-x)."""
    a = np.linspace(2, 2 + rng.uniform(0.5, 1.5) * (K - 1) / np.sqrt(d), K)
    return independent(
        [stats.gamma(each) for each in a],
        lambda k, x: x - (a[k] - 1) * np.log(x),
        gammaln(a),
        d,
    )


def students(rng, K, d):
    """(1 + x^2 / s^2)^-(nu + 1)/2 with growing scales s."""
    scales = np.geomspace(1, rng.uniform(1.2, 1.8) ** ((K - 1) / np.sqrt(d)), K)
    nu = rng.uniform(3, 10)
    log_z = np.log(scales) + 0.5 * np.log(nu * np.pi) + gammaln(nu / 2) - gammaln((nu + 1) / 2)
    return independent(
        [stats.t(nu, scale=each) for each in scales],
        lambda k, x: (nu + 1) / 2 * np.log1p((x / scales[k]) ** 2 / nu),
        log_z,
        d,
    )


def von_mises(rng, K, d):
    """exp(kappa cos x), as of torsions."""
    kappa = np.linspace(0.2, 0.2 + rng.uniform(0.5, 1.5) * (K - 1) / np.sqrt(d), K)
    grid = np.linspace(-np.pi, np.pi, 20_001)
    density = np.exp(kappa[:, np.newaxis] * (np.cos(grid) - 1))
    cdf = np.cumsum(density, axis=1)
    cdf = (cdf - cdf[:, :1]) / (cdf[:, -1:] - cdf[:, :1])
    log_z = np.log(2 * np.pi * ive(0, kappa)) + kappa
    return States(
        d,
        lambda k, uniforms: np.interp(uniforms, cdf[k], grid),
        lambda x: -kappa[:, np.newaxis] * np.cos(x).sum(axis=-1),
        d * log_z,
    )


def poissons(rng, K, d):
    """rate^x / x!."""
    rates = np.linspace(3, 3 + rng.uniform(0.5, 1.5) * 2 * (K - 1) / np.sqrt(d), K)
    return independent(
        [stats.poisson(each) for each in rates],
        lambda k, x: gammaln(x + 1) - x * np.log(rates[k]),
        rates,
        d,
    )


def normals(rng, K, d):
    """Means and precisions that change from state to state, between two random ends."""
    share = np.linspace(0, 1, K)[:, np.newaxis]
    precision = (1 - share) * rng.uniform(0.5, 2, d) + share * rng.uniform(0.5, 8, d)
    mean = share * rng.normal(size=d) * rng.uniform(0.3, 0.8) * K / np.sqrt(d)
    return States(
        d,
        lambda k, uniforms: mean[k] + stats.norm.ppf(uniforms) / np.sqrt(precision[k]),
        lambda x: 0.5 * np.sum(precision[:, np.newaxis] * (x - mean[:, np.newaxis]) ** 2, axis=-1),
        0.5 * np.sum(np.log(2 * np.pi / precision), axis=1),
    )


def tempered(rng, K, d):
    """A likelihood to the power of beta, from the prior N(0, I) on."""
    betas = np.r_[0, np.geomspace(rng.uniform(0.002, 0.02), 1, K - 1)]
    scale = rng.uniform(0.2, 0.6, d)
    datum = rng.normal(size=d)
    precision = 1 + betas[:, np.newaxis] / scale**2
    mean = betas[:, np.newaxis] * datum / scale**2 / precision
    exponent = 0.5 * np.sum(precision * mean**2 - betas[:, np.newaxis] * datum**2 / scale**2, 1)

    def potentials(x):
        misfit = 0.5 * np.sum(((x - datum) / scale) ** 2, axis=1)
        return 0.5 * np.sum(x**2, axis=1) + betas[:, np.newaxis] * misfit

    return States(
        d,
        lambda k, uniforms: mean[k] + stats.norm.ppf(uniforms) / np.sqrt(precision[k]),
        potentials,
        exponent + 0.5 * np.sum(np.log(2 * np.pi / precision), axis=1),
    )


KINDS = (gammas, students, von_mises, poissons, normals, tempered)


class Set(NamedTuple):
    """Potentials (K, N), numbers of draws (K,), and log Z_(K - 1) / Z_0."""

    u: np.ndarray
    n: np.ndarray
    exact: float


def uniforms(rng, n, d, correlation):
    """(n, d), each coordinate autoregressive."""
    noise = rng.standard_normal((n, d))
    noise[1:] *= np.sqrt(1 - correlation**2)
    return stats.norm.cdf(lfilter([1], [1, -correlation], noise, axis=0))


def fresh(seed):
    """A set whose draws are right, its states and what made it."""
    rng = np.random.default_rng([seed, 71])
    kind = KINDS[seed % len(KINDS)]
    K = int(rng.choice([2, 3, 5, 8, 12, 20]))
    d = int(rng.integers(1, 7))
    states = kind(rng, max(K, 3) if kind is tempered else K, d)
    K = len(states.log_z)
    correlation = rng.choice([0.0, 0.0, 0.5, 0.9, 0.97])
    # of each state about 100 to 2000 that are effective
    n_each = np.exp(rng.uniform(np.log(100), np.log(2000))) * (1 + correlation) / (1 - correlation)
    n_each = min(n_each, 20_000 / K)
    n = (n_each * (rng.uniform(0.5, 1.5, K) if rng.random() < 0.5 else np.ones(K))).astype(int)
    draws = [states.draw(k, uniforms(rng, n[k], d, correlation)) for k in range(K)]
    return rng, kind.__name__, states, n, correlation, draws


# -- mistakes: each gives a set of (rng, states, n, draws)
def as_told(states, draws, factor=1.0, order=None):
    u = factor * states.potentials(np.concatenate(draws))
    if order is not None:
        u = u[order]
    n = np.array([len(each) for each in draws])
    log_z = states.log_z if order is None else states.log_z[order]
    return Set(u, n, log_z[-1] - log_z[0])


def exchanged(rng, states, n, draws):
    """Draws of two neighbouring states, one for the other."""
    k = int(rng.integers(len(draws) - 1))
    draws = list(draws)
    draws[k], draws[k + 1] = draws[k + 1], draws[k]
    return as_told(states, draws)


def elsewhere(rng, states, n, draws):
    """Draws of one state that lie half a width to a side."""
    k = int(rng.integers(len(draws)))
    draws = list(draws)
    width = draws[k].std(axis=0)
    draws[k] = draws[k] + np.rint(width) if np.all(draws[k] % 1 == 0) else draws[k] + width / 2
    return as_told(states, draws)


def not_at_rest(rng, states, n, draws):
    """The first third of every state's draws is of the state before."""
    K = len(draws)
    mixed = [
        np.concatenate([draws[max(k - 1, 0)][: n[k] // 3], draws[k][n[k] // 3 :]]) for k in range(K)
    ]
    return as_told(states, mixed)


MISTAKES = {
    "none": lambda rng, states, n, draws: as_told(states, draws),
    "x 2.494": lambda rng, states, n, draws: as_told(states, draws, 2.494),
    "/ 2.494": lambda rng, states, n, draws: as_told(states, draws, 1 / 2.494),
    "temperature 20 % off": lambda rng, states, n, draws: as_told(
        states, draws, rng.choice([1.2, 1 / 1.2])
    ),
    "neighbours exchanged": exchanged,
    "in reverse": lambda rng, states, n, draws: as_told(states, draws[::-1]),
    "a state elsewhere": elsewhere,
    "a third of the state before": not_at_rest,
}
# What remains of a state's draws where a mistake leaves its log Z defined is judged by log Z of the
# densities as told, but for wrong units, which have none that matters: those are wrong if trusted.


# -- states without draws
def released(seed):
    """Two restraints of a harmonic state with 1000 draws each, released into a box of +- L."""
    rng = np.random.default_rng([seed, 72])
    stiffness = np.sort(rng.uniform(0.7, 6, 2))[::-1]
    half = float(rng.choice([rng.uniform(3.5, 8), rng.uniform(10, 100)]))
    n = int(rng.integers(300, 3000))
    laws = [stats.truncnorm(-half * s, half * s, scale=1 / s) for s in np.sqrt(stiffness)]
    x = np.concatenate([law.rvs(n, random_state=rng) for law in laws])
    u = np.vstack([0.5 * stiffness[:, np.newaxis] * x**2, np.zeros_like(x)])
    first = np.log(np.sqrt(2 * np.pi / stiffness[0]))
    first += np.log(1 - 2 * stats.norm.sf(half * np.sqrt(stiffness[0])))
    return Set(u, np.array([n, n, 0]), np.log(2 * half) - first)


def box_in_box(seed):
    """Boxes that were drawn in, and one around them that was not."""
    rng = np.random.default_rng([seed, 73])
    halves = np.sort(np.exp(rng.uniform(0, 3, 3)))
    n = int(rng.integers(300, 3000))
    x = np.concatenate([rng.uniform(-h, h, n) for h in halves[:2]])
    u = np.where(np.abs(x) < halves[:, np.newaxis], 0.0, np.inf)
    return Set(u, np.array([n, n, 0]), np.log(halves[2] / halves[0]))


def between(seed):
    """Right draws, of which one state that lies between others has none."""
    rng, _, states, n, _, draws = fresh(seed)
    if len(draws) < 3:
        return None
    k = int(rng.integers(1, len(draws) - 1))
    draws[k] = draws[k][:0]
    return as_told(states, draws)


EMPTY = {"released into a box": released, "box around boxes": box_in_box, "between": between}


def trusted_by(found, row):
    """A row for every estimator."""
    for estimator in ESTIMATORS:
        if np.any(found.n == 0) and estimator is not MBAR:
            continue
        try:
            result = estimator().fit(from_pymbar(found.u, found.n)).result_
        except ValueError as error:
            yield [*row, estimator.__name__, np.nan, np.nan, 0, 0, str(error)[:60]]
            continue
        low, high = result.interval()
        yield [
            *row,
            estimator.__name__,
            result.log_partition - found.exact,
            result.std_error,
            int(low <= found.exact <= high),
            int(result.converged),
            " ".join(alarm.kind for alarm in result.alarms),
        ]


def rows(seed):
    rng, kind, states, n, correlation, draws = fresh(seed)
    for mistake, make in MISTAKES.items():
        found = make(rng, states, n, draws)
        yield from trusted_by(found, [mistake, seed, kind, len(n), n.min(), correlation])
    for mistake, make in EMPTY.items():
        found = make(seed)
        if found is not None:
            yield from trusted_by(found, [mistake, seed, kind, len(found.n), found.n.max(), 0.0])


COLUMNS = ("mistake", "seed", "kind", "K", "n", "correlation", "estimator", "off", "error")
COLUMNS += ("covers", "converged", "alarms")


def table(found):
    names = [estimator.__name__ for estimator in ESTIMATORS]
    print("| mistake | sets | " + " | ".join(names) + " |")
    print("|---|---" + "|---" * len(names) + "|")
    for mistake in dict.fromkeys(row["mistake"] for row in found):
        cells = []
        for name in names:
            some = [r for r in found if r["mistake"] == mistake and r["estimator"] == name]
            good = [row for row in some if int(row["converged"])]
            wrong = sum(not int(row["covers"]) for row in good)
            far = sum(abs(float(row["off"])) > 5 * float(row["error"]) for row in good)
            cells.append(f"{len(good)}, {wrong}, {far}" if some else "")
        n = len({row["seed"] for row in found if row["mistake"] == mistake})
        print(f"| {mistake} | {n} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", default="misread_states.csv")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with open(args.out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for seed in range(args.first_seed, args.first_seed + args.sets):
            writer.writerows(rows(seed))
            file.flush()
    with open(args.out, newline="") as file:
        table(list(csv.DictReader(file)))


if __name__ == "__main__":
    main()

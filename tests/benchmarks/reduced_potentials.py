"""MBAR from arrays of draws of several states: coverage and speed beside pymbar, and whether it is
noticed that draws are not of the densities that they are said to be from.

    python tests/benchmarks/reduced_potentials.py [--task {coverage,misread,speed}] [--seeds 1000]
        [--problems WORD ...] [--peer pymbar] [--results reduced_potentials.jsonl]

coverage: pymbar's test cases and variations of them. misread: every set is made anew from its seed:
the kind of the states, how many they are and how far apart, their draws, and how correlated these
are; then something is done to it. speed: a million draws of 100 states. With --peer the same data
go to pymbar, which must be installed. Every run is appended to the results, and not made again.
Prints Markdown; seconds are the process's, so that other processes count little.
"""

from __future__ import annotations

import resource
import time
import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
from measure import TINY, chosen, judged, measured, options, print_coverage
from scipy import stats
from scipy.signal import lfilter
from scipy.special import gammaln, ive

from sklpf.interop import from_pymbar
from sklpf.partition import BAR, MBAR, SteppingStone


class Set(NamedTuple):
    """Potentials (K, N), numbers of draws (K,), and log Z_(K - 1) / Z_0."""

    u: np.ndarray
    n: np.ndarray
    exact: float


def autoregressive(noise, correlation):
    """Normal draws (n, ...) from independent ones, with this correlation of neighbours."""
    noise = np.array(noise)
    noise[1:] *= np.sqrt(1 - correlation**2)
    return lfilter([1], [1, -correlation], noise, axis=0)


# ---- pymbar's test cases
class System(NamedTuple):
    """States of which exact draws and log Z are known; `rho` is the autocorrelation of draws."""

    kind: str
    places: tuple
    scales: tuple
    n: tuple
    rho: float = 0.0


HARMONIC = ((0, 1, 2, 3, 4), (1, 2, 4, 8, 16))  # pymbar's test case
RATES = (1, 2, 3, 4, 5)  # pymbar's
SYSTEMS = {
    "harmonic, 5 states, 100 draws each": System("harmonic", *HARMONIC, (100,) * 5),
    "harmonic, 5 states, 1000 draws each": System("harmonic", *HARMONIC, (1000,) * 5),
    "exponential, 5 states, 100 draws each": System("exponential", RATES, RATES, (100,) * 5),
    "exponential, 5 states, 1000 draws each": System("exponential", RATES, RATES, (1000,) * 5),
    "exponential, 1000, 0, 500, 0, 100 draws": System(
        "exponential", RATES, RATES, (1000, 0, 500, 0, 100)
    ),
    "harmonic, 2000 draws each, correlation 0.9": System(
        "harmonic", *HARMONIC, (2000,) * 5, rho=0.9
    ),
    "harmonic, 20 states along 5 widths, 60 draws each": System(
        "harmonic", tuple(np.linspace(0, 5, 20)), (1.0,) * 20, (60,) * 20
    ),
    "harmonic, 0, 0.5, 2, widths 10, 10, 1000, 1000 draws each": System(
        "harmonic", (0, 0.5, 2), (10, 10, 1000), (1000,) * 3
    ),
    "harmonic, 2 states 3 widths apart, 1000 draws each": System(
        "harmonic", (0, 3), (1, 1), (1000,) * 2
    ),
    "harmonic, 2 states 4 widths apart, 1000 draws each": System(
        "harmonic", (0, 4), (1, 1), (1000,) * 2
    ),
    "harmonic, 2 states 4.5 widths apart, 1000 draws each": System(
        "harmonic", (0, 4.5), (1, 1), (1000,) * 2
    ),
    "harmonic, 2 states 6 widths apart, 1000 draws each": System(
        "harmonic", (0, 6), (1, 1), (1000,) * 2
    ),
}


def draw(system, seed):
    rng = np.random.default_rng(seed)
    scales = np.array(system.scales, dtype=float)
    n = np.array(system.n)
    if system.kind == "exponential":
        x = np.concatenate([rng.exponential(1 / s, size=size) for s, size in zip(scales, n)])
        return Set(scales[:, np.newaxis] * x, n, -np.log(scales[-1] / scales[0]))
    places = np.array(system.places, dtype=float)
    columns = [
        place + autoregressive(rng.normal(size=size), system.rho) / np.sqrt(scale)
        for place, scale, size in zip(places, scales, n)
    ]
    squares = (np.concatenate(columns) - places[:, np.newaxis]) ** 2
    return Set(0.5 * scales[:, np.newaxis] * squares, n, -0.5 * np.log(scales[-1] / scales[0]))


# ---- kinds of states
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
    draws = [
        states.draw(k, stats.norm.cdf(autoregressive(rng.standard_normal((n[k], d)), correlation)))
        for k in range(K)
    ]
    return rng, states, n, draws


# ---- mistakes: each gives a set of (rng, states, n, draws)
def as_told(states, draws, factor=1.0):
    u = factor * states.potentials(np.concatenate(draws))
    n = np.array([len(each) for each in draws])
    return Set(u, n, states.log_z[-1] - states.log_z[0])


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


# ---- states without draws
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
    rng, states, _, draws = fresh(seed)
    if len(draws) < 3:
        return None
    k = int(rng.integers(1, len(draws) - 1))
    draws[k] = draws[k][:0]
    return as_told(states, draws)


EMPTY = {"released into a box": released, "box around boxes": box_in_box, "between": between}


# ---- runs
def by_pymbar(u, n):
    """log Z and its standard error, from what its statistical inefficiency leaves of the draws."""
    import pymbar

    starts = np.r_[0, np.cumsum(n)]
    kept = []
    for k in np.flatnonzero(n):
        series = u[k, starts[k] : starts[k + 1]]
        kept.append(starts[k] + np.array(pymbar.timeseries.subsample_correlated_data(series)))
    numbers = np.zeros(len(n), dtype=int)
    numbers[np.flatnonzero(n)] = [len(each) for each in kept]
    mbar = pymbar.MBAR(u[:, np.concatenate(kept)], numbers)
    found = mbar.compute_free_energy_differences()
    return -found["Delta_f"][0, -1], found["dDelta_f"][0, -1]


ESTIMATORS = {each.__name__: each for each in (MBAR, BAR, SteppingStone)}


def estimated(found, estimator):
    if estimator == "pymbar":
        began = time.process_time()
        log_z, error = by_pymbar(found.u, found.n)
        off = log_z - found.exact
        record = {"off": off, "error": error, "covers": bool(abs(off) <= 1.96 * error + TINY)}
        return record | {"converged": True, "seconds": time.process_time() - began}
    try:
        return judged(ESTIMATORS[estimator](), from_pymbar(found.u, found.n), found.exact)
    except ValueError as error:
        return {"left out": str(error)[:60]}


def run(problem, estimator, seed):
    if problem in SYSTEMS:
        return estimated(draw(SYSTEMS[problem], seed), estimator)
    if problem in EMPTY:
        found = EMPTY[problem](seed)
        return [] if found is None else estimated(found, estimator)
    rng, states, n, draws = fresh(seed)
    return estimated(MISTAKES[problem](rng, states, n, draws), estimator)


def speed(args):
    """Seconds and memory of one estimate."""
    system = System("harmonic", tuple(np.linspace(0, 10, 100)), (1.0,) * 100, (10_000,) * 100)
    found = draw(system, 0)
    estimator = args.peer or "MBAR"
    estimated(draw(SYSTEMS["exponential, 5 states, 100 draws each"], 0), estimator)  # imports
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    record = estimated(found, estimator)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{seconds:.1f} s; data {found.u.nbytes / 2**20:.0f} MiB, {before / 1024:.0f} MiB before,"
        f" peak {peak / 1024:.0f} MiB; {record}"
    )


def main():
    others = {"task": "coverage", "peer": None, "problems": [""]}
    args = options(__doc__, "reduced_potentials.jsonl", 1000, others)
    warnings.simplefilter("ignore")
    if args.task == "speed":
        return speed(args)
    is_misread = args.task == "misread"
    known = MISTAKES | EMPTY if is_misread else SYSTEMS
    estimators = list(ESTIMATORS) if is_misread else [args.peer or "MBAR"]
    tasks = [
        {"problem": problem, "estimator": estimator, "seed": seed}
        for problem, estimator in product(chosen(known, args.problems), estimators)
        for seed in args.seeds
        if problem not in EMPTY or estimator == "MBAR"
    ]
    records = [each for each in measured(args.results, tasks, run) if each["problem"] in known]
    print_coverage(records, "problem", "estimator")


if __name__ == "__main__":
    main()

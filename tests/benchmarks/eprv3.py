"""Evidences of 0 to 3 planets in the radial velocities of the EPRV3 evidence challenge.

    python tests/benchmarks/eprv3.py --folder FOLDER [--planets 0 1 2] [--priors a b]
        [--sets 1 2 3] [--methods AdaptiveSMC tempering] [--seeds 2] [--plain]
        [--results eprv3.jsonl]

FOLDER holds rvs_000N.txt, prior_bounds_000N.txt and submissions.csv (Nelson et al. 2020,
arXiv:1806.04683). Keplerian orbits, correlated noise with fixed hyperparameters, priors of that
paper's section 2: "a" has periods from 1.25 to 10,000 days for all planets, "b" narrow ones.

Coordinates change no evidence. Two normal coordinates are a point of the plane: its angle is
uniform, its radius gives a uniform number, and the posterior is not cut where the circle closes. So
are height and phase, and eccentricity and direction. The phase is the mean longitude in the middle
of the data. Of n! orders of planets one is enough: periods with the same prior are drawn in order,
or those known from a run with a planet less come first; where the periods of one planet are also
allowed for another one, its height is the larger one. `--plain` leaves all this out.

Methods: `AdaptiveSMC`; "explored", importance sampling from an explored cover; "planet by planet",
`AdaptiveSMC` from draws of the posterior with a planet less and of the prior of the last one;
"tempering", `ParallelTempering` from a mixture fitted to the draws of an `AdaptiveSMC` of another
seed (planet by planet with prior "a" or periods that two planets share); "quadrature" without
planets.
Every run is appended to the results file as it ends. Prints Markdown: nats, and logarithms to base
10 beside what was submitted.
"""

from __future__ import annotations

import csv
import functools
import itertools
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numba
import numpy as np
from measure import LOG_2PI, Counted, groups, measured, options, row, table
from scipy.special import gammaln, logsumexp, ndtri

from sklpf import AdaptiveSMC, ParallelTempering, UntilTrusted
from sklpf.interop import from_prior_transform
from sklpf.partition import ImportanceSampling

RAYLEIGH = 0.2  # of eccentricities, below 1
TOL = 0.04
LOOSE = 0.2  # standard error of runs whose draws alone are used, or of a small part


@numba.njit(error_model="numpy")
def turned(sine, cosine, angle):
    """Sine and cosine of the sum of an angle and another one, of at most 1 (to 1e-9)."""
    square = angle * angle
    c = -1 / 720 + square * (1 / 40320 - square / 3628800)
    c = 1 + square * (-1 / 2 + square * (1 / 24 + square * c))
    s = -1 / 5040 + square * (1 / 362880 - square / 39916800)
    s = angle * (1 + square * (-1 / 6 + square * (1 / 120 + square * s)))
    return sine * c + cosine * s, cosine * c - sine * s


@numba.njit(error_model="numpy")
def orbit(mean_anomaly, eccentricity, w):
    """cos(true anomaly + w) + e cos w of mean anomalies (n, m), by Halley's method for Kepler's
    equation.
    """
    velocity = np.empty_like(mean_anomaly)
    for i in range(len(mean_anomaly)):
        e = eccentricity[i]
        cos_w = np.cos(w[i])
        sin_w = np.sqrt(1 - e * e) * np.sin(w[i])
        for j in range(mean_anomaly.shape[1]):
            mean = mean_anomaly[i, j]
            mean -= 2 * np.pi * np.floor(mean * (0.5 / np.pi) + 0.5)
            sine = np.sin(mean)
            cosine = np.cos(mean)
            if e < 0.5:  # a series in e
                step = e * sine * (1 + e * cosine + e * e * (1.5 * cosine * cosine - 0.5))
            else:
                step = 0.85 * e * np.sign(mean)
            eccentric = mean + step
            sine, cosine = turned(sine, cosine, step)
            for _ in range(30):
                off = eccentric - e * sine - mean
                slope = 1 - e * cosine
                step = -off / (slope - 0.5 * off * e * sine / slope)
                step = min(max(step, -1.0), 1.0)
                eccentric += step
                sine, cosine = turned(sine, cosine, step)
                if abs(step) < 1e-3:  # the next error is of its third power
                    break
            nearness = 1 - e * cosine
            velocity[i, j] = (cos_w * (cosine - e) - sin_w * sine) / nearness + e * cos_w
    return velocity


def polar(u):
    """A uniform number and an angle of pairs of uniform numbers (n, 2)."""
    z = ndtri(u)
    return -np.expm1(-0.5 * np.sum(z**2, axis=1)), np.arctan2(z[:, 0], z[:, 1])


def periods_of(folder, number, n_planets, prior):
    """The smallest and the largest of each planet, in days."""
    if prior == "a":
        return [(1.25, 1e4)] * n_planets
    lines = (folder / f"prior_bounds_000{number}.txt").read_text().split("\n")
    bounds = {int(line.split(",")[1]): line.split(",")[2:4] for line in lines if line.strip()}
    return [tuple(map(float, bounds[1 + j])) for j in range(n_planets)]


def is_labelled(periods, known):
    """Whether all planets but the last are those nearest to known periods, of points (n, planets).

    Of all orders of planets one is.
    """
    n_planets = periods.shape[1]
    off = np.abs(np.log(periods)[:, :, np.newaxis] - np.log(known))
    orders = itertools.permutations(range(n_planets), n_planets - 1)
    costs = [sum(off[:, i, j] for j, i in enumerate(order)) for order in orders]
    return costs[0] <= np.min(costs, axis=0)


def nested_pairs(periods):
    """Planets of which the periods of the first are also allowed for the second."""
    pairs = itertools.permutations(range(len(periods)), 2)
    return [
        (i, j) for i, j in pairs if periods[j][0] <= periods[i][0] <= periods[i][1] <= periods[j][1]
    ]


def log_share_of_order(x, inner, outer, low, high):
    """Log 2 where two planets could change places and the inner one has the larger height, log 0
    where it has the smaller one.
    """
    period, height = x[:, 2 + 5 * outer], x[:, 3::5]
    can_change = (period >= low) & (period <= high)
    share = np.where(height[:, inner] >= height[:, outer], np.log(2), -np.inf)
    return np.where(can_change, share, 0.0)


def problem(folder, number, prior, plain, n_planets, known=None):
    """Log likelihood, prior transform, and its number of coordinates.

    With known periods of all planets but one, those with the same prior are labelled by these.
    """
    t, v, error = np.loadtxt(folder / f"rvs_000{number}.txt").T[:3]
    lags = t[:, np.newaxis] - t
    kernel = 3 * np.exp(-0.5 * (np.sin(np.pi * lags / 20) ** 2 / 0.25 + lags**2 / 2500))
    values, vectors = np.linalg.eigh(kernel + np.diag(error**2))
    periods = periods_of(folder, number, n_planets, prior)
    is_sorted = prior == "a" and not plain and known is None
    nested = [] if prior == "a" or plain else nested_pairs(periods)

    def log_likelihood(x):
        model = np.repeat(x[:, :1], len(t), axis=1)
        for j in range(n_planets):
            period, height, e, w, mean_anomaly = np.ascontiguousarray(x[:, 2 + 5 * j : 7 + 5 * j].T)
            angle = 2 * np.pi * t / period[:, np.newaxis] + mean_anomaly[:, np.newaxis]
            model += height[:, np.newaxis] * orbit(angle, e, w)
        residuals = (v - model) @ vectors
        variances = values + x[:, 1:2] ** 2
        value = -0.5 * np.sum(residuals**2 / variances + np.log(variances) + LOG_2PI, axis=1)
        for inner, outer in nested:
            value += log_share_of_order(x, inner, outer, *periods[inner])
        if known is not None:
            is_in = is_labelled(x[:, 2::5], known)
            value = np.where(is_in, value + gammaln(n_planets + 1), -np.inf)
        return value

    def transform(u):
        columns = [2000 * u[:, 0] - 1000, 100 ** u[:, 1] - 1]
        largest = 1.0
        for j, (low, high) in enumerate(periods):
            own = u[:, 2 + 5 * j : 7 + 5 * j]
            place = own[:, 0]
            if is_sorted:  # uniform numbers in falling order
                place = largest = largest * place ** (1 / (n_planets - j))
            period = low * (high / low) ** place
            direction, phase = 2 * np.pi * own[:, 3], 2 * np.pi * own[:, 4]
            of_height, of_eccentricity = own[:, 1], own[:, 2]
            if not plain:
                of_height, phase = polar(own[:, [1, 4]])
                of_eccentricity, direction = polar(own[:, [2, 3]])
                phase = phase - direction - 2 * np.pi * t.mean() / period
            within = 1 - np.exp(-1 / (2 * RAYLEIGH**2))
            e = RAYLEIGH * np.sqrt(-2 * np.log1p(-of_eccentricity * within))
            e = np.minimum(e, 1 - 1e-9)
            columns += [period, 1000**of_height - 1, e, direction, phase]
        return np.column_stack(columns)

    return log_likelihood, transform, 2 + 5 * n_planets


class Task:
    """A cell of the table: models with up to n planets, and how often they were evaluated."""

    def __init__(self, key, options):
        self.number, self.prior, self.n_planets = key
        self.model = functools.partial(
            problem, options.folder, self.number, self.prior, options.plain
        )
        self.options = options
        self.counted = []

    def path(self, n_planets, known=None):
        log_likelihood, *prior = self.model(n_planets, known)
        self.counted.append(Counted(log_likelihood))
        return from_prior_transform(self.counted[-1], *prior, vectorized=True)

    @property
    def n_calls(self):
        return sum(each.n_points for each in self.counted)

    def adaptive_smc(self, tol, seed):
        return AdaptiveSMC(1000, tol, max_sweeps=3_000_000, random_state=seed)


def record_of(result):
    return {
        "log_evidence": result.log_partition,
        "std_error": result.std_error,
        "converged": bool(result.converged),
        "reasons": [str(alarm) for alarm in result.alarms],
    }


def fitted(estimator, path, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(path, **given).result_


def draws_of(result):
    return result.draws.resample().points


def one_by_one(task, n_planets, tol, seed):
    """Path and result of `AdaptiveSMC`, from draws with a planet less and one from the prior."""
    if n_planets <= 1:
        path = task.path(n_planets)
        return path, fitted(task.adaptive_smc(tol, seed), path)
    before, result = one_by_one(task, n_planets - 1, LOOSE, seed)
    draws = draws_of(result)
    known = None
    if task.prior == "a":
        found = before.constrain(draws)
        known = [np.median(found[f"parameter_{2 + 5 * j}"]) for j in range(n_planets - 1)]
    path = task.path(n_planets, known)
    new = np.random.default_rng(seed).standard_normal((len(draws), 5))
    draws = np.column_stack([draws, new])[np.newaxis]
    smc = UntilTrusted([task.adaptive_smc(tol, seed)], tol, random_state=seed)
    return path, fitted(smc, path, draws=draws)


def adaptive(task, seed):
    path = task.path(task.n_planets)
    return fitted(task.adaptive_smc(TOL, seed), path)


def explored(task, seed):
    sampling = ImportanceSampling(200_000, proposal="explored", tol=TOL, random_state=seed)
    return fitted(sampling, task.path(task.n_planets))


def planet_by_planet(task, seed):
    if task.n_planets < 2:
        return None
    return one_by_one(task, task.n_planets, TOL, seed)[1]


def tempering(task, seed):
    """From a mixture, fitted to the draws of another run, with a twentieth of the prior."""
    periods = periods_of(task.options.folder, task.number, task.n_planets, task.prior)
    if task.n_planets < 2 or (task.prior == "b" and not nested_pairs(periods)):
        path = task.path(task.n_planets)
        result = fitted(task.adaptive_smc(LOOSE, 1000 + seed), path)
    else:
        path, result = one_by_one(task, task.n_planets, LOOSE, 1000 + seed)
    chains = ParallelTempering(n_sweeps=16_384, tol=TOL)
    estimator = UntilTrusted([chains], TOL, random_state=seed)
    return fitted(estimator, path, draws=draws_of(result)[np.newaxis])


def quadrature(task, seed):
    """Of the two parameters without planets, the first within 12 m/s of 0."""
    if task.n_planets:
        return None
    log_likelihood, transform, _ = task.model(0)
    mean, step = np.linspace(0.494, 0.506, 401, retstep=True)
    noise, noise_step = np.linspace(0, 1, 1001, retstep=True)
    rows = [log_likelihood(transform(np.column_stack([mean, np.full(401, u)]))) for u in noise]
    rows[0] -= np.log(2)
    rows[-1] -= np.log(2)
    log_z = logsumexp(rows) + np.log(step * noise_step)
    return {"log_evidence": log_z, "std_error": 1e-3, "converged": True}


METHODS = {
    "AdaptiveSMC": adaptive,
    "explored": explored,
    "planet by planet": planet_by_planet,
    "tempering": tempering,
    "quadrature": quadrature,
}


OURS = {"AdaptiveSMC", "planet by planet"}  # first column of the table


def submitted(folder):
    """Logarithms to base 10 by set, prior and number of planets."""
    values = defaultdict(list)
    with (folder / "submissions.csv").open() as file:
        for row in csv.DictReader(file):
            value = float(row["log_evidence_1"])
            if value < -50:  # others are errors of cross-validation
                key = int(row["data_set"]), row["prior"], int(row["n_planets"])
                values[key].append(value)
    return values


def numbers_of(records):
    """Log Z and its error of some runs, in nats; a star where planets came one by one."""
    return "; ".join(
        f"{each['log_evidence']:.3f} ± {each['std_error']:.3f}"
        + ("*" if each["method"] == "planet by planet" else "")
        + ("" if each["converged"] else " (flagged)")
        for each in records
    )


def mean_of(records):
    """Log Z of runs that converged, by precision; None without any."""
    trusted = [each for each in records if each["converged"]]
    if not trusted:
        return None
    values, errors = np.array([[r["log_evidence"], r["std_error"]] for r in trusted]).T
    return np.average(values, weights=errors**-2.0)


def report(records, folder):
    """A row for each cell."""
    others = submitted(folder)
    columns = "AdaptiveSMC", "others", "calls, s", "log10 Z", "submitted"
    table("set, prior, planets", *columns)
    runs = groups(records, "number", "prior", "planets")
    for key, found in sorted(runs.items()):
        ours = [each for each in found if each["method"] in OURS]
        second = [each for each in found if each["method"] not in OURS]
        calls, seconds = (
            f"{np.median([each[name] for each in ours or second]):,.0f}"
            for name in ("calls", "seconds")
        )
        mean = mean_of(found)
        log_10 = "" if mean is None else f"{mean / np.log(10):.3f}"
        low, middle, high = np.quantile(others[key], [0.25, 0.5, 0.75])
        theirs = f"{middle:.2f}, {low:.2f} to {high:.2f} of {len(others[key])}"
        numbers = numbers_of(ours), numbers_of(second), f"{calls}, {seconds}"
        row("{}, {}, {}".format(*key), *numbers, log_10, theirs)


def main():
    others = {"folder": None, "planets": [0, 1, 2], "priors": ["a", "b"], "sets": [1, 2, 3]}
    others |= {"methods": ["AdaptiveSMC", "tempering"], "plain": False}
    args = options(__doc__, "eprv3.jsonl", 2, others)
    args.folder = Path(args.folder)

    def run(planets, seed, method, prior, number, plain):
        task = Task((number, prior, planets), args)
        started = time.process_time()
        found = METHODS[method](task, seed)
        if found is None:
            return []
        if not isinstance(found, dict):
            found = record_of(found)
        return found | {"calls": task.n_calls, "seconds": time.process_time() - started}

    names = ("planets", "seed", "method", "prior", "number", "plain")
    cells = (args.planets, args.seeds, args.methods, args.priors, args.sets, [args.plain])
    cells = [cell for cell in itertools.product(*cells) if cell[0] or cell[3] == "a"]
    report(measured(args.results, [dict(zip(names, cell)) for cell in cells], run), args.folder)


if __name__ == "__main__":
    main()

"""Coverage and speed of MBAR from arrays, beside pymbar and FastMBAR:
doc/benchmarks/evidence.md.

python tests/benchmarks/reduced_potentials.py coverage
python tests/benchmarks/reduced_potentials.py speed --states 100 --draws 100000

With --peer pymbar or --peer FastMBAR the same data go there, in an environment that has it (and
need not have sklpf). Seconds are the process's, so that other processes count little.
"""

import argparse
import resource
import time
import warnings
from typing import NamedTuple

import numpy as np


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
    """u_kn, N_k and log Z of the last state less that of the first."""
    rng = np.random.default_rng(seed)
    scales = np.array(system.scales, dtype=float)
    columns = []
    for place, scale, n in zip(system.places, scales, system.n):
        if system.kind == "exponential":
            columns.append(rng.exponential(1 / scale, size=n))
            continue
        z = rng.normal(size=n)
        for i in range(1, n if system.rho else 0):
            z[i] = system.rho * z[i - 1] + np.sqrt(1 - system.rho**2) * z[i]
        columns.append(place + z / np.sqrt(scale))
    x = np.concatenate(columns)
    if system.kind == "exponential":
        return scales[:, np.newaxis] * x, np.array(system.n), -np.log(scales[-1] / scales[0])
    places = np.array(system.places, dtype=float)[:, np.newaxis]
    u_kn = 0.5 * scales[:, np.newaxis] * (x - places) ** 2
    return u_kn, np.array(system.n), -0.5 * np.log(scales[-1] / scales[0])


def ours(u_kn, n_k):
    """log Z, its standard error, half of the interval, whether it converged."""
    from sklpf.interop import from_pymbar
    from sklpf.partition import MBAR

    mbar = MBAR().fit(from_pymbar(u_kn, n_k))
    low, high = mbar.log_partition_interval_
    return (
        mbar.log_partition_,
        mbar.log_partition_std_error_,
        (high - low) / 2,
        mbar.converged_,
        mbar.result_.reasons,
    )


def peers(u_kn, n_k):
    """The same of pymbar, from what its statistical inefficiency leaves of the draws."""
    import pymbar

    starts = np.r_[0, np.cumsum(n_k)]
    kept = []
    for k in np.flatnonzero(n_k):
        series = u_kn[k, starts[k] : starts[k + 1]]
        kept.append(starts[k] + np.array(pymbar.timeseries.subsample_correlated_data(series)))
    numbers = np.zeros(len(n_k), dtype=int)
    numbers[np.flatnonzero(n_k)] = [len(each) for each in kept]
    mbar = pymbar.MBAR(u_kn[:, np.concatenate(kept)], numbers)
    found = mbar.compute_free_energy_differences()
    error = found["dDelta_f"][0, -1]
    return -found["Delta_f"][0, -1], error, 1.96 * error, True, ()


def fast(u_kn, n_k):
    """The same of FastMBAR on the CPU, by Newton's method and with its asymptotic errors."""
    from FastMBAR import FastMBAR

    mbar = FastMBAR(u_kn, n_k)
    error = mbar.DeltaF_std[0, -1]
    return -mbar.DeltaF[0, -1], error, 1.96 * error, True, ()


METHODS = {None: ours, "pymbar": peers, "FastMBAR": fast}


def coverage(estimate, n_sets, names):
    """A line for every system."""
    print("| states and draws | sets | trusted | RMSE | median SE | covers | of the others |")
    print("|---|---|---|---|---|---|---|")
    for name, system in SYSTEMS.items():
        if names and names not in name:
            continue
        rows = []
        reasons = {}
        for seed in range(n_sets):
            u_kn, n_k, exact = draw(system, seed)
            value, error, half, trusted, why = estimate(u_kn, n_k)
            rows.append((value - exact, error, half, trusted))
            for each in why:
                first = "".join(c for c in each if not c.isdigit())[:30]
                reasons[first] = reasons.get(first, 0) + 1
        off, error, half, trusted = np.array(rows).T
        trusted = trusted.astype(bool)
        covers = np.abs(off) <= half
        kept = off[trusted] if trusted.any() else np.array([np.nan])
        print(
            f"| {name} | {n_sets} | {trusted.sum()} | {np.sqrt(np.mean(kept**2)):.3f} |"
            f" {np.median(error[trusted]) if trusted.any() else np.nan:.3f} |"
            f" {covers[trusted].sum()} of {trusted.sum()} |"
            f" {covers[~trusted].sum()} of {(~trusted).sum()} |",
            flush=True,
        )
        if reasons:
            print("  ", reasons)


def speed(estimate, n_states, n_draws):
    """Seconds and memory of one estimate."""
    n = n_draws // n_states
    places = tuple(np.linspace(0, 10, n_states))
    system = System("harmonic", places, (1.0,) * n_states, (n,) * n_states)
    u_kn, n_k, exact = draw(system, 0)
    estimate(*draw(SYSTEMS["exponential, 5 states, 100 draws each"], 0)[:2])  # imports
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    value, error, *_ = estimate(u_kn, n_k)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"K = {n_states}, N = {n_draws}: {seconds:.1f} s, log Z off by {value - exact:+.4f}, SE"
        f" {error:.4f}; data {u_kn.nbytes / 2**20:.0f} MiB, {before / 1024:.0f} MiB before, peak"
        f" {peak / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["coverage", "speed"])
    parser.add_argument("--peer", choices=["pymbar", "FastMBAR"])
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--only", default="")
    parser.add_argument("--states", type=int, default=100)
    parser.add_argument("--draws", type=int, default=100_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    method = METHODS[given.peer]
    if given.what == "coverage":
        coverage(method, given.sets, given.only)
    else:
        speed(method, given.states, given.draws)

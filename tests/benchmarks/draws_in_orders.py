"""BridgeSampling and check_draws on walkers of ensembles whose draws are handed over in any order.

    python tests/benchmarks/draws_in_orders.py [--kinds NAME] [--seeds 40] [--first-seed 0]
    [--held-out] [--out FILE]

Prints Markdown: of each kind of walkers and each order how many runs converged, cover, and are
beyond 3 and 5 standard errors. "Held out" are kinds that nothing was chosen by. emcee is needed for
its kind alone.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklpf import BridgeSampling
from sklpf.partition.weights._posterior_draws import posterior_draws

PROPOSALS = ("warp3", "mixture", "t")
ORDERS = ("right", "flat", "transposed", "shuffled", "one after another")


# -- densities with log Z = 0
def normal(x):
    return stats.norm.logpdf(x).sum(axis=1)


def student(x):
    return stats.t.logpdf(x, 8).sum(axis=1)


def log_gamma(x):
    return np.sum(2 * x - np.exp(np.minimum(x, 700)), axis=1) - x.shape[1] * gammaln(2)


def correlated(x):
    """Normal, with a correlation of .8 between neighbours."""
    steps = (x[:, 1:] - 0.8 * x[:, :-1]) / 0.6
    return normal(x[:, :1]) + normal(steps) - steps.shape[1] * np.log(0.6)


def two_modes(x):
    """Two normal modes with weights .3 and .7 at a distance of 3.5."""
    shifted = x - 3.5 * (np.arange(x.shape[1]) == 0)
    return logsumexp([normal(x) + np.log(0.3), normal(shifted) + np.log(0.7)], axis=0)


# -- chains (n_walkers, n_steps, d)
def autoregressive(correlation, to_density=lambda x: x):
    def draw(n_walkers, n_steps, d, rng):
        noise = rng.standard_normal((n_walkers, n_steps, d))
        x = noise.copy()
        for t in range(1, n_steps):
            x[:, t] = correlation * x[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
        return to_density(x)

    return draw


def metropolis(log_density, width, n_thin=1):
    def draw(n_walkers, n_steps, d, rng):
        x = rng.standard_normal((n_walkers, d))
        value = log_density(x)
        kept = np.empty((n_walkers, n_steps, d))
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
    def draw(n_walkers, n_steps, d, rng):
        import emcee

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
KINDS = {
    "AR .5, normal": (normal, autoregressive(0.5), 200),
    "AR .9, normal": (normal, autoregressive(0.9), 500),
    "AR .97, normal": (normal, autoregressive(0.97), 1200),
    "Metropolis thinned by 4, log gamma": (log_gamma, metropolis(log_gamma, 2.4, 4), 400),
    "emcee, correlated normal": (correlated, ensemble(correlated), 1500),
}
HELD_OUT = {
    "AR .8, t with 8 df": (student, autoregressive(0.8, to_student), 300),
    "AR .95, normal": (normal, autoregressive(0.95), 900),
    "Metropolis, two modes": (two_modes, metropolis(two_modes, 2.4), 1200),
    "Metropolis thinned by 9, t": (student, metropolis(student, 2.4, 9), 200),
    "emcee, log gamma": (log_gamma, ensemble(log_gamma), 1500),
}


def in_order(right, order, rng):
    n_walkers, n_steps, d = right.shape
    steps_first = right.swapaxes(0, 1)
    return {
        "right": right,
        "flat": steps_first.reshape(-1, d),
        "transposed": steps_first,
        "shuffled": rng.permutation(steps_first.reshape(-1, d)),
        "one after another": right.reshape(-1, d),
    }[order]


def rows_of(kind, seed):
    """One row for each order and proposal."""
    log_density, draw, n_steps = (KINDS | HELD_OUT)[kind]
    rng = np.random.default_rng([seed, *kind.encode()])
    d = int(rng.integers(4, 11))
    n_walkers = max(round(np.exp(rng.uniform(np.log(16), np.log(100)))), 2 * d)
    right = draw(n_walkers, n_steps, d, rng)
    known = {}
    for order in ORDERS:
        draws = in_order(right, order, rng)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            points = posterior_draws(draws).points
        is_right = points.shape == right.shape and np.array_equal(points, right)
        # Of orders that are not seen one proposal in turn is enough for the time.
        proposals = PROPOSALS if is_right else [PROPOSALS[seed % len(PROPOSALS)]]
        for proposal in proposals:
            if is_right and proposal in known:
                row = known[proposal]
            else:
                row = fitted(log_density, points, proposal, seed)
            if is_right:
                known[proposal] = row
            yield [kind, seed, n_walkers, d, order, proposal, len(told), int(is_right), *row]


def fitted(log_density, points, proposal, seed):
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        bridge = BridgeSampling(proposal, checks=False, random_state=seed)
        bridge.fit(log_density, draws=points)
    low, high = bridge.log_partition_interval_
    moments = [each.moments for each in (*bridge.run_.bridges, *bridge.run_.checks)]
    return [
        bridge.log_partition_,
        bridge.log_partition_std_error_,
        int(low <= 0 <= high),
        int(bridge.converged_),
        " ".join(sorted({alarm.kind for alarm in bridge.result_.alarms})),
        float(bridge.result_.diagnostics["effective_draws"]),
        " ".join(f"{each.square:.3f}/{each.df:.1f}" for each in moments),
        time.process_time() - started,
    ]


COLUMNS = [
    *("kind", "seed", "n_walkers", "d", "order", "proposal", "told", "is_right", "off", "error"),
    *("covers", "converged", "alarms", "effective", "moments", "seconds"),
]


def table(rows):
    print("| walkers | order | put into order | converged | of these cover | > 3 SE | > 5 SE |")
    print("|---|---|---|---|---|---|---|")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        for order in ORDERS:
            some = [row for row in rows if row["kind"] == kind and row["order"] == order]
            good = [row for row in some if int(row["converged"])]
            far = np.array([abs(float(row["off"])) / float(row["error"]) for row in good])
            n_read = sum(int(row["is_right"]) for row in some)
            covers = sum(int(row["covers"]) for row in good)
            print(
                f"| {kind} | {order} | {n_read} of {len(some)} | {len(good)} | {covers} |"
                f" {np.sum(far > 3)} | {np.sum(far > 5)} |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", default="draws_in_orders.csv")
    args = parser.parse_args()
    kinds = [name for name in (HELD_OUT if args.held_out else KINDS) if args.kinds in name]
    with open(args.out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            for kind in kinds:
                writer.writerows(rows_of(kind, seed))
            file.flush()
    with open(args.out, newline="") as file:
        table(list(csv.DictReader(file)))


if __name__ == "__main__":
    sys.exit(main())

"""What weight decay gives on rows that an RBM has not seen. Prints Markdown.

    python tests/benchmarks/rbm_weight_decay.py RESULTS [--seeds 3] [DATA ...]

Averages, learning rate 0.05, batches of 10, 50 chains. RESULTS is a file of JSON lines, to which
every finished fit is appended; what it holds already is not fitted again.
"""

import argparse
import collections

import numpy as np
from measure import row, table
from rbm_training import PASSES, SETTINGS, append, fit_and_score, load, read

DECAYS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3)


def measure(results, data, n_seeds):
    """Two sizes, the passes of the other tables and three times as many."""
    keys = ("data", "n_units", "n_passes", "weight_decay", "seed")
    done = {tuple(record[key] for key in keys) for record in read(results)}
    for name in data:
        X, X_test = load(name)
        for n_units in (64, 256):
            for n_passes in (PASSES[name], 3 * PASSES[name]):
                for decay in DECAYS:
                    for seed in range(n_seeds):
                        if (name, n_units, n_passes, decay, seed) in done:
                            continue
                        options = SETTINGS["average, 50 chains"] | {"weight_decay": decay}
                        record = fit_and_score(X, X_test, n_units, n_passes, seed, **options)
                        append(results, {"data": name, "weight_decay": decay} | record)


def print_table(results):
    """The mean over all seeds, and how many of them have a log Z that is trusted."""
    cells = collections.defaultdict(list)
    for record in read(results):
        key = record["data"], record["n_units"], record["n_passes"]
        cells[key, record["weight_decay"]].append((record["test"], record["converged"]))
    table("data", "units", "passes", *(f"{decay:g}" for decay in DECAYS))
    for key in dict.fromkeys(key for key, _ in cells):
        texts = []
        for decay in DECAYS:
            scores, trusted = np.array(cells[key, decay]).T
            texts.append(f"{scores.mean():.2f} ({int(trusted.sum())} of {len(trusted)})")
        row(*key, *texts)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results")
    parser.add_argument("data", nargs="*", default=["digits", "dna", "mushrooms", "nltcs"])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    measure(arguments.results, arguments.data, arguments.seeds)
    print_table(arguments.results)


if __name__ == "__main__":
    main()

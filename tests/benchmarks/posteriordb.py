"""Log evidences of the posteriors of posteriordb that have reference draws: by a bridge from these
draws, and by a run that knows the density alone.

    python tests/benchmarks/posteriordb.py DATABASE [--results posteriordb.jsonl]
    [--posteriors NAME ...] [--csv doc/benchmarks/posteriordb.csv]

DATABASE is the folder posterior_database of a checkout of github.com/stan-dev/posteriordb. Programs
are compiled by PyStan (a minute each), with `y ~ normal(mu, 1)` written as `target +=
normal_lpdf(y | mu, 1)`, so that all constants are kept. Evidence is the integral of the program's
density, in which a prior is not normalised anew for a bound. A parameter without a prior leaves no
evidence. Every row is appended to the results as it ends, and an interrupted benchmark goes on
where it stopped. Prints Markdown.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

from sklpf import BridgeSampling, UntilTrusted
from sklpf.interop import from_stan
from sklpf.interop._stan import without_prior

COLUMNS = (
    *("posterior", "dimensions", "bridge", "bridge_std_error", "bridge_converged"),
    *("run", "run_std_error", "run_converged", "method"),
    *("seconds", "note"),
)
DISCRETE = ("poisson_log", "poisson", "bernoulli", "bernoulli_logit", "binomial")
NO_PRIOR = {"garch-garch11": ["mu", "alpha0"]}  # used by what no text search sees through


def with_constants(program: str) -> str:
    """A program whose densities keep their constants."""
    program = re.sub(r"//[^\n]*", "", program)

    def written(match):
        value, name = match.groups()
        return f"target += {name}_{'lpmf' if name in DISCRETE else 'lpdf'}({value} | "

    return re.sub(r"(\w+(?:\[[^\]]*\])?)\s*~\s*(\w+)\s*\(", written, program)


# ---- the database
def read_zip(file: Path):
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


def read_draws(database: Path, name: str) -> dict[str, np.ndarray]:
    """Draws by parameter, (chains, draws, ...)."""
    chains = read_zip(database / "reference_posteriors" / "draws" / "draws" / f"{name}.json.zip")
    arrays: dict[str, np.ndarray] = {}
    for element in chains[0]:
        values = np.array([chain[element] for chain in chains])
        parameter, _, index = element.partition("[")
        index = tuple(int(i) - 1 for i in index.rstrip("]").split(",") if i)
        if parameter not in arrays:
            of_it = [e.partition("[")[2] for e in chains[0] if e.partition("[")[0] == parameter]
            indices = [[int(i) for i in e.rstrip("]").split(",") if i] for e in of_it]
            arrays[parameter] = np.empty(values.shape + tuple(np.max(indices, axis=0).astype(int)))
        arrays[parameter][(..., *index)] = values
    return arrays


def eight_schools(draws, data):
    spread = (draws["theta"] - draws["mu"][..., np.newaxis]) / draws["tau"][..., np.newaxis]
    return draws | {"theta_trans": spread}


def gaussian_process(draws, data):
    x = np.array(data["x"])
    apart = (x[:, np.newaxis] - x) ** 2
    rho, alpha = (draws[name][..., np.newaxis, np.newaxis] for name in ("rho", "alpha"))
    covariance = alpha**2 * np.exp(-apart / (2 * rho**2)) + 1e-10 * np.eye(len(x))
    root = np.linalg.cholesky(covariance)
    return draws | {"f_tilde": np.linalg.solve(root, draws["f"][..., np.newaxis])[..., 0]}


# Reference draws of transformed parameters, and those of the program's own.
OWN = {
    "eight_schools-eight_schools_noncentered": eight_schools,
    "gp_pois_regr-gp_pois_regr": gaussian_process,
}


# ---- evidences
def measure(database: Path, name: str) -> dict:
    import stan

    posterior = json.loads((database / "posteriors" / f"{name}.json").read_text())
    program = (database / "models" / "stan" / f"{posterior['model_name']}.stan").read_text()
    row = {"posterior": name, "dimensions": sum(posterior["dimensions"].values())}
    free = NO_PRIOR.get(name, without_prior(program))
    if free:
        return row | {"note": f"no evidence: {' and '.join(free)} without a prior"}
    data = read_zip(database / "data" / "data" / f"{posterior['data_name']}.json.zip")
    path = from_stan(stan.build(with_constants(program), data=data))
    draws = OWN.get(name, lambda draws, data: draws)(read_draws(database, name), data)
    draws = {parameter: draws[parameter] for parameter in path.parameter_shapes}
    started = time.perf_counter()
    bridge = BridgeSampling(random_state=0).fit(path, draws=draws)
    run = UntilTrusted(random_state=0).fit(path)
    row |= {"seconds": round(time.perf_counter() - started)}
    row |= {"method": run.result_.method}
    for key, fitted in (("bridge", bridge), ("run", run)):
        row[key] = round(fitted.log_partition_, 4)
        row[f"{key}_std_error"] = float(f"{fitted.log_partition_std_error_:.2g}")
        row[f"{key}_converged"] = bool(fitted.converged_)
    reasons = [reason for each in (bridge, run) for reason in each.result_.reasons]
    return row | {"note": "; ".join(reasons)}


def names_of(database: Path) -> list[str]:
    folder = database / "reference_posteriors" / "draws" / "draws"
    return sorted(file.name.removesuffix(".json.zip") for file in folder.glob("*.json.zip"))


def execute(args) -> None:
    done = {row["posterior"] for row in read(args.results)}
    for name in args.posteriors or names_of(args.database):
        if name in done:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                row = measure(args.database, name)
            except Exception as error:  # what does not compile, or has no density at the draws
                row = {"posterior": name, "note": f"{type(error).__name__}: {error}"[:300]}
        with open(args.results, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")


def read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def report(rows: list[dict]) -> None:
    print("| posterior | d | by reference draws | by a run | differ by |")
    print("|---|---|---|---|---|")
    for row in rows:
        if "bridge" in row:
            print(
                f"| {row['posterior']} | {row['dimensions']} |"
                f" {row['bridge']:.3f} ± {row['bridge_std_error']:.2g} |"
                f" {row['run']:.3f} ± {row['run_std_error']:.2g}, {row['method']} |"
                f" {abs(row['run'] - row['bridge']):.3f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("--results", type=Path, default=Path("posteriordb.jsonl"))
    parser.add_argument("--posteriors", nargs="*")
    parser.add_argument("--csv", type=Path)
    args = parser.parse_args()
    execute(args)
    rows = sorted(read(args.results), key=lambda row: row["posterior"])
    report(rows)
    if args.csv:
        with open(args.csv, "w", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(
                lines, COLUMNS, restval="", lineterminator="\n", extrasaction="ignore"
            )
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()

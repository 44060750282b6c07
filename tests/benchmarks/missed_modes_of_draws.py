"""Does check_draws see modes that draws have missed? doc/benchmarks/check_draws.md

python tests/benchmarks/missed_modes_of_draws.py --problems 200
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from mode_problems import make_mode_problem

from sklpf.partition import check_draws


def main(n_problems):
    """A line for each problem that is not as it should be, and the totals."""
    numbers = {}
    for seed in range(n_problems):
        problem = make_mode_problem(seed)
        kind = "with a gradient and a wide base" if seed % 2 else "a function alone"
        for name, draws in (("some", problem.some), ("all", problem.draws)):
            report = check_draws(problem.path, draws, random_state=seed)
            kinds = Counter(alarm.kind for alarm in report.result.alarms)
            row = (report.converged, kinds, report.n_evaluations, report.result.seconds)
            numbers.setdefault((kind, name), []).append(row)
            if report.converged == (name == "some"):
                print(
                    f"problem {seed}, draws of {name}: missed {problem.missed:.2f},"
                    f" d = {draws.shape[2]}, {dict(kinds)}",
                    flush=True,
                )
    print("| density | draws | problems | refused | for missed modes | evaluations | seconds |")
    for (kind, name), rows in numbers.items():
        refused = [row for row in rows if not row[0]]
        modes = sum("missed-region" in row[1] for row in refused)
        evaluations = np.median([row[2] for row in rows])
        seconds = np.median([row[3] for row in rows])
        print(
            f"| {kind} | of {name} modes | {len(rows)} | {len(refused)} | {modes} |"
            f" {evaluations:,.0f} | {seconds:.1f} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=200)
    main(parser.parse_args().problems)

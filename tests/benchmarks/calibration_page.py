"""The table and the picture of doc/benchmarks/calibration.md, from the ledger beside it.

    python tests/benchmarks/calibration_page.py

The ledger, calibration.csv, has a row for each estimator and model that were measured: how many
runs were made and converged, how many converged ones have a 95 % interval that holds the truth, and
how many are beyond 3 and 5 standard errors. An empty cell was not measured; where "converged" is
empty, the other counts are of all runs. Other benchmarks append rows by `append`.
"""

import csv
import re
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
from scipy.stats import binom, binomtest

PAGES = Path(__file__).parents[2] / "doc" / "benchmarks"
LEDGER = PAGES / "calibration.csv"
COLUMNS = "estimator kind model runs converged covers beyond_3_se beyond_5_se seconds date script"
MISLEADING = (
    "misses",
    "both bases miss",
    "hard to find",
    "training missed",
    "tails heavier",
    "few, wrong or stuck",
)
MARKS = "<!-- {} by tests/benchmarks/calibration_page.py: {} -->"


def read_ledger(file=LEDGER):
    """The rows of the ledger, a list of dictionaries of strings."""
    with open(file, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def append(rows, file=LEDGER):
    """Add rows, dictionaries with keys from `COLUMNS`, to a ledger; what they lack stays empty."""
    with open(file, "a", newline="", encoding="utf-8") as lines:
        csv.DictWriter(lines, COLUMNS.split(), restval="", lineterminator="\n").writerows(rows)


def pooled(rows, key):
    """Sums of all rows for which `key` has the same value, {value: {count: sum}}.

    "judged" is the number of intervals that were compared with a truth, "judged_3_se" that of the
    rows that say how many are beyond 3 standard errors.
    """
    sums = defaultdict(lambda: defaultdict(int))
    for row in rows:
        total = sums[key(row)]
        n_intervals = int(row["converged"] or row["runs"])
        total["runs"] += int(row["runs"])
        total["converged"] += n_intervals
        for count, judged in [("covers", "judged"), ("beyond_3_se", "judged_3_se")]:
            if row[count]:
                total[count] += int(row[count])
                total[judged] += n_intervals
    return dict(sums)


def by_estimator(rows):
    """`pooled` by the estimators' names without their settings, of models that mislead none."""
    rows = [row for row in rows if not any(word in row["kind"] for word in MISLEADING)]
    sums = pooled(rows, lambda row: row["estimator"].split(",")[0])
    return dict(sorted(sums.items(), key=lambda item: item[0].lower()))


def table(rows):
    """The table of the page, by kind of model, in Markdown."""
    lines = [
        "| model | runs | converged | covers | share | > 3 SE |",
        "|" + "---|" * 6,
    ]
    for name, total in pooled(rows, lambda row: row["kind"]).items():
        covers = f"{total['covers']:,} of {total['judged']:,}" if total["judged"] else ""
        share = f"{total['covers'] / total['judged']:.1%}" if total["judged"] else ""
        cells = [name, f"{total['runs']:,}", f"{total['converged']:,}", covers, share]
        judged = total["judged_3_se"]
        cells.append(f"{total['beyond_3_se']} of {judged:,}" if judged else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(rows, file):
    """Shares of intervals that cover, with exact 95 % intervals, by kind and by estimator; and of
    every row with at least 40 intervals, beside what chance gives if 95 % cover.
    """
    plt.style.use("tableau-colorblind10")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 6), layout="constrained")
    sums = {**pooled(rows, lambda row: row["kind"]), **by_estimator(rows)}
    shown = [(name, total) for name, total in sums.items() if total["judged"] >= 40]
    for height, (_, total) in enumerate(reversed(shown)):
        test = binomtest(total["covers"], total["judged"]).proportion_ci(method="exact")
        left.plot([test.low, test.high], [height, height], color="C0")
        left.plot(total["covers"] / total["judged"], height, "o", color="C0")
    left.set_yticks(range(len(shown)), [name for name, _ in reversed(shown)], fontsize=8)
    left.axvline(0.95, color="0.5", linestyle="--")
    left.set(xlabel="share of intervals that cover", title="all rows of the ledger")

    cells = [row for row in rows if row["covers"] and int(row["converged"] or row["runs"]) >= 40]
    sizes = [int(row["converged"] or row["runs"]) for row in cells]
    shares = [int(row["covers"]) / n for row, n in zip(cells, sizes)]
    right.plot(sizes, shares, ".", color="C0", alpha=0.4)
    grid = sorted(set(sizes))
    for level in (0.0005, 0.9995):
        bounds = [binom.ppf(level, n, 0.95) / n for n in grid]
        right.plot(grid, bounds, color="C1", label="99.9 % of rows, if 95 % cover")
    right.legend(handles=right.get_legend_handles_labels()[0][:1], loc="center right")
    right.axhline(0.95, color="0.5", linestyle="--")
    right.set(
        xscale="log",
        xlabel="intervals in a row of the ledger",
        title="rows with 40 intervals or more",
    )
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def main():
    rows = read_ledger()
    page = PAGES / "calibration.md"
    begin, end = MARKS.format("written", "begin"), MARKS.format("written", "end")
    text = page.read_text(encoding="utf-8")
    written = f"{begin}\n\n{table(rows)}\n\n{end}"
    pattern = re.escape(begin) + ".*" + re.escape(end)
    page.write_text(re.sub(pattern, lambda _: written, text, flags=re.S), encoding="utf-8")
    draw(rows, PAGES.parent / "images" / "calibration.svg")


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "calibration", "svg.fonttype": "none"})
    main()

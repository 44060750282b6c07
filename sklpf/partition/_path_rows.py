"""Many rows of data, one log Z for each: a row runs by itself, or its chains move in one array with
those of others (`batch_rows`), and blocks of rows run in parallel.

A row's random numbers are keyed by (seed, the row's content) and no arithmetic mixes rows, so a
row's result depends on neither the other rows nor their order. Equal rows are computed once. Moves
are tuned once, on a row that the model simulates with a key of its own, where it can; else on every
row itself.
"""

from __future__ import annotations

import copy
import functools
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream, seeded
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import PartitionResult, total_cost
from sklpf.partition.alarms import is_imprecise, raised, threshold
from sklpf.paths import Path, has, require
from sklpf.programs import n_tuning_moves

if TYPE_CHECKING:
    from sklpf.partition._base import PartitionEstimator

_NUMBERS = ("log_partition", "std_error", "degrees_of_freedom")
# the same whatever is scored
_SIMULATION = seeded(0).of("simulation").key
_TUNING = seeded(0).of("tuning").key


def estimate_rows(estimator: PartitionEstimator, path: Path, seed: int) -> PartitionResult:
    """Run `estimator` on every row of a path; returns one result that holds arrays.

    Raises
    ------
    TypeError
        If the path lacks `row` or `row_content`.
    ValueError
        If the path has no row, or a row can't be estimated; the message names the row.
    """
    require(path, "row", "an estimator of one log Z for each row")
    if not path.n_rows:
        raise ValueError("path has no rows: give it at least one")
    checkpoint = estimator._checkpoint(path, seed)
    rows, row_of, seeds = _distinct(path, seed)
    # Rows in one array share their calls: there, few blocks are faster than many jobs.
    bounds = _cut_by_cost(path.row_cost(rows), 1 if can_batch_rows(estimator, path) else 8)
    alone, n_tuning = _for_rows(estimator, path)
    blocks = run_segments(
        lambda block: (np.empty(0, dtype="U1"), np.empty(0)),
        functools.partial(_advance, alone, path, rows, seeds, bounds),
        len(bounds) - 1,
        [0, 1],
        n_jobs=getattr(estimator, "n_jobs", None),
        checkpoint=checkpoint,
        stage="rows",
    )
    texts, gaps = (np.concatenate(parts) for parts in zip(*blocks))
    return _combine([PartitionResult.from_json(text) for text in texts], gaps, row_of, n_tuning)


def each_row(
    estimator: PartitionEstimator, path: Path, rows: Sequence[int], seeds: Sequence[int]
) -> Iterator[PartitionResult]:
    """Estimate one row after the other, or with the chains of all rows in one array."""
    if not can_batch_rows(estimator, path):
        for row, seed in zip(rows, seeds):
            yield _estimate_row(estimator, path, row, seed)
        return
    paths = [path.row(row) for row in rows]
    try:
        runs = estimator._sample_rows(paths, seeds)
    except ValueError:
        # The row that can't be estimated says so when it is alone.
        for row, seed in zip(rows, seeds):
            _estimate_row(estimator, path, row, seed)
        raise
    for of_row, seed, run in zip(paths, seeds, runs):
        yield estimator._read(estimator._with_findings(of_row, seed, run))


def can_batch_rows(estimator, path) -> bool:
    """True if chains of several rows can move in one array all the way."""
    joins = hasattr(estimator, "_sample_rows") and has(path, "batch_rows")
    return joins and estimator._transition(path).joins_rows


def _estimate_row(estimator, path, row, seed) -> PartitionResult:
    try:
        return estimator._estimate(path.row(row), seed)
    except ValueError as error:
        raise ValueError(f"row {row}: {error}") from error


def _cut_by_cost(costs: Array, fewest_blocks: int, *, rows_per_block: int = 64) -> Integers:
    """First row of every block and the end: blocks of about equal cost."""
    n_blocks = min(len(costs), max(fewest_blocks, -(-len(costs) // rows_per_block)))
    if not costs.sum() > 0:
        costs = np.ones(len(costs))
    middle = np.cumsum(costs) - costs / 2
    block = (n_blocks * middle / costs.sum()).astype(int)
    return np.append(np.unique(block, return_index=True)[1], len(costs))


def _distinct(path, seed):
    """First row of every distinct content (U,), the distinct one that each row equals (T,), and a
    seed for each.
    """
    index: dict[bytes, int] = {}
    rows: list[int] = []
    row_of = np.empty(path.n_rows, dtype=np.int64)
    prefix = hashlib.blake2b(f"{seed}:".encode(), digest_size=16)
    for t in range(path.n_rows):
        digest = prefix.copy()
        digest.update(path.row_content(t))
        row_of[t] = index.setdefault(digest.digest(), len(rows))
        if row_of[t] == len(rows):
            rows.append(t)
    return np.array(rows), row_of, [int.from_bytes(digest, "little") for digest in index]


def _for_rows(estimator, path):
    """A copy that runs in the task that calls it, without checkpoints of its own, and keeps draws
    only for checks; with a move that is tuned for the model, and how many moves that took.
    """
    alone = copy.copy(estimator)
    alone._keeps_draws = has(path, "regions")
    alone.n_jobs = 1
    alone.checkpoint = None
    if not has(path, "simulated_row") or not hasattr(estimator, "transition"):
        return alone, 0
    typical = path.simulated_row(Stream(_SIMULATION))
    transition = estimator._transition(typical)
    alone.transition = transition.tune(typical, _TUNING)
    return alone, n_tuning_moves(transition, alone.transition)


def _judge_move(result, transition):
    """A row's result, not converged where a move that was tuned on another row does not suit it.

    For a target of 0.8 acceptance may go from 0.4 to 0.98.
    """
    rates = result.diagnostics.get("acceptance")
    is_tuned = getattr(transition, "pilot", None) is not None and transition.step_size == "auto"
    if rates is None or not is_tuned:
        return result
    width = min(int(threshold("moves-of-another-row", "moves")), len(rates) - 1)
    target = transition.target_acceptance
    means = np.convolve(rates[1:], np.full(width, 1 / width), mode="valid")
    off = np.maximum(target / 2 - means, means - (1 - (1 - target) / 10))
    if off.max() <= 0:
        return result
    rate = means[off.argmax()]
    alarm = raised("moves-of-another-row", "acceptance", rate=rate)
    return replace(result, alarms=(*result.alarms, alarm))


def _advance(estimator, path, rows, seeds, bounds, block, begin, end, carry):
    chosen = slice(bounds[block], bounds[block + 1])
    results = estimator._estimate_rows(path, rows[chosen].tolist(), seeds[chosen])
    transition = getattr(estimator, "transition", None)
    # an iterator, so that one result is held at a time
    judged = (_judge_move(result, transition) for result in results)
    texts, gaps = zip(*((each.to_json(), each.diagnostics.get("gap", np.nan)) for each in judged))
    return np.array(texts), np.array(gaps)


def _combine(results: list[PartitionResult], gaps, row_of, n_tuning: int) -> PartitionResult:
    """The result of all rows by those of the distinct ones, and by the gaps between two directions,
    if there are such.
    """
    numbers = np.array([[getattr(each, name) for each in results] for name in _NUMBERS])
    log_partition, std_error, degrees_of_freedom = numbers[:, row_of]
    counts = np.bincount(row_of)
    imprecise = np.array([is_imprecise(each.alarms) for each in results])
    diagnostics = {
        "log_bias": -(std_error**2) / 2,
        "converged": np.array([each.converged for each in results])[row_of],
        "imprecise": imprecise[row_of],
        "n_distinct": len(results),
        "mean": float(log_partition.mean()),
        "mean_std_error": float(np.sqrt(np.sum((counts * numbers[1]) ** 2)) / len(row_of)),
    }
    if len(results) > 1 and not np.isnan(gaps).any():
        shares = counts / len(row_of)
        # Equal rows have one gap: of a row that is nearly all of them the mean is hardly better.
        of_mean = np.sum(shares**2)  # its variance, over that of a gap
        diagnostics["gap"] = float(shares @ gaps)
        variance = shares @ (gaps - diagnostics["gap"]) ** 2 / (1 - of_mean)
        diagnostics["gap_std_error"] = float(np.sqrt(variance * of_mean))
    return PartitionResult(
        method=results[0].method,
        log_partition=log_partition,
        std_error=std_error,
        degrees_of_freedom=degrees_of_freedom,
        statement=_joint_statement({each.statement for each in results}),
        alarms=_counted(results, counts),
        **total_cost(results, pilot=n_tuning),
        diagnostics=diagnostics,
    )


def _joint_statement(statements: set[str]) -> str:
    if len(statements) == 1:
        return next(iter(statements))
    return "estimate" if statements == {"exact", "estimate"} else "approximate"


def _counted(results, counts) -> tuple[Alarm, ...]:
    """One alarm of each kind: that of the first row, with the number of rows that raised it."""
    first: dict[str, Alarm] = {}
    n_rows: Counter[str] = Counter()
    for each, count in zip(results, counts):
        n_rows.update(dict.fromkeys({alarm.kind for alarm in each.alarms}, count))
        for alarm in each.alarms:
            first.setdefault(alarm.kind, alarm)
    return tuple(
        replace(alarm, seen=f"in {n_rows[kind]} of {counts.sum()} rows: {alarm.seen}")
        for kind, alarm in first.items()
    )

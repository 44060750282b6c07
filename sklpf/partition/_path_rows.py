"""Many rows of data, one log Z for each: a row runs by itself, or its chains move in one array with
those of others (`JointRows`), and blocks of rows run in parallel.

A row's random numbers are keyed by (seed, the row's content) and no arithmetic mixes rows, so a
row's result depends on neither the other rows nor their order. Equal rows are computed once. Moves
are tuned once, on a row that the model simulates with a key of its own, where it can; else on every
row itself.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream, stream_key
from sklpf._utils.warnings import Alarm
from sklpf.partition._result import Diagnostic, PartitionResult
from sklpf.paths import JointRows, LocalMasses, Rows, SimulatedRows
from sklpf.paths._capabilities import has, require
from sklpf.programs._plan import n_tuning_moves
from sklpf.uncertainty import standard_error

TUNE = 6  # random stream of a move's tuning
_ROWS_PER_BLOCK = 64
_NUMBERS = ("log_partition", "std_error", "degrees_of_freedom", "converged")
_COSTS = ("n_sweeps", "check_evaluations")
# the same whatever is scored
_SIMULATION = stream_key(0, 0)
_TUNING = stream_key(0, 1)
# alarms that say that an error is large
_IMPRECISE = {"filters-disagree", "no-usable-estimate", "tol-missed"}
_MOVES_JUDGED = 100  # acceptance is averaged over so many moves of all chains


def estimate_rows(estimator: Any, path: Any, seed: int) -> PartitionResult:
    """Run `estimator` on every row of a path; returns one result that holds arrays.

    Raises
    ------
    TypeError
        If the path lacks `row` or `row_content`.
    ValueError
        If the path has no row, or a row can't be estimated; the message names the row.
    """
    require(path, Rows, "an estimator of one log Z for each row")
    if path.n_rows < 1:
        raise ValueError("path has no rows: give it at least one")
    checkpoint = estimator._checkpoint(path, seed)
    rows, row_of, seeds = _distinct(path, seed)
    # Rows in one array share their calls: there, few blocks are faster than many jobs.
    bounds = _cut_by_cost(path.row_cost(rows), 1 if _go_together(estimator, path) else 8)
    alone, n_tuning = _for_rows(estimator, path)
    carries = run_segments(
        lambda block: np.empty(0, dtype="U1"),
        functools.partial(_advance, alone, path, rows, seeds, bounds),
        len(bounds) - 1,
        [0, 1],
        n_jobs=getattr(estimator, "n_jobs", None),
        checkpoint=checkpoint,
        stage="rows",
    )
    result = _combine([json.loads(text) for block in carries for text in block.tolist()], row_of)
    return replace(
        result,
        n_sweeps=result.n_sweeps + n_tuning,
        is_checked=getattr(estimator, "checks", True),
    )


def each_row(
    estimator: Any, path: Any, rows: Sequence[int], seeds: Sequence[int]
) -> Iterator[PartitionResult]:
    """Estimate one row after the other, or with the chains of all rows in one array."""
    paths = [path.row(row) for row in rows]
    if not _go_together(estimator, path):
        moves = _tuned_together(estimator, paths, seeds)
        for of_row, row, seed, move in zip(paths, rows, seeds, moves):
            yield _estimate_row(estimator, of_row, row, seed, move)
        return
    try:
        runs = estimator._sample_rows(paths, seeds)
    except ValueError:
        # The row that can't be estimated says so when it is alone.
        for of_row, row, seed in zip(paths, rows, seeds):
            _estimate_row(estimator, of_row, row, seed)
        raise
    for of_row, seed, run in zip(paths, seeds, runs):
        yield estimator._read(estimator._with_checks(estimator._checks(of_row, seed), run))


def _go_together(estimator, path) -> bool:
    """Whether chains of several rows can move in one array all the way."""
    return hasattr(estimator, "_sample_rows") and _join(estimator, path)


def _join(estimator, path) -> bool:
    """Whether moves of several rows can be made in one array."""
    return has(path, JointRows) and estimator._transition(path).joins_rows


def _tuned_together(estimator, paths, seeds) -> list[Any]:
    """The move of every row, tuned as the row itself would, with the pilots of all rows in one
    array; None where it has to do that itself.
    """
    alone = [None] * len(paths)
    if len(paths) == 1 or not hasattr(estimator, "transition") or not _join(estimator, paths[0]):
        return alone
    try:
        keys = [stream_key(seed, TUNE) for seed in seeds]
        return estimator._transition(paths[0]).tune_rows(paths, keys)
    except ValueError:  # the row that can't be tuned says so when it is alone
        return alone


def _estimate_row(estimator, path, row, seed, tuned=None) -> PartitionResult:
    """The result of one row, with a move that was tuned for it or with the estimator's."""
    n_tuning = 0
    if tuned is not None:
        n_tuning = n_tuning_moves(estimator._transition(path), tuned)
        estimator = copy.copy(estimator)
        estimator.transition = tuned
    try:
        result = estimator._estimate(path, seed)
    except ValueError as error:
        raise ValueError(f"row {row}: {error}") from error
    return replace(result, n_sweeps=result.n_sweeps + n_tuning)


def _cut_by_cost(costs: Array, fewest_blocks: int) -> Integers:
    """First row of every block and the end: blocks of about equal cost."""
    n_blocks = min(len(costs), max(fewest_blocks, -(-len(costs) // _ROWS_PER_BLOCK)))
    total = np.cumsum(costs)
    inner = np.searchsorted(total, total[-1] * np.arange(1, n_blocks) / n_blocks * (1 - 1e-12)) + 1
    return np.unique(np.concatenate([[0], np.minimum(inner, len(costs)), [len(costs)]]))


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
    alone._keeps_draws = has(path, LocalMasses)
    alone.n_jobs = 1
    alone.checkpoint = None
    if not has(path, SimulatedRows) or not hasattr(estimator, "transition"):
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
    width = min(_MOVES_JUDGED, len(rates) - 1)
    target = transition.target_acceptance
    means = np.convolve(rates[1:], np.full(width, 1 / width), mode="valid")
    off = np.maximum(target / 2 - means, means - (1 - (1 - target) / 10))
    if off.max() <= 0:
        return result
    rate = means[off.argmax()]
    seen = (
        f"moves that were tuned on another row are accepted with a mean probability of {rate:.3f}"
        " here"
    )
    alarm = Alarm("moves-of-another-row", seen, "fit(path.row(t)) tunes them on row t itself")
    return replace(result, alarms=(*result.alarms, alarm))


def _advance(estimator, path, rows, seeds, bounds, block, begin, end, carry):
    chosen = slice(bounds[block], bounds[block + 1])
    results = estimator._estimate_rows(path, rows[chosen].tolist(), seeds[chosen])
    transition = getattr(estimator, "transition", None)
    # an iterator, so that one result is held at a time
    return np.array([_as_text(_judge_move(result, transition)) for result in results])


def _as_text(result: PartitionResult) -> str:
    """What is kept of a row's result, in checkpoints too."""
    numbers = [float(getattr(result, name)) for name in (*_COSTS, *_NUMBERS)]
    gap = result.diagnostics.get("gap", np.nan)
    alarms = [astuple(alarm) for alarm in result.alarms]
    return json.dumps([*numbers, gap, result.method, result.statement, alarms])


def _combine(records, row_of) -> PartitionResult:
    *columns, methods, statements, alarms = zip(*records)
    numbers = np.array(columns, dtype=float)
    costs = numbers[: len(_COSTS)].sum(axis=1).astype(int).tolist()
    numbers = numbers[len(_COSTS) :]
    log_partition, std_error, degrees_of_freedom, converged, gaps = numbers[:, row_of]
    counts = np.bincount(row_of)
    kinds = [{kind for kind, *_ in of_row} for of_row in alarms]
    # Of these rows all that speaks against the numbers is that their errors are large.
    imprecise = np.array([bool(own) and own <= _IMPRECISE for own in kinds])
    diagnostics = {
        "converged": converged.astype(bool),
        "imprecise": imprecise[row_of],
        "n_distinct": len(records),
        "mean": float(log_partition.mean()),
        "mean_std_error": float(np.sqrt(np.sum((counts * numbers[1]) ** 2)) / len(row_of)),
    }
    if len(gaps) > 1 and not np.isnan(gaps).any():  # between two directions, over rows
        diagnostics["gap"] = float(gaps.mean())
        diagnostics["gap_std_error"] = standard_error(gaps)
    return PartitionResult(
        method=methods[0],
        log_partition=log_partition,
        std_error=std_error,
        degrees_of_freedom=degrees_of_freedom,
        statement=_joint_statement(set(statements)),
        alarms=_counted(alarms, kinds, counts),
        **dict(zip(_COSTS, costs)),
        diagnostics=diagnostics,
        bias=-(std_error**2) / 2,
        described={"n_distinct": Diagnostic("different rows")},
    )


def _joint_statement(statements: set[str]) -> str:
    if len(statements) == 1:
        return next(iter(statements))
    return "estimate" if statements == {"exact", "estimate"} else "approximate"


def _counted(alarms, kinds, counts) -> tuple[Alarm, ...]:
    """One alarm of each kind: that of the first row, with the number of rows that raised it."""
    first: dict[str, Alarm] = {}
    n_rows: Counter[str] = Counter()
    for of_row, own, count in zip(alarms, kinds, counts):
        n_rows.update(dict.fromkeys(own, count))
        for fields in of_row:
            first.setdefault(fields[0], Alarm(*fields))
    return tuple(
        replace(alarm, seen=f"in {n_rows[kind]} of {counts.sum()} rows: {alarm.seen}")
        for kind, alarm in first.items()
    )

"""A result in words: its line, its table, and what the main diagnostics mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf._progress import in_words
from sklpf._tables import from_to, short, with_error

_NUMBERS = {  # diagnostics and what they are
    "effective_sample_size": "weights that count",
    "effective_sample_size_from_target": "… as chains from the target say",
    "effective_families": "families that count",
    "effective_families_from_target": "… as chains from the target say",
    "effective_share": "share of the weights that count",
    "pareto_shape": "tail of the weights (0.7 and more: heavy)",
    "barrier": "sum of the rejected shares of swaps",
    "between_groups": "variance between groups of chains, share",
    "between_ladders": "variance between ladders, share",
    "between_populations": "variance between populations, share",
    "effective_draws": "independent draws a chain",
    "overlap": "overlap of both kinds of draws (1: full)",
    "gap": "gap between the bounds (nats)",
    "spread": "spread of the log estimates (nats)",
    "difference": "difference from the sampler's log Z (nats)",
    "quadrature_error": "error of the quadrature (nats)",
    "mbar_log_partition": "log Z_target - log Z_base by MBAR (nats)",
    "bar_log_partition": "log Z_target - log Z_base by BAR (nats)",
    "forward_log_partition": "log Z by chains that go up (nats)",
    "reverse_log_partition": "log Z by chains that go down (nats)",
    "lower_bound": "log Z is above, with 95 % certainty (nats)",
    "plain_bound": "lower bound from plain chains (nats)",
    "acceptance": "accepted moves, least of all levels",
    "n_accepted": "accepted draws",
    "n_evaluations": "evaluations of log f",
    "n_states": "states that were enumerated",
    "n_rounds": "rounds of production",
    "n_distinct": "different rows",
}
_RANGES = {  # of arrays the smallest and the largest
    "rejection": "swaps rejected by pairs of levels",
    "round_trips": "round trips of a ladder",
    "crossed": "share of chains that crossed the ladder, by group",
    "families": "families of a population",
    "n_resamplings": "resamplings of a population",
}
_ROWS_SHOWN = 3  # alarms of a long list that are shown in one line


def in_a_line(result: Any) -> str:
    """The number with its error, and whether it is trusted."""
    trust = "converged" if result.converged else f"not converged: {'; '.join(result.reasons[:_ROWS_SHOWN])}"
    cost = f"{result.n_sweeps:,} sweeps, {in_words(result.seconds)}" if result.n_sweeps else in_words(result.seconds)
    return f"{_value(result)}, {trust} ({cost})"


def in_rows(result: Any) -> list[tuple[str, str]]:
    """Name and text of everything that a reader asks for first."""
    rows = [("log Z" if np.ndim(result.log_partition) == 0 else "log Z of rows", f"{_value(result, '')} nats")]
    if np.ndim(result.log_partition) == 0:
        rows.append(("95 % interval", from_to(*result.interval())))
    else:
        own = result.diagnostics["converged"]
        rows.append(("rows that converged", f"{int(np.sum(own))} of {len(own)}"))
    rows += [("statement", result.statement), ("converged", "yes" if result.converged else "no")]
    rows += [("", reason) for reason in result.reasons]
    rows.append(("cost", f"{result.n_sweeps:,} sweeps, {in_words(result.seconds)}"))
    if result.ladder is not None:
        rows.append(("levels", str(len(result.ladder))))
    known = result.diagnostics
    rows += [(words, _number(known[name])) for name, words in _NUMBERS.items() if name in known]
    return rows + [(words, _range(known[name])) for name, words in _RANGES.items() if name in known]


def _value(result, name="log Z = ") -> str:
    if np.ndim(result.log_partition) == 0:
        return name + _with_error(result.log_partition, result.std_error)
    mean = _with_error(result.diagnostics["mean"], result.diagnostics["mean_std_error"])
    return f"mean {name}{mean} of {len(result.log_partition)} rows"


def _with_error(value, error) -> str:
    return f"{value:.6f}" if error == 0 else with_error(value, error)


def _number(value) -> str:
    value = np.asarray(value)
    if value.ndim:
        value = np.nanmin(value)
    return short(value.item()) if value.dtype.kind in "iub" else f"{float(value):.4g}"


def _range(values) -> str:
    low, high = _number(np.min(values)), _number(np.max(values))
    return low if low == high else f"{low} to {high}"

"""A result in words: its line, its table, and what the main diagnostics mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._progress import in_words
from sklpf._tables import from_to, import_xarray, short, with_error

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
    "overlap": "overlap of what is compared, the smallest (1: full)",
    "gap": "gap between the bounds (nats)",
    "spread": "spread of the log estimates (nats)",
    "difference": "difference from the sampler's log Z (nats)",
    "quadrature_error": "error of the quadrature (nats)",
    "mbar_log_partition": "log Z_target - log Z_base by MBAR (nats)",
    "bar_log_partition": "log Z_target - log Z_base by BAR (nats)",
    "forward_log_partition": "log Z by chains that go up (nats)",
    "reverse_log_partition": "log Z by chains that go down (nats)",
    "lower_bound": "log Z is above, with 95 % certainty (nats)",
    "plain_bound": "estimate of a lower bound by plain chains (nats)",
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
_DIMENSIONS: dict[tuple[str, ...], tuple[str, ...]] = {  # of arrays that estimators keep
    ("level",): ("curve_std_error", "shares", "log_pseudo_prior", "acceptance", "step_sizes"),
    ("pair",): ("rejection", "overlap", "neighbour_overlap"),  # of neighbouring levels
    ("level", "other_level"): ("overlap_matrix",),
    ("round",): ("round_log_partition", "round_std_error", "round_sweeps"),
    ("update",): (
        "adaptive_n_draws",
        "adaptive_gain",
        "adaptive_evenness",
        "adaptive_log_partition",
    ),
    ("ladder",): ("round_trips", "ladder_log_partitions"),
    ("group",): ("crossed",),
    ("population",): ("log_partition_by_population", "n_resamplings", "families"),
    ("population", "level"): ("effective_sizes",),
    ("start",): ("log_partition_by_start",),
    ("start", "chain"): ("log_weights",),
    ("chain",): ("log_weights", "forward_log_weights", "reverse_log_weights"),
}
_NAMED = {(name, len(dimensions)): dimensions for dimensions, names in _DIMENSIONS.items() for name in names}
_REASONS_SHOWN = 3  # in one line


def in_a_line(result: Any) -> str:
    """The number with its error, and whether it is trusted."""
    trust = "converged" if result.converged else f"not converged: {_first(result.reasons)}"
    one = np.ndim(result.log_partition) == 0
    value = f"log Z = {_value(result)}" if one else f"mean log Z = {_value(result)}{_of_rows(result)}"
    return f"{value}, {trust} ({_cost(result)})"


def in_rows(result: Any) -> list[tuple[str, str]]:
    """Name and text of everything that a reader asks for first."""
    one = np.ndim(result.log_partition) == 0
    rows = [("log Z" if one else "mean log Z", f"{_value(result)} nats{'' if one else _of_rows(result)}")]
    if one:
        rows.append(("95 % interval", from_to(*result.interval())))
    else:
        own = each_converged(result)
        rows.append(("rows that converged", f"{int(np.sum(own))} of {len(own)}"))
    rows += [("statement", result.statement), ("converged", "yes" if result.converged else "no")]
    rows += [("", reason) for reason in result.reasons]
    rows.append(("cost", _cost(result)))
    if result.ladder is not None:
        rows.append(("levels", str(len(result.ladder))))
    known = {name: value for name, value in result.diagnostics.items() if _numeric(value)}
    finite = {name for name, value in known.items() if np.isfinite(value).any()}
    rows += [(words, _number(known[name])) for name, words in _NUMBERS.items() if name in finite]
    return rows + [(words, _range(known[name])) for name, words in _RANGES.items() if name in known]


def each_converged(result: Any) -> NDArray[np.bool_]:
    """Whether each row's log Z is trusted, (T,); where only all together were judged, what was said of them."""
    each = result.diagnostics.get("converged")
    return np.broadcast_to(result.converged if each is None else each, np.shape(result.log_partition))


def _first(reasons) -> str:
    more = len(reasons) - _REASONS_SHOWN
    return "; ".join(reasons[:_REASONS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _numeric(value) -> bool:
    try:
        value = np.asarray(value)
    except ValueError:  # lists of different lengths
        return False
    return value.dtype.kind in "iufb" and value.size > 0


def _value(result) -> str:
    if np.ndim(result.log_partition):
        value, error = result.diagnostics.get("mean"), result.diagnostics.get("mean_std_error")
        value = np.mean(result.log_partition) if value is None else value
        error = np.nan if error is None else error
    else:
        value, error = result.log_partition, result.std_error
    return with_error(value, error if error > 0 else 0.0)


def _of_rows(result) -> str:
    return f" of {len(result.log_partition)} rows"


def _cost(result) -> str:
    seconds = in_words(result.seconds)
    return f"{result.n_sweeps:,} sweeps, {seconds}" if result.n_sweeps else seconds


def _number(value) -> str:
    value = np.asarray(value)
    if value.ndim:
        value = np.nanmin(value)
    return short(value.item()) if value.dtype.kind in "iub" else f"{float(value):.6g}"


def _range(values) -> str:
    low, high = _number(np.min(values)), _number(np.max(values))
    return low if low == high else f"{low} to {high}"


def as_dataset(result: Any) -> Any:
    """A result as an xarray.Dataset."""
    xarray = import_xarray()
    rows = ("row",) if np.ndim(result.log_partition) else ()
    low, high = result.interval()
    numbers = {"log_partition": result.log_partition, "std_error": result.std_error, "low": low, "high": high}
    variables: dict[str, Any] = {name: (rows, value) for name, value in numbers.items()}
    if result.log_partition_curve is not None:
        variables["log_partition_curve"] = (("level",), result.log_partition_curve)
    for name, value in result.diagnostics.items():
        if _numeric(value) and name not in variables:
            value = np.asarray(value)
            variables[name] = (_dimensions(name, value, len(rows) and len(result.log_partition)), value)
    if result.draws is not None:
        variables["draws"] = (("draw", "feature"), result.draws.points)
        variables["draw_log_weight"] = (("draw",), result.draws.log_weights)
        variables["draw_group"] = (("draw",), result.draws.groups)
    names = ("method", "statement", "n_sweeps", "seconds")
    attributes = {name: getattr(result, name) for name in names}
    attributes |= {"converged": int(result.converged), "reasons": "\n".join(result.reasons)}
    coordinates: dict[str, Any] = {} if result.ladder is None else {"beta": (("level",), result.ladder)}
    return xarray.Dataset(variables, coords=coordinates, attrs=attributes)


def _dimensions(name: str, value, n_rows: int) -> tuple[str, ...]:
    if value.shape == (n_rows,) and n_rows:
        return ("row",)
    return _NAMED.get((name, value.ndim), tuple(f"{name}_{axis}" for axis in range(value.ndim)))

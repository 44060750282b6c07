"""A result as text: its line, its table, and its main diagnostics; and as an xarray.Dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.progress import in_words
from sklpf._utils.tables import from_to, import_xarray, short, with_error

# which of several values are shown, by the side that is good
_ENDS: dict[str, tuple] = {"high": (np.nanmin,), "low": (np.nanmax,), "": (np.nanmin, np.nanmax)}
_REASONS_SHOWN = 3  # in one line


def in_a_line(result: Any) -> str:
    """The number with its error, and whether it is trusted."""
    trust = "converged" if result.is_checked else "converged by the run alone, without checks"
    if not result.converged:
        trust = f"not converged: {_first(result.reasons)}"
    one = np.ndim(result.log_partition) == 0
    value = (
        f"log Z = {_value(result)}" if one else f"mean log Z = {_value(result)}{_of_rows(result)}"
    )
    return f"{value}, {trust} ({_cost(result)})"


def in_rows(result: Any) -> list[tuple[str, str]]:
    """Name and text of everything that a reader asks for first."""
    one = np.ndim(result.log_partition) == 0
    rows = [
        (
            "log Z" if one else "mean log Z",
            f"{_value(result)} nats{'' if one else _of_rows(result)}",
        )
    ]
    if one:
        rows.append(("95 % interval", from_to(*result.interval())))
    else:
        own = each_converged(result)
        rows.append(("rows that converged", f"{int(np.sum(own))} of {len(own)}"))
    rows += [("statement", result.statement), ("converged", "yes" if result.converged else "no")]
    rows += [("", reason) for reason in result.reasons]
    if result.base:
        rows.append(("base", result.base))
    rows.append(("cost", _cost(result)))
    if not result.is_checked:
        rows.append(("checks beside the run", "left out"))
    if result.check_evaluations:
        rows.append(("evaluations by checks", f"{result.check_evaluations:,}"))
    if result.ladder is not None:
        rows.append(("levels", str(len(result.ladder))))
    for name, described in result.described.items():
        value = result.diagnostics.get(name)
        if described.meaning and _numeric(value) and np.isfinite(value).any():
            rows.append((described.meaning, _shown(value, described.good)))
    return rows


def each_converged(result: Any) -> NDArray[np.bool_]:
    """Whether each row's log Z is trusted, (T,); where only all together were judged, what was said
    of them.
    """
    each = result.diagnostics.get("converged")
    return np.broadcast_to(
        result.converged if each is None else each, np.shape(result.log_partition)
    )


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
        value = result.diagnostics.get("mean")
        error = result.diagnostics.get("mean_std_error")
        value = np.mean(result.log_partition) if value is None else value
        error = np.nan if error is None else error
    else:
        value = result.log_partition
        error = result.std_error
    return with_error(value, error if error > 0 else 0.0)


def _of_rows(result) -> str:
    return f" of {len(result.log_partition)} rows"


def _cost(result) -> str:
    seconds = in_words(result.seconds)
    return f"{result.n_sweeps:,} sweeps, {seconds}" if result.n_sweeps else seconds


def _shown(values, good: str) -> str:
    """A number; of several the worst, or where no side is good the smallest and the largest."""
    ends = {_number(end(values)): None for end in _ENDS[good]}
    return " to ".join(ends)


def _number(value) -> str:
    return short(value.item()) if value.dtype.kind in "iub" else f"{float(value):.6g}"


def as_dataset(result: Any) -> Any:
    """A result as an xarray.Dataset."""
    xarray = import_xarray()
    rows = ("row",) if np.ndim(result.log_partition) else ()
    low, high = result.interval()
    numbers = {
        "log_partition": result.log_partition,
        "std_error": result.std_error,
        "low": low,
        "high": high,
    }
    variables: dict[str, Any] = {name: (rows, value) for name, value in numbers.items()}
    if result.log_partition_curve is not None:
        variables["log_partition_curve"] = (("level",), result.log_partition_curve)
    for name, value in result.diagnostics.items():
        if _numeric(value) and name not in variables:
            value = np.asarray(value)
            variables[name] = (_dimensions(result, name, value), value)
    if result.draws is not None:
        variables["draws"] = (("draw", "feature"), result.draws.points)
        variables["draw_log_weight"] = (("draw",), result.draws.log_weights)
        variables["draw_group"] = (("draw",), result.draws.groups)
    names = ("method", "statement", "n_sweeps", "seconds")
    attributes = {name: getattr(result, name) for name in names}
    attributes |= {"converged": int(result.converged), "reasons": "\n".join(result.reasons)}
    coordinates: dict[str, Any] = (
        {} if result.ladder is None else {"beta": (("level",), result.ladder)}
    )
    return xarray.Dataset(variables, coords=coordinates, attrs=attributes)


def _dimensions(result, name: str, value) -> tuple[str, ...]:
    """Those that its estimator names; of rows "row", else named after the diagnostic itself."""
    if value.ndim and value.shape == np.shape(result.log_partition):
        return ("row",)
    named = result.described[name].dimensions if name in result.described else ()
    return (
        named if len(named) == value.ndim else tuple(f"{name}_{axis}" for axis in range(value.ndim))
    )

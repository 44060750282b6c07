"""Results in words: numbers with their errors, tables of text and of HTML, arrays by their shapes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

_MOST_DECIMALS = 12
_WIDEST = 100  # characters of a cell's text


def decimals(error: float) -> int:
    """Decimals that show two digits of an error; 4 where it has none."""
    if not math.isfinite(error) or error <= 0:
        return 4
    return min(max(1 - math.floor(math.log10(error)), 0), _MOST_DECIMALS)


def with_error(value: float, error: float) -> str:
    """A number and its error with as many digits as the error allows: "155.4957 ± 0.0062"."""
    n = decimals(error)
    return f"{value:.{n}f} ± {error:.{n}f}"


def from_to(low: float, high: float) -> str:
    """An interval, with as many digits as its width allows: "[155.48, 155.51]"."""
    n = decimals((high - low) / 4)
    return f"[{low:.{n}f}, {high:.{n}f}]"


def short(value: Any) -> str:
    """A field's value: arrays by their shapes, numbers with 6 digits, several things by their number."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{value.dtype} {value.shape}"
    if isinstance(value, (bool, np.bool_, str, int, np.integer)) or value is None:
        return str(value)
    if isinstance(value, (float, np.floating, np.ndarray)):
        return f"{float(value):.6g}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(short, value))})" if len(value) <= 4 else f"{len(value)} {type(value[0]).__name__}"
    return type(value).__name__


def text_table(rows: Iterable[Sequence[str]], indent: str = "") -> str:
    """Rows of cells in aligned columns."""
    rows = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
    return "\n".join(indent + line for line in lines)


def html_table(rows: Iterable[Sequence[str]], caption: str = "", header: Sequence[str] = ()) -> str:
    """The same as HTML that needs no style sheet and follows that of the page."""
    cells = ["".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) for row in rows]
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in header)
    parts = [f"<caption><b>{escape(caption)}</b></caption>" if caption else "", f"<tr>{head}</tr>" if head else ""]
    return f"<table>{''.join(parts)}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


class Fields:
    """A dataclass that prints as its name and a line for every field, arrays by their shapes."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}\n{text_table(_fields(self), '  ')}"

    def _repr_html_(self) -> str:
        return html_table(_fields(self), type(self).__name__)


def _fields(thing) -> list[tuple[str, str]]:
    values = ((field.name, short(getattr(thing, field.name))) for field in dataclasses.fields(thing))
    return [(name, text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…") for name, text in values]

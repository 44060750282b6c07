"""Results in words: numbers with their errors, tables of text and of HTML, arrays by
their shapes.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from sklpf._utils.validation import Versioned

Rows = Sequence[Sequence[str]]


def duration_text(seconds: float) -> str:
    """A duration: "12 ms", "0.4 s", "12 s", "3 min", "1.5 h"."""
    if seconds < 0.0995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"


def _has_none(
    value: float,
    error: float,
    *,
    rounding: float = 1e-9,  # an error below it is that of floating-point numbers
) -> bool:
    """True if a number has no error but that of rounding."""
    return error <= rounding * max(1.0, abs(value))


def decimals(value: float, error: float) -> int:
    """Decimals that show two digits of a number's error; 4 where it has none."""
    if not math.isfinite(error) or _has_none(value, error):
        return 4
    return max(1 - math.floor(math.log10(error)), 0)


def with_error(
    value: float,
    error: float,
    *,
    largest_written: float = 1e5,  # a larger error is written with an exponent
) -> str:
    """A number and its error with as many digits as the error allows: "155.4957 ± 0.0062"; without
    one "155.495712".
    """
    if _has_none(value, error):
        return f"{value:.6f}"
    if largest_written < error < math.inf:
        return f"{value:.4g} ± {error:.2g}"
    n = decimals(value, error)
    return f"{value:.{n}f} ± {error:.{n}f}"


def from_to(
    low: float,
    high: float,
    *,
    widest: float = 20.0,  # nats, a factor of 5e8
) -> str:
    """An interval, with as many digits as its width allows: "[155.48, 155.51]"; "not known" where
    it is wider than its middle, and than any that tells something.
    """
    width = high - low
    if width > widest and width > abs(low + high) / 2 < math.inf:
        return "not known"
    n = decimals(low, (high - low) / 4)
    return f"[{low:.{n}f}, {high:.{n}f}]"


def short(value: object) -> str:
    """A field's value: arrays by their shapes, numbers with 6 digits, several things by their
    number.
    """
    if isinstance(value, np.ndarray) and value.ndim:
        return f"{value.dtype} {value.shape}"
    if isinstance(value, (bool, np.bool_, str, int, np.integer)) or value is None:
        return str(value)
    if isinstance(value, (float, np.floating, np.ndarray)):
        return f"{float(value):.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{name}={short(part)}" for name, part in value.items())
    if isinstance(value, (tuple, list)):
        return (
            f"({', '.join(map(short, value))})"
            if len(value) <= 4
            else f"{len(value)} {type(value[0]).__name__}"
        )
    return type(value).__name__


def text_table(rows: Iterable[Sequence[str]], indent: str = "") -> str:
    """Rows of cells in aligned columns."""
    rows = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    )
    return "\n".join(indent + line for line in lines)


def html_table(rows: Iterable[Sequence[str]], caption: str = "", header: Sequence[str] = ()) -> str:
    """The same as HTML that needs no style sheet and follows that of the page."""
    cells = [
        "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) for row in rows
    ]
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in header)
    parts = [
        f"<caption><b>{escape(caption)}</b></caption>" if caption else "",
        f"<tr>{head}</tr>" if head else "",
    ]
    return f"<table>{''.join(parts)}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def imported(package: str, method: str) -> Any:
    """Return the module of an optional package, or raise ImportError with what to do."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{method} needs the package {package}: pip install {package}") from error


class Readable(Versioned):
    """A result that prints as a line and shows as a table in a notebook. A subclass defines `_line`
    and `_table`.
    """

    _header: tuple[str, ...] = ()
    _line: Callable[[], str]
    _table: Callable[[], Rows]

    def _title(self) -> str:
        return type(self).__name__

    def _notes(self) -> Sequence[str]:
        """Lines below the table."""
        return ()

    def summary(self) -> str:
        """Return the table that notebooks show: the numbers, their intervals, and what speaks
        against them.

        Returns
        -------
        str
            Lines of text.
        """
        head = [self._header] if self._header else []
        table = text_table([*head, *self._table()], "  ")
        return "\n".join([self._title(), table, *(f"  {line}" for line in self._notes())])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._title()}: {self._line()})"

    def _repr_html_(self) -> str:
        table = html_table(self._table(), self._title(), self._header)
        return table + "".join(f"<p>{escape(line)}</p>" for line in self._notes())


class Table(Readable):
    """A result that prints as its table, without a title."""

    def __repr__(self) -> str:
        return "\n".join([text_table([self._header, *self._table()]), *self._notes()])


class Fields(Readable):
    """A dataclass that prints as its name and a line for every field, arrays by their shapes."""

    def _table(self) -> Rows:
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        return [(name, _cut(short(getattr(self, name)))) for name in names]

    def __repr__(self) -> str:
        return self.summary()


def _cut(
    text: str,
    *,
    widest: int = 100,  # characters of a cell's text
) -> str:
    return text if len(text) <= widest else f"{text[: widest - 1]}…"

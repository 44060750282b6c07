"""DrawsDisplay: what `check_draws` has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sklpf.display._drawing import Display, draw_regions, half_width_of, title_of
from sklpf.partition import DrawsReport


@dataclass(eq=False, repr=False)
class DrawsDisplay(Display):
    """Modes and log Z of draws that `check_draws` has checked.

    Two panels: the mass of each mode, with its standard error, beside its share of the draws (a
    mode whose mass exceeds its share was missed; no mode, no panel); and log Z by all draws with
    its 95 % interval, by each half of them, and by another kind of proposal, which should agree.

    Parameters
    ----------
    report : DrawsReport
        What `check_draws` returns.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, both of them, and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import check_draws
    >>> from sklpf.display import DrawsDisplay
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    >>> report = check_draws(lambda x: -np.sum(x**2, axis=1) / 2, draws, random_state=0)
    >>> len(DrawsDisplay.from_report(report).axes_)
    2
    """

    report: DrawsReport

    @classmethod
    def from_report(cls, report, *, ax: Any = None) -> Self:
        """Draw a report.

        Parameters
        ----------
        report : DrawsReport
            What `check_draws` returns.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : DrawsDisplay

        Raises
        ------
        TypeError
            If `report` is none.
        """
        if not isinstance(report, DrawsReport):
            raise TypeError(f"report must be what check_draws returns, got {type(report).__name__}")
        return cls(report).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into panels, or as many as there are panels. None makes a figure.

        Returns
        -------
        self
        """
        self.name = title_of(self.report.result)
        draw = [self._draw_modes] if self.report.modes else []
        draw.append(self._draw_log_partition)
        return self._draw_in_a_row(ax, draw, 1 + 3.5 * len(draw))

    def _draw_modes(self, axes):
        modes = self.report.modes
        columns = ([getattr(m, name) for m in modes] for name in ("mass", "share", "mass_error"))
        draw_regions(axes, *columns)
        axes.set_xlabel("mode, by its mass")

    def _draw_log_partition(self, axes):
        result = self.report.result
        first, second = result.diagnostics["half_log_partition"]
        values = {
            "all draws": result.log_partition,
            "first halves": first,
            "second halves": second,
            "other proposal": result.diagnostics["check_log_partition"],
        }
        axes.errorbar(result.log_partition, 0, xerr=half_width_of(result, 0.95), capsize=4)
        axes.plot(list(values.values()), range(len(values)), "o", color="k")
        axes.set_yticks(range(len(values)), list(values))
        axes.invert_yaxis()
        axes.set_xlabel("log Z (nats)")
        axes.locator_params(axis="x", nbins=4)

"""FitComparisonDisplay: procedures by their expected log-likelihoods, with every fit as a dot."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sklpf.display._drawing import (
    FITS,
    LOG_PARTITION,
    ROWS,
    Display,
    draw_mean,
    legend_above,
    mark_zero,
)
from sklpf.models import FitComparison

_PARTS = (  # of a FitInterval: what it is called, its colour, how far below the mean it is drawn
    ("combined", "all, {:.3g} %", "0.4", 0.0),
    ("sampling", "rows", ROWS, 0.14),
    ("fits", "fits", FITS, 0.25),
    ("partition", "log Z", LOG_PARTITION, 0.36),
)
_DOTS = -0.22  # above the mean


class FitComparisonDisplay(Display):
    """Expected log-likelihoods and differences of procedures, and every fit as a dot.

    Dots scatter by training seeds, training sets and the rows held out. The interval is that of
    their mean, and below it are its parts.

    Parameters
    ----------
    comparison : FitComparison
        What `compare_fits` returned.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, both (log-likelihoods, differences), and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, compare_fits
    >>> from sklpf.display import FitComparisonDisplay
    >>> X = np.random.default_rng(0).integers(2, size=(40, 4))
    >>> comparison = compare_fits(
    ...     {"1 unit": BernoulliRBM(1), "2 units": BernoulliRBM(2)},
    ...     X,
    ...     cv=2,
    ...     random_state=0,
    ... )
    >>> len(FitComparisonDisplay.from_result(comparison).axes_)
    2
    """

    def __init__(self, comparison: FitComparison):
        self.comparison = comparison

    @classmethod
    def from_result(cls, result: FitComparison, *, ax: Any = None) -> Self:
        """Draw what `compare_fits` returned.

        Parameters
        ----------
        result : FitComparison
            Of candidates or of a search.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : FitComparisonDisplay

        Raises
        ------
        TypeError
            If `result` is something else.
        """
        if not isinstance(result, FitComparison):
            raise TypeError(
                f"result must be what compare_fits returned, got {type(result).__name__}"
            )
        return cls(result).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided, or two. None makes a figure.

        Returns
        -------
        self
        """
        result = self.comparison
        names = list(result.scores)
        size = (10.0, 1.6 + 0.6 * len(names))
        left, right = self._panels_in_a_row(ax, 2, size, apart=0.3, sharey=True)
        for line, name in enumerate(names):
            _draw(left, line, result.scores[name], result.means[name])
            if name in result.differences:
                _draw(
                    right,
                    line,
                    result.differences[name],
                    result.means[name] - result.means[result.best],
                )
            else:
                right.plot(0, line, "ok")
        unit = result.scores[result.best].unit
        left.set_xlabel(f"expected log-likelihood\nper {unit} (nats)", fontsize="small")
        right.set_xlabel("expected difference\n(nats)", fontsize="small")
        mark_zero(right)
        for axes in self.axes_:
            axes.locator_params(axis="x", nbins=4)
        left.set_yticks(
            range(len(names)),
            [f"{name} (chosen)" if name == result.chosen else name for name in names],
        )
        left.set_ylim(len(names) - 0.4, -0.6)
        legend_above(left)
        return self


def _draw(axes, line, interval, means):
    """A candidate's line: all fits, their mean, and below it the parts of its error."""
    axes.plot(
        means.ravel(),
        np.full(means.size, line + _DOTS),
        ".",
        color=FITS,
        alpha=0.6,
        label="one fit",
    )
    parts = [
        (getattr(interval, name), label.format(100 * interval.level), color, below)
        for name, label, color, below in _PARTS
        if np.isfinite(getattr(interval, name)[0])
    ]
    draw_mean(axes, line, interval, parts)

"""ComparisonDisplay: models and procedures by their log-likelihoods, models by their evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.tables import decimals, from_to
from sklpf.comparing import FitComparison, ModelComparison
from sklpf.display._drawing import (
    FITS,
    LOG_PARTITION,
    ROWS,
    Display,
    legend_above,
)
from sklpf.partition import EvidenceComparison
from sklpf.scoring import ScoreDifference, ScoreInterval, sampled_units

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_ERRORS = {  # of an interval: what it is called and its colour, in the order drawn
    "combined": ("all errors, {:.3g} %", "0.4"),
    "sampling": ("{unit}", ROWS),
    "fits": ("fits", FITS),
    "partition": ("log Z", LOG_PARTITION),
}


class _FromLogPartition(NamedTuple):
    """A number whose error is that of log Z alone."""

    mean: float
    partition: tuple[float, float]
    level: float
    converged: bool
    unit: str = "row"


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """Log-likelihoods of models or procedures, or log evidences, with their errors by source.

    Of models the log-likelihoods and their differences, of procedures also every fit as a dot,
    which scatter by training seeds, training sets and the rows held out. Of log evidences the
    differences from the highest, and posterior probabilities.

    Parameters
    ----------
    scores : dict of str to ScoreInterval or FitInterval or None, default=None
        Mean log-likelihood per row, in nats.
    differences : dict of str to ScoreInterval or FitInterval or None, default=None
        Mean differences, in nats. Those of a name in `scores` stand in its line.
    probabilities : dict of str to intervals or None, default=None
        Posterior probabilities of models.
    means : dict of str to ndarray or None, default=None
        Mean of every fit of each procedure, in nats, by name, the best first.
    chosen : str or None, default=None
        Name of the procedure to mark.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, all of them, and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, compare
    >>> from sklpf.display import ComparisonDisplay
    >>> fair, skewed = (
    ...     BernoulliRBM.from_parameters(np.zeros((1, 2)), np.full(2, c), np.zeros(1))
    ...     for c in (0.0, 1.0)
    ... )
    >>> X = np.array([[1, 1], [1, 0], [1, 1]])
    >>> comparison = compare({"fair": fair, "skewed": skewed}, X=X)
    >>> display = ComparisonDisplay.from_result(comparison)
    >>> list(display.scores)
    ['skewed', 'fair']
    """

    scores: Mapping[str, Any] | None = None
    differences: Mapping[str, Any] | None = None
    _: KW_ONLY
    probabilities: Mapping[str, Any] | None = None
    means: Mapping[str, NDArray] | None = None
    chosen: str | None = None

    @classmethod
    def from_result(cls, result, *, name: str | None = None, ax: Axes | None = None) -> Self:
        """Draw a comparison, or scores.

        Parameters
        ----------
        result : ModelComparison, FitComparison, EvidenceComparison, ScoreInterval or dict
            The result of `compare`, `compare_fits`, `compare_evidence` or `score_interval`; a dict
            holds the `score_interval` of models of the same rows by name.
        name : str or None, default=None
            Name of a single ScoreInterval; None says "difference" or "model".
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : ComparisonDisplay

        Raises
        ------
        TypeError
            If `result` is none of these.
        """
        return cls(**_drawn(result, name)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into panels, or as many as there are panels. None makes a figure.

        Returns
        -------
        self
        """
        for name in ("scores", "differences", "probabilities", "means"):
            if not isinstance(getattr(self, name), Mapping | None):
                raise TypeError(f"{name} must be a dict by names of models")
        kind, whose = ("expected ", "") if self.means else ("", " of these fits")
        of = "" if self.scores or not self.probabilities else " of log evidence"
        panels = {
            f"{kind}log-likelihood\nper {_unit(self.scores)}{whose} (nats)": self.scores,
            f"{kind}difference{of or whose}\n(nats)": self.differences,
            "posterior probability\n(given the errors of log Z)": self.probabilities,
        }
        there = {label: intervals for label, intervals in panels.items() if intervals}
        if not there:
            raise ValueError("scores or differences must hold the interval of at least one model")
        names = list(dict.fromkeys(name for intervals in there.values() for name in intervals))
        marks = [_mark(name) + " (chosen)" * (name == self.chosen) for name in names]
        size = 5.0, 1.6 + 0.5 * len(names)
        all_axes = self._panels(ax, len(there), size, sharey=True)
        for axes, (label, intervals) in zip(all_axes, there.items()):
            for line, name in enumerate(names):
                if name in intervals:
                    self._draw_fits(axes, line, name, intervals is self.differences)
                    _draw(axes, line, intervals[name])
                else:  # the best, which is 0 from itself
                    axes.plot(0, line, "ok")
            axes.set_xlabel(label, fontsize="small")
            axes.locator_params(axis="x", nbins=4)
            axes.tick_params(axis="x", labelsize="small")
            axes.set_yticks(range(len(names)), marks)
            axes.set_ylim(len(names) - 0.4, -0.6)
            if intervals is self.differences:
                axes.axvline(0, color="0.4", linewidth=0.8, linestyle=":")
            if intervals is self.probabilities:
                axes.set_xlim(-0.03, 1.03)
            for line, name in enumerate(names):
                if isinstance(intervals.get(name), _FromLogPartition):
                    _write(axes, line, intervals[name])
        legend_above(self.ax_)
        return self

    def _draw_fits(
        self,
        axes,
        line,
        name,
        is_difference,
        *,
        dots_at: float = -0.22,  # above the mean
    ) -> None:
        """All fits of a procedure as dots, or their differences from those of the best."""
        if not self.means:
            return
        means = self.means[name]
        if is_difference:
            means = means - next(iter(self.means.values()))
        style = {"color": FITS, "alpha": 0.6, "label": "one fit"}
        axes.plot(means.ravel(), np.full(means.size, line + dots_at), ".", **style)


def _drawn(result: object, name: str | None) -> dict[str, Any]:
    """Parameters of the display of a result."""
    if isinstance(result, ModelComparison):
        return {"scores": result.scores, "differences": result.differences}
    if isinstance(result, FitComparison):
        means = {name: result.means[name] for name in result.scores}
        shown = {"scores": result.scores, "differences": result.differences}
        return shown | {"means": means, "chosen": result.chosen}
    if isinstance(result, EvidenceComparison):
        return {
            of: {
                model: _FromLogPartition(
                    getattr(stated, one),
                    getattr(stated, f"{one}_interval"),
                    result.level,
                    stated.converged,
                )
                for model, stated in result.models.items()
            }
            for of, one in (("differences", "difference"), ("probabilities", "probability"))
        }
    if isinstance(result, ScoreDifference):
        return {"differences": {name or "difference": result}}
    if isinstance(result, ScoreInterval):
        return {"scores": {name or "model": result}}
    scores = result if isinstance(result, Mapping) else {}
    if scores and all(isinstance(one, ScoreInterval) for one in scores.values()):
        return {"scores": scores}
    raise TypeError(
        "result must be what compare, compare_fits or compare_evidence returned, or a dict of names"
        f" and score_interval(X), got {type(result).__name__}"
    )


def _mark(name: str) -> str:
    """A name in as many lines as there is room for beside its interval."""
    return fill(name, 40, max_lines=3, placeholder=" …")


def _unit(intervals: Mapping[str, Any] | None) -> str:
    """The unit of the means, such as "row"; ValueError if units differ."""
    units = list(dict.fromkeys(interval.unit for interval in (intervals or {}).values()))
    if len(units) > 1:
        raise ValueError(f"scores must be per row, document or word all, got {' and '.join(units)}")
    return "".join(units)


def _draw(
    axes,
    line,
    interval,
    *,
    apart: float = 0.13,  # of the parts of an error, in lines
) -> None:
    """A mean in its line, hollow where it is not to be trusted, with each error below the other."""
    if not np.isfinite(interval.mean):
        axes.annotate(
            f"  {interval.mean}", (0, line), xycoords=("axes fraction", "data"), va="center"
        )
        return
    known = [name for name in _ERRORS if np.isfinite(getattr(interval, name, (np.nan,))[0])]
    for place, name in enumerate(known):
        label, color = _ERRORS[name]
        label = label.format(100 * interval.level, unit=sampled_units(interval.unit))
        style = {"linewidth": 3 if place else 1.2, "marker": "|", "color": color, "label": label}
        axes.plot(getattr(interval, name), [line + apart * place] * 2, **style)
    fill = "k" if interval.converged else "none"
    axes.plot(interval.mean, line, "o", color="k", markerfacecolor=fill)


def _write(axes, line, interval: _FromLogPartition) -> None:
    """Write a number and its error, which is often narrower than the mark, to where there is more
    room.
    """
    low, high = interval.partition
    if not high > low:
        return
    in_left_half = interval.mean < np.mean(axes.get_xlim())
    n = decimals(interval.mean, (high - low) / 4)
    axes.annotate(
        f"{interval.mean:.{n}f} {from_to(low, high)}",
        (interval.mean, line),
        xytext=(0, 7),
        textcoords="offset points",
        ha="left" if in_left_half else "right",
        fontsize="small",
    )

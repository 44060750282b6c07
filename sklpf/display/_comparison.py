"""ComparisonDisplay: models by their held-out log-likelihoods, with both errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from sklpf.display._drawing import LOG_PARTITION, ROWS, Display, draw_mean, legend_above, mark_zero
from sklpf.models import ModelComparison, ScoreInterval
from sklpf.models._scoring import sampled_units

_ERRORS = (  # of a ScoreInterval: what it is called, its colour, how far below the mean it is drawn
    ("combined", "both errors, {:.3g} %", "0.4", 0.0),
    ("sampling", "{unit}", ROWS, 0.16),
    ("partition", "log Z", LOG_PARTITION, 0.32),
)


class ComparisonDisplay(Display):
    """Mean log-likelihoods of these fitted models, their differences, and the errors over rows and
    of log Z.

    Of procedures, with the scatter from fit to fit, `FitComparisonDisplay` speaks.

    Parameters
    ----------
    scores : dict of str to ScoreInterval or None, default=None
        Mean log-likelihood per row of every model, in nats.
    differences : dict of str to ScoreInterval or None, default=None
        Mean differences of log-likelihoods, paired by rows, in nats. Those of a name in `scores`
        stand in its line.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, all (scores, differences), and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, compare_models
    >>> from sklpf.display import ComparisonDisplay
    >>> fair, skewed = (
    ...     BernoulliRBM.from_parameters(np.zeros((1, 2)), np.full(2, c), np.zeros(1))
    ...     for c in (0.0, 1.0)
    ... )
    >>> X = np.array([[1, 1], [1, 0], [1, 1]])
    >>> display = ComparisonDisplay.from_result(
    ...     compare_models({"fair": fair, "skewed": skewed}, X)
    ... )
    >>> list(display.scores)
    ['skewed', 'fair']
    """

    def __init__(
        self,
        scores: Mapping[str, ScoreInterval] | None = None,
        differences: Mapping[str, ScoreInterval] | None = None,
    ):
        self.scores = scores
        self.differences = differences

    @classmethod
    def from_result(cls, result, *, name: str | None = None, ax: Any = None) -> Self:
        """Draw what `compare_models`, `compare` or several `score_interval` returned.

        Parameters
        ----------
        result : ModelComparison, ScoreInterval or dict of str to ScoreInterval
            A dict holds the `score_interval` of models of the same rows, one ScoreInterval is that
            of `compare` or of a model.
        name : str or None, default=None
            Of one ScoreInterval; None says "difference" or "model".
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
        if isinstance(result, ModelComparison):
            return cls(result.scores, result.differences).plot(ax)
        if isinstance(result, ScoreInterval):
            if result.method:  # of `compare`
                return cls(differences={name or "difference": result}).plot(ax)
            return cls({name or "model": result}).plot(ax)
        if (
            isinstance(result, Mapping)
            and result
            and all(isinstance(one, ScoreInterval) for one in result.values())
        ):
            return cls(result).plot(ax)
        raise TypeError(
            "result must be what compare_models or compare returned, or a dict of names and"
            f" score_interval(X), got {type(result).__name__}"
        )

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided if there are scores and differences, or as many. None makes a
            figure.

        Returns
        -------
        self
        """
        names = list(dict.fromkeys([*(self.scores or {}), *(self.differences or {})]))
        parts = {
            f"log-likelihood per {_unit(self.scores)}": self.scores,
            "difference": self.differences,
        }
        there = {label: intervals for label, intervals in parts.items() if intervals}
        if not there:
            raise ValueError("scores or differences must hold the interval of at least one model")
        size = 2 + 4.0 * len(there), 1.6 + 0.5 * len(names)
        for axes, (label, intervals) in zip(
            self._panels_in_a_row(ax, len(there), size, apart=0.3, sharey=True), there.items()
        ):
            for line, name in enumerate(names):
                if name in intervals:
                    _draw(axes, line, intervals[name])
                else:  # the best, which is 0 from itself
                    axes.plot(0, line, "ok")
            axes.set_xlabel(f"{label}\nof these fits (nats)", fontsize="small")
            axes.locator_params(axis="x", nbins=4)
            if intervals is self.differences:
                mark_zero(axes)
        self.ax_.set_yticks(range(len(names)), names)
        self.ax_.set_ylim(len(names) - 0.4, -0.6)
        legend_above(self.ax_)
        return self


def _unit(intervals: Mapping[str, ScoreInterval] | None) -> str:
    """What the means are taken over; ValueError if they can't stand on one axis."""
    units = list(dict.fromkeys(interval.unit for interval in (intervals or {}).values()))
    if len(units) > 1:
        raise ValueError(f"scores must be per row, document or word all, got {' and '.join(units)}")
    return "".join(units)


def _draw(axes, line, interval):
    """A model's line: its mean, and each error beside the other."""
    unit = sampled_units(interval.unit)
    parts = [
        (getattr(interval, name), label.format(100 * interval.level, unit=unit), color, below)
        for name, label, color, below in _ERRORS
    ]
    draw_mean(axes, line, interval, parts)

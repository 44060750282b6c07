"""EvidenceDisplay: models by their log evidence and their posterior probability."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sklpf.display._drawing import Display, draw_point, mark_zero
from sklpf.partition import EvidenceComparison


class EvidenceDisplay(Display):
    """Differences of log evidences and posterior probabilities, with their intervals.

    Parameters
    ----------
    comparison : EvidenceComparison
        What `compare_evidence` returned.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, both (differences, probabilities), and their figure, once drawn.

    Examples
    --------
    >>> from sklpf import PartitionResult, compare_evidence
    >>> from sklpf.display import EvidenceDisplay
    >>> results = {
    ...     "line": PartitionResult("HAIS", -104.2, 0.05),
    ...     "parabola": PartitionResult("HAIS", -105.3, 0.06),
    ... }
    >>> display = EvidenceDisplay.from_result(compare_evidence(results))
    >>> list(display.comparison.models)
    ['line', 'parabola']
    """

    def __init__(self, comparison: EvidenceComparison):
        self.comparison = comparison

    @classmethod
    def from_result(cls, result, *, ax: Any = None) -> Self:
        """Draw what `compare_evidence` returned.

        Parameters
        ----------
        result : EvidenceComparison
            Of two models or more.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : EvidenceDisplay

        Raises
        ------
        TypeError
            If `result` is none.
        """
        if not isinstance(result, EvidenceComparison):
            raise TypeError(
                f"result must be what compare_evidence returned, got {type(result).__name__}"
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
        models = self.comparison.models
        size = (9.0, 1.4 + 0.45 * len(models))
        left, right = self._panels_in_a_row(ax, 2, size, apart=0.3, sharey=True)
        for line, model in enumerate(models.values()):
            _draw(left, line, model.difference, model.difference_interval, model.converged)
            _draw(right, line, model.probability, model.probability_interval, model.converged)
        percent = f"{100 * self.comparison.level:.3g} % intervals"
        left.set_xlabel(f"difference of log evidence\n(nats, {percent})", fontsize="small")
        right.set_xlabel(f"posterior probability\n({percent} from log Z)", fontsize="small")
        mark_zero(left)
        right.set_xlim(-0.03, 1.03)
        left.set_yticks(range(len(models)), list(models))
        left.set_ylim(len(models) - 0.5, -0.5)
        return self


def _draw(axes, line, value, interval, converged) -> None:
    """A number with its interval, hollow where it is not to be trusted."""
    if np.isfinite(interval).all():
        axes.plot(interval, [line, line], color="C0", linewidth=3, marker="|")
    draw_point(axes, line, value, converged)

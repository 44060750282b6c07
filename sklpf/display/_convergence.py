"""ConvergenceDisplay: log Z against the sweeps that it took."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import t as student_t

from sklpf._utils.numbers import check_level
from sklpf.display._drawing import (
    ResultDisplay,
    check_has,
    check_result,
    half_width_of,
    label_decades,
    legend_above,
    title_of,
)


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(ResultDisplay):
    """log Z after every round of an estimator, with its error, against the sweeps until then.

    Parameters
    ----------
    n_sweeps : ndarray of shape (n_rounds,)
        Sweeps of all chains together until the end of each round.
    log_partition : ndarray of shape (n_rounds,)
        log Z as each round says it, in nats.
    half_width : ndarray of shape (n_rounds,)
        How far each round's interval reaches to either side, in nats; where it is not finite no bar
        is drawn.
    level : float, default=0.95
        Probability with which an interval covers.
    name : str or None, default=None
        Name of the estimator, for the legend.

    Attributes
    ----------
    ax_, axes_, figure_
        Once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.display import ConvergenceDisplay
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> display = ConvergenceDisplay.from_estimator(tempering)
    >>> bool(display.log_partition[-1] == tempering.log_partition_)
    True
    """

    n_sweeps: Any
    log_partition: Any
    half_width: Any
    _: KW_ONLY
    level: float = 0.95
    name: str | None = None

    _shapes = {
        "n_sweeps": "n_rounds",
        "log_partition": "n_rounds",
        "half_width": "n_rounds",
    }

    @classmethod
    def from_result(cls, result, *, level: float = 0.95, ax: Any = None, **options) -> Self:
        """Draw the rounds of a result.

        Parameters
        ----------
        result : PartitionResult
            A result with the diagnostics ``round_log_partition``, ``round_std_error`` and
            ``round_sweeps``. The intervals use Student t with the result's degrees of freedom.
        level : float, default=0.95
            Confidence level of the intervals.
        ax : Axes or None, default=None
            As in `plot`.
        **options
            As in `plot`.

        Returns
        -------
        display : ConvergenceDisplay

        Raises
        ------
        TypeError
            If `result` is none.
        ValueError
            If it is not one of rounds.
        """
        check_level(level)
        found = check_result(result).diagnostics
        check_has(
            result,
            "round_log_partition" in found,
            cls.__name__,
            "log Z after every round",
            {"round_sweeps"},
        )
        half = student_t.ppf(0.5 + level / 2, result.degrees_of_freedom) * np.asarray(
            found["round_std_error"]
        )
        # The last round is the result, whose error may be more than the round's own.
        if found["round_log_partition"][-1] == result.log_partition:
            half[-1] = half_width_of(result, level) or half[-1]
        arrays = found["round_sweeps"], found["round_log_partition"], half
        return cls(*arrays, level=level, name=title_of(result)).plot(ax, **options)

    def plot(self, ax: Any = None, **options) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or None, default=None
            None makes a figure.
        **options
            Options of the points, as ``Axes.errorbar`` takes them.

        Returns
        -------
        self
        """
        self._check_arrays()
        (axes,) = self._panels(ax)
        options = {"label": self.name, "fmt": "o-", "markersize": 4, "capsize": 3} | options
        half = np.where(np.isfinite(self.half_width), self.half_width, np.nan)
        bars = axes.errorbar(self.n_sweeps, self.log_partition, half, **options)
        axes.axhline(self.log_partition[-1], color=bars[0].get_color(), linestyle=":", linewidth=1)
        axes.set(
            xlabel="sweeps of all chains", ylabel=f"log Z, {100 * self.level:.3g} % interval (nats)"
        )
        label_decades(axes, "x")
        if options["label"] is not None:
            legend_above(axes)
        return self

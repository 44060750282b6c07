"""LogPartitionDisplay: log Z at every level of a ladder."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from sklpf.display._drawing import ResultDisplay, check_has, check_result, half_width_of, title_of


@dataclass(eq=False, repr=False)
class LogPartitionDisplay(ResultDisplay):
    """log Z at every level of the ladder, with its band, and below it the band alone.

    Parameters
    ----------
    ladder : ndarray of shape (K,)
        Inverse temperatures.
    log_partition_curve : ndarray of shape (K,)
        log Z at these, in nats.
    half_width : ndarray of shape (K,) or None, default=None
        How far the band reaches to either side, in nats.
    level : float, default=0.95
        Probability with which the band covers log Z at any one of the levels.
    name : str or None, default=None
        Name of the estimate, for the legend.

    Attributes
    ----------
    ax_, axes_, figure_
        The upper panel, both, and their figure, once drawn; without a band there is one panel.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.display import LogPartitionDisplay
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> display = LogPartitionDisplay.from_estimator(tempering)
    >>> bool(display.log_partition_curve[-1] == tempering.log_partition_)
    True
    """

    ladder: Any
    log_partition_curve: Any
    _: KW_ONLY
    half_width: Any = None
    level: float = 0.95
    name: str | None = None

    _shapes = {
        "ladder": "K",
        "log_partition_curve": "K",
        "half_width": "K",
    }

    @classmethod
    def from_result(cls, result, *, level: float = 0.95, ax: Any = None, **options) -> Self:
        """Draw a result.

        The band at the target is the result's interval. At other levels its width is in proportion
        to the jackknife's standard error there (independent groups of chains), so that it covers
        each level with the probability `level`, not all of them at once.

        Parameters
        ----------
        result : PartitionResult
            A result with a ``log_partition_curve``.
        level : float, default=0.95
            Confidence level of the intervals.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.
        **options
            As in `plot`.

        Returns
        -------
        display : LogPartitionDisplay

        Raises
        ------
        TypeError
            If `result` is none.
        ValueError
            If it has no log Z at the levels.
        """
        curve = check_result(result).log_partition_curve
        check_has(
            result, curve is not None, cls.__name__, "log Z at the levels", {"curve_std_error"}
        )
        half = half_width_of(result, level)
        errors = result.diagnostics.get("curve_std_error")
        known = (
            half is not None and errors is not None and errors[-1] > 0 and np.isfinite(errors).all()
        )
        band = half * (errors / errors[-1]) if known else None
        return cls(result.ladder, curve, half_width=band, level=level, name=title_of(result)).plot(
            ax, **options
        )

    def plot(self, ax: Any = None, **options) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into both panels, or two (``axes_`` of another display, to draw
            into the same). None makes a figure.
        **options
            Options of the curve, as ``Axes.plot`` takes them.

        Returns
        -------
        self
        """
        self._check_arrays()
        options = {"label": self.name} | options
        if self.half_width is None:
            (upper,) = self._panels(ax)
        else:
            upper, lower = self._panels(
                ax, 2, 1, (6.0, 5.0), apart=0.2, height_ratios=[2, 1], sharex=True
            )
        (line,) = upper.plot(self.ladder, self.log_partition_curve, **options)
        upper.set_ylabel("log Z (nats)")
        if options["label"] is not None:
            upper.legend()
        if self.half_width is not None:
            area = {"color": line.get_color(), "alpha": 0.3}
            curve, half = self.log_partition_curve, self.half_width
            upper.fill_between(self.ladder, curve - half, curve + half, **area)
            lower.fill_between(self.ladder, -half, half, **area)
            lower.axhline(0, color="0.4", linewidth=0.8)
            lower.set_ylabel(f"{100 * self.level:.3g} % band\n(nats)")
        self.axes_[-1].set_xlabel("inverse temperature")
        return self

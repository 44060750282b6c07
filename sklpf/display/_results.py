"""Displays of results: importance weights in order, log Z at every level of a ladder, and log Z
against the sweeps that it took.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import t as student_t

from sklpf._utils.numbers import as_float64, check_level
from sklpf.display._drawing import (
    ResultDisplay,
    check_result,
    half_width_of,
    label_decades,
    legend_above,
    title_of,
)
from sklpf.reweighting import effective_sample_size
from sklpf.uncertainty import pareto_tail

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ELSEWHERE = (
    " (those that a model keeps do not: fit the estimator on the model); of BDMC give "
    'WeightsDisplay(result.diagnostics["forward_log_weights"]), or the reverse ones'
)


@dataclass(eq=False, repr=False)
class WeightsDisplay(ResultDisplay):
    """Importance weights in order, the largest first, and the generalised Pareto distribution
    fitted to their tail.

    Parameters
    ----------
    log_weights : array-like
        Logs of n weights, in any order and shape; -inf is a weight of 0, which is counted and not
        drawn.
    name : str or None, default=None
        Name of the estimator, for the title.

    Attributes
    ----------
    weights_ : ndarray of shape (n,)
        Every weight over the mean of all, the largest first.
    tail_weights_ : ndarray of shape (n_tail,)
        The largest weights by the fitted tail; empty where the tail can't be fitted.
    pareto_shape_ : float
        k of the tail: under 0.5 the variance of the weights is finite, from 0.7 on their mean
        should not be relied on.
    effective_sample_size_ : float
    ax_, axes_, figure_
        Once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import AIS, BernoulliRBM
    >>> from sklpf.display import WeightsDisplay
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> display = WeightsDisplay.from_estimator(AIS(random_state=0).fit(rbm))
    >>> display.weights_.shape
    (100,)
    """

    log_weights: Any
    _: KW_ONLY
    name: str | None = None

    @classmethod
    def from_result(cls, result, *, ax: Axes | None = None) -> Self:
        """Draw the weights of a result.

        Parameters
        ----------
        result : PartitionResult
            The result of `AIS`, `HAIS`, `RAISE` or `ImportanceSampling`.
        ax : Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : WeightsDisplay

        Raises
        ------
        TypeError
            If `result` is none.
        ValueError
            If it has no weights.
        """
        log_weights = check_result(result).diagnostics.get("log_weights")
        there = log_weights is not None
        cls._require(result, there, "importance weights", {"log_weights"}, _ELSEWHERE)
        return cls(log_weights, name=title_of(result)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or None, default=None
            None makes a figure.

        Returns
        -------
        self
        """
        log_weights = np.sort(as_float64(self.log_weights, "log_weights").ravel())[::-1]
        if not len(log_weights) or not np.isfinite(log_weights[0]) or np.isnan(log_weights).any():
            raise ValueError(
                "log_weights must hold at least one finite number, and neither NaN nor +inf"
            )
        (axes,) = self._panels(ax)
        self._fit(log_weights)
        n = len(self.weights_)
        there = self.weights_ > 0
        label = (
            f"{n} weights" if there.all() else f"{there.sum()} weights, and {n - there.sum()} of 0"
        )
        axes.loglog(1 + np.flatnonzero(there), self.weights_[there], ".", markersize=4, label=label)
        if len(self.tail_weights_):
            tail = f"Pareto tail, k = {self.pareto_shape_:.2f}"
            axes.loglog(
                1 + np.arange(len(self.tail_weights_)), self.tail_weights_, color="C1", label=tail
            )
        axes.axhline(1, color="0.4", linestyle=":", label="equal weights")
        axes.set(xlabel="rank of the weight", ylabel="weight / mean weight")
        for axis in ("x", "y"):
            label_decades(axes, axis)
        name = "" if self.name is None else f"{self.name}, "
        title = f"{name}effective sample size {self.effective_sample_size_:.1f}"
        axes.set_title(title, loc="left", fontsize="medium")
        axes.legend()
        return self

    def _fit(self, log_weights):
        tail = pareto_tail(log_weights)
        relative = np.exp(log_weights - log_weights[0])
        self.weights_ = relative / relative.mean()
        self.tail_weights_ = (
            tail.weights(tail.n) / relative.mean() if np.isfinite(tail.shape) else np.empty(0)
        )
        self.pareto_shape_ = tail.shape
        self.effective_sample_size_ = effective_sample_size(log_weights)


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
    def from_result(cls, result, *, level: float = 0.95, ax: Axes | None = None, **options) -> Self:
        """Draw a result.

        The band at the target is the result's interval. At other levels its width is in proportion
        to the jackknife's standard error there (independent groups of chains), so that it covers
        each level with the probability `level`, not all of them at once. It is that of the noise: a
        bias, such as the ``diagnostics["bias"]`` of `RTS`, has no part in it.

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
        cls._require(result, curve is not None, "log Z at the levels", {"curve_std_error"})
        half = half_width_of(result, level)
        errors = result.diagnostics.get("curve_std_error")
        known = (
            half is not None and errors is not None and errors[-1] > 0 and np.isfinite(errors).all()
        )
        band = half * (errors / errors[-1]) if known else None
        return cls(result.ladder, curve, half_width=band, level=level, name=title_of(result)).plot(
            ax, **options
        )

    def plot(self, ax: Axes | None = None, **options) -> Self:
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
            upper, lower = self._panels(ax, 2, 1, (6.0, 5.0), height_ratios=[2, 1], sharex=True)
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
    def from_result(cls, result, *, level: float = 0.95, ax: Axes | None = None, **options) -> Self:
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
        there = "round_log_partition" in found
        cls._require(result, there, "log Z after every round", {"round_sweeps"})
        half = student_t.ppf(0.5 + level / 2, result.degrees_of_freedom) * np.asarray(
            found["round_std_error"]
        )
        arrays = found["round_sweeps"], found["round_log_partition"], half
        return cls(*arrays, level=level, name=title_of(result)).plot(ax, **options)

    def plot(self, ax: Axes | None = None, **options) -> Self:
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

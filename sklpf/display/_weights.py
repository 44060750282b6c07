"""WeightsDisplay: importance weights in order, with the tail that was fitted to them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from sklpf._utils.numbers import as_float64
from sklpf.display._drawing import ResultDisplay, check_has, check_result, label_decades, title_of
from sklpf.reweighting import effective_sample_size
from sklpf.uncertainty import pareto_tail

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
    def from_result(cls, result, *, ax: Any = None) -> Self:
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
        check_has(
            result,
            log_weights is not None,
            cls.__name__,
            "importance weights",
            {"log_weights"},
            _ELSEWHERE,
        )
        return cls(log_weights, name=title_of(result)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or None, default=None
            None makes a figure.

        Returns
        -------
        self
        """
        log_weights = self._check()
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

    def _check(self):
        log_weights = np.sort(as_float64(self.log_weights, "log_weights").ravel())[::-1]
        if not len(log_weights) or not np.isfinite(log_weights[0]) or np.isnan(log_weights).any():
            raise ValueError(
                "log_weights must hold at least one finite number, and neither NaN nor +inf"
            )
        return log_weights

    def _fit(self, log_weights):
        tail = pareto_tail(log_weights)
        relative = np.exp(log_weights - log_weights[0])
        self.weights_ = relative / relative.mean()
        self.tail_weights_ = (
            tail.weights(tail.n) / relative.mean() if np.isfinite(tail.shape) else np.empty(0)
        )
        self.pareto_shape_ = tail.shape
        self.effective_sample_size_ = effective_sample_size(log_weights)

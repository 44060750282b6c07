"""What the Displays share: whose result is drawn, and the axes that they draw on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklpf.partition import PartitionResult


def last_step(model: Any) -> Any:
    """The fitted model itself, or the one that a pipeline ends in."""
    while isinstance(model, Pipeline):
        model = model[-1]
    check_is_fitted(model)
    return model


def result_of(estimator: Any) -> PartitionResult:
    """What a fitted partition estimator found, or that of a model's log Z.

    Raises
    ------
    NotFittedError
        If there is no such result yet.
    TypeError
        If there never will be.
    """
    estimator = last_step(estimator)
    if hasattr(estimator, "partition_estimator"):  # a model
        try:
            estimator = estimator.partition_estimator_
        except AttributeError as error:
            raise NotFittedError(str(error)) from error
    result = getattr(estimator, "result_", None)
    return check_result(result, "estimator", type(estimator))


def check_result(result: Any, name: str = "result", given: type | None = None) -> PartitionResult:
    """Raise TypeError unless it is the result of a partition estimator."""
    if not isinstance(result, PartitionResult):
        wanted = "a fitted partition estimator or model of sklpf" if given else "a PartitionResult, such as result_"
        raise TypeError(f"{name} must be {wanted}, got {(given or type(result)).__name__}")
    return result


def check_has(result: PartitionResult, there: bool, display: str, what: str, owners: str) -> None:
    """Raise ValueError, which names who has it, if a result lacks what a Display draws."""
    if there:
        return
    if np.ndim(result.log_partition):
        raise ValueError(
            f"{display} draws {what} of one log Z, and this result has {len(result.log_partition)}, one for each row, "
            "which keep nothing else: fit the estimator on path.row(t) for that of row t"
        )
    raise ValueError(f"{display} draws {what}, and this result of {result.method} has none: {owners}")


def title_of(result: PartitionResult) -> str:
    """Method, the kind of statement where it is no estimate, and whether it is not to be trusted."""
    parts = [result.method]
    if result.statement not in ("estimate", "exact"):
        parts.append(result.statement)
    if not result.converged:
        parts.append("not converged")
    return ", ".join(parts)


def half_width(result: PartitionResult, level: float) -> float | None:
    """How far the interval reaches to either side; None if it does not, or not to both alike."""
    low, high = result.interval(level)
    if not np.isfinite([low, high]).all():
        return None
    return float(high - result.log_partition)


def panels(
    display: Any, ax: Any, n_rows: int = 1, n_columns: int = 1, size: tuple[float, float] = (6.0, 4.0), **options
) -> NDArray:
    """Axes for a picture of several panels, which become the display's `ax_` (the first), `axes_` and `figure_`.

    Parameters
    ----------
    display : object
        Who draws.
    ax : matplotlib Axes, array-like of Axes or None
        Axes are divided where there are several panels, and taken as they are where there are as many. None makes a
        new figure.
    size : tuple of float
        Width and height of a new figure in inches.
    **options
        Of ``subplots``: height_ratios, sharex and the like.

    Returns
    -------
    axes : ndarray of shape (n_rows * n_columns,)
    """
    name, n = type(display).__name__, n_rows * n_columns
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib to draw: pip install 'sklpf[plot]'") from error
    if ax is None:
        _, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False, **options)
    elif isinstance(ax, plt.Axes) and n > 1:
        axes = _divide(ax, n_rows, n_columns, options)
    else:
        axes = np.asarray(ax, dtype=object)
        if axes.size != n or not all(isinstance(panel, plt.Axes) for panel in axes.ravel()):
            raise ValueError(f"ax must be one matplotlib Axes or an array of {n}, as many as {name} has panels")
    display.axes_ = axes.ravel()
    display.ax_ = display.axes_[0]
    display.figure_ = display.ax_.figure
    return display.axes_


def _divide(ax, n_rows, n_columns, options):
    """Panels in the place of one."""
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(f"ax must come from subplots to be divided into {n_rows * n_columns} panels, or give as many")
    ratios = {name: options.pop(name) for name in ("height_ratios", "width_ratios") if name in options}
    ax.set_axis_off()
    return place.subgridspec(n_rows, n_columns, **ratios).subplots(squeeze=False, **options)

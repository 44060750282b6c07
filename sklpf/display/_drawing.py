"""Base classes of the Displays: the axes that they draw on, and the result that is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklpf._utils.validation import as_float64
from sklpf.partition import PartitionResult
from sklpf.scoring import last_step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of what an error comes from (Okabe & Ito 2008: they differ for the colour-blind too)
ROWS = "#0072B2"
LOG_PARTITION = "#E69F00"
FITS = "#009E73"


class Display:
    """Base class of the Displays.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The first panel.
    axes_ : ndarray of shape (n_panels,)
        All panels.
    figure_ : matplotlib Figure
    """

    ax_: Any
    axes_: NDArray
    figure_: Any
    name: str | None  # for the title, where a display has one
    _shapes: ClassVar[dict[str, str]] = {}  # dimensions of parameters

    def _panels(
        self,
        ax: Axes | NDArray | None,
        n: int = 1,
        size: tuple[float, float] = (6.0, 4.0),
        *,
        n_columns: int | None = None,
        most: int = 4,
        narrowest: float = 1.5,
        **options,
    ) -> NDArray:
        """The n axes to draw on, which become `ax_`, `axes_` and `figure_`.

        None makes a figure of panels of a size in inches. One matplotlib Axes is divided where
        there are several panels, and as many are taken as they are. At most so many stand side by
        side, and as many as have the room of the narrowest. Options are those of ``subplots``.
        """
        name = type(self).__name__
        try:
            import matplotlib.pyplot as plt
            from matplotlib.ticker import ScalarFormatter
        except ImportError as error:
            raise ImportError(
                f"{name} needs matplotlib to draw: pip install 'sklpf[plot]'"
            ) from error
        if ax is None or (isinstance(ax, plt.Axes) and n > 1):
            if ax is not None:
                most = max(1, min(most, int(width(ax) / narrowest)))
            n_rows = -(-n // (n_columns or most))
            n_columns = n_columns or -(-n // n_rows)
            options |= {"squeeze": False}
            if ax is None:
                whole = size[0] * n_columns, size[1] * n_rows
                style: dict[str, Any] = {"figsize": whole, "layout": "constrained"}
                _, axes = plt.subplots(n_rows, n_columns, **style, **options)
            else:
                axes = _divide(ax, n_rows, n_columns).subplots(**options)
            axes = axes.ravel()
            for empty in axes[n:]:
                empty.remove()
            axes = axes[:n]
        else:
            axes = np.asarray(ax, dtype=object)
            if axes.size != n or not all(isinstance(panel, plt.Axes) for panel in axes.ravel()):
                raise ValueError(
                    f"ax must be one matplotlib Axes or an array of {n}, as many as {name} has"
                    " panels"
                )
        self.axes_ = axes.ravel()
        for axis in (axis for panel in self.axes_ for axis in (panel.xaxis, panel.yaxis)):
            if isinstance(axis.get_major_formatter(), ScalarFormatter):  # no "+1.234e3" beside
                axis.get_major_formatter().set_useOffset(False)
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        return self.axes_

    def _check_arrays(self) -> None:
        """Make arrays of parameters, or raise an error unless they are real and fit each other."""
        sizes: dict[str, int] = {}
        for name, dimensions in self._shapes.items():
            value = getattr(self, name)
            if value is None and getattr(type(self), name, ...) is None:
                continue
            value = as_float64(value, name)
            wanted = tuple(map(sizes.setdefault, dimensions.split(), value.shape))
            if value.shape != wanted or value.ndim != len(dimensions.split()) or not value.size:
                raise ValueError(
                    f"{name} must be an array of shape ({dimensions.replace(' ', ', ')}), got"
                    f" {value.shape}: {', '.join(self._shapes)} must fit each other"
                )
            setattr(self, name, value)

    def _draw_panels(self, ax: Axes | NDArray | None, draw: list, inches: float) -> Self:
        """Draw each panel by one function of Axes, with the display's name above the first."""
        panels = self._panels(ax, len(draw), (inches, 3.5))
        for method, axes in zip(draw, panels):
            method(axes)
            if width(axes) < 1.5:  # the labels of narrow panels would meet
                axes.set_xlabel(axes.get_xlabel().replace(" ", "\n", 1))
        legends = filter(None, (axes.get_legend() for axes in panels))
        if self.name in [text.get_text() for legend in legends for text in legend.get_texts()]:
            self.ax_.set_title("", loc="left")  # that of the first of several estimates
        elif self.name is not None:
            above = self.ax_.get_title()  # the lines of a legend
            title = f"{self.name}\n{above}" if above else self.name
            self.ax_.set_title(title, loc="left", fontsize="medium")
        return self


def fitted_model(model: Any) -> Any:
    """The fitted model itself, or the one that a pipeline ends in."""
    model = last_step(model)
    check_is_fitted(model)
    return model


def result_of(estimator: Any) -> PartitionResult:
    """The result of a fitted partition estimator, or of a model's log Z.

    Raises
    ------
    NotFittedError
        If there is no such result yet.
    TypeError
        If there never will be.
    """
    estimator = fitted_model(estimator)
    if hasattr(estimator, "partition_estimator"):  # a model
        try:
            estimator = estimator.partition_estimator_
        except AttributeError as error:
            raise NotFittedError(str(error)) from error
    result = getattr(estimator, "result_", None)
    if not isinstance(result, PartitionResult):
        raise TypeError(
            "estimator must be a fitted partition estimator or model of sklpf, got"
            f" {type(estimator).__name__}"
        )
    return result


def title_of(result: PartitionResult) -> str:
    """Method, the kind of statement where it is no estimate, and whether it is not to be
    trusted.
    """
    parts = [result.method]
    if result.statement not in ("estimate", "exact"):
        parts.append(result.statement)
    if not result.converged:
        parts.append("not converged")
    return ", ".join(parts)


def width(axes: Any) -> float:
    """The width of axes in inches, before a layout engine moves them."""
    return axes.bbox.width / axes.figure.dpi


def legend_above(axes: Any) -> None:
    """Put a legend above axes, with one entry for each label, as many in a line as have room."""
    room = axes.figure.bbox.x1 - axes.bbox.x0
    n_columns = 3 if room > 4 * axes.figure.dpi else 2
    handles, labels = axes.get_legend_handles_labels()
    first = dict(zip(labels, handles))
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": n_columns, "frameon": False}
    short = {"handlelength": 1.2, "columnspacing": 1.0, "borderpad": 0.0, "fontsize": "small"}
    legend = axes.legend(first.values(), first.keys(), **place, **short)
    legend.set_in_layout(False)  # its width would narrow the panel that it begins above;
    n_lines = -(-len(first) // n_columns)
    axes.set_title("\n".join([" "] * n_lines))  # this makes room for its height


def half_width_of(result: PartitionResult, level: float) -> float | None:
    """Half-width of the interval; None if one of its ends is not finite."""
    low, high = result.interval(level)
    if not np.isfinite([low, high]).all():
        return None
    return float(high - result.log_partition)


def _divide(
    ax,
    n_rows,
    n_columns,
    *,
    between=0.6,  # space between panels of one Axes, as a share of a panel
):
    """Places of panels in that of one."""
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(
            "ax must come from subplots to be divided into panels, or be as many Axes as there are"
        )
    spaces = {}
    if ax.figure.get_layout_engine() is None:  # else that makes room for labels between panels
        spaces = {"wspace": between, "hspace": between}
    ax.set_axis_off()
    return place.subgridspec(n_rows, n_columns, **spaces)

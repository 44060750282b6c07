"""ComponentsDisplay: a model's components as images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from sklpf._utils.validation import check_option
from sklpf.display._drawing import Display, fitted_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ComponentsDisplay(Display):
    """Components as small images side by side.

    Parameters
    ----------
    images : array-like of shape (n_components, height, width)
        The numbers of each image.

    Attributes
    ----------
    ax_, axes_, figure_
        Once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.display import ComponentsDisplay
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(10, 16))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(16), np.zeros(10))
    >>> ComponentsDisplay.from_estimator(rbm).images.shape
    (10, 4, 4)
    """

    images: Any

    _shapes = {
        "images": "n_components height width",
    }

    @classmethod
    def from_estimator(
        cls,
        estimator,
        shape: tuple[int, int] | None = None,
        *,
        whitening: Any = None,
        ax: Axes | None = None,
        **options,
    ) -> Self:
        """Draw the `components_` of a fitted model.

        Parameters
        ----------
        estimator : model
            Anything with ``components_`` of shape (n_components, n_features), or a pipeline that
            ends in it.
        shape : tuple of int or None, default=None
            Height and width of an image; None makes squares.
        whitening : transformer or None, default=None
            The linear transformer that made the model's rows of images, such as
            `Patches.whitening`: components are drawn as its ``inverse_transform`` maps rows back.
        ax : Axes or None, default=None
            As in `plot`.
        **options
            As in `plot`.

        Returns
        -------
        display : ComponentsDisplay

        Raises
        ------
        ValueError
            If the model has no components, or their number of features is not that of an image of
            this shape.
        """
        model = fitted_model(estimator)
        components: Any = getattr(model, "components_", None)
        if np.ndim(components) != 2:
            raise ValueError(
                f"{cls.__name__} draws components_ of shape (n_components, n_features), and a"
                f" {type(model).__name__} has none: of other arrays give {cls.__name__}(images)"
            )
        if whitening is not None:
            if not hasattr(whitening, "inverse_transform"):
                raise TypeError(
                    "whitening must be a transformer with inverse_transform, got"
                    f" {type(whitening).__name__}"
                )
            origin = whitening.inverse_transform(np.zeros((1, components.shape[1])))
            components = whitening.inverse_transform(components) - origin
        return cls(_as_images(np.asarray(components), shape)).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_columns: int | None = None,
        scale: Literal["common", "each"] = "common",
        cmap: str | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or None, default=None
            None makes a figure.
        n_columns : int or None, default=None
            Images side by side; None makes about a square of all.
        scale : {"common", "each"}, default="common"
            Colours go from minus to plus the largest absolute value (from 0 where no number is
            negative) of all images, or of each one, which is then divided by it.
        cmap : str or None, default=None
            None is "RdBu_r", with white at 0, or "gray_r" where no number is negative.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `images` are none, or `scale` is unknown.
        """
        self._check_arrays()
        images = self.images
        check_option(scale, ("common", "each"), "scale")
        if scale == "each":
            largest = np.abs(images).max(axis=(1, 2), keepdims=True)
            images = images / np.where(largest > 0, largest, 1)
        n_columns = n_columns or int(
            np.ceil(np.sqrt(len(images) * images.shape[1] / images.shape[2]))
        )
        mosaic = _mosaic(images, n_columns)
        (axes,) = self._panels(ax, size=_size(mosaic, n_columns))
        limit = np.abs(images).max() or 1.0
        signed = images.min() < 0
        cmap = cmap or ("RdBu_r" if signed else "gray_r")
        drawn = axes.imshow(
            mosaic, cmap=cmap, vmin=-limit if signed else 0, vmax=limit, interpolation="nearest"
        )
        drawn.set_cmap(drawn.cmap.with_extremes(bad="0.75"))
        axes.set_axis_off()
        if scale == "common":
            self.figure_.colorbar(drawn, ax=axes)
        return self


def _as_images(components, shape):
    n_features = components.shape[1]
    if shape is None:
        side = int(round(np.sqrt(n_features)))
        if side**2 != n_features:
            raise ValueError(
                f"shape must be (height, width) of an image: {n_features} features make no square"
            )
        shape = side, side
    whole = np.shape(shape) == (2,) and np.asarray(shape).dtype.kind in "iu"
    if not whole or np.prod(shape) != n_features:
        raise ValueError(
            f"shape must be (height, width) with a product of {n_features} features, got {shape}"
        )
    return components.reshape(-1, *shape)


def _mosaic(
    images,
    n_columns,
    *,
    share_of_gap=16,  # gaps that the longer side of an image has
):
    """One array of all images, enlarged where small, with NaN between them and in empty places."""
    zoom = -(-share_of_gap // max(images.shape[1:]))
    images = images.repeat(zoom, axis=1).repeat(zoom, axis=2)
    n, height, width = images.shape
    n_rows = -(-n // n_columns)
    gap = max(height, width) // share_of_gap
    placed = np.full((n_rows * n_columns, height + gap, width + gap), np.nan)
    placed[:n, :height, :width] = images
    placed = placed.reshape(n_rows, n_columns, height + gap, width + gap).swapaxes(1, 2)
    return placed.reshape(n_rows * (height + gap), n_columns * (width + gap))[:-gap, :-gap]


def _size(
    mosaic,
    n_columns,
    *,
    inches=0.7,  # of an image, in a new figure
):
    """Size of a figure in inches, with room for a colour bar."""
    height, width = mosaic.shape
    across = min(max(3.0, inches * n_columns), 10.0)
    return across + 1.0, max(1.2, across * height / width)

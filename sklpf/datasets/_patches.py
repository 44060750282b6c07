"""Whitened patches of images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from sklpf._utils.numbers import Array
from sklpf._utils.validation import as_float64, check_between, check_count

_BLOCK = 4  # sides of a patch that a block has by default
_ROUNDING = 1e-12  # of log intensities, all below 710, as a standard deviation


class Patches(NamedTuple):
    """Result of `make_patches`.

    Attributes
    ----------
    X_train : ndarray of shape (n_patches, n_components)
        Whitened training patches, in random order.
    X_test : ndarray of shape (n_test, n_components)
        Whitened test patches, in random order.
    whitening : PCA
        scikit-learn's, fitted to the training patches: `components_` (n_components, size * size),
        `mean_`, and `inverse_transform`, which draws rows as patches.
    log_det : float
        ``log |det|`` of the whitening as a map of the PCA subspace, in nats:
        log p(patch in the subspace) = log p(whitened row) + log_det.
    """

    X_train: Array
    X_test: Array
    whitening: PCA
    log_det: float


def make_patches(
    images,
    size=16,
    n_patches=10_000,
    n_components=36,
    *,
    n_test=1000,
    block_size=None,
    random_state=None,
) -> Patches:
    """Make whitened patches of grey images, for training and for testing.

    Square patches are cut from log(1 + intensity), and each has the mean over its pixels
    subtracted. They are then projected onto the principal components of the training patches and
    whitened (Sohl-Dickstein & Culpepper 2012, section 5.1).

    Every image is cut into blocks like a checkerboard. Training patches lie within blocks of one
    colour, test patches within those of the other, so that no pixel is in both. Patches of one set
    overlap. So rows are not independent, and standard errors over them are too small.

    Parameters
    ----------
    images : array of shape (n_images, height, width), or sequence of arrays (height, width)
        Intensities from 0 upwards, grey, most often to 255: 1 is added, so that their unit matters.
        Images of a sequence may differ in shape.
    size : int, default=16
        Height and width of a patch, in pixels, at least 2.
    n_patches : int, default=10000
        Patches for training, all at different places.
    n_components : int, default=36
        Number of principal components that are kept, of the size * size - 1 that are left without
        the mean.
    n_test : int, default=1000
        Patches for testing, all at different places.
    block_size : int, default=None
        Smallest height and width of a block, in pixels; an image that is smaller is one block. None
        means 4 * size.
    random_state : int, RandomState or None, default=None
        Seed of the places.

    Returns
    -------
    patches : Patches
        A named tuple of `X_train`, `X_test`, `whitening` and `log_det`.

    Raises
    ------
    TypeError
        If `images` are no numbers.
    ValueError
        If there are no such patches: images of other shapes, NaN, infinite or negative intensities,
        patches larger than a block or an image, fewer places than patches, or fewer dimensions than
        `n_components`.

    Notes
    -----
    With U = `whitening.components_` (orthonormal rows) and λ = `whitening.explained_variance_`, a
    patch x of log intensities, its mean subtracted, has the coordinates y = U (x -
    `whitening.mean_`) in the subspace, and the whitened row is z = y / √λ. A change of variables
    gives, in nats,

        ``log p(y) = log p(z) + log |det ∂z/∂y| = log p(z) + log_det``,   ``log_det = -½ Σ log λ``.

    ``model.score(X_test) + log_det`` is therefore the likelihood of a patch in the subspace, a
    density of log intensities. Divided by size ** 2 it is in nats a pixel, and by log 2 as well in
    bits; dimensions that were left out count for nothing. `log_det` is the same for all models of
    the same rows: differences between them don't need it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.datasets import make_patches
    >>> images = np.random.default_rng(0).gamma(2.0, 50.0, size=(3, 64, 96))
    >>> sizes = dict(n_test=100, random_state=0)
    >>> X_train, X_test, whitening, log_det = make_patches(images, 8, 500, 10, **sizes)
    >>> X_train.shape, X_test.shape, whitening.components_.shape
    ((500, 10), (100, 10), (10, 64))
    """
    check_count(size, "size", 2)
    block_size = _BLOCK * size if block_size is None else block_size
    check_count(block_size, "block_size", size)
    check_count(n_patches, "n_patches", 2)
    check_count(n_components, "n_components")
    check_between(n_components, "n_components", 1, min(size**2, n_patches) - 1)
    check_count(n_test, "n_test")
    rng = check_random_state(random_state)
    train_blocks, test_blocks = _checkerboard(_checked(images, size), block_size)
    train = _draw(train_blocks, size, n_patches, "n_patches", rng)
    test = _draw(test_blocks, size, n_test, "n_test", rng)
    whitening = _fit_whitening(train, n_components)
    log_det = -0.5 * float(np.log(whitening.explained_variance_).sum())
    return Patches(whitening.transform(train), whitening.transform(test), whitening, log_det)


def _checked(images, size: int) -> list[Array]:
    """The images as arrays of float64, or an error that says what they need."""
    try:
        arrays = [as_float64(image, "images") for image in images]
    except TypeError:
        shape = getattr(images, "shape", None)
        given = type(images).__name__ + ("" if shape is None else f" of shape {shape}")
        raise TypeError(
            f"images must be a sequence of 2-D arrays of real numbers, got {given}"
        ) from None
    if not arrays:
        raise ValueError("images must hold at least one image, got none")
    for i, image in enumerate(arrays):
        _check_image(image, f"images[{i}]", size)
    return arrays


def _check_image(image: Array, name: str, size: int) -> None:
    if image.ndim != 2:
        raise ValueError(
            f"images must be grey, each of shape (height, width), but {name} has shape"
            f" {image.shape}: take the mean over the channels of colour images, and put a single"
            " image into a list"
        )
    if min(image.shape) < size:
        raise ValueError(
            f"size={size} is larger than {name} of shape {image.shape}: take a smaller size or"
            " larger images"
        )
    if not np.all(np.isfinite(image)):
        raise ValueError(
            f"images must be finite, but {name} holds NaN or infinity: replace or crop such pixels"
        )
    if image.min() < 0:
        raise ValueError(
            f"images must hold intensities from 0 upwards, but {name} has {image.min():g}: "
            "pass them before their logarithm or mean was taken"
        )


def _checkerboard(images: list[Array], block_size: int) -> tuple[list[Array], list[Array]]:
    """The images' blocks of the two colours, which change from one image's first block to that of
    the next.
    """
    colours: tuple[list, list] = [], []
    for i, image in enumerate(images):
        rows, columns = (np.array_split(np.arange(n), max(1, n // block_size)) for n in image.shape)
        for r, row in enumerate(rows):
            for c, column in enumerate(columns):
                colours[(i + r + c) % 2].append(
                    image[row[0] : row[-1] + 1, column[0] : column[-1] + 1]
                )
    if not colours[1]:
        raise ValueError(
            f"block_size={block_size} leaves a single block and none for testing: "
            f"make it at most {max(images[0].shape) // 2} (and size with it), or pass more images"
        )
    return colours


def _draw(blocks, size: int, n: int, name: str, rng) -> Array:
    """Patches at n different places within the blocks, (n, size * size): logarithms without their
    mean.
    """
    places = [(block.shape[0] - size + 1) * (block.shape[1] - size + 1) for block in blocks]
    ends = np.cumsum(places)
    if n > ends[-1]:
        raise ValueError(
            f"{name}={n} is more than the {ends[-1]} places of a {size} x {size} patch in these"
            " blocks: take fewer, or more or larger images"
        )
    drawn = rng.permutation(sample_without_replacement(ends[-1], n, random_state=rng))
    patches = np.empty((n, size, size))
    owner = np.searchsorted(ends, drawn, side="right")
    for k in np.unique(owner):
        mine = owner == k
        windows = sliding_window_view(blocks[k], (size, size))
        patches[mine] = windows[
            np.unravel_index(drawn[mine] - (ends[k] - places[k]), windows.shape[:2])
        ]
    logs = np.log1p(patches.reshape(n, size**2))
    return logs - logs.mean(axis=1, keepdims=True)


def _fit_whitening(patches: Array, n_components: int) -> PCA:
    """PCA that whitens, or an error where the patches span fewer dimensions."""
    whitening = PCA(n_components, whiten=True, svd_solver="covariance_eigh")
    with np.errstate(invalid="ignore"):  # shares of a variance of 0
        whitening.fit(patches)
    variances = whitening.explained_variance_
    rounding = max(max(patches.shape) * np.finfo(np.float64).eps * variances[0], _ROUNDING**2)
    rank = int(np.sum(variances > rounding))
    if rank < n_components:
        raise ValueError(
            f"n_components={n_components} is more than the {rank} dimensions that the training"
            " patches span: take fewer components, or images (or parts of them) that are less"
            " uniform"
        )
    return whitening

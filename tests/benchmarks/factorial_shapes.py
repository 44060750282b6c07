"""Families of generated shapes for `factorial.py`: weighted images, on or off in every row, plus
noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from sklpf.models import FactorialPosterior
from sklpf.variational import sweeps


def blob(rng, side, size):
    """A connected set of pixels that grows at random."""
    image = np.zeros((side, side), dtype=bool)
    image[tuple(rng.integers(side, size=2))] = True
    while image.sum() < size:
        near = np.zeros_like(image)
        near[1:] |= image[:-1]
        near[:-1] |= image[1:]
        near[:, 1:] |= image[:, :-1]
        near[:, :-1] |= image[:, 1:]
        edge = np.argwhere(near & ~image)
        image[tuple(edge[rng.integers(len(edge))])] = True
    return image.astype(float)


def rectangle(rng, side, *, hollow=False):
    while True:
        (top, bottom), (left, right) = np.sort(rng.integers(0, side + 1, size=(2, 2)), axis=1)
        if min(bottom - top, right - left) >= 2 + hollow:
            break
    image = np.zeros((side, side))
    image[top:bottom, left:right] = 1
    if hollow:
        image[top + 1 : bottom - 1, left + 1 : right - 1] = 0
    return image


def bump(rng, side):
    centre, width, grid = (
        rng.uniform(0, side - 1, 2),
        rng.uniform(0.12, 0.25) * side,
        np.arange(side),
    )
    return np.exp(-((grid[:, None] - centre[0]) ** 2 + (grid - centre[1]) ** 2) / (2 * width**2))


def ellipse(rng, side):
    centre, axes, angle = (
        rng.uniform(0, side - 1, 2),
        rng.uniform(0.15, 0.4, 2) * side,
        rng.uniform(0, np.pi),
    )
    y, x = np.arange(side)[:, None] - centre[0], np.arange(side) - centre[1]
    u, v = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    return ((u / axes[0]) ** 2 + (v / axes[1]) ** 2 <= 1).astype(float)


def band(rng, side):
    """The pixels near a straight line through the image."""
    angle, y, x = rng.uniform(0, np.pi), *np.indices((side, side)) - (side - 1) / 2
    return (
        np.abs(x * np.cos(angle) + y * np.sin(angle) - rng.uniform(-0.3, 0.3) * side) < 1
    ).astype(float)


def spectrum(rng, n_channels, n_peaks):
    """Peaks of one width anywhere in a row of channels."""
    heights = rng.uniform(0.5, 1, n_peaks)
    centres = rng.uniform(0, n_channels - 1, n_peaks)
    distances = (np.arange(n_channels) - centres[:, None]) / 4
    return heights @ np.exp(-0.5 * distances**2)


def gabor(rng, side):
    """A wave under a bump."""
    y, x = np.indices((side, side)) - rng.uniform(0.2, 0.8, 2)[:, None, None] * side
    angle, phase = rng.uniform(0, np.pi, 2)
    along = x * np.cos(angle) + y * np.sin(angle)
    wave = np.cos(2 * np.pi * along / rng.uniform(3, 6) + phase)
    return wave * np.exp(-(x**2 + y**2) / (2 * rng.uniform(1.2, 2.2) ** 2))


def mask(rng, side, share):
    return (rng.random((side, side)) < share).astype(float)


def bars(rng, side):
    """One of the rows and columns; `Family` keeps those that differ, which are all of them."""
    image, k = np.zeros((side, side)), rng.integers(2 * side)
    image[k % side] = 1
    return image if k < side else image.T


class Family(NamedTuple):
    """Shapes of `draw(rng)`, all different, with weights from U(0.5, 1)."""

    draw: Callable
    n_shapes: int
    noise_variance: float
    probability: float
    seed: int
    n_rows: int = 1500

    def make(self):
        """Return rows, activations, components, and the hyperparameters that made them."""
        rng, images = np.random.default_rng(self.seed), []
        while len(images) < self.n_shapes:
            image = self.draw(rng)
            if np.abs(image).sum() > 1 and all(
                np.abs(image - other).max() > 0.3 for other in images
            ):
                images.append(image)
        components = np.array([image.ravel() for image in images]) * rng.uniform(
            0.5, 1, (len(images), 1)
        )
        activations = (rng.random((self.n_rows, len(images))) < self.probability).astype(float)
        X = activations @ components + np.sqrt(self.noise_variance) * rng.normal(
            size=(self.n_rows, components.shape[1])
        )
        given = {
            "noise_variance": self.noise_variance,
            "component_variance": float(np.mean(components**2)),
            "activation_probability": self.probability,
        }
        return X, activations, components, given


FAMILIES = {
    "masks 4 x 4, 6": Family(lambda rng: mask(rng, 4, 0.5), 6, 0.01, 0.3, 1),
    "blobs 5 x 5, 12": Family(lambda rng: blob(rng, 5, 6), 12, 0.01, 0.3, 2),
    "bars 5 x 5, 10": Family(lambda rng: bars(rng, 5), 10, 0.02, 0.25, 3),
    "rectangles 6 x 6, 16": Family(lambda rng: rectangle(rng, 6), 16, 0.01, 0.2, 4),
    "blobs 9 x 9, 8, noisy": Family(lambda rng: blob(rng, 9, 20), 8, 0.25, 0.3, 5),
    "bumps 10 x 10, 14": Family(lambda rng: bump(rng, 10), 14, 0.05, 0.2, 6),
    "masks 4 x 4, 7, sparse": Family(lambda rng: mask(rng, 4, 0.3), 7, 0.02, 0.2, 11),
    "frames 6 x 6, 12": Family(lambda rng: rectangle(rng, 6, hollow=True), 12, 0.01, 0.25, 12),
    "bands 8 x 8, 10": Family(lambda rng: band(rng, 8), 10, 0.04, 0.4, 13),
    "blobs 9 x 9, 12, noisy": Family(lambda rng: blob(rng, 9, 12), 12, 0.3, 0.25, 14),
    "ellipses 12 x 12, 16": Family(lambda rng: ellipse(rng, 12), 16, 0.1, 0.2, 15),
    "blobs 7 x 7, 14": Family(lambda rng: blob(rng, 7, 9), 14, 0.05, 0.3, 16),
    "spectra 60, 14": Family(lambda rng: spectrum(rng, 60, 3), 14, 0.03, 0.2, 17, 600),
    "gabors 10 x 10, 14": Family(lambda rng: gabor(rng, 10), 14, 0.03, 0.2, 18, 600),
}
DESIGN, VERIFY = (
    list(FAMILIES)[:6],
    list(FAMILIES)[6:],
)  # what the moves were made for, and what they had not seen
_NAMES = ("noise_variance", "component_variance", "activation_probability")


def truth_bound(X, activations, given, learned):
    """The bound, in nats, that sweeps from the true activations arrive at."""
    start = given["noise_variance"], given["component_variance"]
    probability = np.full(activations.shape[1], given["activation_probability"])
    posterior = FactorialPosterior(
        X, activations, *start, probability, learned=_NAMES if learned else ()
    )
    *_, last = sweeps(posterior, tol=1e-6 * len(X), max_iter=5000)
    return last.elbo


def n_found(found, components):
    """Number of the components that differ from one of those found by less than 0.15 in every
    pixel, one to one.
    """
    distances = np.abs(found[:, None] - components).max(axis=2)
    pairs = linear_sum_assignment(np.minimum(distances, 0.5))
    return int(np.sum(distances[pairs] < 0.15))

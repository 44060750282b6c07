"""Rows that are sums of small shapes."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_scalar

from sklpf._utils.numbers import Array, check_count, check_number, check_option

_SHAPES = {
    "drawn": """
##..  ...#  ...#  ....  .##.  ....  #..#  .###
##..  ...#  ..#.  ....  ....  .#..  ....  ..#.
....  ...#  .#..  .##.  ....  ###.  ....  ..#.
....  ...#  #...  ####  .##.  .#..  #..#  ....
""",
    "bars": """
####  ....  ....  ....  #...  .#..  ..#.  ...#
....  ####  ....  ....  #...  .#..  ..#.  ...#
....  ....  ####  ....  #...  .#..  ..#.  ...#
....  ....  ....  ####  #...  .#..  ..#.  ...#
""",
}


def make_factorial_shapes(
    n_samples=10_000,
    *,
    shapes="drawn",
    noise_variance=0.01,
    activation_probability=0.3,
    random_state=None,
) -> tuple[Array, Array, Array]:
    """Make noisy sums of eight 4 x 4 shapes, in the manner of the toy data of Mandt et al. (2016,
    figure 4).

    Every shape is a binary image times a weight from U(0.5, 1). The paper doesn't list its shapes;
    these are others. Many of the drawn shapes share pixels, more than the bars do.

    Parameters
    ----------
    n_samples : int, default=10000
        Rows.
    shapes : {"drawn", "bars"}, default="drawn"
        Squares, lines, a cross and the like; or the four rows and four columns.
    noise_variance : float, default=0.01
        Variance of the noise of every pixel.
    activation_probability : float, default=0.3
        Probability that a shape is on in a row.
    random_state : int, RandomState or None, default=None
        Seed of the rows.

    Returns
    -------
    X : ndarray of shape (n_samples, 16)
    activations : ndarray of shape (n_samples, 8)
        0 or 1.
    components : ndarray of shape (8, 16)
        The weighted shapes.
    """
    check_option(shapes, tuple(_SHAPES), "shapes")
    check_number(noise_variance, "noise_variance")
    check_number(activation_probability, "activation_probability")
    check_count(n_samples, "n_samples")
    check_scalar(noise_variance, "noise_variance", Real, min_val=0)
    check_scalar(activation_probability, "activation_probability", Real, min_val=0, max_val=1)
    rng = check_random_state(random_state)
    pictures = zip(*(line.split() for line in _SHAPES[shapes].split("\n") if line))
    binary = np.array(
        [[pixel == "#" for pixel in "".join(picture)] for picture in pictures], dtype=np.float64
    )
    components = binary * rng.uniform(0.5, 1, (len(binary), 1))
    activations = (rng.uniform(size=(n_samples, len(binary))) < activation_probability).astype(
        np.float64
    )
    noise = rng.normal(0, np.sqrt(noise_variance), (n_samples, binary.shape[1]))
    return activations @ components + noise, activations, components

"""Documents whose topics are the rows and columns of a square of words, and rows that are sums of
small shapes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from sklpf._utils.numbers import Array
from sklpf._utils.validation import check_between, check_count, check_option, check_scale

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


def make_bars_corpus(
    n_samples=1000, *, size=5, n_tokens=100, doc_topic_prior=1.0, background=0.0, random_state=None
) -> tuple[sp.csr_matrix, Array, Array]:
    """Make documents about bars: words are the pixels of a square, topics its rows and columns.

    Topics can be told apart at a glance when drawn as images (the toy corpus of Griffiths &
    Steyvers 2004, figure 1).

    Parameters
    ----------
    n_samples : int, default=1000
        Documents.
    size : int, default=5
        The square has size * size words, and there are 2 * size topics.
    n_tokens : int, default=100
        Number of tokens of every document.
    doc_topic_prior : float, default=1.0
        Dirichlet parameter of the documents' topic shares.
    background : float, default=0.0
        Share of every topic that is spread over all words, from 0 to 1.
    random_state : int, RandomState or None, default=None
        Seed of the documents.

    Returns
    -------
    X : CSR matrix of shape (n_samples, size * size)
        How often every word occurs in every document, float64.
    topics : ndarray of shape (2 * size, size * size)
        Word probabilities; rows of the square first.
    topic_shares : ndarray of shape (n_samples, 2 * size)
    """
    check_count(n_samples, "n_samples")
    check_count(size, "size")
    check_count(n_tokens, "n_tokens", 0)
    check_scale(doc_topic_prior, "doc_topic_prior")
    check_between(background, "background", 0, 1)
    rng = check_random_state(random_state)
    line = np.repeat(np.eye(size), size, axis=1) / size
    topics = np.concatenate(
        [line, line.reshape(size, size, size).transpose(0, 2, 1).reshape(size, -1)]
    )
    topics = (1 - background) * topics + background / size**2
    topic_shares = rng.dirichlet(np.full(2 * size, float(doc_topic_prior)), size=n_samples)
    probabilities = topic_shares @ topics
    # the last digit, on which multinomial insists
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    counts = np.array([rng.multinomial(n_tokens, row) for row in probabilities])
    return sp.csr_matrix(counts, dtype=np.float64), topics, topic_shares


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
    check_count(n_samples, "n_samples")
    check_between(noise_variance, "noise_variance", 0)
    check_between(activation_probability, "activation_probability", 0, 1)
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

"""The stationary law of the process between levels, on exact draws from Gaussians whose normalisers
are known.

f_k(x) = exp(c_k - x^2 / (2 s_k^2)), log Z_k = c_k + log s_k + log(2 pi) / 2. z-bound 4.5: 7e-6 a
comparison if normal; 20 replications with a t-test on their mean: 4.5 standard errors with 19
degrees of freedom is 2.5e-4, of which there are 6 in this file.
"""

import numpy as np
import pytest

from sklpf.reweighting import level_process, mbar, overlap_matrix

SCALES, OFFSETS = np.array([4.0, 3.0, 2.0, 1.5]), np.array([0.0, 2.0, -1.0, 0.5])
CURVE = OFFSETS + np.log(SCALES) - OFFSETS[0] - np.log(SCALES[0])


def draws(rng, counts):
    levels = np.repeat(np.arange(4), counts)
    x = rng.normal(size=len(levels)) * SCALES[levels]
    vectors = OFFSETS - x[:, np.newaxis] ** 2 / (2 * SCALES**2)
    return vectors + rng.normal(size=(len(x), 1)), levels  # any constant of x


@pytest.mark.parametrize("counts", [(200, 200, 200, 200), (400, 50, 0, 100)])
@pytest.mark.parametrize("off", [0.0, 1.0])
def test_is_right_however_often_levels_are_visited(counts, off):
    """Also with a pseudo-prior that is a nat off, and for a level without states."""
    rng = np.random.default_rng(1)
    tilt = -CURVE + off * np.array([0.0, 1.0, -1.0, 1.0])
    curves = np.array([level_process(*draws(rng, counts), tilt) for _ in range(20)])
    error = curves[:, 1:].std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(curves[:, 0] == 0)
    assert np.all(np.abs(curves[:, 1:].mean(axis=0) - CURVE[1:]) < 4.5 * error)
    assert error.max() < 0.05


def test_levels_that_nothing_connects_give_no_number():
    vectors = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    assert np.isnan(level_process(vectors, np.array([0, 1]), np.zeros(2))).any()


def test_overlap_matrix_is_that_of_a_stochastic_matrix():
    vectors, levels = draws(np.random.default_rng(3), (300, 0, 200, 400))
    counts = np.bincount(levels, minlength=4)
    zeta = mbar(vectors, counts)
    matrix = overlap_matrix(vectors, counts, zeta)
    assert matrix.shape == (3, 3)
    values = np.linalg.eigvalsh(matrix)
    assert values[-1] == pytest.approx(1, abs=1e-8)
    assert 0 < values[-2] < 0.95
    apart = np.array([[0.0, -50.0], [0.0, -50.0], [-50.0, 0.0]])
    assert np.linalg.eigvalsh(overlap_matrix(apart, np.array([2, 1]), np.zeros(2)))[-2] > 0.999

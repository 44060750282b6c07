"""MBAR and the stationary law of the process between levels, on exact draws from Gaussians whose
normalisers are known.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

from sklpf.reweighting import level_process, mbar, overlap_matrix

SCALES = np.array([1.0, 1.4, 2.0, 3.0])
OFFSETS = np.array([0.0, 2.0, -1.0, 0.5])
CURVE = OFFSETS + np.log(SCALES)


def gaussian_samples(counts, seed=0):
    """Vectors log f_k(x) of centred Gaussians exp(c_k - x^2 / 2 scale_k^2), counts[k] draws
    from each.
    """
    x = np.random.default_rng(seed).normal(scale=np.repeat(SCALES, counts))
    return OFFSETS - 0.5 * (x[:, np.newaxis] / SCALES) ** 2


def test_is_right_on_average():
    """z-bound 4.2 on each of three means of 200 independent estimates: false alarm below 1e-4 in
    all.
    """
    counts = np.array([30, 30, 30, 30])
    estimates = np.array([mbar(gaussian_samples(counts, seed), counts) for seed in range(200)])
    error = estimates - CURVE
    z = error[:, 1:].mean(axis=0) / (error[:, 1:].std(axis=0, ddof=1) / np.sqrt(200))
    assert np.abs(z).max() < 4.2


@pytest.mark.parametrize("empty", [[], 0, 1, 3])
def test_solves_its_fixed_point_and_levels_without_samples_follow_from_the_others(empty):
    counts = np.array([400, 300, 200, 500])
    counts[empty] = 0
    vectors = gaussian_samples(counts)
    sampled = np.flatnonzero(counts)
    estimate, without = mbar(vectors, counts), mbar(vectors[:, sampled], counts[sampled])
    np.testing.assert_allclose(estimate[sampled] - estimate[sampled[0]], without, atol=1e-9)
    terms = vectors[:, sampled] + np.log(counts[sampled]) - estimate[sampled]
    mixture = logsumexp(terms, axis=1, keepdims=True)
    everything = logsumexp(vectors - mixture, axis=0)
    np.testing.assert_allclose(everything - everything[0], estimate, atol=1e-9)


def test_densities_may_be_zero():
    """Uniform on (0, 1) and on (0, 2): 10 draws of the first, of the second's 20 a half lies
    outside (0, 1).
    """
    vectors = np.zeros((30, 2))
    vectors[20:, 0] = -np.inf
    assert mbar(vectors, [10, 20])[1] == pytest.approx(np.log(2), abs=1e-9)


@pytest.mark.parametrize(
    ("vectors", "counts", "message"),
    [
        (np.zeros((3, 2)), [1, 1, 1], r"\(N, K\)"),
        (np.zeros(3), [3], r"\(N, K\)"),
        (np.zeros((3, 2)), [1, 1], "numbers of the 3 samples"),
        (np.zeros((3, 2)), [4, -1], "numbers of the 3 samples"),
        (np.zeros((0, 2)), [0, 0], "numbers of the 0 samples"),
        (np.full((3, 2), np.nan), [1, 2], "NaN"),
        (np.full((3, 2), np.inf), [1, 2], r"\+inf"),
        (np.full((3, 2), -np.inf), [1, 2], "density 0"),
    ],
)
def test_bad_input_is_named(vectors, counts, message):
    with pytest.raises(ValueError, match=message):
        mbar(vectors, counts)


# ---- the process between levels
@pytest.mark.parametrize("counts", [(200, 200, 200, 200), (400, 50, 0, 100)])
@pytest.mark.parametrize("off", [0.0, 1.0])
def test_the_process_is_right_however_often_levels_are_visited(counts, off):
    """Also with a pseudo-prior that is a nat off, for a level without states, and with any constant
    of each draw. 20 replications: 4.5 standard errors with 19 degrees of freedom are a false alarm
    in 2.5e-4 of 12.
    """
    levels, tilt = np.repeat(np.arange(4), counts), -CURVE + off * np.array([0.0, 1.0, -1.0, 1.0])
    constants = np.random.default_rng(1).normal(size=(20, len(levels), 1))
    curves = np.array(
        [
            level_process(gaussian_samples(counts, seed) + constant, levels, tilt)
            for seed, constant in enumerate(constants)
        ]
    )
    error = curves[:, 1:].std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(curves[:, 0] == 0)
    assert np.all(np.abs(curves[:, 1:].mean(axis=0) - CURVE[1:]) < 4.5 * error)
    assert error.max() < 0.05


def test_levels_that_nothing_connects_give_no_number():
    vectors = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    assert np.isnan(level_process(vectors, np.array([0, 1]), np.zeros(2))).any()


def test_overlap_matrix_is_that_of_a_stochastic_matrix():
    counts = np.array([300, 0, 200, 400])
    vectors = gaussian_samples(counts, 3)
    matrix = overlap_matrix(vectors, counts, mbar(vectors, counts))
    assert matrix.shape == (3, 3)
    values = np.linalg.eigvalsh(matrix)
    assert values[-1] == pytest.approx(1, abs=1e-8)
    assert 0 < values[-2] < 0.95
    apart = np.array([[0.0, -50.0], [0.0, -50.0], [-50.0, 0.0]])
    assert np.linalg.eigvalsh(overlap_matrix(apart, np.array([2, 1]), np.zeros(2)))[-2] > 0.999

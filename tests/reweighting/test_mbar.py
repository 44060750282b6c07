"""MBAR: the minimum of its convex function, right values, special cases, and bad input."""

import numpy as np
import pytest
from scipy.special import logsumexp

from sklpf.reweighting import bar, mbar

SCALES = np.array([1.0, 1.4, 2.0, 3.0])
LOG_NORMALISERS = np.log(SCALES) + 0.5 * np.log(2 * np.pi)


def gaussian_samples(counts, seed=0):
    """Vectors log f_k(x) of centred Gaussians exp(-x^2 / 2 scale_k^2), counts[k] draws
    from each.
    """
    x = np.random.default_rng(seed).normal(scale=np.repeat(SCALES, counts))
    return -0.5 * (x[:, np.newaxis] / SCALES) ** 2


def test_solves_its_fixed_point():
    counts = np.array([40, 30, 20, 50])
    vectors = gaussian_samples(counts)
    estimate = mbar(vectors, counts)
    mixture = logsumexp(vectors + np.log(counts) - estimate, axis=1, keepdims=True)
    again = logsumexp(vectors - mixture, axis=0)
    np.testing.assert_allclose(again - again[0], estimate, atol=1e-9)


def test_is_right_on_average():
    """z-bound 4.2 on each of three means of 200 independent estimates: false alarm below 1e-4 in
    all.
    """
    counts = np.array([30, 30, 30, 30])
    estimates = np.array([mbar(gaussian_samples(counts, seed), counts) for seed in range(200)])
    error = estimates - (LOG_NORMALISERS - LOG_NORMALISERS[0])
    z = error[:, 1:].mean(axis=0) / (error[:, 1:].std(axis=0, ddof=1) / np.sqrt(200))
    assert np.abs(z).max() < 4.2


def test_two_levels_are_bennetts_acceptance_ratio():
    counts = np.array([35, 60, 0, 0])
    vectors = gaussian_samples(counts)[:, :2]
    ratios = vectors[:, 1] - vectors[:, 0]
    assert mbar(vectors, counts[:2])[1] == pytest.approx(bar(ratios[:35], -ratios[35:]), abs=1e-8)


@pytest.mark.parametrize("empty", [0, 1, 3])
def test_levels_without_samples_follow_from_the_others(empty):
    counts = np.array([400, 400, 400, 400])
    counts[empty] = 0
    vectors = gaussian_samples(counts)
    sampled = np.delete(np.arange(4), empty)
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

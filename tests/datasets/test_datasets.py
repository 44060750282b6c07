"""Documents about bars, and whitened patches of images."""

import functools

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from sklpf.datasets import make_bars_corpus, make_patches


def test_topics_are_rows_and_columns_of_the_square():
    X, topics, shares = make_bars_corpus(50, size=3, n_tokens=20, random_state=0)
    pictures = topics.reshape(6, 3, 3) * 3
    for i in range(3):
        np.testing.assert_array_equal(pictures[i], np.eye(3)[i][:, None] * np.ones(3))
        np.testing.assert_array_equal(pictures[3 + i], pictures[i].T)
    assert X.shape == (50, 9)
    assert shares.shape == (50, 6)
    np.testing.assert_array_equal(X.sum(axis=1).A1, 20)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_words_are_as_frequent_as_their_documents_say():
    X, topics, shares = make_bars_corpus(4000, size=3, background=0.3, random_state=0)
    np.testing.assert_allclose(topics.sum(axis=1), 1)
    assert topics.min() == pytest.approx(0.3 / 9)
    residual = X.toarray() - 100 * shares @ topics
    error = np.sqrt(np.mean(X.toarray(), axis=0) / 4000)
    # 9 normal values: a false alarm in 2e5 runs
    assert np.all(np.abs(residual.mean(axis=0)) < 5 * error)


# ---- whitened patches of images
def smooth(n=3, shape=(64, 96), seed=0):
    """Images whose pixels depend on their neighbours, intensities from 0 to 255."""
    noise = np.random.default_rng(seed).normal(size=(n, *shape)).cumsum(axis=1).cumsum(axis=2)
    low, high = noise.min(axis=(1, 2), keepdims=True), noise.max(axis=(1, 2), keepdims=True)
    return 255 * (noise - low) / (high - low)


SMALL = {"size": 8, "n_patches": 400, "n_components": 10, "n_test": 100, "random_state": 0}


def test_training_rows_are_white():
    X_train, X_test, whitening, log_det = make_patches(smooth(), **SMALL)
    assert X_train.shape == (400, 10)
    assert X_test.shape == (100, 10)
    np.testing.assert_allclose(X_train.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(np.cov(X_train.T), np.eye(10), atol=1e-8)
    # no component sees a patch's mean
    np.testing.assert_allclose(whitening.components_.sum(axis=1), 0, atol=1e-8)
    assert isinstance(log_det, float)


def test_rows_are_patches_of_log_intensities():
    """With all components kept, rows go back to patches of the image, from places that differ."""
    image = smooth(1, (48, 48))
    data = make_patches(image, 4, 300, 15, n_test=50, block_size=12, random_state=0)
    windows = np.lib.stride_tricks.sliding_window_view(np.log1p(image[0]), (4, 4)).reshape(-1, 16)
    windows = windows - windows.mean(axis=1, keepdims=True)
    for rows in data.X_train, data.X_test:
        found = data.whitening.inverse_transform(rows)
        distances = np.abs(found[:, np.newaxis] - windows).max(axis=2)
        assert distances.min(axis=1).max() < 1e-10
        assert len(np.unique(distances.argmin(axis=1))) == len(rows)


@pytest.mark.parametrize("block_size", [8, 32])
def test_no_pixel_is_in_both_sets(block_size):
    """Where the blocks for testing are uniform, so are all test patches, and no training patch sees
    an edge.
    """
    image = smooth(1)[0]
    rows, columns = (np.arange(n) // block_size for n in image.shape)
    for_testing = (rows[:, np.newaxis] + columns) % 2 == 1
    image[for_testing] = 1e6
    options = SMALL | {"n_patches": 48, "n_test": 40} if block_size == 8 else SMALL
    data = make_patches([image], block_size=block_size, **options)
    np.testing.assert_allclose(data.X_test - data.X_test[0], 0, atol=1e-6)
    assert np.abs(data.whitening.inverse_transform(data.X_train)).max() < np.log(256)
    assert len(np.unique(data.X_train.round(6), axis=0)) == len(data.X_train)
    image[~for_testing] = 0
    with pytest.raises(ValueError, match="n_components=10 is more than the 0 dimensions"):
        make_patches([image], block_size=block_size, **options)


def test_likelihood_of_rows_becomes_that_of_patches():
    """A Gaussian of rows plus log_det is the Gaussian of the patches' coordinates on axes of our
    own.
    """
    data = make_patches(smooth(), **SMALL)
    patches = data.whitening.inverse_transform(data.X_test) - data.whitening.mean_
    training = data.whitening.inverse_transform(data.X_train) - data.whitening.mean_
    axes = np.linalg.svd(training, full_matrices=False)[2][:10]
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))[0]
    y_train, y_test = training @ axes.T @ rotation, patches @ axes.T @ rotation
    law = multivariate_normal(y_train.mean(axis=0), np.cov(y_train.T, bias=True))
    rows = GaussianMixture(1, reg_covar=0).fit(data.X_train).score_samples(data.X_test)
    np.testing.assert_allclose(rows + data.log_det, law.logpdf(y_test), rtol=1e-7)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (smooth(1)[0], ValueError, r"images\[0\] has shape \(96,\)"),
        ([], ValueError, "at least one image"),
        (np.full((2, 64, 96), np.inf), ValueError, "images must be finite"),
        (np.ones((3, 64, 7)), ValueError, r"size=8 is larger than images\[0\] of shape \(64, 7\)"),
        (smooth(3, (12, 12)), ValueError, "n_patches=400 is more than the 50 places"),
        (np.tile(np.arange(96.0) % 4, (3, 64, 1)), ValueError, "=10 is more than the 3"),
        (5, TypeError, "images must be a sequence of 2-D arrays of real numbers, got int"),
        (["a"], TypeError, "images must be a sequence of 2-D arrays"),
    ],
)
def test_images_that_can_not_be_used_are_refused(images, error, message):
    with pytest.raises(error, match=message):
        make_patches(images, **SMALL)


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (make_bars_corpus, "n_samples", 0),
        (make_bars_corpus, "size", True),
        (make_bars_corpus, "n_tokens", -1),
        (make_bars_corpus, "doc_topic_prior", 0.0),
        (make_bars_corpus, "background", float("nan")),
        (make_bars_corpus, "background", 1.5),
        (functools.partial(make_patches, smooth()), "size", 1),
        (functools.partial(make_patches, smooth()), "n_patches", 10**6),
        (functools.partial(make_patches, smooth()), "n_components", 64),
        (functools.partial(make_patches, smooth()), "n_test", 0),
        (functools.partial(make_patches, smooth()), "n_test", 10**6),
        (functools.partial(make_patches, smooth()), "block_size", 7),
    ],
)
def test_parameters_that_can_not_be_used_are_refused(make, name, value):
    options = {} if make is make_bars_corpus else SMALL
    with pytest.raises(ValueError, match=name):
        make(**options | {name: value})

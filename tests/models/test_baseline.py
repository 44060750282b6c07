"""Baselines of scores: models of the training rows without structure."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone

from sklpf import (
    BernoulliRBM,
    BoltzmannMachine,
    CategoricalRBM,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    compare,
)
from sklpf.scoring._baseline import GaussianBaseline, RowsBaseline

RNG = np.random.default_rng(0)
BITS = (RNG.random((300, 6)) < [0.1, 0.3, 0.5, 0.7, 0.9, 0.5]).astype(float)
POINTS = RNG.normal(size=(400, 3)) @ RNG.normal(size=(3, 3)) + [1, 2, 3]


def in_halves(X):
    return X[: len(X) // 2], X[len(X) // 2 :]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_binary_rows_have_independent_columns(kind):
    train, test = in_halves(BITS)
    shares = (train.sum(axis=0) + 1) / (len(train) + 2)
    expected = np.mean(test @ np.log(shares) + (1 - test) @ np.log1p(-shares))
    for model in (BernoulliRBM(2, random_state=0), BoltzmannMachine()):
        if kind is sp.csr_matrix and isinstance(model, BoltzmannMachine):
            continue
        baseline = model.fit(kind(train)).score_interval(kind(test)).baseline
        assert baseline.name == "independent columns"
        assert baseline.mean == pytest.approx(expected)


def test_categories_have_independent_columns():
    X = RNG.integers(3, size=(200, 4)).astype(float)
    train, test = in_halves(X)
    shares = [(np.bincount(column, minlength=3) + 1) / 103 for column in train.T.astype(int)]
    expected = np.mean([sum(p[v] for p, v in zip(np.log(shares), row)) for row in test.astype(int)])
    baseline = CategoricalRBM(2, n_iter=5, random_state=0).fit(train).score_interval(test).baseline
    assert baseline.mean == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:the model is worse than one topic")
def test_documents_have_one_topic():
    X = RNG.poisson(1.0, size=(60, 8))
    train, test = in_halves(X)
    shares = (train.sum(axis=0) + 1) / (train.sum() + 8)
    model = LatentDirichletAllocation(2, random_state=0).fit(train)
    documents = model.score_interval(test).baseline
    words = model.score_interval(test, per="word").baseline
    assert documents.name == words.name == "one topic"
    assert documents.mean == pytest.approx(np.mean(test @ np.log(shares)))
    assert words.mean == pytest.approx(np.sum(test @ np.log(shares)) / test.sum())


def test_points_have_one_gaussian_and_few_rows_independent_columns():
    train, test = in_halves(POINTS)
    model = LinearGenerativeModel(prior="gaussian").fit(train)
    baseline = model.score_interval(test).baseline
    mean = train.mean(axis=0)
    expected = multivariate_normal(mean, np.cov(train.T, bias=True)).logpdf(test).mean()
    assert baseline.name == "one Gaussian"
    assert baseline.mean == pytest.approx(expected)
    few = model.fit(train[:14]).score_interval(test).baseline
    columns = norm(train[:14].mean(axis=0), train[:14].std(axis=0)).logpdf(test)
    assert few.name == "independent normal columns"
    assert few.mean == pytest.approx(columns.sum(axis=1).mean())


def test_moments_do_not_depend_on_batches_and_constant_columns_have_no_density():
    seen = GaussianBaseline()
    for rows in np.array_split(POINTS, 7):
        seen = seen.seen(rows)
    np.testing.assert_allclose(seen.covariance, np.cov(POINTS.T, bias=True), rtol=1e-10)
    wide = np.tile(POINTS, 100)
    many = GaussianBaseline().seen(wide)
    np.testing.assert_allclose(many.covariance, wide.var(axis=0), rtol=1e-8)
    assert GaussianBaseline().seen(np.ones((30, 2))).log_likelihood(np.ones((2, 2))) is None
    stuck = np.column_stack([POINTS[:, 0], np.full(len(POINTS), 0.1)])  # its mean is rounded
    assert GaussianBaseline().seen(stuck).log_likelihood(stuck) is None


def test_a_wide_sparse_matrix_is_never_made_dense_whole():
    """It would be 160 MB, and several arrays of that size."""
    X = sp.random_array((1000, 20_000), density=0.001, format="csr", rng=0)
    tracemalloc.start()
    seen = GaussianBaseline().seen(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    np.testing.assert_allclose(seen.mean, X.mean(axis=0), atol=1e-12)


def test_a_model_that_is_worse_says_so_once_and_others_do_not():
    """Other models are not worse: 20 fits to columns that are independent, with 1 % of the
    log-likelihood of one bit to lose, at 0.1 % each.
    """
    train, test = in_halves(BITS)
    bad = BernoulliRBM(3, learning_rate=30, average=False, random_state=0).fit(train)
    with pytest.warns(UserWarning, match="worse than independent columns.*learning_rate") as said:
        bad.score(test)
    assert len(said) == 1
    with pytest.warns(UserWarning, match="worse than independent columns"):
        interval = bad.score_interval(test)
    assert interval.baseline.is_better
    assert "worse than independent columns" in interval.notes[0]
    good = BernoulliRBM(3, random_state=0).fit(train)
    table = compare({"good": good, "bad": bad}, X=test)
    assert "worse than independent columns" in repr(table).split("bad")[1]
    pair = compare(good, bad, test)
    assert pair.remarks[-1] == f"model_b: {interval.notes[0]}"
    assert pair.remarks[-1] in repr(pair)
    assert pair.remarks[-1] in pair.summary()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(20):
            rows = (np.random.default_rng(seed).random((300, 6)) < 0.4).astype(float)
            clone(good).set_params(random_state=seed).fit(rows[:200]).score(rows[200:])
    assert not caught


def test_partial_fit_counts_rows_and_known_models_have_no_baseline():
    train, test = in_halves(BITS)
    model = BernoulliRBM(2, random_state=0)
    for first in range(0, 150, 10):
        model.partial_fit(train[first : first + 10])
    whole = BernoulliRBM(2, random_state=0).fit(train)
    expected = whole.score_interval(test).baseline.mean
    assert model.score_interval(test).baseline.mean == pytest.approx(expected)
    known = BernoulliRBM.from_parameters(np.zeros((1, 6)), np.zeros(6), np.zeros(1))
    assert known.score_interval(test).baseline is None


@pytest.mark.parametrize("mean", [-0.4, -0.2])
def test_whether_a_model_is_worse_does_not_depend_on_the_level_of_its_interval(mean):
    """An error of log Z of 0.1 nats is within three of them at -0.2 from the baseline, not at
    -0.4.
    """
    values = mean + 1e-3 * np.random.default_rng(0).normal(size=100)
    baseline = RowsBaseline("independent columns", np.zeros(100), "")
    found = [
        baseline.compare(values, 0.1 * norm.ppf(0.5 + level / 2), level).is_better
        for level in (0.5, 0.95, 0.999)
    ]
    assert found == [mean == -0.4] * 3

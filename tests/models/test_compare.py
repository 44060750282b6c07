"""compare: paired differences of models' held-out log-likelihoods, of two and of several."""

import copy
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import t as student_t
from sklearn.datasets import load_digits
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, StandardScaler

from sklpf import (
    AIS,
    BernoulliRBM,
    BoltzmannMachine,
    GaussianRBM,
    LatentDirichletAllocation,
    ParallelTempering,
    ProductOfExperts,
    compare,
)
from sklpf.comparing import ModelComparison
from sklpf.models import DecoderModel
from sklpf.scoring import ScoreInterval

BINARY = (load_digits().data > 7).astype(np.float64)
TRAIN, TEST = BINARY[:1200], BINARY[1200:]


def trained(n_components, **options):
    options |= {"batch_size": 50, "n_iter": 15, "random_state": 0}
    return BernoulliRBM(n_components, **options).fit(TRAIN)


def test_difference_is_paired():
    a, b = trained(12), trained(4)
    result = compare(a, b, TEST)
    difference = a.score_samples(TEST) - b.score_samples(TEST)
    assert isinstance(result, ScoreInterval)
    assert result.mean == pytest.approx(a.score(TEST) - b.score(TEST), abs=1e-10)
    assert result.mean == pytest.approx(difference.mean(), abs=1e-12)
    half = student_t.isf(0.025, len(TEST) - 1) * difference.std(ddof=1) / np.sqrt(len(TEST))
    np.testing.assert_allclose(result.sampling, (result.mean - half, result.mean + half))
    assert result.partition == (result.mean, result.mean)  # both log Z are exact
    assert result.combined == result.sampling
    unpaired = np.hypot(*(np.diff(model.score_interval(TEST).sampling)[0] for model in (a, b)))
    assert np.diff(result.sampling)[0] < 0.8 * unpaired
    swapped = compare(b, a, TEST)
    np.testing.assert_allclose(swapped.combined, (-result.combined[1], -result.combined[0]))


def test_errors_of_log_z_are_added_once():
    ais = AIS(n_chains=200, n_temperatures=101)
    a, b = trained(12, partition_estimator=ais), trained(8, partition_estimator=ais)
    few, many = (compare(a, b, X, ratio="difference") for X in (TEST, np.tile(TEST, (4, 1))))
    common = np.hypot(*(np.diff(model.log_partition_interval_)[0] / 2 for model in (a, b)))
    for result in (few, many):
        np.testing.assert_allclose(result.partition, (result.mean - common, result.mean + common))
        half = np.hypot(common, result.mean - result.sampling[0])
        np.testing.assert_allclose(result.combined, (result.mean - half, result.mean + half))
    assert np.diff(many.sampling)[0] == pytest.approx(np.diff(few.sampling)[0] / 2, rel=0.01)


def test_the_interval_covers():
    """The difference over a large sample lies in 95 % of the intervals of small ones."""
    rng = np.random.default_rng(0)
    a, b = (
        BernoulliRBM.from_parameters(*(rng.normal(size=size) for size in ((3, 6), 6, 3)))
        for _ in range(2)
    )
    X = a.sample(15_000, random_state=0)
    truth = compare(a, b, a.sample(200_000, random_state=1)).mean
    inside = 0
    for rows in X.reshape(150, 100, 6):
        low, high = compare(a, b, rows).combined
        inside += low <= truth <= high
    # Binomial(150, 0.95): mean 142.5, deviation 2.7; at most 131 are a false alarm in 2e-4
    assert inside > 131


# ---- the direct ratio
def two_stages(n_components=12, **options):
    """A model whose log Z is estimated, and the same after one more step on all rows."""
    options = {"partition_estimator": ParallelTempering(n_sweeps=512), "n_jobs": 1} | options
    before = trained(n_components, **options)
    return before, copy.deepcopy(before).partial_fit(TRAIN)


def test_exact_models_and_such_that_differ_much_are_not_sampled(monkeypatch):
    monkeypatch.setattr(BernoulliRBM, "_ratio_path", None)  # would raise where it is called
    assert compare(trained(12), trained(11), TEST).method == "difference"
    a = trained(12, partition_estimator=AIS(50, 50))
    b = BernoulliRBM.from_parameters(np.zeros((1, 64)), np.zeros(64), np.zeros(1))
    assert np.std(a.score_samples(TEST) - b.score_samples(TEST)) > 2.5
    assert compare(a, b, TEST).method == "difference"


class Missing(ParallelTempering):
    """Misses five nats of log Z."""

    def _read(self, run):
        result = super()._read(run)
        return replace(result, log_partition=result.log_partition - 5)


@pytest.mark.large
def test_ratios_that_disagree_are_not_converged():
    a, b = two_stages()
    a.set_params(partition_estimator=Missing(n_sweeps=512))
    with pytest.warns(ConvergenceWarning, match=r"ratio of model_b's Z to model_a's .* nats apart"):
        found = compare(b, a, TEST)
    assert not found.converged
    assert "joint standard errors" in found.reasons[0]
    b.set_params(on_nonconvergence="nan")
    assert np.isnan(compare(b, a, TEST).mean)


# ---- pipelines
def test_pipelines_are_compared_by_what_their_last_steps_say():
    X = load_digits().data
    small, large = (
        make_pipeline(Binarizer(threshold=7), BernoulliRBM(n, n_iter=3, random_state=0))
        for n in (4, 8)
    )
    small.fit(X[:1200]), large.fit(X[:1200])
    expected = compare(large[-1], small[-1], TEST)
    assert compare(large, small, X[1200:]) == expected
    assert compare(make_pipeline(large), small, X[1200:]) == expected  # a pipeline in a pipeline
    assert compare(make_pipeline(large[-1]), small[-1], TEST) == expected  # no transformer
    assert compare(make_pipeline(FunctionTransformer(), large[-1]), small[-1], TEST) == expected
    sparse = make_pipeline(FunctionTransformer(csr_matrix), large[-1])
    assert compare(sparse, small[-1], TEST) == expected
    others = make_pipeline(FunctionTransformer(csr_matrix), small[-1])
    assert compare(sparse, others, TEST) == expected


def test_pipelines_with_other_preprocessing_are_refused():
    X = np.random.default_rng(0).normal(size=(100, 3)) * [1, 2, 3]
    bare = ProductOfExperts(algorithm="ml", random_state=0).fit(X)
    scaled = make_pipeline(StandardScaler(), ProductOfExperts(algorithm="ml", random_state=0))
    scaled.fit(X)
    with pytest.raises(ValueError, match="model_a and model_b score different rows, as their prep"):
        compare(bare, scaled, X)
    for other in (lambda X: 2 * X, lambda X: X[:50], lambda X: csr_matrix(2 * X)):
        with pytest.raises(ValueError, match="different rows"):
            compare(bare, make_pipeline(FunctionTransformer(other), bare), X)
    with pytest.raises(TypeError, match="model_b must be a model of sklpf.*got sklearn.prepro"):
        compare(scaled, scaled[:-1], X)


def test_densities_probabilities_and_documents_are_not_compared():
    few = TEST[:, 20:24]
    machine = BoltzmannMachine(max_iter=2, random_state=0).fit(few)
    real = GaussianRBM(2, n_iter=2, random_state=0).fit(few)
    topics = LatentDirichletAllocation(2, random_state=0).fit(few)
    with pytest.raises(ValueError, match="model_a has densities of rows and model_b has probab"):
        compare(real, machine, few)
    with pytest.raises(ValueError, match="model_b has probabilities of documents, which can't"):
        compare(machine, topics, few)
    with pytest.raises(ValueError, match="one has densities of rows and three has probabilities"):
        compare({"one": real, "two": real, "three": machine}, X=few)
    assert compare(machine, machine, few).mean == 0
    decoders = [
        DecoderModel(np.sin, 2, likelihood=kind, noise_std=noise)
        for kind, noise in (("bernoulli", None), ("gaussian", 1.0))
    ]
    assert [decoder._discrete for decoder in decoders] == [True, False]


# ---- several models: their table
def test_models_are_paired_against_the_best():
    models = {f"{n} units": trained(n) for n in (2, 12, 6)}
    found = compare(models, TEST, level=0.9)
    assert isinstance(found, ModelComparison)
    assert list(found.scores) == ["12 units", "6 units", "2 units"]
    assert found.best == "12 units"
    assert found.scores["6 units"] == models["6 units"].score_interval(TEST, 0.9)
    for name in ("6 units", "2 units"):
        assert found.differences[name] == compare(models[name], models["12 units"], TEST, 0.9)
        assert found.differences[name].mean < 0
    assert "12 units" not in found.differences


def test_summary_is_the_table_below_what_it_holds():
    found = compare({"a": trained(2), "b": trained(6)}, X=TEST)
    title, header, first, second, baseline, note = found.summary().splitlines()
    assert title.startswith("log-likelihood per row of these fitted models (nats); of procedures: ")
    assert header.strip().split("  ")[-1].strip() == "difference from the first"
    assert first.startswith("  b ")
    assert second.startswith("  a ")
    assert baseline.startswith("  (independent columns)  ")
    scatter = found.differences["a"].scatter
    assert "unsettled" not in first
    assert second.endswith(f"unsettled, ± {scatter:.2g}")  # a sentence once, below the table
    assert note.startswith("  unsettled: scattered by more than the interval")
    lines = [line.strip() for line in repr(found).splitlines()]
    assert lines == [line.strip() for line in (header, first, second, baseline, note)]
    assert found._repr_html_().endswith(f"<p>{escape(note.strip())}</p>")


def test_models_that_are_not_trusted_come_last_with_the_reason():
    hasty = ParallelTempering(n_sweeps=512, tol=1e-9)
    untrusted = trained(12, partition_estimator=hasty, on_nonconvergence="nan")
    found = compare({"good": untrusted, "worse": trained(2)}, X=TEST)
    assert found.best == "worse"
    assert not found.scores["good"].converged
    assert not found.differences["good"].converged
    frame = found.to_frame()
    assert list(frame["converged"]) == [True, False]
    assert "above tol" in frame.loc["good", "reasons"]
    assert "not converged: good: log Z is not to be trusted" in str(found)


def test_what_can_not_be_compared_is_named():
    model = trained(2)
    both = {"one": model, "two": model}
    three = (model, model, model, TEST)
    for wrong in (three, (model, model), (model, None, TEST), ({"one": model}, model, TEST)):
        with pytest.raises(TypeError, match="compare needs two models and rows, .* or models by"):
            compare(*wrong)
    for models in ({"one": model}, {"1": model, 1: model}):
        with pytest.raises(ValueError, match="at least 2 models of different names"):
            compare(models, X=TEST)
    with pytest.raises(ValueError, match="model_b has densities of rows"):
        compare(model, KernelDensity().fit(TRAIN), TEST)
    with pytest.raises(TypeError, match="two must be a model of sklpf"):
        compare({"one": model, "two": 2}, X=TEST)
    for ratio in ("direct", None):
        with pytest.raises(ValueError, match='ratio must be "auto" or "difference"'):
            compare(both, X=TEST, ratio=ratio)
    for level in (0, 2):
        with pytest.raises(ValueError, match="level must lie"):
            compare(both, X=TEST, level=level)
    with pytest.raises(ValueError, match="at least 2 rows"):
        compare(model, model, TEST[:1])


def test_densities_of_scikit_learn_are_compared_on_the_same_rows():
    """The paired difference is that of both log densities, row by row."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    model = GaussianRBM(1, n_iter=2, random_state=0).fit(rows[:40])
    mixture = make_pipeline(StandardScaler(), GaussianMixture(1)).fit(rows[:40])
    kernels = KernelDensity().fit(rows[:40])
    apart = compare(kernels, model, rows[40:])
    expected = kernels.score_samples(rows[40:]) - model.score_samples(rows[40:])
    assert apart.mean == pytest.approx(expected.mean())
    assert "kernels" in str(compare({"kernels": kernels, "units": model}, X=rows[40:]))
    with pytest.raises(ValueError, match="score different rows"):
        compare(mixture, model, rows[40:])
    with pytest.raises(TypeError, match="a density of scikit-learn such as GaussianMixture"):
        compare(model, IsolationForest(n_estimators=5, random_state=0).fit(rows), rows)

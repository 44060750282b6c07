"""compare of several models: their table."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from sklpf import BernoulliRBM, ParallelTempering, compare
from sklpf.models import ModelComparison

BINARY = (load_digits().data > 7).astype(np.float64)
TRAIN, TEST = BINARY[:1200], BINARY[1200:]


def trained(n_components, **options):
    return BernoulliRBM(n_components, batch_size=50, n_iter=15, random_state=0, **options).fit(
        TRAIN
    )


def test_models_are_paired_against_the_best():
    models = {f"{n} units": trained(n) for n in (2, 12, 6)}
    found = compare(models, X=TEST, level=0.9)
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
    title, header, first, second = found.summary().splitlines()
    assert (
        title == "log-likelihood per row of these fitted models (nats); of procedures: compare_fits"
    )
    assert header.strip().split("  ")[-1].strip() == "difference from the first"
    assert first.startswith("  b ")
    assert second.startswith("  a ")
    assert [line.strip() for line in repr(found).splitlines()] == [
        line.strip() for line in (header, first, second)
    ]


def test_models_that_are_not_trusted_come_last_with_the_reason():
    untrusted = trained(
        12, partition_estimator=ParallelTempering(n_sweeps=512, tol=1e-9), on_nonconvergence="nan"
    )
    found = compare({"good": untrusted, "worse": trained(2)}, X=TEST)
    assert found.best == "worse"
    assert not found.scores["good"].converged
    assert not found.differences["good"].converged
    frame = found.to_frame()
    assert list(frame["converged"]) == [True, False]
    assert "above tol" in frame.loc["good", "reasons"]
    assert "not converged: good: log Z is not to be trusted" in str(found)


def test_bad_input():
    model = trained(2)
    for wrong in ((model, model), (model, None, TEST), ({"one": model}, model, TEST)):
        with pytest.raises(TypeError, match="compare needs two models and rows, .* or models by"):
            compare(*wrong)
    for models in ({"one": model}, {"1": model, 1: model}):
        with pytest.raises(ValueError, match="at least 2 models of different names"):
            compare(models, X=TEST)
    with pytest.raises(TypeError, match="two must be a model of sklpf"):
        compare({"one": model, "two": 2}, X=TEST)
    with pytest.raises(ValueError, match="ratio must be"):
        compare({"one": model, "two": model}, X=TEST, ratio=None)
    with pytest.raises(ValueError, match="level must lie"):
        compare({"one": model, "two": model}, X=TEST, level=2)

"""from_dimod: the energies, their order of variables, the offset and log Z against enumeration."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from known_problems import all_rows
from scipy.special import logsumexp

from sklpf import BoltzmannMachine, ParallelTempering
from sklpf.interop import from_dimod


def states(n, vartype):
    x = all_rows(n).astype(int)
    return 2 * x - 1 if vartype == "SPIN" else x


def energies(bqm, vartype):
    """Term by term."""
    names = list(bqm.linear)
    values = []
    for x in states(len(names), vartype):
        at = dict(zip(names, x))
        energy = bqm.offset + sum(bias * at[name] for name, bias in bqm.linear.items())
        values.append(energy + sum(b * at[i] * at[j] for (i, j), b in bqm.quadratic.items()))
    return np.array(values)


def random_bqm(vartype, names="dcba", seed=0):
    """What has the attributes of dimod's."""
    rng = np.random.default_rng(seed)
    pairs = [(b, a) for i, a in enumerate(names) for b in names[:i] if rng.random() < 0.7]
    linear = dict(zip(names, rng.normal(size=len(names))))
    quadratic = dict(zip(pairs, rng.normal(size=len(pairs))))
    offset = float(rng.normal())
    return SimpleNamespace(linear=linear, quadratic=quadratic, offset=offset, vartype=vartype)


@pytest.mark.parametrize(("vartype", "beta"), [("SPIN", 0.3), ("BINARY", 1.0)])
def test_probabilities_are_those_of_the_energies(vartype, beta):
    bqm = random_bqm(vartype)
    model = from_dimod(bqm, beta)
    log_f = -beta * energies(bqm, vartype)
    X = pd.DataFrame(states(4, "BINARY"), columns=list("dcba"))
    np.testing.assert_allclose(model.score_samples(X), log_f - logsumexp(log_f), atol=1e-12)
    assert model.log_partition_ == pytest.approx(logsumexp(log_f), abs=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(X[list("abcd")])


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
def test_models_of_dimod(vartype):
    dimod = pytest.importorskip("dimod", reason="dimod is not installed (dependency group interop)")
    bqm = dimod.generators.gnp_random_bqm(9, 0.5, vartype, random_state=1)
    bqm.offset = 2.5
    model = from_dimod(bqm, 0.5)
    found = dimod.ExactSolver().sample(bqm)
    model.estimate_log_partition()
    assert model.log_partition_ == pytest.approx(logsumexp(-0.5 * found.record.energy), abs=1e-10)
    rows = found.record.sample[:, [found.variables.index(name) for name in bqm.linear]]
    scores = model.score_samples((rows + 1) / 2 if vartype == "SPIN" else rows)
    expected = -0.5 * found.record.energy - model.log_partition_
    np.testing.assert_allclose(scores, expected, atol=1e-10)


def sample_set(bqm, vartype, order, n_occurrences=1):
    """All states of a model as dimod's SampleSet has them, with its own order of variables."""
    places = [list(bqm.linear).index(name) for name in order]
    sample = states(len(order), bqm.vartype)[:, places].astype(np.int8)
    sample = sample if vartype == bqm.vartype else (sample + 1) // 2
    counts = np.broadcast_to(n_occurrences, len(sample))
    record = SimpleNamespace(sample=sample, num_occurrences=counts)
    return SimpleNamespace(record=record, variables=order, vartype=SimpleNamespace(name=vartype))


@pytest.mark.parametrize(
    ("vartype", "names", "order"),
    [("SPIN", "dcba", list("bdca")), ("BINARY", [3, 1, 0, 2], [0, 1, 2, 3])],
)
def test_sample_sets_are_read_in_their_own_order(vartype, names, order):
    bqm = random_bqm("SPIN", names)
    model = from_dimod(bqm)
    log_p = -energies(bqm, "SPIN") - logsumexp(-energies(bqm, "SPIN"))
    rows = sample_set(bqm, vartype, order)
    np.testing.assert_allclose(model.score_samples(rows), log_p, atol=1e-12)
    reads = sample_set(bqm, vartype, order, np.arange(16))
    np.testing.assert_allclose(model.score_samples(reads), np.repeat(log_p, range(16)), atol=1e-12)
    assert model.score(reads) == pytest.approx(log_p @ np.arange(16) / 120, abs=1e-12)
    assert list(model.feature_names_in_) == [str(name) for name in names]
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.score_samples(states(4, "BINARY"))
    assert model.entropy_interval().mean == pytest.approx(-np.exp(log_p) @ log_p, abs=1e-12)


def test_sample_sets_of_other_variables_and_models_that_know_none_are_refused():
    bqm = random_bqm("SPIN")
    with pytest.raises(ValueError, match="give samples of the same binary quadratic model"):
        from_dimod(random_bqm("SPIN", "abce")).score(sample_set(bqm, "SPIN", list("abcd")))
    with pytest.raises(TypeError, match="only models of from_dimod know the order"):
        BoltzmannMachine().fit(sample_set(bqm, "SPIN", list("abcd")))


def test_the_entropy_of_a_model_with_names_is_estimated_without_a_word():
    names = [f"x{i}" for i in range(24)]
    model = from_dimod(random_bqm("SPIN", names), 0.1, random_state=1)
    model.set_params(partition_estimator=ParallelTempering(n_sweeps=1024))
    assert 0 < model.entropy_interval(200, random_state=0).mean < 24 * np.log(2)


@pytest.mark.parametrize(
    ("changed", "beta", "error", "message"),
    [
        ({"vartype": "INTEGER"}, 1.0, TypeError, "takes a BinaryQuadraticModel of dimod"),
        ({"linear": {}, "quadratic": {}}, 1.0, ValueError, "bqm has no variables"),
        ({"offset": np.nan}, 1.0, ValueError, "bqm.offset"),
        ({"quadratic": {("a", "a"): 1.0}}, 1.0, ValueError, "diagonal"),
        ({"linear": {**dict.fromkeys("abc", 0.0), "d": np.inf}}, 1.0, ValueError, "bqm.linear"),
        ({}, -1.0, ValueError, "beta must be positive"),
    ],
)
def test_what_is_no_model_is_refused(changed, beta, error, message):
    with pytest.raises(error, match=message):
        from_dimod(SimpleNamespace(**vars(random_bqm("SPIN")) | changed), beta)
    with pytest.raises(TypeError, match="takes a BinaryQuadraticModel"):
        from_dimod(object())

"""RAISE: weights are unbiased, and every kind of start is labelled.

Seeds are fixed. z-bound 4.5 unless stated: a false-alarm rate of 7e-6 a comparison for a normal
error.
"""

import numpy as np
import pandas as pd
import pytest
from convergence import may_not_converge, quietly
from known_problems import make_rbm_problem, random_layers
from scipy.sparse import csr_array
from scipy.special import logsumexp

from sklpf import Exact, Path
from sklpf.models import RBMPath
from sklpf.partition import RAISE

Z_BOUND = 4.5


def tiny_path(weights, n_hidden=2, n_visible=3, seed=0):
    rng = np.random.default_rng(seed)
    parameters = random_layers(rng, n_hidden, n_visible, 2)
    mean, ladder = np.full(n_visible, 0.3), np.linspace(0, 1, 4)
    return RBMPath(*parameters, mean, ladder=ladder, weights=weights)


@pytest.mark.parametrize("weights", ["joint", "marginal"])
def test_mean_weight_from_exact_starts_is_the_inverse_ratio(weights):
    path = tiny_path(weights, n_hidden=4, n_visible=6)
    starts = Exact().sample(path, 4000, np.random.default_rng(0))
    starts = starts.v.astype(float)
    raised = quietly(RAISE(starts=starts, ladder=path.ladder, random_state=0), path)
    log_weights = raised.run_.reverse
    by_start = np.exp(log_weights + Exact().fit(path).log_partition_).mean(axis=1)
    assert abs(by_start.mean() - 1) / (by_start.std() / np.sqrt(4000)) < Z_BOUND
    assert by_start.std() > 0.1  # four levels: the weights are far from constant


def test_exact_starts_give_an_upper_bound():
    result = RAISE(random_state=0, n_temperatures=200).fit(make_rbm_problem("easy").path).result_
    log_weights = result.diagnostics["log_weights"]
    assert log_weights.shape == (10, 10)
    assert (result.statement, result.diagnostics["starts"]) == ("upper bound", "exact")
    assert result.log_partition == pytest.approx(np.log(100) - logsumexp(log_weights), abs=1e-12)
    assert result.interval(0.95) == (-np.inf, pytest.approx(result.log_partition + np.log(20)))
    assert result.degrees_of_freedom == 9
    assert result.n_sweeps == 100 * 199


@may_not_converge()  # neither a bound nor an estimate
def test_rows_of_data_are_labelled_conservative_in_any_container():
    problem = make_rbm_problem("digits")
    rows = Exact().sample(problem.path, 6, np.random.default_rng(0)).v.astype(float)
    kinds = rows, rows.tolist(), csr_array(rows), pd.DataFrame(rows), rows.astype(bool)
    estimators = [RAISE(starts=starts, n_temperatures=50, random_state=0) for starts in kinds]
    results = [estimator.fit(problem.path).result_ for estimator in estimators]
    first = results[0]
    assert first.statement == "conservative, not a bound"
    assert first.interval() == (-np.inf, np.inf)
    by_start = first.diagnostics["log_partition_by_start"]
    assert first.log_partition == pytest.approx(by_start.mean(), abs=1e-12)
    assert np.isnan(first.std_error)
    assert not first.converged
    assert "neither a bound nor an estimate" in first.reasons[-1]
    assert all(result.log_partition == first.log_partition for result in results)


class TooLarge(RBMPath):
    """An RBM that says it has too many units to be enumerated."""

    log2_states = 99


@may_not_converge()  # neither a bound nor an estimate
def test_tempered_starts_are_labelled_approximate():
    problem = make_rbm_problem("easy")
    path = problem.path
    layers = path.components, path.intercept_visible, path.intercept_hidden
    path = TooLarge(*layers, np.full(64, 0.5))
    results = [RAISE(n_temperatures=300, random_state=seed).fit(path).result_ for seed in range(3)]
    for result in results:
        assert (result.statement, result.diagnostics["starts"]) == ("approximate", "tempered")
        assert result.interval() == (-np.inf, np.inf)
        assert np.isnan(result.std_error)
        assert not result.converged
    # Tempered starts are practically exact here. Three runs together: t with 27 degrees of freedom
    # exceeds 4.5 with a probability of 1e-4.
    by_start = (result.diagnostics["log_partition_by_start"] for result in results)
    errors = [values.std(ddof=1) / np.sqrt(10) for values in by_start]
    off = sum(result.log_partition - problem.log_partition for result in results)
    assert abs(off) < 4.5 * np.linalg.norm(errors)


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        (np.full((3, 64), np.nan), "starts can't be used: visible rows must hold 0 and 1 only"),
        (np.full((3, 64), 0.5), "starts can't be used: visible rows must hold 0 and 1 only"),
        (np.zeros((3, 63)), r"starts can't be used: visible rows must have the shape \(n, 64\)"),
        (np.zeros(64), r"starts can't be used: visible rows must have the shape \(n, 64\)"),
        (np.zeros((1, 64)), "starts must hold at least 2 rows"),
        (np.zeros((0, 64)), "starts must hold at least 2 rows"),
        ("data", "starts' parameter of RAISE must be"),
    ],
)
def test_bad_starts_are_named(starts, message):
    with pytest.raises(ValueError, match=message):
        RAISE(starts=starts, random_state=0).fit(make_rbm_problem("easy").path)


class Half(Path):
    """A density on the positive numbers only."""

    base_log_partition = 0.0

    def log_f(self, state, levels):
        return np.where(state > 0, -state, -np.inf)

    def sample_base(self, n, stream):
        return stream.generator().exponential(size=n)

    def gibbs(self, state, levels, stream):
        return self.sample_base(len(state), stream)


@may_not_converge()  # neither a bound nor an estimate
def test_starts_outside_the_support_are_named():
    with pytest.raises(ValueError, match="starts must be possible under the model: log f of row 1"):
        RAISE(starts=np.array([1.0, -1.0]), n_temperatures=5).fit(Half())
    started = RAISE(starts=[1.0, 2.0], n_temperatures=5, random_state=0).fit(Half())
    assert started.log_partition_ == 0.0

"""Paths with one log Z for each row of data: the same bits for a row whatever runs beside it."""

import copy

import joblib
import numpy as np
import pytest
from convergence import may_not_converge
from interruption import kept_files
from scipy.special import expit, logsumexp
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, BDMC, Exact, ParallelTempering
from sklpf.partition import Alarm, PartitionEstimator, PartitionResult
from sklpf.paths import Path
from sklpf.testing import check_path

N_COINS = 4
LOG_ROOT_TAU = 0.5 * np.log(2 * np.pi)
STATES = (np.arange(2**N_COINS)[:, np.newaxis] >> np.arange(N_COINS)) & 1


class Coins(Path):
    """Row t is x = weights @ (four fair coins) + noise: log Z_t = log p(x_t); in NumPy alone."""

    base_log_partition = 0.0
    log2_states = N_COINS
    n_enumeration_blocks = 1

    def __init__(self, x, noise=0.5):
        self.x = np.asarray(x, dtype=float)
        self.n_rows = len(self.x)
        self.weights, self.noise = np.array([1.0, -2.0, 0.5, 0.7]), noise

    def row(self, t):
        row = copy.copy(self)
        row.x, row.n_rows = self.x[t], None
        return row

    def row_content(self, t):
        return self.x[t].tobytes()

    def log_likelihood(self, state):
        error = (self.x - (state * self.weights).sum(axis=1)) / self.noise
        return -0.5 * error**2 - np.log(self.noise) - LOG_ROOT_TAU

    def log_f(self, state, levels):
        return -N_COINS * np.log(2) + self.ladder[levels] * self.log_likelihood(state)

    def sample_base(self, n, stream):
        return stream.generator().integers(2, size=(n, N_COINS))

    def gibbs(self, state, levels, stream):
        state, i = state.copy(), stream.step % N_COINS
        uniforms = stream.generator().random(len(state))
        state[:, i] = 1
        on = self.log_likelihood(state)
        state[:, i] = 0
        state[:, i] = uniforms < expit(self.ladder[levels] * (on - self.log_likelihood(state)))
        return state

    def enumerate_block(self, block, level):
        return self.log_f(STATES, np.full(len(STATES), level))

    def sample_target(self, n, stream):
        weights = np.exp(self.enumerate_block(0, len(self.ladder) - 1))
        return STATES[stream.generator().choice(len(STATES), size=n, p=weights / weights.sum())]

    @property
    def truth(self):
        return np.array([logsumexp(self.row(t).enumerate_block(0, 1)) for t in range(self.n_rows)])


X = np.random.default_rng(0).normal(size=5)
SAMPLERS = {
    "AIS": AIS(20, 10, random_state=3),
    "adaptive AIS": AIS(20, 10, ladder="adaptive", random_state=3),
    "PT": ParallelTempering(3, 3, 64, random_state=3),
    "BDMC": BDMC(20, 20, random_state=3),
}


def numbers(estimator, path):
    with may_not_converge():
        estimator.fit(path)
    return np.array(
        [
            estimator.log_partition_,
            estimator.log_partition_std_error_,
            *estimator.log_partition_interval_,
        ]
    )


def test_one_row_keeps_the_contract_of_a_path():
    check_path(Coins(X).row(2).with_ladder([0, 0.4, 1]))


# ---- values
def test_exact_gives_every_row():
    path = Coins(X)
    exact = Exact().fit(path)
    np.testing.assert_allclose(exact.log_partition_, path.truth, rtol=1e-12)
    assert exact.result_.statement == "exact"
    assert exact.converged_ is True
    np.testing.assert_array_equal(exact.log_partition_std_error_, np.zeros(5))
    for bound in exact.log_partition_interval_:
        np.testing.assert_array_equal(bound, exact.log_partition_)


def test_samplers_agree_with_enumeration_within_their_error():
    path = Coins(X)
    for estimator in (AIS(100, 50, random_state=0), ParallelTempering(6, 4, 256, random_state=0)):
        estimator.fit(path)
        assert estimator.converged_
        assert np.all(estimator.log_partition_std_error_ < 0.3)
        low, high = estimator.result_.interval(1 - 1e-5)  # 5 rows twice: false alarms in 1e-4
        assert np.all((low < path.truth) & (path.truth < high))


def test_a_row_is_the_result_of_its_own_path():
    """Up to the random numbers: fit on row(t) has another stream, but the same ladder and
    settings.
    """
    path = Coins(X)
    alone = AIS(100, 50, random_state=0).fit(path.row(3))
    many = AIS(100, 50, random_state=0).fit(path)
    spread = np.hypot(alone.log_partition_std_error_, many.log_partition_std_error_[3])
    assert abs(alone.log_partition_ - many.log_partition_[3]) < 3.9 * spread  # false alarms in 1e-4
    assert many.result_.degrees_of_freedom.tolist() == [99.0] * 5
    assert many.result_.n_sweeps == 5 * alone.result_.n_sweeps


def test_rows_say_that_they_were_not_checked():
    looked = AIS(20, 20, random_state=0).fit(Coins(X)).result_
    blind = AIS(20, 20, checks=False, random_state=0).fit(Coins(X)).result_
    np.testing.assert_array_equal(blind.log_partition, looked.log_partition)
    assert looked.is_checked
    assert not blind.is_checked
    assert "left out" in blind.summary()
    assert "left out" not in looked.summary()


# ---- the same bits
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_subset_another_order_and_one_row_give_the_same_bits(name):
    estimator = SAMPLERS[name]
    everything = numbers(estimator, Coins(X))
    order = np.array([3, 1, 4, 1])
    np.testing.assert_array_equal(numbers(estimator, Coins(X[order])), everything[:, order])
    np.testing.assert_array_equal(numbers(estimator, Coins(X[2:3])), everything[:, 2:3])
    assert np.all(np.diff(np.sort(everything[0])) > 0)  # rows do differ


def test_jobs_and_back_ends_give_the_same_bits():
    path = Coins(X[:3])
    expected = numbers(AIS(20, 10, random_state=3), path)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        np.testing.assert_array_equal(numbers(AIS(20, 10, random_state=3), path), expected)
    np.testing.assert_array_equal(numbers(AIS(20, 10, random_state=3, n_jobs=2), path), expected)


class Counting(PartitionEstimator):
    """Returns the number of calls so far, and complains about rows above 0."""

    def __init__(self, rows=None, checkpoint=None, random_state=0, n_jobs=None):
        self.rows, self.checkpoint, self.random_state, self.n_jobs = (
            rows,
            checkpoint,
            random_state,
            n_jobs,
        )

    def _estimate(self, path, seed):
        self.rows.append(float(path.x))
        alarms = (
            (Alarm("above-0", f"x is {path.x:.3f}, above 0", "shrink it"),) if path.x > 0 else ()
        )
        return PartitionResult("Counting", float(path.x), 0.5, 9, alarms=alarms, n_sweeps=2)


def test_equal_rows_are_computed_once():
    x = np.array([-1.0, -2.0, -1.0, -1.0, -3.0, -2.0])
    estimator = Counting([]).fit(Coins(x))
    assert sorted(estimator.rows) == [-3, -2, -1]
    np.testing.assert_array_equal(estimator.log_partition_, x)
    assert estimator.result_.diagnostics["n_distinct"] == 3
    assert estimator.result_.n_sweeps == 6
    # three equal rows share one error, so their errors add up: sqrt(3^2 + 2^2 + 1) / 6 of 0.5
    assert estimator.result_.diagnostics["mean_std_error"] == pytest.approx(0.5 * np.sqrt(14) / 6)
    np.testing.assert_array_equal(estimator.result_.bias, -0.125)
    assert estimator.result_.diagnostics["mean"] == pytest.approx(x.mean())


def test_alarms_are_counted():
    with pytest.warns(
        ConvergenceWarning, match="in 4 of 5 rows: x is 0.250, above 0: shrink it"
    ) as caught:
        estimator = Counting([]).fit(Coins([0.25, -1.0, 3e5, 0.25, 12.0]))
    assert len(caught) == 1
    assert estimator.converged_ is False
    assert estimator.result_.diagnostics["converged"].tolist() == [False, True, False, False, False]
    assert estimator.result_.reasons == ("in 4 of 5 rows: x is 0.250, above 0: shrink it",)


def test_an_interrupted_run_goes_on(tmp_path):
    expected = numbers(AIS(20, 10, random_state=3), Coins(X))
    estimator = AIS(20, 10, random_state=3, checkpoint=tmp_path)
    with kept_files():
        np.testing.assert_array_equal(numbers(estimator, Coins(X)), expected)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 5  # one for every block of rows, none of the rows' own
    files[0].unlink()
    np.testing.assert_array_equal(numbers(estimator, Coins(X)), expected)
    assert not list(tmp_path.iterdir())


# ---- what is wrong is said in one sentence
def test_a_missing_method_is_named():
    class NoContent(Coins):
        @property
        def row_content(self):
            raise AttributeError

    with pytest.raises(
        TypeError, match=r"needs a path with the method row_content\(t\); NoContent has none"
    ):
        Exact().fit(NoContent(X))


def test_a_bad_row_is_named():
    with pytest.raises(ValueError, match="row 2: log_f gave values that are not finite"):
        AIS(20, 30).fit(Coins([0.0, 1.0, np.nan, 2.0]))


def test_bounds_give_one_sided_arrays():
    result = PartitionResult(
        "RAISE", np.array([1.0, 2.0]), np.array([0.1, 0.1]), statement="upper bound"
    )
    low, high = result.interval()
    assert low.tolist() == [-np.inf, -np.inf]
    np.testing.assert_allclose(high, [1 - np.log(0.05), 2 - np.log(0.05)])

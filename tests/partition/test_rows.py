"""Paths with one log Z for each row of data: the same bits for a row whatever runs beside it."""

import copy

import numpy as np
import pytest
from convergence import quietly
from interruption import kept_files
from known_rows import LinearRowsPath, make_rows_problem
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, BDMC, HAIS, RTS, Exact, ParallelTempering
from sklpf.partition import Alarm, PartitionEstimator, PartitionResult
from sklpf.partition._path_rows import _judge_move
from sklpf.paths import Path
from sklpf.testing import check_path
from sklpf.transitions import HMC

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
PROBLEM = make_rows_problem(4, 3, 0.4)
HARD = PROBLEM.path


def linear(rows):
    """The linear generative model with other rows."""
    return LinearRowsPath(rows, HARD.mixing, HARD.noise)


SAMPLERS = {
    "AIS": (AIS(20, 10, random_state=3), Coins, X),
    "PT": (ParallelTempering(3, 3, 64, random_state=3), Coins, X),
    "BDMC": (BDMC(20, 20, random_state=3), Coins, X),
    "HAIS with tol": (HAIS(12, 100, tol=0.2, random_state=3), linear, HARD.X),
    "RTS on R^d": (RTS(10, 3, 48, random_state=3), linear, HARD.X),
}


def numbers(estimator, path):
    quietly(estimator, path)
    ends = estimator.log_partition_interval_
    return np.array([estimator.log_partition_, estimator.log_partition_std_error_, *ends])


def test_one_row_keeps_the_contract_of_a_path():
    check_path(Coins(X).row(2).with_ladder([0, 0.4, 1]))


# ---- values
def test_exact_gives_every_row():
    path = Coins(X)
    exact = Exact().fit(path)
    assert_allclose(exact.log_partition_, path.truth, rtol=1e-12)
    assert exact.result_.statement == "exact"
    assert exact.converged_ is True
    assert_array_equal(exact.log_partition_std_error_, np.zeros(5))
    for bound in exact.log_partition_interval_:
        assert_array_equal(bound, exact.log_partition_)


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
    assert "left out" in AIS(20, 20, checks=False, random_state=0).fit(path).result_.summary()
    assert "left out" not in many.result_.summary()


# ---- the same bits
@pytest.mark.parametrize("name", SAMPLERS)
def test_other_rows_beside_them_their_order_and_jobs_leave_the_bits(name):
    estimator, of, rows = SAMPLERS[name]
    everything = numbers(estimator, of(rows))
    order = np.array([3, 1, 0, 1])
    assert_array_equal(numbers(estimator, of(rows[order])), everything[:, order])
    assert_array_equal(numbers(estimator, of(rows[2:3])), everything[:, 2:3])
    assert_array_equal(numbers(clone(estimator).set_params(n_jobs=2), of(rows)), everything)
    assert np.all(np.diff(np.sort(everything[0])) > 0)  # rows do differ


class Counting(PartitionEstimator):
    """Returns the number of calls so far, and complains about rows above 0."""

    def __init__(self, rows=None, checkpoint=None, random_state=0, n_jobs=None):
        self.rows = rows
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _estimate(self, path, seed):
        self.rows.append(float(path.x))
        above = Alarm("above-0", f"x is {path.x:.3f}, above 0", "shrink it")
        alarms = (above,) if path.x > 0 else ()
        costs = {"sweeps": {"chains": 2}, "check_evaluations": 7}
        return PartitionResult("Counting", float(path.x), 0.5, 9, alarms=alarms, **costs)


def test_equal_rows_are_computed_once():
    x = np.array([-1.0, -2.0, -1.0, -1.0, -3.0, -2.0])
    estimator = Counting([]).fit(Coins(x))
    assert sorted(estimator.rows) == [-3, -2, -1]
    assert_array_equal(estimator.log_partition_, x)
    assert estimator.result_.diagnostics["n_distinct"] == 3
    assert (estimator.result_.n_sweeps, estimator.result_.check_evaluations) == (6, 21)
    # three equal rows share one error, so their errors add up: sqrt(3^2 + 2^2 + 1) / 6 of 0.5
    assert estimator.result_.diagnostics["mean_std_error"] == pytest.approx(0.5 * np.sqrt(14) / 6)
    assert_array_equal(estimator.result_.bias, -0.125)
    assert estimator.result_.diagnostics["mean"] == pytest.approx(x.mean())


def test_alarms_are_counted():
    shown = "in 4 of 5 rows: x is 0.250, above 0: shrink it"
    with pytest.warns(ConvergenceWarning, match=shown) as caught:
        estimator = Counting([]).fit(Coins([0.25, -1.0, 3e5, 0.25, 12.0]))
    assert len(caught) == 1
    assert estimator.converged_ is False
    assert estimator.result_.diagnostics["converged"].tolist() == [False, True, False, False, False]
    assert estimator.result_.reasons == (shown,)


def test_an_interrupted_run_goes_on(tmp_path):
    expected = numbers(AIS(20, 10, random_state=3), Coins(X))
    estimator = AIS(20, 10, random_state=3, checkpoint=tmp_path)
    with kept_files():
        assert_array_equal(numbers(estimator, Coins(X)), expected)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 5  # one for every block of rows, none of the rows' own
    files[0].unlink()
    assert_array_equal(numbers(estimator, Coins(X)), expected)
    assert not list(tmp_path.iterdir())


# ---- what is wrong is said in one sentence
def test_a_bad_row_is_named():
    with pytest.raises(ValueError, match="row 2: log_f gave values that are not finite"):
        AIS(20, 30).fit(Coins([0.0, 1.0, np.nan, 2.0]))


def test_bounds_give_one_sided_arrays():
    values, errors = np.array([1.0, 2.0]), np.array([0.1, 0.1])
    result = PartitionResult("RAISE", values, errors, statement="upper bound")
    low, high = result.interval()
    assert low.tolist() == [-np.inf, -np.inf]
    assert_allclose(high, [1 - np.log(0.05), 2 - np.log(0.05)])


# ---- a move that does not suit a row
class OfAnotherModel(LinearRowsPath):
    """Its simulated row has another noise."""

    simulated_noise: float

    def simulated_row(self, stream):
        return LinearRowsPath(self.X, self.mixing, self.simulated_noise).simulated_row(stream)


@pytest.mark.parametrize(
    ("simulated", "noise", "probability"),
    [(0.4, 0.05, "0.0"), (0.4, 0.4, None), (0.02, 4.0, "1.000")],
)
def test_an_acceptance_far_from_the_target_is_no_convergence(simulated, noise, probability):
    path = OfAnotherModel(HARD.X[:3], HARD.mixing, noise)
    path.simulated_noise = simulated
    hais = HAIS(20, 300, ladder="linear", random_state=0)
    quietly(hais, path)
    said = [reason for reason in hais.result_.reasons if "tuned on another row" in reason]
    if probability is None:
        assert not said
        return
    assert len(said) == 1
    assert said[0].startswith("in 3 of 3 rows: moves that were tuned on another row")
    assert f"probability of {probability}" in said[0]
    assert not hais.result_.diagnostics["converged"].any()


@pytest.mark.parametrize(("n_off", "is_off"), [(70, False), (130, True)])
def test_acceptance_is_that_of_a_hundred_moves(n_off, is_off):
    """Of 0.3 where 0.8 was asked for, and 0.4 is allowed."""
    rates = np.where(np.arange(1001) <= n_off, 0.3, 0.8)
    result = PartitionResult("HAIS", 0.0, 0.1, diagnostics={"acceptance": rates})
    judged = _judge_move(result, HMC().tune(HARD.row(0), (1, 2)))
    assert [alarm.kind for alarm in judged.alarms] == ["moves-of-another-row"] * is_off


# ---- tol
def test_a_tol_that_is_missed_is_said():
    hais = HAIS(20, 40, tol=0.01, random_state=0)
    with pytest.warns(ConvergenceWarning, match="with 40 levels is above tol: raise n_temp"):
        hais.fit(HARD.row(0))
    assert len(hais.result_.ladder) == 40
    assert np.isfinite(hais.log_partition_)
    with pytest.warns(ConvergenceWarning, match="in 4 of 4 rows: the standard error .* raise"):
        hais.fit(HARD)


class HasGap(PartitionEstimator):
    """A row's number as the gap between its bounds."""

    def _estimate(self, path, seed):
        return PartitionResult("HasGap", 0.0, 1.0, diagnostics={"gap": float(path.x)})


def test_equal_rows_do_not_shrink_the_error_of_the_mean_gap():
    """The mean of its variance is that of the mean, of gaps N(0, 1) of which one is that of most
    rows: 1000 times, within 5 of the standard deviation of their ratio (false alarms below 1e-5).
    """
    counts = [17, 1, 2]
    gaps = np.random.default_rng(0).normal(size=(1000, 3))
    found = []
    for each in gaps:
        diagnostics = HasGap().fit(Coins(np.repeat(each, counts))).result_.diagnostics
        found.append((diagnostics["gap"], diagnostics["gap_std_error"]))
    mean, error = np.transpose(found)
    shares = np.array(counts) / 20
    assert_allclose(mean, gaps @ shares)
    ratio = error**2 / np.sum(shares**2)
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(1000)

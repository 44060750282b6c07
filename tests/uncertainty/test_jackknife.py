import numpy as np
import pytest
from scipy.special import logsumexp

from sklpf.uncertainty import jackknife, log_mean_exp


def test_jackknife_of_a_mean_is_the_usual_standard_error():
    x = np.random.default_rng(0).normal(size=50)
    value, std_error = jackknife(lambda keep: x[keep].mean(), 50)
    assert value == pytest.approx(x.mean())
    assert std_error == pytest.approx(x.std(ddof=1) / np.sqrt(50))


def test_jackknife_takes_arrays():
    x = np.random.default_rng(0).normal(size=(20, 3))
    value, std_error = jackknife(lambda keep: x[keep].mean(axis=0), 20)
    np.testing.assert_allclose(value, x.mean(axis=0))
    np.testing.assert_allclose(std_error, x.std(axis=0, ddof=1) / np.sqrt(20))


def test_jackknife_of_a_log_mean_is_honest():
    # 2000 repeats of the log of a mean of 40: the estimated variance averages to the real one
    # within 10 %, where the ratio's own standard error is 3 %
    rng = np.random.default_rng(1)
    runs = np.array(
        [
            jackknife(lambda keep, x=x: np.log(x[keep].mean()), 40)
            for x in rng.exponential(size=(2000, 40))
        ]
    )
    assert np.mean(runs[:, 1] ** 2) / runs[:, 0].var() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_log_mean_exp_is_as_exact_as_scipy(axis):
    x = np.random.default_rng(0).normal(-1e4, [[1e-6], [1], [1e3]], size=(3, 50))
    n = x.size if axis is None else x.shape[axis]
    np.testing.assert_allclose(
        log_mean_exp(x, axis), logsumexp(x, axis=axis) - np.log(n), rtol=1e-14
    )


@pytest.mark.filterwarnings("error")
def test_log_mean_exp_of_nothing_but_zeros():
    assert log_mean_exp([-np.inf, -np.inf]) == -np.inf
    np.testing.assert_equal(log_mean_exp([[-np.inf, -np.inf], [0, 0]], axis=1), [-np.inf, 0])

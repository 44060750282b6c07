import numpy as np
import pytest
from scipy.stats import genpareto

from sklpf.uncertainty import pareto_shape, pareto_tail


@pytest.mark.parametrize("shape", [0.1, 0.3, 0.5, 0.7, 1.0, 1.5])
def test_shape_of_pareto_tails(shape):
    # tail of 300 of 10000: the shape's standard error is about (1 + shape) / sqrt(300); 4.5 of
    # them, 7e-6 each
    weights = genpareto.rvs(shape, size=10_000, random_state=1)
    estimate = pareto_shape(np.log(weights))
    expected = (300 * shape + 5) / 310  # drawn towards 0.5 by ten observations
    assert estimate == pytest.approx(expected, abs=4.5 * (1 + shape) / np.sqrt(300))


def test_scale_and_order_do_not_matter():
    log_weights = np.random.default_rng(0).normal(size=500)
    shape = pareto_shape(log_weights)
    assert pareto_shape(log_weights[::-1]) == shape
    assert pareto_shape(log_weights + 700) == pytest.approx(shape, abs=1e-8)


def test_light_tails_are_not_flagged():
    rng = np.random.default_rng(0)
    shapes = [pareto_shape(rng.normal(scale=0.1, size=100)) for _ in range(200)]
    # bounded in practice: over 200 runs of narrow weights none may look heavy
    assert max(shapes) < 0.7


def test_the_fitted_tail_follows_the_weights():
    weights = np.sort(genpareto.rvs(0.4, size=10_000, random_state=2))[::-1]
    tail = pareto_tail(np.log(weights))
    assert tail.shape == pareto_shape(np.log(weights))
    assert tail.n == 300
    assert tail.threshold == pytest.approx(weights[300] / weights[0])
    # quantiles 10 to 290 of 300: those of the fit are within a few percent (relative errors of
    # about 1.4 / sqrt(i))
    np.testing.assert_allclose(tail.weights(300)[10:290], weights[10:290] / weights[0], rtol=0.5)
    np.testing.assert_allclose(tail.weights(300)[100:290], weights[100:290] / weights[0], rtol=0.1)

"""Temperatures of latent Dirichlet allocation: the phases of fit."""

import numpy as np
import pytest

from sklpf import LatentDirichletAllocation
from sklpf.datasets import make_bars_corpus
from sklpf.variational import temperature_ladder

# ---- phases
BARS, _, _ = make_bars_corpus(120, size=4, n_tokens=50, random_state=0)


def fitted(**options):
    defaults = {"learning_method": "online", "batch_size": 30, "max_iter": 5, "random_state": 0}
    options = defaults | options
    return LatentDirichletAllocation(8, **options).fit(BARS)


def test_a_schedule_falls_from_the_first_temperature_to_one():
    model = fitted(tempering="annealed", initial_temperature=3.0, n_tempered=2)
    expected = np.r_[np.linspace(3.0, 1.0, 8, endpoint=False), np.ones(12)]
    np.testing.assert_allclose(model.temperatures_, expected)
    geometric = fitted(tempering="annealed", temperature_schedule="geometric", n_tempered=0.5)
    np.testing.assert_allclose(geometric.temperatures_, [1.5, 1.5**0.5, *np.ones(18)])
    own = fitted(tempering="annealed", temperature_schedule=[4.0, 2.0])
    np.testing.assert_allclose(own.temperatures_, [4.0, 2.0, *np.ones(18)])


@pytest.mark.parametrize("tempering", ["annealed", "global", "local"])
@pytest.mark.parametrize("method", ["batch", "online"])
@pytest.mark.parametrize(("max_iter", "n_cold"), [(1, 2), (2, 4), (5, 8)])
def test_fit_always_ends_at_temperature_one(tempering, method, max_iter, n_cold):
    options = {"learning_method": method, "max_iter": max_iter, "n_temperatures": 10}
    model = fitted(tempering=tempering, **options)
    if method == "batch":
        n_cold = max(n_cold // 4, 1)
    n_batches = max_iter * (4 if method == "online" else 1)
    assert len(model.temperatures_) == n_batches == model.n_batch_iter_ - 1
    np.testing.assert_array_equal(model.temperatures_[-n_cold:], 1.0)
    assert np.all(model.temperatures_[:-n_cold] > 1)
    assert np.isfinite(model.elbo_)


@pytest.mark.parametrize("tempering", ["global", "local"])
def test_a_learned_temperature_may_have_any_support(tempering):
    options = {"tempering": tempering, "initial_temperature": 5.0}
    ladders = 20, temperature_ladder(5.0, 20)
    same = [fitted(n_temperatures=ladder, **options) for ladder in ladders]
    np.testing.assert_array_equal(same[0].components_, same[1].components_)
    even = temperature_ladder(100.0, spacing="inverse")
    model = fitted(tempering=tempering, n_temperatures=even)
    assert model.temperatures_[0] > 1
    assert not np.array_equal(model.components_, same[0].components_)
    with pytest.raises(ValueError, match="two temperatures that rise from 1"):
        fitted(tempering=tempering, n_temperatures=[2.0, 4.0])


def test_streams_learn_alike_whatever_fit_would_do():
    """Of as many documents as the stream has each batch is but a part: what is seen is smoothed."""
    X, _, _ = make_bars_corpus(120, size=4, n_tokens=5, random_state=0)
    options = {"tempering": "global", "monotone_temperature": False, "initial_temperature": 3.0}
    options |= {"total_samples": 120, "batch_size": 30, "random_state": 0}
    batch, online = (
        LatentDirichletAllocation(8, learning_method=method, **options).partial_fit(X)
        for method in ("batch", "online")
    )
    np.testing.assert_array_equal(batch.temperatures_, online.temperatures_)

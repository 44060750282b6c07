"""A user's own densities, in NumPy alone, through every estimator that takes a path."""

import numpy as np
import pytest
from convergence import assert_right, may_not_converge
from scipy.special import expit, logsumexp

import sklpf
from sklpf.paths import Path, TemperedPath
from sklpf.transitions import Gibbs


class Ring(TemperedPath):
    """Six binary units on a ring that like their neighbours; base: independent fair coins."""

    base_log_partition = 6 * np.log(2)  # f_0 = 1, not normalised
    gibbs_is_reversible = False
    coupling, bias = 2.0, np.array([-1.0, -0.5, -2.0, 0.3, -1.5, -1.0])

    def energy(self, state):
        return self.coupling * np.sum(state * np.roll(state, 1, axis=1), axis=1) + state @ self.bias

    def ends(self, state):
        return np.zeros(len(state)), self.energy(state)

    def sample_base(self, n, stream):
        return stream.generator().integers(2, size=(n, 6))

    def gibbs(self, state, levels, stream, reverse=False):
        state, uniforms = state.copy(), stream.generator().random(state.shape)
        for i in range(5, -1, -1) if reverse else range(6):
            field = self.coupling * (state[:, i - 1] + state[:, (i + 1) % 6]) + self.bias[i]
            state[:, i] = uniforms[:, i] < expit(self.ladder[levels] * field)
        return state


BUDGETS = {
    "SMC": {"n_temperatures": 40},
    "ParallelTempering": {"n_temperatures": 5, "n_sweeps": 512},
}


class ShiftedRing(Ring):
    def energy(self, state):
        return super().energy(state) - 1e6  # log-likelihoods of many rows are as large as this


@pytest.mark.parametrize("name", BUDGETS)
def test_estimates_are_right_and_a_constant_in_the_log_density_is_one_in_log_z(name):
    estimator = getattr(sklpf.partition, name)(transition=Gibbs(), **BUDGETS[name], random_state=0)
    plain = estimator.fit(Ring())
    states = (np.arange(64)[:, np.newaxis] >> np.arange(6)) & 1
    assert_right(plain, logsumexp(Ring().energy(states)))
    expected = plain.log_partition_interval_
    shifted = estimator.fit(ShiftedRing())
    assert shifted.converged_
    np.testing.assert_allclose(np.add(shifted.log_partition_interval_, 1e6), expected, atol=1e-4)


# ---- what is wrong is said in one sentence
class Broken(Ring):
    """log f_k is `value` for one chain of five, from the second level on."""

    value = np.nan
    log_f_ladder = Path.log_f_ladder

    def log_f(self, state, levels):
        values = super().log_f(state, levels)
        values[(levels > 0) & (np.arange(len(levels)) % 5 == 4)] = self.value
        return values


LINEAR, ADAPTIVE = (sklpf.AIS(n_temperatures=50, ladder=name) for name in ("linear", "adaptive"))
SHORT = {"n_temperatures": 5, "n_sweeps": 200}


@pytest.mark.parametrize(
    ("value", "estimator"),
    [
        *((value, ais) for value in (np.nan, np.inf, -np.inf) for ais in (LINEAR, ADAPTIVE)),
        (np.nan, sklpf.RTS(**SHORT)),
        (np.nan, sklpf.RTS(**SHORT, init="paper")),
    ],
    ids=str,
)
def test_densities_that_are_not_finite_are_refused(value, estimator):
    path = Broken()
    path.value = value
    with pytest.raises(ValueError, match="values that are not finite; check the model's param"):
        estimator.set_params(random_state=0).fit(path)


def test_an_exception_in_a_users_method_comes_through_from_two_jobs():
    class Fails(Ring):
        def gibbs(self, state, levels, stream, reverse=False):
            raise ZeroDivisionError("my own mistake")

    with pytest.raises(ZeroDivisionError, match="my own mistake"):
        sklpf.AIS(n_temperatures=50, n_jobs=2, random_state=0).fit(Fails())


# ---- models stand for their paths
class Own:
    """A model of the user's whose path has no options; nothing of scikit-learn is in it."""

    def path(self):
        return Ring()


def test_a_users_model_is_taken():
    whole, of_path = (
        sklpf.AIS(20, 100, random_state=0).fit(given).log_partition_ for given in (Own(), Ring())
    )
    assert whole == of_path


@may_not_converge()
def test_a_model_stands_for_its_default_path():
    rng = np.random.default_rng(0)
    parameters = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=4)
    model = sklpf.BernoulliRBM.from_parameters(*parameters, rng.uniform(0.2, 0.8, 6))

    def log_partition(path):
        return sklpf.AIS(8, 50, random_state=0).fit(path).log_partition_

    plain = log_partition(model)
    assert plain == log_partition(model.path())
    assert plain == log_partition(model.path(weights="marginal", base="data"))
    for options in ({"weights": "joint"}, {"base": "uniform"}, {"base": np.full(6, 0.3)}):
        assert log_partition(model.path(**options)) != plain

"""Schedules and learned temperatures."""

import itertools
import pickle

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from sklearn.model_selection import GridSearchCV

from sklpf import FactorialMixture, Tempering
from sklpf.datasets import make_factorial_shapes
from sklpf.variational import (
    Annealed,
    ConjugateModel,
    GlobalTempering,
    LocalTempering,
    sweeps,
    temperature_ladder,
    temperature_posterior,
    temperature_schedule,
)

TEMPERATURES = np.array([1.0, 1.5, 4.0])
LOG_PARTITION = np.array([0.0, 0.7, 2.1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: temperature_schedule("linear", 0.5, 3), "initial must be a temperature"),
        (lambda: temperature_schedule("linear", 2, -1), "n_sweeps must be an integer"),
        (
            lambda: temperature_schedule([2, np.inf]),
            "^schedule must be a sequence of finite",
        ),
        (lambda: Annealed([2, 0.9]), "temperatures must be a sequence of finite temperatures"),
        (lambda: temperature_ladder(3.0, 1), "n_temperatures must be an integer of at least 2"),
        (lambda: temperature_ladder(3.0, 5, "even"), "spacing must be"),
        (lambda: temperature_ladder(3.0, [1.0, 1.0, 2.0]), "two temperatures that rise from 1"),
        (lambda: temperature_ladder(3.0, [1.5, 2.0]), "two temperatures that rise from 1"),
        (lambda: temperature_ladder(3.0, [1.0]), "two temperatures that rise from 1"),
        (lambda: GlobalTempering([1, 2], [0.0]), "one finite log C"),
        (lambda: LocalTempering([1, 2], [0.0, np.nan], 3), "one finite log C"),
        (lambda: LocalTempering([1, 2], [0.0, 1.0], 0.5), "n_data must be an integer"),
        (lambda: LocalTempering([1, 2], "x", 3), "log_partition must be real numbers"),
        (lambda: GlobalTempering([1, 2j], [0.0, 1.0]), "temperatures must be real numbers"),
        (lambda: GlobalTempering([1, 2], [0.0, 1.0], None), "n_sweeps must be an integer"),
        (lambda: temperature_posterior(0.0, [1, 2], [0.0]), "each of 2 temperatures"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("value", [-3.0, 0.0, 5.0, -1e6, 1e6])
def test_temper_is_the_best_distribution_over_temperatures(value):
    def part_of_bound(r):
        logs = np.where(r > 0, np.log(np.maximum(r, 1e-300)), 0)
        return r @ (value / TEMPERATURES - LOG_PARTITION - np.log(3) - logs)

    inverse, term = temperature_posterior(value, TEMPERATURES, LOG_PARTITION)
    best = softmax(value / TEMPERATURES - LOG_PARTITION)
    np.testing.assert_allclose(inverse, best @ (1 / TEMPERATURES), rtol=1e-12)
    np.testing.assert_allclose(inverse * value + term, part_of_bound(best), rtol=1e-9, atol=1e-9)
    for other in np.random.default_rng(0).dirichlet(np.ones(3), 50):
        assert part_of_bound(other) <= part_of_bound(best) + 1e-9 * max(1, abs(value))


def test_good_fits_cool_and_monotone_tempering_never_heats():
    free = GlobalTempering(TEMPERATURES, LOG_PARTITION)
    held = GlobalTempering(TEMPERATURES, LOG_PARTITION, monotone=True)
    seen = []
    for value in (20.0, -20.0):
        free.advance(value)
        held.advance(value)
        seen.append((free.inverse, held.inverse))
    assert seen[0][0] == seen[0][1] > 0.99
    assert seen[1][0] < 0.3  # a poor fit is hot
    assert seen[1][1] == seen[0][1]


# ---- a model of one's own
class TwoGaussians(ConjugateModel):
    """x ~ sum_k weights[k] N(mean_k, variance), mean_k ~ N(0, prior_variance); q(means) q(z) with
    responsibilities.
    """

    def __init__(self, x, means, weights=(0.3, 0.7), variance=1.0, prior_variance=25.0):
        self.x, self.log_weights = x, np.log(weights)
        self.variance, self.prior_variance = variance, prior_variance
        self.means, self.spreads = np.array(means, dtype=float), np.zeros(2)

    def _log_joint(self):
        squares = (self.x[:, None] - self.means) ** 2 + self.spreads
        log_norm = 0.5 * np.log(2 * np.pi * self.variance)
        return self.log_weights - log_norm - squares / (2 * self.variance)

    def update_responsibilities(self, inverse):
        self.responsibilities = softmax(np.reshape(inverse, (-1, 1)) * self._log_joint(), axis=1)

    def update(self, inverse):
        self.update_responsibilities(inverse)
        weighted = np.reshape(inverse, (-1, 1)) * self.responsibilities
        self.spreads = 1 / (1 / self.prior_variance + weighted.sum(axis=0) / self.variance)
        self.means = self.spreads * (self.x @ weighted) / self.variance

    def expected_log_joint(self, per_datum=False):
        values = np.sum(self.responsibilities * self._log_joint(), axis=1)
        return values if per_datum else float(values.sum())

    def regulariser(self):
        ratio = (self.means**2 + self.spreads) / self.prior_variance
        divergence = 0.5 * np.sum(ratio - 1 + np.log(self.prior_variance / self.spreads))
        r = self.responsibilities
        return float(-divergence - np.sum(r * np.log(np.maximum(r, 1e-300))))

    def log_partition(self, temperatures):
        constant = 0.5 * np.log(2 * np.pi * self.variance)
        gaussian = 0.5 * np.log(temperatures) + (1 - 1 / temperatures) * constant
        return len(self.x) * (
            gaussian + logsumexp(self.log_weights / temperatures[:, None], axis=1)
        )


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, -3.2, 3.2) + rng.normal(size=n)


@pytest.mark.parametrize("kind", ["none", "global", "local"])
def test_objective_bounds_the_evidence(kind):
    x, n_temperatures = np.array([-1.0, 0.4, 2.0]), 3
    temperatures = temperature_ladder(5.0, n_temperatures)

    def log_evidence(powers):
        """log of the integral of p(means) prod_n p(x_n, z_n | means)^powers[n], by enumeration of
        z.
        """
        terms = []
        for z in itertools.product(range(2), repeat=len(x)):
            # N(x; m, 1)^s = (2 pi)^((1 - s) / 2) s^(-1/2) N(x; m, 1 / s)
            variances = 1 / np.array(powers)
            scale = 0.5 * np.sum((1 - 1 / variances) * np.log(2 * np.pi) + np.log(variances))
            same = np.equal.outer(z, z)
            covariance = np.diag(variances) + 25.0 * same
            _, log_det = np.linalg.slogdet(2 * np.pi * covariance)
            log_p = -0.5 * (log_det + x @ np.linalg.solve(covariance, x))
            terms.append(scale + log_p + np.sum(powers * np.log([0.3, 0.7])[list(z)]))
        return logsumexp(terms)

    model = TwoGaussians(x, [0.3, -0.2])
    one = model.log_partition(temperatures) / len(x)
    if kind == "none":
        tempering, evidence = None, log_evidence(np.ones(3))
    elif kind == "global":
        tempering = GlobalTempering(temperatures, 3 * one)
        shares = [log_evidence(np.full(3, 1 / t)) - 3 * c for t, c in zip(temperatures, one)]
        evidence = logsumexp(shares) - np.log(3)
    else:
        tempering = LocalTempering(temperatures, one, len(x))
        choices = itertools.product(range(n_temperatures), repeat=len(x))
        terms = [log_evidence(1 / temperatures[list(m)]) - one[list(m)].sum() for m in choices]
        evidence = logsumexp(terms)
        evidence -= len(x) * np.log(n_temperatures)
    steps = [s for s in sweeps(model, tempering, tol=1e-10) if kind == "none" or s.temperature > 1]
    best = max(step.objective for step in steps)
    assert evidence - 3 < best <= evidence + 1e-9


# -- figure 1
def test_annealing_reaches_the_best_optimum_from_all_starts():
    x, schedule = data(n=200), temperature_schedule("linear", 20.0, 100)

    def end(start, tempering):
        return list(sweeps(TwoGaussians(x, start), tempering, tol=1e-8))[-1].elbo

    starts = np.random.default_rng(1).normal(scale=3.0, size=(5, 2))
    ends = np.array([[end(start, None), end(start, Annealed(schedule))] for start in starts])
    assert list(np.sum(ends > ends.max() - 0.1, axis=0)) == [2, 5]
    assert ends[:, 1].min() > ends[:, 0].min() + 10


# ---- as a parameter of models
def test_a_search_varies_a_temperature_and_the_model_is_saved_with_it():
    X, _, _ = make_factorial_shapes(100, random_state=0)
    tempering = Tempering(n_tempered=5)
    model = FactorialMixture(2, tempering=tempering, n_moves=0, noise_variance=0.1, random_state=0)
    grid = {"tempering__initial_temperature": [2.0, 20.0]}
    search = GridSearchCV(model, grid, cv=2).fit(X)
    assert tempering.initial_temperature == "auto"  # each fit has a copy
    first = [params["tempering__initial_temperature"] for params in search.cv_results_["params"]]
    assert first == [2.0, 20.0]
    best = pickle.loads(pickle.dumps(search.best_estimator_))
    assert best.temperatures_[0] == best.tempering.initial_temperature
    assert "tempering=Tempering(initial_temperature=" in repr(best)

"""Populations: resampling, unbiased estimates at any threshold, walls.

z-bounds of 4.5 standard errors are false alarms of 7e-6 each; seeds are fixed.
"""

import numpy as np
import pytest
from known_problems import make_rbm_problem
from scipy.special import logsumexp

from sklpf import Exact, Gaussian, GeometricPath
from sklpf._utils.random import systematic
from sklpf.paths import Path, stream_key
from sklpf.programs import (
    Plan,
    ancestor_weights_of,
    anneal_populations,
    anneal_reverse,
    target_summaries,
)
from sklpf.transitions import HMC, Gibbs

Z_BOUND = 4.5
KEY = stream_key(0)


def easy(n_levels):
    problem = make_rbm_problem("easy")
    return problem.path.with_ladder(np.linspace(0, 1, n_levels)), problem.log_partition


def grow(path, n_populations, n_particles, resample_at):
    return anneal_populations(Plan(path, Gibbs(), 0), n_populations, n_particles, resample_at)


# ---- resampling
@pytest.mark.parametrize(("m", "n"), [(10, 10), (7, 30), (30, 7), (1, 3)])
def test_systematic_resampling_rounds_expected_counts(m, n):
    log_weights = 2 * np.random.default_rng(m).standard_normal(m) - 1000
    log_weights[1::4] = -np.inf
    expected = n * np.exp(log_weights - logsumexp(log_weights))
    uniforms = (np.arange(2000) + 0.5) / 2000
    counts = np.array([np.bincount(systematic(log_weights, n, u), minlength=m) for u in uniforms])
    assert np.all(counts.sum(axis=1) == n)
    assert np.all(np.abs(counts - expected) < 1)
    # unbiased: the grid's error alone
    np.testing.assert_allclose(counts.mean(axis=0), expected, atol=2 / 2000)
    assert not counts[:, log_weights == -np.inf].any()


# ---- estimates
def test_chains_that_go_down_from_exact_draws_give_the_inverse_without_bias():
    path, exact = easy(8)
    target = path.with_ladder([0, 1])
    starts = Exact().sample(target, 2000, np.random.default_rng(0))
    plan = Plan(path, Gibbs(), 0)
    steps = anneal_reverse([plan], [starts], 1, "reverse", keeps_steps=True)[0]
    whole = anneal_reverse([plan], [starts], 1, "reverse")[0]
    np.testing.assert_allclose(steps.sum(axis=1), whole[:, 0], rtol=1e-10)
    # a chain met from the target has 1 / mean ratio = Z_k / Z_(k+1)
    relative = np.exp(exact + steps.sum(axis=1))
    assert abs(relative.mean() - 1) < Z_BOUND * relative.std(ddof=1) / np.sqrt(2000)


def test_weights_of_families_add_up_to_the_estimate():
    path, _ = easy(8)
    populations = grow(path, 5, 12, 0.9)
    ancestor_weights = ancestor_weights_of(populations)
    estimates = logsumexp(ancestor_weights, axis=1) - np.log(12)
    np.testing.assert_allclose(estimates, populations.records[:, -1, 0], atol=1e-10)
    summaries = path.summary(populations.state).reshape(5, 12, -1)
    for g, found in enumerate(target_summaries(path, populations)):
        ancestors = populations.ancestors[g]
        assert np.sum(ancestor_weights[g] > -np.inf) == len(np.unique(ancestors)) < 12
        weights = np.exp(populations.log_weights[g]) / np.exp(populations.log_weights[g]).sum()
        np.testing.assert_allclose(found, [weights @ summaries[g], weights @ summaries[g] ** 2])


class AloneHMC(HMC):
    """Populations do not share its calls."""

    joins_rows = False


def test_populations_in_one_array_have_the_numbers_of_each_alone():
    path = GeometricPath(
        lambda x: -(x**4).sum(axis=1), grad=lambda x: -4 * x**3, base=Gaussian([0.0, 1.0], 3.0)
    ).with_ladder(np.linspace(0, 1, 20))
    moves = (move.tune(path, KEY) for move in (HMC(), AloneHMC()))
    together, alone = (anneal_populations(Plan(path, m, 0), 6, 20, 0.7) for m in moves)
    assert 0 < together.records[:, :, 2].mean() < 1
    for name in ("log_weights", "log_mean", "ancestors", "records"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))
    np.testing.assert_array_equal(path.summary(together.state), path.summary(alone.state))


# ---- walls
class Shrinking(Path):
    """Uniform on [0, 1 - 0.2 k]: the first level up kills a fifth of the particles, and so on.
    Draws are exact.
    """

    base_log_partition = 0.0
    has_boundary = True
    ladder = np.linspace(0, 1, 4)

    def ends_at(self, levels):
        return 1 - 0.2 * levels

    def log_f(self, state, levels):
        return np.where(state < self.ends_at(levels), 0.0, -np.inf)

    def sample_base(self, n, stream):
        return stream.generator().random(n)

    def gibbs(self, state, levels, stream):
        drawn = stream.generator().random(len(state)) * self.ends_at(levels)
        return np.where(state < self.ends_at(levels), drawn, state)


def test_populations_that_die_count_as_zero():
    populations = grow(Shrinking(), 1000, n_particles=2, resample_at=0.7)
    estimates = np.exp(populations.records[:, -1, 0])
    dead = estimates == 0
    assert np.mean(dead) > 0.05
    assert abs(estimates.mean() - 0.4) < Z_BOUND * estimates.std(ddof=1) / np.sqrt(1000)
    assert np.all(ancestor_weights_of(populations)[dead] == -np.inf)
    assert np.all(populations.records[dead, -1, 1] == 0)
    assert np.all(np.isnan(target_summaries(Shrinking(), populations)[dead]))

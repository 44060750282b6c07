"""Populations: resampling, unbiased estimates at any threshold, walls.

z-bounds of 4.5 standard errors are false alarms of 7e-6 each; seeds are fixed.
"""

import numpy as np
import pytest
from known_problems import make_rbm_problem
from scipy.special import logsumexp

from sklpf import Exact
from sklpf.paths import Path, stream_key
from sklpf.programs._populations import ascend, descend, family_weights, target_summaries
from sklpf.sampling._elementary import systematic
from sklpf.transitions import Gibbs

Z_BOUND = 4.5
KEY = stream_key(0)


def easy(n_levels):
    problem = make_rbm_problem("easy")
    return problem.path.with_ladder(np.linspace(0, 1, n_levels)), problem.log_partition


def grow(path, n_populations, n_particles, resample_at, key=KEY, **options):
    return ascend(path, Gibbs(), n_populations, n_particles, resample_at, key, **options)


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
    np.testing.assert_allclose(
        counts.mean(axis=0), expected, atol=2 / 2000
    )  # unbiased: the grid's error alone
    assert not counts[:, log_weights == -np.inf].any()


# ---- estimates
@pytest.mark.parametrize("resample_at", [0.7, 1.0])
def test_estimates_of_small_populations_are_unbiased(resample_at):
    path, exact = easy(6)
    populations = grow(path, 1000, 5, resample_at)
    n_resamplings = np.mean([population.records[:, 2].sum() for population in populations])
    assert n_resamplings >= {0.0: 0, 0.7: 1, 1.0: 4}[resample_at]  # of 5
    relative = np.exp([population.records[-1, 0] - exact for population in populations])
    assert abs(relative.mean() - 1) < Z_BOUND * relative.std(ddof=1) / np.sqrt(1000)


@pytest.mark.parametrize(("n_particles", "chain_length"), [(4, 2), (12, 4)])
def test_every_level_of_waste_free_populations_is_unbiased(n_particles, chain_length):
    path, _ = easy(6)
    populations = grow(path, 500, n_particles, 0.5, chain_length=chain_length)
    curves = np.array([population.records[:, 0] for population in populations])
    for level, beta in enumerate(path.ladder[1:]):
        relative = np.exp(
            curves[:, level] - Exact().fit(path.with_ladder([0, beta])).log_partition_
        )
        assert abs(relative.mean() - 1) < Z_BOUND * relative.std(ddof=1) / np.sqrt(500)
    assert np.all([population.records[:, 2] == 1 for population in populations])


@pytest.mark.parametrize("chain_length", [None, 6])
def test_chains_that_go_down_from_exact_draws_give_the_inverse_without_bias(chain_length):
    path, exact = easy(8)
    sums = [
        np.logaddexp.reduce(path.enumerate_block(block, 1))
        for block in range(path.n_enumeration_blocks)
    ]
    starts = path.sample_enumerated(np.array(sums), 2000, np.random.default_rng(0))
    down = descend(path, Gibbs(), starts, KEY, chain_length=chain_length)
    relative = np.exp(
        exact - down.sum(axis=1)
    )  # a chain met from the target has 1 / mean ratio = Z_k / Z_(k+1)
    assert abs(relative.mean() - 1) < Z_BOUND * relative.std(ddof=1) / np.sqrt(2000)


def test_weights_of_families_add_up_to_the_estimate():
    path, _ = easy(8)
    for population in grow(path, 5, 12, 0.9):
        log_weights = family_weights(population)
        assert logsumexp(log_weights) - np.log(12) == pytest.approx(
            population.records[-1, 0], abs=1e-10
        )
        assert np.sum(log_weights > -np.inf) == len(np.unique(population.ancestors)) < 12
        weights = np.exp(population.log_weights) / np.exp(population.log_weights).sum()
        summary = path.summary(population.state)
        np.testing.assert_allclose(
            target_summaries(path, population), [weights @ summary, weights @ summary**2]
        )


# ---- walls
class Shrinking(Path):
    """Uniform on [0, 1 - 0.2 k]: the first level up kills a fifth of the particles, and so on.
    Draws are exact.
    """

    base_log_partition = 0.0
    has_walls = True
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


@pytest.mark.parametrize("resample_at", [0.7])
def test_populations_that_die_count_as_zero(resample_at):
    populations = grow(Shrinking(), 1000, 2, resample_at)
    estimates = np.exp([population.records[-1, 0] for population in populations])
    assert np.mean(estimates == 0) > 0.05
    assert abs(estimates.mean() - 0.4) < Z_BOUND * estimates.std(ddof=1) / np.sqrt(1000)
    dead = next(population for population in populations if population.records[-1, 0] == -np.inf)
    assert np.all(family_weights(dead) == -np.inf)
    assert np.all(np.isnan(target_summaries(Shrinking(), dead)))
    assert dead.records[-1, 1] == 0


def test_waste_free_populations_that_die_count_as_zero():
    populations = grow(Shrinking(), 1000, 4, 0.5, chain_length=2)
    estimates = np.exp([population.records[-1, 0] for population in populations])
    assert np.mean(estimates == 0) > 0.005
    assert abs(estimates.mean() - 0.4) < Z_BOUND * estimates.std(ddof=1) / np.sqrt(1000)
    dead = next(population for population in populations if population.records[-1, 0] == -np.inf)
    assert np.all(family_weights(dead) == -np.inf)
    assert dead.records[-1, 1] == dead.records[-1, 2] == 0

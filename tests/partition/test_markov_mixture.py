"""MarkovMixture: two-sided estimates that cover, unbiased draws, centres that miss the model."""

from dataclasses import replace

import numpy as np
import pytest
from convergence import may_not_converge
from known_problems import make_rbm_problem
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from sklpf import Gaussian, GeometricPath, MarkovMixture
from sklpf.models import RBMPath
from sklpf.paths import Stream, TemperedPath, stream_key
from sklpf.uncertainty import log_mean_exp

SHORT = {"n_centres": 200, "n_sweeps": 256}


def fit(path, seed=0, **options):
    with may_not_converge():
        return MarkovMixture(random_state=seed, **{**SHORT, **options}).fit(path)


def test_its_error_is_far_below_that_of_the_run_that_it_uses():
    problem = make_rbm_problem("medium")
    off = np.array(
        [
            (r.log_partition_, r.result_.diagnostics["tempering"])
            for r in (fit(problem.path, s) for s in range(8))
        ]
    )
    mixture, tempering = np.sqrt(np.mean((off - problem.log_partition) ** 2, axis=0))
    assert mixture < tempering / 2  # .013 and .09 when written


def test_draws_of_the_mixture_are_unbiased_whatever_the_centres():
    """t-test over 40 sets of centres, which are no draws from the model; a false alarm in 6e-5."""
    problem = make_rbm_problem("easy")
    path, rng = problem.path, np.random.default_rng(0)
    centres = path.sample_base(100, Stream(stream_key(0)))
    draws = [
        path.mixture_log_weights(centres, path.draw_conditional(centres, rng)) for _ in range(40)
    ]
    means = np.exp(log_mean_exp(np.array(draws), axis=1) - problem.log_partition)
    assert abs((means.mean() - 1) / stats.sem(means)) < 4.5


class Pair(TemperedPath):
    """x given y is N(y / 2, 1), y given x a fair sign plus noise: a user's path in NumPy with a
    known Gibbs step.

    f_1(x) = 3 (N(x; 1, 2) + N(x; -1, 2)) / 2: y = +-2 + N(0, 4), which makes x = y / 2 + N(0, 1).
    """

    base_log_partition = 0.0
    gibbs_is_reversible = True

    def log_parts(self, x):
        return -((x[:, np.newaxis] - [1.0, -1.0]) ** 2) / 4 - np.log(4 * np.pi) / 2

    def ends(self, state):
        x, _ = state
        base = -(x**2) / 18 - np.log(18 * np.pi) / 2
        return base, np.log(3) + log_mean_exp(self.log_parts(x), axis=1) - base

    def sample_base(self, n, stream):
        x = 3 * stream.generator().standard_normal(n)
        return x, 2 * x

    def gibbs(self, state, levels, stream):
        """A Metropolis step at the chain's level; at the target the exact step through y."""
        rng, (x, y) = stream.generator(), state
        parts = self.log_parts(x)
        sign = np.where(rng.random(len(x)) < 1 / (1 + np.exp(parts[:, 1] - parts[:, 0])), 1.0, -1.0)
        new_y = (
            sign + x + np.sqrt(2) * rng.standard_normal(len(x))
        )  # y given x and its sign is N(sign + x, 2)
        proposal = np.where(
            levels == len(self.ladder) - 1, new_y / 2 + rng.standard_normal(len(x)), 0
        )
        walk = x + 2 * rng.standard_normal(len(x))
        log_rate = self.log_f((walk, y), levels) - self.log_f(state, levels)
        walked = np.where(np.log(rng.random(len(x))) < log_rate, walk, x)
        at_target = levels == len(self.ladder) - 1
        return np.where(at_target, proposal, walked), np.where(at_target, new_y, 2 * walked)

    def draw_conditional(self, centres, rng):
        y = centres[1]
        return y / 2 + rng.standard_normal(len(y)), y

    def mixture_log_weights(self, centres, state):
        base, gain = self.ends(state)
        return (
            base
            + gain
            - log_mean_exp(stats.norm.logpdf(state[0][:, np.newaxis], centres[1] / 2), axis=1)
        )


def test_a_users_path_with_a_known_step():
    """|error| of t(2) at 60 standard errors: a false alarm in 3e-4."""
    path = Pair()
    path.ladder = np.array([0.0, 1.0])
    fitted = fit(path, n_ladders=3, n_centres=90)
    assert fitted.converged_, fitted.result_.reasons
    assert abs(fitted.log_partition_ - np.log(3)) < 60 * fitted.log_partition_std_error_


def test_centres_that_do_not_cover_are_flagged():
    run = fit(make_rbm_problem("easy").path).run_
    rng = np.random.default_rng(0)
    drawn, others = 5 * rng.standard_normal((2, 10, 20)) + [[[0.0]], [[25.0]]]
    wide = replace(run, mixture_draws=drawn, model_draws=others)
    with pytest.warns(ConvergenceWarning, match="the centres don't cover the model"):
        MarkovMixture().fit(wide)


def test_other_paths_and_bad_parameters_are_refused():
    with pytest.raises(
        TypeError, match="MarkovMixture needs a path with the method draw_conditional"
    ):
        fit(GeometricPath(lambda x: -np.sum(x**2, axis=1), base=Gaussian(0.0, 1.0)))
    for options in ({"n_centres": 5}, {"n_ladders": 1}, {"n_sweeps": 3}):
        with pytest.raises(ValueError, match=next(iter(options))):
            fit(make_rbm_problem("easy").path, **options)


def test_the_error_is_at_least_the_mass_that_centres_cannot_have_seen():
    """Without weights every centre gives the model itself, and the spread is that of rounding."""
    path = RBMPath(np.zeros((3, 8)), np.linspace(-1, 1, 8), np.zeros(3), np.full(8, 0.5))
    fitted = MarkovMixture(n_centres=200, n_sweeps=512, random_state=0).fit(path)
    assert fitted.log_partition_std_error_ == pytest.approx(1 / 200, rel=1e-3)

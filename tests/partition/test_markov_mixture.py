"""MarkovMixture: two-sided estimates that cover, unbiased draws, centres that miss the model."""

from dataclasses import replace

import numpy as np
import pytest
from convergence import quietly
from known_problems import make_rbm_problem
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from sklpf.models import RBMPath
from sklpf.partition import MarkovMixture
from sklpf.paths import Stream, stream_key
from sklpf.uncertainty import log_mean_exp

SHORT = {"n_centres": 200, "n_sweeps": 256}


def fit(path, seed=0, **options):
    return quietly(MarkovMixture(random_state=seed, **{**SHORT, **options}), path)


def test_its_error_is_far_below_that_of_the_run_that_it_uses():
    problem = make_rbm_problem("medium")
    runs = [fit(problem.path, s) for s in range(4)]
    off = np.array([(run.log_partition_, run.result_.diagnostics["tempering"]) for run in runs])
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


def test_centres_that_do_not_cover_are_flagged():
    run = fit(make_rbm_problem("easy").path).run_
    rng = np.random.default_rng(0)
    drawn, others = 5 * rng.standard_normal((2, 10, 20)) + [[[0.0]], [[25.0]]]
    wide = replace(run, mixture_draws=drawn, model_draws=others)
    with pytest.warns(ConvergenceWarning, match="the centres don't cover the model"):
        MarkovMixture().fit(wide)


def test_the_error_is_at_least_the_mass_that_centres_cannot_have_seen():
    """Without weights every centre gives the model itself, and the spread is that of rounding."""
    path = RBMPath(np.zeros((3, 8)), np.linspace(-1, 1, 8), np.zeros(3), np.full(8, 0.5))
    fitted = MarkovMixture(n_centres=200, n_sweeps=512, random_state=0).fit(path)
    assert fitted.log_partition_std_error_ == pytest.approx(1 / 200, rel=1e-3)

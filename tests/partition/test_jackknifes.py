"""Standard errors of runs are those of the jackknife over what is independent, written out."""

import numpy as np
import pytest
from convergence import quietly
from known_problems import make_rbm_problem

from sklpf import RTS, SMC
from sklpf.partition import RAISE, MarkovMixture
from sklpf.reweighting import bar
from sklpf.uncertainty import log_mean_exp, t_bound


def of_the_mixture(run, kept):
    return bar(run.mixture_draws[kept].ravel(), -run.model_draws[kept].ravel())


CASES = {  # arrays whose rows are independent, and the estimate by some of them
    "SMC": (SMC(20, 20, 6), "log_means", lambda run, kept: log_mean_exp(run.log_means[kept, -1])),
    "RAISE": (RAISE(), "reverse", lambda run, kept: log_mean_exp(run.reverse[kept])),
    "MarkovMixture": (MarkovMixture(200, 4, 256), "model_draws", of_the_mixture),
}


@pytest.mark.parametrize("name", CASES)
def test_the_standard_error_is_that_of_the_jackknife(name):
    estimator, rows, estimate = CASES[name]
    fitted = quietly(estimator.set_params(random_state=0), make_rbm_problem("easy").path)
    run, found = fitted.run_, fitted.log_partition_std_error_
    everything = np.arange(len(getattr(run, rows)))
    without = np.array([estimate(run, np.delete(everything, g)) for g in everything])
    expected = np.std(without) * np.sqrt(len(without) - 1)
    if name == "SMC":  # its error counts more than populations
        found = fitted.result_.diagnostics["curve_std_error"][-1]
    if name == "MarkovMixture":  # and the mass that fewer than one centre stands for
        expected = np.hypot(expected, 1 / run.mixture_draws.size)
    assert found == pytest.approx(expected, rel=1e-6)


def test_errors_of_simulated_tempering_are_those_of_the_jackknife():
    """Over groups of chains: of the result, and of the estimate that production began with."""
    path = make_rbm_problem("easy").path
    fitted = quietly(RTS(20, 10, 400, random_state=0), path)
    run, groups = fitted.run_, np.arange(10)
    found = fitted.result_.diagnostics["jackknife_std_error"], run.history[-1, 1]
    for estimate, error in zip((run.curve(), run.previous), found):
        without = np.array([estimate(np.delete(groups, g))[-1] for g in groups])
        assert error == pytest.approx(3 * np.std(without), rel=1e-6)  # sqrt(10 - 1)
    moved, *without = (
        run.curve()(kept) - run.previous(kept)
        for kept in (groups, *(np.delete(groups, g) for g in groups))
    )
    noise = t_bound(10, len(moved)) * 3 * np.std(without, axis=0)
    largest = np.max(np.abs(moved) / np.maximum(0.1, noise))
    assert fitted.result_.diagnostics["largest_move"] == pytest.approx(largest, rel=1e-6)

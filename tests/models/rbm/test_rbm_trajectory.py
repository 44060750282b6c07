"""Levels along training: the path against brute force, its kernels against the plain loops, what
training keeps, and the coverage of log Z.
"""

import pickle

import numpy as np
import pytest
from fused_programs import (
    assert_annealing_equals_the_loop,
    assert_derivatives_equal_finite_differences,
    assert_exchange_equals_the_loop,
    assert_levels_follow,
    assert_tempering_equals_the_loop,
)
from known_problems import all_rows
from marks import large
from sklearn.base import clone

from sklpf import (
    AIS,
    RTS,
    BernoulliRBM,
    Exact,
    ParallelTempering,
)
from sklpf.models import RBMPath, RBMTrajectoryPath
from sklpf.models.rbm._learning import Parameters
from sklpf.testing import check_coverage, check_path, check_transition
from sklpf.transitions import Gibbs

LADDER = (0.0, 0.25, 0.6, 1.0)
V = all_rows(6)
BETAS = np.array([0.3, 0.5])


def make_path(n_checkpoints=2, n_hidden=3, n_visible=6, scale=1.0, seed=0, ladder=LADDER):
    rng = np.random.default_rng(seed)
    weights = scale * rng.normal(size=(n_hidden, n_visible))
    intercepts = rng.normal(size=n_visible), rng.normal(size=n_hidden)
    target = RBMPath(weights, *intercepts, rng.uniform(0.2, 0.8, size=n_visible))
    checkpoints = scale * rng.normal(size=(n_checkpoints, n_hidden + 1, n_visible + 1))
    return RBMTrajectoryPath(target, checkpoints, BETAS[:n_checkpoints], ladder)


def formula(path):
    """log f(beta) of all rows in float64: each parameter is interpolated."""
    target = path.target
    last = Parameters(target.components, target.intercept_visible, target.intercept_hidden)

    def log_f(beta):
        def at(ends):
            return np.interp(beta, path.betas, ends)

        arrays = [path.weights.astype(float), path.visible.astype(float), path.hidden.astype(float)]
        for array, final in zip(arrays, last):
            array[-1] = final
        weights, visible, hidden = (np.apply_along_axis(at, 0, array) for array in arrays)
        constant = -np.logaddexp(0, arrays[1][0]).sum() - len(hidden) * np.log(2)
        constant *= max(0, 1 - beta / path.betas[1])
        return constant + V @ visible + np.logaddexp(0, V @ weights.T + hidden).sum(axis=1)

    return log_f


# ---- the path
def test_levels_against_brute_force():
    path = make_path()
    assert_levels_follow(path, path.state_from_rows(V), formula(path), atol=1e-5)
    assert np.logaddexp.reduce(formula(path)(0.0)) == pytest.approx(0, abs=1e-6)


def test_contracts():
    path = make_path()
    check_path(path)
    finer = path.with_ladder(np.linspace(0, 1, 21))
    check_transition(finer, Gibbs(), variables=lambda state: state.v)
    state = path.state_from_rows(V)
    assert_derivatives_equal_finite_differences(path, state, formula(path), rtol=1e-4)


def test_kernels_do_what_the_plain_loops_do():
    path = make_path(scale=0.5)
    assert_annealing_equals_the_loop(path, reverse=False)
    assert_annealing_equals_the_loop(path, reverse=True)
    assert_exchange_equals_the_loop(path)
    assert_tempering_equals_the_loop(path, sweeps_per_redraw=2, stride=3)


@pytest.mark.parametrize(
    ("checkpoints", "betas", "message"),
    [
        (np.zeros((2, 3, 7)), None, r"checkpoints must have the shape .*\(n, 4, 7\)"),
        (np.full((2, 4, 7), np.nan), None, "checkpoints"),
        (np.zeros((2, 4, 7)), [0.5], "betas must hold one number for each of 2 checkpoints"),
        (np.zeros((2, 4, 7)), [0.5, 0.2], "strictly increasing"),
    ],
)
def test_bad_checkpoints(checkpoints, betas, message):
    with pytest.raises(ValueError, match=message):
        RBMTrajectoryPath(make_path().target, checkpoints, betas)


# ---- what training keeps
def rows(n_patterns=4, n_features=24, n=400, seed=0):
    rng = np.random.default_rng(seed)
    patterns = rng.integers(2, size=(n_patterns, n_features))
    flipped = rng.random((n, n_features)) < 0.1
    return (patterns[rng.integers(n_patterns, size=n)] ^ flipped).astype(float)


def trained(seed=0, **parameters):
    settings = {
        "n_components": 6,
        "learning_rate": 0.2,
        "n_iter": 60,
        "batch_size": 20,
        "n_chains": 50,
        "average": True,
        "track_trajectory": True,
        "random_state": seed,
    }
    return BernoulliRBM(**settings | parameters).fit(rows(seed=seed))


def test_tracking_changes_no_other_number():
    tracked, plain = trained(), trained(track_trajectory=False)
    for name in ("components_", "intercept_visible_", "intercept_hidden_", "h_samples_"):
        np.testing.assert_array_equal(getattr(tracked, name), getattr(plain, name))
    assert isinstance(plain.path(), RBMPath)
    assert isinstance(tracked.path(), RBMTrajectoryPath)
    assert isinstance(tracked.path(trajectory=False), RBMPath)
    assert isinstance(tracked.path(weights="joint"), RBMPath)
    for model, weights in ((plain, "marginal"), (tracked, "joint")):
        with pytest.raises(ValueError, match="track_trajectory=True"):
            model.path(weights=weights, trajectory=True)


def test_the_last_level_is_the_model_whatever_was_kept():
    rbm = trained()
    rng = np.random.default_rng(1)
    rbm.components_ = rbm.components_ + rng.normal(size=rbm.components_.shape)
    path = rbm.path()
    v = rng.integers(2, size=(20, 24))
    expected = Parameters.of(rbm).log_f(v.astype(np.float32))
    found = path.log_f(path.state_from_rows(v), np.ones(20, dtype=int))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_training_goes_on_and_is_saved():
    rbm = trained(n_iter=5)
    n_before = len(rbm.path().betas)
    before = rbm._trajectory.n_updates
    for batch in np.array_split(rows(), 20) * 20:
        rbm.partial_fit(batch)
    assert rbm._trajectory.n_updates == before + 400
    assert len(rbm.path().betas) > n_before
    again = pickle.loads(pickle.dumps(rbm))
    np.testing.assert_array_equal(again.path().weights, rbm.path().weights)
    assert not hasattr(clone(rbm), "_trajectory")
    rbm.set_params(track_trajectory=False).partial_fit(rows()[:20])
    assert rbm._trajectory is None


def test_score_and_sample_use_it():
    """Five standard errors with 9 degrees of freedom: false alarm 1e-3. Means of 1000 draws: six of
    theirs, 24 times.
    """
    rbm = trained(partition_estimator=ParallelTempering(n_sweeps=512)).estimate_log_partition()
    truth = Exact().fit(rbm.path()).log_partition_
    assert abs(rbm.log_partition_ - truth) < 5 * rbm.log_partition_std_error_
    exact = clone(rbm).set_params(partition_estimator=None).fit(rows()).sample(1000, random_state=0)
    drawn = rbm.sample(1000, random_state=0)
    np.testing.assert_allclose(drawn.mean(axis=0), exact.mean(axis=0), atol=6 * np.sqrt(0.5 / 1000))


# ---- coverage


BY_AIS = AIS(n_temperatures=1000)
BY_TEMPERING = ParallelTempering(n_sweeps=512)
BY_RTS = RTS(n_temperatures=20, n_sweeps=1000)
HONEST = {"least_coverage": 0.93, "false_alarm": 2e-3}


@pytest.mark.parametrize(
    ("estimator", "n"),
    [(BY_AIS, 6), *(large(estimator, 24) for estimator in (BY_AIS, BY_TEMPERING, BY_RTS))],
    ids=str,
)
def test_coverage_on_models_trained_anew(estimator, n):
    check_coverage(lambda s: trained(s).path(), estimator, n, **HONEST, least_converged=2 / 3)

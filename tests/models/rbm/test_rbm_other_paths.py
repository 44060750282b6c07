"""Paths to an RBM from a mixture, from another RBM and along its training: against brute force,
their kernels against the plain loops, and what their estimates are used for.
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
from known_problems import all_rows, opening_biases
from marks import large
from scipy.special import expit, logsumexp
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklpf import AIS, RTS, SMC, BernoulliRBM, Exact, ParallelTempering
from sklpf.models import RBMPath, RBMTrajectoryPath
from sklpf.models.rbm._checkpoints_path import RBMRatioPath
from sklpf.models.rbm._path import Parameters
from sklpf.testing import check_coverage, check_path, check_transition
from sklpf.transitions import Gibbs

LADDER = (0.0, 0.25, 0.6, 1.0)
V = all_rows(6)


# ---- three paths, and log f of all rows by their definitions
MEANS = np.random.default_rng(1).uniform(0.05, 0.95, (3, 6))


def mixture_path(weights="marginal", n_hidden=4):
    rng = np.random.default_rng(0)
    parameters = rng.normal(size=(n_hidden, 6)), rng.normal(size=6), rng.normal(size=n_hidden)
    single = RBMPath(*parameters, MEANS[0], np.linspace(0, 1, 11), weights)
    return single._with_parts(MEANS[1:], np.array([0.5, 0.3, 0.2]))


def log_f_of_mixture(path):
    """log f of all rows at an inverse temperature, by its definition."""
    fields = V @ path.components.T + path.intercept_hidden
    log_parts = V @ np.log(MEANS).T + (1 - V) @ np.log1p(-MEANS).T

    def at(beta):
        base = logsumexp((1 - beta) * log_parts + np.log([0.5, 0.3, 0.2]), axis=1)
        target = beta * V @ path.intercept_visible + np.logaddexp(0, beta * fields).sum(axis=1)
        return base + target - (1 - beta) * len(path.components) * np.log(2)

    return at


def random_parameters(rng, n_hidden):
    shapes = (n_hidden, 6), 6, n_hidden
    return Parameters(*(rng.normal(size=shape) for shape in shapes))


def log_f(model, v=V):
    fields = v @ model.components.T + model.intercept_hidden
    return v @ model.intercept_visible + np.logaddexp(0, fields).sum(axis=1)


def exact_draws(model, rng, shape):
    log_density = log_f(model)
    return V[rng.choice(len(V), size=shape, p=np.exp(log_density - logsumexp(log_density)))]


def ratio_path(n_a=3, n_b=5, seed=0, n_draws=50, ladder=LADDER):
    rng = np.random.default_rng(seed)
    a, b = random_parameters(rng, n_a), random_parameters(rng, n_b)
    draws = (exact_draws(model, rng, (3, n_draws)) for model in (a, b))
    return a, b, RBMRatioPath(a, b, *draws, ladder)


def log_f_of_ratio(path, n_a=3, n_b=5):
    """The formula of the class's docstring, of all rows."""

    def at(beta):
        blend = [(1 - beta) * x[0] + beta * x[1] for x in (path.weights, path.visible, path.hidden)]
        n = path.hidden.shape[1]
        return log_f(Parameters(*blend)) - np.log(2) * ((1 - beta) * (n - n_a) + beta * (n - n_b))

    return at


def trajectory_path(scale=1.0):
    rng = np.random.default_rng(0)
    weights = scale * rng.normal(size=(3, 6))
    intercepts = rng.normal(size=6), rng.normal(size=3)
    target = RBMPath(weights, *intercepts, rng.uniform(0.2, 0.8, size=6))
    checkpoints = scale * rng.normal(size=(2, 4, 7))
    return RBMTrajectoryPath(target, checkpoints, [0.3, 0.5], LADDER)


def log_f_of_trajectory(path):
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


PATHS = [mixture_path(), mixture_path(n_hidden=8), ratio_path()[2], trajectory_path()]
FORMULAS = [log_f_of_mixture, log_f_of_mixture, log_f_of_ratio, log_f_of_trajectory]


def states(path):
    levels = [np.zeros(len(V), dtype=int)] if isinstance(path, RBMRatioPath) else []
    return path.state_from_rows(V, *levels)


@pytest.mark.parametrize(("path", "formula"), list(zip(PATHS, FORMULAS)))
def test_levels_are_those_of_the_definition(path, formula):
    atol = 2e-5 if formula is log_f_of_mixture else 1e-5
    assert_levels_follow(path, states(path), formula(path), atol=atol)
    assert_derivatives_equal_finite_differences(path, states(path), formula(path), rtol=1e-4)


def test_the_ends_are_normalised_or_the_models():
    a, b, path = ratio_path()
    np.testing.assert_allclose(log_f_of_ratio(path)(0.0), log_f(a), atol=1e-5)
    np.testing.assert_allclose(log_f_of_ratio(path)(1.0), log_f(b), atol=1e-5)
    assert 5 <= path.hidden.shape[1] <= 8
    assert logsumexp(log_f_of_mixture(mixture_path())(0.0)) == pytest.approx(0, abs=1e-9)
    assert logsumexp(log_f_of_trajectory(trajectory_path())(0.0)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    "path",
    [
        mixture_path(),
        mixture_path("joint"),
        ratio_path(n_draws=20_000)[2],
        trajectory_path().with_ladder(np.linspace(0, 1, 21)),
    ],
    ids=["mixture", "joint mixture", "ratio", "trajectory"],
)
def test_contracts(path):
    check_path(path)
    joint = getattr(path, "joint", False)
    check_transition(path, Gibbs(), variables=lambda s: (s.v, s.h) if joint else s.v)


def test_kernels_do_what_the_plain_loops_do():
    ratio, trajectory = ratio_path()[2], trajectory_path(scale=0.5)
    for reverse in (False, True):
        # sums in float32, in another order
        assert_annealing_equals_the_loop(mixture_path(), reverse, tol=1e-5)
        assert_annealing_equals_the_loop(ratio, reverse)
        assert_annealing_equals_the_loop(trajectory, reverse)
    assert_exchange_equals_the_loop(ratio)
    assert_exchange_equals_the_loop(trajectory)
    assert_tempering_equals_the_loop(trajectory, sweeps_per_redraw=2, stride=3)


# ---- from a mixture: the second try that takes it
def model_with_pattern():
    """An RBM with a pattern that has 30 % of the mass, and that its base does not know."""
    rng = np.random.default_rng(3)
    weights = rng.normal(scale=0.3, size=(6, 60))
    pattern = 4.0 * (2 * rng.integers(2, size=60) - 1)
    visible, mean = np.zeros(60), [0.5] * 60
    bias, plain = opening_biases(weights, visible, mean, [pattern], np.log(0.3 / 0.7))
    layers = np.vstack([weights, pattern]), visible, np.r_[np.zeros(6), bias]
    return BernoulliRBM.from_parameters(*layers, visible_mean=mean), plain - np.log(0.7)


@pytest.mark.parametrize("estimator", [AIS(), SMC(), large(ParallelTempering(n_sweeps=512))])
def test_a_missed_pattern_becomes_part_of_the_base(estimator):
    # 4 standard errors or .02 nats; fixed seeds
    model, truth = model_with_pattern()
    estimator.set_params(random_state=0).fit(model)
    assert estimator.converged_
    assert estimator.result_.diagnostics["first_try"] == pytest.approx(truth + np.log(0.7), abs=0.1)
    off = estimator.log_partition_ - truth
    assert abs(off) < max(4 * estimator.log_partition_std_error_, 0.02)


def test_score_makes_the_second_try_and_a_given_base_stays():
    model, truth = model_with_pattern()
    model.set_params(partition_estimator=AIS(random_state=0), random_state=0)
    rows = np.random.default_rng(0).integers(2, size=(5, 60))
    score = model.score(rows)
    exact = model.set_params(partition_estimator=Exact()).score(rows)
    assert abs(score - exact) < 0.1
    with pytest.warns(ConvergenceWarning, match="a region of the target holds"):
        AIS(random_state=0).fit(model.path(base=[0.5] * 60))


# ---- from another model: the log ratio
def models(scale, n_a=4, n_b=6, seed=0):
    """Two models of 12 visible units; where they share hidden units, these differ by a tenth."""
    rng = np.random.default_rng(seed)
    shared, other = rng.normal(size=(6, 12)), rng.normal(size=(6, 12))
    return tuple(
        BernoulliRBM.from_parameters(
            scale * weights[:n],
            scale * rng.normal(size=12),
            np.zeros(n),
            random_state=seed,
            partition_estimator=Exact(),
        )
        for weights, n in ((shared, n_a), (shared + 0.1 * other, n_b))
    )


@pytest.mark.parametrize(("scale", "tempered"), [(0.5, True), large(2.0, False)])
def test_ratio_of_enumerable_models(scale, tempered):
    a, b = models(scale)
    truth = b.estimate_log_partition().log_partition_ - a.estimate_log_partition().log_partition_
    if tempered:
        for model in (a, b):
            model.set_params(partition_estimator=ParallelTempering(n_sweeps=1024))
    path = a._ratio_path(b)
    result = ParallelTempering(n_sweeps=1024, random_state=0).fit(path).result_
    # t with 9 degrees of freedom: 1e-5 false alarms each
    assert abs(result.log_partition - truth) < student_t.isf(5e-6, 9) * result.std_error
    assert result.converged
    assert result.std_error < 0.1


@pytest.mark.large
def test_draws_of_a_model_cover_a_region_that_their_first_run_has_missed(monkeypatch):
    """Two units more open regions of 15 % each, which tempering from the means of the smaller model
    does not find: the ratio of both models was 1 then, and is e^.36.

    Shares are of 1280 draws of ten ladders; .05 is four standard errors and more.
    """
    rng = np.random.default_rng(5)
    components = rng.normal(scale=0.3, size=(6, 60))
    visible = rng.normal(scale=0.5, size=60) - 1
    mean = expit(visible)
    patterns = rng.integers(2, size=(2, 60))
    openings = 6.0 * patterns - 3
    biases, _ = opening_biases(components, visible, mean, openings, np.log(0.15 / 0.7))
    tempering = ParallelTempering(n_sweeps=1024)
    for seed in range(4):  # of half of them the ladders disagree on the regions at first
        smaller, larger = (
            BernoulliRBM.from_parameters(
                np.vstack([components, openings[:n]]),
                visible,
                np.r_[np.zeros(6), biases[:n]],
                mean,
                partition_estimator=tempering,
                random_state=seed,
            )
            for n in (0, 2)
        )
        path = smaller._ratio_path(larger)
        is_near = np.mean(path.draws[..., np.newaxis, :] == patterns, axis=-1) > 0.85
        np.testing.assert_allclose(is_near[0].mean(axis=(0, 1)), 0, atol=0.01)
        np.testing.assert_allclose(is_near[1].mean(axis=(0, 1)), 0.15, atol=0.05)

    # Where a second run misses them as well there is no path.
    monkeypatch.setattr(RBMPath, "with_regions", lambda path, regions: path)
    assert smaller._ratio_path(larger) is None


# ---- along training
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
        RBMTrajectoryPath(trajectory_path().target, checkpoints, betas)


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


BY_AIS, BY_TEMPERING = AIS(n_temperatures=1000), ParallelTempering(n_sweeps=512)
BY_RTS = RTS(n_temperatures=20, n_sweeps=1000)
HONEST = {"least_coverage": 0.93, "false_alarm": 2e-3}


@pytest.mark.parametrize(
    ("estimator", "n"),
    [(BY_AIS, 6), *(large(estimator, 24) for estimator in (BY_AIS, BY_TEMPERING, BY_RTS))],
    ids=str,
)
def test_coverage_on_models_trained_anew(estimator, n):
    check_coverage(lambda s: trained(s).path(), estimator, n, least_converged=2 / 3, **HONEST)

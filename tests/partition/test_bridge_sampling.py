"""BridgeSampling: right numbers from draws of every origin, and alarms where they don't do."""

from types import SimpleNamespace

import numpy as np
import pytest
from convergence import alarm_kinds, quietly
from draws import autoregressive
from known_densities import make_density_problem
from marks import large
from scipy.special import gammaln
from scipy.stats import chi2

from sklpf import HAIS, SMC, BridgeSampling, Gaussian, GeometricPath
from sklpf.uncertainty import effective_draws

LOG_2PI = np.log(2 * np.pi)


def exact(kind, n_chains=4, n_draws=500, seed=0):
    problem = make_density_problem(kind)
    rng = np.random.default_rng(seed)
    points = problem.path.draw(n_chains * n_draws, rng)
    return problem, points.reshape(n_chains, n_draws, -1)


def fitted(path, draws, proposal="warp3", seed=0):
    return quietly(BridgeSampling(proposal, random_state=seed), path, draws=draws)


@pytest.mark.parametrize(
    ("kind", "proposal"),
    [("laplace 6-D", "normal"), ("laplace 6-D", "t"), ("linear regression", "warp3")]
    + [("funnel", "mixture")],
)
def test_log_partition_from_exact_draws(kind, proposal):
    """4 numbers within 4.5 standard errors: a false alarm in 3e-5 of normal ones."""
    problem, draws = exact(kind)
    bridge = fitted(problem.path, draws, proposal)
    assert bridge.converged_
    assert 0 < bridge.log_partition_std_error_ < 0.1
    off = bridge.log_partition_ - problem.log_partition
    assert abs(off) < 4.5 * bridge.log_partition_std_error_


def test_it_is_the_bridge_of_meng_and_wong():
    """Their iteration, as Gronau et al. (2017) write it, from the log weights of the run."""
    problem, draws = exact("laplace 6-D")
    bridge = fitted(problem.path, draws, "normal")
    halves = bridge.result_.diagnostics["half_log_partition"]
    for log_partition, one in zip(halves, bridge.run_.bridges):
        l1, l2 = np.exp(one.at_target.ravel()), np.exp(one.at_proposal)
        n1, n2 = min(effective_draws(one.at_target), l1.size), l2.size
        s1, s2 = n1 / (n1 + n2), n2 / (n1 + n2)
        r = 1.0
        for _ in range(1000):
            r = np.mean(l2 / (s1 * l2 + s2 * r)) / np.mean(1 / (s1 * l1 + s2 * r))
        assert log_partition == pytest.approx(np.log(r), abs=1e-9)


@pytest.mark.parametrize(("laplace", "n_sets"), [(False, 15), large(True, 300)])
def test_standard_errors_are_those_of_many_sets(laplace, n_sets):
    """The sum of squared z over n sets of draws is chi-square with n degrees of freedom: a
    false-alarm rate of 1e-4 each; seeds are fixed.

    A normal target's two halves have the same error from the target's draws. Those of a Laplace
    target are nearly independent: taken as the same, the sum of 300 is 198.
    """
    rng = np.random.default_rng(0)
    squares = []
    for seed in range(n_sets):
        if laplace:
            draws = rng.laplace(size=(4, 100, 2))
            bridge = fitted(lambda x: -np.sum(np.abs(x), axis=1), draws, "normal", seed)
            off = bridge.log_partition_ - 2 * np.log(2)
        else:
            draws = rng.normal(size=(4, 100, 2))
            bridge = fitted(lambda x: -np.sum(x**2, axis=1) / 2, draws, "normal", seed)
            off = bridge.log_partition_ - LOG_2PI
        squares.append((off / bridge.log_partition_std_error_) ** 2)
    low, high = chi2.ppf([5e-5, 1 - 5e-5], n_sets)
    assert low < sum(squares) < high


def test_heavy_tails_want_a_t():
    problem, draws = exact("student-t 6-D", seed=3)
    reasons = fitted(problem.path, draws, "normal").result_.reasons
    assert any("a tail of Pareto shape" in reason for reason in reasons)
    bridge = fitted(problem.path, draws, "t")
    assert bridge.converged_
    off = bridge.log_partition_ - problem.log_partition
    assert abs(off) < 3.5 * bridge.log_partition_std_error_


def test_modes_want_a_mixture():
    problem, draws = exact("two gaussians 10-D")
    normal, mixture = (fitted(problem.path, draws, name) for name in ("normal", "mixture"))
    assert mixture.log_partition_std_error_ < 0.3 * normal.log_partition_std_error_


# -- draws of every origin
class LogScale(GeometricPath):
    """x = log of rates a ~ gamma(3), of shape (2,), and b ~ gamma(3), with the Jacobian."""

    parameter_shapes = {"a": (2,), "b": ()}

    def __init__(self):
        super().__init__(lambda x: np.sum(3 * x - np.exp(x), axis=1), base=Gaussian([1, 1, 1], 1.0))

    def constrain(self, position):
        return {"a": np.exp(position[:, :2]), "b": np.exp(position[:, 2])}

    def unconstrain(self, values):
        if values.keys() != self.parameter_shapes.keys():
            raise ValueError(f"parameters are a, b, got {', '.join(values)}")
        return np.log(np.column_stack([values["a"], values["b"]]))


def named_draws():
    rates = np.random.default_rng(0).gamma(3, size=(4, 500, 3))
    return {"b": rates[..., 2], "a": rates[..., :2]}


def test_names_are_put_in_order_and_one_chain_needs_no_axis():
    values = named_draws()
    bridge = fitted(LogScale(), values)
    assert abs(bridge.log_partition_ - 3 * gammaln(3)) < 0.03
    unconstrained = np.log(np.concatenate([values["a"], values["b"][..., np.newaxis]], axis=2))
    assert fitted(LogScale(), unconstrained).log_partition_ == bridge.log_partition_
    one = ({name: array[chain] for name, array in values.items()} for chain in (0, slice(1)))
    assert len({fitted(LogScale(), draws).log_partition_ for draws in one}) == 1


@pytest.mark.parametrize("origin", ["Dataset", "DataTree", "InferenceData"])
def test_labelled_draws(origin):
    xr = pytest.importorskip("xarray")
    values = named_draws()
    a = ("draw", "chain", "i"), np.swapaxes(values["a"], 0, 1)
    posterior = xr.Dataset({"a": a, "b": (("chain", "draw"), values["b"])})
    diverging = np.zeros((4, 500), dtype=bool)
    diverging[1, 7] = True
    statistics = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
    given = {
        "Dataset": posterior,
        "DataTree": xr.DataTree.from_dict({"posterior": posterior, "sample_stats": statistics}),
        "InferenceData": SimpleNamespace(posterior=posterior, sample_stats=statistics),
    }[origin]
    bridge = fitted(LogScale(), given)
    assert bridge.log_partition_ == fitted(LogScale(), values).log_partition_
    assert ("divergences" in alarm_kinds(bridge)) == (origin != "Dataset")
    if origin == "Dataset":
        one = {name: array[:1] for name, array in values.items()}
        alone = fitted(LogScale(), posterior.sel(chain=0))
        assert alone.log_partition_ == fitted(LogScale(), one).log_partition_
        stacked = posterior.stack(sample=("chain", "draw"))  # as az.extract does
        with pytest.raises(ValueError, match="dimensions chain and draw, .* without az.extract"):
            fitted(LogScale(), stacked)


@pytest.mark.parametrize("estimator", [HAIS(100, 200, random_state=0), large(SMC(random_state=0))])
def test_draws_of_our_own_runs(estimator):
    """Weighted ones; 4 standard errors."""
    path = GeometricPath(
        lambda x: -np.sum(np.abs(x), axis=1), grad=lambda x: -np.sign(x), base=Gaussian([0, 0], 4.0)
    )
    estimator.fit(path)
    givens = estimator, estimator.run_, estimator.result_, estimator.result_.draws
    pairs = ((target, given) for given in givens for target in (path, path.log_density))
    found = [fitted(target, given).log_partition_ for target, given in pairs]
    assert len(set(found)) == 1
    error = fitted(path, estimator).log_partition_std_error_
    assert abs(found[0] - 2 * np.log(2)) < 4 * error < 0.3


# -- alarms
def test_draws_of_a_run_that_did_not_converge():
    """A bridge from them may agree with itself; the run's alarm goes with its draws."""
    path = make_density_problem("two gaussians 10-D").path
    short = quietly(SMC(n_temperatures=2, random_state=0), path)
    assert not short.converged_
    for given in (short, short.result_, short.run_):
        bridge = fitted(path, given)
        assert "runs-not-converged" in alarm_kinds(bridge)
        assert short.result_.alarms[0].seen in bridge.result_.summary()
    assert "runs-not-converged" not in alarm_kinds(fitted(path, short.result_.draws))


def test_repeated_draws_in_any_order_count_once():
    """400 draws ten times each, shuffled; and states that a Markov chain repeats by staying where
    it is, of which each draw is new. 4.5 standard errors: a false alarm in 7e-6.
    """
    problem, draws = exact("laplace 6-D", n_draws=1000)
    rng = np.random.default_rng(1)
    points = draws.reshape(4000, -1)
    shuffled = rng.permutation(np.repeat(points[:400], 10, axis=0)).reshape(draws.shape)
    bridge = fitted(problem.path, shuffled)
    assert "repeated-draws" in alarm_kinds(bridge)
    assert bridge.result_.diagnostics["effective_draws"] <= 400

    stays = np.repeat(points, rng.geometric(0.3, 4000), axis=0)[:4000].reshape(draws.shape)
    bridge = fitted(problem.path, stays)
    assert "repeated-draws" not in alarm_kinds(bridge)
    off = bridge.log_partition_ - problem.log_partition
    assert abs(off) < 4.5 * bridge.log_partition_std_error_


# -- other orders
def ensemble():
    """16 AR(1) walkers (n_walkers, n_steps, d) of a normal density, and its log density."""
    return autoregressive(0.9, (16, 250, 3)), lambda x: -0.5 * np.sum(x**2, axis=1)


def test_draws_in_other_orders_are_read_as_the_chains_that_they_are():
    right, log_density = ensemble()
    expected = fitted(log_density, right)
    steps_first = right.swapaxes(0, 1)
    with pytest.warns(UserWarning, match=r"250 steps of 16 chains.*swapaxes\(0, 1\)") as told:
        assert fitted(log_density, steps_first).log_partition_ == expected.log_partition_
    assert len(told) == 1
    with pytest.warns(UserWarning, match="16 chains that take turns.*get_chain"):
        in_turn = fitted(log_density, steps_first.reshape(-1, 3))
    assert in_turn.log_partition_ == expected.log_partition_
    assert expected.result_.diagnostics["effective_draws"] < 500  # of 4000


@pytest.mark.parametrize("proposal", ["warp3", "t"])
def test_shuffled_chains_are_noticed_by_their_moments(proposal):
    right, log_density = ensemble()
    shuffled = np.random.default_rng(1).permutation(right.reshape(-1, 3))
    bridge = fitted(log_density, shuffled, proposal)
    assert alarm_kinds(bridge) & {"not-of-this-density", "readings-differ"}
    assert bridge.result_.diagnostics["moments"] > 3
    assert fitted(log_density, right, proposal).result_.diagnostics["moments"] < 2.5


def test_samplers_of_emcee_and_numpyro_themselves():
    right, log_density = ensemble()
    expected = fitted(log_density, right).log_partition_
    emcee = SimpleNamespace(get_chain=lambda: right.swapaxes(0, 1))
    assert fitted(log_density, emcee).log_partition_ == expected
    numpyro = SimpleNamespace(get_samples=lambda group_by_chain: {"x": right})
    assert fitted(log_density, numpyro).log_partition_ == expected


def test_checks_without_gradients_take_no_more_points_than_the_run_in_many_dimensions():
    n_points = 0

    def log_density(x):
        nonlocal n_points
        n_points += len(x)
        return -0.5 * np.sum(x**2, axis=1)

    draws = np.random.default_rng(0).normal(size=(4, 600, 120))
    bridge = BridgeSampling(random_state=0).fit(log_density, draws=draws)
    assert bridge.converged_
    assert n_points < 2 * bridge.run_.n_evaluations + 12_000


# -- errors
@pytest.mark.parametrize(
    ("draws", "error", "sentence"),
    [
        (None, TypeError, "fit needs draws"),
        (np.zeros((4, 100, 3)), ValueError, r"draws must have shape \(n_chains, n_draws, 8\)"),
        (np.zeros((3, 8)), ValueError, "at least 20"),
        ("posterior", TypeError, "draws must be real numbers"),
    ],
)
def test_draws_that_are_none(draws, error, sentence):
    path = make_density_problem("linear regression").path
    with pytest.raises(error, match=sentence):
        BridgeSampling().fit(path, draws=draws)


def test_columns_that_the_density_does_not_know():
    """Such as lp__ of Stan's draws; in a box a column may be uniform."""

    def log_density(x):
        return -np.sum(x[:, [0, 2]] ** 2, axis=1)

    draws = np.random.default_rng(0).standard_normal((4, 100, 4))
    with pytest.raises(ValueError, match="does not depend on columns 1 and 3, .*lp__"):
        fitted(log_density, draws)
    sides = np.array([[-np.inf, -9.0, -np.inf, -9.0], [np.inf, 9.0, np.inf, 9.0]])
    path = GeometricPath(log_density, base=Gaussian(np.zeros(4), 1.0), bounds=sides)
    assert fitted(path, draws).run_.n_evaluations > 0
    with pytest.raises(ValueError, match="does not depend on columns 1 and 3"):
        HAIS(20, 10).fit(GeometricPath(log_density, base=Gaussian(np.zeros(4), 1.0)))


def test_a_support_without_volume():
    def log_density(x):
        is_whole = np.all(x == np.round(x), axis=1)
        return np.where(is_whole, -0.5 * np.sum(x**2, axis=1), -np.inf)

    path = GeometricPath(log_density, base=Gaussian(np.zeros(2), 2.0))
    draws = np.round(2 * np.random.default_rng(0).normal(size=(4, 200, 2)))
    with pytest.raises(ValueError, match="its support has no volume"):
        fitted(path, draws, "normal")


def test_draws_outside_of_the_support():
    problem, draws = exact("box gaussian")
    draws = draws.copy()
    draws[0, 0, 0] = 1.5
    with pytest.raises(ValueError, match="log_density is -inf at the draw"):
        fitted(problem.path, draws)

import logging
from dataclasses import replace

import numpy as np
import pytest
from convergence import assert_right, quietly
from marks import large
from scipy.special import gammaln

from sklpf import AdaptiveSMC, Gaussian, GeometricPath, Mixture, Uniform
from sklpf.interop import from_prior_transform
from sklpf.testing import check_coverage
from sklpf.transitions import HMC, RandomWalk, Slice

LOG_2PI = np.log(2 * np.pi)


def narrow(d, width, seed=0):
    """A correlated Gaussian likelihood of some width in a prior from -1 to 1, and its evidence."""
    rng = np.random.default_rng(seed)
    root = width * (np.eye(d) + 0.5 * rng.normal(size=(d, d)))
    mean = rng.uniform(-0.5, 0.5, d)
    log_likelihood = Gaussian(mean, root @ root.T).log_density
    return log_likelihood, lambda u: 2 * u - 1, -d * np.log(2)


def modes(d, seed):
    """Two or three Gaussians of similar widths in a prior from -10 to 10, and the evidence."""
    rng = np.random.default_rng([d, seed])
    k = int(rng.integers(2, 4))
    means = rng.uniform(-7, 7, (k, d))
    widths = 0.3 * 10 ** rng.uniform(-0.1, 0.1, k)
    parts = [Gaussian(mean, width**2) for mean, width in zip(means, widths)]
    likelihood = Mixture(parts, rng.dirichlet(np.full(k, 5.0)))
    return likelihood.log_density, lambda u: 20 * u - 10, -d * np.log(20)


@pytest.mark.parametrize(
    ("d", "width", "tol"), [(1, 1e-4, 0.1), large(3, 1e-4, 0.1), (10, 1e-4, 0.1), (3, 0.01, 0.003)]
)
def test_a_likelihood_that_is_ten_thousand_times_narrower_than_its_prior(d, width, tol):
    """And one of many particles, whose rounds end where populations stay."""
    log_likelihood, transform, truth = narrow(d, width)
    path = from_prior_transform(log_likelihood, transform, d, vectorized=True)
    smc = AdaptiveSMC(tol=tol, random_state=0).fit(path)
    assert smc.converged_
    # t with 9 df: false alarm 1e-3 each
    assert abs(smc.log_partition_ - truth) < 4.8 * smc.log_partition_std_error_
    if tol == 0.1:
        assert smc.log_partition_std_error_ <= 0.1
        assert smc.result_.n_sweeps < 400_000
        return
    assert smc.result_.diagnostics["effective_ancestors"] > 4000  # of 2000 points that are compared
    assert smc.result_.diagnostics["n_rounds"] <= 4


@pytest.mark.parametrize("n", [4, large(48)])
def test_intervals_cover_regressions_and_modes(n):
    def problem(seed):
        d = 2 + seed % 4 // 2 * 2
        likelihood, transform, truth = narrow(d, 0.05, seed) if seed % 2 else modes(d, seed)
        return d, from_prior_transform(likelihood, transform, d, vectorized=True), truth

    least = {"least_coverage": 0.95, "least_converged": 0.9}
    check_coverage(problem, AdaptiveSMC(), n, **least, false_alarm=2e-4)


@pytest.mark.parametrize("transition", [None, HMC(), RandomWalk(metric="diag"), Slice()], ids=str)
def test_any_move_with_and_without_gradient(transition):
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]]) * 0.01
    inverse = np.linalg.inv(covariance)
    path = GeometricPath(
        lambda x: -0.5 * np.einsum("ni,ij,nj->n", x - 3, inverse, x - 3),
        grad=lambda x: -(x - 3) @ inverse,
        base=Gaussian([0, 0], 4.0),
    )
    smc = AdaptiveSMC(200, transition=transition, random_state=1).fit(path)
    truth = 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert_right(smc, truth)  # 1e-3 each


def ordered(u):
    """0 where coordinates increase, in 1/d! of the unit cube."""
    return np.where((np.diff(u, axis=1) > 0).all(axis=1), 0.0, -np.inf)


@pytest.mark.parametrize("seed", [*(large(seed) for seed in range(4)), 4])
def test_a_target_with_mass_at_one_of_720_base_draws(seed):
    path = from_prior_transform(ordered, lambda u: u, 6, vectorized=True)
    if seed == 4:
        box = [0.0] * 6, [1.0] * 6
        path = GeometricPath(ordered, base=Uniform(*box), bounds=box)
    smc = AdaptiveSMC(200, tol=0.2, random_state=seed).fit(path)
    assert smc.converged_
    # t with 9 df: false alarm 7e-3 each
    error = smc.log_partition_ + gammaln(7)
    assert abs(error) < 3.5 * smc.log_partition_std_error_


SEVEN = 8.0 * np.array([[0, 0], [1, 1], [2, 0], [2, 2], [-1, 0], [-2, -1], [0, -2]])
LOST = {  # normalised mixtures: of which particles lose a mode, or never meet one
    "narrower and heavier": (
        Mixture([Gaussian([-3.0] * 5, 0.5**2), Gaussian([3.0] * 5, 0.15**2)], [0.3, 0.7]),
        Uniform([-10.0] * 5, [10.0] * 5),
        0,
    ),
    "of a hundredth of the width": (
        Mixture([Gaussian([0, 0], 1.0), Gaussian([1.5, 1.5], 1e-4)]),
        Gaussian([0, 0], 4.0),
        1,
    ),
    "far beyond the base": (
        Mixture([Gaussian(centre, 0.3**2) for centre in SEVEN]),
        Gaussian([0, 0], 9.0),
        1,
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_modes_that_particles_have_lost_are_found_by_climbs(name):
    target, base, seed = LOST[name]
    bounds = (-10, 10) if isinstance(base, Uniform) else None
    path = GeometricPath(target.log_density, base=base, bounds=bounds)
    if name == "narrower and heavier":
        unchecked = quietly(AdaptiveSMC(checks=False, random_state=seed), path)
        assert unchecked.log_partition_ < -1
    assert_right(AdaptiveSMC(random_state=seed).fit(path), 0.0)  # 1e-3


def test_what_it_says_where_it_can_not_be_trusted():
    log_likelihood, transform, _ = narrow(8, 1e-4)
    path = from_prior_transform(log_likelihood, transform, 8, vectorized=True)
    smc = quietly(AdaptiveSMC(100, max_sweeps=20_000, random_state=0), path)
    assert not smc.converged_
    assert "the particles stopped at inverse temperature" in " ".join(smc.result_.reasons)

    path = GeometricPath(lambda x: -(x**2).sum(axis=1), base=Gaussian([0.0] * 3, 9.0))
    smc = quietly(AdaptiveSMC(tol=1e-4, max_sweeps=30_000, random_state=0), path)
    assert any("above tol: raise max_sweeps" in reason for reason in smc.result_.reasons)
    for drift, is_found in ((3.5, False), (6.5, True)):
        alarms = replace(smc.run_, drift=drift, exploration_incomplete=False).search_alarms()
        assert [alarm.kind for alarm in alarms] == ["search-not-over"] * is_found


def test_a_base_that_hardly_draws_a_point_with_mass_is_refused():
    path = GeometricPath(lambda x: np.where(x[:, 0] > 40, 0.0, -np.inf), base=Gaussian([0.0], 1.0))
    with pytest.raises(ValueError, match="base draws hardly any point where the target has mass"):
        AdaptiveSMC(random_state=0).fit(path)


def test_verbose_tells_how_far_particles_are(caplog):
    path = GeometricPath(lambda x: -(x**2).sum(axis=1) / 2e-4, base=Gaussian([0.0, 1.0], 1.0))
    with caplog.at_level(logging.INFO, logger="sklpf"):
        AdaptiveSMC(50, checks=False, random_state=0, verbose=1).fit(path)
    said = caplog.text
    assert "particles at inverse temperature 1 after" in said
    assert "round 1: log Z = " in said

"""Rules of quadrature, moments and reweighted slopes on functions whose integrals are known."""

import numpy as np
import pytest
from known_problems import random_layers
from marks import large
from scipy.special import log_softmax, logsumexp
from scipy.stats import t as student_t

from sklpf import RTS, Exact, ParallelTempering
from sklpf.models import RBMPath
from sklpf.reweighting import RULES, integrate, level_moments, reweighted_slopes, rts_curve
from sklpf.uncertainty import jackknife

LADDER = np.array([0.0, 0.1, 0.25, 0.4, 0.7, 1.0])


def moments_of(slope, curvature, ladder=LADDER):
    """Moments with these values: of one state a level."""
    sums = np.column_stack([np.ones(len(ladder)), slope, np.square(slope), curvature])
    return level_moments(sums, ladder)


def exact(k):
    """log Z = exp(beta) - 1 up to level k, a convex function, as on tempered paths."""
    return np.expm1(LADDER[k])


def test_rules_on_a_convex_curve():
    moments = moments_of(np.exp(LADDER), np.exp(LADDER))
    curves = {rule: integrate(LADDER, moments, rule) for rule in RULES}
    assert all(curve.shape == LADDER.shape and curve[0] == 0 for curve in curves.values())
    assert np.all(curves["left"][1:] < exact(slice(1, None)))
    assert np.all(curves["right"][1:] > exact(slice(1, None)))
    off = {rule: abs(curve[-1] - exact(-1)) for rule, curve in curves.items()}
    assert off["corrected"] < 1e-4 < off["trapezoid"] < 0.02 < off["left"]
    assert off["simpson"] < off["trapezoid"] / 4


def test_corrected_rule_is_exact_for_cubics():
    """The integral of a quartic: the trapezoidal rule with both corrections of its ends is exact
    for a cubic slope.
    """
    slope, curvature = 4 * LADDER**3 - 6 * LADDER + 2, 12 * LADDER**2 - 6
    curve = integrate(LADDER, moments_of(slope, curvature), "corrected")
    np.testing.assert_allclose(curve, LADDER**4 - 3 * LADDER**2 + 2 * LADDER, atol=1e-14)


def test_moments_and_levels_without_states():
    sums = np.array([[4.0, 8.0, 20.0, 2.0], [0, 0, 0, 0], [2.0, 8.0, 34.0, 1.0]])
    slope, curvature = level_moments(sums, np.array([0.0, 0.25, 1.0]))
    np.testing.assert_allclose(slope, [2.0, 2.5, 4.0])
    np.testing.assert_allclose(curvature, [1.5, 1.5, 1.5])


def test_reweighted_slopes_integrate_to_the_estimate_of_rts():
    """Appendix C: what RTS returns is the integral of the reweighted slopes; 400 levels leave 1e-4
    of quadrature.
    """
    rng, ladder = np.random.default_rng(0), np.linspace(0, 1, 400)
    gains = rng.normal(3.0, 2.0, size=(50, 1))
    vectors, log_pseudo_prior = ladder * gains, -3.0 * ladder
    slopes = reweighted_slopes(vectors, gains, log_pseudo_prior)
    log_q = log_softmax(vectors + log_pseudo_prior, axis=1)
    rts = rts_curve(log_pseudo_prior, logsumexp(log_q, axis=0))
    integral = integrate(ladder, moments_of(slopes, np.zeros(400), ladder), "trapezoid")
    np.testing.assert_allclose(integral, rts, atol=1e-4)
    repeated = np.repeat(gains, 400, axis=1)
    np.testing.assert_allclose(reweighted_slopes(vectors, repeated, log_pseudo_prior), slopes)


# ---- sums of runs
LEVELS = np.array([0.0, 0.3, 0.6, 0.9, 1.0])


def small_rbm(weights):
    layers = random_layers(np.random.default_rng(0), 4, 6)
    return RBMPath(*layers, np.full(6, 0.4), LEVELS, weights)


def exact_derivatives(path, beta, step=1e-3):
    paths = (path.with_ladder([0, b]) for b in (beta - step, beta, beta + step))
    below, here, above = (Exact().fit(to_beta).log_partition_ for to_beta in paths)
    return (above - below) / (2 * step), (above - 2 * here + below) / step**2


def derivatives(sums):
    """Of pooled sums (4,): E U, and Var U + E dU / dbeta."""
    n, first, second, slope = sums
    mean = first / n
    return np.array([mean, second / n - mean**2 + slope / n])


def sums_of_runs(path):
    tempering = ParallelTempering(40, ladder=LEVELS, adapt=False, n_sweeps=4096, random_state=0)
    tempering.fit(path)
    rts = RTS(ladder=LEVELS, n_sweeps=4000, random_state=0).fit(path)
    return tempering.run_.last.level_sums.sum(axis=0), rts.run_.rounds[-1].level_sums.sum(axis=0)


@pytest.mark.parametrize("weights", ["marginal", large("joint")])
def test_level_sums_give_the_curvature_of_log_z(weights):
    """d log Z / d beta = E U, d^2 log Z / d beta^2 = Var U + E dU / d beta, U = d log f / d beta.

    Compared with finite differences of enumerated log Z, step 1e-3: right to 1e-6 here. Errors come
    from independent ladders or groups: 5.0 standard errors with 39 degrees of freedom, 6.6 with 9,
    are false alarms in 1.3e-5 and 1e-4 of comparisons, of which there are 12 and 12.
    """
    path = small_rbm(weights)
    for sums, bound in zip(sums_of_runs(path), (5.0, 6.6), strict=True):
        n_groups = len(sums)
        assert student_t.sf(bound, n_groups - 1) < 1e-4
        for level in (1, 2, 3):

            def of_groups(keep, sums=sums[:, level]):
                return derivatives(sums[keep].sum(axis=0))

            value, error = jackknife(of_groups, n_groups)
            exact = exact_derivatives(path, LEVELS[level])
            assert np.all(error < [0.05, 0.3])
            assert np.all(np.abs(value - exact) < bound * error + 1e-5)

"""Linear generative models: their closed log Z, gradients, and rows that don't touch each other."""

import numpy as np
import pytest
from known_rows import LinearRowsPath, make_rows_problem
from scipy.integrate import quad
from scipy.special import logsumexp

from sklpf.paths import Stream, stream_key
from sklpf.testing import check_path

KINDS = [(kind, base) for kind in ("gaussian", "laplace") for base in ("posterior", "prior")]


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_one_dimension_agrees_with_quadrature(kind):
    problem = make_rows_problem(kind, 5, 1, 0.4, base="prior")
    for t in range(5):
        row = problem.path.row(t)
        peak = row.X[0] / row.mixing[0, 0]

        def density(a, row=row):
            return np.exp(row.log_f(row.at(np.array([[a]])), np.array([1]))[0])

        z = quad(density, -20, 20, points=[0, peak], epsabs=0, epsrel=1e-10, limit=200)[0]
        assert np.log(z) == pytest.approx(problem.log_partition[t], abs=1e-8)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_draws_from_the_gaussian_posterior_agree(kind):
    """Plain importance sampling from the base; 5 standard errors for 4 rows: 2e-6 false alarms."""
    problem = make_rows_problem(kind, 4, 3, 0.3)
    for t in range(4):
        row = problem.path.row(t)
        gain = row.ends(row.sample_base(20_000, Stream(stream_key(0))))[1]
        estimate = logsumexp(gain) - np.log(len(gain))
        std_error = np.exp(gain - estimate).std() / np.sqrt(len(gain))
        assert abs(estimate - problem.log_partition[t]) < 5 * std_error < 0.05


def test_no_row_is_too_far_out_for_the_closed_form():
    path = make_rows_problem("laplace", 1, 2).path
    far = LinearRowsPath([[80.0, -200.0]], path.mixing, 0.01, prior="laplace")
    from known_rows import _orthogonal_laplace

    y = far.X @ far.mixing
    expected = np.sum(
        0.01**2 / 2 - np.abs(y) - np.log(2)
    )  # far out a Laplace density is an exponential one
    assert _orthogonal_laplace(far.X, far.mixing, 0.01)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("kind", "base"), KINDS)
def test_a_row_keeps_the_contract_of_a_path(kind, base):
    row = make_rows_problem(kind, 2, 4, base=base).path.row(1)
    check_path(row.with_ladder([0, 0.3, 1]))
    state, h = row.sample_base(6, Stream(stream_key(0))), 1e-5
    for j, step in enumerate(h * np.eye(4)):
        up, down = (np.array(row.ends(row.at(state.position + sign * step))) for sign in (1, -1))
        slopes = [gradient[:, j] for gradient in row.gradients(state)]
        np.testing.assert_allclose((up - down) / (2 * h), slopes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "base"), KINDS)
def test_both_bases_lead_to_the_same_target(kind, base):
    """The density of a row's latent variables; y = R^-1 (a - mu) has |det R| times it."""
    row, plain = (make_rows_problem(kind, 3, 4, base=b).path.row(2) for b in (base, "prior"))
    state = row.sample_base(5, Stream(stream_key(1)))
    log_f = sum(row.ends(state)) - np.linalg.slogdet(row.root)[1]
    np.testing.assert_allclose(log_f, sum(plain.ends(plain.at(state.latent))), rtol=1e-10)


@pytest.mark.parametrize("options", [{"kind": "cauchy"}, {"base": "target"}])
def test_unknown_names_are_refused(options):
    with pytest.raises(ValueError, match="must be"):
        make_rows_problem(**options)

"""HAIS on rows of data: levels chosen for the row, and moves that do not suit it."""

import numpy as np
import pytest
from convergence import quietly
from known_rows import LinearRowsPath, make_rows_problem
from sklearn.exceptions import ConvergenceWarning

from sklpf import HAIS

HARD = make_rows_problem("gaussian", 4, 3, 0.4, base="prior")


# ---- a move that does not suit a row
class OfAnotherModel(LinearRowsPath):
    """Its simulated row has another noise."""

    simulated_noise: float

    def simulated_row(self, stream):
        other = LinearRowsPath(
            self.X, self.mixing, self.simulated_noise, prior=self.prior, base=self.base
        )
        return other.simulated_row(stream)


@pytest.mark.parametrize(
    ("simulated", "noise", "probability"),
    [(0.4, 0.05, "0.0"), (0.4, 0.4, None), (0.02, 4.0, "1.000")],
)
def test_an_acceptance_far_from_the_target_is_no_convergence(simulated, noise, probability):
    path = OfAnotherModel(HARD.path.X[:3], HARD.path.mixing, noise, base="prior")
    path.simulated_noise = simulated
    hais = HAIS(20, 300, ladder="linear", random_state=0)
    quietly(hais, path)
    said = [reason for reason in hais.result_.reasons if "tuned on another row" in reason]
    if probability is None:
        assert not said
        return
    assert len(said) == 1
    assert said[0].startswith("in 3 of 3 rows: moves that were tuned on another row")
    assert f"probability of {probability}" in said[0]
    assert not hais.result_.diagnostics["converged"].any()


# ---- tol
def test_more_precision_takes_more_levels():
    row, n_levels = HARD.path.row(0), []
    for tol in (0.3, 0.1, 0.04):
        hais = HAIS(50, 5000, tol=tol, random_state=0).fit(row)
        assert hais.converged_
        assert hais.log_partition_std_error_ <= tol
        assert abs(hais.log_partition_ - HARD.log_partition[0]) < 5 * tol
        n_levels.append(len(hais.result_.ladder))
    assert 10 <= n_levels[0] < n_levels[1] < n_levels[2] < 2500


def test_a_tol_that_is_missed_is_said():
    hais = HAIS(20, 40, tol=0.01, random_state=0)
    with pytest.warns(ConvergenceWarning, match="with 40 levels is above tol: raise n_temp"):
        hais.fit(HARD.path.row(0))
    assert len(hais.result_.ladder) == 40
    assert np.isfinite(hais.log_partition_)
    with pytest.warns(ConvergenceWarning, match="in 4 of 4 rows: the standard error .* raise"):
        hais.fit(HARD.path)

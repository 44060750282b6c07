"""Linear generative models: their closed log Z, gradients, and rows that don't touch each other."""

import numpy as np
import pytest
from known_rows import make_rows_problem
from scipy.integrate import quad


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

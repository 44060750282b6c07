"""BoltzmannMachine as a scikit-learn estimator."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from sklpf import BoltzmannMachine

BINARY = (np.random.default_rng(0).random((60, 5)) < 0.4).astype(float)

pytestmark = [
    pytest.mark.filterwarnings("ignore:X holds values outside"),
    pytest.mark.filterwarnings("ignore:.*rows of X have no likelihood"),
]


def test_pseudo_likelihood_that_has_not_settled_says_so():
    with pytest.warns(ConvergenceWarning, match="pseudo-likelihood has not settled after 1 pass"):
        BoltzmannMachine(max_iter=1).fit(BINARY)


def test_rows_of_other_values_have_no_likelihood():
    model = BoltzmannMachine(random_state=0).fit(BINARY)
    X = BINARY.copy()
    X[3, 1] = 0.5
    with pytest.warns(ConvergenceWarning, match="1 of 60 rows of X have no likelihood"):
        model.score_samples(X)
    values = model.set_params(on_nonconvergence="nan").score_samples(X)
    assert np.flatnonzero(np.isnan(values)).tolist() == [3]
    with pytest.warns(UserWarning, match=r"X holds values outside \[0, 1\]"):
        BoltzmannMachine(alpha=1.0, max_iter=50).fit(2 * BINARY)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1], [2, 0]],), "couplings must be symmetric: give J"),
        ((np.zeros((2, 3)),), r"couplings must have the shape \(n_units, n_units\)"),
        ((np.zeros((2, 2)), [0.0]), "intercept must have shape"),
        ((np.zeros((2, 2)), [0.0, np.inf]), "intercept contains infinity"),
    ],
)
def test_parameters_that_make_no_model_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        BoltzmannMachine.from_parameters(*arguments)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"graph must have the shape \(5, 5\) to match X"):
        BoltzmannMachine(graph=np.eye(3)).fit(BINARY)
    with pytest.raises(ValueError, match="graph must be symmetric"):
        BoltzmannMachine(graph=np.triu(np.ones((5, 5)))).fit(BINARY)
    with pytest.raises(ValueError, match="training diverged"):
        BoltzmannMachine("pcd", learning_rate=1e308, alpha=0.5).fit(BINARY)
    model = BoltzmannMachine.from_parameters(sp.csr_array((2, 2)), mean=[0.5, 0.5])
    with pytest.raises(ValueError, match='base must be "data", "uniform" or an array of means'):
        model.path("prior")
    with pytest.raises(ValueError, match="base_mean must lie strictly between 0 and 1"):
        model.path([0.0, 0.5])
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        model.sample(0)

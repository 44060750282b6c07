"""BernoulliRBM as a scikit-learn estimator."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import neural_network
from sklearn.datasets import load_digits

from sklpf import BernoulliRBM

DIGITS = load_digits().data / 16
BINARY = (DIGITS > 0.5).astype(np.float64)

# random data of the checks are not binary: training on them and scoring them warns, as it should
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:\d+ of \d+ rows of X have no likelihood"),
    pytest.mark.filterwarnings("ignore:X holds values other than 0 and 1"),
    pytest.mark.filterwarnings("ignore:X holds values outside .0, 1."),
]


# ---- in scikit-learn's tools
def small(**options):
    return BernoulliRBM(6, n_iter=3, random_state=0).set_params(**options)


def test_methods_and_parameters_of_scikit_learns_class_exist():
    theirs = neural_network.BernoulliRBM().fit(BINARY[:20])
    ours = BernoulliRBM().fit(BINARY[:20])
    assert theirs.get_params().items() <= ours.get_params().items()
    kinds = BernoulliRBM, neural_network.BernoulliRBM
    signatures = (inspect.signature(kind).parameters.values() for kind in kinds)
    own, others = ({p.name: (p.kind, p.default) for p in given} for given in signatures)
    assert others.items() <= own.items()
    assert next(iter(own)) == next(iter(others))  # all but the first are keyword-only
    names = {name for name in dir(theirs) if not name.startswith("_")}
    assert names <= set(dir(ours))
    for name in ("components_", "intercept_hidden_", "intercept_visible_", "h_samples_"):
        assert getattr(ours, name).shape == getattr(theirs, name).shape


def test_transform_is_scikit_learns():
    model = small().fit(BINARY)
    theirs = neural_network.BernoulliRBM(6, n_iter=0).fit(BINARY)
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        setattr(theirs, name, getattr(model, name))
    for X in (DIGITS, sp.csr_matrix(DIGITS), DIGITS.astype(np.float32)):
        ours, expected = model.transform(X), theirs.transform(X)
        np.testing.assert_allclose(ours, expected, rtol=1e-12)
        assert ours.dtype == expected.dtype

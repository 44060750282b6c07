"""ProductOfExperts as a scikit-learn estimator, and its training."""

import numpy as np
import pytest
from marks import large

from sklpf import ProductOfExperts

pytestmark = [
    pytest.mark.filterwarnings("ignore:training has not settled"),  # after two passes
    pytest.mark.filterwarnings("ignore:n_components=1 is below"),  # the checks take one component
    pytest.mark.filterwarnings("ignore:rows have no likelihood"),
]


def sources(n_samples, n_features=4, seed=0):
    """Rows with independent heavy-tailed sources, scaled and shifted."""
    rng = np.random.default_rng(seed)
    mixing = (
        rng.normal(size=(n_features, n_features)) * np.logspace(-1, 2, n_features)[:, np.newaxis]
    )
    return rng.standard_t(4, size=(n_samples, n_features)) @ mixing.T + 5


@pytest.mark.parametrize("expert", ["student_t", large("laplace")])
def test_sampling_comes_close_to_maximum_likelihood(expert):
    """Nats a row on new rows: .1 for contrastive divergence, .3 for probability flow, which uses
    its rows less well.
    """
    X, new = np.split(sources(4000), 2)
    best = ProductOfExperts(expert=expert, algorithm="ml", random_state=0).fit(X)
    assert best.converged_
    pcd = ProductOfExperts(expert=expert, random_state=0).fit(X)
    flow = ProductOfExperts(expert=expert, algorithm="mpf", random_state=0).fit(X)
    assert pcd.converged_
    assert abs(pcd.score(new) - best.score(new)) < 0.1
    assert abs(flow.score(new) - best.score(new)) < 0.3
    assert best.loss_curve_[-1] == pytest.approx(-best.score(X), abs=0.01)


def test_fewer_rows_than_features():
    """Directions without variance count as if they had a small one: there is a score, however high,
    and a warning.
    """
    with pytest.warns(UserWarning, match="no variance along 9 of 13 directions"):
        model = ProductOfExperts(max_iter=20, random_state=0).fit(sources(5, 13))
    assert np.isfinite(model.score(sources(5, 13)))


@pytest.mark.parametrize("algorithm", ["pcd", large("mpf"), "ml"])
def test_partial_fit_goes_on_where_fit_ended(algorithm):
    X = sources(1000)
    model = ProductOfExperts(algorithm=algorithm, max_iter=20, tol=1e-2, random_state=0).fit(X)
    score, components = model.score(X), model.components_
    model.set_params(learning_rate=1e-4).partial_fit(X[:100])
    assert 0 < np.abs(model.components_ - components).max() < 0.01 * np.abs(components).max()
    assert abs(model.score(X) - score) < 0.02


def test_without_tol_all_passes_are_made_and_log_z_is_not_estimated():
    X = np.random.default_rng(0).laplace(size=(200, 2))
    model = ProductOfExperts(max_iter=4, random_state=0).fit(X)
    assert model.n_iter_ == 4
    model.set_params(tol=None).fit(X)
    assert model.n_iter_ == 4
    assert not hasattr(model, "loss_curve_")
    assert not hasattr(model, "converged_")
    assert model._training[0].learning_rate == pytest.approx(0.3**2 * model.learning_rate)
    assert np.isfinite(model.score(X))

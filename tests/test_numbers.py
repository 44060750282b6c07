"""What is no number, or none of the kind that is asked for, is refused in a sentence that
names it.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sklpf import (
    AIS,
    BernoulliRBM,
    FactorialMixture,
    LatentDirichletAllocation,
)
from sklpf.models import FactorialPath, LDAPath, RBMPath
from sklpf.reweighting import bar, mbar

NO_NUMBERS = ["a", b"x", {}, object(), len, [[1, 0], [1]], 1 + 2j, sp.eye_array(2)]
ROWS = (load_iris().data > 3).astype(float)
GOOD = {
    RBMPath: {
        "components": np.ones((2, 3)),
        "intercept_visible": np.zeros(3),
        "intercept_hidden": np.zeros(2),
    }
    | {"base_mean": np.full(3, 0.5)},
    FactorialPath: {
        "X": np.ones((1, 3)),
        "components": np.ones((2, 3)),
        "component_covariance": np.eye(2),
    }
    | {"noise_variance": 1.0, "activation_probability": np.full(2, 0.5)},
    LDAPath: {"topics": np.full((2, 2), 0.5), "doc_topic_prior": 0.5, "X": np.ones((1, 2))},
    mbar: {"vectors": np.zeros((2, 2)), "counts": np.ones(2)},
    bar: {"forward_log_weights": np.zeros(2), "reverse_log_weights": np.zeros(2)},
}
NAMES = [(kind, name) for kind, arguments in GOOD.items() for name in arguments if name != "X"]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_what_is_no_number_is_refused_by_name(kind, name, value):
    with pytest.raises(TypeError, match=f"{name} must be real numbers in a rectangular array, got"):
        kind(**GOOD[kind] | {name: value})


@pytest.mark.parametrize(
    "level", ["0.9", None, [0.9], np.array([0.5, 0.9]), {}, 0.9 + 0j, np.nan, 1.0]
)
def test_a_level_that_is_no_probability_is_refused(level):
    model = BernoulliRBM(2, n_iter=1, random_state=0).fit(ROWS)
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        model.score_interval(ROWS, level=level)


@pytest.mark.parametrize("kind", [BernoulliRBM, FactorialMixture, LatentDirichletAllocation])
@pytest.mark.parametrize("value", [True, np.True_])
def test_true_is_no_number(kind, value):
    with pytest.raises(ValueError, match="The 'n_components' parameter of .* must be an int"):
        kind(n_components=value).fit(ROWS)
    with pytest.raises(ValueError, match="The 'n_chains' parameter of AIS must be an int"):
        AIS(n_chains=value).fit(BernoulliRBM(2, n_iter=1).fit(ROWS))


@pytest.mark.parametrize("kind", [BernoulliRBM, FactorialMixture])
@pytest.mark.parametrize("n_samples", [True, 0, 1.0, "3", None])
def test_rows_to_draw_are_a_whole_number(kind, n_samples):
    model = kind(2, random_state=0).fit(ROWS)
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        model.sample(n_samples)


def test_small_integers_of_numpy_serve_as_sizes():
    plain = BernoulliRBM(3, batch_size=7, n_iter=1, random_state=0).fit(ROWS)
    small = BernoulliRBM(np.int8(3), batch_size=np.int8(7), n_iter=np.int8(1), random_state=0).fit(
        ROWS
    )
    np.testing.assert_array_equal(plain.components_, small.components_)


def test_gibbs_refuses_sparse_rows_whose_indices_do_not_fit():
    model = BernoulliRBM(2, n_iter=1, random_state=0).fit(ROWS)
    rows = sp.csr_matrix(ROWS)
    rows.indices[0] = 77
    with pytest.raises(ValueError, match="indices do not fit its shape"):
        model.gibbs(rows)

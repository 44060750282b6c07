"""What a model or its path can't use is refused in a sentence that names it."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from sklpf import (
    AIS,
    BernoulliRBM,
    BilinearGenerativeModel,
    BoltzmannMachine,
    CategoricalRBM,
    FactorialMixture,
    GaussianRBM,
    LatentDirichletAllocation,
    MeanCovarianceRBM,
    ProductOfExperts,
    Tempering,
)
from sklpf.models import (
    BilinearPath,
    BoltzmannPath,
    CategoricalUnits,
    FactorialPath,
    LDAPath,
    LinearPath,
    RBMPath,
)
from sklpf.reweighting import bar, mbar

ROWS = (load_iris().data > 3).astype(float)
REAL = np.random.default_rng(0).normal(size=(60, 3))

# ---- arrays
RBM = BernoulliRBM.from_parameters
BOLTZMANN = BoltzmannMachine.from_parameters
CATEGORICAL = CategoricalRBM.from_parameters
GAUSSIAN = GaussianRBM.from_parameters
COVARIANCE = MeanCovarianceRBM.from_parameters
PRODUCT = ProductOfExperts.from_parameters
TOPICS = LatentDirichletAllocation.from_topics


def covariance_path(**arrays):
    return COVARIANCE(**arrays).path()


LAYERS = {"components": np.zeros((2, 3)), "intercept_visible": np.zeros(3)}
LAYERS["intercept_hidden"] = np.zeros(2)
UNITS = {"factors": np.eye(2), "pooling": np.ones((2, 1)), "mean_components": np.ones((1, 2))}
ROW = {"X": [[0.0, 1.0]], "components": [[1.0, 0.0]], "noise_std": 0.1}
GOOD = {
    RBMPath: LAYERS | {"base_mean": np.full(3, 0.5)},
    BoltzmannPath: {"couplings": np.zeros((2, 2)), "intercept": [0, 0], "base_mean": [0.5] * 2},
    FactorialPath: {
        "X": np.zeros((2, 3)),
        "components": np.ones((2, 3)),
        "component_covariance": np.eye(2),
        "noise_variance": 1.0,
        "activation_probability": [0.5, 0.5],
    },
    LDAPath: {"topics": np.full((2, 2), 0.5), "doc_topic_prior": 0.5, "X": [[1, 0]]},
    LinearPath: ROW,
    BilinearPath: ROW | {"content_weights": [[1.0]], "style_weights": [[1.0]]},
    RBM: LAYERS,
    BOLTZMANN: {"couplings": np.zeros((2, 2)), "intercept": np.zeros(2)},
    CATEGORICAL: LAYERS | {"n_categories": [1, 2]},
    GAUSSIAN: LAYERS | {"variances": np.ones(3)},
    COVARIANCE: UNITS,
    covariance_path: UNITS,
    PRODUCT: {"components": [[1.0, 0.4], [-0.3, 0.8]], "exponents": [1.2, 0.9]},
    TOPICS: {"topics": np.ones((2, 3))},
    mbar: {"vectors": np.zeros((2, 2)), "counts": np.ones(2)},
    bar: {"forward_log_weights": np.zeros(2), "reverse_log_weights": np.zeros(2)},
}
NO_NUMBERS = ["a", b"x", {}, object(), len, [[1, 0], [1]], 1 + 2j, sp.eye_array(2)]
ALL_NUMBERS = (RBMPath, FactorialPath, LDAPath, mbar, bar)
NAMES = [(kind, name) for kind in ALL_NUMBERS for name in GOOD[kind] if name != "X"]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(("make", "name"), NAMES)
def test_what_is_no_number_is_refused_by_name(make, name, value):
    with pytest.raises(TypeError, match=f"{name} must be real numbers in a rectangular array, got"):
        make(**GOOD[make] | {name: value})


@pytest.mark.parametrize(
    ("make", "name"), [(RBM, "components"), (PRODUCT, "exponents"), (GAUSSIAN, "components")]
)
def test_masked_parameters_are_refused_and_not_read_beneath_their_masks(make, name):
    masked = np.ma.masked_array(np.asarray(GOOD[make][name], dtype=float), mask=True)
    with pytest.raises(TypeError, match=f"{name} .*masked entries"):
        make(**GOOD[make] | {name: masked})


def test_units_of_another_type_are_refused():
    with pytest.raises(TypeError, match=r"visible_units must be CategoricalUnits.*got list"):
        RBMPath(**GOOD[RBMPath], visible_units=[3])


@pytest.mark.parametrize(
    ("make", "changed", "message"),
    [
        (RBMPath, {"components": np.zeros(3)}, "components must have the shape"),
        (RBMPath, {"components": np.full((2, 3), np.nan)}, "components must be finite"),
        (RBMPath, {"components": np.full((2, 3), 1e39)}, "components and intercepts are so large"),
        (RBMPath, {"intercept_visible": [0, 0]}, r"intercept_visible must have the shape \(3,\)"),
        (RBMPath, {"intercept_hidden": [0, np.inf]}, "intercept_hidden must be finite"),
        (RBMPath, {"base_mean": [0.5, 0.5]}, r"base_mean must have the shape \(3,\)"),
        (RBMPath, {"base_mean": [0, 0.5, 0.5]}, "base_mean must lie strictly between 0 and 1"),
        (RBMPath, {"weights": "both"}, "weights must be"),
        (RBMPath, {"visible_units": CategoricalUnits([2])}, "components must have 2 columns"),
        (BoltzmannPath, {"couplings": 1e39 * (1 - np.eye(2))}, "couplings .* are so large"),
        (BoltzmannPath, {"intercept": [1e99, 0.0]}, "couplings and intercept are so large"),
        (FactorialPath, {"X": np.zeros(3)}, r"X must have the shape \(n_rows, 3\)"),
        (FactorialPath, {"X": np.full((2, 3), np.inf)}, "X must be finite"),
        (FactorialPath, {"X": np.full((2, 3), 1e200)}, "X must be small enough"),
        (FactorialPath, {"component_covariance": np.eye(3)}, r"must have the shape \(2, 2\)"),
        (FactorialPath, {"component_covariance": [[1, 0.5], [0, 1]]}, "must be symmetric"),
        (FactorialPath, {"component_covariance": [[1, 2], [2, 1]]}, "covariance must be positive"),
        (FactorialPath, {"noise_variance": 0.0}, "noise_variance must be positive and finite"),
        (FactorialPath, {"activation_probability": [0.5]}, r"a number or have shape \(2,\)"),
        (FactorialPath, {"activation_probability": [0.5, 1]}, "must lie strictly between 0 and 1"),
        (LDAPath, {"topics": [0.5, 0.5]}, "topics must have the shape"),
        (LDAPath, {"topics": [[1, 0], [0.1, 0.9]]}, "topics must be positive and finite"),
        (LDAPath, {"topics": [[5, 2], [0.1, 0.9]]}, "topics must have rows that sum to 1"),
        (LDAPath, {"doc_topic_prior": np.nan}, "doc_topic_prior must lie between 1e-20 and 1e"),
        (LDAPath, {"X": [1, 0]}, r"X must have the shape \(n_documents, 2\)"),
        (LDAPath, {"X": np.zeros((0, 2))}, "and at least one row"),
        (LDAPath, {"X": [[-1, 2]]}, "X must hold whole counts"),
        (LDAPath, {"X": [[np.inf, 2]]}, "X must hold whole counts"),
        (LinearPath, {"noise_std": 0.0}, "noise_std must be positive"),
        (LinearPath, {"components": [[np.nan, 1.0]]}, "components contains NaN"),
        (LinearPath, {"components": [1.0, 2.0]}, "components can't be used: Expected 2D"),
        (LinearPath, {"X": [[1.0]]}, r"X must have the shape \(n_rows, 2\)"),
        (LinearPath, {"prior": "cauchy"}, "prior must be"),
        (BilinearPath, {"noise_std": -1.0}, "noise_std must be positive"),
        (BilinearPath, {"content_weights": [[1], [2]]}, "must have a row for each of 1 components"),
        (BilinearPath, {"style_weights": [[np.inf]]}, "style_weights contains infinity"),
        (RBM, {"components": [1.0]}, "2D"),
        (RBM, {"intercept_visible": [0, 0]}, r"intercept_visible must have shape \(3,\)"),
        (RBM, {"visible_mean": [2.0] * 3}, "visible_mean must hold means"),
        (BOLTZMANN, {"couplings": [[0, 1], [2, 0]]}, "couplings must be symmetric: give J"),
        (BOLTZMANN, {"couplings": np.zeros((2, 3))}, r"must have the shape \(n_units, n_units\)"),
        (BOLTZMANN, {"intercept": [0.0]}, "intercept must have shape"),
        (BOLTZMANN, {"intercept": [0.0, np.inf]}, "intercept contains infinity"),
        (BOLTZMANN, {"mean": [2.0, 0.5]}, "^mean must hold means"),
        (CATEGORICAL, {"n_categories": [2, 2]}, "must have 4 columns, one for each category"),
        (CATEGORICAL, {"n_categories": [3.0]}, "n_categories must hold a positive integer"),
        (CATEGORICAL, {"n_categories": [0, 3]}, "n_categories must hold a positive integer"),
        (CATEGORICAL, {"visible_mean": [-0.1, 1.0, 1.0]}, "visible_mean must hold means"),
        (GAUSSIAN, {"components": [[np.nan] * 3] * 2}, "components contains NaN"),
        (GAUSSIAN, {"intercept_visible": [1e300] * 3}, r"must be at most 1e\+100"),
        (GAUSSIAN, {"variances": [1, 0, 1]}, "^variances must be positive and finite"),
        (GAUSSIAN, {"visible_variance": [0, 1, 1]}, "^visible_variance must be positive"),
        (GAUSSIAN, {"variances": [1e-300] * 3, "components": [[1e10] * 3] * 2}, "^variances must"),
        (GAUSSIAN, {"visible_mean": [1e200, 1, 1]}, "visible_mean must be at most"),
        (GAUSSIAN, {"visible_basis": 2 * np.eye(3)}, "^visible_basis must have the determinant"),
        (
            GAUSSIAN,
            {"visible_basis": np.eye(2)},
            r"^visible_basis must be a finite .*\(3, 3\)",
        ),
        (GAUSSIAN, {"visible_basis": [[np.nan] * 3] * 3}, "^visible_basis must be a finite"),
        (COVARIANCE, {"pooling": -np.ones((2, 1))}, "pooling must not be negative"),
        (COVARIANCE, {"pooling": np.ones((3, 1))}, r"shape \(2, 1\) to fit .*, got \(3, 1\)"),
        (COVARIANCE, {"intercept_mean": [np.nan]}, "intercept_mean contains NaN"),
        (COVARIANCE, {"noise_std": 0.0}, "noise_std must be positive and finite, .* got 0"),
        (COVARIANCE, {"noise_std": 1e160}, r"must be positive and finite, .* got 1e\+160"),
        (covariance_path, {"noise_std": 1e-60}, "noise_std must be at least 1e-50"),
        (covariance_path, {"factors": 1e20 * np.eye(2)}, r"factors must be at most 1e\+08"),
        (PRODUCT, {"components": [[1, 2], [2, 4]]}, "components_ must span all 2 features"),
        (PRODUCT, {"components": [[1, 2]], "exponents": None}, "components_ must span all 2"),
        (PRODUCT, {"exponents": [1.0, 0.0]}, "exponents must be above 0"),
        (PRODUCT, {"exponents": [1.0]}, r"exponents must have shape \(2,\)"),
        (TOPICS, {"topics": np.ones(3)}, "Expected 2D array"),
        (TOPICS, {"topics": -np.ones((2, 3))}, "topics must be positive"),
        (TOPICS, {"doc_topic_prior": np.ones(3)}, r"doc_topic_prior must .* the shape \(2,\)"),
        (TOPICS, {"topic_word_prior": 1e-30}, "topic_word_prior must lie between"),
    ],
)
def test_arrays_that_can_not_be_used_are_named(make, changed, message):
    with pytest.raises(ValueError, match=message):
        make(**GOOD[make] | changed)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((RBM, name) for name in ("components_", "intercept_visible_", "intercept_hidden_")),
        (GAUSSIAN, "components_"),
        (COVARIANCE, "pooling_"),
        (PRODUCT, "components_"),
    ],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_have_no_likelihood(make, name, value):
    model = make(**GOOD[make])
    array = getattr(model, name).copy()
    array.flat[0] = value
    setattr(model, name, array)
    X = np.ones((5, array.shape[-1] if name != "pooling_" else 2))
    for call in (model.estimate_log_partition, model.sample, model.path, lambda: model.score(X)):
        with pytest.raises(ValueError, match=f"{name} holds NaN or infinity"):
            call()
    assert not hasattr(model, "log_partition_")


# ---- fits
EYE = np.eye(4)
LDA = LatentDirichletAllocation
TRIANGLE = np.triu(np.ones((4, 4)))


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (
            MeanCovarianceRBM(),
            1e200 * REAL,
            "X must be finite; it holds NaN or infinity, or values too large",
        ),
        (
            ProductOfExperts(),
            1e200 * REAL,
            "X must be finite; it holds NaN or infinity, or values too large",
        ),
        (ProductOfExperts(), 1e-160 * REAL, "X has columns that vary by less than 1e-90"),
        (ProductOfExperts(9, algorithm="ml"), REAL, "needs n_components = n_features"),
        (ProductOfExperts(learning_rate=1e200, max_iter=2), REAL, "diverged.*lower learning_rate"),
        (GaussianRBM(2), 1e300 * REAL, "X holds such large values"),
        (GaussianRBM(2, learning_rate=1e300), REAL, "training diverged"),
        (BoltzmannMachine("pcd", learning_rate=1e308, alpha=0.5), ROWS, "training diverged"),
        (BoltzmannMachine(graph=np.eye(3)), ROWS, r"graph must have the shape \(4, 4\) to match X"),
        (BoltzmannMachine(graph=TRIANGLE), ROWS, "graph must be symmetric"),
        (BoltzmannMachine(graph=np.full((4, 4), np.nan)), ROWS, "graph contains NaN"),
        (CategoricalRBM(2), [[0.5, 1.0]], "Fractions in data X, which must hold categories"),
        (CategoricalRBM(2), [[-1, 1]], "Negative values in data X, which must hold categories"),
        (CategoricalRBM(2), [[-1, 1], [0, 0]], "-1 is no category, but what OrdinalEncoder gives"),
        (CategoricalRBM(2), [[70_000, 1]], "up to 70000, 70003 in all, more than 65536"),
        (CategoricalRBM(2, min_categories=[3, 3]), ROWS, "must be an integer, or 4 of them"),
        (FactorialMixture(2, activation_probability=[0.1, 0.2, 0.3]), EYE, r"shape \(2,\)"),
        (FactorialMixture(2, activation_probability=[0.1, 1.0]), EYE, "strictly between 0 and 1"),
        (
            FactorialMixture(2, tempering=Tempering(initial_temperature=1.0)),
            EYE,
            "initial_temperature",
        ),
        (FactorialMixture(2, tempering=Tempering(schedule=[3, 0.5])), EYE, "temperatures of"),
        (FactorialMixture(2, tempering=Tempering(schedule="cosine")), EYE, "schedule"),
        (FactorialMixture(2, tempering="hot"), EYE, "tempering"),
        (FactorialMixture(2, tempering=Tempering(n_tempered=2.5)), EYE, "n_tempered must be"),
        (FactorialMixture(2, tempering=Tempering("hot")), EYE, "'kind' parameter of Tempering"),
        (LDA(2, tempering=Tempering(schedule=[2.0, 0.5])), ROWS, "temperatures of at least 1"),
        (LDA(2, tempering=Tempering(schedule="cosine")), ROWS, "schedule"),
        (LDA(2, tempering=Tempering(initial_temperature=1.0)), ROWS, "initial_temperature"),
        (LDA(2, tempering=Tempering(n_tempered=-1.0)), ROWS, "n_tempered"),
        (LDA(2, tempering=Tempering(partition="map")), ROWS, "partition"),
        (LDA(2, doc_topic_prior=1e-310), ROWS, r"^doc_topic_prior .* 1e-20 and 1e\+10.*; clip it$"),
        (LDA(2, topic_word_prior=1e11), ROWS, r"^topic_word_prior .* 1e-20 and 1e\+10.*; clip it$"),
        (LDA(2, doc_topic_prior=[0.1, 0.0]), ROWS, r"1e-20 and 1e\+10, got 0; clip it"),
        (LDA(2, doc_topic_prior=[0.1] * 3), ROWS, r"the shape \(2,\), got shape \(3,\)"),
        (BernoulliRBM(early_stopping=True, track_log_partition="rts"), ROWS, 'choose "particles"'),
    ],
    ids=lambda given: type(given).__name__,
)
def test_fits_that_can_not_be_made_say_why(model, X, message):
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        copy.deepcopy(model).set_params(random_state=0).fit(X)


@pytest.mark.parametrize(
    "kind", [BilinearGenerativeModel, BoltzmannMachine, LDA, MeanCovarianceRBM]
)
def test_missing_values_are_refused_with_what_fills_them(kind):
    with pytest.raises(ValueError, match="X contains NaN, .* SimpleImputer"):
        kind().fit([[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(ValueError, match="X has masked entries, .* SimpleImputer"):
        kind().fit(np.ma.masked_equal([[1.0, 2.0], [0.0, 1.0]], 2.0))


# ---- numbers
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


@pytest.mark.parametrize(
    "model",
    [
        *(make(**GOOD[make]) for make in (RBM, BOLTZMANN, GAUSSIAN, COVARIANCE, PRODUCT)),
        FactorialMixture(2, random_state=0).fit(ROWS),
    ],
    ids=lambda given: type(given).__name__,
)
@pytest.mark.parametrize("n_samples", [True, 0, 1.0, "3", None])
def test_rows_to_draw_are_a_whole_number(model, n_samples):
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        model.sample(n_samples)


def test_small_integers_of_numpy_serve_as_sizes():
    small = {"batch_size": np.int8(7), "n_iter": np.int8(1)}
    plain = BernoulliRBM(3, batch_size=7, n_iter=1, random_state=0).fit(ROWS)
    again = BernoulliRBM(np.int8(3), **small, random_state=0).fit(ROWS)
    np.testing.assert_array_equal(plain.components_, again.components_)


def test_gibbs_refuses_sparse_rows_whose_indices_do_not_fit():
    model = BernoulliRBM(2, n_iter=1, random_state=0).fit(ROWS)
    rows = sp.csr_matrix(ROWS)
    rows.indices[0] = 77
    with pytest.raises(ValueError, match="indices do not fit its shape"):
        model.gibbs(rows)

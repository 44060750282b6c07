"""BernoulliRBM as a scikit-learn estimator."""

import pytest
from sklearn.utils import estimator_checks as checks

from sklpf import BernoulliRBM

SMALL = BernoulliRBM(n_components=5, n_iter=2)

# random data of the checks are not binary: scoring them warns, as it should
pytestmark = [
    pytest.mark.filterwarnings("ignore:X holds values other than 0 and 1"),
    pytest.mark.filterwarnings(
        "ignore:X (does not have valid|has) feature names"
    ),  # these checks mix frames and arrays
]


@checks.parametrize_with_checks([BernoulliRBM(), BernoulliRBM(n_components=5, n_iter=2, batch_size=7)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_param_validation,
        checks.check_set_output_transform,
        checks.check_set_output_transform_pandas,
        checks.check_set_output_transform_polars,
        checks.check_global_output_transform_pandas,
        checks.check_global_set_output_transform_polars,
        checks.check_dataframe_column_names_consistency,
        checks.check_transformer_get_feature_names_out,
        checks.check_transformer_get_feature_names_out_pandas,
    ],
    ids=lambda check: check.__name__,
)
def test_checks_that_third_parties_call_themselves(check):
    check("BernoulliRBM", SMALL)

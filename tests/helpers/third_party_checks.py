"""scikit-learn's checks that `check_estimator` leaves to the authors of third-party estimators."""

import pytest
from sklearn.utils import estimator_checks as checks

third_party_checks = pytest.mark.parametrize(
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

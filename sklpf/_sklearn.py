"""Every private scikit-learn import of the package, in one place."""

import numpy as np
from sklearn.utils import _param_validation
from sklearn.utils._param_validation import HasMethods, Options, StrOptions


class Interval(_param_validation.Interval):
    """Numbers of an interval; True and False are none, though Python counts them among the integers."""

    def is_satisfied_by(self, val):
        return not isinstance(val, (bool, np.bool_)) and super().is_satisfied_by(val)


__all__ = ["HasMethods", "Interval", "Options", "StrOptions"]

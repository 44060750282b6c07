"""Runs that are short on purpose: that they did not converge is not what such a test is about."""

import warnings
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning


@contextmanager
def may_not_converge():
    """Silences `ConvergenceWarning`, in a `with` statement or as the decorator of a test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def quietly(estimator, path):
    """The fitted estimator, converged or not."""
    with may_not_converge():
        return estimator.fit(path)

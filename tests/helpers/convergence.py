"""Runs that are short on purpose: that they did not converge is not what such a test is about."""

import warnings
from contextlib import contextmanager

import numpy as np
from sklearn.exceptions import ConvergenceWarning


@contextmanager
def may_not_converge():
    """Silences `ConvergenceWarning`, in a `with` statement or as the decorator of a test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def quietly(estimator, path, **options):
    """The fitted estimator, converged or not."""
    with may_not_converge():
        return estimator.fit(path, **options)


def alarm_kinds(fitted):
    return {alarm.kind for alarm in fitted.result_.alarms}


def z_score(fitted, log_partition):
    """The error of an estimate in units of its standard error."""
    return (fitted.log_partition_ - log_partition) / fitted.log_partition_std_error_


def assert_right(fitted, log_partition, bound=4.8):
    """A converged run whose error is below so many standard errors: with ten groups 4.8 are a false
    alarm in 1e-3 (Student t with 9 degrees of freedom), and in less with more.
    """
    assert fitted.converged_, fitted.result_.reasons
    assert abs(z_score(fitted, log_partition)) < bound


def pooled_z(fits, log_partition):
    """The summed error of independent runs in units of its standard error: a bias of b standard
    errors of one run is one of b sqrt(n) here.
    """
    errors = [fitted.log_partition_ - log_partition for fitted in fits]
    return sum(errors) / np.linalg.norm([fitted.log_partition_std_error_ for fitted in fits])

"""Coverage of log Z by intervals of an estimator, on models for which it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from sklpf._utils.numbers import Array
from sklpf._utils.validation import check_count, check_level
from sklpf.partition import Exact, PartitionEstimator
from sklpf.testing._checks import holds, seeded_clone

_FAR = 3.0  # standard errors, or as rare a quantile of Student's t
_FAR_SHARE = 2 * 2 * norm.sf(_FAR)  # of intervals that cover, at most twice as many as expected


class CoverageCheck(NamedTuple):
    """Runs of an estimator beside the truth, a row for each log Z.

    Attributes
    ----------
    errors : ndarray of shape (n,)
        Estimate less truth, in nats.
    std_errors : ndarray of shape (n,)
        Standard errors, in nats, that of the truth among them.
    converged, covered, far : ndarray of bool of shape (n,)
        Which runs converged, which intervals hold the truth, and which have it beyond the interval
        that a share of 0.0027 misses, 3 standard errors of many degrees of freedom.
    """

    errors: Array
    std_errors: Array
    converged: NDArray[np.bool_]
    covered: NDArray[np.bool_]
    far: NDArray[np.bool_]

    def __str__(self) -> str:
        n = int(self.converged.sum())
        return (
            f"{n} of {len(self.converged)} runs converged, of which"
            f" {np.sum(self.covered & self.converged)} cover and"
            f" {np.sum(self.far & self.converged)} are far off"
        )


def check_coverage(
    make_problem: Callable[[int], Any],
    estimator: PartitionEstimator,
    n: int = 100,
    *,
    level: float = 0.95,
    least_coverage: float | None = None,
    least_converged: float = 0.0,
    false_alarm: float = 1e-3,
    random_state: int = 0,
) -> CoverageCheck:
    """Check that intervals of converged runs cover log Z, on n models for which it is known.

    Parameters
    ----------
    make_problem : callable
        ``make_problem(seed)`` returns a fitted model or a path whose log Z `Exact` computes, or a
        `Problem`, or any (name, path, log_partition). It is called with n seeds from `random_state`
        on.
    estimator : PartitionEstimator
        Its clones are run, with the seed as their `random_state` where they have one.
    n : int, default=100
        Models. With 100 a coverage of 80 % in place of 95 % is found nearly always.
    level : float, default=0.95
        Of the intervals.
    least_coverage : float or None, default=None
        Share of the intervals of converged runs that covers if all is well; None: `level` less
        0.01, as error bars come from few groups.
    least_converged : float, default=0.0
        Share of the runs that must converge at least.
    false_alarm : float, default=1e-3
        Probability that an estimator fails of whose intervals `least_coverage` cover, and whose
        errors are beyond 3 standard errors twice as often as expected; halved between the two
        one-sided binomial tests.
    random_state : int, default=0
        First of the seeds.

    Returns
    -------
    CoverageCheck
        ``str`` of it is a sentence.

    Raises
    ------
    TypeError
        If `estimator` is none, or `make_problem` no function of a seed.
    AssertionError
        If fewer intervals of converged runs cover, more are far off, or fewer runs converge.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import AIS, BernoulliRBM
    >>> from sklpf.testing import check_coverage
    >>> def random_rbm(seed):
    ...     rng = np.random.default_rng(seed)
    ...     return BernoulliRBM.from_parameters(
    ...         rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ...     )
    >>> print(check_coverage(random_rbm, AIS(n_temperatures=100), 20))
    20 of 20 runs converged, of which 19 cover and 0 are far off
    """
    right = isinstance(estimator, PartitionEstimator), callable(make_problem)
    if not all(right):
        raise TypeError(
            "check_coverage takes a function make_problem(seed) first, then an estimator, got"
            f" {make_problem!r:.80} and {estimator!r:.80}"
        )
    check_count(n, "n")
    check_level(level)
    seeds = range(random_state, random_state + n)
    rows = [_run(make_problem(seed), estimator, level, seed) for seed in seeds]
    check = CoverageCheck(*(np.concatenate(part) for part in zip(*rows)))
    least = level - 0.01 if least_coverage is None else least_coverage
    _require_coverage(check, least, least_converged, false_alarm, type(estimator).__name__)
    return check


def _run(problem: Any, estimator: PartitionEstimator, level: float, seed: int) -> tuple[Any, ...]:
    """The fields of `CoverageCheck` for the run on one model."""
    if not isinstance(problem, tuple):
        problem = "", problem, Exact().fit(problem).log_partition_
    _, path, truth, truth_error = (*problem, 0.0)[:4]
    result = seeded_clone(estimator, seed)._fit(path).result_
    errors = np.atleast_1d(result.log_partition - truth)
    converged = result.diagnostics.get("converged", result.converged)
    shares = level, 1 - 2 * norm.sf(_FAR)
    near = [holds(result.interval(share), truth, truth_error, share) for share in shares]
    std_errors = np.broadcast_to(np.hypot(result.std_error, truth_error), errors.shape)
    return errors, std_errors, np.broadcast_to(converged, errors.shape), near[0], ~near[1]


def _require_coverage(check, least, least_converged, false_alarm, name) -> None:
    """Raise AssertionError with the first that fails."""
    n = int(check.converged.sum())
    if n < max(1, least_converged * len(check.converged)):
        raise AssertionError(f"{name}: {check}: fewer than {least_converged:.0%}")
    n_covered = int(np.sum(check.covered & check.converged))
    p_value = binom.cdf(n_covered, n, least)
    if p_value < false_alarm / 2:
        raise AssertionError(
            f"{name}: {check}: intervals cover less often than {least:.0%} (p = {p_value:.1g})"
        )
    p_value = binom.sf(np.sum(check.far & check.converged) - 1, n, _FAR_SHARE)
    if p_value < false_alarm / 2:
        worst = np.max(np.abs(check.errors)[check.far & check.converged])
        raise AssertionError(
            f"{name}: {check}, up to {worst:.2g} nats: converged runs are wrong more often than"
            f" {_FAR_SHARE:.1%} (p = {p_value:.1g})"
        )

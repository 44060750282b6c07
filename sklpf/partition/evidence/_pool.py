"""pool: one log Z from independent runs of other seeds, machines or estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as fisher_f

from sklpf._utils.numbers import Array
from sklpf.partition._result import PartitionResult, Run, total_cost
from sklpf.partition.alarms import raised, threshold
from sklpf.uncertainty import MATERIAL_DIFFERENCE, Variance


def pool(runs: Sequence[Any]) -> PartitionResult:
    """Pool independent runs of one log Z: their weighted mean, and an interval for it.

    Parameters
    ----------
    runs : sequence of PartitionResult, fitted estimator or Run
        At least two, of the same target and with different seeds: of other machines, other
        estimators, other settings. Results can come from a pickle or from
        `PartitionResult.from_json`.

    Returns
    -------
    PartitionResult
        Its sweeps and seconds are the sums. ``diagnostics`` holds ``run_log_partition``,
        ``run_std_error`` and ``run_weight``, shape (n_runs,), of which the weights of runs that
        were left out are 0; ``n_left_out``; ``agreement``, the probability of differences as large
        as the runs', if their errors are right; and ``between_std_dev``, their spread beyond what
        these errors explain, in nats.

    Raises
    ------
    TypeError
        If something is no result.
    ValueError
        If there are fewer than two; if one has a log Z for each row or is no estimate; or if two
        are the same number, and so of one seed.

    Notes
    -----
    Not converged if the runs differ by more than their errors (Welch's test for means of unequal
    variances, in 1 % of the cases by chance) and by 0.01 nats; or if more than 5 % of them did
    not converge: what makes some runs fail may be what the others have not noticed. Runs that did
    not converge are left out of the mean, unless none has.

    The model is one of random effects: the variance between runs, by the method of moments
    (DerSimonian & Kacker 2007), is added to that of each run, and is 0 where their errors explain
    the differences. Runs of one estimator are weighted by their sweeps rather than by the errors
    that they state, as log Z and its error are correlated: a run that has missed the largest
    weights is low and thinks itself precise. The error also holds half the mean squared error of a
    run, by which the log of an estimate may be biased, and which does not shrink with their number.

    Examples
    --------
    >>> from sklpf.partition import PartitionResult, pool
    >>> results = [
    ...     PartitionResult("AIS", 10.1, 0.2, 99),
    ...     PartitionResult("SMC", 9.9, 0.1, 9),
    ... ]
    >>> pool(results)
    PartitionResult(pool of 2 runs: log Z = 9.940 ± 0.090, converged (0 ms))
    """
    results = [
        single_result(f"runs[{i}]", run, ": pool those of one row") for i, run in enumerate(runs)
    ]
    for i, result in enumerate(results):
        if result.statement != "estimate":
            raise ValueError(
                f"runs[{i}] must be an estimate, got a number whose statement is"
                f" {result.statement!r}"
            )
    if len(results) < 2:
        raise ValueError(f"runs must be at least two, got {len(results)}")
    values = np.array([result.log_partition for result in results], dtype=float)
    errors = np.array([result.std_error for result in results], dtype=float)
    _check_different(values)

    usable = np.isfinite(values) & np.isfinite(errors)
    trusted = usable & np.array([result.converged for result in results])
    kept = np.flatnonzero(trusted if trusted.any() else usable)
    flagged = [result for result, good in zip(results, trusted) if not good]
    alarms = []
    if len(flagged) > threshold("runs-not-converged", "most_flagged") * len(results):
        reason = next(iter(flagged[0].reasons), "infinite numbers")
        n_flagged = len(flagged)
        alarms.append(
            raised("runs-not-converged", "pool", flagged=n_flagged, n=len(results), reason=reason)
        )

    log_partition = std_error = between = agreement = np.nan
    degrees_of_freedom = np.inf
    weights = np.zeros(len(results))
    if len(kept):
        value = values[kept]
        error = np.maximum(errors[kept], 1e-12)
        degrees = np.array([results[i].degrees_of_freedom for i in kept], dtype=float)
        planned, known_by = _planned_variances([results[i] for i in kept], error, degrees)
        agreement = _agreement(value, 1 / planned, known_by, degrees.sum())
        between = _between_std_dev(value, error, 1 / planned)
        differ = agreement < threshold("runs-disagree", "probability")
        if differ and np.ptp(value) > MATERIAL_DIFFERENCE:
            low, high = value.min(), value.max()
            alarms.append(raised("runs-disagree", "pool", low=low, high=high, p=agreement))
        share = 1 / (planned + between**2)
        share /= share.sum()
        weights[kept] = share
        log_partition = float(share @ value)
        pooled = Variance((float(share @ error**2) / 2) ** 2)
        for weight, own, df in zip(share, error, degrees):
            pooled = pooled.plus(Variance(own**2, df), weight)
        among = Variance(between**2, max(len(kept) - 1, 1))  # 0 of a single run
        pooled = pooled.plus(among, float(np.linalg.norm(share)))
        std_error, degrees_of_freedom = pooled.std_error, pooled.df
    return PartitionResult(
        f"pool of {len(results)} runs",
        log_partition,
        std_error,
        degrees_of_freedom,
        alarms=tuple(alarms),
        **total_cost(results),
        seconds=sum(result.seconds for result in results),
        diagnostics={
            "n_runs": len(results),
            "n_left_out": len(results) - len(kept),
            "run_log_partition": values,
            "run_std_error": errors,
            "run_weight": weights,
            "agreement": agreement,
            "between_std_dev": between,
        },
    )


def _check_different(values: Array) -> None:
    """Raise ValueError if a number is there twice."""
    for i, value in enumerate(values):
        same = np.flatnonzero(values[:i] == value)
        if len(same):
            raise ValueError(
                f"runs[{same[0]}] and runs[{i}] are the same number {float(value)!r}: give each run"
                " a random_state of its own, as only independent runs can be pooled"
            )


def _agreement(values: NDArray, precision: NDArray, degrees: NDArray, most: float) -> float:
    """Probability of such differences between means of one expectation (Welch 1951), whose errors
    have together `most` degrees of freedom.
    """
    n = len(values)
    if n < 2:
        return 1.0
    share = precision / precision.sum()
    unsure = np.sum((1 - share) ** 2 / degrees)
    statistic = precision @ (values - share @ values) ** 2 / (n - 1)
    statistic /= 1 + 2 * (n - 2) / (n**2 - 1) * unsure
    welch = (n**2 - 1) / 3 / max(unsure, 1e-9)
    return float(fisher_f.sf(statistic, n - 1, min(welch, most, 1e9)))


def _between_std_dev(values: NDArray, errors: NDArray, weights: NDArray) -> float:
    """Standard deviation between runs beyond their errors, by the moments of a weighted sum of
    squares.
    """
    total = weights.sum()
    scale = total - np.sum(weights**2) / total
    if not scale > 0:
        return 0.0
    squares = weights @ (values - weights @ values / total) ** 2
    expected = np.sum(weights * errors**2 * (1 - weights / total))
    return float(np.sqrt(max(squares - expected, 0.0) / scale))


def _planned_variances(
    results: list[PartitionResult], errors: NDArray, degrees: NDArray
) -> tuple[Array, Array]:
    """The variance that a run of its estimator has with so many sweeps, and its degrees of freedom:
    those of all runs of this estimator together.
    """
    methods = np.array([result.method for result in results])
    sweeps = np.array([max(result.n_sweeps, 1) for result in results], dtype=float)
    planned = np.empty(len(results))
    known_by = np.empty(len(results))
    for method in set(methods):
        same = methods == method
        planned[same] = np.mean(errors[same] ** 2 * sweeps[same]) / sweeps[same]
        known_by[same] = degrees[same].sum()
    return planned, known_by


def single_result(name: str, given: object, remedy: str) -> PartitionResult:
    """The result of a fitted estimator, of a run, or as it is given; an error names what is none,
    or has rows.
    """
    result = getattr(given, "result_", given)
    if isinstance(result, Run):
        result = result.read()
    if not isinstance(result, PartitionResult):
        raise TypeError(
            f"{name} must be a fitted estimator of log Z, its run_ or its result_, got"
            f" {type(given).__name__}: PartitionResult(method, log_partition, std_error) makes a"
            " result of two numbers"
        )
    if np.ndim(result.log_partition):
        raise ValueError(f"{name} has a log Z for each of {len(result.log_partition)} rows{remedy}")
    return result

"""The error of a mean over fits: from held-out rows, training seeds and sets, and log Z.

A fit is scored on the rows that its split leaves out, and its mean there has three sources of
error, which repeat in different ways. Rows: every split has others, or some again. Fits: seeds, and
training sets, which share rows. log Z: one for each fit. What k-fold splits share has no unbiased
estimate (Bengio & Grandvalet 2004), so which rule covers was measured:
doc/benchmarks/compare_fits.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t

from sklpf._utils.numbers import Array


class Fits(NamedTuple):
    """Log-likelihoods of a split's held-out rows by its fits, or differences of two candidates."""

    groups: NDArray[np.intp]  # (n_test,): of every row; the row itself where there are none
    values: Array  # (n_fits, n_test), nats; a fit for each training seed
    partition: Array  # (n_fits,): standard error of the mean from log Z
    bias: Array  # (n_fits,): how far the mean may be off to one side


class FitError(NamedTuple):
    """A mean, its variance by source, and the half-width of the interval for their sum."""

    mean: float
    rows: float
    fits: float
    partition: float
    half_width: float

    @property
    def std_error(self) -> float:
        return float(np.sqrt(self.rows + self.fits + self.partition))


class Variance(NamedTuple):
    """An estimate of a variance and its degrees of freedom."""

    value: float
    df: float

    def half_width(self, level: float) -> float:
        return float(student_t.ppf(0.5 + level / 2, self.df) * np.sqrt(self.value))


def error_of_mean(splits: Sequence[Fits], test_over_train: float, level: float) -> FitError:
    """Return the mean over at least 2 splits, each the mean of its fits, with its error.

    There are two estimates of its variance: the sum of what comes from rows, seeds and log Z, each
    from what repeats within a split; and what is seen between splits, corrected for what they
    share, which holds the effect of the training sets as well but has few degrees of freedom. The
    interval is the wider one of both Student t intervals.
    """
    means = np.array([fits.values.mean() for fits in splits])
    rows = rows_variance(splits)
    seeds = seeds_variance(splits)
    log_z = sum(float(np.mean(fits.partition**2)) / len(fits.partition) for fits in splits)
    partition = Variance(log_z / len(splits) ** 2, np.inf)

    # the errors of log Z are among what differs between seeds
    within = _sum(rows, seeds if seeds.value > partition.value else partition)
    between = corrected_variance(means, test_over_train)
    half_width = max(within.half_width(level), between.half_width(level))

    # the correction is no source of its own: it makes all parts larger alike
    seen = max(within.value, float(means.var(ddof=1)) / len(splits))
    scale = max(within.value, between.value) / seen if seen > 0 else 1.0

    # a bias does not average out over fits
    bias = float(np.mean(np.concatenate([fits.bias for fits in splits]))) ** 2
    normal = Variance(bias, np.inf)
    return FitError(
        mean=float(means.mean()),
        rows=scale * rows.value,
        fits=scale * max(seen - rows.value - partition.value, 0.0),
        partition=scale * partition.value + bias,
        half_width=float(np.hypot(half_width, normal.half_width(level))),
    )


def rows_variance(splits: Sequence[Fits]) -> Variance:
    """Variance from the spread of rows within splits, summed by group; a row that several splits
    hold out counts once.
    """
    sums = np.zeros(1 + max(int(fits.groups.max()) for fits in splits))
    tested = np.zeros(len(sums), dtype=bool)
    for fits in splits:
        n_groups = len(np.unique(fits.groups))
        apart = fits.values.mean(axis=0) - fits.values.mean()
        scale = np.sqrt(n_groups / (n_groups - 1))
        np.add.at(sums, fits.groups, apart / len(apart) * scale)
        tested[fits.groups] = True
    return Variance(
        float(np.sum(sums**2)) / len(splits) ** 2, max(int(np.sum(tested)) - len(splits), 1)
    )


def seeds_variance(splits: Sequence[Fits]) -> Variance:
    """Variance from the spread of a split's fits beyond what its rows explain; 0 without repeated
    fits.
    """
    repeated = [fits for fits in splits if len(fits.values) > 1]
    if not repeated:
        return Variance(0.0, np.inf)
    df = sum(len(fits.values) - 1 for fits in repeated)
    squares = [(len(fits.values) - 1) * fits.values.mean(axis=1).var(ddof=1) for fits in repeated]
    spread = sum(squares) / df
    from_rows = sum(_interaction(fits.values) / fits.values.shape[1] for fits in repeated) / df

    # the variance of the mean over splits, if each of their fits has that of one seed
    share = sum(1 / len(fits.values) for fits in splits) / len(splits) ** 2
    value = max(spread - from_rows, 0.0)
    return Variance(share * value, df * (value / spread) ** 2 if value > 0 else np.inf)


def _interaction(values: Array) -> float:
    """Interaction sum of squares of fits and rows in values (n_fits, n_test), over n_test - 1."""
    apart = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float(np.sum(apart**2)) / (values.shape[1] - 1)


def corrected_variance(scores: Array, test_over_train: float) -> Variance:
    """Variance of the mean of splits' scores, from their spread (the corrected resampled t-test).

    Splits share training rows, and may share rows that they hold out, so that s^2 / n_splits is too
    small.

    Parameters
    ----------
    scores : ndarray of shape (n_splits,)
    test_over_train : float
        Rows that are held out by a split for each that it trains on.

    References
    ----------
    Nadeau & Bengio (2003), Inference for the generalization error. Machine Learning 52.
    """
    n_splits = len(scores)
    return Variance(float(scores.var(ddof=1)) * (1 / n_splits + test_over_train), n_splits - 1)


def _sum(a: Variance, b: Variance) -> Variance:
    """The sum, with the degrees of freedom of Welch and Satterthwaite."""
    value = a.value + b.value
    spread = a.value**2 / a.df + b.value**2 / b.df
    return Variance(value, value**2 / spread if spread > 0 else np.inf)

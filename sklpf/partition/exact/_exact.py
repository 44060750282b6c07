"""Exact: a closed form, or full enumeration of the smaller layer."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.special import logsumexp

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import parallel_map
from sklpf._utils.validation import N_JOBS
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._result import PartitionResult
from sklpf.partition.alarms import (
    rounding_alarms,
)
from sklpf.paths import has, require

MAX_LOG2_STATES = 25


@dataclass(eq=False, repr=False, kw_only=True)
class Exact(PartitionEstimator):
    """Log partition function in closed form where the path has one, else by enumeration.

    States of the smaller layer are enumerated in Gray-code order.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Blocks of states run in parallel, in threads unless ``joblib.parallel_config`` says
        otherwise.
    verbose : int, default=0
        Whether to log lines, as in `AIS`.

    Attributes
    ----------
    log_partition_ : float
        log Z in nats.
    log_partition_std_error_ : float
        0.
    log_partition_interval_ : tuple of float
        (log Z, log Z).
    converged_ : bool
        False if the model's parameters are so large that log Z is rounded by 0.05 nats or more.
    result_ : PartitionResult

    Notes
    -----
    An enumeration costs 2 ** (units of the smaller layer) * (units of the other layer) operations
    of about a nanosecond, in float64. More than 25 units raise an error.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, Exact
    >>> rbm = BernoulliRBM.from_parameters(np.zeros((2, 3)), np.zeros(3), np.zeros(2))
    >>> round(Exact().fit(rbm).log_partition_, 6)  # 5 log 2
    3.465736
    """

    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints = {"n_jobs": N_JOBS, "verbose": ["verbose"]}

    def _estimate(self, path, seed) -> PartitionResult:
        if has(path, "closed_log_partition"):
            return _result(path.closed_log_partition())
        check_enumerable(path)
        return _enumerated(path, float(logsumexp(self._block_sums(path))))

    def _estimate_rows(self, path, rows, seeds) -> Iterator[PartitionResult]:
        if not has(path, "enumerate_rows"):
            return super()._estimate_rows(path, rows, seeds)
        check_enumerable(path)
        return (
            _enumerated(path, log_partition) for log_partition in path.enumerate_rows(rows).tolist()
        )

    def _block_sums(self, path) -> Array:
        sum_block = functools.partial(_sum_block, path, len(path.ladder) - 1)
        blocks = range(path.n_enumeration_blocks)
        return np.array(parallel_map(sum_block, blocks, n_jobs=self.n_jobs, stage="enumeration"))

    def sample(self, path, n: int, rng: np.random.Generator) -> Any:
        """Return a state of n chains, exact and independent draws from the target of an enumerable
        path.
        """
        check_enumerable(path)
        require(path, "sample_enumerated", "Exact.sample")
        return path.sample_enumerated(self._block_sums(path), n, rng)


def check_enumerable(path) -> None:
    """Raise unless the path can be enumerated, with the cost in the message."""
    require(path, "enumerate_block", "Exact")
    if path.log2_states > MAX_LOG2_STATES:
        n_states = Decimal(2) ** path.log2_states  # which may be no float
        raise ValueError(
            f"Exact would enumerate 2**{path.log2_states} = {n_states:.1e} states, about"
            f" {n_states / 3_600_000_000:.3g} hours; at most 2**{MAX_LOG2_STATES}"
            f" are taken (of an RBM, {MAX_LOG2_STATES} units of the smaller layer): choose"
            " ParallelTempering or AIS, for documents LeftToRight"
        )


def _enumerated(path, log_partition):
    return _result(log_partition, path.enumeration_rounding, n_states=2**path.log2_states)


def _result(log_partition, rounding=0.0, **diagnostics):
    if not np.isfinite(log_partition):
        raise ValueError(
            f"log Z is {log_partition}: the model is not normalisable; check its parameters"
        )
    return PartitionResult(
        method="Exact",
        log_partition=log_partition,
        std_error=0.0,
        statement="exact",
        alarms=rounding_alarms(log_partition, rounding),
        diagnostics=diagnostics,
    )


def _sum_block(path, level, block):
    return np.array(logsumexp(path.enumerate_block(block, level)))

"""PartitionEstimator: what all estimators of log Z share. A new one is one file with one `_estimate`."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sklpf._parallel import Checkpoint, fingerprint, one_blas_thread, removing_checkpoints
from sklpf._warnings import warn
from sklpf.partition._result import PartitionResult
from sklpf.partition._targets import each_target, estimate_targets
from sklpf.paths import Path
from sklpf.transitions import Gibbs, Transition


class PartitionEstimator(BaseEstimator):
    """Base class of the estimators of a log partition function.

    A subclass sets its parameters in ``__init__`` (among them `random_state` and `n_jobs` where it samples), declares
    `_parameter_constraints`, and defines ``_estimate(path, seed) -> PartitionResult``.

    Attributes
    ----------
    log_partition_ : float or ndarray of shape (n_targets,)
        Estimate of log Z in nats; an array for a path with targets, one for each row of data.
    log_partition_std_error_ : float or ndarray of shape (n_targets,)
        Its standard error in nats.
    log_partition_interval_ : tuple of float or of ndarray of shape (n_targets,)
        95 % interval in nats.
    converged_ : bool
        Whether the numbers (of all targets) can be trusted; ``result_.reasons`` says in words why not.
    result_ : PartitionResult
        Everything about the run.
    """

    _parameter_constraints: dict[str, Any] = {}

    def fit(self, path, y=None) -> Self:
        """Estimate the log partition function of a path's target or of a fitted model.

        Parameters
        ----------
        path : Path or fitted model
            A model is anything with a method ``path(base=..., weights=...)``. Of a model with a likelihood for each
            row give ``model.path(X)``.
        y : ignored

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If the path lacks a capability that this estimator needs.
        ValueError
            If a parameter can't be used.

        Warns
        -----
        ConvergenceWarning
            If the result should not be trusted.
        """
        self._validate_params()
        started = time.perf_counter()
        path = self._as_path(path)
        if path.n_targets is not None and getattr(self, "starts", None) is not None:
            raise ValueError(
                "starts must be None for a path with targets: each row has starts of its own, drawn for it"
            )
        estimate = self._estimate if path.n_targets is None else functools.partial(estimate_targets, self)
        with one_blas_thread(), removing_checkpoints():
            result = estimate(path, self._seed())
        self.result_ = replace(result, seconds=time.perf_counter() - started)
        self.log_partition_ = result.log_partition
        self.log_partition_std_error_ = result.std_error
        self.log_partition_interval_ = result.interval()
        self.converged_ = result.converged
        if not result.converged:
            warn(f"{result.method} did not converge: " + "; ".join(result.reasons), ConvergenceWarning)
        return self

    def _estimate(self, path: Path, seed: int) -> PartitionResult:
        raise NotImplementedError

    def _estimate_targets(self, path: Path, rows, seeds) -> Iterator[PartitionResult]:
        """One result for each of some rows of a path with targets."""
        return each_target(self, path, rows, seeds)

    def _as_path(self, path) -> Path:
        if isinstance(path, Path):
            return path
        if not callable(getattr(path, "path", None)):
            kind = f"{type(path).__module__}.{type(path).__name__}"
            raise TypeError(
                f"path must be a fitted model of sklpf or a path, such as model.path(X), got {kind}{_advice(path)}"
            )
        check_is_fitted(path)
        if "X" in inspect.signature(path.path).parameters:
            name = type(path).__name__
            raise TypeError(
                f"path must be model.path(X), the rows whose likelihoods are wanted: a {name} has one for each row"
            )
        options = {name: getattr(self, name) for name in ("base", "weights") if hasattr(self, name)}
        return path.path(**options)

    def _seed(self) -> int:
        if "random_state" not in self.get_params(deep=False):
            return 0  # nothing is sampled, and the global generator is left alone
        random_state = self.random_state
        if getattr(self, "checkpoint", None) is not None and not isinstance(random_state, (int, np.integer)):
            raise ValueError("checkpoint needs random_state to be an int, else an interrupted run can't be resumed")
        if isinstance(random_state, (int, np.integer)):
            return int(random_state)
        return int(check_random_state(random_state).randint(2**31 - 1))

    def _transition(self, path: Path) -> Transition:
        transition = getattr(self, "transition", None) or Gibbs()
        transition.check(path)
        return transition

    def _checkpoint(self, path: Path, seed: int) -> Checkpoint | None:
        """Files are named by all that the numbers depend on: path, parameters, seed and versions."""
        if self.checkpoint is None:
            return None
        import numba

        import sklpf

        parameters = self.get_params()
        for name in ("n_jobs", "checkpoint", "random_state"):
            parameters.pop(name)
        versions = (sklpf.__version__, np.__version__, numba.__version__)
        parts = (type(self), path, path.ladder, path.n_moves_per_segment)  # the last two may belong to the class
        return Checkpoint(self.checkpoint, fingerprint(parts, parameters, seed, versions))


def _advice(model) -> str:
    """What to do with a model of another library, where its name says what it is."""
    name = type(model).__name__.lower()
    if "rbm" in name or "boltzmann" in name:
        return "; BernoulliRBM.from_parameters takes the weights of another library's RBM"
    if "lda" in name or "dirichlet" in name:
        return "; of another library's topic model take sklpf.models.LDAPath(topics, doc_topic_prior, X)"
    return ""


def check_base(path: Path, estimator: str) -> float:
    """Return the base's log normaliser or raise if the path can't be sampled from there."""
    if not hasattr(path, "sample_base"):
        raise TypeError(
            f"{estimator} needs a path with the method sample_base(n, stream); {type(path).__name__} has none: "
            "define it"
        )
    if path.base_log_partition is None:
        raise ValueError(
            f"{estimator} needs a base with a known normaliser: declare base_log_partition on {type(path).__name__} "
            "(0.0 if log_f at level 0 is normalised)"
        )
    return float(path.base_log_partition)


def equal_blocks(n: int, largest: int) -> list[int]:
    """Sizes of at least 8 (where n allows) blocks of n chains, as equal as possible and at most `largest`."""
    n_blocks = max(min(n, 8), -(-n // largest))
    return [n // n_blocks + (block < n % n_blocks) for block in range(n_blocks)]


def segments(n_sweeps: int, length: int) -> list[int]:
    """First sweep of every segment of at most `length` sweeps, and the end."""
    return [*range(0, n_sweeps, length), n_sweeps]

"""log Z of an RBM while it trains: what lies between the model and the callbacks that follow it."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from sklpf._utils.numbers import Array32
from sklpf._utils.parallel import equal_parts, one_blas_thread, run_tasks, task_threads
from sklpf._utils.validation import evenly_spaced
from sklpf._utils.warnings import warn
from sklpf.models._missing import log_sums
from sklpf.models.rbm._learning import Trainer
from sklpf.models.rbm._path import Parameters, RBMPath
from sklpf.training import EarlyStopping, LogPartitionTracker

_N_ROWS = 200  # of the data, and chains for the model
_LEAST_CHAINS = 48  # that a thread takes
ATTRIBUTES = (
    "log_partition_curve_",
    "log_partition_std_errors_",
    "validation_scores_",
    "validation_score_std_errors_",
    "best_iteration_",
    "log_likelihood_scatter_",
)


def log_likelihood_scatter(passes: Sequence[Parameters], model, trainer) -> float:
    """Standard deviation of the log-likelihood around its trend over consecutive passes.

    log f_b - log f_a is averaged over rows of the data; log Z_b - log Z_a is about its average over
    draws from both models, which Gibbs chains supply that start where the chains of training have
    ended.

    Parameters
    ----------
    passes : sequence of Parameters
        After each pass.
    model : DiscreteRBM
    trainer : Trainer
        Rows that training has seen, and its chains after the last pass.

    Returns
    -------
    scatter : float
        In nats per row; NaN for fewer than three passes, as two have no scatter around a trend.
    """
    n_sweeps = 2  # of the chains at each pass; 5, and 20 of 2000 chains, give the same
    if len(passes) < 3:
        return np.nan
    h = np.resize(trainer.h, (_N_ROWS, trainer.h.shape[1])).astype(np.float32)
    pairs = list(pairwise(passes))

    def gains_of_draws(chains):
        """Return the mean log ratio over draws from both models of each pair, (n_pairs,)."""
        rng = np.random.default_rng([model._partition_seed, chains.start])
        own = h[chains]
        draws = []
        for parameters in passes:
            for _ in range(n_sweeps):
                v, own = parameters.gibbs(own, rng, model._visible_units)
            draws.append(v)
        return [_mean_ratio(a, b, np.vstack(own)) for (a, b), own in zip(pairs, pairwise(draws))]

    with task_threads(model.n_jobs), one_blas_thread(), np.errstate(over="ignore"):
        log_z = np.mean(run_tasks(gains_of_draws, equal_parts(_N_ROWS, _LEAST_CHAINS)), axis=0)
        rows = _some_rows(trainer)
        gains = [_mean_ratio(a, b, rows) for a, b in pairs] - log_z
    values = np.cumsum([0.0, *gains])
    time = np.arange(len(values))
    residuals = values - np.polyval(np.polyfit(time, values, 1), time)
    return float(np.sqrt(np.sum(residuals**2) / (len(values) - 2)))


def _some_rows(trainer) -> Array32:
    """Some of the rows that training has seen, (n, M)."""
    rows = evenly_spaced(trainer.X, _N_ROWS)
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float32)


def warn_of_scatter(scatter: float, model, parameters: Parameters, trainer) -> None:
    """Warn that training has not settled, if the log-likelihood scatters between passes by more
    than the sampling error of a score of as many rows as those of training.
    """
    # two half-widths of the 95 % interval of a score of as many rows, in standard errors
    most_scatter = 3.92
    negligible = 0.01  # nats a row, where rows that are alike have no sampling error
    rows = _some_rows(trainer)
    if not scatter > negligible or len(rows) < 2:
        return
    spread = parameters.log_f(rows).std(ddof=1)  # log Z is common to all
    if scatter > most_scatter * spread / np.sqrt(trainer.X.shape[0]):
        remedies = "raise n_iter or lower learning_rate"
        warn(
            f"training has not settled: the log-likelihood scattered by {scatter:.2g} nats a row"
            " between the last passes, so that another seed or another pass gives another model;"
            f" {remedies if model.average else remedies + ', or choose average=True'}",
            ConvergenceWarning,
        )


def _mean_ratio(a, b, v) -> float:
    """Mean over rows v of log f_b(v) - log f_a(v)."""
    return float(np.mean(b.log_f(v) - a.log_f(v)))


def split(model, X, rng) -> tuple[Any, Any]:
    """Rows to train on and rows to validate on, the latter None without `early_stopping`."""
    if not model.early_stopping:
        return X, None
    if model.track_log_partition == "rts":
        raise ValueError(
            'early_stopping needs the error of log Z, which track_log_partition="rts" has none of:'
            ' choose "particles"'
        )
    X, held_out = train_test_split(X, test_size=model.validation_fraction, random_state=rng)
    held_out = held_out.toarray() if sp.issparse(held_out) else held_out
    values = model._without_missing(held_out)
    if not np.all((values == 0) | (values == 1)):
        raise ValueError(
            "early_stopping needs rows of 0 and 1, others have no likelihood: binarise X"
        )
    return X, held_out


def make_tracker(
    model, n_rows: int, before: LogPartitionTracker | None = None
) -> LogPartitionTracker:
    """The tracker of a model that sees `n_rows` rows in a pass, which may go on from where another
    one stands.

    It draws nothing from the model's generator.
    """
    moves_per_row = 0.25
    moves_per_batch = 1.5
    # weights times moves of a particle that a pass may cost anyway, 0.02 s
    work_per_pass = 8e8
    method = model.track_log_partition or "particles"
    n_moves = n_rows * (moves_per_row + moves_per_batch / min(model.batch_size, n_rows))
    tracker = LogPartitionTracker(
        functools.partial(path_of, model.visible_mean_, model._visible_units),
        model._partition_seed,
        method,
        n_moves=max(n_moves, work_per_pass / model.components_.size),
    )
    return tracker if before is None or before.method != method else tracker.after(before)


def _mean_log_f(model, X, path) -> float:
    """Mean log f of rows by the path of a model on its way, summed over missing values."""
    missing = model._missing(X)
    if missing is None:
        return float(np.mean(path.parameters.log_f(X)))
    log_f, too_many, _ = log_sums(model._known(X[~missing.all(axis=1)], path.parameters))
    if len(too_many):
        raise ValueError(
            "early_stopping sums over the missing values (NaN) of rows after every pass, and some"
            " rows miss too many: set it to False, take at most 20 hidden units, or drop such rows"
        )
    return float(np.mean(log_f))


class Monitor:
    """The callback of a fit, and what it leaves on the model.

    Parameters
    ----------
    model : DiscreteRBM
    X_validation : ndarray of shape (n_rows, n_features) or None
        Rows of 0 and 1, of which values may be missing; None does without early stopping.
    n_rows : int
        Rows of a pass.
    """

    def __init__(self, model, X_validation, n_rows: int):
        n_passes = 5  # that are compared
        self.tracker: LogPartitionTracker | None = None
        self.stopping: EarlyStopping | None = None
        self.last_passes: deque[Parameters] = deque(maxlen=n_passes)
        if X_validation is not None or model.track_log_partition:
            self.tracker = make_tracker(model, n_rows)
        if X_validation is not None:
            log_f = functools.partial(_mean_log_f, model, X_validation)
            rule = (model.tol, model.n_iter_no_change)
            self.stopping = EarlyStopping(self.tracker, log_f, Trainer.snapshot, *rule)

    def __call__(self, trainer, iteration: int) -> bool:
        """See a pass; true ends training."""
        if self.tracker is not None:
            self.tracker(trainer, iteration)
        self.last_passes.append(trainer.parameters.copy())
        return self.stopping is not None and self.stopping(trainer, iteration)

    def store(self, model, trainer) -> None:
        """Write what was seen to the model, for `partial_fit` to go on from, and the best weights
        to the trainer.
        """
        passes = list(self.last_passes)
        scatter = log_likelihood_scatter(passes, model, trainer)
        model.log_likelihood_scatter_ = scatter
        if self.stopping is None and passes:
            warn_of_scatter(scatter, model, passes[-1], trainer)
        if self.tracker is not None:
            store_tracker(model, self.tracker)
            n_lost = int(np.isinf(model.log_partition_std_errors_).sum())
            if n_lost:
                warn(
                    f"log Z could not be followed in {n_lost} of {len(self.tracker.estimates)}"
                    " passes, whose standard errors are inf: lower learning_rate, or track it no"
                    " longer and let score estimate log Z",
                    ConvergenceWarning,
                )
        stopping = self.stopping
        if stopping is not None:
            model.validation_scores_ = np.array(stopping.scores)
            model.validation_score_std_errors_ = np.array(stopping.std_errors)
            model.best_iteration_ = stopping.best_iteration or len(stopping.scores)
            if stopping.best_iteration:
                trainer.restore(stopping.best)


def store_tracker(model, tracker) -> None:
    """Write log Z after every pass to the model, and what follows it further."""
    model._tracker = tracker
    estimates = tracker.estimates
    model.log_partition_curve_ = np.array([each.log_partition for each in estimates])
    model.log_partition_std_errors_ = np.array([each.std_error for each in estimates])


def path_of(visible_mean, visible_units, trainer) -> RBMPath:
    """The path from units with these means to the model that a trainer has arrived at."""
    return RBMPath(*trainer.parameters, visible_mean, visible_units=visible_units)  # type: ignore[misc, call-arg]

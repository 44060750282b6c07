"""LeftToRight: particle filters over the observations of a row."""

from __future__ import annotations

import functools
import math
import os
from numbers import Integral, Real

import numpy as np

from sklpf._parallel import run_segments
from sklpf._random import Stream, stream_key
from sklpf._sklearn import Interval
from sklpf.partition._ais import weight_diagnostics
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._options import SAMPLING
from sklpf.partition._result import PartitionResult
from sklpf.paths import Filters
from sklpf.paths._capabilities import require
from sklpf.reweighting import mean_weight
from sklpf.runs._annealing import AnnealingRun

_MAX_SPREAD = 2.0  # nats; beyond it estimates are low by 0.2 nats and more, and their error is a guess


class LeftToRight(PartitionEstimator):
    """Left-to-right sampling (Wallach, Murray, Salakhutdinov & Mimno 2009; Buntine 2009), as a particle filter.

    A document's tokens come one after the other. Every particle holds topics of the tokens so far; it says how probable
    the next token is, draws that token's topic given the token, and from time to time draws the former topics anew.

    Wallach et al. multiply the particles' mean probabilities of the tokens, which is biased. The mean over particles of
    their own products is not, but varies more with every further token. Here the means are multiplied, and particles
    are resampled in proportion to their predictions once under half of them count: that is unbiased too (Del Moral
    2004), and varies far less. Filters of one particle give the mean of products.

    Each filter takes the tokens in a random order of its own. log Z is the log of the mean of the independent filters'
    unbiased estimates, so it is low by about half its variance.

    Parameters
    ----------
    n_particles : int, default=200
        Particles of every filter.
    n_filters : int, default=10
        Independent filters G, at least 2: the error bar comes from their spread.
    n_sweeps : float, default=8
        How much former tokens are drawn anew: there are about n_sweeps * log(n + 1) sweeps over the tokens so far until
        token n has come, which together cost each particle as much as `n_sweeps` sweeps over the whole document.
    checkpoint, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The standard error is the largest of three over the filters: the delta method's, the
        jackknife's, and that of the log of a lognormal distribution's mean, sqrt(s^2 / G + s^4 / (2 (G - 1))) for log
        estimates with variance s^2, without which intervals cover too little. The interval uses Student t with G - 1
        degrees of freedom. ``result_.diagnostics`` are those of `AIS`, with a filter in place of a chain, and
        ``spread`` (s) and ``lognormal_std_error`` in nats.

    Notes
    -----
    Needs ``path.left_to_right(n, n_particles, n_sweeps, stream)``, which returns the log of n independent unbiased
    estimates of Z. Not converged if the filters' log estimates have a standard deviation of more than 2 nats.
    Topics that explain the document and that no particle has found raise no alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import LeftToRight
    >>> from sklpf.models import LDAPath
    >>> document = LDAPath(topics=[[0.9, 0.1], [0.2, 0.8]], doc_topic_prior=0.5, X=[[3, 2]])
    >>> bool(LeftToRight(random_state=0).fit(document).log_partition_std_error_[0] < 0.05)
    True
    """

    _parameter_constraints = {
        "n_particles": [Interval(Integral, 1, None, closed="left")],
        "n_filters": [Interval(Integral, 2, None, closed="left")],
        "n_sweeps": [Interval(Real, 0, None, closed="left")],
        **{name: SAMPLING[name] for name in ("checkpoint", "random_state", "n_jobs", "verbose")},
    }

    def __init__(
        self,
        n_particles: int = 200,
        n_filters: int = 10,
        n_sweeps: float = 8,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_particles = n_particles
        self.n_filters = n_filters
        self.n_sweeps = n_sweeps
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _run_class = AnnealingRun

    def _sample(self, path, seed) -> AnnealingRun:
        require(path, Filters, "LeftToRight")
        log_estimates = run_segments(
            _nothing,
            functools.partial(_run_filter, path, self.n_particles, self.n_sweeps, stream_key(seed)),
            self.n_filters,
            1,
            n_jobs=self.n_jobs,
            checkpoint=self._checkpoint(path, seed),
            stage="filters",
        )
        n_sweeps = round(self.n_filters * self.n_particles * (1 + self.n_sweeps))
        return AnnealingRun(None, 0.0, up=np.concatenate(log_estimates), n_sweeps=n_sweeps)

    def _combine(self, run) -> PartitionResult:
        """The log of the mean, with an error that knows that few filters rarely show their estimates' long tail."""
        estimate = mean_weight(run.up)
        n, variance = len(run.up), float(np.var(run.up, ddof=1))
        lognormal = math.sqrt(variance / n + variance**2 / (2 * (n - 1)))  # of the mean + variance / 2
        spread = math.sqrt(variance)
        alarm = f"the filters' log estimates spread by {spread:.1f} nats, more than {_MAX_SPREAD:g}: raise n_particles"
        reasons = (alarm,) if spread > _MAX_SPREAD else ()
        return PartitionResult(
            method="LeftToRight",
            log_partition=estimate.log_mean,
            std_error=max(estimate.std_error, lognormal),
            degrees_of_freedom=n - 1,
            converged=not reasons,
            reasons=reasons,
            n_sweeps=run.n_sweeps,
            diagnostics={
                **weight_diagnostics(run.up),
                "delta_std_error": estimate.delta,
                "jackknife_std_error": estimate.jackknife,
                "lower_bound": estimate.log_mean - math.log(20),
                "spread": spread,
                "lognormal_std_error": lognormal,
            },
        )


def _nothing(block):
    return np.empty(0)


def _run_filter(path, n_particles, n_sweeps, key, block, segment, carry):
    log_estimates = path.left_to_right(1, n_particles, n_sweeps, Stream(key, block))
    if not np.all(np.isfinite(log_estimates)):
        raise ValueError("left_to_right gave values that are not finite; check the model's parameters")
    return log_estimates

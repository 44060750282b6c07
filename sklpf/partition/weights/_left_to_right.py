"""LeftToRight: particle filters over the observations of a row."""

from __future__ import annotations

import functools
import math
import os
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Literal

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import run_segments
from sklpf._utils.random import Stream, seeded
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import POSITIVE, Interval, at_least
from sklpf.partition._base import SAMPLING, PartitionEstimator
from sklpf.partition._result import PartitionResult, Run, weight_diagnostics
from sklpf.partition.alarms import (
    misses_tol,
    raised,
    threshold,
)
from sklpf.paths import require
from sklpf.uncertainty import mean_weight

# filters of either pilot, and their particles
_GUIDING = 4
_PILOTS = 8
_PILOT_PARTICLES = 16
_MOST = 1000  # particles of a filter
_FILTERS_PER_BLOCK = 10


@dataclass(frozen=True, repr=False, kw_only=True)
class FilterRun(Run):
    """Log estimates of independent particle filters.

    Attributes
    ----------
    log_estimates : ndarray of shape (G,)
        Each the log of an unbiased estimate of Z, in nats.
    variance_from_target : float
        Var Z_hat / Z^2 of an estimate, by the reverse chains.
    resolution : float
        Standard error of the log of their mean from what none of the particles happened to do.
    n_particles, tol
        As in `LeftToRight`.
    """

    options = ("n_particles", "tol")
    family = "filters"

    log_estimates: Array
    variance_from_target: float
    resolution: float
    n_particles: int | str = "auto"
    tol: float = 0.3

    def _read(self) -> PartitionResult:
        """The log of the mean, with an error that knows that few filters rarely show their
        estimates' long tail.
        """
        n = len(self.log_estimates)
        estimate = mean_weight(self.log_estimates)
        variance = float(np.var(self.log_estimates, ddof=1))
        # of the logarithm, if estimates are lognormal
        from_target = math.log1p(self.variance_from_target)
        lognormal = _lognormal_error(max(variance, from_target), n)
        spread = math.sqrt(variance)
        std_error = math.hypot(max(estimate.std_error, lognormal), self.resolution)
        alarms = []
        if spread > threshold("no-usable-estimate", "spread"):
            alarms.append(raised("no-usable-estimate", "filters", self.family, here=spread))
        has_most = self.n_particles == "auto" and self.resolution <= 1 / (n * _MOST)
        if has_most and misses_tol(std_error, self.tol):
            alarms.append(
                raised("tol-missed", "most particles", self.family, error=std_error, n=_MOST)
            )
        return self.conclude(
            estimate.log_mean,
            std_error,
            n - 1,
            alarms=alarms,
            diagnostics={
                **weight_diagnostics(self.log_estimates),
                "delta_std_error": estimate.delta,
                "jackknife_std_error": estimate.jackknife,
                "lower_bound": estimate.log_mean - math.log(20),
                "spread": spread,
                "spread_from_target": math.sqrt(from_target),
                "lognormal_std_error": lognormal,
                "log_bias": -(std_error**2) / 2,
            },
        )


@dataclass(eq=False, repr=False)
class LeftToRight(PartitionEstimator):
    """Left-to-right sampling (Wallach, Murray, Salakhutdinov & Mimno 2009; Buntine 2009), as a
    particle filter.

    The filter reads a document's tokens one after the other. Every particle holds topics of the
    tokens so far. It predicts the probability of the next token, draws that token's topic given the
    token, and from time to time draws the earlier topics again.

    Wallach et al. multiply the particles' mean probabilities of the tokens, which is biased. The
    mean over particles of their own products is unbiased, but its variance grows with every further
    token. Here the means are multiplied, and particles are resampled in proportion to their
    predictions whenever their effective number falls below half. This is unbiased too (Del Moral
    2004), with a far smaller variance. Filters of one particle give the mean of products.

    The first tokens say little about a document's topics, and caused most of the variance. So four
    pilot filters first find which topics the document has. The others add these to their prior, as
    if they had already seen a fiftieth of the document. They remove this addition in steps as
    tokens are read, and correct the particles' weights for it (as the iterated auxiliary particle
    filter does: Guarniero, Johansen & Lee 2017). The pilot is not part of the estimate, which is
    unbiased for any result of the pilot.

    Each filter reads the tokens in its own random order. log Z is the log of the mean of the
    independent filters' unbiased estimates, so it is low by about half its variance.

    Parameters
    ----------
    n_particles : int or "auto", default="auto"
        Particles of every filter; up to 16 cost the same. "auto" takes 32 to 1000 particles, as
        `tol` needs: eight more pilot filters measure the variance of a filter's log estimate, which
        falls with the number of particles. Each row has its own pilot, so that its number depends
        on that row and the model alone.
    n_filters : int, default=10
        Independent filters G, at least 2: the error bar comes from their spread.
    n_sweeps : float, default=4
        How often the topics of earlier tokens are drawn again: there are about n_sweeps * log(n +
        1) sweeps over the tokens so far until token n has come, which together cost each particle
        as much as `n_sweeps` sweeps over the whole document.
    tol : float, default=0.3
        Target standard error of "auto", in nats. With the default the filters' log estimates have a
        standard deviation below a nat; with a larger one their error is poorly known. A smaller
        `tol` gains nothing for a mean over documents, whose log-likelihoods differ by tens to
        hundreds of nats.
    checkpoint, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The standard error is the largest of three over the filters: the
        delta method's, the jackknife's, and that of the log of a lognormal distribution's mean,
        sqrt(s^2 / G + s^4 / (2 (G - 1))). s^2 is the variance of the log estimates, or, if larger,
        log(1 + V): V is the relative variance of an estimate as reverse chains see it, which go
        from the filters' last particles back through every move of two filters. A few estimates
        rarely show their long tail; a filter that holds one more particle, whose topics explain the
        whole document, does. To its square the square of 1 over the number of all particles is
        added: events rarer than that are not seen, even if all filters agree. The interval uses
        Student t with G - 1 degrees of freedom, and is extended upwards by half the squared
        standard error, by which the log of a mean is too low. ``result_.diagnostics`` are those of
        `AIS`, with a filter in place of a chain, and ``spread`` (of the log estimates),
        ``spread_from_target`` (the root of log(1 + V)) and ``lognormal_std_error`` in nats.

    Notes
    -----
    Needs ``path.left_to_right(n, n_particles, n_sweeps, stream, guide=None, n_reverse=0)``, which
    returns `FilterEstimates`, and ``path.filters_are_exact``. Not converged if the filters' log
    estimates have a standard deviation of more than 2 nats, or if "auto" took its largest number of
    particles and the standard error is still above `tol`. With fewer particles it may by chance be
    a little above `tol`, which raises no alarm. Topics that explain the document and that no
    particle has found raise no alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import LeftToRight
    >>> from sklpf.models import LDAPath
    >>> topics = [[0.9, 0.1], [0.2, 0.8]]
    >>> document = LDAPath(topics=topics, doc_topic_prior=0.5, X=[[3, 2]])
    >>> estimator = LeftToRight(random_state=0).fit(document)
    >>> bool(estimator.log_partition_std_error_[0] < 0.05)
    True
    """

    n_particles: int | Literal["auto"] = "auto"
    n_filters: int = 10
    n_sweeps: float = 4
    _: KW_ONLY
    tol: float = 0.3
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints = {
        "n_particles": [StrOptions({"auto"}), at_least(1)],
        "n_filters": [at_least(2)],
        "n_sweeps": [Interval(Real, 0, 2**31, closed="left")],
        "tol": [POSITIVE],
        **{name: SAMPLING[name] for name in ("checkpoint", "random_state", "n_jobs", "verbose")},
    }

    _run_class = FilterRun

    def _sample(self, path, seed) -> FilterRun:
        require(path, "left_to_right", "LeftToRight")
        streams = seeded(seed)
        guide = _filter(path, _GUIDING, _PILOT_PARTICLES, self.n_sweeps, streams.of("guide")).guide
        n_pilots = _GUIDING
        n_particles = self.n_particles
        if n_particles == "auto":
            stream = streams.of("pilots")
            pilots = _filter(path, _PILOTS, _PILOT_PARTICLES, self.n_sweeps, stream, guide)
            # What only some of either pilots have found the others begin with, too.
            guide = (_GUIDING * guide + _PILOTS * pilots.guide) / (_GUIDING + _PILOTS)
            n_pilots += _PILOTS
            variance = np.var(pilots.log_estimates, ddof=1)
            needed = _PILOT_PARTICLES * variance / _variance_for(self.tol, self.n_filters)
            # The pilot asks for too few where its guide has missed something.
            n_particles = int(np.clip(np.ceil(needed), 32, _MOST))
        # filters of a block through which reverse chains go
        n_reversed = 0 if path.filters_are_exact else 2
        many = self.n_filters, n_particles, self.n_sweeps, n_reversed
        blocks = run_segments(
            lambda block: (np.empty(0), np.zeros(2)),
            functools.partial(_run_filters, path, *many, streams.of("filters").key, guide),
            -(-self.n_filters // _FILTERS_PER_BLOCK),
            [0, 1],
            n_jobs=self.n_jobs,
            checkpoint=self._checkpoint(path, seed),
            stage="filters",
        )
        log_estimates, of_reverse = zip(*blocks)
        variances, n_reverse_chains = np.transpose(of_reverse)
        n_chains = self.n_filters * n_particles + np.sum(n_reverse_chains)
        n_sweeps = round((n_pilots * _PILOT_PARTICLES + n_chains) * (1 + self.n_sweeps))
        unseen = 0.0 if path.filters_are_exact else 1 / (self.n_filters * n_particles)
        return FilterRun(
            log_estimates=np.concatenate(log_estimates),
            variance_from_target=float(np.mean(variances)),
            sweeps={"chains": n_sweeps},
            resolution=unseen,
        )


def _lognormal_error(variance: float, n: int) -> float:
    """Standard error of mean + variance / 2 of n normal log estimates: the log of a lognormal
    distribution's mean.
    """
    return math.sqrt(variance / n + variance**2 / (2 * (n - 1)))


def _variance_for(std_error: float, n: int) -> float:
    """The variance of n log estimates for which `_lognormal_error` is this."""
    twice = max(2 * std_error**2, np.finfo(float).tiny)
    return twice / (1 / n + math.sqrt(n**-2 + twice / (n - 1)))


def _run_filters(
    path, n_filters, n_particles, n_sweeps, n_reversed, key, guide, block, begin, end, carry
):
    """Log estimates of the filters of a block; their variance as reverse chains see it, and the
    number of these.
    """
    first = block * _FILTERS_PER_BLOCK
    n = min(_FILTERS_PER_BLOCK, n_filters - first)
    stream = Stream(key, first)
    found = _filter(path, n, n_particles, n_sweeps, stream, guide, min(n, n_reversed))
    return found.log_estimates, np.array([found.variance, found.n_reverse_chains])


def _filter(path, n, n_particles, n_sweeps, stream, guide=None, n_reverse=0):
    found = path.left_to_right(n, n_particles, n_sweeps, stream, guide, n_reverse)
    if not np.all(np.isfinite(found.log_estimates)):
        raise ValueError(
            "left_to_right gave values that are not finite; check the model's parameters"
        )
    return found

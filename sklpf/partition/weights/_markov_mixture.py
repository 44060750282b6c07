"""MarkovMixture: a mixture of Gibbs steps from stored states as proposal, two-sided by Bennett's
acceptance ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import seeded
from sklpf._utils.validation import at_least
from sklpf.partition._base import SAMPLING, SamplingEstimator
from sklpf.partition._result import PartitionResult, Run
from sklpf.partition.alarms import raised, threshold
from sklpf.partition.levels import ExchangeRun, ParallelTempering
from sklpf.paths import require
from sklpf.programs import draws_of
from sklpf.reweighting import bar, overlap
from sklpf.uncertainty import effective_sample_size, jackknife, log_mean_exp


@dataclass(frozen=True, repr=False, kw_only=True)
class MixtureRun(Run):
    """Log weights f / p_G of draws of a mixture p_G and of draws of the model.

    Attributes
    ----------
    mixture_draws, model_draws : ndarray of shape (G, n)
        Log weights of the draws by group; the model's draws in a group come from one ladder.
    tempering : ExchangeRun
        The last round before the draws of the run that centres and the model's draws come from.
    """

    family = "mixture"

    mixture_draws: Array
    model_draws: Array
    tempering: ExchangeRun

    def _read(self) -> PartitionResult:
        drawn = self.mixture_draws
        others = self.model_draws
        n_groups = len(others)
        log_partition, std_error = jackknife(
            lambda keep: bar(drawn[keep].ravel(), -others[keep].ravel()), n_groups
        )
        # Centres that agree say nothing of the mass that fewer than one of them stands for.
        error = np.hypot(std_error, 1 / drawn.size)
        before = self.tempering.read()
        share = effective_sample_size(drawn.ravel()) / drawn.size
        shared = overlap(drawn.ravel(), -others.ravel(), float(log_partition))
        alarms = []
        if min(share, shared) < threshold("few-effective", "covered"):
            alarms.append(
                raised(
                    "few-effective",
                    "centres",
                    self.family,
                    share=share,
                    shared=shared,
                )
            )
        alarms += [
            replace(alarm, seen=f"the tempering run: {alarm.seen}") for alarm in before.alarms
        ]
        diagnostics = {
            "effective_share": share,
            "overlap": shared,
            "one_sided": log_mean_exp(drawn),
            "tempering": before.log_partition,
        }
        return self.conclude(
            log_partition,
            error,
            n_groups - 1,
            alarms=alarms,
            diagnostics=diagnostics,
        )


@dataclass(eq=False, repr=False)
class MarkovMixture(SamplingEstimator):
    """Importance sampling from a mixture of Markov steps p_G(x) = mean_l T(c_l, x) (Bishop 2006,
    eq. 11.73).

    The centres c_l are states of a short run of `ParallelTempering`, and T is a Gibbs step whose
    density is known: on an RBM p(v | h_l). Draws of p_G and draws of the model, from other ladders
    than the centres, are compared by Bennett's acceptance ratio. A model with few modes is covered
    by its centres, and the error is then far below that of the tempering run.

    Parameters
    ----------
    n_centres : int, default=1000
        Centres L, as many draws of the mixture and as many of the model, rounded up to a multiple
        of `n_ladders`.
    n_ladders : int, default=10
        Independent ladders G that the model's draws come from, and as many that the centres come
        from.
    n_sweeps : int, default=2048
        Sweeps of every chain of the tempering run before the first draw.
    transition, checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `PartitionEstimator`. The standard error is a jackknife over the ladders of the model's
        draws, given the centres, and to its square that of 1 / `n_centres` is added: events rarer
        than that are not seen, even if all ladders agree. The interval uses Student t with G - 1
        degrees of freedom. ``result_.diagnostics`` holds ``effective_share`` (of the mixture's
        draws), ``overlap`` of the two kinds of draws, the ``one_sided`` estimate from the mixture's
        draws alone, and ``tempering``, that of the tempering run.

    Raises
    ------
    TypeError
        If the path has no such step (`draw_conditional`).

    Notes
    -----
    Not converged if the effective share of the mixture's draws is below a tenth, or the two kinds
    of draws overlap by less: the model has more modes than the centres cover. Nor if the tempering
    run didn't converge, whose alarms are repeated, or if the path has a lower bound of log Z that
    does not depend on its base (`bound_draws`) and it is exceeded, or knows the mass of a region
    that the draws have missed (`regions`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.partition import MarkovMixture
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> mixture = MarkovMixture(n_centres=200, n_sweeps=256, random_state=0).fit(rbm)
    >>> bool(mixture.log_partition_std_error_ < 0.02)
    True
    """

    n_centres: int = 1000
    n_ladders: int = 10
    n_sweeps: int = 2048

    _parameter_constraints = {
        **SAMPLING,
        "n_centres": [at_least(20)],
        "n_ladders": [at_least(2)],
        "n_sweeps": ParallelTempering._parameter_constraints["n_sweeps"],
    }

    _run_class = MixtureRun

    def _sample(self, path, seed) -> MixtureRun:
        require(path, "draw_conditional", "MarkovMixture")
        n_groups = int(self.n_ladders)
        n = n_groups * -(-int(self.n_centres) // n_groups)
        tempering = ParallelTempering(
            2 * n_groups,
            n_sweeps=self.n_sweeps,
            transition=self.transition,
            checkpoint=self.checkpoint,
            n_jobs=self.n_jobs,
        )
        state, run = tempering._draw(path, 2 * n, seeded(seed).of("states").generator())
        ladder = np.arange(2 * n) % (2 * n_groups)
        centres = path.take(state, np.flatnonzero(ladder < n_groups))
        rng = seeded(seed).of("draws").generator()
        drawn = path.mixture_log_weights(centres, path.draw_conditional(centres, rng))
        others = path.mixture_log_weights(
            centres, path.take(state, np.flatnonzero(ladder >= n_groups))
        )
        return MixtureRun(
            draws=draws_of(path, state, np.zeros(2 * n), ladder) if self._keeps_draws else None,
            ladder=run.ladder,
            sweeps=run.sweeps,
            mixture_draws=rng.permutation(drawn).reshape(n_groups, -1),
            model_draws=others.reshape(-1, n_groups).T,
            tempering=run,
        )

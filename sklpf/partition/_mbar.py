"""MBAR: all levels of a run at once, from the vectors that it kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sklpf._utils.alarm import Alarm
from sklpf.partition._diagnostics import PAIR, Diagnostic
from sklpf.partition._level_run import mbar_curve
from sklpf.partition._potential_run import PotentialRun
from sklpf.partition._reweighting import ReweightingEstimator
from sklpf.programs._sums import Samples
from sklpf.reweighting import overlap, overlap_matrix

_LEAST_OVERLAP = 0.03


class MBAR(ReweightingEstimator):
    """Multistate Bennett acceptance ratio (Shirts & Chodera 2008; Carlson et al. 2016, eq. 18).

    The states of all levels are pooled, and every log Z_k maximises one likelihood. It uses the
    states that the run kept, systematically thinned: at most 20,000 of `ParallelTempering` and
    5,000 of `RTS`, so that memory is bounded for runs of any length. Thinning costs precision (up
    to two or three times the error of `BAR` if one state of 16 is kept), which the error bar
    includes.

    Parameters
    ----------
    sampler, random_state, n_jobs, verbose
        See `ReweightingEstimator`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_,
    sampler_, run_
        See `ReweightingEstimator`. ``result_.diagnostics`` also holds the ``overlap_matrix`` of all
        levels with states (symmetric form; Klimovich, Shirts & Mobley 2015), its
        ``second_eigenvalue``, the ``neighbour_overlap`` (K - 1,) of every pair by itself, which is
        1/2 for equal levels, and ``n_states``.

    Notes
    -----
    Not converged, besides what `ReweightingEstimator` says, if a pair of neighbours overlaps by
    less than 0.03. Entries of the matrix of all levels fall as 1 / K if levels are close, and so do
    not measure this overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.partition import MBAR
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> mbar = MBAR().fit(tempering.run_)
    >>> bool(abs(mbar.log_partition_ - tempering.log_partition_) < 0.05)
    True
    """

    _described = ReweightingEstimator._described | {
        "overlap_matrix": Diagnostic(dimensions=("level", "other_level")),
        "neighbour_overlap": Diagnostic(
            "overlap of neighbouring levels, lowest (0.5: full)", "high", PAIR
        ),
        "n_states": Diagnostic("states that were read"),
    }

    def _beside(self, run, own):
        if isinstance(run, PotentialRun):
            return replace(own, method="MBAR")  # which it is
        return super()._beside(run, own)

    def _curve(self, run):
        return mbar_curve(run)

    def _alarms(self, run, curve, diagnostics, std_error):
        samples = run.samples
        zeta = curve(np.arange(run.n_groups))
        matrix = overlap_matrix(samples.vectors, samples.counts, zeta)
        pairs = np.array([_pair_overlap(samples, zeta, k) for k in range(len(zeta) - 1)])
        second = float(np.linalg.eigvalsh(matrix)[-2]) if len(matrix) > 1 else np.nan
        diagnostics.update(
            overlap_matrix=matrix,
            second_eigenvalue=second,
            neighbour_overlap=pairs,
            n_states=len(samples.levels),
        )
        empty = int(np.sum(samples.counts == 0))
        if empty:
            return [
                Alarm(
                    "few-states",
                    f"{empty} of {len(zeta)} levels have no kept states",
                    "raise n_sweeps",
                )
            ]
        if pairs.min() >= _LEAST_OVERLAP:
            return []
        seen = (
            f"neighbouring levels overlap by {pairs.min():.2g} (at least {_LEAST_OVERLAP} needed)"
        )
        return [Alarm("little-overlap", seen, "raise n_temperatures")]


def _pair_overlap(samples: Samples, zeta, k: int) -> float:
    """Overlap of levels k and k + 1 by themselves: an off-diagonal entry of their own matrix,
    averaged over both.
    """
    up, down = (samples.vectors[samples.levels == level] for level in (k, k + 1))
    if not len(up) or not len(down):
        return 0.0
    return overlap(up[:, k + 1] - up[:, k], down[:, k] - down[:, k + 1], zeta[k + 1] - zeta[k]) / 2

"""ContinuousRun: what RTS at continuous inverse temperatures leaves, the estimate, its error, and
the alarms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklpf._utils.numbers import Array, Integers
from sklpf.partition._result import PartitionResult
from sklpf.partition._run import Curve, Run
from sklpf.partition._tempering_run import (
    ALL,
    N_GROUPS,
    TEMPERING,
    between_target_states,
    concluded,
)
from sklpf.programs._tempering import END_SHARE
from sklpf.reweighting import Pooled, between_nodes, node_sums, standard_error
from sklpf.uncertainty import Difference, difference, log_mean_exp


@dataclass(frozen=True, repr=False, kw_only=True)
class ContinuousRun(Run):
    """M chains in G groups that were tempered T times at continuous inverse temperatures, with
    fixed weights.

    The log weights are linear between the nodes of the ladder.

    Attributes
    ----------
    first : ndarray of shape (G + 1,)
        First chain of every group, and the end.
    log_pseudo_prior : ndarray of shape (K,)
        log r minus the estimate of log Z at the nodes; r is a density by the ladder's coordinate.
    betas : ndarray of shape (M, T)
        Inverse temperatures at which every chain was moved.
    gains : ndarray of shape (M, T)
        log f_1 - log f_0 after these moves.
    summaries : ndarray of shape (G, 2, S)
        As in `LevelRound`; the weights are the densities of beta = 1 given x.
    previous : Pooled
        As in `TemperingRun`.
    sweeps_per_redraw : int
    tol : None
    rao_blackwell : bool
        As in `RTS`, which needs it True here.
    """

    options = ("rao_blackwell", "tol")
    described = TEMPERING

    first: Integers
    log_pseudo_prior: Array
    betas: Array
    gains: Array
    summaries: Array
    previous: Pooled
    sweeps_per_redraw: int
    rao_blackwell: bool = True
    tol: float | None = None

    @property
    def n_groups(self) -> int:
        """Independent groups G of chains."""
        return len(self.first) - 1

    def curve(self) -> Curve:
        """Return log Z_k - log Z_0 by the density of beta at the nodes.

        Returns
        -------
        callable
            A function of the indices of the groups to use, which returns the curve, shape (K,), in
            nats.
        """
        return _pooled(self, _sums(self))

    def _read(self) -> PartitionResult:
        """log Z by equation 12, with densities at the nodes instead of shares."""
        if not self.rao_blackwell:
            raise ValueError(
                "rao_blackwell must be True for a run with continuous beta: no beta is drawn twice"
            )
        chains = node_sums(self.log_pseudo_prior, self.ladder, self.gains)
        sums = chains.grouped(self.first)
        pooled = _pooled(self, sums)
        halves = [
            _pooled(self, _sums(self, gains)) for gains in np.array_split(self.gains, 2, axis=1)
        ]
        local = local_difference(self, sums)
        return concluded(
            self,
            pooled,
            pooled,
            chain_error=_chain_error(chains.log_sums[:, [0, -1]]),
            first=self.first,
            crossed=_crossed(self),
            between=between_target_states(self.summaries, sums.log_sums[:, -1]),
            drift=difference(lambda keep: halves[1](keep)[-1] - halves[0](keep)[-1], N_GROUPS),
            other=local,
            says="log f_1 - log f_0 averaged at each beta gives",
            alarms=[],
            diagnostics={
                "shares": np.exp(_log_shares(self, sums, ALL)[0]),
                "local_t": local.t,
            },
        )


def continuous_integral(run: ContinuousRun):
    """log Z_k - log Z_0 as a function of the groups to use, by log Z = log Z_0 + E[gain / p(beta)].

    The slopes of the weights' own curve, whose integral is known, are taken off each gain: the
    expectation is the same, and its noise no longer depends on the size of log f. p is the average
    of q, between nodes by interpolation.
    """
    sums = _sums(run)
    widths = np.diff(run.ladder)
    known = -np.diff(run.log_pseudo_prior)

    def curve(keep):
        cell, gains, log_p, _ = _between(run, sums, keep)
        terms = (widths[cell] * gains - known[cell]) * np.exp(-log_p)
        cells = np.bincount(cell, terms, len(widths)) / len(terms)
        return np.r_[0.0, np.cumsum(known + cells)]

    return curve


def local_difference(run: ContinuousRun, sums) -> Difference:
    """RTS minus the integral of the mean gain at each beta, which does not assume that chains have
    spread over beta.
    """
    widths = np.diff(run.ladder)

    def off(keep):
        cell, gains, _, expected = _between(run, sums, keep)
        total = np.bincount(cell, expected - gains, len(widths))
        return widths @ (total / np.maximum(np.bincount(cell, minlength=len(widths)), 1))

    return difference(off, N_GROUPS)


def _between(run, sums, keep):
    """Of the states of some groups the node below, the gain, and by interpolation between nodes the
    log density of the ladder's coordinate and d log Z / dbeta, (n,) each.
    """
    chains = np.isin(np.repeat(np.arange(run.n_groups), np.diff(run.first)), keep)
    betas = run.betas[chains].ravel()
    cell = np.clip(np.searchsorted(run.ladder, betas, side="right") - 1, 0, len(run.ladder) - 2)
    log_shares, slopes = _log_shares(run, sums, keep)
    log_p, expected = between_nodes(run.log_pseudo_prior, run.ladder, log_shares, slopes, betas)
    return cell, run.gains[chains].ravel(), log_p, expected


def _chain_error(log_sums):
    """Equation 16 from every chain's log sums at both ends (M, 2)."""
    ends = np.exp(log_sums - log_mean_exp(log_sums, axis=0))
    return standard_error(ends[:, 1] - ends[:, 0])


def _sums(run, gains=None):
    sums = node_sums(run.log_pseudo_prior, run.ladder, run.gains if gains is None else gains)
    return sums.grouped(run.first)


def _pooled(run, sums):
    return Pooled(run.log_pseudo_prior[np.newaxis], sums.log_sums[np.newaxis])


def _log_shares(run, sums, keep):
    """Log of the density of the ladder's coordinate at the nodes, and d log Z / dbeta there, of
    some groups.
    """
    log_sums, slopes = sums.of(keep)
    return log_sums - np.log(np.diff(run.first)[keep].sum() * run.gains.shape[1]), slopes


def _crossed(run):
    """Which chains visited both the lowest and the highest tenth of the ladder, shape (M,)."""
    at = np.interp(run.betas, run.ladder, np.linspace(0, 1, len(run.ladder)))
    return (at <= END_SHARE).any(axis=1) & (at >= 1 - END_SHARE).any(axis=1)

"""Simulated tempering at continuous inverse temperatures on tempered paths, and what it leaves."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import run_segments
from sklpf.programs._plan import check_finite, segments
from sklpf.programs._programs import Chains, anneal, weighted_sums
from sklpf.programs._tempering import Setup
from sklpf.reweighting import draw_betas, log_densities


class ContinuousRound(NamedTuple):
    """Record of M chains in G groups that were tempered T times, with log weights that are
    linear between the nodes of the ladder.

    Attributes
    ----------
    betas : ndarray of shape (M, T)
        Inverse temperatures at which every chain was moved.
    gains : ndarray of shape (M, T)
        log f_1 - log f_0 after these moves.
    summaries : ndarray of shape (G, 2, S)
        As in `LevelRound`; the weights are the densities of beta = 1 given x.
    """

    betas: Array
    gains: Array
    summaries: Array


def check_mass(
    setup: Setup,
    *,
    n_checked: int = 10_000,  # base draws
) -> None:
    """Raise ValueError if the base draws points where the target is 0: log Z jumps at beta = 0,
    which has no mass.
    """
    _check_gains(
        setup.path.ends(setup.path.sample_base(n_checked, setup.stream("check of gains", 0)))[1]
    )


def temper_continuously(
    setup: Setup, chains: list[Chains], log_pseudo_prior: NDArray, n_redraws: int
) -> ContinuousRound:
    """Temper all groups, whose chains begin at levels."""
    longest = max(1, setup.path.n_moves_per_segment // setup.sweeps_per_redraw)

    def begin(group):
        own = chains[group]
        none = np.empty((0, len(own.levels)))
        summary = setup.path.summary(setup.path.take(own.state, [0]))
        sums = np.zeros((2, summary.shape[1]))
        return own, setup.path.ladder[own.levels], none, none, sums

    carries = run_segments(
        begin,
        functools.partial(_advance, setup, log_pseudo_prior),
        setup.n_groups,
        segments(n_redraws, longest),
        stage="continuous",
        **setup.options,
    )
    _, _, betas, gains, summaries = zip(*carries)
    return ContinuousRound(
        betas=np.concatenate(betas, axis=1).T.copy(),
        gains=np.concatenate(gains, axis=1).T.copy(),
        summaries=np.array(summaries),
    )


def _advance(setup, log_pseudo_prior, group, begin, end, carry):
    """Move every chain at its own beta, on a ladder of all these, and draw new ones."""
    chains, betas, *kept, summaries = carry
    records = []
    for redraw in range(begin, end):
        stream = setup.stream("continuous", group, redraw * setup.sweeps_per_redraw + 1)
        path = setup.path.with_ladder(np.unique(np.r_[0.0, betas, 1.0]))
        levels = np.broadcast_to(
            np.searchsorted(path.ladder, betas), (setup.sweeps_per_redraw + 1, len(betas))
        )
        chains, _ = anneal(path, setup.transition, chains, levels.copy(), stream)
        gains = _check_gains(path.ends(chains.state)[1])
        records.append((betas, gains))
        at_target = np.exp(log_densities(log_pseudo_prior, setup.path.ladder, gains)[:, -1])
        summaries = summaries + weighted_sums(at_target, setup.path.summary(chains.state))
        uniforms = stream.of("betas").generator().random((2, len(betas)))
        betas = draw_betas(log_pseudo_prior, setup.path.ladder, gains, uniforms)
    kept = [np.concatenate([old, new]) for old, new in zip(kept, map(np.array, zip(*records)))]
    return chains, betas, *kept, summaries


def _check_gains(gains):
    if np.any(gains == -np.inf):
        raise ValueError(
            "continuous=True needs a base whose draws lie where the target has mass: the base draws"
            " points where the target is 0; take continuous=False, or another base"
        )
    return check_finite(gains)

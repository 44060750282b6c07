"""Adaptive simulated tempering: short rounds, each with weights that the one before has moved by a
gain.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.progress import stage
from sklpf.programs._chains import Chains
from sklpf.programs._tempering import Setup, TemperingRound, run_round

_GROWTH = 10  # an update takes a tenth of the redraws before it, at least one
_LARGEST_STEP = 1.0  # nats that an update adds to a level


class GainRule(Protocol):
    """How far draws of levels move the estimates: in the end by one over their number."""

    settled: bool  # whether the gain has begun to fall as 1 / draws

    def gain(self, n_draws: int) -> float:
        """What the next `n_draws` draws weigh together."""

    def observe(self, shares: Array, n_draws: int) -> float:
        """Take note of how often they visited the levels; returns how even visits are (1:
        perfectly).
        """


class Adapted(NamedTuple):
    """Chains, log Z_k - log Z_0 (K,), rounds of the last half, and of every update the fields of
    `Adaptation`.
    """

    chains: list[Chains]
    curve: Array
    recent: list[TemperingRound]
    history: dict[str, NDArray]


def adapt(
    setup: Setup,
    chains: list[Chains],
    log_prior,
    curve,
    n_redraws: int,
    rule: GainRule,
    rao_blackwell: bool,
) -> Adapted:
    """Temper all groups and move their common estimates log Z_k by gain * (share of level k) / r_k.

    The draws of all chains between two updates count together, as if chains took turns, but move no
    level by more than 1 nat. An update takes one redraw at first, later a tenth of those before it.
    """
    prior = np.exp(log_prior)
    n_chains = int(setup.first[-1])
    done = 0
    recent = list[TemperingRound]()
    records = list[tuple[float, ...]]()
    with stage("adaptation", n_redraws) as redraws_done:
        while done < n_redraws:
            n = min(max(1, done // _GROWTH), n_redraws - done)
            chains, last = run_round(setup, (0, len(records)), chains, log_prior - curve, n)
            done += n
            shares = last.shares(rao_blackwell).mean(axis=0)
            gain = min(rule.gain(n * n_chains), _LARGEST_STEP / np.max(shares / prior))
            curve = curve + gain * shares / prior
            curve = curve - curve[0]
            records.append((done * n_chains, gain, rule.observe(shares, n * n_chains), curve[-1]))
            recent = [*recent, last] if 2 * done > n_redraws else [last]
            redraws_done(n)
    columns = (np.array(column) for column in zip(*records))
    history = dict(zip(("n_draws", "gain", "evenness", "log_partition"), columns))
    return Adapted(chains, curve, recent, history)

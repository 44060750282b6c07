"""Replica exchange on independent ladders, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sklpf._utils.limits import RECORD_EVERY
from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf.paths import Path
from sklpf.programs._draws import has_points
from sklpf.programs._programs import Chains, check_finite, draw_alive, exchange
from sklpf.programs._rounds import ExchangeRound, RoundProgram
from sklpf.transitions import Transition


@dataclass(frozen=True, kw_only=True)
class Exchange(RoundProgram):
    """Steps are scans: all chains move, then neighbouring levels are offered swaps."""

    n_pair_sums: ClassVar[int] = 5
    keeps_linear_vectors: ClassVar[bool] = False

    def begin(self, n_groups, n_chains):
        return np.zeros(n_chains, dtype=np.int64), np.zeros(n_groups, dtype=np.int64)

    def steps(self, chains, own, half, n, stream, groups):
        ends, trips = own
        shift = -np.diff(self.log_pseudo_prior)
        left = exchange(self.path, self.transition, chains, ends, shift, n, stream, self.stride)
        return left.chains, (left.ends, trips + left.trips), left.sums

    def draws(self, chains):
        chosen = np.flatnonzero(chains.levels == len(self.path.ladder) - 1)
        return chosen, np.zeros(len(chosen))

    def by_row(self, records):
        n_levels = len(self.path.ladder)
        n, n_chains, *rest = records.shape
        by_ladder = records.reshape(n, n_chains // n_levels, n_levels, *rest).swapaxes(0, 1)
        return by_ladder.reshape(n_chains // n_levels, n * n_levels, *rest)


def start_ladders(
    path: Path, transition: Transition, n_ladders: int, key: tuple[int, int]
) -> list[Chains]:
    """Ladders whose chains are all drawn from the base, where the target has mass."""
    n_levels = len(path.ladder)
    ladders = []
    for ladder in range(n_ladders):
        stream = Stream(key, ladder * n_levels)
        state = draw_alive(path, n_levels, stream)
        chains = Chains.start(path, transition, state, stream)
        ladders.append(chains._replace(levels=np.arange(n_levels)))
    return ladders


def move_ladders(ladders: list[Chains], old_path: Path, path: Path) -> list[Chains]:
    """The same ladders with other levels: if their number changes each starts at the state of the
    nearest old one.
    """
    n_levels = len(path.ladder)
    if n_levels == len(old_path.ladder):
        return ladders
    nearest = np.abs(path.ladder[:, np.newaxis] - old_path.ladder).argmin(axis=1)
    if path.has_boundary:  # the base's chain may be where all other levels are 0
        nearest[1:] = np.maximum(nearest[1:], 1)
    return [
        each.take(path, np.argsort(each.levels)[nearest])._replace(levels=np.arange(n_levels))
        for each in ladders
    ]


def run_scans(
    path: Path,
    transition: Transition,
    ladders: list[Chains],
    log_pseudo_prior: Array,
    n_scans: int,
    key: tuple[int, int],
    stage: str,
    n_kept: int = 0,
    n_draws: int = 0,
    first_scan: int = 0,
    **options: Any,
) -> tuple[list[Chains], ExchangeRound]:
    """Return where the ladders stand after a round of scans, and its record.

    Of all its states at most `n_kept` are kept as vectors, those of every fourth scan or of fewer,
    and of those at the target about `n_draws` as draws.
    """
    n_levels = len(path.ladder)
    most_records = max(1, n_kept // (len(ladders) * n_levels))
    pause = 0  # scans from one draw of a ladder to the next
    if n_draws and has_points(path):
        # Each interrupts the compiled program, for some 100 us. Short runs pause more often, since
        # fewer than 200 draws can't show that a region is missed.
        shortest = min(64, max(1, n_scans * len(ladders) // 200))
        pause = max(shortest, -(-n_scans // max(1, n_draws // len(ladders))))
    program = Exchange(
        path=path,
        transition=transition,
        first=np.arange(len(ladders) + 1) * n_levels,
        log_pseudo_prior=log_pseudo_prior,
        key=key,
        first_sweep=first_scan,
        stride=max(RECORD_EVERY, -(-n_scans // most_records)) if n_kept else 0,
        pause=pause,
        renewal=16 if path.renews_base else 0,  # scans from one draw of the base to the next
    )
    ladders, own, left = program.run(ladders, n_scans, path.n_moves_per_segment, stage, **options)
    check_finite(left["pair_sums"])
    round_trips = np.concatenate([trips for _, trips in own])
    return ladders, ExchangeRound(n_scans=n_scans, round_trips=round_trips, **left)

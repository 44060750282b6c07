"""The programs that move chains: plain loops over `Transition.move` say what they do, and run a
user's own path; their compiled forms run where the path has kernels for the transition.
"""

from __future__ import annotations

import contextlib
import functools
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_softmax

from sklpf._utils.limits import MAX_EXPONENT, RECORD_EVERY, BadValue
from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import REDRAW, SWAP
from sklpf.paths import Derivatives
from sklpf.paths._base import TemperedPath, map_state, n_chains
from sklpf.paths._capabilities import has
from sklpf.programs._chains import Chains, LevelSums


class Exchanged(NamedTuple):
    """What `exchange` leaves."""

    chains: Chains
    ends: Integers  # (n,)
    trips: Integers  # (G,): round trips
    sums: LevelSums  # those of `levels` of every fourth scan


class Tempered(NamedTuple):
    """What `temper` leaves."""

    chains: Chains
    log_q_sums: Array  # (n, K): log of the sum of q(k | x)
    counts: Integers  # (n, K): how often each level was drawn
    # before each redraw; the shift of a pair is minus the difference of its log pseudo-priors
    sums: LevelSums


# ---- compiled forms, which take a packed `model` in the place of the transition
def _compiled_anneal(path, model, chains, levels, stream, reverse=False, log_weights=0.0):
    moving = _copies(chains)
    sums = np.zeros(n_chains(chains.state)) + log_weights
    path.kernel("anneal")(model, moving, path.ladder[levels], reverse, stream.keys, sums)
    return _moved(moving, chains, levels[-1]), sums


def _compiled_exchange(path, model, chains, ends, shift, n_scans, stream, stride=0):
    moving = _copies(chains)
    levels = np.array(chains.levels)
    ends = np.array(ends)
    sums = no_scans(path, chains.state, n_scans, stream, stride)
    trips = np.zeros(len(sums.pairs), dtype=np.int64)
    order = path.ladder, shift, n_scans, stride, stream.keys
    path.kernel("exchange")(model, moving, levels, ends, trips, *order, sums)
    return Exchanged(_moved(moving, chains, levels), ends, trips, sums)


def _compiled_temper(
    path,
    model,
    chains,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    stream,
    first=None,  # the chains are one group
):
    from sklpf.kernels._programs import Q_OFFSET

    moving = _copies(chains)
    levels = np.array(chains.levels)
    q = np.zeros((len(levels), len(path.ladder)))
    counts = np.zeros(q.shape, dtype=np.int64)
    sums = no_redraws(path, chains.state, 1, n_redraws, stride)
    order = path.ladder, log_pseudo_prior, n_redraws, sweeps_per_redraw, stride, stream.keys
    path.kernel("temper")(model, moving, levels, *order, q, counts, sums)
    with np.errstate(divide="ignore"):
        log_q_sums = np.log(q) - Q_OFFSET
    return Tempered(_moved(moving, chains, levels), log_q_sums, counts, sums)


def _copies(chains):
    """What a compiled program changes in place: the state, with the move's auxiliary variables if
    it has any.
    """
    state = map_state(np.array, chains.state)
    return (state, map_state(np.array, chains.auxiliary)) if chains.auxiliary else state


def _moved(moving, chains, levels) -> Chains:
    """The chains after a compiled program."""
    state, auxiliary = moving if chains.auxiliary else (moving, ())
    return Chains(state, auxiliary, levels)


def _with_compiled_form(compiled):
    """Decorator of a plain loop, of which there is a compiled form."""

    def decorate(plain):
        @functools.wraps(plain)
        def program(path, transition, *arguments, **options):
            model = transition.compiled(path)
            if model is not None:
                with contextlib.suppress(BadValue):  # the plain loop says where
                    return compiled(path, model, *arguments, **options)
            return plain(path, transition, *arguments, **options)

        return program

    return decorate


# ---- programs
@_with_compiled_form(_compiled_anneal)
@np.errstate(invalid="ignore")  # inf - inf, which those who use the weights report
def anneal(path, transition, chains, levels, stream, reverse=False, log_weights=0.0):
    """Move through levels (n_sweeps + 1, n) and sum the increments of log f (Neal 2001).

    Forward: the increment from levels[t] to levels[t + 1], then a move at levels[t + 1].
    Reverse: the reversed move at levels[t], then the increment.

    Returns
    -------
    chains : Chains
    log_weights : ndarray of shape (n,)
        Added to those that are given.
    """
    state, auxiliary, _ = chains
    log_weights = np.zeros(n_chains(state)) + log_weights
    for t in range(len(levels) - 1):
        now = stream.at(stream.step + t)
        if reverse:
            state, auxiliary = transition.move(path, state, auxiliary, levels[t], now, reverse=True)
        old, new = path.log_f(state, levels[t]), path.log_f(state, levels[t + 1])
        # also of a chain whose weight is 0 already
        log_weights += np.where(new == -np.inf, new, new - old)
        if not reverse:
            state, auxiliary = transition.move(path, state, auxiliary, levels[t + 1], now)
    return Chains(state, auxiliary, levels[-1]), log_weights


@_with_compiled_form(_compiled_exchange)
def exchange(path, transition, chains, ends, shift, n_scans, stream, stride=0) -> Exchanged:
    """Replica exchange of K consecutive chains a ladder, even and odd pairs in turn (Syed et al.
    2022).

    Parameters
    ----------
    chains : Chains
        Their levels are a permutation within each ladder.
    ends : ndarray of shape (n,)
        The end of the ladder that each chain has visited last: -1 base, 1 target (after the base),
        0 none.
    shift : ndarray of shape (K - 1,)
        Approximate log Z_(k+1) / Z_k.
    stride : int, default=0
        The scans at steps that it divides are recorded; 0 records none.
    """
    n_levels = len(path.ladder)
    state, auxiliary, levels = chains
    levels = levels.reshape(-1, n_levels).copy()
    ends = ends.reshape(-1, n_levels).copy()
    rows = np.arange(len(levels))[:, np.newaxis]
    ladder_of = np.repeat(np.arange(len(levels)), n_levels)
    sums = no_scans(path, state, n_scans, stream, stride)
    trips = np.zeros(len(levels), dtype=np.int64)
    record = 0
    pairs = np.arange(n_levels - 1)
    for t in range(n_scans):
        now = stream.at(stream.step + t)
        state, auxiliary = transition.move(path, state, auxiliary, levels.ravel(), now)
        summary = path.summary(path.take(state, np.flatnonzero(levels.ravel() == n_levels - 1)))
        sums.summaries[:, 0] += summary
        sums.summaries[:, 1] += summary**2
        if now.step % RECORD_EVERY == 0:
            add_derivatives(path, state, levels.ravel(), sums.levels, ladder_of)
        if stride and now.step % stride == 0:
            write_record(path, state, path.log_f_ladder(state), levels.ravel(), sums, record)
            record += 1
        up, down = _to_neighbours(path, state, levels.ravel())
        chain_at = np.argsort(levels, axis=1)
        u = up.reshape(levels.shape)[rows, chain_at[:, :-1]]
        r = down.reshape(levels.shape)[rows, chain_at[:, 1:]]
        accept = np.exp(np.minimum(0, u + r))
        forward, reverse = np.minimum(u - shift, MAX_EXPONENT), np.minimum(r + shift, MAX_EXPONENT)
        terms = expit(forward), expit(reverse), np.exp(forward), np.exp(reverse), 1 - accept
        for i, term in enumerate(terms):
            sums.pairs[:, :, i] += term
        uniforms = now.uniform(levels.size, SWAP).reshape(levels.shape)[rows, chain_at[:, :-1]]
        odd = (pairs + now.step) % 2 == 1
        ladder, k = np.nonzero((uniforms < accept) & ~odd)
        levels[ladder, chain_at[ladder, k]] += 1
        levels[ladder, chain_at[ladder, k + 1]] -= 1
        trips += np.sum((levels == 0) & (ends == 1), axis=1)
        ends[(levels == n_levels - 1) & (ends == -1)] = 1
        ends[levels == 0] = -1
    return Exchanged(Chains(state, auxiliary, levels.ravel()), ends.ravel(), trips, sums)


def _to_neighbours(path, state, levels):
    """What log f of every chain gains on the level above, and on the one below, both (n,)."""
    above = np.minimum(levels + 1, len(path.ladder) - 1)
    below = np.maximum(levels - 1, 0)
    if type(path).log_f is TemperedPath.log_f:  # which takes all levels at once
        here, up, down = path.log_f(state, np.array([levels, above, below]))
    else:
        here, up, down = (path.log_f(state, at) for at in (levels, above, below))
    return up - here, down - here


@_with_compiled_form(_compiled_temper)
def temper(
    path,
    transition,
    chains,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    stream,
    first=None,
) -> Tempered:
    """Simulated tempering: moves, then a redraw of each level from q(level | x) (Carlson et al.
    2016, eq. 7).

    Parameters
    ----------
    log_pseudo_prior : ndarray of shape (K,)
        log r_k minus the estimate of log Z_k.
    stride : int
        Every `stride`-th redraw is recorded.
    first : ndarray of shape (G + 1,) or None, default=None
        First chain of every group, and the end; None is one group.
    """
    state, auxiliary, levels = chains
    levels = levels.copy()
    n = len(levels)
    every = np.arange(n)
    first = [0, n] if first is None else first
    n_groups = len(first) - 1
    group_of = np.repeat(np.arange(n_groups), np.diff(first))
    log_q_sums = np.full((n, len(path.ladder)), -np.inf)
    counts = np.zeros(log_q_sums.shape, dtype=np.int64)
    sums = no_redraws(path, state, n_groups, n_redraws, stride)
    for t in range(n_redraws):
        for s in range(sweeps_per_redraw):
            now = stream.at(stream.step + t * sweeps_per_redraw + s)
            state, auxiliary = transition.move(path, state, auxiliary, levels, now)
        add_derivatives(path, state, levels, sums.levels, group_of)
        log_densities = path.log_f_ladder(state)
        if t % stride == 0:
            write_record(path, state, log_densities, levels, sums, t // stride)
        add_bridges(log_densities + log_pseudo_prior, levels, sums.pairs, group_of)
        log_q = log_softmax(log_densities + log_pseudo_prior, axis=1)
        with np.errstate(invalid="ignore"):  # a log_f that is not a number stays one in the sums
            log_q_sums = np.logaddexp(log_q_sums, log_q)
        cumulative = np.cumsum(np.exp(log_q), axis=1)
        threshold = now.uniform(n, REDRAW) * cumulative[:, -1]
        levels = np.sum(cumulative[:, :-1] < threshold[:, np.newaxis], axis=1)
        counts[every, levels] += 1
        summary = path.summary(state)
        weights = np.exp(log_q[:, -1])
        for own_sums, start, end in zip(sums.summaries, first, first[1:]):
            own_sums += weighted_sums(weights[start:end], summary[start:end])
    return Tempered(Chains(state, auxiliary, levels), log_q_sums, counts, sums)


def weighted_sums(weights, summary):
    """Sums of summaries (n, S) and of their squares with weights (n,), shape (2, S)."""
    return np.stack([weights @ summary, weights @ summary**2])


def add_derivatives(path, state, levels, sums, group):
    """Add 1, U, U^2 and dU / dbeta (U = d log f / d beta) of every chain to sums[group, level],
    shape (G, K, 4).

    d^2 log Z / d beta^2 = Var U + E dU / dbeta. Where the path has no derivatives only states are
    counted.
    """
    first, second = (
        path.derivatives(state, levels).T if has(path, Derivatives) else np.zeros((2, len(levels)))
    )
    np.add.at(
        sums, (group, levels), np.stack([np.ones_like(first), first, first**2, second], axis=1)
    )


def add_bridges(log_weights, levels, sums, group):
    """Add what states at their levels say of the pairs with their neighbours to sums[group, pair];
    see `temper`.
    """
    here = log_weights[np.arange(len(levels)), levels]
    for i, step in enumerate((1, -1)):
        inside = (levels + step >= 0) & (levels + step < log_weights.shape[1])
        other = log_weights[inside, levels[inside] + step]
        with np.errstate(invalid="ignore"):  # of a chain where both densities are 0
            ratios = np.minimum(other - here[inside], MAX_EXPONENT)
        pairs = np.minimum(levels, levels + step)[inside]
        np.add.at(sums[..., i], (group[inside], pairs), expit(ratios))
        np.add.at(sums[..., i + 2], (group[inside], pairs), np.exp(ratios))


def slopes(path, state):
    """d log f / d beta of every chain at every level, shape (n, K); (n, 0) where the path has no
    derivatives.
    """
    n = n_chains(state)
    n_levels = len(path.ladder)
    if not has(path, Derivatives):
        return np.empty((n, 0))
    ends = [path.derivatives(state, np.full(n, k)) for k in (0, n_levels - 1)]
    if np.array_equal(ends[0][:, 0], ends[1][:, 0]) and not np.any([end[:, 1] for end in ends]):
        return np.repeat(ends[0][:, :1], n_levels, axis=1)  # linear in beta
    inner = [path.derivatives(state, np.full(n, k)) for k in range(1, n_levels - 1)]
    return np.stack([found[:, 0] for found in (ends[0], *inner, ends[1])], axis=1)


def write_record(path, state, vectors, levels, sums, record):
    """Keep log f (n, K) and its slopes at every level, and the levels (n,), as one record."""
    sums.vectors[record] = vectors
    sums.vector_levels[record] = levels
    sums.slopes[record] = slopes(path, state)


def no_scans(path, state, n_scans, stream, stride) -> LevelSums:
    """Room for the sums of `exchange`."""
    n_records = len(range(-stream.step % stride, n_scans, stride)) if stride else 0
    return LevelSums.zeros(path, state, n_chains(state) // len(path.ladder), 5, n_records)


def no_redraws(path, state, n_groups, n_redraws, stride) -> LevelSums:
    """Room for the sums of `temper`."""
    return LevelSums.zeros(path, state, n_groups, 4, -(-n_redraws // stride))

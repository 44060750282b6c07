"""The programs that move chains, each written once over hooks that a model's kernels implement.

A hook is a stub; `implements` gives it a body for the models that are instances of one NamedTuple.
`compiled` gives a program for the models of one module of kernels.

`programs/_programs.py` has the same programs as plain loops, which specify what they do; how levels
change is the same function in both.
"""

import functools
import importlib
import math
import types
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.types import BaseNamedTuple
from numba.extending import overload

from sklpf._utils.limits import MAX_EXPONENT, Q_OFFSET, RECORD_EVERY
from sklpf._utils.random import REDRAW, SWAP
from sklpf.kernels._compile import OPTIONS, PART, inlined, njit
from sklpf.kernels._exponentials import exp64
from sklpf.kernels._random import at_sweep, uniforms

program = numba.njit(**OPTIONS, inline="always")  # a part of what calls it


# ---- hooks
def scratch(model, state):
    """Work space for the chains of a state, which the other hooks get as `work`."""


def sweep(model, state, betas, reverse, keys, work):
    """One sweep of every chain at its own inverse temperature, in place; `reverse` asks for the
    time reversal.
    """


def log_base(model, state, c):
    """log f_0 of chain c."""


def log_gain(model, state, c):
    """log f_1 - log f_0 of chain c, of a tempered model."""


def log_ratios(model, state, old, new, work, out):
    """Write log f_new - log f_old of every chain to out (m, n), 0 where both are the same, for m
    inverse temperatures `new` (m, n) of each.
    """


def log_ladder(model, state, c, ladder, work, out):
    """Write log f of chain c at every level to out (K,)."""


def derivatives(model, state, c, beta, work):
    """d log f / d beta of chain c and its own derivative."""


def summarise(model, state, c, out):
    """Write what tells the modes of the target apart, of chain c, to out (S,)."""


def implements(hook, model_class, **options):
    """Decorator: the body of a hook for models that are instances of one NamedTuple."""

    def register(body):
        @overload(hook, jit_options=PART | options, strict=False)
        def choose(model, *arguments):
            if isinstance(model, BaseNamedTuple) and model.instance_class is model_class:
                return body

        return body

    return register


@inlined
def log_density(beta, base, gain):
    """log f_beta of log f_0 and log f_1 - log f_0, where log f_1 may be -inf."""
    return base if beta == 0.0 and gain == -np.inf else base + beta * gain


def tempered(model_class):
    """Derive all densities where log f_beta = log f_0 + beta (log f_1 - log f_0), and states hold
    both parts, `log_base` and `gain` (n,).
    """

    @implements(log_base, model_class)
    def _log_base(model, state, c):
        return state.log_base[c]

    @implements(log_gain, model_class)
    def _log_gain(model, state, c):
        return state.gain[c]

    tempered_by_hooks(model_class)


def tempered_by_hooks(model_class):
    """Derive `log_ratios`, `log_ladder` and `derivatives` from `log_base` and `log_gain`."""

    @implements(log_ratios, model_class)
    def _log_ratios(model, state, old, new, work, out):
        for c in range(old.shape[0]):
            gain = log_gain(model, state, c)
            for i in range(new.shape[0]):
                change = new[i, c] - old[c]
                is_zero = gain == -np.inf and new[i, c] > 0.0
                out[i, c] = 0.0
                if change != 0.0:
                    out[i, c] = gain if is_zero else change * gain

    @implements(log_ladder, model_class)
    def _log_ladder(model, state, c, ladder, work, out):
        base = log_base(model, state, c)
        gain = log_gain(model, state, c)
        for k in range(ladder.shape[0]):
            out[k] = log_density(ladder[k], base, gain)

    @implements(derivatives, model_class, forceinline=True)
    def _derivatives(model, state, c, beta, work):
        return log_gain(model, state, c), 0.0


@functools.cache
def compiled(plain_program: Any, module: str) -> Any:
    """A program for the models of a module of kernels, which implements their hooks.

    numba keeps machine code by the file of the outermost function, here this one, and would miss an
    edit of a hook in another file. Each module therefore gets a copy of the program, kept under the
    digest of the module's folder.
    """
    function = plain_program.py_func
    copied = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    copied.__module__ = module
    return njit(copied, folder=Path(importlib.import_module(module).__file__).parent)


# ---- programs
@program
def anneal(model, state, betas, reverse, moves_first, keys, log_weights):
    """Anneal in place through betas (n_sweeps + 1, n) and add the increments of log f to
    log_weights (n,), each after the sweep or before it.
    """
    work = scratch(model, state)
    ratios = np.empty((1, log_weights.shape[0]))
    for t in range(betas.shape[0] - 1):
        now = at_sweep(keys, t)
        if moves_first:
            sweep(model, state, betas[t], reverse, now, work)
        log_ratios(model, state, betas[t], betas[t + 1 : t + 2], work, ratios)
        for c in range(log_weights.shape[0]):
            log_weights[c] += ratios[0, c]
        if not moves_first:
            sweep(model, state, betas[t + 1], reverse, now, work)


@program
def exchange(model, state, levels, ends, trips, ladder, shift, n_scans, stride, keys, sums):
    """Replica exchange in place on independent ladders of K consecutive chains, which adds to trips
    (G,) and to `LevelSums`.
    """
    n = levels.shape[0]
    n_levels = ladder.shape[0]
    work = scratch(model, state)
    betas = np.empty(n)
    neighbours = np.empty((2, n))  # the inverse temperatures above and below
    ratios = np.empty((2, n))
    drawn = np.empty(n)
    summary = np.empty(sums.summaries.shape[2])
    record = 0
    for t in range(n_scans):
        now = at_sweep(keys, t)
        for c in range(n):
            betas[c] = ladder[levels[c]]
            neighbours[0, c] = ladder[min(levels[c] + 1, n_levels - 1)]
            neighbours[1, c] = ladder[max(levels[c] - 1, 0)]
        sweep(model, state, betas, False, now, work)
        log_ratios(model, state, betas, neighbours, work, ratios)
        for c in range(n):
            level = levels[c]
            if level + 1 == n_levels:
                add_summary(model, state, c, 1.0, summary, sums.summaries[c // n_levels])
            if now.step % RECORD_EVERY == 0:
                own_sums = sums.levels[c // n_levels, level]
                add_derivatives(model, state, c, betas[c], work, own_sums)
        if stride > 0 and now.step % stride == 0:
            for c in range(n):
                log_ladder(model, state, c, ladder, work, sums.vectors[record, c])
                write_slopes(model, state, c, ladder, work, sums.slopes[record, c])
                sums.vector_levels[record, c] = levels[c]
            record += 1
        uniforms(now, SWAP, drawn)
        swap_levels(ratios[0], ratios[1], levels, ends, trips, shift, now.step, drawn, sums.pairs)


@program
def temper(
    model,
    state,
    levels,
    ladder,
    log_pseudo_prior,
    n_redraws,
    sweeps_per_redraw,
    stride,
    groups,
    keys,
    q_sums,
    counts,
    sums,
):
    """Simulated tempering in place of chains in groups (n,), which adds to q_sums and counts (n, K)
    as `redraw_levels` does, and the rest to `LevelSums`.
    """
    n = levels.shape[0]
    n_levels = ladder.shape[0]
    work = scratch(model, state)
    betas = np.empty(n)
    log_densities = np.empty((n, n_levels))
    at_target = np.empty(n)
    drawn = np.empty(n)
    summary = np.empty(sums.summaries.shape[2])
    for t in range(n_redraws):
        now = keys
        for c in range(n):
            betas[c] = ladder[levels[c]]
        for s in range(sweeps_per_redraw):
            now = at_sweep(keys, t * sweeps_per_redraw + s)
            sweep(model, state, betas, False, now, work)
        for c in range(n):
            log_ladder(model, state, c, ladder, work, log_densities[c])
            if t % stride == 0:
                for k in range(n_levels):
                    sums.vectors[t // stride, c, k] = log_densities[c, k]
                write_slopes(model, state, c, ladder, work, sums.slopes[t // stride, c])
                sums.vector_levels[t // stride, c] = levels[c]
            add_derivatives(model, state, c, betas[c], work, sums.levels[groups[c], levels[c]])
        add_bridges(log_densities, log_pseudo_prior, levels, groups, sums.pairs)
        uniforms(now, REDRAW, drawn)
        redraw_levels(log_densities, log_pseudo_prior, levels, drawn, q_sums, counts, at_target)
        for c in range(n):
            if at_target[c] > 0.0:
                add_summary(model, state, c, at_target[c], summary, sums.summaries[groups[c]])


@program
def log_f(model, state, betas, out):
    """log f of every chain at its own inverse temperature, out (n,)."""
    work = scratch(model, state)
    n = out.shape[0]
    log_ratios(model, state, np.zeros(n), betas.reshape(1, n), work, out.reshape(1, n))
    for c in range(out.shape[0]):
        out[c] += log_base(model, state, c)


@program
def log_f_ladder(model, state, ladder, out):
    """log f of every chain at every level, out (n, K)."""
    work = scratch(model, state)
    for c in range(out.shape[0]):
        log_ladder(model, state, c, ladder, work, out[c])


@program
def log_f_derivatives(model, state, betas, out):
    """First and second derivative of log f by beta of every chain at its own inverse temperature,
    out (n, 2).
    """
    work = scratch(model, state)
    for c in range(out.shape[0]):
        out[c, 0], out[c, 1] = derivatives(model, state, c, betas[c], work)


@inlined
def add_derivatives(model, state, c, beta, work, sums):
    """Add 1, U, U^2 and dU / dbeta to the sums (4,) of a level; U = d log f / d beta."""
    first, second = derivatives(model, state, c, beta, work)
    sums[0] += 1.0
    sums[1] += first
    sums[2] += first * first
    sums[3] += second


@program
def write_slopes(model, state, c, ladder, work, out):
    """Write d log f / d beta at every level to out (K,); it is asked for twice where log f is
    linear in beta.
    """
    last = ladder.shape[0] - 1
    first, first_bend = derivatives(model, state, c, ladder[0], work)
    final, final_bend = derivatives(model, state, c, ladder[last], work)
    linear = first == final and first_bend == 0.0 and final_bend == 0.0
    out[0] = first
    out[last] = final
    for k in range(1, last):
        out[k] = first
        if not linear:
            out[k], _ = derivatives(model, state, c, ladder[k], work)


@program
def add_summary(model, state, c, weight, summary, sums):
    """Add a state's weighted summary and its squares to sums (2, S)."""
    summarise(model, state, c, summary)
    for i in range(summary.shape[0]):
        sums[0, i] += weight * summary[i]
        sums[1, i] += weight * summary[i] * summary[i]


@program
def summaries(model, state, out):
    """The summary of every chain, out (n, S)."""
    for c in range(out.shape[0]):
        summarise(model, state, c, out[c])


# ---- levels, for plain loops too
@njit
def add_bridges(log_densities, log_pseudo_prior, levels, groups, sums):
    """Add what states (n, K) at their levels say of the pairs with their neighbours to sums[group,
    pair], (G, K - 1, 4 or more).

    With r the log ratio, weighted by the pseudo-priors, of the level above or below to the state's
    own: logistic(r) above and below, exp(r) above and below.
    """
    for c in range(levels.shape[0]):
        level = levels[c]
        here = log_densities[c, level] + log_pseudo_prior[level]
        for up in (True, False):
            other = level + 1 if up else level - 1
            if 0 <= other < log_pseudo_prior.shape[0]:
                log_ratio = log_densities[c, other] + log_pseudo_prior[other] - here
                ratio = math.exp(min(log_ratio, MAX_EXPONENT))
                pair = sums[groups[c], min(level, other)]
                pair[0 if up else 1] += ratio / (1.0 + ratio)
                pair[2 if up else 3] += ratio


@njit
def swap_levels(up, down, levels, ends, trips, shift, step, drawn, sums):
    """Offer swaps to the even or the odd pairs of each ladder's levels, and add the round trips
    that end here to trips (G,).

    The chains of a ladder are K in a row; up and down hold each one's log f at the next level,
    above and below, less that at its own, of which u = up at level k, r = down at level k + 1. Adds
    logistic(u - shift), logistic(r + shift), their exponentials, and the probability of a rejection
    to sums (G, K - 1, 5). drawn (n,) are uniform numbers.
    """
    n_levels = sums.shape[1] + 1
    chain_at = np.empty(n_levels, np.int64)
    for i in range(sums.shape[0]):
        chains = range(i * n_levels, (i + 1) * n_levels)
        for c in chains:
            chain_at[levels[c]] = c
        for k in range(n_levels - 1):
            low, high = chain_at[k], chain_at[k + 1]
            u = up[low]
            r = down[high]
            accept = math.exp(min(0.0, u + r))
            forward = math.exp(min(u - shift[k], MAX_EXPONENT))
            reverse = math.exp(min(r + shift[k], MAX_EXPONENT))
            pair = sums[i, k]
            pair[0] += forward / (1.0 + forward)  # the logistic
            pair[1] += reverse / (1.0 + reverse)
            pair[2] += forward
            pair[3] += reverse
            pair[4] += 1.0 - accept
            if (k + step) % 2 == 0 and drawn[low] < accept:
                levels[low] = k + 1
                levels[high] = k
        for c in chains:
            if levels[c] == 0:
                trips[i] += ends[c] == 1
                ends[c] = -1
            elif levels[c] == n_levels - 1 and ends[c] == -1:
                ends[c] = 1


@njit
def redraw_levels(log_densities, log_pseudo_prior, levels, drawn, q_sums, counts, at_target):
    """Draw the level of every chain from q(k | x) = softmax(log_densities + log_pseudo_prior), by
    uniform numbers (n,).

    Adds exp(log q + Q_OFFSET) to q_sums (n, K) and the levels drawn to counts (n, K), and writes
    q(K - 1 | x) to at_target (n,).
    """
    n, n_levels = log_densities.shape
    cumulative = np.empty(n_levels)
    for c in range(n):
        levels[c] = redraw(log_densities[c], log_pseudo_prior, drawn[c], q_sums[c], cumulative)
        counts[c, levels[c]] += 1
        at_target[c] = 1.0 - cumulative[n_levels - 2] / cumulative[n_levels - 1]


@njit
def redraw(log_densities, log_pseudo_prior, u, q_sums, cumulative):
    """Draw a level from softmax(log_densities + log_pseudo_prior), whose probabilities are added to
    q_sums.
    """
    largest = -np.inf
    for k in range(log_densities.shape[0]):
        largest = max(largest, log_densities[k] + log_pseudo_prior[k])
    for k in range(log_densities.shape[0]):
        cumulative[k] = exp64(log_densities[k] + log_pseudo_prior[k] - largest)
    total = 0.0
    for k in range(log_densities.shape[0]):
        total += cumulative[k]
        cumulative[k] = total
    log_total = math.log(total) + largest
    for k in range(log_densities.shape[0]):
        log_q = log_densities[k] + log_pseudo_prior[k] - log_total
        if not log_q <= -1300.0:  # a NaN stays one in the sums
            q_sums[k] += exp64(log_q + Q_OFFSET)
    threshold = u * total
    level = 0
    while level < log_densities.shape[0] - 1 and cumulative[level] < threshold:
        level += 1
    return level

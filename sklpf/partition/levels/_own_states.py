"""Check of draws of several states: whether each is from the density of its state.

By the densities of all states a draw x was made at state k with probability

    q_k(x) = n_k f_k(x) / Z_k / sum_j n_j f_j(x) / Z_j.

If draws are from these densities, sum_i (y_ik - q_k(x_i)) g(x_i) has mean 0 for every function g,
where y_ik is 1 for draws of state k and 0 for others. For each state g = log q_k sees densities
that are too wide or too narrow, and the mean state sum_j j q_j sees draws that are elsewhere. The
sum over states of the first is the score of a factor that all log densities lack, such as a unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import xlogy

from sklpf._utils.numbers import Array
from sklpf._utils.warnings import Alarm
from sklpf.partition.alarms import raised
from sklpf.reweighting import mbar, mixture_weights
from sklpf.uncertainty import t_bound

if TYPE_CHECKING:
    from sklpf.partition.levels._potential_run import PotentialRun


class OwnStates(NamedTuple):
    """Tests of draws against the densities of their states.

    Attributes
    ----------
    factor_t : float
        t statistic of a factor that all log densities lack.
    t : ndarray of shape (S,)
        The larger t statistic of every state that has draws.
    factor_bound, bound : float
        What they exceed in 0.1 % of right runs, of all states together.
    profiles, expected : ndarray of shape (S, S)
        Mean of q_j over the draws of every state, and what it should be.
    """

    factor_t: float
    t: Array
    factor_bound: float
    bound: float
    profiles: Array
    expected: Array

    @property
    def agree(self) -> bool:
        """True if nothing speaks against the draws."""
        return abs(self.factor_t) <= self.factor_bound and self.t.max() <= self.bound


def own_state_alarms(run: PotentialRun) -> list[Alarm]:
    """Return an alarm if draws are not from the densities of their states.

    Parameters
    ----------
    run : PotentialRun
        With draws at two states or more.

    Returns
    -------
    list of Alarm
        It names the state that disagrees most, and the cause where draws show it.
    """
    states = np.flatnonzero(run.counts)
    if len(states) < 2:
        return []
    found = own_states(run)
    if found.agree:
        return []
    worst = int(np.argmax(found.t))
    t = max(abs(found.factor_t), found.t.max())

    factor = _missing_factor(run)
    if factor is not None and own_states(replace(run, vectors=factor * run.vectors)).agree:
        state = states[worst]
        return [raised("not-of-this-density", "factor", "factor", factor=factor, state=state, t=t)]

    if len(states) > 2:
        worst = _disagreeing(run, states, found.t)
    other = _look_alike(found, run.counts[states], worst)
    if other is not None:
        of_which = "all states" if other == len(states) else f"state {states[other]}"
        return [
            raised(
                "not-of-this-density",
                "look like",
                "look like",
                state=states[worst],
                of_which=of_which,
                t=t,
            )
        ]

    which = f"state {states[worst]}" if len(states) > 2 else "the two states"
    return [raised("not-of-this-density", "other density", which=which, t=t)]


def own_states(
    run: PotentialRun,
    *,
    fewest_groups: int = 30,  # that variances of correlated draws are as uncertain as those of
    draws_a_group: int = 10,  # effective ones, of all states together
) -> OwnStates:
    """Return what draws say of the densities of their states.

    Parameters
    ----------
    run : PotentialRun

    Returns
    -------
    OwnStates
    """
    states = np.flatnonzero(run.counts)
    n_states = len(states)
    n = run.counts[states]
    labels = np.searchsorted(states, run.levels)

    # A score hangs on log Z, whose errors hang on the draws: their part in it is taken off.
    products = np.zeros((2, n_states, n_states))
    for _, q, functions in _functions(run, states):
        for product, g in zip(products, functions):
            product += (q * g).T @ q
    influence = run._influence[np.ix_(states, states)]
    taken_off = [(np.diag(each.sum(axis=1)) - each) @ influence for each in products]

    cells = run._groups * n_states + labels if run.given_groups is not None else labels
    sums = np.zeros((cells.max() + 1, 2 * n_states + 1))
    squares = np.zeros_like(sums)
    profiles = np.zeros((n_states, n_states))
    factor_terms = np.empty(len(labels))
    for rows, q, functions in _functions(run, states):
        label = labels[rows]
        residuals = -q
        residuals[np.arange(len(q)), label] += 1
        terms = [residuals * g - residuals @ w.T for g, w in zip(functions, taken_off)]
        factor_terms[rows] = terms[0].sum(axis=1)
        every = np.column_stack([*terms, factor_terms[rows]])
        first = np.flatnonzero(np.diff(cells[rows], prepend=-1))
        np.add.at(sums, cells[rows][first], np.add.reduceat(every, first, axis=0))
        np.add.at(squares, cells[rows][first], np.add.reduceat(every**2, first, axis=0))
        first = np.flatnonzero(np.diff(label, prepend=-1))
        np.add.at(profiles, label[first], np.add.reduceat(q, first, axis=0))

    if run.given_groups is not None:
        n_groups = run.n_groups
        sizes = np.bincount(cells, minlength=len(sums)).reshape(n_groups, n_states)
        by_group = sums.reshape(n_groups, n_states, -1)
        by_group = by_group - (sizes / n)[..., np.newaxis] * by_group.sum(axis=0)
        variances = np.sum(by_group.sum(axis=1) ** 2, axis=0) * n_groups / (n_groups - 1)
    else:
        effective = run._draw_numbers.effective[states]
        n_groups = max(fewest_groups, int(effective.sum() / draws_a_group))
        spread = np.maximum(squares - sums**2 / n[:, np.newaxis], 0.0)
        inefficiency = np.tile(n / effective, (sums.shape[1], 1)).T
        inefficiency[:, -1] = n / run.effective_of(factor_terms)[0][states]
        variances = np.sum(spread * inefficiency, axis=0)
    # States that are equal to rounding say nothing.
    t = sums.sum(axis=0) / np.sqrt(variances + 1e-12 * len(labels))
    return OwnStates(
        factor_t=float(t[-1]),
        t=np.abs(t[:-1]).reshape(2, n_states).max(axis=0),
        factor_bound=t_bound(n_groups),
        bound=t_bound(n_groups, 2 * n_states),
        profiles=profiles / n[:, np.newaxis],
        expected=run._sums.products[np.ix_(states, states)] / n[:, np.newaxis],
    )


def _functions(
    run: PotentialRun,
    states: NDArray,
    *,
    # of a draw at its own state, where draws are right in all but K / 20,000
    smallest_log_q: float = -10.0,
) -> Iterator[tuple[slice, Array, tuple[Array, Array]]]:
    """Yield rows of draws, their q (n, S), and log q and the mean state, both (n, S)."""
    vectors = run.vectors if len(states) == run.vectors.shape[1] else run.vectors[:, states]
    for rows, q, _ in mixture_weights(vectors, run.counts[states], run._zeta[states]):
        log_q = np.log(np.maximum(q, np.exp(smallest_log_q)))
        mean_state = np.broadcast_to((q @ np.arange(len(states)))[:, np.newaxis], q.shape)
        yield rows, q, (log_q, mean_state)


def _missing_factor(run: PotentialRun, *, largest_factor: float = 10.0) -> float | None:
    """The factor of all log densities at which draws of the states are likeliest; None if it is
    beyond the largest.
    """
    states = np.flatnonzero(run.counts)
    counts = run.counts[states]
    labels = np.searchsorted(states, run.levels)

    def score(log_factor):
        factor = np.exp(log_factor)
        vectors = factor * run.vectors[:, states]
        zeta = mbar(vectors, counts, factor * run._zeta[states])
        total = 0.0
        for rows, q, _ in mixture_weights(vectors, counts, zeta):
            own = q[np.arange(len(q)), labels[rows]]
            total += np.sum(np.log(np.maximum(own, 1e-300))) - np.sum(xlogy(q, q))
        return total

    end = np.log(largest_factor)
    ends = (-end, 0.0) if score(0.0) < 0 else (0.0, end)
    if score(ends[0]) * score(ends[1]) > 0:
        return None
    return float(np.exp(brentq(score, *ends, xtol=1e-3)))


def _disagreeing(
    run: PotentialRun,
    states: NDArray,
    t: Array,
    *,
    n_candidates: int = 3,  # states of which one may be named
) -> int:
    """The state that disagrees most, or else the one without whose draws those of the others agree:
    its neighbours may disagree as much as it does.
    """
    candidates = np.argsort(t)[::-1][:n_candidates]
    for candidate in candidates:
        kept = run.levels != states[candidate]
        groups = None if run.given_groups is None else run.given_groups[kept]
        others = replace(
            run,
            vectors=run.vectors[kept],
            levels=run.levels[kept],
            slopes=run.slopes[kept],
            given_groups=groups,
        )
        if own_states(others).agree:
            return int(candidate)
    return int(candidates[0])


def _look_alike(
    found: OwnStates,
    counts: Array,
    state: int,
    *,
    alike: float = 0.5,  # distance from another state's draws, over that from those of its own
) -> int | None:
    """The other state whose draws those of this one look like, or S for all states; None if they
    look like their own.
    """
    every = counts / counts.sum()
    profiles = np.vstack([found.expected, every])
    distances = np.abs(profiles - found.profiles[state]).sum(axis=1)
    closest = int(np.argmin(distances))
    return closest if distances[closest] < alike * distances[state] else None

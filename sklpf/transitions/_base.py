"""Transition: a move that leaves every level of a path invariant, and the three programs built on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

from sklpf._random import REDRAW, SWAP, Stream
from sklpf.paths._base import Path, n_chains

MAX_EXPONENT = 600.0  # larger log ratios are counted as this in sums of exp, which so stay finite


class Transition:
    """A move on the states of a path. Subclasses define `move` and name the capability that they need.

    The programs below are plain loops over `move`; a path may offer a fused form of them as a capability.
    """

    requires: tuple[str, ...] = ()
    reversible = True

    def check(self, path: Path) -> None:
        """Raise TypeError if the path lacks a capability of this transition."""
        for name in self.requires:
            if not hasattr(path, name):
                raise TypeError(
                    f"{type(self).__name__} needs a path with the method {name}(); {type(path).__name__} has none: "
                    "define it or choose another transition"
                )

    def move(self, path: Path, state: Any, levels: NDArray[np.int64], stream: Stream, reverse: bool = False) -> Any:
        """Return the state after one sweep of every chain at its level; `reverse` asks for the time reversal."""
        raise NotImplementedError

    def anneal(
        self, path: Path, state: Any, levels: NDArray[np.int64], stream: Stream, reverse: bool = False
    ) -> tuple[Any, NDArray[np.float64]]:
        """Move through levels (n_sweeps + 1, n) and sum the increments of log f (Neal 2001).

        Forward: the increment from levels[t] to levels[t + 1], then a move at levels[t + 1].
        Reverse: the reversed move at levels[t], then the increment.

        Returns
        -------
        state, log_weights of shape (n,)
        """
        log_weights = np.zeros(n_chains(state))
        for t in range(len(levels) - 1):
            now = stream.at(stream.step + t)
            if reverse:
                state = self.move(path, state, levels[t], now, reverse=True)
            log_weights += path.log_f(state, levels[t + 1]) - path.log_f(state, levels[t])
            if not reverse:
                state = self.move(path, state, levels[t + 1], now)
        return state, log_weights

    def exchange(self, path, state, levels, ends, shift, n_scans, stream):
        """Replica exchange of K consecutive chains a ladder, even and odd pairs in turn (Syed et al. 2022).

        Parameters
        ----------
        levels : ndarray of shape (n,)
            Level of every chain, a permutation within each ladder.
        ends : ndarray of shape (n,)
            Which end of the ladder a chain has visited last: -1 base, 1 target (after the base), 0 none.
        shift : ndarray of shape (K - 1,)
            Approximate log Z_(k+1) / Z_k.

        Returns
        -------
        state, levels, ends
        sums : ndarray of shape (n_ladders, K - 1, 5)
            Sums over the scans of logistic(u - shift), logistic(r + shift), exp(u - shift), exp(r + shift) and of the
            swap's rejection probability; u = log f_(k+1) - log f_k at level k, r its negative at level k + 1.
        trips : ndarray of shape (n_ladders,)
            Round trips.
        """
        n_levels = len(path.ladder)
        levels, ends = levels.reshape(-1, n_levels).copy(), ends.reshape(-1, n_levels).copy()
        rows = np.arange(len(levels))[:, np.newaxis]
        sums, trips = np.zeros((len(levels), n_levels - 1, 5)), np.zeros(len(levels), dtype=np.int64)
        for t in range(n_scans):
            now = stream.at(stream.step + t)
            state = self.move(path, state, levels.ravel(), now)
            here = path.log_f(state, levels.ravel())
            up = path.log_f(state, np.minimum(levels + 1, n_levels - 1).ravel()) - here
            down = path.log_f(state, np.maximum(levels - 1, 0).ravel()) - here
            chain_at = np.argsort(levels, axis=1)
            u = up.reshape(levels.shape)[rows, chain_at[:, :-1]]
            r = down.reshape(levels.shape)[rows, chain_at[:, 1:]]
            accept = np.exp(np.minimum(0, u + r))
            forward, reverse = np.minimum(u - shift, MAX_EXPONENT), np.minimum(r + shift, MAX_EXPONENT)
            sums += np.stack([expit(forward), expit(reverse), np.exp(forward), np.exp(reverse), 1 - accept], axis=2)
            uniforms = now.uniform(levels.size, SWAP).reshape(levels.shape)[rows, chain_at[:, :-1]]
            odd = (np.arange(n_levels - 1) + now.step) % 2 == 1
            ladder, k = np.nonzero((uniforms < accept) & ~odd)
            levels[ladder, chain_at[ladder, k]] += 1
            levels[ladder, chain_at[ladder, k + 1]] -= 1
            trips += np.sum((levels == 0) & (ends == 1), axis=1)
            ends[(levels == n_levels - 1) & (ends == -1)] = 1
            ends[levels == 0] = -1
        return state, levels.ravel(), ends.ravel(), sums, trips

    def temper(self, path, state, levels, log_prior, n_redraws, sweeps_per_redraw, stride, stream):
        """Simulated tempering: moves, then a redraw of each level from q(level | x) (Carlson et al. 2016, eq. 7).

        Parameters
        ----------
        log_prior : ndarray of shape (K,)
            log r_k minus the estimate of log Z_k.
        stride : int
            Every `stride`-th redraw keeps its vector log f_k(x).

        Returns
        -------
        state, levels
        log_q_sums : ndarray of shape (n, K)
            Log of the sum of q(k | x) over the redraws.
        counts : ndarray of shape (n, K)
            How often each level was drawn.
        vectors : ndarray of shape (n_records, n, K)
        vector_levels : ndarray of shape (n_records, n)
            The level that each kept x was moved at, before the redraw.
        """
        levels = levels.copy()
        n, chains = len(levels), np.arange(len(levels))
        log_q_sums = np.full((n, len(path.ladder)), -np.inf)
        counts = np.zeros(log_q_sums.shape, dtype=np.int64)
        vectors, vector_levels = [], []
        for t in range(n_redraws):
            for s in range(sweeps_per_redraw):
                now = stream.at(stream.step + t * sweeps_per_redraw + s)
                state = self.move(path, state, levels, now)
            log_densities = path.log_f_ladder(state)
            if t % stride == 0:
                vectors.append(log_densities)
                vector_levels.append(levels)
            log_q = log_softmax(log_densities + log_prior, axis=1)
            with np.errstate(invalid="ignore"):  # a log_f that is not a number stays one in the sums
                log_q_sums = np.logaddexp(log_q_sums, log_q)
            cumulative = np.cumsum(np.exp(log_q), axis=1)
            threshold = now.uniform(n, REDRAW) * cumulative[:, -1]
            levels = np.sum(cumulative[:, :-1] < threshold[:, np.newaxis], axis=1)
            counts[chains, levels] += 1
        return state, levels, log_q_sums, counts, np.array(vectors), np.array(vector_levels)

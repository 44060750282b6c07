"""ParallelTempering: non-reversible replica exchange with pairwise BAR or stepping stones."""

from __future__ import annotations

import functools
import os
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from scipy.stats import t as student_t

from sklpf._parallel import removing_checkpoints, run_segments
from sklpf._random import Stream, stream_key
from sklpf._sklearn import Interval, StrOptions
from sklpf.partition._base import PartitionEstimator, check_base, segments
from sklpf.partition._result import PartitionResult
from sklpf.paths import LADDERS, make_ladder
from sklpf.paths._base import map_state, n_chains
from sklpf.paths._ladders import respace
from sklpf.transitions import Transition
from sklpf.uncertainty import jackknife

_SHORTEST_ROUND = 16
_FEWEST, _MOST = 6, 60  # levels that "auto" chooses between
_FALSE_ALARM = 1e-3  # of each of the two tests on a run, two-sided


class _Round(NamedTuple):
    """What one round leaves: the ladders' states and the sums of both of its halves."""

    path: Any
    carries: list  # per ladder: (state, levels, ends, sums (2, 1, K - 1, 5), trips (1,))
    shift: NDArray[np.float64]
    n_scans: int

    @property
    def sums(self) -> NDArray[np.float64]:
        """Sums (2 halves, G ladders, K - 1 pairs, 5)."""
        return np.concatenate([carry[3] for carry in self.carries], axis=1)

    @property
    def trips(self) -> NDArray[np.int64]:
        """Round trips of every ladder."""
        return np.concatenate([carry[4] for carry in self.carries])

    @property
    def rejection(self) -> NDArray[np.float64]:
        """Mean rejection probability of every pair of neighbouring levels."""
        return self.sums[..., 4].mean(axis=(0, 1)) * 2 / self.n_scans


class ParallelTempering(PartitionEstimator):
    """Non-reversible parallel tempering on independent ladders (Syed et al. 2022).

    Every ladder holds one chain at each level. A scan moves all chains, then offers swaps to the even or the odd pairs
    of neighbours in turn. Rounds double in length; after each, the levels are placed anew so that all pairs reject
    equally often. The estimate comes from the last round alone, half of all the work: per pair of levels the
    ratio Z_(k+1) / Z_k by a bridge with a fixed reference (Meng & Wong 1996), whose optimum is Bennett's acceptance
    ratio, pooled over the ladders.

    Parameters
    ----------
    n_ladders : int, default=10
        Independent ladders G, at least 2: the error bar is a jackknife over them.
    n_temperatures : int or "auto", default="auto"
        Levels K. "auto" takes 2 Lambda + 1 where Lambda is the measured sum of the rejections (6 to 60 levels).
    n_sweeps : int, default=4096
        Sweeps of every chain, all rounds included.
    tol : float or None, default=None
        Stop earlier, once two rounds in a row have a standard error (nats) under `tol` and raise no alarm.
    ladder : {"linear", "power", "sigmoid", "salakhutdinov-murray"} or array-like, default="linear"
        Inverse temperatures of the first round; an array fixes `n_temperatures` too.
    adapt : bool, default=True
        Whether the levels are placed anew after each round. A path whose levels are no inverse temperatures
        (models saved along training, say) needs False and its own ladder.
    estimator : {"bar", "stepping-stone"}, default="bar"
        How a ratio is computed from the samples of its two levels; stepping stones average the
        forward and the reverse mean of ratios.
    weights, base, transition, checkpoint, random_state, n_jobs
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The interval uses Student t with G - 1 degrees of freedom. ``result_.diagnostics``
        holds ``rejection`` (K - 1,), ``barrier`` (Lambda), ``round_trips`` (G,), ``ladder_log_partitions`` (G,),
        ``drift_t`` and ``direction_t`` (the tests behind the alarms).

    Notes
    -----
    Not converged if a ladder of the last round has seen no round trip between the base and the target, if the
    two halves of the last round disagree, or if its forward and reverse stepping stones do; each test has a
    false-alarm rate of 0.1 %. A mode that no chain has visited raises no alarm.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4))
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> bool(tempering.log_partition_std_error_ < 0.05)
    True
    """

    _parameter_constraints = {
        "n_ladders": [Interval(Integral, 2, None, closed="left")],
        "n_temperatures": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "n_sweeps": [Interval(Integral, 2 * _SHORTEST_ROUND, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
        "ladder": [StrOptions(set(LADDERS)), "array-like"],
        "adapt": ["boolean"],
        "estimator": [StrOptions({"bar", "stepping-stone"})],
        "weights": [StrOptions({"marginal", "joint"})],
        "base": [StrOptions({"data", "uniform"}), "array-like"],
        "transition": [Transition, None],
        "checkpoint": [str, os.PathLike, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_ladders: int = 10,
        n_temperatures: int | Literal["auto"] = "auto",
        n_sweeps: int = 4096,
        *,
        tol: float | None = None,
        ladder: str | ArrayLike = "linear",
        adapt: bool = True,
        estimator: Literal["bar", "stepping-stone"] = "bar",
        weights: Literal["marginal", "joint"] = "marginal",
        base: Literal["data", "uniform"] | ArrayLike = "data",
        transition: Transition | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.n_ladders = n_ladders
        self.n_temperatures = n_temperatures
        self.n_sweeps = n_sweeps
        self.tol = tol
        self.ladder = ladder
        self.adapt = adapt
        self.estimator = estimator
        self.weights = weights
        self.base = base
        self.transition = transition
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _estimate(self, path, seed) -> PartitionResult:
        last, base_log_partition, n_moves = self._run(path, seed)
        return self._combine(last, base_log_partition, n_moves)

    @removing_checkpoints()
    def sample(self, path, n: int, rng: np.random.Generator) -> Any:
        """Return a state of n chains from the target's level of a run on `path`.

        Draws are taken from every ladder in turn, 2 + 2 Lambda scans apart (the time of a round trip), so they are
        nearly independent if the run converged, but not exact.
        """
        last, _, _ = self._run(path, int(rng.integers(2**31)))
        gap = int(np.ceil(2 + 2 * last.rejection.sum()))
        target, n_scans = len(last.path.ladder) - 1, 0
        drawn: list[Any] = []
        key = stream_key(int(rng.integers(2**31)))
        carries = last.carries
        while len(drawn) < n:
            bounds = [0, n_scans, n_scans + gap]
            advance = functools.partial(_advance, last.path, self._transition(path), key, last.shift, bounds)
            carries = run_segments(carries.__getitem__, advance, len(carries), 1, n_jobs=self.n_jobs, stage="sample")
            drawn += [last.path.take(carry[0], np.flatnonzero(carry[1] == target)) for carry in carries]
            n_scans += gap
        return map_state(lambda *parts: np.concatenate(parts), *drawn[:n])

    # -- rounds --------------------------------------------------------------------------------
    def _run(self, path, seed):
        base_log_partition = check_base(path, "ParallelTempering")
        checkpoint = self._checkpoint(path, seed)
        path = self._first_ladder(path)
        transition = self._transition(path)
        lengths = _round_lengths(self.n_sweeps)
        last, n_moves, precise = None, 0, 0
        for i, n_scans in enumerate(lengths):
            start, path, shift = self._prepare(path, last, stream_key(seed, 0), fixed=i >= len(lengths) - 2)
            halves = [n_scans // 2, n_scans - n_scans // 2]
            bounds = segments(halves[0], path.n_moves_per_segment)
            bounds += [halves[0] + sweep for sweep in segments(halves[1], path.n_moves_per_segment)][1:]
            carries = run_segments(
                start,
                functools.partial(_advance, path, transition, stream_key(seed, 1, i), shift, [halves[0], *bounds]),
                self.n_ladders,
                len(bounds) - 1,
                n_jobs=self.n_jobs,
                checkpoint=checkpoint,
                stage=f"round{i}",
            )
            last = _Round(path, carries, shift, n_scans)
            if not np.all(np.isfinite(last.sums)):
                raise ValueError(
                    "log_f gave values that are not finite; check the model's parameters or the path's log_f"
                )
            n_moves += self.n_ladders * len(path.ladder) * n_scans
            if self.tol is not None:
                result = self._combine(last, 0.0, n_moves)
                precise = precise + 1 if result.converged and result.std_error < self.tol else 0
                if precise == 2:
                    break
        return last, base_log_partition, n_moves

    def _first_ladder(self, path):
        if not self.adapt and isinstance(self.ladder, str):
            raise ValueError("adapt=False needs ladder to be an array of inverse temperatures that stays as it is")
        n_temperatures = 10 if self.n_temperatures == "auto" else self.n_temperatures
        path = path.with_ladder(make_ladder(self.ladder, n_temperatures))
        if path.ladder[0] != 0 or path.ladder[-1] != 1:
            raise ValueError("ladder must begin at 0 (the base, which is sampled) and end at 1 (the target)")
        return path

    def _prepare(self, path, last, base_key, fixed):
        """Starts of the next round, its path (levels placed anew) and its reference ratios."""
        n_levels = len(path.ladder)
        if last is None:
            return functools.partial(_start, path, base_key), path, np.zeros(n_levels - 1)
        curve = np.r_[0, np.cumsum(_log_ratios(last, self.estimator)(np.arange(self.n_ladders)))]
        if not self.adapt:
            return functools.partial(_restart, last.carries), path, np.diff(curve)
        if self.n_temperatures == "auto" and isinstance(self.ladder, str) and not fixed:
            n_levels = int(np.clip(np.ceil(2 * last.rejection.sum()) + 1, _FEWEST, _MOST))
        new = path.with_ladder(respace(path.ladder, last.rejection, n_levels))
        carries = last.carries
        if n_levels != len(path.ladder):
            nearest = np.abs(new.ladder[:, np.newaxis] - path.ladder).argmin(axis=1)
            carries = [_regrid(path, nearest, carry) for carry in carries]
        shift = np.diff(PchipInterpolator(path.ladder, curve)(new.ladder))
        return functools.partial(_restart, carries), new, shift

    # -- estimate ------------------------------------------------------------------------------
    def _combine(self, last: _Round, base_log_partition: float, n_moves: int) -> PartitionResult:
        ratios = _log_ratios(last, self.estimator)
        log_ratio, std_error = jackknife(lambda keep: ratios(keep).sum(), self.n_ladders)
        degrees = self.n_ladders - 1
        drift = _t_statistic(_half_difference(last, self.estimator), self.n_ladders)
        direction = _t_statistic(_direction_difference(last), self.n_ladders)
        threshold = student_t.isf(_FALSE_ALARM / 2, degrees)
        reasons = []
        if last.trips.min() == 0:
            reasons.append(
                f"{np.sum(last.trips == 0)} of {self.n_ladders} ladders made no round trip between base and target in "
                "the last round: raise n_sweeps"
            )
        if abs(drift) > threshold:
            reasons.append(f"the halves of the last round disagree (t = {drift:.1f}): raise n_sweeps")
        if abs(direction) > threshold:
            reasons.append(f"forward and reverse ratios disagree (t = {direction:.1f}): raise n_sweeps")
        return PartitionResult(
            method="ParallelTempering",
            log_partition=base_log_partition + float(log_ratio),
            std_error=float(std_error),
            degrees_of_freedom=degrees,
            converged=not reasons,
            reasons=tuple(reasons),
            n_sweeps=n_moves,
            ladder=last.path.ladder,
            log_partition_curve=base_log_partition + np.r_[0, np.cumsum(ratios(np.arange(self.n_ladders)))],
            diagnostics={
                "rejection": last.rejection,
                "barrier": float(last.rejection.sum()),
                "round_trips": last.trips,
                "ladder_log_partitions": np.array([ratios([g]).sum() for g in range(self.n_ladders)]),
                "drift_t": drift,
                "direction_t": direction,
            },
        )


def _round_lengths(n_scans: int) -> list[int]:
    """Scans of the rounds: the last takes half, the one before a quarter, … and the first the rest."""
    lengths = []
    while n_scans // 2 >= _SHORTEST_ROUND:
        lengths.append(n_scans - n_scans // 2)
        n_scans //= 2
    return [n_scans, *lengths[::-1]]


def _start(path, key, block):
    """A ladder whose chains are all drawn from the base."""
    n_levels = len(path.ladder)
    state = path.sample_base(n_levels, Stream(key, block * n_levels))
    return _carry(state, np.arange(n_levels))


def _restart(carries, block):
    state, levels, _, _, _ = carries[block]
    return _carry(state, levels)


def _carry(state, levels):
    n_levels = len(levels)
    ends = np.zeros(n_levels, dtype=np.int64)
    return state, levels, ends, np.zeros((2, 1, n_levels - 1, 5)), np.zeros(1, dtype=np.int64)


def _regrid(path, nearest, carry):
    """Move a ladder to another number of levels: each new level starts at the state of the nearest old one."""
    state, levels = carry[:2]
    return path.take(state, np.argsort(levels)[nearest]), np.arange(len(nearest)), None, None, None


def _advance(path, transition, key, shift, bounds, block, segment, carry):
    """One segment of a round; bounds is the half's length, then the first scan of every segment and the end."""
    state, levels, ends, sums, trips = carry
    half, start, stop = bounds[0], bounds[1 + segment], bounds[2 + segment]
    stream = Stream(key, block * n_chains(state), start)
    state, levels, ends, more, more_trips = transition.exchange(path, state, levels, ends, shift, stop - start, stream)
    sums = sums.copy()
    sums[int(start >= half)] += more
    return state, levels, ends, sums, trips + more_trips


def _log_ratios(last: _Round, estimator: str, half: int | None = None):
    """A function of ladders' indices: log Z_(k+1) / Z_k (K - 1,) from their pooled sums."""
    sums = last.sums.sum(axis=0) if half is None else last.sums[half]
    scans = last.n_scans if half is None else (last.n_scans + half) // 2

    def ratios(keep):
        pooled = sums[keep].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            if estimator == "bar":
                return last.shift + np.log(pooled[:, 0]) - np.log(pooled[:, 1])
            forward, reverse = _stepping_stones(pooled, last.shift, scans * len(keep))
            return (forward + reverse) / 2

    return ratios


def _stepping_stones(pooled, shift, n):
    """Forward log mean f_(k+1) / f_k at level k, and minus the reverse one at level k + 1."""
    return shift + np.log(pooled[:, 2] / n), shift - np.log(pooled[:, 3] / n)


def _half_difference(last: _Round, estimator: str):
    first, second = (_log_ratios(last, estimator, half) for half in (0, 1))
    return lambda keep: first(keep).sum() - second(keep).sum()


def _direction_difference(last: _Round):
    sums = last.sums.sum(axis=0)

    def difference(keep):
        forward, reverse = _stepping_stones(sums[keep].sum(axis=0), last.shift, last.n_scans * len(keep))
        return (forward - reverse).sum()

    return difference


def _t_statistic(difference, n_groups: int) -> float:
    value, std_error = jackknife(difference, n_groups)
    return float(value / std_error) if std_error > 0 else 0.0

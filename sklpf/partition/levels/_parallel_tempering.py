"""ParallelTempering: non-reversible replica exchange with BAR between neighbouring levels; and its
run, which other estimators read.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator
from scipy.stats import binom

from sklpf._utils.context import note, round_done, stage
from sklpf._utils.numbers import Array
from sklpf._utils.parallel import running
from sklpf._utils.random import seeded
from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import POSITIVE, at_least
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import SAMPLING, SamplingEstimator
from sklpf.partition._result import PartitionResult
from sklpf.partition.alarms import (
    halves_alarms,
    modes_alarms,
    raised,
    tol_alarms,
)
from sklpf.partition.checks import Bound, Findings, Work
from sklpf.partition.levels._run import Curve, LevelRun, between_by_slope, chained, first_pair
from sklpf.paths import LADDERS, concatenate, has, make_ladder, require_base, respace
from sklpf.programs import (
    MOST_DRAWS,
    NO_ROUNDS,
    Chains,
    ExchangeRound,
    check_ends,
    doubling,
    move_ladders,
    n_tuning_moves,
    run_scans,
    start_ladders,
    with_round,
)
from sklpf.reweighting import bar_ratios, neighbour_overlap, stepping_stones
from sklpf.transitions import Transition
from sklpf.uncertainty import (
    MOST_BETWEEN,
    Difference,
    between_groups,
    difference,
    groups_persist,
    jackknife,
)

# nats by which a ratio may differ from its reference; sums of exp are cut off beyond 600
MOST_SHIFTED = 300.0
_SHORTEST_ROUND = 16


@dataclass(frozen=True, repr=False, kw_only=True)
class ExchangeRun(LevelRun):
    """The last round of replica exchange on G ladders with K levels, half of all scans.

    Attributes
    ----------
    last : ExchangeRound
    tol : float or None
        As in `ParallelTempering`.
    continued_from, n_scans : int
        Sweeps of every chain after which the ladders disagreed and the run went on, 0 if it did
        not, and all that were made.
    """

    options = ("tol",)
    family = "exchange"

    last: ExchangeRound
    tol: float | None = None
    continued_from: int = 0
    n_scans: int = 0

    def curve(self) -> Curve:
        """Return log Z_k - log Z_0 by Bennett's acceptance ratio between neighbouring levels."""
        return chained(self, pair_ratios(self))

    def _read(self) -> PartitionResult:
        last = self.last
        ratios = pair_ratios(self)
        curve, errors = jackknife(self.curve(), self.n_groups)
        curve = self.base_log_partition + curve
        log_partition = curve[-1]
        std_error = errors[-1]
        if np.isnan(std_error):  # levels that don't overlap: anything may be
            std_error = np.inf
        std_error = max(std_error, _typical_error(self, std_error))

        tests = ladder_tests(self, ratios)
        diagnostics = {
            "curve_std_error": errors,
            "rejection": last.rejection,
            "overlap": neighbour_overlap(*last.pairs()),
            "barrier": last.rejection.sum(),
            "round_trips": last.round_trips,
            "ladder_log_partitions": _by_ladder(self, ratios),
            "between_ladders": tests.between,
            "drift_t": tests.drift.t,
            "direction_t": tests.direction.t,
            **self._rounds(log_partition, std_error),
        }

        return self.conclude(
            log_partition,
            std_error,
            self.n_groups - 1,
            alarms=[*self._alarms(tests), *tol_alarms(std_error, self.tol)],
            diagnostics=diagnostics,
            levels=curve,
        )

    def _alarms(self, tests: LadderTests) -> list[Alarm]:
        """Return alarms of ladders that differ, are stuck, or do not overlap."""
        alarms = []
        if tests.n_without:
            alarms.append(
                raised("not-mixed", "no round trip", without=tests.n_without, n=self.n_groups)
            )
        again = ""
        if self.continued_from:
            again = f" after {self.continued_from} sweeps of every chain and after {self.n_scans}"
        modes = modes_alarms("ladders", tests.between, again=again)
        if not modes and tests.persist:
            modes = [raised("not-mixed", "log Z", again=again)]
        alarms += modes
        if tests.are_cut_off:
            alarms.append(raised("little-overlap", "none", "of neighbours"))
        elif tests.direction.alarms(self.n_groups):  # which says nothing without overlap
            alarms.append(raised("not-stationary", "directions", t=tests.direction.t))
        return alarms + halves_alarms(tests.drift, self.n_groups)


def pair_ratios(run: ExchangeRun, half: int | None = None) -> Curve:
    """log Z_(k+1) / Z_k (K - 1,) by BAR, as a function of the ladders to use."""
    pair_sums, counts = run.last.pairs(half)
    return bar_ratios(pair_sums, run.last.shift, counts)


class LadderTests(NamedTuple):
    """Comparison of the ladders of a run.

    Attributes
    ----------
    n_without : int
        Ladders that made no round trip in the last round.
    between : float
        Share of the variance of states at the target, or of slopes at some level, that lies between
        ladders; NaN where there are too few states.
    persist : bool
        True if log Z differs more between ladders than between the halves of each.
    are_cut_off : bool
        True if neighbouring levels don't overlap at all.
    drift, direction : Difference
        As in `differences`.
    """

    n_without: int
    between: float
    persist: bool
    are_cut_off: bool
    drift: Difference
    direction: Difference

    @property
    def only_differ(self) -> bool:
        """True if ladders that all go round trips differ, but not by most of the variance, so that
        four times the sweeps may be enough.
        """
        differ = self.between > MOST_BETWEEN or (self.persist and not np.isnan(self.between))
        return differ and not self.n_without and not self.are_cut_off and self.between <= 0.5


def ladder_tests(run: ExchangeRun, ratios: Curve) -> LadderTests:
    """Compare the ladders of a run, of whose last round these are the ratios."""
    last = run.last
    drift, direction = differences(run, ratios)
    by_place = between_groups(last.summaries[:, 0], last.summaries[:, 1], last.n_scans)
    by_half = np.array([_by_ladder(run, pair_ratios(run, half)) for half in (0, 1)])
    return LadderTests(
        n_without=int(np.sum(last.round_trips == 0)),
        between=max(by_place, between_by_slope(last.level_sums)),
        persist=groups_persist(by_half),
        are_cut_off=bool(cut_off(run, ratios(np.arange(run.n_groups))).any()),
        drift=drift,
        direction=direction,
    )


def cut_off(run: ExchangeRun, log_ratios: NDArray) -> NDArray[np.bool_]:
    """Pairs whose ratio is too far from their reference, which sums of exp don't reach."""
    return ~(np.abs(log_ratios - run.last.shift) <= MOST_SHIFTED)


def differences(run: ExchangeRun, ratios: Curve) -> tuple[Difference, Difference]:
    """First less second half of a round, and Bennett's less a stepping stone's ratios.

    Bennett's ratio may be right where one of the two stepping stones is not, as the variance of one
    direction is often infinite: it is compared with both, and the smaller difference counts.
    """
    first, second = (pair_ratios(run, half) for half in (0, 1))
    pair_sums, counts = run.last.pairs()
    both = stepping_stones(pair_sums, run.last.shift, counts)
    pair = first_pair(run)
    drift = difference(lambda keep: first(keep).sum() - second(keep).sum(), run.n_groups)

    def beside(side):
        return difference(lambda keep: (ratios(keep) - both(keep)[side])[pair:].sum(), run.n_groups)

    with np.errstate(invalid="ignore"):  # levels that don't overlap
        against = [beside(0), beside(1)]
    return drift, min(against, key=lambda one: abs(one.t))


def _typical_error(run: ExchangeRun, own_error: float) -> float:
    """The median standard error of the last three rounds, for as many sweeps as the last has.

    A round in which hardly any ladder meets a rare mode is low, and its ladders agree, so that its
    own error is small when it should be large. The rounds before know nothing of that, and the
    variance of each is inversely proportional to its length.
    """
    errors = np.r_[run.history[:, 1], own_error]
    # A run's n_sweeps may hold those of a first try.
    length = run.n_groups * len(run.ladder) * run.last.n_scans
    lengths = np.r_[np.diff(run.history[:, 2], prepend=run.sweeps.get("pilot", 0)), length]
    with np.errstate(invalid="ignore"):
        scaled = (errors * np.sqrt(lengths / lengths[-1]))[-3:]
    return float(np.median(scaled)) if np.all(np.isfinite(scaled)) else 0.0


def _by_ladder(run: ExchangeRun, ratios: Curve) -> Array:
    """log Z_K / Z_1 of every ladder (G,)."""
    return np.array([ratios(np.array([g])).sum() for g in range(run.n_groups)])


@dataclass(eq=False, repr=False)
class ParallelTempering(SamplingEstimator):
    """Non-reversible parallel tempering on independent ladders (Syed et al. 2022).

    Every ladder holds one chain at each level. A scan moves all chains, then offers swaps to the
    even or the odd pairs of neighbours in turn. Rounds double in length. After each round the
    levels are moved so that all pairs reject equally often. The estimate comes from the last round
    alone, which is half of all the work. For each pair of levels the ratio Z_(k+1) / Z_k is
    estimated by a bridge with a fixed reference (Meng & Wong 1996), whose optimum is Bennett's
    acceptance ratio, pooled over the ladders.

    Parameters
    ----------
    n_ladders : int, default=10
        Independent ladders G, at least 2: the error bar is a jackknife over them.
    n_temperatures : int or "auto", default="auto"
        Levels K. "auto" takes 2 Lambda + 1 (6 to 60 levels), with the measured communication
        barrier Lambda, the sum of the rejection rates.
    n_sweeps : int, default=4096
        Sweeps of every chain, all rounds included. Where ladders disagree at the end, though all
        have made round trips and less than half of the variance lies between them, the run goes on
        once, to four times as many. A run ends before the rounds that take three quarters or half
        of them where so few ladders make round trips that they hardly ever all will.
    tol : float or None, default=None
        Stop once two rounds in a row have a standard error (nats) below `tol` and raise no alarm.
    ladder : {"linear", "power", "sigmoid", "salakhutdinov-murray"} or array-like, default="linear"
        Inverse temperatures of the first round; an array fixes `n_temperatures` too.
    adapt : bool, default=True
        Whether the levels are moved after each round. A path whose levels are no inverse
        temperatures, for example models saved during training, needs False and its own ladder.
    transition, checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The interval uses Student t with G - 1 degrees of freedom. The
        standard error is that of the last round, or the median of those of the last three, scaled
        to its length, if that is larger: a round that hardly visits a rare mode is too low, and its
        own error is too small. ``result_.diagnostics`` holds ``rejection`` and ``overlap`` (K - 1,)
        of neighbouring levels, ``curve_std_error`` (K,) of ``result_.log_partition_curve``,
        ``barrier`` (Lambda), ``round_trips`` (G,), ``ladder_log_partitions`` (G,),
        ``between_ladders`` (the share of the target states' variance that lies between ladders),
        ``drift_t`` and ``direction_t`` (the t statistics behind two alarms), ``plain_bound`` where
        the path has one, and of every round ``round_log_partition``, ``round_std_error`` (nats) and
        ``round_sweeps`` (of all chains until then); the last of each is the result's.
    run_ : ExchangeRun
        The last round, for `MBAR`, `SteppingStone` and the other estimators that reweight, as in
        ``SteppingStone().fit(tempering.run_)``: sums, and for at
        most 20,000 states the slopes d log f / d beta and vectors log f_k(x) (0.3 MB if log f is
        linear in beta, else 12 bytes more for each state and level).

    Notes
    -----
    Not converged if a ladder of the last round has seen no round trip between the base and the
    target; if more than a tenth of the variance of the states at the target (``path.summary``) lies
    between ladders, or if log Z differs more between ladders than between the halves of each: they
    are in different modes, or have not mixed; if the two halves of the last round, or Bennett's
    ratio and the stepping stones of both directions, disagree by more than 0.01 nats and with a
    false-alarm rate of 0.1 % each (a round that raises one of these is followed by another of its
    length, once); if neighbouring levels don't overlap (log Z may then
    come out infinite or NaN, with an infinite standard error); if the estimate is below the path's
    lower bound of log Z that does not depend on its base (`bound_draws`); or if `tol` is not
    reached. A mode that no chain has visited raises an alarm only if the path knows the mass there
    (`regions`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> tempering = ParallelTempering(random_state=0).fit(rbm)
    >>> bool(tempering.log_partition_std_error_ < 0.05)
    True
    """

    n_ladders: int = 10
    n_temperatures: int | Literal["auto"] = "auto"
    n_sweeps: int = 4096
    _: KW_ONLY
    tol: float | None = None
    ladder: str | ArrayLike = "linear"
    adapt: bool = True

    _parameter_constraints = {
        **SAMPLING,
        "n_ladders": [at_least(2)],
        "n_temperatures": [at_least(2), StrOptions({"auto"})],
        "n_sweeps": [at_least(2 * _SHORTEST_ROUND)],
        "tol": [POSITIVE, None],
        "ladder": [StrOptions(set(LADDERS)), "array-like"],
        "adapt": ["boolean"],
    }

    _run_class = ExchangeRun

    def _sample(self, path, seed) -> ExchangeRun:
        return self._run_rounds(path, seed)[-1]

    @running()
    def sample(self, path, n: int, rng: np.random.Generator) -> Any:
        """Return a state of n chains from the target's level of a run on `path`.

        Draws are taken from every ladder in turn, 2 + 2 Lambda scans apart (the time of a round
        trip), so they are nearly independent if the run converged, but not exact.
        """
        return self._draw(path, n, rng)[0]

    def _draw(self, path, n, rng) -> tuple[Any, ExchangeRun]:
        """The state of n chains, chain i from ladder i modulo n_ladders, and the last round before,
        with all sweeps.
        """
        path, transition, ladders, run = self._run_rounds(path, int(rng.integers(2**31)))
        last = run.last
        gap = int(np.ceil(2 + 2 * last.rejection.sum()))
        target = len(run.ladder) - 1
        drawn: list[Any] = []
        key = seeded(int(rng.integers(2**31))).of("draws").key
        with stage("draws", None) as draws_done:
            while len(drawn) < n:
                ladders, _ = run_scans(
                    path,
                    transition,
                    ladders,
                    last.log_pseudo_prior,
                    gap,
                    key,
                    "sample",
                    first_scan=gap * (len(drawn) // len(ladders)),
                    n_jobs=self.n_jobs,
                )
                drawn += [
                    path.take(each.state, np.flatnonzero(each.levels == target)) for each in ladders
                ]
                draws_done(len(ladders))
        sweeps = run.sweeps | {"draws": gap * len(drawn) * len(run.ladder)}
        return concatenate(drawn[:n]), replace(run, sweeps=sweeps)

    # -- rounds
    def _run_rounds(self, path, seed) -> tuple[Any, Transition, list[Chains], ExchangeRun]:
        """The path with its levels, the tuned move, the ladders after the last round, and what it
        left.
        """
        base_log_partition = require_base(path, "ParallelTempering")
        checkpoint = self._checkpoint(path, seed)
        path = self._first_ladder(path)
        move = self._transition(path)
        transition = move.tune(path, seeded(seed).of("tuning").key)
        findings = self._early_findings(path, seed)
        ladders = start_ladders(path, transition, int(self.n_ladders), seeded(seed).of("start").key)
        log_pseudo_prior = np.zeros(len(path.ladder))
        n_sweeps = n_tuning = n_tuning_moves(move, transition)
        history = NO_ROUNDS
        lengths = doubling(self.n_sweeps, _SHORTEST_ROUND)
        schedule = _Schedule(lengths, int(self.n_ladders), self.tol)
        for i, n_scans in enumerate(schedule.lengths):  # to which more may be added
            # states of which the round keeps vectors, if the run may end with it
            n_kept = 20_000 if schedule.may_end_with(i) else 0
            ladders, last = run_scans(
                path,
                transition,
                ladders,
                log_pseudo_prior,
                n_scans,
                seeded(seed).of("round", i).key,
                f"round{i + 1}",
                n_kept=n_kept,
                n_draws=MOST_DRAWS if n_kept and self._keeps_draws else 0,
                n_jobs=self.n_jobs,
                checkpoint=checkpoint,
            )
            n_own = len(ladders) * len(path.ladder) * n_scans
            sweeps = {"chains": n_own, "pilot": n_tuning, "burn-in": n_sweeps - n_tuning}
            n_sweeps += n_own
            run = self._with_reading_options(
                ExchangeRun(
                    ladder=path.ladder,
                    has_boundary=path.has_boundary,
                    draws=last.draws,
                    last=last,
                    sweeps=sweeps,
                    base_log_partition=base_log_partition,
                    findings=findings,
                    history=history,
                    continued_from=schedule.continued_from,
                    n_scans=sum(schedule.lengths[: i + 1]),
                )
            )
            note(run)
            if schedule.is_over(i, run):
                break
            curve, errors = jackknife(run.curve(), len(ladders))
            value = float(base_log_partition + curve[-1]), float(errors[-1])
            history = with_round(history, *value, n_sweeps)
            to_come = schedule.lengths[i + 1 :]
            n_left = len(ladders) * len(path.ladder) * sum(to_come)
            round_done(f"round {i + 1} of {len(schedule.lengths)}", *value, n_sweeps, n_left)
            moved, log_pseudo_prior = self._place_levels(path, ladders, run, len(to_come) <= 2)
            ladders = move_ladders(ladders, path, moved)
            path = moved
        return path, transition, ladders, run

    def _early_findings(self, path, seed) -> Findings | None:
        """The bound of log Z, where a run goes on as long as it is below; None where the run is
        looked at afterwards alone.
        """
        if not self.checks or self.tol is None:
            return None
        if not has(path, *Bound.requires):
            return {}
        return {"bound": Bound.collect(Work(path, seed))}

    def _first_ladder(self, path):
        if not self.adapt and isinstance(self.ladder, str):
            raise ValueError(
                "adapt=False needs ladder to be an array of inverse temperatures that stays as"
                " it is"
            )
        n_temperatures = 10 if self.n_temperatures == "auto" else self.n_temperatures
        path = path.with_ladder(make_ladder(self.ladder, n_temperatures))
        check_ends(path)
        return path

    def _place_levels(self, path, ladders, run, fixed) -> tuple[Any, Array]:
        """The path with the next round's levels, and the log pseudo-prior there."""
        rejection = run.last.rejection
        ratios = pair_ratios(run)(np.arange(run.n_groups))
        beyond = cut_off(run, ratios)
        if beyond.any():
            ratios = np.where(beyond, _rough_ratios(path, ladders, run, ratios), ratios)
        curve = np.r_[0, np.cumsum(ratios)]
        if not self.adapt:
            return path, -curve
        n_levels = len(path.ladder)
        if self.n_temperatures == "auto" and isinstance(self.ladder, str) and not fixed:
            n_levels = int(np.clip(np.ceil(2 * rejection.sum()) + 1, 6, 60))
        moved = path.with_ladder(respace(path.ladder, rejection, n_levels))
        return moved, -PchipInterpolator(path.ladder, curve)(moved.ladder)


@dataclass
class _Schedule:
    """Lengths of the rounds of a run, in scans, to which what they show may add.

    Attributes
    ----------
    lengths : list of int
    n_ladders : int
    tol : float or None
        Standard error in nats that is enough.
    n_precise : int
        Rounds in a row, up to the last one, that are trusted and within `tol`.
    is_repeated : bool
        True if a round was added since the ladders drift, or since both directions disagree.
    continued_from : int
        Scans before rounds were added since the ladders disagree; 0 if none were.
    """

    lengths: list[int]
    n_ladders: int
    tol: float | None
    n_precise: int = 0
    is_repeated: bool = False
    continued_from: int = 0

    def may_end_with(self, i: int) -> bool:
        """True if round i is the last one as yet, may be precise enough, or may say by its round
        trips that not all ladders will go round.
        """
        is_last = i + 1 == len(self.lengths)
        return is_last or self.tol is not None or self._is_hopeless(i, np.zeros(self.n_ladders))

    def _is_hopeless(self, i: int, round_trips: NDArray, *, chance: float = 0.002) -> bool:
        """True if so few ladders go round in round i and all of them in the last one with a small
        chance, however often they do: a ladder does not in round i with probability q, and does not
        in one that is n times as long with probability q^n.
        """
        n_round = np.count_nonzero(round_trips)
        q = np.linspace(0.0, 0.99, 100)
        all_in_last = (1 - q ** (self.lengths[-1] / self.lengths[i])) ** self.n_ladders
        return bool(np.max(binom.cdf(n_round, self.n_ladders, 1 - q) * all_in_last) <= chance)

    def is_over(self, i: int, run: ExchangeRun) -> bool:
        """True if the run ends with round i; after the last one, rounds may be added."""
        if self.tol is not None:
            result = run.read()
            is_precise = result.converged and result.std_error < self.tol
            self.n_precise = self.n_precise + 1 if is_precise else 0
            if self.n_precise == 2:
                return True
        # A round tells something if it has as many scans as a walk by chance over the levels takes.
        is_long = self.lengths[i] >= len(run.ladder) ** 2
        if is_long and self._is_hopeless(i, run.last.round_trips):
            return True
        if i + 1 == len(self.lengths):
            self._add(run)
        return i + 1 == len(self.lengths)

    def _add(self, run: ExchangeRun) -> None:
        """Add rounds where ladders disagree, or one, from where they stand, where they drift."""
        tests = ladder_tests(run, pair_ratios(run))
        n_scans = self.lengths[-1]
        if tests.only_differ and not self.continued_from:
            self.continued_from = sum(self.lengths)
            self.lengths += [2 * n_scans, 4 * n_scans]  # four times the sweeps
        elif not self.is_repeated:
            pairs = tests.drift, tests.direction
            self.is_repeated = any(each.alarms(run.n_groups) for each in pairs)
            if self.is_repeated:
                self.lengths.append(n_scans)


def _rough_ratios(path, ladders, run, ratios) -> Array:
    """References log Z_(k+1) / Z_k for the next round, finite where this one's sums are cut off: by
    its last states.
    """
    shift = run.last.shift
    nearest = np.clip(np.nan_to_num(ratios - shift), -MOST_SHIFTED, MOST_SHIFTED)
    steps = []
    for chains in ladders:
        with np.errstate(invalid="ignore"):  # -inf - (-inf) outside the support
            log_f = path.log_f_ladder(path.take(chains.state, np.argsort(chains.levels)))
            up = np.diff(log_f, axis=1)
        steps.append((np.diagonal(up) + np.diagonal(up, -1)) / 2)
    rough = np.mean(steps, axis=0)
    return np.where(np.isfinite(rough), rough, shift + nearest)

"""RTS: Rao-Blackwellised tempered sampling, on levels or at continuous inverse temperatures, and
the run of the latter.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.parallel import run_segments
from sklpf._utils.sklearn import StrOptions
from sklpf.partition._result import PartitionResult, Run, RunInRounds
from sklpf.partition.alarms import threshold
from sklpf.partition.levels._run import OTHER_RUN, Curve, Reading, read_by
from sklpf.partition.levels._simulated_tempering import (
    ALL,
    N_GROUPS,
    PRIOR,
    TOLERANCE,
    SimulatedTempering,
    Start,
    TemperingRun,
    between_target_states,
    concluded,
    largest_move,
    pool_rounds,
)
from sklpf.paths import has
from sklpf.programs import (
    END_SHARE,
    Chains,
    Setup,
    TemperingRound,
    anneal,
    check_finite,
    doubling,
    run_round,
    segments,
    weighted_sums,
)
from sklpf.reweighting import Pooled, between_nodes, draw_betas, log_densities, node_sums
from sklpf.uncertainty import Difference, difference, log_mean_exp, standard_error


@dataclass(frozen=True, repr=False, kw_only=True)
class ContinuousRun(RunInRounds):
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
    history : ndarray of shape (R, 3)
        log Z in nats, its standard error and the sweeps of all chains after each earlier round.
    """

    options = ("rao_blackwell", "tol")
    family = "tempering"
    first_ratio: ClassVar[None] = None  # there is no first pair of levels

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

    def read(
        self, method: str | None = None, rule: str = "continuous", rao_blackwell: bool = False
    ) -> PartitionResult:
        """Return what the run says of log Z.

        Parameters
        ----------
        method : {"thermodynamic-integration"} or None, default=None
            None is that of `RTS`.
        rule : {"continuous"}, default="continuous"
        rao_blackwell : {False}, default=False
            As of `ThermodynamicIntegration`.

        Returns
        -------
        PartitionResult

        Raises
        ------
        ValueError
            If the method can't read this run.
        """
        if method is None:
            return super().read()
        if rule != "continuous":
            raise ValueError(OTHER_RUN)
        if rao_blackwell:
            raise ValueError(
                'rao_blackwell must be False with rule="continuous": averaged over q it is RTS'
                " itself"
            )
        integral = Reading("ThermodynamicIntegration", continuous_integral, lambda *given: [])
        return read_by(self, integral, {})

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
        log_shares = chains.log_sums[:, [0, -1]]
        shares = np.exp(log_shares - log_mean_exp(log_shares, axis=0))
        return concluded(
            self,
            pooled,
            pooled,
            # equation 16
            chain_error=standard_error(shares[:, 1] - shares[:, 0]),
            first=self.first,
            crossed=_crossed(self),
            between=between_target_states(self.summaries, sums.log_sums[:, -1]),
            drift=difference(lambda keep: halves[1](keep)[-1] - halves[0](keep)[-1], N_GROUPS),
            other=local,
            by="averages",
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
    """Return the node below and the gain of some groups' states, and by interpolation between nodes
    the log density of the ladder's coordinate and d log Z / dbeta, (n,) each.
    """
    chains = np.isin(np.repeat(np.arange(run.n_groups), np.diff(run.first)), keep)
    betas = run.betas[chains].ravel()
    cell = np.clip(np.searchsorted(run.ladder, betas, side="right") - 1, 0, len(run.ladder) - 2)
    log_shares, slopes = _log_shares(run, sums, keep)
    log_p, expected = between_nodes(run.log_pseudo_prior, run.ladder, log_shares, slopes, betas)
    return cell, run.gains[chains].ravel(), log_p, expected


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
    """Mask of the chains that visited both the lowest and the highest tenth of the ladder, shape
    (M,).
    """
    at = np.interp(run.betas, run.ladder, np.linspace(0, 1, len(run.ladder)))
    return (at <= END_SHARE).any(axis=1) & (at >= 1 - END_SHARE).any(axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class RTS(SimulatedTempering):
    """Rao-Blackwellised tempered sampling (Carlson et al. 2016).

    Every chain walks up and down the ladder: after some sweeps at its level k its next level is
    drawn from

        q(k | x) = softmax_k(log r_k - log Z_k estimate + log f_k(x)).

    The averages c_k of these probabilities correct the estimates, log Z_k += log(c_k / r_k) -
    log(c_0 / r_0). A first estimate comes from an annealed pilot, which also places the chains;
    burn-in rounds of doubling length improve it. Production then runs with fixed weights and gives
    the result. Chains form 10 groups that share nothing but these weights, so that the spread
    between groups gives a valid error.

    Parameters
    ----------
    n_chains : int, default=100
        At least 10, in 10 groups.
    n_temperatures : int, default=100
        Levels K of the ladder, base and target included.
    n_sweeps : int, default=4000
        Sweeps of every chain, pilot and burn-in included; at least four fifths of them are
        production, or half with ``init="paper"``.
    tol : float or None, default=None
        Continue until the standard error (nats) is at most `tol` and no alarm is raised. Production
        doubles in rounds, each with the weights that the previous rounds have found. All rounds
        whose chains crossed the ladder are combined by the likelihood of their levels.
    max_sweeps : int or None, default=None
        Largest number of sweeps of a chain if `tol` is given; None is 50 times `n_sweeps`.
    ladder : str or array-like, default="linear"
        "linear", "power", "sigmoid", "salakhutdinov-murray" or "adaptive", or inverse temperatures.
        As in `AIS`.
    prior : "uniform", float or array-like of shape (K,), default="uniform"
        How often every level should be visited, r_k. A number c means r_k in proportion to exp(c
        beta_k), so that a positive one stays longer near the target.
    rao_blackwell : bool, default=True
        False counts the drawn levels instead of averaging their probabilities, with 0.1 added to
        every count (the paper's TS): more noise, for comparison.
    init : {"adaptive", "paper"}, default="adaptive"
        "adaptive": a pilot of a tenth of the sweeps and burn-in of at most another tenth, until
        a round has moved no log Z_k by more than 0.1 nats or three standard errors of the
        difference, and 90 % of its chains have visited both ends of the ladder. "paper": all
        estimates start at 0, then at most 10 rounds of 50 sweeps from freshly drawn levels, until
        ``max_k |r_k - c_k| < 0.1 / K`` (section 2.4). It can stop far from equilibrium.
    sweeps_per_redraw : int or None, default=None
        Sweeps between two redraws of a chain's level. None is the smallest number, at most 3, for
        which the ladder's K densities cost no more than a quarter of the sweeps, by the counted
        work ``path.ladder_cost``. Rarer redraws save time. But if chains move through levels more
        slowly than through states, the variance grows in proportion.
    continuous : bool, default=False
        Temper at continuous inverse temperatures (appendix C), on paths with log f_beta = log f_0 +
        beta (log f_1 - log f_0): `GeometricPath` and other subclasses of `TemperedPath`. The next
        beta is drawn from [0, 1], with log weights that are linear between the levels; `prior` is
        then a density by the ladder's coordinate, which rises by 1 from level to level, so that
        chains spend their time where they do on levels. Pilot and burn-in use the levels;
        production is one round, with a call from Python for each group and redraw. The path's base
        must draw points where the target has mass.
    transition, checkpoint, checks, max_evaluations, max_seconds, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_
        See `PartitionEstimator`. The error is that of equation 16 with the (co)variances of
        averages over whole chains (Student t with M - 1 degrees of freedom), or the jackknife over
        groups (t with 9) where this gives the wider interval. ``result_.log_partition_curve`` holds
        log Z at all levels. ``result_.diagnostics`` holds

        - ``chain_std_error``, ``jackknife_std_error`` and ``bias`` (equation 15, not subtracted),
          in nats;
        - ``curve_std_error`` (K,), by the jackknife, of ``result_.log_partition_curve``;
        - ``shares`` (K,), the averages c_k of the last round, its ``log_pseudo_prior`` (K,), and
          the ``overlap`` of neighbouring levels (K - 1,);
        - ``crossed``, the share of chains that visited both ends of the ladder in production, for
          every group (10,);
        - ``effective_draws``, how many independent draws an average chain was worth;
        - ``mbar_log_partition``, MBAR's log Z_target - log Z_base from the same samples;
        - ``bar_log_partition`` and ``bar_std_error``, the same difference by `BAR` from all states
          of the last round;
        - ``mbar_t``, ``drift_t``, ``largest_move`` and ``between_groups`` (the share of the target
          states' variance that lies between groups), the tests behind the alarms;
        - ``n_rounds`` of production and ``sweeps_per_redraw``;
        - ``round_log_partition``, ``round_std_error`` and ``round_sweeps``, log Z, its error by the
          jackknife and the sweeps of all chains after the pilot and each round, with the result at
          last.

        ``run_.rounds`` hold about 5000 systematically thinned vectors log f_k(x) with the levels at
        which these x were moved and the slopes d log f / d beta: 4 MB at 100 levels. Reweighting
        estimators (`BAR`, `MBAR`, `ThermodynamicIntegration`, …) read the last round of ``run_``.

    With ``continuous=True`` ``shares`` are densities at the levels by the ladder's coordinate, and
    of the diagnostics there are ``curve_std_error``, ``chain_std_error``, ``jackknife_std_error``,
    ``log_pseudo_prior``, ``crossed``, ``drift_t``, ``largest_move``, ``between_groups`` and
    ``sweeps_per_redraw``, with ``local_t`` in place of ``mbar_t``: the test whether log f_1 - log
    f_0 has the mean at each beta that its average under q says. ``run_`` holds all betas and log
    f_1 - log f_0, 16 bytes a redraw of a chain; ``ThermodynamicIntegration(rule="continuous")``
    reads it.

    Raises
    ------
    ValueError
        If a parameter can't be used; with ``continuous=True`` also if the path is of another kind,
        if its base draws points where the target is 0, or with `tol` or ``rao_blackwell=False``.

    Notes
    -----
    Not converged if production moves a log Z_k of burn-in by more than 0.1 nats, and by more than
    chance explains; if fewer than 90 % of the chains (or half of those of a group) visited both the
    lowest and the highest tenth of the levels in production; if the halves of the last round
    disagree, or MBAR does, which does not assume that the chains have spread over the ladder (each
    by more than 0.01 nats); if the path has a lower bound of log Z that does not depend on its base
    (`bound_draws`) and it is exceeded; if more than a tenth of the variance of the states at the
    target (``path.summary``, every state weighted by its probability of the target's level) lies
    between the ten groups of chains, which then are in different modes; if `tol` is not reached; or
    if counts are used (`rao_blackwell` False) and an end of the ladder was never drawn. Each test
    has a false-alarm rate of at most 0.1 %, the bound of 0.75 %. A mode that hardly any chain has
    visited raises an alarm only if the path knows the mass there (`regions`). For a wide and a
    narrow Gaussian at a distance of ten, in ten dimensions, ten chains of 3200 sweeps missed the
    narrow one in 2 of 16 runs, which counted as converged; the other 14 raised alarms.

    Chains seldom return from points at which the target is 0, and so their visits don't show which
    share of the base these points have. If at least 1 % of 1000 base draws fall on such points, log
    Z_1 / Z_0 is the mean of f_1 / f_0 over independent base draws, a quarter as many as there are
    sweeps (more for `tol`), with its error; chains begin where the target has mass, and level 1
    counts as the ladder's lower end. Not converged if the effective number of these draws is too
    small.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import RTS, BernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> rts = RTS(random_state=0).fit(rbm)
    >>> bool(rts.log_partition_std_error_ < 0.05)
    True
    """

    prior: Literal["uniform"] | float | ArrayLike = "uniform"
    rao_blackwell: bool = True
    init: Literal["adaptive", "paper"] = "adaptive"
    continuous: bool = False

    _parameter_constraints = {
        **SimulatedTempering._parameter_constraints,
        "prior": PRIOR,
        "rao_blackwell": ["boolean"],
        "init": [StrOptions({"adaptive", "paper"})],
        "continuous": ["boolean"],
    }

    _run_class = (TemperingRun, ContinuousRun)

    def _sample(self, path, seed) -> Run:
        if self.continuous:
            _check_continuous(path, self.rao_blackwell, self.tol)
        return super()._sample(path, seed)

    def _first_ratio(self, path, key):
        return (None, 0, []) if self.continuous else super()._first_ratio(path, key)

    def _initialise(
        self,
        setup,
        *,
        share: int = 10,  # the pilot takes a tenth of the sweeps, and burn-in at most another
        shortest_round: int = 8,  # redraws of the first burn-in round
        # burn-in ends when log Z_k moves by less than this many standard errors
        noise: float = 3.0,
    ) -> Start:
        if self.continuous:
            check_mass(setup)
        if self.init == "paper":
            return self._paper_rounds(setup)
        # Annealed chains give the first weights; rounds of doubling length improve them.
        n_sweeps = self.n_sweeps // share
        start = self._first_pass(setup, n_sweeps)
        lengths = doubling(n_sweeps // setup.sweeps_per_redraw, shortest_round)
        for i, n_redraws in enumerate(lengths):
            old = start.estimate
            start, last = self._burn_in(setup, start, i, n_redraws)
            has_crossed = last.crossed.mean() >= threshold("not-mixed", "crossed")
            if has_crossed and largest_move(start.estimate, old, noise) < 1:
                break
        return start

    def _paper_rounds(self, setup, *, n_sweeps: int = 50) -> Start:
        """Short rounds from base draws until visits are even, as Carlson et al. do."""
        n_levels = len(setup.log_prior)
        chains = [setup.base_chains("start", group) for group in range(setup.n_groups)]
        sums = np.zeros((1, N_GROUPS, n_levels))
        estimate = Pooled(np.zeros((1, n_levels)), sums, first_ratio=setup.first_ratio)
        start = Start(chains, estimate(ALL), estimate)
        n_redraws = max(1, min(n_sweeps, self.n_sweeps // 4) // setup.sweeps_per_redraw)
        n_rounds = min(10, self.n_sweeps // (2 * n_redraws * setup.sweeps_per_redraw))
        for i in range(n_rounds):
            fresh = setup.with_fresh_levels(start.chains, i)
            start, _ = self._burn_in(setup, start._replace(chains=fresh), i, n_redraws)
            shares = np.exp(start.estimate.log_shares(ALL)[0])
            if np.abs(np.exp(setup.log_prior) - shares).max() < TOLERANCE / n_levels:
                break
        return start

    def _burn_in(self, setup, start: Start, i: int, n_redraws: int) -> tuple[Start, TemperingRound]:
        """Return the start of production after one more round, and the round."""
        chains, last = run_round(setup, (0, i), start.chains, start.curve, n_redraws)
        estimate = pool_rounds([last], self.rao_blackwell, first_ratio=setup.first_ratio)
        start = start._replace(chains=chains, curve=estimate(ALL), estimate=estimate)
        n_sweeps = n_redraws * setup.sweeps_per_redraw
        return self._after(setup, f"burn-in {i + 1}", n_sweeps, start), last

    def _produce(self, setup, start):
        if not self.continuous:
            yield from super()._produce(setup, start)
            return
        log_pseudo_prior = setup.log_prior - start.curve
        n_redraws = (self.n_sweeps - start.used) // setup.sweeps_per_redraw
        left = temper_continuously(setup, start.chains, log_pseudo_prior, n_redraws)
        yield ContinuousRun(
            ladder=setup.path.ladder,
            sweeps={"chains": start.used + n_redraws * setup.sweeps_per_redraw},
            history=start.history,
            first=setup.first,
            log_pseudo_prior=log_pseudo_prior,
            **left,
            previous=start.estimate,
            sweeps_per_redraw=setup.sweeps_per_redraw,
        )


# -- sampling at continuous inverse temperatures
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
) -> dict[str, Any]:
    """Temper all groups, whose chains begin at levels; returns what `ContinuousRun` keeps."""
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
    return {
        "betas": np.concatenate(betas, axis=1).T.copy(),
        "gains": np.concatenate(gains, axis=1).T.copy(),
        "summaries": np.array(summaries),
    }


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


def _check_continuous(path, rao_blackwell: bool, tol: float | None) -> None:
    """Raise ValueError unless RTS with these parameters can temper a path at continuous inverse
    temperatures.
    """
    if not has(path, "ends"):
        raise ValueError(
            "continuous=True needs a path with log f_beta = log f_0 + beta (log f_1 - log f_0), a"
            f" TemperedPath or GeometricPath; {type(path).__name__} has no method ends(state): take"
            " continuous=False"
        )
    if not rao_blackwell:
        raise ValueError("rao_blackwell must be True with continuous=True: no beta is drawn twice")
    if tol is not None:
        raise ValueError(
            "tol must be None with continuous=True, where production is one round: raise n_sweeps"
        )

"""Numbers beside log Z: what they mean, for summaries and datasets, as one table."""

from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """Meaning of one of the numbers beside log Z.

    Attributes
    ----------
    meaning : str
        Its line in a summary; empty for those that have none.
    good : str
        The side that is good, "high" or "low": of an array a summary shows the worst. Empty: the
        range.
    dimensions : tuple of str
        Names of an array's dimensions; of one with fewer the last ones.
    per_chain : bool
        Whether it has a number for every chain, ladder or population, which models don't keep.
    """

    meaning: str = ""
    good: str = ""
    dimensions: tuple[str, ...] = ()
    per_chain: bool = False


# a pair is one of neighbouring levels
_LEVEL = ("level",)
_PAIR = ("pair",)
_ROUND = ("round",)
_GROUP = ("group",)
_LADDER = ("ladder",)
_POPULATION = ("population",)
_CHAIN = ("chain",)
_RUN = ("run",)
_ATTEMPT = ("attempt",)
_UPDATE = ("update",)
_OTHER = ("level", "other_level")

# by name, in the order of summaries; an estimator of one's own adds its own
DIAGNOSTICS: dict[str, Diagnostic] = {
    # of weights
    "log_weights": Diagnostic(dimensions=("start", "chain"), per_chain=True),
    "forward_log_weights": Diagnostic(dimensions=_CHAIN, per_chain=True),
    "reverse_log_weights": Diagnostic(dimensions=_CHAIN, per_chain=True),
    "log_partition_by_start": Diagnostic(dimensions=("start",), per_chain=True),
    "effective_sample_size": Diagnostic("effective sample size", "high"),
    "effective_sample_size_from_target": Diagnostic("… by the reverse chains", "high"),
    "effective_share": Diagnostic("effective sample size, share of the draws", "high"),
    "efficiency": Diagnostic("effective share of the draws", "high"),
    "pareto_shape": Diagnostic("Pareto shape of the weights' tail (heavy from 0.7)", "low"),
    "forward_log_partition": Diagnostic("log Z by the forward chains (nats)"),
    "reverse_log_partition": Diagnostic("log Z by the reverse chains (nats)"),
    "gap": Diagnostic("gap between the bounds (nats)", "low"),
    "spread": Diagnostic("standard deviation of the log estimates (nats)", "low"),
    "spread_from_target": Diagnostic("the same, by reverse chains (nats)", "low"),
    "acceptance": Diagnostic("acceptance rate of moves or draws, lowest", "high", _LEVEL),
    "n_accepted": Diagnostic("accepted draws", "high"),
    "log_bound": Diagnostic("bound of log f - log q (nats)"),
    "bound_evaluations": Diagnostic("evaluations by climbs to the bound, which prove nothing"),
    "step_sizes": Diagnostic(dimensions=_LEVEL),
    "disagreement": Diagnostic("difference between explorers (standard errors)", "low"),
    "smallest_basin": Diagnostic(
        "smallest share of starts of climbs that lead to a mode which they find with 95 %", "low"
    ),
    # of populations
    "effective_ancestors": Diagnostic("effective number of ancestors", "high"),
    "effective_ancestors_from_target": Diagnostic("… by the reverse chains", "high"),
    "between_populations": Diagnostic("share of the variance between populations", "low"),
    "log_partition_by_population": Diagnostic(dimensions=_POPULATION, per_chain=True),
    "effective_sizes": Diagnostic(dimensions=("population", "level"), per_chain=True),
    "n_resamplings": Diagnostic("resamplings of a population", "", _POPULATION, per_chain=True),
    "ancestors": Diagnostic("ancestors of a population", "", _POPULATION, per_chain=True),
    "n_learning_sweeps": Diagnostic("sweeps of the particles that looked for the target"),
    "drift": Diagnostic("drift of what the base was fitted to (standard errors)", "low"),
    # of levels
    "log_partition_curve": Diagnostic(dimensions=_LEVEL),
    "curve_std_error": Diagnostic(dimensions=_LEVEL),
    "barrier": Diagnostic("communication barrier (sum of rejection rates)", "low"),
    "between_ladders": Diagnostic("share of the variance between ladders", "low"),
    "between_groups": Diagnostic("share of the variance between groups of chains", "low"),
    "overlap": Diagnostic("overlap of what is compared, lowest (1: full)", "high", _PAIR),
    "rejection": Diagnostic("rejection rate of swaps by pairs of levels", "", _PAIR),
    "round_trips": Diagnostic("round trips of a ladder", "", _LADDER),
    "ladder_log_partitions": Diagnostic(dimensions=_LADDER, per_chain=True),
    "mbar_log_partition": Diagnostic("log Z_target - log Z_base by MBAR (nats)"),
    "bar_log_partition": Diagnostic("log Z_target - log Z_base by BAR (nats)"),
    "crossed": Diagnostic("share of chains that crossed the ladder, by group", "", _GROUP),
    "shares": Diagnostic(dimensions=_LEVEL),
    "log_pseudo_prior": Diagnostic(dimensions=_LEVEL),
    "round_log_partition": Diagnostic(dimensions=_ROUND),
    "round_std_error": Diagnostic(dimensions=_ROUND),
    "round_sweeps": Diagnostic(dimensions=_ROUND),
    "n_rounds": Diagnostic("rounds that count"),
    "adaptive_n_draws": Diagnostic(dimensions=_UPDATE),
    "adaptive_gain": Diagnostic(dimensions=_UPDATE),
    "adaptive_evenness": Diagnostic(dimensions=_UPDATE),
    "adaptive_log_partition": Diagnostic(dimensions=_UPDATE),
    # of reweighting, and of draws that others have made
    "difference": Diagnostic("difference from the sampler's log Z (nats)"),
    "overlap_matrix": Diagnostic(dimensions=_OTHER),
    "neighbour_overlap": Diagnostic(
        "overlap of neighbouring levels, lowest (0.5: full)", "high", _PAIR
    ),
    "n_states": Diagnostic("states that were read or enumerated"),
    "quadrature_error": Diagnostic("error of the quadrature (nats)"),
    "effective_draws": Diagnostic("effective number of draws, lowest", "high", _LEVEL),
    "effective_weights": Diagnostic(
        "effective number of draws that a state is seen by, worst state", "high", _LEVEL
    ),
    "shared_draws": Diagnostic(
        "effective draws that the two sets of states share which are farthest apart", "high"
    ),
    "largest_share": Diagnostic("share of one draw in the variance", "low"),
    "n_groups": Diagnostic("blocks or groups behind the error"),
    "half_log_partition": Diagnostic("log Z by each half (nats)", dimensions=("half",)),
    "check_log_partition": Diagnostic("log Z by another kind of proposal (nats)"),
    "r_hat": Diagnostic("R-hat of the chains, worst coordinate", "low"),
    "effective_terms": Diagnostic("effective number of terms of the bridge", "high"),
    "moments": Diagnostic("mean square of differences between moments (expected: 1)", "low"),
    "target_pareto_shape": Diagnostic("Pareto shape at the draws (heavy from 0.7)", "low"),
    "proposal_pareto_shape": Diagnostic(
        "Pareto shape at the proposal's draws (heavy from 0.7)", "low"
    ),
    "n_evaluations": Diagnostic("evaluations of the density"),
    "draws": Diagnostic(per_chain=True),
    # of checks
    "lower_bound": Diagnostic(
        "lower bound of log Z, with probability 95 % (Markov's inequality; nats)"
    ),
    "plain_bound": Diagnostic("lower bound of log Z by plain chains, estimated (nats)"),
    "first_try": Diagnostic("log Z of a first try, whose base did not cover all regions"),
    # of several rows, runs or attempts
    "n_distinct": Diagnostic("different rows"),
    "n_runs": Diagnostic("runs that were pooled"),
    "n_left_out": Diagnostic("runs left out, as they did not converge"),
    "run_log_partition": Diagnostic("log Z of the runs (nats)", "", _RUN),
    "run_std_error": Diagnostic(dimensions=_RUN),
    "run_weight": Diagnostic("weight of a run, largest", "low", _RUN),
    "agreement": Diagnostic("probability of differences as large as theirs", "high"),
    "between_std_dev": Diagnostic("spread of runs beyond their errors (nats)", "low"),
    "attempt_log_partition": Diagnostic(dimensions=_ATTEMPT),
    "attempt_std_error": Diagnostic(dimensions=_ATTEMPT),
    "attempt_converged": Diagnostic(dimensions=_ATTEMPT),
}

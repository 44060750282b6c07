"""All alarms, as one table: what is said, why, and what helps. A check says that one is raised; the
guide's page is printed from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sklpf._utils.warnings import Alarm
from sklpf.exploration import EFFICIENT, LARGEST_T
from sklpf.uncertainty import FALSE_ALARM, MATERIAL_DIFFERENCE, MOST_BETWEEN, Difference

if TYPE_CHECKING:
    from sklpf.programs import Draws

MATERIAL_BOUND = 0.05  # nats that a number may be below a bound or an attempt without an alarm


class AlarmKind(NamedTuple):
    """A kind of alarm: one for each thing that a user does about it.

    Attributes
    ----------
    means : str
        What was seen, and what it means.
    rule : str
        The statistic and its thresholds, with their names to fill in.
    thresholds : dict of str to float
        The numbers of the rule, by name.
    sentences : dict of str to str
        What is printed by finding, with the names of numbers and thresholds to fill in.
    remedies : dict of str to str
        What helps by family of the run, "" for all others.
    severity : {"untrusted", "imprecise"}
        "imprecise" where all that is wrong is that the error is large.
    subject : str
        What `check_draws` reports it under.
    """

    means: str
    rule: str
    thresholds: dict[str, float]
    sentences: dict[str, str]
    remedies: dict[str, str]
    severity: Literal["untrusted", "imprecise"] = "untrusted"
    subject: str = ""


_LEVELS_OR_CHAINS = "raise n_temperatures or n_chains"
_LEVELS_OR_PARTICLES = "raise n_temperatures or n_particles"
_SWEEPS_AND_PARTICLES = "raise max_sweeps and n_particles"
_MORE_DRAWS = "draw more, or at states in between"
_LONGER = "draw longer chains"
_ITS_CENTRE = ': its centre is result_.diagnostics["missed_region"]'

KINDS: dict[str, AlarmKind] = {
    "few-effective": AlarmKind(
        "A few chains, particles or draws carry nearly all the weight: chains lag behind the"
        " levels, or the base is far from the target. More levels help most, then a better base.",
        "effective sample size of n weights, in either direction, below n / 4, which counts as"
        " {fewest:g} at least and {enough:g} at most; effective number of"
        " ancestors below {ancestors:g} or two thirds of the particles, by reverse chains"
        " below half of that; {overlapping:g} chains of two directions that overlap;"
        " {covered:.0%} of a mixture's draws; {accepted} accepted draws",
        {
            "fewest": 5.0,  # effective sample size of n weights: n / 4, at least this ...
            "enough": 25.0,  # ... and at most this
            "ancestors": 100.0,  # effective number of ancestors of a population
            "ancestor_share": 2 / 3,  # of the particles, where that is less
            "overlapping": 5.0,  # chains of two directions, or half of them
            "covered": 0.1,  # share of a mixture's draws
            "accepted": 10,  # draws of rejection sampling
        },
        {
            "weights": "effective sample size {here:.1f} of {n} (at least {needed:g} needed)",
            "weights from target": "by the reverse chains the effective sample size is {there:.1f}"
            " of {n} (at least {needed:g} needed)",
            "ancestors": "effective number of ancestors {here:.1f} of {n} (at least {needed:.4g}"
            " needed)",
            "ancestors from target": "by the reverse chains the effective number of ancestors is"
            " {there:.1f} of {n} (at least {needed:.4g} needed)",
            "both directions": "{shared:.1f} of {n} chains of the two directions overlap (at least"
            " {needed:g} needed)",
            "centres": "the centres don't cover the model: the effective sample size is"
            " {share:.1%} of the mixture's draws, and they overlap with the model's by"
            " {shared:.1%} (at least {covered:.0%} of each needed)",
            "accepted": "{k} of {n} draws were accepted (at least {accepted} needed)",
            "none accepted": "none of {n} draws was accepted (so that {most:.4g} is an upper bound"
            " of log Z with probability 95 %)",
        },
        {
            "": _LEVELS_OR_CHAINS,
            "importance": "give a proposal (or a base) that is nearer to the target, or anneal"
            " with AIS",
            "reverse": "raise n_temperatures or n_chains_per_start",
            "population": _LEVELS_OR_PARTICLES,
            "adaptive": _SWEEPS_AND_PARTICLES,
            "tempering": "the others lie where the target is 0, or nearly: give a base that covers"
            " the target more closely",
            "mixture": "raise n_centres, or take another estimator",
            "rejection": "raise n_samples, or lower log_bound if you can",
            "none accepted": "lower log_bound if you can, or take another estimator",
        },
    ),
    "little-overlap": AlarmKind(
        "Levels, states, or draws and their proposal have too little in common: the stated error"
        " may be far too small.",
        "overlap of neighbouring levels below {overlap} (MBAR), or none; shared effective"
        " draws below {shared:g} (of a bridge) or {shared_of_states:g} (of states);"
        " Pareto shape above {pareto_shape:g}, of terms above {largest_term:g} times the mean;"
        " one draw makes {of_one_draw:.0%} of the"
        " variance; {weights_of_a_state:g} effective weights of a state without draws",
        {
            "overlap": 0.03,  # of neighbouring levels; equal ones have 0.5
            "shared": 25.0,  # effective draws where target and proposal overlap
            "shared_of_states": 5.0,  # effective draws of two sets of states
            "efficient": EFFICIENT,  # share of draws from an explored cover
            "pareto_shape": 0.7,
            "largest_term": 10.0,  # times the mean: no tail matters whose terms are smaller
            # standard errors that the shape must be below it: shapes of 1 are estimated low by
            # chance, and the other alarms pass just those draws that lack the largest weights
            "shape_errors": 4.0,
            "equal_weights": 0.1,  # of the draws
            "of_one_draw": 0.25,  # of the variance
            "weights_of_a_state": 25.0,  # effective ones, of a state without draws
        },
        {
            "explored": "of draws from the explored cover {share:.0%} are effective (at least"
            " {efficient:.0%} needed)",
            "weights": "weights have a tail of Pareto shape {shape:.2f} (at most {most:.2f})",
            "none": "neighbouring levels do not overlap at all",
            "none of states": "the states of neighbouring levels do not overlap at all",
            "neighbours": "neighbouring levels overlap by {least:.2g} (at least {overlap} needed)",
            "proposal": "only {n_shared:.1f} effective draws lie where target and proposal overlap"
            " (at least {shared:g} needed)",
            "two states": "states {first} and {second} share only {n_shared:.1f} effective draws"
            " (at least {shared_of_states:g} needed)",
            "sets of states": "states {some} and the others share only {n_shared:.1f} effective"
            " draws (at least {shared_of_states:g} needed)",
            "terms": "at draws of the {side} the bridge's terms have a tail of Pareto shape"
            " {shape:.2f} (at most {pareto_shape:g})",
            "one draw": "a single draw makes {share:.0%} of the variance (at most"
            " {of_one_draw:.0%})",
            "no draws, few weights": "state {state} has no draws, and those of the others are"
            " worth {weights:.1f} of its own (at least {weights_of_a_state:g} needed)",
            "no draws, heavy tail": "state {state} has no draws, and the weights of the others"
            " have a tail whose Pareto shape may be up to {shape:.2f} (at most {pareto_shape:g})",
            "no draws, equal weights": "state {state} has no draws, and the largest weights of the"
            " others are equal, so that nothing shows how far it reaches beyond them",
        },
        {
            "": "raise n_temperatures",
            "states": "draw at states in between",
            "of neighbours": "raise n_sweeps, or n_temperatures",
            "of draws": _MORE_DRAWS,
            "bridge": 'draw more, or take another proposal ("warp3", "t" or "mixture")',
            "explored": "the cover is a place to start from, and no proposal: take AdaptiveSMC",
        },
        subject="tails",
    ),
    "few-states": AlarmKind(
        "A level, state or coordinate has too few draws to be judged.",
        "{kept} kept states (LevelProcess), two groups of chains with states at"
        " every level, {effective:g} effective draws of every coordinate (of a"
        " bridge), {effective_of_a_state:g} of a state; fewer than {draws_of_one_state} draws,"
        " all of one state",
        {
            "kept": 10,  # at every level
            "effective": 100.0,  # of a coordinate
            "effective_of_a_state": 40.0,  # draws, from which blocks can be made
            # draws: if fewer are all one state they can't show that others have no mass, whose
            # share may be 3 / n
            "draws_of_one_state": 60,
            "std_error_of_one_state": 1e-3,  # nats
        },
        {
            "empty levels": "{empty} of {n} levels have no kept states",
            "groups": "{few} of {n} levels have states of fewer than two groups of chains",
            "kept": "{fewest} kept states at some level (at least {kept} needed)",
            "target": "{parts} have too few states at the target to compare",
            "ends": "no chain drew one of the ladder's ends in production",
            "effective": "only {fewest:.0f} draws are effective (at least {effective:g} needed)",
            "effective of a state": "only {typical:.0f} draws of a state are effective, by the mean"
            " of those that make the variance (at least {effective_of_a_state:g} needed)",
            "one state": "all {n} draws are the same state, so that the error is not known",
            "of an integral": "nothing tells the error of the integral, as levels have too few"
            " states",
        },
        {
            "": "raise n_sweeps",
            "population": _LEVELS_OR_PARTICLES,
            "adaptive": _SWEEPS_AND_PARTICLES,
            "states": "draw at these states (MBAR alone can do without)",
            "of draws": "draw more, or give independent groups",
            "bridge": _LONGER,
            "one state": "raise n_chains, n_particles or n_sweeps",
        },
        subject="number",
    ),
    "not-mixed": AlarmKind(
        "Chains, ladders or populations have not gone between base and target, or are in different"
        " modes. They may agree on log Z and all be wrong. If only ladders differed, by less than"
        " half of the variance, the run was made four times as long by itself, and they still"
        " differ. Four times the sweeps, a base closer to the target, or ParallelTempering help.",
        "a ladder without a round trip in the last round; fewer than"
        " {crossed:.0%} of the chains at both ends of the ladder; more than {between:.0%} of"
        " the variance at the target between groups (of populations 2 / N, if that is more); R-hat"
        " above {r_hat:g}",
        {
            "crossed": 0.9,  # share of the chains that visit both ends of the ladder
            "crossed_in_a_group": 0.45,
            "r_hat": 1.05,
            # times the share, 1 / N, that lies between populations of N independent particles
            "times_independent": 2.0,
            "between": MOST_BETWEEN,
        },
        {
            "no round trip": "{without} of {n} ladders made no round trip between base and target"
            " in the last round",
            "states": "{parts} differ in their states at the target ({share:.0%} of the variance"
            " lies between them): they have not mixed, or sit in different modes{again}",
            "log Z": "log Z differs more between ladders than between the halves of each: they have"
            " not mixed, or sit in different modes{again}",
            "ends": "{share:.0%} of the chains ({fewest:.0%} in one group) visited both ends of"
            " the ladder in production (at least {crossed:.0%} and {crossed_in_a_group:.0%}"
            " needed)",
            "R-hat": "chains disagree: R-hat is {largest:.3f} for {where} (at most {r_hat:g})",
        },
        {
            "": "raise n_sweeps",
            "population": _LEVELS_OR_PARTICLES,
            "adaptive": _SWEEPS_AND_PARTICLES,
            "bridge": "draw longer chains; if each stays in a mode of its own, take SMC or"
            " ParallelTempering",
        },
        subject="chains",
    ),
    "not-stationary": AlarmKind(
        "Chains had not reached equilibrium, or weights of levels had not settled.",
        "t of a difference beyond its {false_alarm:.1%} bound, and more than {difference}"
        " nats; production moves a"
        " log Z_k further than its noise; frozen weights off by more than {largest_off:g} nat",
        {
            "largest_off": 1.0,  # nats, of frozen weights: levels are then visited unevenly
            "false_alarm": FALSE_ALARM,
            "difference": MATERIAL_DIFFERENCE,
        },
        {
            "last round": "the halves of the last round disagree (t = {t:.1f})",
            "halves of draws": "the two halves of the draws differ by {apart:+.3f} nats",
            "halves of states": "the first and the second half of the draws differ by"
            " {value:+.2g} nats (t = {t:.1f})",
            "first block": "the first of {n} blocks of draws differs from the others by"
            " {value:+.2g} nats (t = {t:.1f})",
            "directions": "forward and reverse ratios disagree (t = {t:.1f})",
            "burn-in": "burn-in was too short (production moved a log Z_k {move:.1f} times as far"
            " as its noise does)",
            "unsettled": "weights had not settled when they were frozen (evenness {evenness:.2f})",
            "off": "the frozen weights were off by {off:.1f} nats",
        },
        {
            "": "raise n_sweeps",
            "states": "leave out more of the first draws, or draw longer",
            "bridge": _LONGER,
        },
        subject="halves",
    ),
    "readings-differ": AlarmKind(
        "Two estimates from the same run or draws differ: one of them is wrong.",
        "t of the difference beyond its {false_alarm:.1%} bound, and more than {difference} nats",
        {
            "false_alarm": FALSE_ALARM,
            "difference": MATERIAL_DIFFERENCE,
        },
        {
            "methods": "{one} differs from {other} on the same run by {value:+.2g} nats (t ="
            " {t:.1f})",
            "MBAR": "MBAR gives another value from the same samples (t = {t:.1f})",
            "averages": "log f_1 - log f_0 averaged at each beta gives another value from the same"
            " samples (t = {t:.1f})",
            "lean": "bridges that lean to draws and to proposal differ by {apart:+.3f} nats",
            "proposals": "two kinds of proposals differ by {apart:+.3f} nats from the same draws",
        },
        {
            "": "raise n_sweeps or n_temperatures",
            "of one round": "raise n_sweeps",
            "states": "check that the draws of each state are from its density",
            "bridge": "draw longer chains, and check that the draws are of this density, in the"
            " coordinates of its path",
        },
        subject="density",
    ),
    "not-of-this-density": AlarmKind(
        "Draws are not from the density that they are said to be from: every number from them is"
        " wrong, by whatever method.",
        "t of scores of all states, or chi-square of moments, beyond {false_alarm:.1%}",
        {
            "false_alarm": FALSE_ALARM,
        },
        {
            "factor": "draws agree with {factor:.3g} times the log densities of their states, and"
            " not with these, least at state {state} (t = {t:.1f})",
            "look like": "draws of state {state} look like those of {of_which} (t = {t:.1f})",
            "other density": "draws of {which} are not from the density that they are said to be"
            " from (t = {t:.1f})",
            "moments": "means and variances of the draws differ from those of the density by more"
            " than their effective number explains (mean square {square:.2g} where it should be"
            " 1)",
        },
        {
            "": "check the potential and the temperature of the simulation, or leave these draws"
            " out",
            "factor": "give energies in kT of their simulation, or log-likelihoods without the"
            " prior",
            "look like": "give draws in the order of the states, and none from elsewhere",
            "bridge": "give draws in the order of their chains, not shuffled, and draws of this"
            " density",
        },
        subject="density",
    ),
    "directions-disagree": AlarmKind(
        "Forward and reverse chains contradict each other: a negative gap shows that the starts are"
        " no samples of the model, or that log_f and the moves disagree; a wide one, with starts"
        " that are not exact, missed modes or a coarse ladder.",
        "gap below 0 at {false_alarm:.1%}, one-sided; above {wide_gap:g} of its standard errors",
        {
            "wide_gap": 4.0,  # standard errors
            "false_alarm": FALSE_ALARM,
        },
        {
            "negative": "the gap is negative ({gap:.3f} +- {error:.3f} nats)",
            "wide": "both directions disagree by {gap:.3f} +- {error:.3f} nats",
        },
        {
            "": "the starts are not samples of the model; sample longer or give others",
            "exact": "log_f disagrees with the moves or with the exact samples; check the path and"
            " the transition",
            "wide": "the ladder is too coarse or the forward chains miss modes that the starts"
            " are in; raise n_temperatures",
        },
    ),
    "search-not-over": AlarmKind(
        "Particles had not found all of the target: thin arms, the neck of a funnel, or ever more"
        " modes. Other coordinates help most, then max_sweeps times 4.",
        "they stopped before beta = 1; a mean or variance moved by more than {most_drift:g}"
        " standard errors; the last walks or climbs still found more; explorers that differ by"
        " {explorers:g} standard errors",
        {
            "most_drift": 5.0,  # standard errors
            "explorers": LARGEST_T,  # standard errors
        },
        {
            "stopped": "the particles stopped at inverse temperature {beta:.2g}",
            "spread": "the particles to which the base was fitted still spread: a mean or a"
            " variance has moved by {drift:.1f} standard errors",
            "found more": "walks and climbs from the particles still found more of the target at"
            " their end",
            "explorers": "after {n} evaluations {why}",
            "differ": "draws from the covers of two explorers differ by {t:.1f} standard errors",
        },
        {
            "": _SWEEPS_AND_PARTICLES,
            "stopped": "raise max_sweeps",
            "explored": "raise max_evaluations, or take AdaptiveSMC",
            "explored in time": "raise max_seconds, or take AdaptiveSMC",
        },
    ),
    "missed-region": AlarmKind(
        "log Z is too low by the mass of a region that the run missed, or visited too rarely. Look"
        " at its centre: is it like your data? What helps depends on the path. Mostly, fit"
        " path.with_regions(run_.regions), whose base covers it. For rows under a decoder leave out"
        " the encoder, whose density misses it, or give one whose density covers it; without an"
        " encoder raise n_chains. Where the library chose the base, a second try starts by itself,"
        ' from a base that covers the region; result_.diagnostics["first_try"] is the first result.'
        " If both fail, more sweeps seldom help: take another estimator, or give a base, such as"
        " draws of the posterior.",
        "a region (or several small ones together) has a share of the draws that is as small in at"
        " most 1 % of right runs, and moves log Z by more than its error and by {nats} nats",
        {
            "nats": 0.015,  # of log Z, or as a share of Z, which is as large
            "hardly_seen": 0.25,  # of the draws that a region or a mode should have by its mass
        },
        {
            "one": "a region of the target holds {mass:.2g} (+- {error:.1g}) times the estimate of"
            " Z, and {share:.2g} of the run's draws",
            "several": "{n} regions of the target together hold {mass:.2g} (+- {error:.1g}) times"
            " the estimate of Z, and {share:.2g} of the run's draws",
            "second try failed": "a second try, whose base covers known regions, failed: {error}",
            "second try": "a second try, whose base covers known regions, gave {again}, the first"
            " one {first}, and neither can be trusted",
        },
        {
            "": f"{{path_remedy}}{_ITS_CENTRE}",
            "bridge": f"give draws that cover it{_ITS_CENTRE}",
            "adaptive": f"raise n_particles, or give a base that covers it{_ITS_CENTRE}",
            "after a second try": f"give a base that covers it{_ITS_CENTRE}",
            "second try": "take {other}, or give {base}",
        },
        subject="modes",
    ),
    "below-the-bound": AlarmKind(
        "log Z is below a lower bound that does not depend on where chains started, or"
        " probabilities of distinct rows sum to more than 1: a part of the model was missed. For an"
        " RBM, give the mean of its training data as base, or take ParallelTempering.",
        "bound above the estimate by {bound_errors:g} standard errors and {nats} nats;"
        " sum above 1 by {sum_errors:g} standard errors and {rounding} nats",
        {
            # standard errors by which a bound is above the estimate: in at most 0.13 % of right
            # runs, 0.75 % if both errors come from ten groups
            "bound_errors": 3.0,
            "rounding": 0.01,  # nats of rounding by which probabilities may exceed 1 besides
            "sum_errors": 4.0,  # standard errors by which probabilities sum to more than 1
            "nats": MATERIAL_BOUND,
        },
        {
            "bound": "chains from random starts show that log Z is at least {mean:.2f} +-"
            " {error:.2f}",
            "probabilities": "the probabilities of {n} distinct rows sum to exp({log_sum:.3g} +-"
            " {error:.2g}), more than 1",
        },
        {
            "": "the base or the moves miss a part of the model; give another base",
            "probabilities": "the estimator missed a part of the model; raise n_sweeps, or give"
            " another base",
        },
    ),
    "runs-disagree": AlarmKind(
        "Independent runs differ by more than their errors: compare what their draws visited.",
        "p below {probability} and more than {difference} nats; an attempt that is"
        " higher by {attempt_errors:g} standard errors and"
        " {nats} nats",
        {
            "probability": 0.01,  # probability of differences as large
            # standard errors by which an earlier attempt is higher: 3e-5 by chance each
            "attempt_errors": 4.0,
            "attempt_std_error": 1.0,  # nats, of an attempt that a later one must not be below
            "difference": MATERIAL_DIFFERENCE,
            "nats": MATERIAL_BOUND,
        },
        {
            "pool": "independent runs differ by more than their errors (from {low:.2f} to"
            " {high:.2f}, p = {p:.1g})",
            "attempts": "{method} before found {value:.2f} +- {error:.2g}, which is more",
        },
        {
            "": "some have missed a part of the target; find out which, and run these longer",
            "attempts": "look for a mode that is missed",
        },
    ),
    "runs-not-converged": AlarmKind(
        "Runs that this number is made of have alarms of their own.",
        "more than {most_flagged:.0%} of the runs of a pool; the run that made the draws",
        {
            "most_flagged": 0.05,  # of runs that are pooled
        },
        {
            "pool": "{flagged} of {n} runs did not converge ({reason})",
            "draws": "the {method} run that made the draws did not converge ({reason})",
        },
        {
            "": "do what their own alarms ask for",
            "draws": "take draws of a longer run that converges",
        },
        subject="chains",
    ),
    "tol-missed": AlarmKind(
        "The longest run allowed did not reach the error that was asked for. Without other alarms"
        " the number can be used with the error that it has.",
        "standard error above {noise:g} tol; certain bounds farther apart than tol",
        {
            "noise": 1.1,  # by which a standard error of about a hundred chains is itself uncertain
        },
        {
            "error": "the standard error {error:.2g} is above tol",
            "most levels": "the standard error {error:.2g} with {n} levels is above tol",
            "most particles": "the standard error {error:.2g} with the {n:,} particles that"
            ' "auto" takes at most is above tol',
            "bounds": "after {n} points the bounds differ by {apart:.2g}",
        },
        {
            "": "raise n_sweeps",
            "adaptive": "raise max_sweeps",
            "explored": "raise n_samples and max_evaluations",
            "tempering": "raise max_sweeps",
            "bounds": "raise tol",
            "chains": "raise n_chains",
            "levels": "raise n_temperatures",
            "filters": "raise n_filters, or give n_particles",
            "attempts": "give more estimators, or raise tol",
            "late attempts": "raise the budget, or raise tol",
        },
        severity="imprecise",
    ),
    "budget-spent": AlarmKind(
        "All evaluations or seconds that were allowed are spent. The number, if there is one, comes"
        " from the work that was done by then, and some of its checks are missing.",
        "max_evaluations, max_seconds",
        {},
        {
            "stopped": "{spent} were spent before the run and its checks were over",
            "nothing yet": "{spent} were spent before there was an estimate",
        },
        {"": "raise {parameter}{needed}"},
    ),
    "no-usable-estimate": AlarmKind(
        "The error is so large that the number says nothing. Look at the base first: the mode with"
        " its curvature, the prior, or a Gaussian fitted to draws.",
        "standard error above {std_error:g} nats; log estimates of filters that spread by more"
        " than {spread:g} nats",
        {
            "std_error": 10.0,  # nats
            # nats, of filters' log estimates: beyond it they are low by 0.2 nats and more, and
            # their error is a guess
            "spread": 2.0,
        },
        {
            "error": "there is no usable estimate: the standard error is {error:.2g} nats",
            "filters": "the filters' log estimates spread by {here:.1f} nats, more than {spread:g}",
            "on the way": "the number comes from particles at inverse temperature {beta:.2g}, by"
            " which the run is planned, and its error is unknown",
            "at the base": "the number comes from a few draws of the base, and its error is"
            " unknown",
        },
        {
            "": "give a base that is closer to the target, or many more levels; else take"
            " ParallelTempering",
            "exchange": "give a base that is closer to the target, or many more levels",
            "adaptive": "raise max_sweeps and n_particles; else take ParallelTempering",
            "states": _MORE_DRAWS,
            "filters": "raise n_particles or lower tol",
            "stopped": "raise {parameter}",
        },
        severity="imprecise",
        subject="density",
    ),
    "quadrature-error": AlarmKind(
        "The error of ThermodynamicIntegration from replacing an integral by a sum over levels is"
        ' large; the statement is then "approximate". rule="corrected" has the least, BAR none.',
        "more than {share:g} of the standard error, and {noise:g} standard errors of its own",
        {
            "share": 0.5,  # of the standard error that the error of quadrature may be
            "noise": 3.0,  # standard errors of it that are no error of quadrature
        },
        {
            "large": "the integral over {n} levels is {error:+.2g} nats off for its standard error"
            " of {std_error:.2g}",
        },
        {
            "": "{better_rule}raise n_temperatures",
            "states": "{better_rule}draw at states in between",
        },
    ),
    "heavy-tails": AlarmKind(
        "The target has mass where the base has next to none, far out, where it grows, is flat or"
        " falls only as r^-s, or at a boundary: weights can't show what the base leaves out, and"
        " chains hardly find it. The tail index of a product of experts is small if many of its"
        " filters are nearly dependent: train it with more rows, or with more experts than"
        " features.",
        "the target's exponent along a ray is smaller than the base's by {exponent:g};"
        " weights at a boundary with a power law of index below {weight_index:g}; tail index"
        " of a product of experts below 1",
        {
            # by how much the target's exponent must be smaller; 0.5 costs a t with 1 to 2
            # degrees of freedom coverage (0.76 to 0.88)
            "exponent": 0.25,
            # of the power law of weights at a boundary; from 1.5 (x^-0.67 in a uniform base)
            # down errors begin
            "weight_index": 1.6,
        },
        {
            "tails": "the target's tails are heavier than the base's: far out along a ray the"
            " target's density {falls} with the distance r, and weights can't show what the base"
            " leaves out",
            "pole": "the target has a pole at the boundary of its support, where x[{axis}] is"
            " {where:.4g}: it rises as t^{power:.2g} with the distance t, much more than the base,"
            " and chains hardly find this mass",
            "product": "tails fall so slowly that chains hardly come back from them: the tail index"
            " of the product is {index} and must be at least {needed:g} for sampling",
            "dependent filters": "tails fall so slowly that chains hardly come back from them:"
            " filters are nearly dependent: up to {radius:g} scales the tail index of the product"
            " is {index:.3g} and must be at least {needed:g} there",
        },
        {
            "": "give a StudentT base of {df} degrees of freedom",
            "bounded": "give as base a list of scipy.stats distributions within bounds, such as"
            " lomax(c, loc=low) with c {df}; or integrate over the log of the distance from a"
            " bound",
            "pole": "integrate over the log of this distance, or the log odds between two sides; or"
            " give a base that rises as the target, such as a list of scipy.stats.beta",
            "product": "raise the smallest exponents_",
        },
    ),
    "not-a-number": AlarmKind(
        "The density is NaN or raises an error where it has mass, and this mass is lost.",
        "more than {share:.0%} of the points that are tried near the mass",
        {
            # of the points that are tried near the mass: 0.14 of them where a side of a normal
            # density with 2 % of the mass is NaN, 0.07 where one with 0.1 % is
            "share": 0.1,
        },
        {
            "points": "log_density is NaN or fails at {percent:.2g} % of the points that were tried"
            " near its mass, which count as points of density 0"
        },
        {
            "": "mend the function there, or let it give -inf",
            "prior transform": "widen a prior from whose median the posterior is more than 8.2"
            " standard deviations away, in normal coordinates, or mend log_likelihood",
        },
    ),
    "rounding": AlarmKind(
        "Rounding in float64 changes the log density: take a lower learning rate, or subtract a"
        " constant.",
        "more than {nats} nats",
        {
            "nats": 0.05,  # nats
        },
        {
            "log f": "parameters or a constant are so large that log_f is rounded by {rounding:.2g}"
            " nats"
        },
        {"": "rescale them, or take the constant off"},
        subject="density",
    ),
    "inexact-starts": AlarmKind(
        "Reverse chains bound log Z from above only from exact samples of the model: others give a"
        " number that is no estimate.",
        "starts that were given, or drawn by tempering",
        {},
        {
            "of a bound": "the starts are not exact samples of the model, so that the number is"
            " neither a bound nor an estimate",
            "of an estimate": "the starts are not exact samples of the model, so that the number is"
            " no estimate",
        },
        {"": ""},
    ),
    "moves-of-another-row": AlarmKind(
        "Moves are tuned once, on a row that the model simulates, and do not suit this row.",
        "mean acceptance of {moves} moves below half of its target, or so close to 1",
        {
            "moves": 100,  # of all chains, over which acceptance is averaged
        },
        {
            "acceptance": "moves that were tuned on another row are accepted with a mean"
            " probability of {rate:.3f} here"
        },
        {"": "fit(path.row(t)) tunes them on row t itself"},
    ),
    "divergences": AlarmKind(
        "The sampler that made the draws could not follow the density somewhere.",
        "any",
        {},
        {"transitions": "the sampler reports {n} divergent transitions"},
        {"": "the draws miss narrow parts of the posterior; sample it in other coordinates"},
        subject="chains",
    ),
    "repeated-draws": AlarmKind(
        "Draws occur several times, not next to each other, so that halves are not independent.",
        "fewer than {apart:g} of the draws of two halves that share none",
        {
            "apart": 0.9,  # of the draws of two halves, if these share none: 1
        },
        {
            "halves": "draws are repeated without being neighbours, so that only {n:.0f} count, and"
            " a proposal meets those that it was fitted to"
        },
        {"": "give each once, in the order of the chains"},
        subject="number",
    ),
}


def raised(
    kind: str, sentence: str, family: str = "", remedy: str | None = None, **numbers: Any
) -> Alarm:
    """Return an alarm with its numbers filled in.

    Parameters
    ----------
    kind : str
        A row of `KINDS`.
    sentence : str
        The finding, a key of its sentences.
    family : str, default=""
        Key of its remedies: of the run's family, or of the finding.
    remedy : str or None, default=None
        A remedy of its own.
    **numbers : object
        What the sentence, and the remedy, name beside the row's thresholds.

    Returns
    -------
    Alarm
    """
    row = KINDS[kind]
    if remedy is None:
        remedy = row.remedies.get(family, row.remedies[""]).format(**numbers)
    seen = row.sentences[sentence].format(**(row.thresholds | numbers))
    return Alarm(kind, seen, remedy, row.severity)


def threshold(kind: str, name: str) -> float:
    """Return a number of a kind's rule."""
    return KINDS[kind].thresholds[name]


def subject_of(alarm: Alarm) -> str:
    """Return what `check_draws` reports an alarm under, "" for those of runs alone."""
    row = KINDS.get(alarm.kind)
    return row.subject if row else ""


def is_imprecise(alarms: Iterable[Alarm]) -> bool:
    """Return whether all that speaks against a number is that its error is large."""
    severities = {alarm.severity for alarm in alarms}
    return severities == {"imprecise"}


def has_not_mixed(alarms: Iterable[Alarm]) -> bool:
    """Return whether chains did not mix, so that another base may help."""
    return any(alarm.kind == "not-mixed" for alarm in alarms)


def page() -> str:
    """Return the guide's paragraphs: of every kind the sentences, meaning, rule and remedies."""
    parts = []
    for kind, row in KINDS.items():
        rule = row.rule.format(**row.thresholds)
        remedies = [
            f"*{family}:* {remedy}".removeprefix("*:* ") for family, remedy in row.remedies.items()
        ]
        parts += [
            f"### {kind}",
            *(f"> {sentence}" for sentence in row.sentences.values()),
            f"{row.means} Raised at: {rule}. Severity: {row.severity}.",
            f"**Do:** {'; '.join(remedies)}." if any(row.remedies.values()) else "",
        ]
    text = "\n\n".join(re.sub(r"(\{[^{}]*\})+", "…", part) for part in parts if part)
    return re.sub(" ?%", " %", re.sub(r"…(?=\w)", "… ", text))


# ---- alarms that a run shows by itself: of its weights, its error, and its states at the target
def modes_alarms(
    parts: str, share: float, family: str = "", most: float = MOST_BETWEEN, again: str = ""
) -> list[Alarm]:
    """An alarm if a larger share of the variance of the states at the target than `most` lies
    between the parts; `again` says when they did before.
    """
    if share <= most:
        return []
    if np.isnan(share):
        return [raised("few-states", "target", family, parts=parts)]
    return [raised("not-mixed", "states", family, parts=parts, share=share, again=again)]


def halves_alarms(drift: Difference, n_groups: int) -> list[Alarm]:
    """An alarm if the halves of the last round differ by more than chance."""
    if not drift.alarms(n_groups):
        return []
    return [raised("not-stationary", "last round", t=drift.t)]


def single_state_alarms(draws: Draws | None, std_error: float) -> list[Alarm]:
    """An alarm if few draws are all of them one state, and have one weight."""
    if draws is None or std_error > threshold("few-states", "std_error_of_one_state"):
        return []
    if len(draws.points) >= threshold("few-states", "draws_of_one_state"):
        return []
    if len(draws.points) < 2 or np.any(draws.points != draws.points[0]):
        return []
    return [raised("few-states", "one state", "one state", n=len(draws.points))]


def rounding_alarms(log_partition: float, rounding: float = 0.0) -> tuple[Alarm, ...]:
    """An alarm if log f is rounded by too many nats: by as many as its path says, and at least by
    as many as a number of the size of log Z.
    """
    if np.isfinite(log_partition):
        rounding = max(rounding, float(np.spacing(abs(log_partition))))
    if rounding <= threshold("rounding", "nats"):
        return ()
    return (raised("rounding", "log f", rounding=rounding),)


def misses_tol(std_error: float, tol: float | None) -> bool:
    """Return whether the standard error is above `tol` by more than its own noise."""
    return tol is not None and bool(std_error > threshold("tol-missed", "noise") * tol)


def tol_alarms(std_error: float, tol: float | None, family: str = "") -> list[Alarm]:
    """An alarm if the standard error is above `tol` by more than its own noise."""
    if not misses_tol(std_error, tol):
        return []
    return [raised("tol-missed", "error", family, error=std_error)]


def weight_alarms(n: int, diagnostics: dict[str, Any], family: str) -> list[Alarm]:
    """An alarm if the effective sample size of n weights is too small, by themselves or by the
    reverse chains.
    """
    here = diagnostics["effective_sample_size"]
    there = diagnostics.get("effective_sample_size_from_target", n)
    needed = enough_effective(n)
    if here < needed:
        return [raised("few-effective", "weights", family, here=here, n=n, needed=needed)]
    if there < needed:
        return [
            raised("few-effective", "weights from target", family, there=there, n=n, needed=needed)
        ]
    return []


def enough_effective(n: int) -> float:
    """The smallest effective sample size of n weights that is enough."""
    enough = min(threshold("few-effective", "enough"), n / 4)
    return max(threshold("few-effective", "fewest"), enough)

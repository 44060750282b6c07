"""Alarms are raised where the table says: runs whose statistic lies three tenths within and beyond
the threshold are read.
"""

from dataclasses import replace

import numpy as np
import pytest
from convergence import quietly
from known_problems import make_rbm_problem
from scipy.special import logit

from sklpf import (
    AIS,
    BDMC,
    SMC,
    BridgeSampling,
    Gaussian,
    GeometricPath,
    LeftToRight,
    ParallelTempering,
)
from sklpf.models import LDAPath
from sklpf.partition import Draws, LevelProcess, RejectionSampling

RBM = make_rbm_problem("easy").path
LINE = GeometricPath(lambda x: -0.5 * x[:, 0] ** 2, base=Gaussian([0.0], 2.0))
DOCUMENT = LDAPath([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], 0.3, [[4, 1, 3]]).row(0)
DRAWS = np.random.default_rng(0).normal(size=(4, 200, 2))
NORMAL = np.random.default_rng(1).standard_normal(400)
NORMAL = (NORMAL - NORMAL.mean()) / NORMAL.std(ddof=1)


@pytest.fixture(scope="module")
def runs():
    bridge = BridgeSampling("normal", checks=False, random_state=0)
    fitted = [
        quietly(AIS(100, 50, random_state=0), RBM),
        quietly(SMC(20, 20, 3, random_state=0), RBM),
        quietly(BDMC(100, 50, random_state=0), RBM),
        quietly(ParallelTempering(2, 4, 256, random_state=0), RBM),
        quietly(RejectionSampling(2.0, 100, random_state=0), LINE),
        quietly(LeftToRight(5, random_state=0), DOCUMENT),
        quietly(bridge, lambda x: -0.5 * np.sum(x**2, axis=1), draws=DRAWS),
    ]
    return {type(each).__name__: each.run_ for each in fitted}


def concluded(run, std_error):
    return run.conclude(0.0, std_error, alarms=[], diagnostics={})


def of_one_state(run, n, std_error):
    state = np.zeros((n, 2))
    draws = Draws(state, np.zeros(n), np.arange(n))
    return concluded(replace(run, draws=draws), std_error)


def weights(run, n_effective, n=400):
    """As many equal weights, and others that are nothing beside them."""
    forward = np.where(np.arange(n) < n_effective, 0.0, -60.0)
    return replace(run, forward=forward, reverse=run.reverse[:0]).read()


def ancestors(run, n_effective):
    """As many equal weights of the twenty of each population."""
    log_weights = np.where(np.arange(20) < n_effective, 0.0, -60.0) * np.ones((3, 1))
    return replace(run, log_weights=log_weights, reverse=run.reverse[:0]).read()


def bound_above(run, n_errors):
    """A lower bound above the run's number by joint standard errors."""
    read = run.read()
    found = run.findings["bound"]
    spread = read.std_error * np.sqrt(len(NORMAL))
    error = np.sqrt(2) * read.std_error
    estimates = read.log_partition + n_errors * error + spread * NORMAL
    findings = {**run.findings, "bound": replace(found, log_estimates=estimates)}
    return replace(run, findings=findings).read()


def gap_of(run, n_errors):
    """Reverse log weights this many standard errors from the negative forward ones."""
    forward = 0.1 * NORMAL[:100]
    error = np.sqrt(2) * forward.std(ddof=1) / 10
    reverse = -forward[:, np.newaxis] - n_errors * error
    return replace(run, forward=forward, reverse=reverse, starts="tempered").read()


def sharing(run, n):
    """As many weights of each direction that the other might have had too."""
    weights = np.where(np.arange(100) < n, 0.0, -60.0)
    return replace(run, forward=weights, reverse=weights[:, np.newaxis]).read()


def apart(run, share):
    """Three populations of five particles, with this share of the variance between their means."""
    summaries = np.ones((3, 2, 1))
    summaries[:, 0, 0] = np.sqrt(share) * np.array([-1, 0, 1])
    arrays = {"log_weights": np.zeros((3, 5)), "summaries": summaries}
    return replace(run, reverse=run.reverse[:0], **arrays).read()


def bridged(run, at_proposal, at_target):
    at_target = at_target.reshape(4, -1)
    arrays = {"at_proposal": at_proposal, "at_target": at_target, "at_fitted": at_target}
    both = [each._replace(**arrays) for each in run.bridges]
    return replace(run, bridges=both, checks=both).read()


def overlapping(run, n):
    """k of 400 draws of each side where the other has mass: k effective ones, of which k / 400."""
    apart = np.where(np.arange(400) < np.sqrt(400 * n), 0.0, -60.0)
    return bridged(run, apart, -np.random.default_rng(0).permutation(apart))


def heavy(run, largest):
    """Terms with a tail of Pareto shape 0.9, of which the largest can be this many times the mean.

    At draws of the proposal these are probabilities to be of the target.
    """
    tail = (np.arange(1000) / 1000 + 5e-4) ** -0.9 - 1
    probability = np.r_[np.full(3000, 0.0), tail / tail.max() / 3]
    probability += 1 / largest - probability.mean()
    at_target = np.full(4000, logit(1 - 1 / largest))
    return bridged(run, logit(probability), at_target)


def kept(run, n):
    """As many states at each of four levels of two ladders."""
    names = "slopes", "log_q", "vector_levels"
    fewer = {name: getattr(run.last, name)[:, : 2 * n] for name in names}
    return quietly(LevelProcess(), replace(run, last=replace(run.last, **fewer))).result_


CASES = {  # how a run is read at a value of the statistic; the kind, and values within and beyond
    "standard error": ("AIS", concluded, "no-usable-estimate", 7, 13),
    "rounding": (
        "AIS",
        lambda run, r: replace(run, log_f_rounding=r).read(),
        "rounding",
        0.03,
        0.07,
    ),
    "error of one state": (
        "AIS",
        lambda run, error: of_one_state(run, 20, error),
        "few-states",
        1.3e-3,
        0.7e-3,
    ),
    "draws of one state": ("AIS", lambda run, n: of_one_state(run, n, 1e-6), "few-states", 75, 45),
    "effective": ("AIS", weights, "few-effective", 32, 18),
    "effective, of few": ("AIS", lambda run, m: weights(run, m, 12), "few-effective", 6, 4),
    "ancestors, two thirds": ("SMC", ancestors, "few-effective", 15, 9),
    "bound": ("AIS", bound_above, "below-the-bound", 2.1, 3.9),
    "gap": ("BDMC", gap_of, "directions-disagree", 2.8, 5.2),
    "both directions": ("BDMC", sharing, "few-effective", 7, 3),
    "accepted": (
        "RejectionSampling",
        lambda run, k: replace(run, n_accepted=k).read(),
        "few-effective",
        13,
        7,
    ),
    "filters": (
        "LeftToRight",
        lambda run, spread: replace(run, log_estimates=spread * NORMAL).read(),
        "no-usable-estimate",
        1.4,
        2.6,
    ),
    "R-hat": (
        "BridgeSampling",
        lambda run, r: replace(run, r_hat=np.full_like(run.r_hat, r)).read(),
        "not-mixed",
        1.035,
        1.065,
    ),
    "between populations": ("SMC", apart, "not-mixed", 0.28, 0.52),
    "shared draws": ("BridgeSampling", overlapping, "little-overlap", 33, 17),
    "largest term": ("BridgeSampling", heavy, "little-overlap", 7, 13),
    "kept states": ("ParallelTempering", kept, "few-states", 13, 7),
    "effective draws": (
        "BridgeSampling",
        lambda run, n: replace(run, effective_draws=np.full(3, float(n))).read(),
        "few-states",
        130,
        70,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_alarm_is_raised_on_one_side_of_its_threshold(name, runs):
    estimator, read, kind, within, beyond = CASES[name]
    for value, expected in ((within, False), (beyond, True)):
        kinds = [alarm.kind for alarm in read(runs[estimator], value).alarms]
        assert (kind in kinds) == expected, (value, kinds)

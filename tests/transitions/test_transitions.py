"""Moves are checked for invariance; the checks themselves, with moves that are wrong."""

import numpy as np
import pytest
from scipy.special import logsumexp

from sklpf._random import Stream, stream_key
from sklpf.models import RBMPath
from sklpf.paths import Path
from sklpf.testing import check_transition, hidden_mode_problem, make_rbm_problem
from sklpf.transitions import Gibbs, Metropolis, Transition

LADDER = np.linspace(0, 0.5, 6)
VARIABLES = {"marginal": lambda state: state.v, "joint": lambda state: np.concatenate([state.v, state.h], axis=1)}


class ManyStates(Path):
    """Five states with given log densities; the proposal goes to the right more often than to the left."""

    base_log_partition = float(np.log(5))
    ladder = np.array([0.0, 0.5, 1.0])
    log_density = np.array([0.3, -1.0, 1.5, 0.0, -0.5])

    def log_f(self, state, levels):
        return self.ladder[levels] * self.log_density[state]

    def sample_base(self, n, stream):
        return stream.generator().integers(5, size=n)

    def propose(self, state, levels, stream):
        right = stream.generator().random(len(state)) < 0.75
        log_ratio = np.where(right, np.log(0.25 / 0.75), np.log(0.75 / 0.25))
        return (state + np.where(right, 1, -1)) % 5, log_ratio


@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize("kind", ["easy", "digits"])
def test_gibbs_leaves_every_level_of_an_rbm_invariant(kind, weights):
    path = make_rbm_problem(kind, weights=weights).path.with_ladder(LADDER)
    check_transition(path, Gibbs(), variables=VARIABLES[weights])  # false alarm 1e-4


def test_gibbs_leaves_the_hidden_mode_path_invariant():
    check_transition(hidden_mode_problem(8, 0.9).path.with_ladder(np.linspace(0, 1, 5)), Gibbs())


def test_metropolis_with_an_asymmetric_proposal_is_invariant():
    check_transition(ManyStates(), Metropolis(), n=5000)


def test_metropolis_samples_its_target():
    path, n = ManyStates(), 20_000
    stream = Stream(stream_key(0))
    state, levels = path.sample_base(n, stream), np.full(n, 2)
    for t in range(1, 60):
        state = Metropolis().move(path, state, levels, stream.at(t))
    probability = np.exp(path.log_density - logsumexp(path.log_density))
    z = (np.bincount(state, minlength=5) / n - probability) / np.sqrt(probability * (1 - probability) / n)
    assert np.abs(z).max() < 4.8  # 5 tests: false alarm 8e-6


# ---- what the check must find ----------------------------------------------------------------------
class WrongLevel(Gibbs):
    def move(self, path, state, levels, stream, reverse=False):
        return super().move(path, state, np.minimum(levels + 1, len(path.ladder) - 1), stream, reverse)


class NeverReversed(Gibbs):
    def move(self, path, state, levels, stream, reverse=False):
        return super().move(path, state, levels, stream)


class NoCorrection(Metropolis):
    def move(self, path, state, levels, stream, reverse=False):
        uncorrected = type("Uncorrected", (type(path),), {"propose": self.propose})()
        return super().move(uncorrected, state, levels, stream)

    @staticmethod
    def propose(path, state, levels, stream):
        proposal, _ = ManyStates.propose(path, state, levels, stream)
        return proposal, np.zeros(len(state))


class AlwaysAccepts(Metropolis):
    def move(self, path, state, levels, stream, reverse=False):
        return path.propose(state, levels, stream)[0]


class Stays(Gibbs):
    def move(self, path, state, levels, stream, reverse=False):
        return state


class InPlace(Gibbs):
    def move(self, path, state, levels, stream, reverse=False):
        state.v[:] = super().move(path, state, levels, stream).v
        return state


class OwnRandomness(Gibbs):
    def move(self, path, state, levels, stream, reverse=False):
        return super().move(path, state, levels, stream.at(int(np.random.default_rng().integers(2**30))))


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (WrongLevel(), "does not leave level"),
        (Stays(), "changed no chain"),
        (InPlace(), "must not change the state"),
        (OwnRandomness(), "must depend on its stream alone"),
    ],
)
def test_check_transition_finds_wrong_gibbs_moves(transition, message):
    path = make_rbm_problem("digits", weights="joint").path.with_ladder(LADDER)
    with pytest.raises(AssertionError, match=message):
        check_transition(path, transition, variables=VARIABLES["joint"])


def test_check_transition_finds_a_wrong_reversal():
    rng = np.random.default_rng(0)
    parameters = 2 * rng.normal(size=(2, 4)), rng.normal(size=4), rng.normal(size=2), np.full(4, 0.5)
    path = RBMPath(*parameters, ladder=np.linspace(0, 1, 5), weights="joint")
    check_transition(path, Gibbs(), variables=VARIABLES["joint"])
    with pytest.raises(AssertionError, match="reversal is wrong"):
        check_transition(path, NeverReversed(), variables=VARIABLES["joint"])
    path = hidden_mode_problem(6, 0.9).path.with_ladder(np.linspace(0, 1, 5))
    with pytest.raises(AssertionError, match="reversal is wrong"):
        check_transition(path, NeverReversed(), n=20_000)


@pytest.mark.parametrize("transition", [NoCorrection(), AlwaysAccepts()])
def test_check_transition_finds_wrong_metropolis_moves(transition):
    with pytest.raises(AssertionError, match="does not leave level"):
        check_transition(ManyStates(), transition, n=5000)


def test_check_transition_refuses_a_ladder_without_overlap():
    path = make_rbm_problem("hard").path.with_ladder([0, 1])
    with pytest.raises(ValueError, match="weights count: check a ladder with more levels"):
        check_transition(path, Gibbs(), variables=VARIABLES["marginal"])


# ---- programs ---------------------------------------------------------------------------------------
class Recorder(Transition):
    """Writes down what it is asked for, and adds 1 to every chain."""

    def __init__(self):
        self.calls = []

    def move(self, path, state, levels, stream, reverse=False):
        self.calls.append((stream.step, int(levels[0]), reverse))
        return state + 1


class Linear(Path):
    """log f_k(x) = k x."""

    ladder = np.array([0.0, 0.25, 0.5, 1.0])

    def log_f(self, state, levels):
        return levels * state


def test_annealing_weighs_before_it_moves_and_reverse_annealing_after():
    levels = np.repeat(np.arange(4)[:, np.newaxis], 2, axis=1)
    start, stream = np.array([1.0, 10.0]), Stream((1, 2), step=7)
    forward = Recorder()
    state, log_weights = forward.anneal(Linear(), start, levels, stream)
    # x at levels 0, 1, 2: x, x + 1, x + 2; each step adds it once
    np.testing.assert_array_equal(log_weights, 3 * start + 3)
    np.testing.assert_array_equal(state, start + 3)
    assert forward.calls == [(7, 1, False), (8, 2, False), (9, 3, False)]
    backward = Recorder()
    state, log_weights = backward.anneal(Linear(), start, levels[::-1], stream, reverse=True)
    np.testing.assert_array_equal(log_weights, -(3 * start + 6))
    np.testing.assert_array_equal(state, start + 3)
    assert backward.calls == [(7, 3, True), (8, 2, True), (9, 1, True)]


@pytest.mark.parametrize(("transition", "method"), [(Gibbs(), "gibbs"), (Metropolis(), "propose")])
def test_a_missing_capability_names_both(transition, method):
    with pytest.raises(TypeError, match=rf"{type(transition).__name__} needs a path with the method {method}\(\)"):
        transition.check(Linear())
    with pytest.raises(TypeError, match="Linear has none"):
        transition.check(Linear())


def test_exchange_swaps_even_pairs_at_even_steps_and_odd_pairs_at_odd_steps():
    path = Linear()  # equal states: every swap is accepted
    levels, zeros = np.arange(4), np.zeros(4)
    even = Recorder().exchange(path, zeros, levels, zeros, np.zeros(3), 1, Stream((1, 2), step=4))
    np.testing.assert_array_equal(even[1], [1, 0, 3, 2])
    odd = Recorder().exchange(path, zeros, levels, zeros, np.zeros(3), 1, Stream((1, 2), step=5))
    np.testing.assert_array_equal(odd[1], [0, 2, 1, 3])


def test_exchange_counts_round_trips():
    # with all swaps accepted a chain needs 4 scans an end to end: every chain comes round after 8
    path, n_scans = Linear(), 80
    levels, zeros = np.arange(4), np.zeros(4)
    result = Recorder().exchange(path, zeros, levels, np.zeros(4, dtype=int), np.zeros(3), n_scans, Stream((1, 2)))
    assert 4 * (n_scans // 8 - 2) <= result[4][0] <= 4 * n_scans // 8

"""Moves are checked for invariance; the checks themselves, with moves that are wrong."""

import numpy as np
import pytest
from convergence import assert_right
from known_problems import hidden_mode_problem, make_rbm_problem
from scipy.special import logsumexp

from sklpf import AIS
from sklpf.models import RBMPath
from sklpf.paths import Path
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs, Metropolis

LADDER = np.linspace(0, 0.5, 6)
VARIABLES = {
    "marginal": lambda state: state.v,
    "joint": lambda state: np.hstack([state.v, state.h]),
}


class ManyStates(Path):
    """Five states with given log densities; the proposal goes to the right more often than to the
    left.
    """

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


def test_metropolis_with_an_asymmetric_proposal_is_invariant_and_serves_estimators():
    check_transition(ManyStates(), Metropolis(), n=5000)
    ais = AIS(transition=Metropolis(), random_state=0).fit(ManyStates())
    assert_right(ais, logsumexp(ManyStates.log_density))


# ---- what the check must find
class WrongLevel(Gibbs):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        higher = np.minimum(levels + 1, len(path.ladder) - 1)
        return super().move(path, state, auxiliary, higher, stream, reverse)


class NeverReversed(Gibbs):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        return super().move(path, state, auxiliary, levels, stream)


class AlwaysAccepts(Metropolis):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        return path.propose(state, levels, stream)[0], auxiliary


class Stays(Gibbs):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        return state, auxiliary


class InPlace(Gibbs):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        state.v[:] = super().move(path, state, auxiliary, levels, stream)[0].v
        return state, auxiliary


class OwnRandomness(Gibbs):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        step = int(np.random.default_rng().integers(2**30))
        return super().move(path, state, auxiliary, levels, stream.at(step))


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
    parameters = 2 * rng.normal(size=(2, 4)), rng.normal(size=4), rng.normal(size=2), [0.5] * 4
    path = RBMPath(*parameters, ladder=np.linspace(0, 1, 5), weights="joint")
    check_transition(path, Gibbs(), variables=VARIABLES["joint"])
    with pytest.raises(AssertionError, match="reversal is wrong"):
        check_transition(path, NeverReversed(), variables=VARIABLES["joint"])
    path = hidden_mode_problem(6, 0.9).path.with_ladder(np.linspace(0, 1, 5))
    with pytest.raises(AssertionError, match="reversal is wrong"):
        check_transition(path, NeverReversed(), n=20_000)


def test_check_transition_finds_a_move_that_always_accepts():
    with pytest.raises(AssertionError, match="does not leave level"):
        check_transition(ManyStates(), AlwaysAccepts(), n=5000)


def test_what_is_no_path_or_transition_gets_a_sentence():
    path = ManyStates()
    with pytest.raises(TypeError, match="check_transition takes a path first"):
        check_transition(Gibbs(), path)
    with pytest.raises(TypeError, match="check_transition takes a path first"):
        check_transition(ManyStates, Metropolis())
    with pytest.raises(TypeError, match=r"needs a Transition .* such as Gibbs\(\)"):
        check_transition(path, Gibbs)
    with pytest.raises(TypeError, match="check_path takes a path first"):
        check_path(Gibbs())
    with pytest.raises(ValueError, match="ladder must be a sequence of at least 2"):
        check_transition(path.with_ladder([0.0]), Metropolis())


def test_check_transition_refuses_a_ladder_without_overlap():
    path = make_rbm_problem("hard").path.with_ladder([0, 1])
    with pytest.raises(ValueError, match="sample size is .*: check a ladder with more levels"):
        check_transition(path, Gibbs(), variables=VARIABLES["marginal"])


# ---- capabilities
class Bare(Path):
    """A path without a move."""


@pytest.mark.parametrize(("transition", "method"), [(Gibbs(), "gibbs"), (Metropolis(), "propose")])
def test_a_missing_capability_names_both(transition, method):
    name = type(transition).__name__
    message = rf"{name} needs a path with the method {method}\(state, levels, stream\)"
    with pytest.raises(TypeError, match=message):
        transition.check(Bare())
    with pytest.raises(TypeError, match="Bare has none"):
        transition.check(Bare())

"""Moves are checked for invariance; the checks themselves, with moves that are wrong."""

import numpy as np
import pytest
from known_problems import hidden_mode_problem, make_rbm_problem

from sklpf.models import RBMPath
from sklpf.paths import Path, TemperedPath
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Gibbs, Metropolis

LADDER = np.linspace(0, 0.5, 6)
VARIABLES = {
    "marginal": lambda state: state.v,
    "joint": lambda state: np.concatenate([state.v, state.h], axis=1),
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


def test_metropolis_with_an_asymmetric_proposal_is_invariant():
    check_transition(ManyStates(), Metropolis(), n=5000)


# ---- what the check must find
class WrongLevel(Gibbs):
    def move(self, path, state, memory, levels, stream, reverse=False):
        return super().move(
            path, state, memory, np.minimum(levels + 1, len(path.ladder) - 1), stream, reverse
        )


class NeverReversed(Gibbs):
    def move(self, path, state, memory, levels, stream, reverse=False):
        return super().move(path, state, memory, levels, stream)


class NoCorrection(Metropolis):
    def move(self, path, state, memory, levels, stream, reverse=False):
        uncorrected = type("Uncorrected", (type(path),), {"propose": self.propose})()
        return super().move(uncorrected, state, memory, levels, stream)

    @staticmethod
    def propose(path, state, levels, stream):
        proposal, _ = ManyStates.propose(path, state, levels, stream)
        return proposal, np.zeros(len(state))


class AlwaysAccepts(Metropolis):
    def move(self, path, state, memory, levels, stream, reverse=False):
        return path.propose(state, levels, stream)[0], memory


class Stays(Gibbs):
    def move(self, path, state, memory, levels, stream, reverse=False):
        return state, memory


class InPlace(Gibbs):
    def move(self, path, state, memory, levels, stream, reverse=False):
        state.v[:] = super().move(path, state, memory, levels, stream)[0].v
        return state, memory


class OwnRandomness(Gibbs):
    def move(self, path, state, memory, levels, stream, reverse=False):
        return super().move(
            path, state, memory, levels, stream.at(int(np.random.default_rng().integers(2**30)))
        )


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
    parameters = (
        2 * rng.normal(size=(2, 4)),
        rng.normal(size=4),
        rng.normal(size=2),
        np.full(4, 0.5),
    )
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


class PottsLattice(TemperedPath):
    """A periodic Potts lattice, three states a site: sites of one colour of a checkerboard are
    drawn at once.

    With an odd length the colours meet at the seams, so that neighbours are drawn at once, each
    given the other's old state: an irreducible move with another invariant distribution. Site by
    site the move is right.
    """

    gibbs_is_reversible = False

    def __init__(self, length, checkerboard, ladder=(0.0, 1.0)):
        self.length = length
        self.ladder = np.asarray(ladder, dtype=float)
        self.base_log_partition = length**2 * np.log(3)
        row, column = np.divmod(np.arange(length**2), length)
        self.neighbours = np.stack(
            [
                (row + down) % length * length + (column + right) % length
                for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1))
            ],
            axis=1,
        )
        self.groups = [np.array([site]) for site in range(length**2)]
        if checkerboard:
            self.groups = [np.flatnonzero((row + column) % 2 == colour) for colour in (0, 1)]

    def sample_base(self, n, stream):
        return stream.generator().integers(3, size=(n, self.length**2))

    def ends(self, state):
        equal = state[..., np.newaxis] == state[:, self.neighbours]
        return np.zeros(len(state)), equal.sum(axis=(1, 2)) / 2

    def gibbs(self, state, levels, stream, reverse=False):
        state = state.copy()
        uniforms = stream.generator().random(state.shape)
        beta = self.ladder[levels][:, np.newaxis, np.newaxis]
        for group in reversed(self.groups) if reverse else self.groups:
            around = state[:, self.neighbours[group]]
            n_equal = (around[..., np.newaxis] == np.arange(3)).sum(axis=2)
            cumulative = np.exp(beta * n_equal).cumsum(axis=-1)
            threshold = uniforms[:, group, np.newaxis] * cumulative[..., -1:]
            state[:, group] = (threshold > cumulative).sum(axis=-1)
        return state


@pytest.mark.parametrize(
    ("length", "ladder"),
    [(5, np.linspace(0, 1, 11)), (5, np.linspace(0, 1, 21)), (3, np.linspace(0, 1, 11))],
)
def test_check_transition_finds_a_checkerboard_of_odd_length(length, ladder):
    path = PottsLattice(length, checkerboard=True, ladder=ladder)
    with pytest.raises(AssertionError, match="does not leave level"):
        check_transition(path, Gibbs())  # found at each of 100 seeds


@pytest.mark.parametrize(("length", "checkerboard"), [(5, False), (4, True)])
def test_check_transition_passes_the_right_potts_moves(length, checkerboard):
    path = PottsLattice(length, checkerboard, np.linspace(0, 1, 21))
    check_transition(path, Gibbs(), n=2000)  # false alarm 1e-4


def test_what_is_no_path_or_transition_gets_a_sentence():
    path = PottsLattice(3, False, np.linspace(0, 1, 21))
    with pytest.raises(TypeError, match="check_transition takes a path first"):
        check_transition(Gibbs(), path)
    with pytest.raises(TypeError, match="check_transition takes a path first"):
        check_transition(PottsLattice, Gibbs())
    with pytest.raises(TypeError, match=r"needs a Transition .* such as Gibbs\(\)"):
        check_transition(path, Gibbs)
    with pytest.raises(TypeError, match="check_path takes a path first"):
        check_path(Gibbs())
    with pytest.raises(ValueError, match="ladder must be a sequence of at least 2"):
        check_transition(PottsLattice(3, False, ladder=[0.0]), Gibbs())


def test_check_transition_refuses_a_ladder_without_overlap():
    path = make_rbm_problem("hard").path.with_ladder([0, 1])
    with pytest.raises(ValueError, match="sample size is .*: check a ladder with more levels"):
        check_transition(path, Gibbs(), variables=VARIABLES["marginal"])


# ---- capabilities
class Bare(Path):
    """A path without a move."""


@pytest.mark.parametrize(("transition", "method"), [(Gibbs(), "gibbs"), (Metropolis(), "propose")])
def test_a_missing_capability_names_both(transition, method):
    with pytest.raises(
        TypeError,
        match=(
            rf"{type(transition).__name__} needs a path with the method {method}\(state, levels,"
            r" stream\)"
        ),
    ):
        transition.check(Bare())
    with pytest.raises(TypeError, match="Bare has none"):
        transition.check(Bare())

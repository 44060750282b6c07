"""Transitions with auxiliary variables: through the checks, every estimator, jobs and segments.

Student t with at least 9 degrees of freedom: 4.8 standard errors are false alarms in 1e-3 of
comparisons; fixed seeds.
"""

import numpy as np
import pytest
from convergence import z_score
from scipy.special import logsumexp

from sklpf import AIS, BDMC, RTS, SMC, ParallelTempering
from sklpf.partition import RAISE
from sklpf.paths import TemperedPath
from sklpf.testing import check_path, check_transition
from sklpf.transitions import Transition

N_STATES = 12
LOG_DENSITY = 1.5 * np.sin(2 * np.pi * np.arange(N_STATES) / N_STATES)
LOG_DENSITY += np.random.default_rng(3).normal(size=N_STATES)


class Circle(TemperedPath):
    """Twelve states on a circle; from all alike to LOG_DENSITY."""

    base_log_partition = float(np.log(N_STATES))

    def ends(self, state):
        return np.zeros(len(state)), LOG_DENSITY[state]

    def sample_base(self, n, stream):
        return stream.generator().integers(N_STATES, size=n)

    def sample_target(self, n, stream):
        p = np.exp(LOG_DENSITY - logsumexp(LOG_DENSITY))
        return stream.generator().choice(N_STATES, size=n, p=p)


LOG_PARTITION = float(logsumexp(LOG_DENSITY))


class GuidedWalk(Transition):
    """Steps in a direction that is kept, and turned where a step is rejected (Gustafson 1998).

    It leaves the density times uniform directions invariant; its time reversal turns before and
    after the move.
    """

    def init(self, path, state, stream):
        return (1 - 2 * stream.generator().integers(2, size=len(state)),)

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        (direction,) = auxiliary
        if reverse:
            direction = -direction
        proposal = (state + direction) % N_STATES
        log_accept = path.log_f(proposal, levels) - path.log_f(state, levels)
        accept = np.log(stream.generator().random(len(state))) < log_accept
        direction = np.where(accept, direction, -direction)
        return np.where(accept, proposal, state), (-direction if reverse else direction,)


LADDER = np.linspace(0, 1, 8)
ESTIMATORS = {
    "AIS": AIS(100, 150, random_state=0),
    "RAISE": RAISE(20, 10, 150, random_state=0),
    "BDMC": BDMC(100, 150, random_state=0),
    "RTS": RTS(50, 5, n_sweeps=600, random_state=0),
    "SMC": SMC(20, 60, ladder="linear", random_state=0),
    "ParallelTempering": ParallelTempering(10, 4, 256, random_state=0),
}
SOME = [  # one for each program: annealing both ways, particles and tempering
    pytest.param(
        name, marks=[pytest.mark.large] * (name not in ("RAISE", "SMC", "ParallelTempering"))
    )
    for name in ESTIMATORS
]


def fit(name, path=None, **parameters):
    estimator = ESTIMATORS[name]
    parameters = estimator.get_params() | {"transition": GuidedWalk()} | parameters
    return type(estimator)(**parameters).fit(path or Circle())


def sums(estimator):
    """All numbers of the run, in one array."""
    run = estimator.run_
    arrays = {
        "AIS": lambda: [run.forward],
        "RAISE": lambda: [run.reverse],
        "BDMC": lambda: [run.forward, run.reverse],
        "RTS": lambda: [run.rounds[-1].log_q_sums, run.rounds[-1].level_sums],
        "SMC": lambda: [run.log_means, run.log_weights, run.summaries, run.reverse],
        "ParallelTempering": lambda: [run.last.pair_sums, run.last.level_sums, run.last.summaries],
    }[type(estimator).__name__]()
    return np.concatenate([np.ravel(array) for array in arrays])


# ---- the move itself
def test_a_guided_walk_passes_the_check():
    check_path(Circle().with_ladder(LADDER))
    check_transition(Circle().with_ladder(LADDER), GuidedWalk(), n=20_000)  # false alarm 1e-4


class NotReversed(GuidedWalk):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        return super().move(path, state, auxiliary, levels, stream)


class InPlace(GuidedWalk):
    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        state, (direction,) = super().move(path, state, auxiliary, levels, stream, reverse)
        auxiliary[0][:] = direction + 1
        return state, auxiliary


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (NotReversed(), "reversal is wrong"),
        (InPlace(), "must not change the auxiliary variables"),
    ],
)
def test_the_check_finds_wrong_memories(transition, message):
    with pytest.raises(AssertionError, match=message):
        check_transition(Circle().with_ladder(LADDER), transition, n=20_000)


# ---- estimators
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_right(name):
    estimator = fit(name)
    assert estimator.converged_
    if name == "RAISE":  # an upper bound
        assert estimator.log_partition_ > LOG_PARTITION - 4.8 * estimator.log_partition_std_error_
        assert estimator.log_partition_ < LOG_PARTITION + 0.3
    else:
        assert estimator.log_partition_std_error_ < 0.1
        assert abs(z_score(estimator, LOG_PARTITION)) < 4.8


@pytest.mark.parametrize("name", SOME)
def test_jobs_and_segments_do_not_show(name):
    whole = sums(fit(name))
    np.testing.assert_array_equal(sums(fit(name, n_jobs=2)), whole)
    path = Circle()
    path.n_moves_per_segment = 7
    segmented = sums(fit(name, path))  # the same states, sums in another order
    np.testing.assert_allclose(segmented, whole, rtol=1e-10, atol=1e-10)

    class Forgets(GuidedWalk):
        """Directions are drawn anew at the first move of every segment: the comparison above would
        see that.
        """

        def move(self, path, state, auxiliary, levels, stream, reverse=False):
            auxiliary = self.init(path, state, stream) if stream.step % 7 == 1 else auxiliary
            return super().move(path, state, auxiliary, levels, stream, reverse)

    assert not np.allclose(sums(fit(name, transition=Forgets())), whole, rtol=1e-10, atol=1e-10)


# ---- auxiliary variables stay with their chain
class Gaussians(TemperedPath):
    """Normal densities of precision 1 + 3 beta."""

    base_log_partition = float(0.5 * np.log(2 * np.pi))

    def ends(self, state):
        return -0.5 * state**2, -1.5 * state**2

    def sample_base(self, n, stream):
        return stream.generator().standard_normal(n)

    def sample_target(self, n, stream):
        return stream.generator().standard_normal(n) / 2


class Twin(Transition):
    """Draws the state anew, and remembers it and how often it has moved: what it gets must belong
    together.
    """

    def init(self, path, state, stream):
        return state.copy(), np.zeros((len(state), 2), dtype=int)

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        remembered, counts = auxiliary
        np.testing.assert_array_equal(remembered, state)
        noise = stream.generator().standard_normal(len(state))
        state = noise / np.sqrt(1 + 3 * path.ladder[levels])
        return state, (state.copy(), counts + 1)


@pytest.mark.parametrize("name", SOME)
def test_auxiliary_variables_stay_with_their_chain(name):
    estimator = fit(name, Gaussians(), transition=Twin())
    error = estimator.log_partition_ - (Gaussians.base_log_partition - np.log(2))
    assert abs(error) < 4.8 * estimator.log_partition_std_error_ + (0.3 if name == "RAISE" else 0)

"""Problems whose log partition function is known."""

from __future__ import annotations

import functools
import itertools

import numpy as np
from scipy.special import expit, logit, logsumexp

from sklpf.paths import Stream, TemperedPath
from sklpf.testing import Problem

_RANDOM = {
    "easy": (12, 0.3),
    "medium": (16, 1.0),
    "hard": (16, 3.0),
}  # hidden units, spread of the parameters
_DIGITS = {"digits": 1.0, "sharp digits": 3.0}  # factor on all parameters
RBM_PROBLEMS = (*_RANDOM, *_DIGITS, "two modes", "far mode")


def make_rbm_problem(
    kind: str = "easy", random_state: int = 0, *, weights: str = "marginal"
) -> Problem:
    """Return an RBM with 64 visible units and its log Z by enumeration of the hidden units.

    "easy", "medium" and "hard" have normally distributed parameters: 12 hidden units with standard
    deviation 0.3, 16 with 1, 16 with 3, and a uniform base. "digits" is scikit-learn's BernoulliRBM
    with 16 hidden units after 100 passes over its binarised digits, with the data's smoothed means
    as base; "sharp digits" has three times its parameters. With 100 chains and 300 linear
    temperatures AIS keeps effective samples of about 97, 70, 33, 86 and 18. Two are traps: "two
    modes" has 60 visible units in two narrow modes of about equal mass, one of which chains from
    the base hardly ever see, so that estimates agree on log 2 too little; "far mode" has nearly all
    of its mass in a mode that they never enter.
    """
    from sklpf import Exact
    from sklpf.models import RBMPath

    if kind in _RANDOM:
        components, visible, hidden, mean = _random_parameters(*_RANDOM[kind], random_state)
    elif kind in _DIGITS:
        components, visible, hidden, mean = _digits_parameters(_DIGITS[kind], random_state)
    elif kind == "two modes":
        components, visible, hidden, mean = _two_modes(random_state)
    elif kind == "far mode":
        components, visible, hidden, mean = _far_mode(random_state)
    else:
        raise ValueError(f"kind must be one of {RBM_PROBLEMS}, got {kind!r}")
    path = RBMPath(components, visible, hidden, mean, weights=weights)
    return Problem(kind, path, Exact().fit(path).log_partition_)


def all_rows(n):
    """The 2^n rows of n binary units, (2^n, n) in float64."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=n)))


def random_layers(rng, n_hidden, n_visible, scale=1.0):
    """Weights and biases of an RBM."""
    shapes = (n_hidden, n_visible), n_visible, n_hidden
    return [rng.normal(scale=scale, size=shape) for shape in shapes]


def enumerate_log_partition(path, level):
    """Log normaliser at one level by full enumeration, in nats."""
    sums = [logsumexp(path.enumerate_block(b, level)) for b in range(path.n_enumeration_blocks)]
    return float(logsumexp(sums))


def _random_parameters(n_hidden, scale, seed):
    rng = np.random.default_rng(seed)
    return *random_layers(rng, n_hidden, 64, scale), np.full(64, 0.5)


@functools.cache
def _digits_parameters(factor, seed):
    from sklearn.datasets import load_digits
    from sklearn.neural_network import BernoulliRBM

    X = (load_digits().data > 7.5).astype(float)
    rbm = BernoulliRBM(16, learning_rate=0.1, n_iter=100, batch_size=50, random_state=seed).fit(X)
    fitted = rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_
    return *(factor * array for array in fitted), (X.sum(axis=0) + 1) / (len(X) + 2)


def _two_modes(seed, n_visible=60, n_hidden=5, weight=1.0, lean=0.6):
    """Two patterns with as many units on, each with hidden units of its own; the base leans towards
    the first.
    """
    rng = np.random.default_rng(seed)
    patterns = [rng.permutation(np.repeat([0, 1], n_visible // 2)) for _ in range(2)]
    components = weight * np.repeat([2.0 * pattern - 1 for pattern in patterns], n_hidden, axis=0)
    hidden = np.full(2 * n_hidden, -weight * n_visible / 4)
    visible = rng.normal(scale=0.02, size=n_visible)
    return components, visible, hidden, 0.5 + lean * (patterns[0] - 0.5)


def _far_mode(seed, n_visible=64, mean=0.99):
    """Two hidden units that share a pattern: rarely on at a random row, and about 12 nats heavier
    when they are on.
    """
    rng = np.random.default_rng(seed)
    components = np.tile(logit(mean) / 2 * rng.choice([-1.0, 1.0], size=n_visible), (2, 1))
    gain = np.logaddexp(0, 2 * components[0]).sum() - n_visible * np.log(2)
    visible = rng.normal(scale=0.02, size=n_visible)
    return components, visible, np.full(2, (12 - gain) / 2), np.full(n_visible, 0.5)


def opening_biases(components, visible, mean, openings, log_odds):
    """Biases of hidden units with the weights `openings`, of which each is on with these log odds
    to none being on; and log Z of the RBM without them, whose hidden biases are 0.
    """
    from sklpf import Exact
    from sklpf.models import RBMPath

    def log_z(shift):
        path = RBMPath(components, visible + shift, np.zeros(len(components)), mean)
        return Exact().fit(path).log_partition_

    plain = log_z(0.0)
    return log_odds + plain - np.array([log_z(opening) for opening in openings]), plain


def hidden_mode_problem(n_units: int = 64, mean: float = 0.98) -> Problem:
    """Return half a uniform distribution plus half a narrow mode on {0, 1}^n_units, log Z = 0.

    Chains from the uniform base don't find the mode: AIS says log(1/2) with a tiny error bar, and
    no estimate from forward runs can know better. Reverse AIS from draws of the target shows the
    gap of log 2.
    """
    return Problem("hidden mode", HiddenModePath(n_units, mean), 0.0)


class HiddenModePath(TemperedPath):
    """Geometric path from the uniform distribution u to u / 2 + (product of Bernoulli(mean)) / 2,
    in NumPy alone.

    A state is a uint8 array (n, n_units). The Gibbs sweep visits the units in order, so its time
    reversal visits them backwards.
    """

    base_log_partition = 0.0
    gibbs_is_reversible = False

    def __init__(self, n_units: int, mean: float, ladder=(0.0, 1.0)):
        self.n_units = n_units
        self.mean = mean
        self.ladder = np.array(ladder, dtype=float)

    def _gain_of_count(self) -> np.ndarray:
        """log f_1 - log f_0 of a state with s units on, shape (n_units + 1,)."""
        on = np.arange(self.n_units + 1)
        uniform = -self.n_units * np.log(2.0)
        narrow = on * np.log(self.mean) + (self.n_units - on) * np.log1p(-self.mean)
        return np.logaddexp(uniform, narrow) - np.log(2.0) - uniform

    def ends(self, state):
        """Return log f_0 and log f_1 - log f_0 of every chain, in nats."""
        base = np.full(len(state), -self.n_units * np.log(2.0))
        return base, self._gain_of_count()[state.sum(axis=1, dtype=int)]

    def sample_base(self, n: int, stream: Stream):
        """Return n exact draws from level 0."""
        return stream.generator().integers(2, size=(n, self.n_units), dtype=np.uint8)

    def sample_target(self, n: int, stream: Stream):
        """Return n exact draws from the target."""
        rng = stream.generator()
        means = np.where(rng.random((n, 1)) < 0.5, 0.5, self.mean)
        return (rng.random((n, self.n_units)) < means).astype(np.uint8)

    def gibbs(self, state, levels, stream: Stream, reverse: bool = False):
        """Draw every unit in turn given the others, in the opposite order if `reverse`."""
        # of one unit more, given the count of the others
        increments = np.diff(self._gain_of_count())
        on = expit(self.ladder[:, np.newaxis] * increments)[levels]
        uniforms = stream.generator().random(state.shape)
        state = state.copy()
        chains = np.arange(len(state))
        count = state.sum(axis=1, dtype=int)
        for unit in reversed(range(self.n_units)) if reverse else range(self.n_units):
            count -= state[:, unit]
            state[:, unit] = uniforms[:, unit] < on[chains, count]
            count += state[:, unit]
        return state

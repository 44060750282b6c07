"""Optional methods of a path: all that it may have beyond `log_f`, and who asks for each.

Nothing needs to be inherited: having a method is enough. Some are of use only together, see
`TOGETHER`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream
from sklpf._utils.warnings import Alarm
from sklpf.paths._box import Box
from sklpf.paths._regions import Regions

# The chains of a path, of which only the path knows more: an array, or a tuple of arrays, each with
# an entry for every chain along its first axis. Auxiliary variables of a move are such, too.
State = Any


class FilterEstimates(NamedTuple):
    """Estimates of particle filters.

    Attributes
    ----------
    log_estimates : ndarray of shape (n,)
        Logs of independent unbiased estimates of Z, in nats.
    guide : ndarray
        What they found of the row, for others to begin with.
    variance : float
        Var Z_hat / Z^2 of an estimate, by reverse chains through the first filters; 0
        without these.
    n_reverse_chains : int
        Number of these chains.
    """

    log_estimates: Array
    guide: Array
    variance: float
    n_reverse_chains: int


class OptionalMethods:
    """Methods and attributes that a path may have beside `log_f`, each with who asks for it.

    Nobody derives from this class: it is the list.

    Attributes
    ----------
    base_log_partition : float or None
        Log normaliser of level 0 in nats, with `sample_base`.
    n_dimensions : int
        Number d of dimensions, with `position`.
    bounds : Box
        The region that holds all points, with `position`.
    tail_alarms : tuple of Alarm or None
        What is known of the tails of a `GeometricPath`; None: the check of tails measures them.
    parameter_shapes : dict of str to tuple of int
        Shape of every named parameter; () is a number. With `constrain`.
    packed : NamedTuple or None
        Arrays and numbers for compiled programs, by whose type their hooks are chosen, with
        `kernel`. None says that log f is not compiled, whatever the class can do.
    n_rows : int or None
        Number of rows of data, with `row`; None is one log Z.
    log2_states : int
        Log to base 2 of the number of states, with `enumerate_block` and `sample_enumerated`.
    n_enumeration_blocks : int
        Number of blocks of states, with `enumerate_block`.
    filters_are_exact : bool
        True if `left_to_right` gives Z itself: then nothing is added for what no particle happened
        to do.
    """

    base_log_partition: float | None
    n_dimensions: int
    bounds: Box
    tail_alarms: tuple[Alarm, ...] | None
    parameter_shapes: Mapping[str, tuple[int, ...]]
    packed: Any
    n_rows: int | None
    log2_states: int
    n_enumeration_blocks: int
    filters_are_exact: bool

    # -- draws

    def sample_base(self, n: int, stream: Stream) -> Any:
        """Return the state of n chains, exact and independent draws from level 0; asked for by all
        estimators but `Exact` and readers of other runs.
        """

    def sample_target(self, n: int, stream: Stream) -> Any:
        """Return the state of n chains, exact and independent draws from the last level; asked for
        by `RAISE`, `BDMC`, ``sample`` of models and ratios of two models.
        """

    def exact_start(self) -> Any:
        """Return the state of one chain, an exact draw from the target, as of the latent variables
        of a row that was drawn from a model; asked for by `RAISE` and `BDMC`.
        """

    # -- moves

    def gibbs(self, state: State, levels: Integers, stream: Stream) -> Any:
        """Return the state after a Gibbs sweep that leaves every chain's level invariant; asked for
        by `Gibbs`.

        A sweep that is not reversible takes ``reverse``, and its path sets ``gibbs_is_reversible =
        False`` (see `Path`).
        """

    def propose(self, state: State, levels: Integers, stream: Stream) -> tuple[Any, Array]:
        """Return a proposal and log q(state | proposal) - log q(proposal | state), shape (n,);
        asked for by `Metropolis`.
        """

    # -- log f in beta

    def ends(self, state: State) -> tuple[Array, Array]:
        """Return log f_0 and log f_1 - log f_0 of every chain, both (n,), in nats, where log f_beta
        = log f_0 + beta (log f_1 - log f_0) for any beta; asked for by `RTS` and tempering.
        """

    def derivatives(self, state: State, levels: Integers) -> Array:
        """Return U = d log f / d beta and dU / dbeta of every chain at its own level, shape (n, 2);
        asked for by tempering, for `ThermodynamicIntegration` and `LevelProcess`.
        """

    # -- points of R^d

    def position(self, state: State) -> Array:
        """Return the points, shape (n, d), within a box where there are `bounds`; asked for by
        `HMC`, `RandomWalk` and `Slice`.
        """

    def at(self, position: Array) -> Any:
        """Return the state of chains at points (n, d), with `position`."""

    def gradients(self, state: State) -> tuple[Array, Array]:
        """Return the gradients by the position of log f_0 and of log f_1 - log f_0 of every chain,
        both (n, d), where log f_beta = log f_0 + beta (log f_1 - log f_0); asked for by `HMC`.
        """

    def as_density(self) -> Any:
        """Return a path to the same Z of some real variables alone, all others summed out, with
        `position` and `gradients`; asked for by all estimators where moves need points of R^d.
        """

    def constrain(self, position: Array) -> dict[str, Array]:
        """Return the named parameters, as of a Bayesian model, of points (n, d), each ``(n,
        *shape)``; asked for by draws of results.
        """

    def unconstrain(self, values: Mapping[str, ArrayLike]) -> Array:
        """Return the points (n, d) of parameters by name, each ``(n, *shape)``; asked for where
        draws of the posterior are given.
        """

    def from_unit_cube(self, points: ArrayLike) -> Array:
        """Return the points (n, d) of points (n, d) of the unit cube, uniform under the prior;
        asked for where draws of nested samplers are given.
        """

    # -- compiled programs

    def kernel(self, name: str) -> Any:
        """Return the compiled program of a name, such as "anneal", with `packed`; asked for by all
        programs.
        """

    # -- rows of data

    def row(self, t: int) -> Any:
        """Return the path of row t alone, whose `n_rows` is None; asked for by all estimators where
        `n_rows` is a number. Rows share the model.
        """

    def row_content(self, t: int) -> bytes:
        """Return all of row t that its log Z depends on, with `row`: it keys random numbers, and
        equal rows are computed once.
        """

    def simulated_row(self, stream: Stream) -> Any:
        """Return the path of one row that is drawn from the model alone, whose `n_rows` is None;
        asked for by estimators of rows, which tune moves on it for all rows alike.
        """

    def batch_rows(self, rows: Sequence[Any], n_chains: int) -> Any:
        """Return the path of so many chains of each of several rows' paths, one row after the
        other, whose ladder the caller sets; asked for by estimators of rows, where densities at
        points of many rows are computed in one call, as by a neural network.

        Chains draw their numbers row by row, from ``stream.rows()``.
        """

    def rows(self, state: State) -> NDArray:
        """Return the row of data that every chain stands for, shape (n, n_features); asked for by
        draws of results and ``sample`` of models.
        """

    def state_from_rows(self, rows: ArrayLike) -> Any:
        """Return the state of chains that start at rows of data; asked for by ``starts`` of
        estimators.
        """

    def complete(self, state: State, level: int, stream: Stream) -> Any:
        """Return the state with latent variables that a start left open drawn at a level, given the
        others; asked for by annealing.
        """

    # -- checks

    def bound_draws(self, stream: Stream) -> Array:
        """Return log weights (G, n), each of expectation Z however poorly its draws cover the
        target; the G rows are independent. Asked for by the check of every run: Z is then bounded
        from below without the path's base.
        """

    def regions(self, stream: Stream) -> Regions:
        """Return regions of the target, such as balls around modes, with estimates of the part of Z
        that lies in each, without the base; asked for by the check of every run.

        Such a path should also have `with_regions`: the alarm about a region that was missed says
        to call it.
        """

    def with_regions(self, regions: Regions) -> Any:
        """Return a path to the same target from a mixture of this base and of distributions around
        the regions; asked for by the second try of estimators where `base_is_ours`.
        """

    # -- hidden variables

    def draw_conditional(self, centres: Any, rng: np.random.Generator) -> Any:
        """Return the state of as many chains: for each centre c a draw from T(c, .), the density of
        all variables after a Gibbs step at the target, given hidden ones of c; asked for by
        `MarkovMixture`.
        """

    def mixture_log_weights(self, centres: Any, state: State) -> Array:
        """Return log f(x) - log mean_l T(c_l, x) of every chain, shape (n,), in nats, with
        `draw_conditional`; f is the target's density of x.
        """

    # -- training

    def between(self, other: Any, share: float) -> Any:
        """Return the path of a model whose parameters are `share` of the way to the other's; asked
        for by the tracking of log Z, whose chains follow training.
        """

    # -- exact sums

    def closed_log_partition(self) -> float:
        """Return log Z of the target in nats, where it has a closed form; asked for by `Exact`."""

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log weights of one block of states at a level, in nats; asked for by
        `Exact`.
        """

    def sample_enumerated(self, log_block_sums: Array, n: int, rng: np.random.Generator) -> Any:
        """Return the state of n exact draws from the target, given the log of the sum of each
        block's weights; asked for by `Exact.sample`, `RAISE` and `BDMC`.
        """

    def enumerate_rows(self, rows: ArrayLike) -> Array:
        """Return log Z of some rows in nats, enumerated in one call; asked for by `Exact`."""

    # -- particle filters

    def left_to_right(
        self,
        n: int,
        n_particles: int,
        n_sweeps: float,
        stream: Stream,
        guide: Any = None,
        n_reverse: int = 0,
    ) -> FilterEstimates:
        """Return what n particle filters over the observations of a row say of Z, and reverse
        chains from the target through each of the first n_reverse of them; asked for by
        `LeftToRight`.

        `guide` is None or that of an earlier call, which must not make the estimates biased.
        """

    # -- models

    def default_estimator(self) -> Any:
        """Return the `PartitionEstimator` that a model's ``partition_estimator=None`` stands for
        where nothing exact is known of log Z; asked for by ``score`` of models and `UntilTrusted`.
        """


TOGETHER = {
    "sample_base": ("base_log_partition", "sample_base"),
    "position": ("n_dimensions", "bounds", "position", "at"),
    "constrain": ("parameter_shapes", "constrain"),
    "packed": ("packed", "kernel"),
    "row": ("n_rows", "row", "row_content"),
    "draw_conditional": ("draw_conditional", "mixture_log_weights"),
    "enumerate_block": ("log2_states", "n_enumeration_blocks", "enumerate_block"),
    "sample_enumerated": ("log2_states", "sample_enumerated"),
    "left_to_right": ("left_to_right", "filters_are_exact"),
}

INSTEAD = {
    "gibbs": (
        "define it, or choose HMC, RandomWalk or Slice on R^d, Metropolis where the path has"
        " propose"
    ),
    "propose": (
        "define it, or choose HMC, RandomWalk or Slice on R^d, Gibbs where the path has gibbs"
    ),
    "position": (
        "its states are no points of R^d, which alone this moves: choose AIS, RTS or"
        " ParallelTempering, with transition=None"
    ),
    "bounds": "it must be a Box, such as Box.everywhere(n_dimensions)",
    "draw_conditional": (
        "only RBMs of discrete units have it: choose AIS, RTS or ParallelTempering, on R^d HAIS"
    ),
    "enumerate_block": "choose AIS, RTS or ParallelTempering, on R^d HAIS",
    "gradients": "define it, or choose RandomWalk or Slice as transition",
    "left_to_right": (
        "only topic models have one: choose Exact, AIS or ParallelTempering, on R^d HAIS"
    ),
}

"""What a path may be able to do beyond `log_f`, in groups. No base class is needed to have one:
methods are enough.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import Stream
from sklpf.paths._regions import Regions


class Base(Protocol):
    """Level 0 can be sampled and its normaliser is known."""

    base_log_partition: float | None

    def sample_base(self, n: int, stream: Stream) -> Any:
        """Return the state of n chains, exact and independent draws from level 0."""


class DefaultEstimator(Protocol):
    """A model's ``partition_estimator=None`` has a meaning of its own on this path."""

    def default_estimator(self) -> Any:
        """Return a `PartitionEstimator`."""


class GibbsMove(Protocol):
    """A Gibbs sweep. One that is not reversible takes ``reverse``, and its path sets
    ``gibbs_is_reversible = False`` (see `Path`).
    """

    def gibbs(self, state: Any, levels: Integers, stream: Stream) -> Any:
        """Return the state after a sweep that leaves every chain's level invariant."""


class Proposal(Protocol):
    """A Metropolis-Hastings proposal."""

    def propose(self, state: Any, levels: Integers, stream: Stream) -> tuple[Any, Array]:
        """Return a proposal and log q(state | proposal) - log q(proposal | state), shape (n,)."""


class Compiled(Protocol):
    """log f is compiled. None as `packed` says that it is not, whatever the class can do."""

    packed: Any  # a NamedTuple of arrays, by whose type hooks of compiled programs are chosen

    def kernel(self, name: str) -> Any:
        """Return the compiled program of a name, such as "anneal"."""


class Endpoints(Protocol):
    """log f_beta = log f_0 + beta (log f_1 - log f_0), for any beta."""

    def ends(self, state: Any) -> tuple[Array, Array]:
        """Return log f_0 and log f_1 - log f_0 of every chain, both (n,), in nats."""


class Derivatives(Protocol):
    """log f is a smooth function of the ladder's coordinate."""

    def derivatives(self, state: Any, levels: Integers) -> Array:
        """Return U = d log f / d beta and dU / dbeta of every chain at its own level,
        shape (n, 2).
        """


class Continuous(Protocol):
    """States are points of R^d, within a box where there are `bounds` (2, d), whose sides may be
    infinite.
    """

    n_dimensions: int
    bounds: Array | None

    def position(self, state: Any) -> Array:
        """Return the points, shape (n, d)."""

    def at(self, position: Array) -> Any:
        """Return the state of chains at some points (n, d)."""


class Parameters(Protocol):
    """Points of R^d stand for named parameters, such as those of a Bayesian model.

    Attributes
    ----------
    parameter_shapes : dict of str to tuple of int
        Shape of every parameter by its name; () is a number.
    """

    parameter_shapes: Mapping[str, tuple[int, ...]]

    def constrain(self, position: Array) -> dict[str, Array]:
        """Return the parameters of points (n, d), by name, each ``(n, *shape)``."""


class Unconstrain(Protocol):
    """The points of named parameters are known."""

    def unconstrain(self, values: Mapping[str, ArrayLike]) -> Array:
        """Return the points (n, d) of parameters by name, each ``(n, *shape)``."""


class UnitCube(Protocol):
    """The points of nested samplers, uniform under the prior, are known."""

    def from_unit_cube(self, points: ArrayLike) -> Array:
        """Return the points (n, d) of points (n, d) of the unit cube."""


class Gradients(Protocol):
    """log f_beta = log f_0 + beta (log f_1 - log f_0) has gradients by the position."""

    def gradients(self, state: Any) -> tuple[Array, Array]:
        """Return the gradients of log f_0 and of log f_1 - log f_0 of every chain, both (n, d)."""


class MarginalDensity(Protocol):
    """The target of some real variables is known with all others summed out. Moves that need points
    of R^d then run there.
    """

    def as_density(self) -> Any:
        """Return a path of these variables alone to the same Z, with `Continuous` and
        `Gradients`.
        """


class TargetDraws(Protocol):
    """The target can be sampled exactly."""

    def sample_target(self, n: int, stream: Stream) -> Any:
        """Return the state of n chains, exact and independent draws from the last level."""


class ExactStart(Protocol):
    """One exact draw from the target is known, as of the latent variables of a row that was drawn
    from a model.
    """

    def exact_start(self) -> Any:
        """Return the state of one chain."""


class BoundDraws(Protocol):
    """Z can be bounded from below without the path's base."""

    def bound_draws(self, stream: Stream) -> Array:
        """Return log weights (G, n), each of expectation Z however poorly its draws cover the
        target; the G rows are independent.
        """


class LocalMasses(Protocol):
    """Regions of the target are known with the part of Z that lies in each, without the base.

    Such a path should also have `with_regions`, of `Rebased`: the alarm about a region that was
    missed says to call it.
    """

    def regions(self, stream: Stream) -> Regions:
        """Return some regions, such as balls around modes, with estimates of their masses."""


class Rebased(Protocol):
    """The same target is also reached from a base that covers given regions.

    Estimators do so by themselves where `base_is_ours`, else an alarm says so.
    """

    def with_regions(self, regions: Regions) -> Any:
        """Return a path from a mixture of this base and of distributions around the regions."""


class ConditionalDraws(Protocol):
    """A Gibbs step at the target draws all variables from a density T(c, x) that is known, given
    hidden ones of c.

    f is the target's density of x.
    """

    def draw_conditional(self, centres: Any, rng: np.random.Generator) -> Any:
        """Return the state of as many chains: a draw from T(c, .) for each centre c."""

    def mixture_log_weights(self, centres: Any, state: Any) -> Array:
        """Return log f(x) - log mean_l T(c_l, x) of every chain, shape (n,), in nats."""


class ConditionalModes(Protocol):
    """Each block of variables is known at its most probable values given the others."""

    def log_joint(self, state: Any) -> Array:
        """Return the target's log density of all variables, hidden ones too, of every chain, shape
        (n,), in nats.
        """

    def conditional_modes(self, state: Any) -> Any:
        """Return the state after each block, in turn, was set to its mode given the others.

        Where several values are equally probable a block keeps its own.
        """


class Interpolation(Protocol):
    """Parameters of two models of a kind can be mixed, for chains to follow training."""

    def between(self, other: Any, share: float) -> Any:
        """Return the path of a model whose parameters are `share` of the way to the other's."""


class DataRows(Protocol):
    """Chains stand for rows of data."""

    def rows(self, state: Any) -> NDArray:
        """Return the row of every chain, shape (n, n_features)."""


class DataStarts(Protocol):
    """Chains can start at rows of data."""

    def state_from_rows(self, rows: ArrayLike) -> Any:
        """Return the state of chains that start at rows of data."""


class Completion(Protocol):
    """A start leaves some variables open (latent ones), which can be drawn given the others."""

    def complete(self, state: Any, level: int, stream: Stream) -> Any:
        """Return the state with these variables drawn at a level."""


class Enumeration(Protocol):
    """The states can be enumerated in blocks."""

    log2_states: int
    n_enumeration_blocks: int

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log weights of one block of states at a level, in nats."""


class EnumeratedDraws(Protocol):
    """The target can be sampled exactly where its states were enumerated."""

    log2_states: int

    def sample_enumerated(self, log_block_sums: Array, n: int, rng: np.random.Generator) -> Any:
        """Return the state of n chains, given the log of the sum of each block's weights."""


class EnumeratedRows(Protocol):
    """States of many rows can be enumerated in one call."""

    def enumerate_rows(self, rows: ArrayLike) -> Array:
        """Return log Z of some rows in nats."""


class ClosedForm(Protocol):
    """log Z is known."""

    def closed_log_partition(self) -> float:
        """Return log Z of the target in nats."""


class Rows(Protocol):
    """One log Z for each of `n_rows` rows of data, which share the model."""

    n_rows: int

    def row(self, t: int) -> Any:
        """Return the path of row t alone, whose `n_rows` is None."""

    def row_content(self, t: int) -> bytes:
        """Return all of row t that its log Z depends on: it keys random numbers, and equal rows are
        computed once.
        """


class JointRows(Protocol):
    """Densities at points of many rows are computed in one call, as by a neural network: chains of
    several rows then move in one array.

    Chains draw their numbers row by row, from ``stream.rows()``.
    """

    def side_by_side(self, rows: Sequence[Any], n_chains: int) -> Any:
        """Return the path of so many chains of each of several rows' paths, one row after the
        other, whose ladder the caller sets.
        """


class SimulatedRows(Protocol):
    """Rows can be drawn from the model: moves are tuned on one of them, for all rows alike and
    whatever these are.
    """

    def simulated_row(self, stream: Stream) -> Any:
        """Return the path of one row that is drawn from the model alone, whose `n_rows` is None."""


class FilterEstimates(NamedTuple):
    """What particle filters leave.

    Attributes
    ----------
    log_estimates : ndarray of shape (n,)
        Logs of independent unbiased estimates of Z, in nats.
    guide : ndarray
        What they found of the row, for others to begin with.
    variance : float
        Var Z_hat / Z^2 of an estimate, as chains from the target say that went back through the
        first filters; 0 without these.
    n_reverse_chains : int
        Number of these chains.
    """

    log_estimates: Array
    guide: Array
    variance: float
    n_reverse_chains: int


class Filters(Protocol):
    """Particle filters over the observations of a row."""

    def left_to_right(
        self,
        n: int,
        n_particles: int,
        n_sweeps: float,
        stream: Stream,
        guide: Any = None,
        n_reverse: int = 0,
    ) -> FilterEstimates:
        """Return what n filters say of Z, and chains from the target that go back through each of
        the first n_reverse of them.

        `guide` is None or that of an earlier call, which must not make the estimates biased.
        """

    @property
    def filters_are_exact(self) -> bool:
        """Whether `left_to_right` gives Z itself: then nothing is added for what no particle
        happened to do.
        """


_INSTEAD: dict[Any, str] = {
    GibbsMove: (
        "define it, or choose HMC, RandomWalk or Slice on R^d, Metropolis where the path has"
        " propose"
    ),
    Proposal: (
        "define it, or choose HMC, RandomWalk or Slice on R^d, Gibbs where the path has gibbs"
    ),
    Continuous: (
        "its states are no points of R^d, which alone this moves: choose AIS, RTS or"
        " ParallelTempering, with transition=None"
    ),
    ConditionalDraws: (
        "only RBMs of discrete units have it: choose AIS, RTS or ParallelTempering, on R^d HAIS"
    ),
    Enumeration: "choose AIS, RTS or ParallelTempering, on R^d HAIS",
    Gradients: "define it, or choose RandomWalk or Slice as transition",
    Filters: "only topic models have one: choose Exact, AIS or ParallelTempering, on R^d HAIS",
}


def has(path: Any, group: type) -> bool:
    """Whether a path has all members of a group."""
    return not _missing(path, group)


def require(path: Any, group: type, who: str) -> None:
    """Raise TypeError with the first member of a group that a path lacks and `who` needs."""
    for name in _missing(path, group):
        member = getattr(group, name, None)
        kind = f"attribute {name}"
        if callable(member):
            parameters = list(inspect.signature(member).parameters)[1:]  # without self
            kind = f"method {name}({', '.join(parameters)})"
        reason = _own_reason(path, name) or _INSTEAD.get(group, "define it")
        raise TypeError(
            f"{who} needs a path with the {kind}; {type(path).__name__} has none: {reason}"
        )


def _own_reason(path: Any, name: str) -> str:
    """Why a path's property has no value, in the path's words."""
    if isinstance(getattr(type(path), name, None), property):
        try:
            getattr(path, name)
        except AttributeError as error:
            return str(error)
    return ""


def _missing(path: Any, group: type) -> list[str]:
    members = [name for name in vars(group) if not name.startswith("_")]
    return [name for name in [*group.__annotations__, *members] if not hasattr(path, name)]


def require_base(path: Any, who: str) -> float:
    """Return the base's log normaliser or raise if the path can't be sampled from there.

    Parameters
    ----------
    path : Path
        What is asked.
    who : str
        Name of what needs the base, for the message.

    Returns
    -------
    float
        Log Z of the base in nats.
    """
    require(path, Base, who)
    if path.base_log_partition is None:
        raise ValueError(
            f"{who} needs a base with a known normaliser: declare base_log_partition on"
            f" {type(path).__name__} (0.0 if log_f at level 0 is normalised), or give a base whose"
            " `normalised` is true"
        )
    return float(path.base_log_partition)

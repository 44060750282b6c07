"""Gaussian random walks with Metropolis's rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklpf._utils.random import ACCEPT
from sklpf._utils.sklearn import INSIDE_0_1, POSITIVE, StrOptions
from sklpf.paths import Continuous
from sklpf.paths._base import choose
from sklpf.transitions._base import moved_density
from sklpf.transitions._pilot import TunedTransition, reflect, stream_normals


@dataclass(eq=False, repr=False)
class RandomWalk(TunedTransition):
    """A Gaussian step that is accepted or rejected (Metropolis et al. 1953; Bishop 2006, eq.
    11.33).

    Parameters
    ----------
    step_size : float or "auto", default="auto"
        Standard deviation of a step: tuned in a pilot as a function of beta to the
        `target_acceptance`, in units of the density's scale there; a number is used as it is, in
        the path's own coordinates unless `metric` is given.
    target_acceptance : float, default=0.3
        Mean acceptance probability that a step size is tuned to.
    metric : {"diag", "dense"} or None, default=None
        What steps are taken in: None, coordinates that share one scale; "diag", each scaled by its
        standard deviation; "dense", by a root of the covariance. Both are estimated in the pilot as
        functions of beta.

    Notes
    -----
    Needs `Continuous` (see `sklpf.paths`), no gradient. With bounds steps are reflected, which
    "dense" does not allow.

    Examples
    --------
    >>> from sklpf import AIS, Gaussian, GeometricPath
    >>> from sklpf.transitions import RandomWalk
    >>> path = GeometricPath(
    ...     lambda x: -(x**4).sum(axis=1), base=Gaussian([0.0, 0.0], 1.0)
    ... )
    >>> ais = AIS(n_temperatures=100, transition=RandomWalk(), random_state=0).fit(path)
    >>> ais.converged_
    True
    """

    step_size: float | str = "auto"
    target_acceptance: float = 0.3
    metric: str | None = None

    requires = (Continuous,)
    joins_rows = True
    _parameter_constraints = {
        "step_size": [POSITIVE, StrOptions({"auto"})],
        "target_acceptance": [INSIDE_0_1],
        "metric": [StrOptions({"diag", "dense"}), None],
    }

    def first_step(self, n_dimensions: int) -> float:
        """Where tuning begins, in scales of the density."""
        return 2.4 * n_dimensions**-0.5

    def init(self, path, state, stream):
        """Return the summed acceptance probabilities of every chain."""
        return (np.zeros(len(path.position(state))),)

    def auxiliary(self, memory):
        """Nothing."""
        return ()

    def accepted(self, memory):
        """Sum of the acceptance probabilities of every chain."""
        return memory[0]

    def compiled(self, path):
        """Return the move for compiled programs, where the path has a compiled density."""
        from sklpf.transitions._random_walk_kernels import RandomWalkMove

        return moved_density(path, self, RandomWalkMove)

    def move(self, path, state, memory, levels, stream, reverse=False):
        steps = self.steps_at(path.ladder)
        old = path.position(state)
        velocity = stream_normals(stream, np.empty_like(old))
        step = steps.step_sizes[levels] * steps.root(levels)(velocity)
        position, _ = reflect(path.bounds, old + step, step)
        proposal = path.at(position)
        with np.errstate(invalid="ignore"):
            log_accept = path.log_f(proposal, levels) - path.log_f(state, levels)
        rate = np.where(np.isnan(log_accept), 0.0, np.exp(np.minimum(log_accept, 0)))
        accept = stream.uniform(len(levels), ACCEPT) < rate
        return choose(accept, proposal, state), (memory[0] + rate,)

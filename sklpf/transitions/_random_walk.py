"""Gaussian random walks with Metropolis's rule, or with Hastings's where they drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklpf._utils.random import ACCEPT
from sklpf.paths import choose, gradients_of, values_of_shape
from sklpf.transitions._base import acceptance, stream_uniforms
from sklpf.transitions._pilot import TUNED, TunedTransition, reflect, stream_normals


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
    drift : callable or None, default=None
        What a step has in the mean: drift(x, betas) of points (n, d) at inverse temperatures (n,),
        giving (n, d), in the path's own coordinates. The proposal x' = x + drift(x) + normal step
        is then asymmetric, and is accepted with probability min(1, f(x') q(x | x') / (f(x) q(x' |
        x))) (Hastings 1970; Bishop 2006, eq. 11.44). Where the drift at x' is not finite it is
        rejected.

    Notes
    -----
    Needs `position` (see `OptionalMethods`), no gradient. With bounds steps are reflected, which
    "dense" and `drift` do not allow. With a `drift` it runs in plain loops, also on a compiled
    density.

    A drift of -r x with steps of variance r (2 - r) would leave N(0, I) invariant without any
    rejection, in any number of dimensions. Half the gradient times the squared step is Langevin's
    (MALA), which ``HMC(half_life=None)`` is too.

    Examples
    --------
    >>> from sklpf import AIS, Gaussian, GeometricPath
    >>> from sklpf.transitions import RandomWalk
    >>> base = Gaussian([0.0, 0.0], 1.0)
    >>> path = GeometricPath(lambda x: -(x**4).sum(axis=1), base=base)
    >>> ais = AIS(n_temperatures=100, transition=RandomWalk(), random_state=0).fit(path)
    >>> ais.converged_
    True

    Towards the origin by a fifth of the way:

    >>> def shrink(x, betas):
    ...     return -0.2 * x
    >>> walk = RandomWalk(drift=shrink, target_acceptance=0.6)
    >>> AIS(n_temperatures=100, transition=walk, random_state=0).fit(path).converged_
    True
    """

    step_size: float | str = "auto"
    target_acceptance: float = 0.3
    metric: str | None = None
    drift: Callable[[Any, Any], Any] | None = None

    requires = ("position",)
    joins_rows = True
    _parameter_constraints = {**TUNED, "drift": [callable, None]}

    def check(self, path):
        """Raise TypeError if the path lacks a capability, ValueError if a parameter can't be used
        on it.
        """
        super().check(path)
        if self.drift is not None and path.bounds.has_sides:
            raise ValueError(
                "drift must be None on a path with bounds: the density of a reflected step that"
                " drifts is not known"
            )

    def first_step(self, n_dimensions: int) -> float:
        """First step size of the tuning, in scales of the density."""
        return 2.4 * n_dimensions**-0.5

    def init(self, path, state, stream):
        """Return the summed acceptance probabilities of every chain."""
        return (np.zeros(len(path.position(state))),)

    def random_auxiliary(self, auxiliary):
        """Return (): the sums that chains carry are not random."""
        return ()

    def accepted(self, auxiliary):
        """Sum of the acceptance probabilities of every chain."""
        return auxiliary[0]

    def compiled(self, path):
        """Return the move for compiled programs, where the path has a compiled density."""
        if self.drift is not None:
            return None
        from sklpf.transitions._random_walk_kernels import RandomWalkMove

        return self._moved_density(path, RandomWalkMove)

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        steps = self.steps_at(path.ladder, levels)
        old = path.position(state)
        normals = stream_normals(stream, np.empty_like(old))
        step = steps.step_sizes * steps.color(normals)
        log_ratio: Any = 0.0
        if self.drift is None:
            position, _ = reflect(path.bounds, old + step, step)
        else:
            position, log_ratio = self._drifting(old, step, normals, steps, path.ladder[levels])
        proposal = path.at(position)
        rate = acceptance(path, state, proposal, levels, log_ratio)
        accept = stream_uniforms(stream, len(levels), ACCEPT) < rate
        return choose(accept, proposal, state), (auxiliary[0] + rate,)

    def _drifting(self, old, step, normals, steps, betas):
        """Points x' = x + drift(x) + step, and log q(x | x') - log q(x' | x) of each, (n,).

        The step back from x' is -step - drift(x) - drift(x').
        """
        drift: Any = self.drift
        there = gradients_of("drift", drift(old.copy(), betas.copy()), old)
        new = old + there + step
        back = values_of_shape("drift", drift(new.copy(), betas.copy()), new.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            whitened = steps.whiten(there + back) / steps.step_sizes
            log_ratio = (np.sum(normals**2, axis=1) - np.sum((normals + whitened) ** 2, axis=1)) / 2
        return new, log_ratio

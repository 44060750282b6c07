"""Chains of Hamiltonian Monte Carlo that stay alive while what they follow is trained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import equal_parts, run_tasks
from sklpf.paths import box_around, density_at, trajectory_at
from sklpf.transitions import reflect

_LEAST_NUMBERS = 1 << 14  # of the points of a task

Function = Callable[[Array], Array]
_RATE = 0.05  # of the step size's logarithm, for every unit of acceptance too many
_LONGEST_STEP = 2.0


def parts_of(points: NDArray) -> list[slice]:
    """Parts of points (n, d) for tasks, whatever the number of threads."""
    least_part = 64  # points of a task
    return equal_parts(len(points), max(least_part, _LEAST_NUMBERS // points.shape[1]))


class Chains:
    """Points that move by Hamiltonian Monte Carlo, each trajectory with a new velocity N(0, I).

    The step size goes on following the acceptance, as the density changes in training. Coordinates
    should have scales of about one.

    Parameters
    ----------
    position : array-like of shape (n, d)
        Where they start.
    rng : numpy.random.Generator
        Where the random numbers come from.
    n_leapfrog : int, default=10
        Steps of kick, drift and kick of a trajectory.
    step_size : float, default=0.1
        Initial step size.
    target_acceptance : float, default=0.8
        Mean acceptance probability that the step size is adapted to.
    bounds : tuple (low, high) or None, default=None
        Its sides reflect; None is all of R^d.
    rescale : bool, default=False
        Whether every trajectory is followed by a Metropolis step that makes the point's distance
        from 0 longer or shorter: for densities on all R^d whose points have very different lengths,
        between which trajectories are slow.

    Attributes
    ----------
    position : ndarray of shape (n, d)
    step_size : float
    acceptance : float
        Mean acceptance probability of the last trajectory.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.training import Chains
    >>> rng = np.random.default_rng(0)
    >>> chains = Chains(rng.normal(size=(100, 2)), rng, step_size=0.5)
    >>> chains.move(lambda x: -0.5 * np.sum(x**2, axis=1), lambda x: -x)
    >>> chains.position.shape, bool(chains.acceptance > 0.8)
    ((100, 2), True)
    """

    def __init__(
        self,
        position,
        rng,
        *,
        n_leapfrog=10,
        step_size=0.1,
        target_acceptance=0.8,
        bounds=None,
        rescale=False,
    ):
        self.position = np.array(position, dtype=np.float64)
        self.rng = rng
        self.n_leapfrog = n_leapfrog
        self.step_size = step_size
        self.target_acceptance = target_acceptance
        self.bounds = box_around(bounds, self.position.shape[1])
        self.acceptance = np.nan
        self.rescale = rescale

    def move(self, log_density: Function, grad: Function) -> None:
        """Make one trajectory of every chain for the log density as it is now.

        Parameters
        ----------
        log_density : callable
            Log density, a function of points (n, d) that returns (n,), in nats up to a constant.
        grad : callable
            Its gradient, a function of points (n, d) that returns (n, d).
        """
        velocity = self.rng.standard_normal(self.position.shape)
        here = log_density(self.position)
        with np.errstate(all="ignore"):  # trajectories may run away, and are rejected then
            end, last = self.trajectory(grad, velocity)
            there = log_density(end)
        self._arrive(end, velocity, last, here, there, log_density)

    def move_on(self, density: Any) -> None:
        """Make one trajectory of every chain for a compiled log density on all R^d.

        Parameters
        ----------
        density : NamedTuple
            With `evaluate_density`.
        """
        velocity = self.rng.standard_normal(self.position.shape)

        def follow(chains):
            start = self.position[chains], velocity[chains]
            return trajectory_at(density, *start, self.step_size, self.n_leapfrog)

        ends, lasts, values = zip(*run_tasks(follow, parts_of(velocity)))
        here, there = np.concatenate(values, axis=1)
        self._arrive(
            np.concatenate(ends),
            velocity,
            np.concatenate(lasts),
            here,
            there,
            lambda x: density_at(density, x)[0],
        )

    def _arrive(self, end, first, last, here, there, log_density):
        """Accept or reject the ends of trajectories, by the velocities and log densities at both
        ends.
        """
        with np.errstate(all="ignore"):
            log_rate = 0.5 * np.einsum("ij,ij->i", first, first) - here
            log_rate = log_rate + there - 0.5 * np.einsum("ij,ij->i", last, last)
        accept = self.rng.random(len(end)) < self.adapt(log_rate)
        self.position = np.where(accept[:, np.newaxis], end, self.position)
        if self.rescale:
            self._rescale(log_density, np.where(accept, there, here))

    def _rescale(self, log_density, here):
        spread = 0.5  # standard deviation of the log of the factor
        n, d = self.position.shape
        lengthening = spread * self.rng.standard_normal(n)
        end = self.position * np.exp(lengthening)[:, np.newaxis]
        log_rate = log_density(end) - here + d * lengthening
        accept = np.log(self.rng.random(n)) < log_rate
        self.position = np.where(accept[:, np.newaxis], end, self.position)

    def adapt(self, log_rate: Array) -> Array:
        """Let the step size follow the acceptance of trajectories.

        Parameters
        ----------
        log_rate : ndarray of shape (n,)
            Log of the acceptance ratio of every trajectory.

        Returns
        -------
        ndarray of shape (n,)
            Acceptance probabilities.
        """
        rate = np.exp(np.minimum(np.where(np.isnan(log_rate), -np.inf, log_rate), 0.0))
        self.acceptance = float(rate.mean())
        self.step_size *= np.exp(_RATE * (self.acceptance - self.target_acceptance))
        self.step_size = min(self.step_size, _LONGEST_STEP)
        return rate

    def trajectory(self, grad: Function, velocity: Array) -> tuple[NDArray, NDArray]:
        """Return the ends of trajectories from where the chains are.

        Parameters
        ----------
        grad : callable
            Gradient of the log density, of points (n, d), giving (n, d).
        velocity : ndarray of shape (n, d)
            Initial velocities.

        Returns
        -------
        position, velocity : ndarray of shape (n, d)
            Positions and velocities at the ends of the trajectories.
        """
        position = self.position
        half = 0.5 * self.step_size
        velocity = velocity + half * grad(position)
        for step in range(self.n_leapfrog):
            position, velocity = reflect(
                self.bounds, position + self.step_size * velocity, velocity
            )
            last = step == self.n_leapfrog - 1
            velocity = velocity + (half if last else self.step_size) * grad(position)
        return position, velocity

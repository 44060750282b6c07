"""Hamiltonian Monte Carlo with a velocity that is kept and partly refreshed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklpf._utils.limits import LARGEST_KICK
from sklpf._utils.random import ACCEPT, Stream
from sklpf._utils.validation import POSITIVE, at_least
from sklpf.paths import choose
from sklpf.transitions._base import acceptance, stream_uniforms
from sklpf.transitions._pilot import TUNED, TunedTransition, reflect, stream_normals


@dataclass(eq=False, repr=False)
class HMC(TunedTransition):
    """Hamiltonian Monte Carlo with partial refreshment (Horowitz 1991; Sohl-Dickstein & Culpepper
    2012, sect. 2.3).

    A move is a trajectory of kick, drift and kick, accepted or rejected as a whole, and a
    refreshment of the velocity: v becomes sqrt(1 - g) v + sqrt(g) r, r normal, after an accepted
    trajectory, and turns around after a rejected one. The velocity is N(0, I) at every level, so
    that it cancels in weights and swaps.

    Parameters
    ----------
    step_size : float or "auto", default="auto"
        Length of a step in time. "auto" tunes it in a pilot as a function of beta to the
        `target_acceptance`, in units of the density's scale there; a number is used as it is, in
        the path's own coordinates unless `metric` is given.
    target_acceptance : float, default=0.8
        Mean acceptance probability that a step size is tuned to.
    n_leapfrog : int, default=1
        Steps of a trajectory.
    half_life : float or None, default=0.5
        Time in which refreshment leaves half of the velocity's energy: g = 1 - 2^(-step_size
        n_leapfrog / half_life). None draws it anew at every move.
    metric : {"diag", "dense"} or None, default=None
        What moves are made in: None, coordinates that share one scale; "diag", each scaled by its
        standard deviation; "dense", by a root of the covariance. Both are estimated in the pilot as
        functions of beta.

    Notes
    -----
    Needs `position` and `gradients` (see `OptionalMethods`). With bounds trajectories are
    reflected, which "dense" does not allow. A coordinate is not kicked where half a step would
    change its velocity by 5 or more, as next to a boundary where the density falls to 0: no
    trajectory would be accepted there, while a random walk leaves such places. ``HMC(step_size=0.2,
    half_life=1)`` is the paper's but for the order of a step's halves and for that.

    References
    ----------
    Horowitz, A. M. (1991). A generalized guided Monte Carlo algorithm. Physics Letters B 268.
    Sohl-Dickstein, J. & Culpepper, B. J. (2012). Hamiltonian annealed importance sampling for
    partition function estimation. arXiv:1205.1925.

    Examples
    --------
    >>> from sklpf import AIS, Gaussian, GeometricPath
    >>> from sklpf.transitions import HMC
    >>> log_f, slope = lambda x: -(x**4).sum(axis=1), lambda x: -4 * x**3
    >>> base = Gaussian([0.0, 0.0], 1.0)
    >>> path = GeometricPath(log_f, grad=slope, base=base)
    >>> move = HMC(metric="diag")
    >>> ais = AIS(n_temperatures=100, transition=move, random_state=0).fit(path)
    >>> ais.converged_
    True
    """

    step_size: float | str = "auto"
    target_acceptance: float = 0.8
    n_leapfrog: int = 1
    half_life: float | None = 0.5
    metric: str | None = None

    requires = ("position", "gradients")
    joins_rows = True
    _parameter_constraints = {
        **TUNED,
        "n_leapfrog": [at_least(1)],
        "half_life": [POSITIVE, None],
    }

    def init(self, path, state, stream: Stream) -> tuple:
        """Return velocity, gradients of log f_0 and of log f_1 - log f_0, and summed acceptance
        probabilities.
        """
        velocity = stream_normals(stream, np.empty(path.position(state).shape))
        return velocity, *path.gradients(state), np.zeros(len(velocity))

    def first_step(self, n_dimensions: int) -> float:
        """First step size of the tuning, in scales of the density."""
        return n_dimensions**-0.25

    def slopes(self, auxiliary, beta):
        """The gradients of log f_beta."""
        return [auxiliary[1] + beta * auxiliary[2]]

    def random_auxiliary(self, auxiliary):
        """The velocity."""
        return auxiliary[:1]

    def accepted(self, auxiliary):
        """Sum of the acceptance probabilities of every chain."""
        return auxiliary[3]

    def compiled(self, path):
        """Return the move for compiled programs, where the path has compiled functions."""
        from sklpf.transitions._hmc_kernels import HMCMove

        half_life = 0.0 if self.half_life is None else float(self.half_life)
        return self._moved_density(path, HMCMove, int(self.n_leapfrog), half_life)

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        steps = self.steps_at(path.ladder, levels)
        if reverse:
            auxiliary = self._refresh(auxiliary, steps, stream)
        state, auxiliary = self._trajectory(path, state, auxiliary, levels, steps, stream)
        return state, auxiliary if reverse else self._refresh(auxiliary, steps, stream)

    def _trajectory(self, path, state, auxiliary, levels, steps, stream):
        """Follow the dynamics, turn around, and accept or stay; it is its own reversal."""
        velocity, base, gain, accepted = auxiliary
        here = state
        pace = velocity
        slopes = (base, gain)
        lost = np.zeros(len(levels), dtype=bool)
        betas = path.ladder[levels][:, np.newaxis]
        step = steps.step_sizes

        def kicked(pace, slopes):
            force = slopes[0] + betas * slopes[1]
            return pace + _kick(step / 2 * steps.color_transposed(force))

        for _ in range(self.n_leapfrog):
            pace = kicked(pace, slopes)
            old = path.position(here)
            position, pace = reflect(path.bounds, old + step * steps.color(pace), pace)
            lost |= ~np.isfinite(position).all(axis=1)
            here = path.at(np.where(lost[:, np.newaxis], old, position))
            slopes = path.gradients(here)
            pace = kicked(pace, slopes)
        fall = (np.sum(velocity**2, axis=1) - np.sum(pace**2, axis=1)) / 2  # of the kinetic energy
        rate = acceptance(path, state, here, levels, np.where(lost, np.nan, fall))
        accept = stream_uniforms(stream, len(levels), ACCEPT) < rate
        kept = choose(accept, (-pace, *slopes), (velocity, base, gain))
        return choose(accept, here, state), (*kept, accepted + rate)

    def _refresh(self, auxiliary, steps, stream):
        """Turn the velocity around and renew a part of it."""
        share = (
            1.0
            if self.half_life is None
            else -np.expm1(-steps.step_sizes * self.n_leapfrog / self.half_life * np.log(2))
        )
        normals = stream_normals(stream, np.empty_like(auxiliary[0]))
        return -np.sqrt(1 - share) * auxiliary[0] + np.sqrt(share) * normals, *auxiliary[1:]


def _kick(kick):
    """The kicks of a half step, without those so large that no trajectory would be accepted.

    Any kick that depends on the position alone conserves volume and is reversible, so that this is
    allowed. Without kicks the dynamics is a random walk, which leaves places where the force is
    unbounded, such as the boundary of the support of log x.
    """
    return np.where(np.abs(kick) < LARGEST_KICK, kick, 0.0)

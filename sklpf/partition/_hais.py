"""HAIS: annealed importance sampling with Hamiltonian moves."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from sklpf._utils.sklearn import POSITIVE
from sklpf.partition._ais import AIS
from sklpf.programs._annealing import enough_levels
from sklpf.programs._plan import Plan
from sklpf.transitions import HMC, Transition

_LEVELS = 10  # random stream of the pilot that finds how many levels there should be


@dataclass(eq=False, repr=False, kw_only=True)
class HAIS(AIS):
    """Hamiltonian annealed importance sampling (Sohl-Dickstein & Culpepper 2012, eq. 17 to 25), for
    densities on R^d.

    `AIS` whose chains move by `HMC`. Velocities are kept from level to level and partly refreshed,
    so that chains move in long trajectories instead of a random walk. Paths need gradients, as
    `GeometricPath` may have.

    With a log Z for each row, moves are tuned once, on a row that the model simulates, if it can.
    So no row's numbers depend on the others.

    Parameters
    ----------
    n_chains : int, default=100
        Independent chains M.
    n_temperatures : int, default=1000
        Levels K of the ladder, base and target included: each chain makes K - 1 moves. With `tol`
        the largest number of levels.
    ladder : str or array-like, default="adaptive"
        "linear", "power", "sigmoid", "salakhutdinov-murray" or "adaptive", or an array of inverse
        temperatures from 0 to 1. "adaptive" places the levels at equal cumulative standard
        deviation of log f_1 - log f_0, as measured by the pilot that tunes the moves.
    transition : Transition or None, default=None
        The move at each level; None is ``HMC()``.
    tol : float or None, default=None
        Target standard error in nats. Pilot chains, which never enter the estimate, then find how
        many levels it needs, separately for each row, and the ladder is thinned to these.
    checkpoint, checks, random_state, n_jobs, verbose
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        As in `AIS`. ``result_.diagnostics`` also holds ``acceptance`` and ``step_sizes`` (K,): at
        every level the mean acceptance probability of its segment of at most 100 moves, and the
        step size in units of the metric.

    Notes
    -----
    Not converged if `AIS` would not be, or if `tol` is missed. With rows, also if a move that was
    tuned on another row is accepted too rarely (below 0.4 on average over 100 moves, for a target
    of 0.8) or too often (above 0.98).

    Raises
    ------
    TypeError
        If the path has no gradients, which `HMC` needs.

    References
    ----------
    Sohl-Dickstein, J. & Culpepper, B. J. (2012). Hamiltonian annealed importance sampling for
    partition function estimation. arXiv:1205.1925.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import HAIS, Gaussian, GeometricPath
    >>> path = GeometricPath(
    ...     lambda x: -np.sum(x**4, axis=1),
    ...     grad=lambda x: -4 * x**3,
    ...     base=Gaussian(np.zeros(5), 1.0),
    ... )
    >>> hais = HAIS(n_temperatures=200, random_state=0).fit(path)
    >>> bool(hais.log_partition_std_error_ < 0.05)
    True
    """

    ladder: str | ArrayLike = "adaptive"
    tol: float | None = None

    _parameter_constraints = {
        **AIS._parameter_constraints,
        "tol": [POSITIVE, None],
    }

    def _move(self, path) -> Transition:
        return HMC() if self.transition is None else self.transition

    def _plans(self, paths, seeds, n_chains) -> list[Plan]:
        plans = super()._plans(paths, seeds, n_chains)
        if self.tol is None:
            return plans
        return enough_levels(plans, n_chains, self.tol, _LEVELS, self.n_jobs)

"""HAIS: annealed importance sampling with Hamiltonian moves."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from sklpf.partition._ais import AIS
from sklpf.transitions import HMC, Transition


class HAIS(AIS):
    """Hamiltonian annealed importance sampling (Sohl-Dickstein & Culpepper 2012, eq. 17 to 25), for densities on R^d.

    `AIS` whose chains move by `HMC`: their velocities are kept from level to level and renewed in part, so that they
    follow the density in long runs instead of a random walk. Needs paths with gradients, such as `GeometricPath`.

    Parameters
    ----------
    n_chains : int, default=100
        Independent chains M.
    n_temperatures : int, default=1000
        Levels K of the ladder, base and target included: each chain makes K - 1 moves.
    ladder : {"adaptive", "linear", "power", "sigmoid", "salakhutdinov-murray"} or array-like, default="adaptive"
        Inverse temperatures from 0 to 1. "adaptive" places the levels where the moves' pilot found log f_1 - log f_0 to
        vary, at equal cumulative standard deviation.
    transition : Transition or None, default=None
        The move at each level; None is ``HMC()``.
    checkpoint, random_state, n_jobs
        As in `AIS`.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        As in `AIS`. ``result_.diagnostics`` also holds ``acceptance`` and ``step_sizes`` (K,): at every level the mean
        acceptance probability of its segment of at most 100 moves, and the step size in units of the metric.

    Raises
    ------
    TypeError
        If the path has no gradients.

    References
    ----------
    Sohl-Dickstein, J. & Culpepper, B. J. (2012). Hamiltonian annealed importance sampling for partition function
    estimation. arXiv:1205.1925.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import HAIS, Gaussian, GeometricPath
    >>> path = GeometricPath(lambda x: -np.sum(x**4, axis=1), grad=lambda x: -4 * x**3, base=Gaussian(np.zeros(5), 1.0))
    >>> hais = HAIS(n_temperatures=200, random_state=0).fit(path)
    >>> bool(hais.log_partition_std_error_ < 0.05)
    True
    """

    def __init__(
        self,
        n_chains: int = 100,
        n_temperatures: int = 1000,
        *,
        ladder: str | ArrayLike = "adaptive",
        transition: Transition | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ):
        self.n_chains = n_chains
        self.n_temperatures = n_temperatures
        self.ladder = ladder
        self.transition = transition
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    _parameter_constraints = {
        name: rule for name, rule in AIS._parameter_constraints.items() if name not in ("weights", "base")
    }

    def _transition(self, path) -> Transition:
        transition = HMC() if self.transition is None else self.transition
        transition.check(path)
        return transition

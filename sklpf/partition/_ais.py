"""AIS: annealed importance sampling."""

from __future__ import annotations

import os
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.sklearn import Interval
from sklpf.partition._annealing_run import AnnealingRun, annealing_runs
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._options import ANNEALING
from sklpf.transitions import Transition


class AIS(PartitionEstimator):
    """Annealed importance sampling (Neal 2001; Carlson et al. 2016, eq. 23).

    Chains start at exact base draws and move up the ladder. The weight of a chain is the product of
    the ratios f_(k+1)(x) / f_k(x) on its way. The mean weight is unbiased for Z / Z_0, so the log
    of the mean bounds log Z from below in expectation.

    Parameters
    ----------
    n_chains : int, default=100
        Independent chains M.
    n_temperatures : int, default=1000
        Levels K of the ladder, base and target included: each chain makes K - 1 sweeps.
    ladder : str or array-like, default="linear"
        "linear", "power", "sigmoid", "salakhutdinov-murray" or "adaptive", or an array of inverse
        temperatures from 0 to 1. "adaptive" measures the spread of log f_(k+1) - log f_k in a pilot
        of 5 % of the sweeps, and places the levels at equal cumulative spread. The ladder is then
        fixed, so that weights stay unbiased.
    transition : Transition or None, default=None
        The move at each level. None is the path's Gibbs sweep; on R^d it is `HMC`, or without
        gradients `RandomWalk`.
    checkpoint : str, path-like or None, default=None
        Directory that keeps finished segments. An interrupted run continues from there, with the
        same bits.
    checks : bool, default=True
        Whether to look for what the run itself can't show: tails of the base that are too light, a
        lower bound of log Z above the estimate, regions of the target that it has missed. False
        saves the time; the result then says that it was not checked.
    random_state : int, RandomState or None, default=None
        Seed of the chains.
    n_jobs : int or None, default=None
        Number of blocks of chains that run in parallel, in threads. It changes no number.
    verbose : int, default=0
        Whether `fit` reports its progress: a line after each round, or within a long one at most
        once a second, by the logger "sklpf" at level INFO, printed where logging would not show it.

    Attributes
    ----------
    log_partition_, log_partition_std_error_, log_partition_interval_, converged_, result_, run_
        See `PartitionEstimator`. The interval uses Student t with M - 1 degrees of freedom.
        ``result_.diagnostics`` holds ``log_weights`` (M,), ``effective_sample_size``,
        ``effective_sample_size_from_target``, ``pareto_shape``, the standard errors
        ``delta_std_error``, ``jackknife_std_error`` and ``reverse_std_error``, ``lower_bound``: log
        Z is below it with probability at most 5 %, even if the chains have missed modes; and
        ``plain_bound`` where the path has one.

    Notes
    -----
    The weights of a run can't show large weights that it has missed: runs whose weights pass every
    test tend to be low. Therefore reverse chains are run too, a quarter as many (at least 10). They
    start from forward chains drawn in proportion to their weights, make 100 sweeps at the target,
    and then move down the ladder. Their weights w' occur in proportion to their size, E w' / Z = E
    w^2 / Z^2, so that large ones are found first. The variance is the mean of the forward chains'
    and of E w' E 1 / w' - 1, or the forward chains' own if that is larger.

    Not converged if the effective sample size of either direction is below 25, or M / 4 if that is
    less, or 5; or if the estimate is below the path's lower bound of log Z that does not depend on
    its base (`BoundDraws`). A mode in which no chain has ended raises an alarm only if the path
    knows the mass there (`LocalMasses`). See also `RAISE`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import AIS, BernoulliRBM
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> ais = AIS(random_state=0).fit(rbm)
    >>> bool(ais.log_partition_std_error_ < 0.05)
    True
    """

    _parameter_constraints = {**ANNEALING, "n_chains": [Interval(Integral, 2, None, closed="left")]}

    def __init__(
        self,
        n_chains: int = 100,
        n_temperatures: int = 1000,
        *,
        ladder: str | ArrayLike = "linear",
        transition: Transition | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checks: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_chains = n_chains
        self.n_temperatures = n_temperatures
        self.ladder = ladder
        self.transition = transition
        self.checkpoint = checkpoint
        self.checks = checks
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _run_class = AnnealingRun

    def _sample(self, path, seed) -> AnnealingRun:
        return self._sample_rows([path], [seed])[0]

    def _sample_rows(self, paths, seeds) -> list[AnnealingRun]:
        return annealing_runs(self, paths, self.n_chains, seeds)

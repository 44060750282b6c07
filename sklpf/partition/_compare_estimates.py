"""compare_estimates: what every way to read one run says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklpf._utils.tables import Readable, Rows, import_pandas, text_table
from sklpf.partition._result import PartitionResult
from sklpf.partition._reweighting import BAR, MBAR, LevelProcess, SteppingStone
from sklpf.partition._run import check_run
from sklpf.partition._thermodynamic_integration import ThermodynamicIntegration

_COLUMNS = (
    "method",
    "log_partition",
    "std_error",
    "low",
    "high",
    "difference",
    "difference_std_error",
    "converged",
)


@dataclass(frozen=True, repr=False)
class EstimateComparison(Readable):
    """Estimates of one log Z from one run; printed it is a line for each.

    Attributes
    ----------
    results : tuple of PartitionResult
        The sampler's own first, then those of the estimators that reweight. Their differences from
        the first are in ``diagnostics["difference"]``, in nats, with
        ``diagnostics["difference_std_error"]`` by a jackknife over the run's groups: the same
        states are behind both, so that they differ by less than two independent estimates.
    """

    results: tuple[PartitionResult, ...]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each method."""
        pd = import_pandas()

        return pd.DataFrame(
            [self._row(result) for result in self.results], columns=_COLUMNS
        ).set_index("method")

    def _row(self, result):
        differs = [
            result.diagnostics.get(name, 0.0) for name in ("difference", "difference_std_error")
        ]
        return (
            result.method,
            result.log_partition,
            result.std_error,
            *result.interval(),
            *differs,
            result.converged,
        )

    _header = ("method", "log Z", "95 % interval", "difference", "")

    def _table(self) -> Rows:
        table = []
        for method, value, _, low, high, differs, error, converged in map(self._row, self.results):
            beside = "" if error == 0 and differs == 0 else f"{differs:+.4f} ± {error:.4f}"
            trust = "" if converged else "not converged"
            table.append((method, f"{value:.4f}", f"[{low:.4f}, {high:.4f}]", beside, trust))
        return table

    def __repr__(self) -> str:
        return text_table([self._header, *self._table()])

    def _title(self) -> str:
        return "log Z from one run (nats)"


def compare_estimates(run: Any) -> EstimateComparison:
    """Read one run by every method: their values, 95 % intervals, and how far each is from the
    sampler's own.

    A difference that is many times its standard error says that one of the two is wrong: levels
    that don't overlap, an integral over too few levels, or chains that have not spread over the
    ladder.

    Parameters
    ----------
    run : ExchangeRun or TemperingRun
        ``run_`` of a fitted `ParallelTempering` or `RTS`.

    Returns
    -------
    EstimateComparison
        Methods that can't read this run are left out (`ThermodynamicIntegration` needs
        derivatives).

    Raises
    ------
    TypeError
        If `run` is no such run.
    ValueError
        If it has fewer than two independent groups, or no states.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.partition import compare_estimates
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> comparison = compare_estimates(ParallelTempering(random_state=0).fit(rbm).run_)
    >>> [result.method for result in comparison.results][:3]
    ['ParallelTempering', 'BAR', 'MBAR']
    """
    check_run(run)
    own = run.read()
    methods = [BAR(), MBAR(), SteppingStone(), LevelProcess()]
    slopes = run.samples.slopes
    if slopes.shape[1] and np.isfinite(run.last.level_sums).all():
        methods.append(ThermodynamicIntegration())
    others = [method for method in methods if type(method).__name__ != own.method]
    return EstimateComparison((own, *(method._beside(run, own) for method in others)))

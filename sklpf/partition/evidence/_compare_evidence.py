"""compare_evidence: Bayes factors and posterior probabilities of models, with their errors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax

from sklpf._utils.numbers import Array
from sklpf._utils.tables import Rows, Table, imported, with_error
from sklpf._utils.validation import as_float64, check_level
from sklpf.partition._result import PartitionResult, reading
from sklpf.partition.evidence._pool import single_result
from sklpf.partition.levels import READINGS, check_run, read_by
from sklpf.uncertainty import Variance

if TYPE_CHECKING:
    from sklpf.partition.levels import LevelRun


class ModelEvidence(NamedTuple):
    """Evidence of one model, and its share of the posterior.

    Attributes
    ----------
    log_evidence, std_error : float
        In nats; the error is infinite where the number is no estimate.
    difference, difference_std_error : float
        Log evidence less that of the model with the highest: the log Bayes factor, and the error of
        both together.
    difference_interval : tuple of float
        Interval of the difference, in nats.
    probability : float
        Posterior probability of the model, if one of those compared is true.
    probability_interval : tuple of float
        Interval of the posterior probability, from the errors of all log evidences.
    converged : bool
        Whether its log evidence can be trusted.
    is_checked : bool
        Whether it was made without ``checks=False``.
    """

    log_evidence: float
    std_error: float
    difference: float
    difference_std_error: float
    difference_interval: tuple[float, float]
    probability: float
    probability_interval: tuple[float, float]
    converged: bool
    is_checked: bool = True


@dataclass(frozen=True, repr=False)
class EvidenceComparison(Table):
    """Models by their log evidence, the highest first; printed it is a table.

    Attributes
    ----------
    models : dict of str to ModelEvidence
        The models by name.
    level : float
        Confidence level of the intervals.
    reasons : tuple of str
        Why some of the log evidences should not be trusted.
    """

    models: dict[str, ModelEvidence]
    level: float
    reasons: tuple[str, ...]

    @property
    def converged(self) -> bool:
        """True if all numbers can be trusted."""
        return not self.reasons

    def to_frame(self) -> Any:
        """Return a row for each model, the highest log evidence first.

        Returns
        -------
        pandas.DataFrame
            Log evidences and differences in nats.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = imported("pandas", "to_frame")

        rows = []
        for model in self.models.values():
            row = model._asdict()
            for name in ("difference", "probability"):
                row[f"{name}_low"], row[f"{name}_high"] = row.pop(f"{name}_interval")
            row["converged"] = row.pop("converged")  # as the last column
            rows.append(row)
        return pd.DataFrame(rows, index=pd.Index(list(self.models), name="model"))

    @property
    def _header(self) -> tuple[str, ...]:  # type: ignore[override]
        interval = f"{100 * self.level:.3g} % interval"
        return ("model", "log evidence", "difference", "probability", interval, "")

    def _table(self) -> Rows:
        table = []
        for name, model in self.models.items():
            difference = ""
            if model.difference != 0:
                difference = with_error(model.difference, model.difference_std_error)
            trust = "" if model.is_checked else "without checks"
            if not model.converged:
                trust = "not converged"
            probability = f"{model.probability:.3g}"
            low, high = model.probability_interval
            table.append(
                (
                    name,
                    with_error(model.log_evidence, model.std_error),
                    difference,
                    probability,
                    f"[{low:.3g}, {high:.3g}]",
                    trust,
                )
            )
        return table

    def _title(self) -> str:
        return f"log evidence of {len(self.models)} models (nats)"


def compare_evidence(
    fitted: Mapping[str, Any], *, prior: Mapping[str, float] | None = None, level: float = 0.95
) -> EvidenceComparison:
    """Compare models by their log evidences: Bayes factors and posterior probabilities, with
    errors.

    All log evidences must be of the same data, with all constants of likelihood and prior in them.

    Parameters
    ----------
    fitted : dict of str to fitted estimator or PartitionResult
        At least two, by name. Their errors are taken as independent.
    prior : dict of str to float or None, default=None
        Prior probabilities of the models, up to a constant; None: equal ones.
    level : float, default=0.95
        Probability with which each interval covers.

    Returns
    -------
    EvidenceComparison

    Raises
    ------
    TypeError
        If something is neither a fitted estimator of log Z nor its result, or `prior` is no dict
        of numbers.
    ValueError
        If there are fewer than two, a result has a log Z for each row, or `prior` has other names
        or numbers that are not positive.

    Notes
    -----
    The log odds of a model against all others have, to first order, the variance SE_i^2 +
    sum_j w_j^2 SE_j^2 with w_j the others' shares of their sum. Their interval, by Student's t with
    Welch's degrees of freedom, gives that of the probability; of two models it is exact. It says
    how well the probability has been computed. What the probability itself depends on, the priors
    above all, is not in it.

    Examples
    --------
    >>> from sklpf import PartitionResult, compare_evidence
    >>> results = {
    ...     "line": PartitionResult("HAIS", -104.2, 0.05),
    ...     "parabola": PartitionResult("HAIS", -105.3, 0.06),
    ... }
    >>> print(compare_evidence(results).summary())
    log evidence of 2 models (nats)
      model     log evidence      difference      probability  95 % interval
      line      -104.200 ± 0.050                  0.75         [0.72, 0.778]
      parabola  -105.300 ± 0.060  -1.100 ± 0.078  0.25         [0.222, 0.28]
    """
    if not isinstance(fitted, Mapping) or len(fitted) < 2:  # type: ignore[redundant-expr]
        raise ValueError("fitted must be a dict of at least two fitted estimators or results")
    check_level(level)
    remedy = ", and models are compared by one: see compare"
    results = {
        name: single_result(f"fitted[{name!r}]", one, remedy) for name, one in fitted.items()
    }
    log_prior = dict(zip(results, np.log(prior_weights(prior, tuple(results)))))
    evidence = {name: float(each.log_partition) for name, each in results.items()}
    names = sorted(results, key=lambda name: (np.isnan(evidence[name]), -evidence[name]))
    errors = {name: _error_of(results[name]) for name in names}
    best = names[0]

    models = {}
    for name in names:
        result = results[name]
        difference = float(result.log_partition - results[best].log_partition)
        error = Variance(0.0) if name == best else errors[name].plus(errors[best])
        half = error.half_width(level)
        log_odds, odds_error = _log_odds(name, results, errors, log_prior)
        odds_half = odds_error.half_width(level)
        low, high = expit([log_odds - odds_half, log_odds + odds_half])
        models[name] = ModelEvidence(
            log_evidence=float(result.log_partition),
            std_error=errors[name].std_error,
            difference=difference,
            difference_std_error=error.std_error,
            difference_interval=(difference - half, difference + half),
            probability=float(expit(log_odds)),
            probability_interval=(float(low), float(high)),
            converged=result.converged and result.is_estimate,
            is_checked=result.check_evaluations is not None,
        )
    reasons = [f"{name}: {reason}" for name in names for reason in results[name].reasons]
    for name in names:
        if not results[name].is_estimate:
            reasons.append(f"{name}: log Z is not estimated, but {results[name].statement}")
    return EvidenceComparison(models, level, tuple(reasons))


def prior_weights(prior: Mapping[str, float] | None, names: tuple[str, ...]) -> Array:
    """The prior probabilities of the models with these names, up to a factor."""
    if prior is None:
        return np.ones(len(names))
    if not isinstance(prior, Mapping):
        raise TypeError(
            "prior must be a dict of the models' names to their prior probabilities, got"
            f" {type(prior).__name__}"
        )
    if prior.keys() != set(names):
        given = ", ".join(map(str, prior))
        raise ValueError(f"prior must name the models {', '.join(names)}, got {given}")
    values = as_float64([prior[name] for name in names], "prior")
    if not np.all((values > 0) & np.isfinite(values)):
        raise ValueError("prior must hold positive numbers; leave out models that are impossible")
    return values


def _error_of(result: PartitionResult) -> Variance:
    if not result.is_estimate or math.isnan(result.std_error):
        return Variance(math.inf)
    return Variance(float(result.std_error) ** 2, float(result.degrees_of_freedom))


def _log_odds(name, results, errors, log_prior) -> tuple[float, Variance]:
    """Log odds of a model against all others together."""
    weighted = {other: results[other].log_partition + log_prior[other] for other in results}
    own = weighted.pop(name)
    against = np.array(list(weighted.values()))
    shares = np.fmax(np.exp(log_softmax(against)), 1e-300)
    error = errors[name]
    for other, share in zip(weighted, shares):
        error = error.plus(errors[other], share)
    with np.errstate(invalid="ignore"):  # NaN where one of the others has no number
        return float(own - np.logaddexp.reduce(against)), error


@dataclass(frozen=True, repr=False)
class EstimateComparison(Table):
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
        pd = imported("pandas", "to_frame")

        return pd.DataFrame(map(self._row, self.results)).set_index("method")

    def _row(self, result: PartitionResult) -> dict[str, Any]:
        names = ("difference", "difference_std_error")
        return {
            "method": result.method,
            **result._numbers(),
            **{name: result.diagnostics.get(name, 0.0) for name in names},
            "converged": result.converged,
        }

    _header = ("method", "log Z", "95 % interval", "difference", "")

    def _table(self) -> Rows:
        table = []
        for row in map(self._row, self.results):
            method, value, _, low, high, differs, error, converged = row.values()
            beside = "" if error == 0 and differs == 0 else f"{differs:+.4f} ± {error:.4f}"
            trust = "" if converged else "not converged"
            table.append((method, f"{value:.4f}", f"[{low:.4f}, {high:.4f}]", beside, trust))
        return table

    def _title(self) -> str:
        return "log Z from one run (nats)"


def compare_estimates(run: LevelRun) -> EstimateComparison:
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
    >>> weights = rng.normal(size=(4, 6))
    >>> rbm = BernoulliRBM.from_parameters(weights, np.zeros(6), np.zeros(4))
    >>> comparison = compare_estimates(ParallelTempering(random_state=0).fit(rbm).run_)
    >>> [result.method for result in comparison.results][:3]
    ['ParallelTempering', 'BAR', 'MBAR']
    """
    check_run(run)
    with reading():
        own = run._read()
    has_slopes = run.samples.slopes.shape[1] and np.isfinite(run.last.level_sums).all()
    others = [
        method
        for name, method in READINGS.items()
        if method.name != own.method and (has_slopes or name != "thermodynamic-integration")
    ]
    results = (run.judge(own), *(read_by(run, method, {}, own) for method in others))
    return EstimateComparison(results)

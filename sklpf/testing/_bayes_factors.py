"""Calibration of posterior probabilities of models, by simulation from their priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, softmax

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.validation import check_count
from sklpf.partition import PartitionResult
from sklpf.partition.evidence import prior_weights


class BayesFactorCheck(NamedTuple):
    """Simulated data sets with the posterior probabilities of the models.

    Attributes
    ----------
    names : tuple of str
        The K models.
    true : ndarray of int of shape (n,)
        Which model each data set is from.
    probabilities : ndarray of shape (n, K)
        Posterior probabilities, by the evidences that were given.
    p_values : dict of str to float
        Of the K tests that each model is as frequent as it is probable, and of the test of
        "confidence".
    n_left_out : int
        Data sets for which some evidence was not converged, which are left out.
    """

    names: tuple[str, ...]
    true: Integers
    probabilities: Array
    p_values: dict[str, float]
    n_left_out: int


def check_bayes_factors(
    simulators: Mapping[str, Callable[[np.random.Generator], Any]],
    log_evidence: Callable[[str, Any], Any],
    *,
    n_simulations: int = 200,
    prior: Mapping[str, float] | None = None,
    false_alarm: float = 1e-3,
    random_state: int = 0,
) -> BayesFactorCheck:
    """Check that posterior probabilities of models, and so Bayes factors, are calibrated.

    A model is drawn from the prior over models, its parameters from their prior, and data from
    their likelihood. If evidences are right, a model is true as often as its posterior probability
    says: on average over all data (Schad et al. 2023; Sekulovski et al. 2024), and wherever it is
    confident. Both are tested.

    Parameters
    ----------
    simulators : dict of str to callable
        At least two models by name: ``simulate(rng)`` draws parameters from the model's prior and
        returns data.
    log_evidence : callable
        ``log_evidence(name, data)`` is the log evidence of a model in nats: a number (-inf if the
        model excludes the data), a `PartitionResult` or a fitted estimator.
    n_simulations : int, default=200
        Data sets. A factor of 2 in one evidence is seen with 400 between models that data hardly
        tell apart, and mostly with 800 between others.
    prior : dict of str to float or None, default=None
        Prior probabilities of the models, up to a constant; None: equal ones.
    false_alarm : float, default=1e-3
        Probability that right evidences fail.
    random_state : int, default=0
        Seed of the simulations.

    Returns
    -------
    BayesFactorCheck
        The probabilities, for pictures and for tests of your own.

    Raises
    ------
    TypeError
        If `simulators` is no dict of functions, or an evidence no number.
    ValueError
        If there are fewer than two models, the prior is not of these, or an evidence is +inf.
    AssertionError
        If the probabilities are not calibrated, with a sentence that says how.

    Notes
    -----
    Given the data, the true model has the posterior probabilities as its distribution. So their
    tests draw it from these many times: the frequency of each model, and the sum of the log
    probabilities of the true models, are compared with their distributions, by (K + 1) two-sided
    tests that share `false_alarm`. Data sets for which an estimate did not converge are left out,
    which changes nothing of this.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from sklpf.testing import check_bayes_factors
    >>> simulators = {  # one observation with a known mean, or with the prior N(0, 2^2) of it
    ...     "zero": lambda rng: rng.normal(),
    ...     "free": lambda rng: rng.normal(rng.normal(scale=2.0)),
    ... }
    >>> def log_evidence(name, y):
    ...     return norm.logpdf(y, scale=1.0 if name == "zero" else np.sqrt(5.0))
    >>> check_bayes_factors(simulators, log_evidence).names
    ('zero', 'free')
    """
    if not isinstance(simulators, Mapping) or not all(  # type: ignore[redundant-expr]
        map(callable, simulators.values())
    ):
        raise TypeError("simulators must be a dict of models' names to functions simulate(rng)")
    if len(simulators) < 2:
        raise ValueError(f"simulators must be of at least two models, got {len(simulators)}")
    check_count(n_simulations, "n_simulations", 10)
    names = tuple(simulators)
    shares = prior_weights(prior, names)
    shares /= shares.sum()
    rng = np.random.default_rng(random_state)

    true = []
    log_weights = []
    for _ in range(n_simulations):
        model = int(rng.choice(len(names), p=shares))
        data = simulators[names[model]](rng)
        found = np.array([_number(log_evidence(name, data), name) for name in names])
        if np.all(found == -np.inf):
            raise AssertionError(
                f"a data set that {names[model]} has simulated has the log evidence -inf by all"
                " models: log evidences are wrong, or data are not simulated as the models say"
            )
        if np.isfinite(found.max()):  # of models that exclude the data it is -inf
            true.append(model)
            log_weights.append(found + np.log(shares))
    if not true:
        raise AssertionError("no data set has converged evidences of all models")
    probabilities = softmax(np.array(log_weights), axis=1)
    check = BayesFactorCheck(
        names,
        np.array(true),
        probabilities,
        _p_values(names, np.array(true), probabilities, false_alarm, rng),
        n_simulations - len(true),
    )
    _require_calibrated(check, false_alarm)
    return check


def _number(evidence: Any, name: str) -> float:
    """The log evidence; NaN of an estimate that did not converge."""
    result = getattr(evidence, "result_", evidence)
    if isinstance(result, PartitionResult):
        return float(result.log_partition) if result.converged else np.nan
    if np.ndim(result) or np.asarray(result).dtype.kind not in "fiu":
        raise TypeError(
            f"log_evidence must return a number, a result or a fitted estimator, got for {name}"
            f" {type(evidence).__name__}"
        )
    if result == np.inf:
        raise ValueError(f"log_evidence must be finite or -inf, got +inf for {name}")
    return float(result)


def _p_values(
    names,
    true,
    probabilities,
    false_alarm,
    rng,
    *,
    null_draws: float = 10.0,  # of the test statistic beyond its bound
    most_at_once: int = 10_000_000,  # numbers
) -> dict[str, float]:
    """Two-sided, of what the true models are, by draws of them from the probabilities."""
    with np.errstate(divide="ignore"):
        log_probabilities = np.log(probabilities)
    n, n_models = probabilities.shape

    def statistics(models):  # (..., n)
        frequencies = [np.sum(models == k, axis=-1) for k in range(n_models)]
        return np.stack([*frequencies, log_probabilities[np.arange(n), models].sum(axis=-1)])

    observed = statistics(true)[:, np.newaxis]
    bounds = np.cumsum(probabilities, axis=1)[:, :-1]
    n_draws = int(np.ceil(2 * null_draws * (n_models + 1) / false_alarm))
    below = np.ones(n_models + 1)
    above = np.ones(n_models + 1)
    n_at_once = max(most_at_once // (n * n_models), 1)
    for first in range(0, n_draws, n_at_once):
        uniforms = rng.random((min(n_at_once, n_draws - first), n, 1))
        drawn = statistics(np.sum(uniforms > bounds, axis=2))
        below += np.sum(drawn <= observed, axis=1)
        above += np.sum(drawn >= observed, axis=1)
    p_values = np.minimum(2 * np.minimum(below, above) / (n_draws + 1), 1.0)
    return dict(zip((*names, "confidence"), p_values.tolist()))


def _require_calibrated(check: BayesFactorCheck, false_alarm: float) -> None:
    """Raise AssertionError with the first test that fails."""
    bound = false_alarm / len(check.p_values)
    n = len(check.true)
    for k, name in enumerate(check.names):
        if check.p_values[name] < bound:
            mean = check.probabilities[:, k].mean()
            raise AssertionError(
                f"the posterior probability of {name} has the mean {mean:.3f} over {n} data sets,"
                f" of which {np.mean(check.true == k):.3f} are from it"
                f" (p = {check.p_values[name]:.1g}): log evidences are wrong, or data are not"
                " simulated as the models say"
            )
    if check.p_values["confidence"] < bound:
        mean = np.mean(np.log(check.probabilities[np.arange(n), check.true]))
        expected = -np.mean(np.sum(entr(check.probabilities), axis=1))
        raise AssertionError(
            f"the true models of {n} data sets have the mean log probability {mean:.3f}, where"
            f" {expected:.3f} is expected (p = {check.p_values['confidence']:.1g}): probabilities"
            f" are too {'sure' if mean < expected else 'unsure'}"
        )

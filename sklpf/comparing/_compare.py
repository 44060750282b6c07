"""compare: held-out log-likelihoods of fitted models and pipelines, and
tables of comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from sklpf._utils.numbers import Array, Matrix
from sklpf._utils.parallel import fingerprint
from sklpf._utils.tables import Rows, Table, imported
from sklpf._utils.validation import check_option
from sklpf.partition import PartitionResult
from sklpf.scoring import (
    IntervalOfMean,
    OtherDensity,
    Scored,
    ScoreDifference,
    ScoreInterval,
    best_first,
    check_same_kind,
    fit_for_model,
    holds_model,
    interval_of,
    is_density,
    is_model,
    last_step,
    report,
)

# nats; beyond, the difference of two log Z has the smaller error (doc/benchmarks/calibration.md)
_MOST_SPREAD = 2.5
_MOST_APART = 3.0  # joint standard errors


@dataclass(frozen=True, repr=False)
class Comparison(Table):
    """Mean log-likelihoods by name, the best first, and differences of all others from it."""

    scores: dict[str, Any]  # intervals: of fitted models or of procedures
    differences: dict[str, Any]

    _index = "model"

    @property
    def best(self) -> str:
        """Name of the largest mean among those that converged."""
        return next(iter(self.scores))

    def _shown(self, name: str) -> Any:
        """The difference from the best, of the best itself its score."""
        return self.differences.get(name, self.scores[name])

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for every name.

        Columns: mean, low and high (combined interval); difference, difference_low and
        difference_high (from the best, 0 for itself); of fitted models method (of the difference,
        as in `ScoreInterval`), of procedures difference_std_error, sampling, fits and partition
        (half-widths of the difference's parts, of the best one those of its mean), n_fits and
        chosen; converged, and reasons in one string.

        Returns
        -------
        pandas.DataFrame
            The best first, numbers in nats.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = imported("pandas", "to_frame")

        rows = [self._row(name) for name in self.scores]
        return pd.DataFrame(rows, index=pd.Index(self.scores, name=self._index))

    def _row(self, name: str) -> dict[str, Any]:
        score = self.scores[name]
        shown = self._shown(name)
        apart = (0.0, 0.0, 0.0) if shown is score else (shown.mean, *shown.combined)
        columns = ("mean", "low", "high", "difference", "difference_low", "difference_high")
        return {
            **dict(zip(columns, (score.mean, *score.combined, *apart))),
            **self._details(name),
            "converged": not shown.reasons,
            "reasons": "; ".join(shown.reasons),
        }

    def _details(self, name: str) -> dict[str, Any]:
        """Further columns of `to_frame`."""
        raise NotImplementedError

    def _table(self) -> Rows:
        table = []
        for name, score in self.scores.items():
            shown = self._shown(name)
            apart = "" if shown is score else interval_text(shown)
            remarks = "; ".join(self._remarks(name))
            table.append((name, interval_text(score), apart, *self._parts(name), remarks))
        baselines: dict[str, str] = {}
        for score in self.scores.values():
            if score.baseline is not None:
                mean = f"{score.baseline.mean:.{digits(score)}f}"
                baselines.setdefault(f"({score.baseline.name})", mean)
        blank = [""] * (len(self._header) - 2)
        return [*table, *((name, mean, *blank) for name, mean in baselines.items())]

    def _parts(self, name: str) -> list[str]:
        """Cells for the parts of an error."""
        return []

    def _remarks(self, name: str) -> list[str]:
        """Remarks on a name's numbers, such as why they are not trusted."""
        reasons = self._shown(name).reasons
        remarks = [f"not converged: {'; '.join(reasons)}"] if reasons else []
        baseline = self.scores[name].baseline
        if baseline is not None and baseline.is_better:
            worse = f"worse than {baseline.name} of the training rows, {baseline.mean:.2f} nats"
            remarks.append(worse)
        return remarks


@dataclass(frozen=True, repr=False)
class ModelComparison(Comparison):
    """Held-out log-likelihoods of the same rows by these fitted models (nats).

    `FitComparison` compares procedures, and includes the spread between fits.

    Attributes
    ----------
    scores : dict of str to ScoreInterval
        Every model's mean log-likelihood per row, the best first: by the mean, those that did not
        converge last.
    differences : dict of str to ScoreDifference
        Mean difference from the first model, paired by rows, of every other one; usually negative.
    """

    scores: dict[str, ScoreInterval]
    differences: dict[str, ScoreDifference]

    _header = ("these fits", "log-likelihood", "difference from the first", "")

    def _details(self, name: str) -> dict[str, Any]:
        return {"method": getattr(self._shown(name), "method", "")}

    def _remarks(self, name: str) -> list[str]:
        shown = self._shown(name)
        remarks = super()._remarks(name)
        if shown.is_unsettled:
            remarks.append(f"unsettled, ± {shown.scatter:.2g}")
        return remarks

    def _notes(self) -> list[str]:
        if not any(self._shown(name).is_unsettled for name in self.scores):
            return []
        return [
            "unsettled: scattered by more than the interval's half-width between the last passes of"
            " training, so that another seed may say the opposite; fit for longer, or take"
            " compare_fits"
        ]

    def _title(self) -> str:
        unit = self.scores[self.best].unit
        return (
            f"log-likelihood per {unit} of these fitted models (nats); of procedures: compare_fits"
        )


def interval_text(interval: IntervalOfMean) -> str:
    """A mean and its interval, with two digits of the standard error and at least 2 decimals."""
    if not np.isfinite(interval.mean):
        return f"{interval.mean}"
    n = digits(interval)
    low, high = interval.combined
    return f"{interval.mean:.{n}f} [{low:.{n}f}, {high:.{n}f}]"


def digits(interval: IntervalOfMean) -> int:
    """Decimals that show two digits of the standard error, at least 2."""
    return max(2, interval.digits)


def half_width(ends: tuple[float, float]) -> float:
    """Half the distance of an interval's ends."""
    return (ends[1] - ends[0]) / 2


def compare(
    model_a: Any,
    model_b: Any = None,
    X: Any = None,
    level: float = 0.95,
    *,
    ratio: str = "auto",
    per: str | None = None,
) -> Any:
    """Compare fitted models by their mean log-likelihood of the same rows (nats).

    ``compare(a, b, X)`` is the mean over rows of log p_a(x) - log p_b(x), positive where `a` is
    better. ``compare({"a": a, "b": b, "c": c}, X)`` is a table of any number of models, each with
    its difference from the best.

    It does not say which procedure is better: another training seed or training set gives other
    models, which may differ by more than the interval. That is the question of `compare_fits`.

    Rows are paired: what makes a row hard for both models cancels, so the interval is narrower than
    two scores suggest. The errors of the two means that come from estimated log Z are added once,
    in quadrature; of two RBMs, or two densities on R^d, that differ little the ratio of their Z is
    estimated directly, which has a smaller error.

    Parameters
    ----------
    model_a, model_b : fitted models, or pipelines that end in one
        With `score_samples` and `score_interval`, such as `BernoulliRBM` or `FactorialMixture`; or
        a density of scikit-learn (`GaussianMixture`, `BayesianGaussianMixture`, `KernelDensity`,
        `PCA`, `FactorAnalysis`), which has no log Z. Instead of `model_a`, a dict of at least 2 by
        name, and then `X`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Held-out rows, at least 2, the same for all. Pipelines transform them, and must arrive at
        the same rows.
    level : float, default=0.95
        Probability with which each interval covers.
    ratio : {"auto", "difference"}, default="auto"
        "difference" takes the difference of two log Z always. "auto" also runs chains along a path
        from one model to the other, and uses the ratio of Z from there if that run converged. There
        is such a path if both models are a `BernoulliRBM`, both a `CategoricalRBM` of the same
        categories, or both a `ProductOfExperts` or a `MeanCovarianceRBM`, of any sizes. It is used
        if both models are trusted, at least one log Z is not exact, and the standard deviation over
        the rows of X of log f_a(x) - log f_b(x) is at most 2.5 nats.
    per : {"document", "word"} or None, default=None
        For topic models only, as in `LatentDirichletAllocation.score_interval`. None is "document".

    Returns
    -------
    interval : ScoreDifference
        The difference of two models: ``mean``, its intervals ``sampling``, ``partition`` (the two
        log Z) and ``combined``, ``converged`` and ``reasons``; ``method`` says which ratio was
        used. Not converged if one of the models' numbers is not trusted, or if both ratios differ
        by more than 3 joint standard errors.
    comparison : ModelComparison
        The comparison of a dict of models. It prints as a table; `to_frame` gives a
        pandas.DataFrame. The best is chosen by these rows, so that differences from it are a little
        too large where several are about as good; an interval that excludes 0 says that this model
        and the best differ, for one pair and not for all at once.

    Raises
    ------
    TypeError
        If a model has no log-likelihood with an error, `X` is missing, or `per` is given for models
        of other rows than documents.
    ValueError
        If a dict holds fewer than 2 models; if pipelines arrive at different rows, whose densities
        can't be compared; or if one model has densities and another probabilities, or
        probabilities of documents.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, compare
    >>> fair = BernoulliRBM.from_parameters(np.zeros((1, 2)), np.zeros(2), np.zeros(1))
    >>> skewed = BernoulliRBM.from_parameters(np.zeros((1, 2)), np.ones(2), np.zeros(1))
    >>> X = np.array([[1, 1], [1, 0], [1, 1]])
    >>> round(compare(skewed, fair, X).mean, 4)
    0.4264
    >>> print(compare({"fair": fair, "skewed": skewed}, X))
    these fits  log-likelihood              difference from the first
    skewed      -0.96 [-2.39, 0.47]
    fair        -1.3863 [-1.3863, -1.3863]  -0.43 [-1.86, 1.01]
    """
    check_option(ratio, ("auto", "difference"), "ratio")
    is_dict = isinstance(model_a, Mapping)
    if is_dict and X is None and not is_model(model_b):
        X, model_b = model_b, None
    if X is None or (model_b is None) != is_dict or is_model(X):
        raise TypeError(
            "compare needs two models and rows, compare(model_a, model_b, X), or models by name,"
            " compare({'a': model_a, 'b': model_b}, X)"
        )
    if not is_dict:
        a, b = score_all({"model_a": model_a, "model_b": model_b}, X, level, per)
        return replace(paired(a, b, level, ratio), remarks=_worse_than_baselines((a, b), level))

    named = {str(name): model for name, model in model_a.items()}
    if len(named) < max(len(model_a), 2):
        raise ValueError(f"compare needs at least 2 models of different names, got {list(model_a)}")
    entrants = {entrant.name: entrant for entrant in score_all(named, X, level, per)}
    scores = {name: interval_of(entrant.scored, level) for name, entrant in entrants.items()}
    best, *others = best_first(scores)
    return ModelComparison(
        {name: scores[name] for name in (best, *others)},
        {name: paired(entrants[name], entrants[best], level, ratio) for name in others},
    )


class Entrant(NamedTuple):
    """A model of a comparison, and what it says about the rows."""

    name: str
    model: Any
    scored: Scored


def score_all(models: Mapping[str, Any], X, level: float, per: str | None = None) -> list[Entrant]:
    """Score the rows by every model; all pipelines must arrive at the same rows."""
    entrants = [(name, *_model_and_rows(name, model, X)) for name, model in models.items()]
    check_same_kind(models)
    for name, model in models.items():
        check_per(name, last_step(model), per)
    first, _, rows = entrants[0]
    for name, _, others in entrants[1:]:
        check_same_rows(first, name, rows is others or rows_digest(rows) == rows_digest(others))
    return [
        Entrant(name, model, scored_per(model, rows, level, per)) for name, model, rows in entrants
    ]


def scored_per(model: Any, rows: Matrix, level: float, per: str | None) -> Scored:
    """Return the scores of rows by a model, of documents per word if that is asked for."""
    return model._words_scored(rows, level) if per == "word" else model._scored(rows, level)


def check_per(name: str, model: object, per: str | None) -> None:
    """Raise ValueError or TypeError unless a model can score per document or word."""
    if per is None:
        return
    check_option(per, ("document", "word"), "per")
    if getattr(model, "_unit", "row") != "document":
        raise TypeError(
            f"per must be None, as {name} is a {type(model).__name__}: only topic models score"
            " documents and words"
        )


def paired(a: Entrant, b: Entrant, level: float, ratio: str) -> ScoreDifference:
    """The paired difference of two models on the same rows."""
    reasons = [
        f"{entrant.name}: {reason}" for entrant in (a, b) for reason in entrant.scored.reasons
    ]
    with np.errstate(invalid="ignore"):  # rows that have the likelihood 0 under both
        values = a.scored.values - b.scored.values
    below = np.hypot(a.scored.below, b.scored.above)
    above = np.hypot(a.scored.above, b.scored.below)
    direct = direct_ratio(a.model, b.model, values) if ratio == "auto" and not reasons else None
    if direct is not None:  # it replaces the difference of two log Z
        values = values + direct.log_partition - (b.model.log_partition_ - a.model.log_partition_)
        alarm = _why_apart(direct, a, b)
        if alarm is not None:
            strictness = ("warn", "nan", "raise").index
            strictest = max((a.model, b.model), key=lambda m: strictness(m.on_nonconvergence))
            report(strictest, alarm)
            reasons.append(alarm)
            if strictest.on_nonconvergence == "nan":
                values = np.full_like(values, np.nan)
        low, high = direct.interval(level)
        below = direct.log_partition - low
        above = high - direct.log_partition
    known = [entrant.scored.scatter for entrant in (a, b) if np.isfinite(entrant.scored.scatter)]
    scatter = float(np.linalg.norm(known)) if known else np.nan
    scored = Scored(values, below, above, tuple(reasons), a.scored.unit, scatter)
    method = "difference" if direct is None else "direct"
    return ScoreDifference(**vars(interval_of(scored, level)), method=method)


def _worse_than_baselines(entrants: Sequence[Entrant], level: float) -> tuple[str, ...]:
    """A sentence for each model that is worse than its baseline."""
    remarks = []
    for name, _, scored in entrants:
        score = interval_of(scored, level)
        if score.baseline is not None and score.baseline.is_better:
            remarks.append(f"{name}: {score.baseline.sentence(score.mean, score.unit)}")
    return tuple(remarks)


def _model_and_rows(name, estimator, X):
    """The model that an estimator ends in, and the rows that it scores."""
    model = last_step(estimator)
    is_other = is_density(estimator)
    if not (is_other or is_model(model)):
        where = " at the end of a pipeline" if model is not estimator else ""
        raise TypeError(
            f"{name} must be a model of sklpf, a density of scikit-learn such as GaussianMixture,"
            " or a pipeline that ends in one, got"
            f" {type(model).__module__}.{type(model).__name__}{where}{_instead(estimator, model)}"
        )
    while isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    return (OtherDensity(model) if is_other else model), X


def _instead(estimator, last) -> str:
    """Advice on what to pass instead of an estimator that does not end in a model."""
    if hasattr(last, "best_estimator_"):
        return "; take the model that the search found, its best_estimator_"
    if holds_model(estimator):
        return "; pass the part that ends in its model, or use sklpf.log_likelihood, which finds it"
    return "; of an RBM or topics that another library fitted sklpf.interop makes such a model"


def check_same_rows(first: str, second: str, are_same: bool) -> None:
    """Raise ValueError if two models or pipelines score different rows."""
    if not are_same:
        raise ValueError(
            f"{first} and {second} score different rows, as their preprocessing differs: densities"
            " of different rows can't be compared; preprocess X before, or in all pipelines by the"
            " same steps"
        )


def rows_digest(rows) -> str:
    """Digest of rows, the same for equal numbers, dense or sparse, of any dtype."""
    rows = sp.csr_array(rows if sp.issparse(rows) else np.asarray(rows), dtype=np.float64)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return fingerprint(
        rows.shape, rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
    )


def direct_ratio(model_a: Any, model_b: Any, values: Array) -> PartitionResult | None:
    """log Z_b - log Z_a by a run on the path from a to b; None where there is none, or it did not
    converge.

    Whether a run is made depends on nothing that is random: on the models' classes and on the
    spread of log p_a(x) - log p_b(x) over the rows, `values`, which no log Z changes.
    """
    have_paths = all(hasattr(model, "_ratio_path") for model in (model_a, model_b))
    if not have_paths or not np.std(values) <= _MOST_SPREAD:
        return None
    if all(model.partition_estimator_.result_.statement == "exact" for model in (model_a, model_b)):
        return None
    return ratio_result(model_a, model_b)


def ratio_result(model_a: Any, model_b: Any) -> PartitionResult | None:
    """The result of a run on the path from a to b; None if there is no path, or draws or run are
    not trusted.
    """
    path = model_a._ratio_path(model_b)
    if path is None or path.draw_alarms:
        return None
    estimator = path.default_estimator().set_params(
        random_state=model_a._partition_seed, n_jobs=model_a.n_jobs
    )
    result = fit_for_model(estimator, path).result_
    return result if result.converged else None


def _why_apart(direct: PartitionResult, a: Entrant, b: Entrant) -> str | None:
    """A sentence if the direct ratio and the difference of two log Z are too far apart,
    else None.
    """
    first, second = (entrant.model.partition_estimator_.result_ for entrant in (a, b))
    apart = direct.log_partition - (second.log_partition - first.log_partition)
    error = float(np.sqrt(direct.std_error**2 + first.std_error**2 + second.std_error**2))
    if abs(apart) <= _MOST_APART * error:
        return None
    return (
        f"the direct ratio of {b.name}'s Z to {a.name}'s and the difference of their log Z are"
        f" {abs(apart):.2g} nats apart, more than {_MOST_APART:g} joint standard errors"
        f" ({error:.2g}): one of the three runs missed a part of a model; give a longer"
        " partition_estimator"
    )

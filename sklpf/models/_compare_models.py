"""compare_models: a table of models, paired against the best of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklpf._utils.tables import Readable, Rows, import_pandas, text_table
from sklpf.models._compare import paired, score_all
from sklpf.models._direct_ratio import check_ratio
from sklpf.models._scoring import ScoreInterval, best_first, interval_of


@dataclass(frozen=True, repr=False)
class ModelComparison(Readable):
    """Held-out log-likelihoods of the same rows by these fitted models (nats).

    `FitComparison` compares procedures, and includes the spread between fits.

    Attributes
    ----------
    scores : dict of str to ScoreInterval
        Every model's mean log-likelihood per row, the best first: by the mean, those that did not
        converge last.
    differences : dict of str to ScoreInterval
        Mean difference from the first model, paired by rows, of every other one; usually negative.
    """

    scores: dict[str, ScoreInterval]
    differences: dict[str, ScoreInterval]

    @property
    def best(self) -> str:
        """Name of the model with the largest mean among those that converged."""
        return next(iter(self.scores))

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with a row for every model.

        Columns: mean, low and high (combined interval), difference, difference_low and
        difference_high (from the best model, 0 for itself), converged, reasons in one string, and
        method (of the difference, as in `ScoreInterval`).

        Returns
        -------
        pandas.DataFrame
            The best model first.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = import_pandas()

        rows = [self._row(name) for name in self.scores]
        return pd.DataFrame(rows, index=pd.Index(self.scores, name="model"))

    def _row(self, name):
        score = self.scores[name]
        difference = self.differences.get(name)
        apart = (0.0, 0.0, 0.0) if difference is None else (difference.mean, *difference.combined)
        reasons = score.reasons if difference is None else difference.reasons
        return {
            "mean": score.mean,
            "low": score.combined[0],
            "high": score.combined[1],
            **dict(zip(("difference", "difference_low", "difference_high"), apart)),
            "converged": not reasons,
            "reasons": "; ".join(reasons),
            "method": "" if difference is None else difference.method,
        }

    _header = ("these fits", "log-likelihood", "difference from the first", "")

    def _table(self) -> Rows:
        table = []
        for name in self.scores:
            row = self._row(name)
            apart = _interval(row["difference"], row["difference_low"], row["difference_high"])
            table.append(
                (
                    name,
                    _interval(row["mean"], row["low"], row["high"]),
                    apart if name in self.differences else "",
                    "; ".join(self._remarks(name)),
                )
            )
        return table

    def _remarks(self, name) -> list[str]:
        """What stands behind a model's numbers, of the difference where there is one."""
        shown = self.differences.get(name, self.scores[name])
        remarks = [f"not converged: {'; '.join(shown.reasons)}"] if shown.reasons else []
        return [*remarks, *shown.notes]

    def __repr__(self) -> str:
        return text_table([self._header, *self._table()])

    def _title(self) -> str:
        unit = next(iter(self.scores.values())).unit
        return (
            f"log-likelihood per {unit} of these fitted models (nats); of procedures: compare_fits"
        )


def compare_models(
    models: Mapping[str, Any], X, level: float = 0.95, *, ratio: str = "auto"
) -> ModelComparison:
    """Compare fitted models by their mean log-likelihood of the same rows.

    Each is paired with the best of them.

    It does not say which procedure is best: another training seed or training set gives other
    models, which may differ by more than the intervals. That is the question of `compare_fits`.

    The best is chosen by these rows, so that differences from it are a little too large where
    several are about as good; an interval that excludes 0 says that this model and the best differ,
    for one pair and not for all at once.

    Parameters
    ----------
    models : dict of str to fitted model or pipeline
        At least 2, by name; as `compare` takes them.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Held-out rows, at least 2, the same for all.
    level : float, default=0.95
        Probability with which each interval covers.
    ratio : {"auto", "difference"}, default="auto"
        As in `compare`.

    Returns
    -------
    comparison : ModelComparison
        Prints as a table; `to_frame` gives a pandas.DataFrame.

    Raises
    ------
    TypeError
        If `models` is no dict, or holds something that has no log-likelihood with an error.
    ValueError
        With fewer than 2 models, if pipelines arrive at different rows, or if some have densities
        and others probabilities, as in `compare`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, compare_models
    >>> fair, skewed = (
    ...     BernoulliRBM.from_parameters(np.zeros((1, 2)), np.full(2, c), np.zeros(1))
    ...     for c in (0.0, 1.0)
    ... )
    >>> X = np.array([[1, 1], [1, 0], [1, 1]])
    >>> print(compare_models({"fair": fair, "skewed": skewed}, X))
    these fits  log-likelihood        difference from the first
    skewed      -0.96 [-2.39, 0.47]
    fair        -1.39 [-1.39, -1.39]  -0.43 [-1.86, 1.01]
    """
    if not isinstance(models, Mapping):
        raise TypeError(
            f"models must be a dict of names and fitted models, got {type(models).__name__}"
        )
    if len(models) < 2:
        raise ValueError(f"models must hold at least 2 models to be compared, got {len(models)}")
    if len({str(name) for name in models}) < len(models):
        raise ValueError(f"models must have different names, got {list(models)}")
    check_ratio(ratio)
    entrants = score_all({str(name): model for name, model in models.items()}, X, level)
    scores = {entrant.name: interval_of(entrant.scored, level) for entrant in entrants}
    by_name = {entrant.name: entrant for entrant in entrants}
    best, *others = best_first(scores)
    return ModelComparison(
        scores={name: scores[name] for name in (best, *others)},
        differences={name: paired(by_name[name], by_name[best], level, ratio) for name in others},
    )


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:.2f} [{low:.2f}, {high:.2f}]" if np.isfinite(mean) else f"{mean}"

"""Comparisons of fitted models, and of procedures, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sklpf._utils.tables import Readable, Rows, decimals, import_pandas, text_table
from sklpf.models.scoring._scored import ScoreInterval


@dataclass(frozen=True, repr=False)
class Comparison(Readable):
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
        pd = import_pandas()

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
        return table

    def _parts(self, name: str) -> list[str]:
        """Cells for the parts of an error."""
        return []

    def _remarks(self, name: str) -> list[str]:
        """What else should be known of a name's numbers."""
        reasons = self._shown(name).reasons
        return [f"not converged: {'; '.join(reasons)}"] if reasons else []

    def __repr__(self) -> str:
        return text_table([self._header, *self._table()])


@dataclass(frozen=True, repr=False)
class ModelComparison(Comparison):
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

    _header = ("these fits", "log-likelihood", "difference from the first", "")

    def _details(self, name: str) -> dict[str, Any]:
        return {"method": self._shown(name).method}

    def _remarks(self, name: str) -> list[str]:
        return [*super()._remarks(name), *self._shown(name).notes]

    def _title(self) -> str:
        unit = self.scores[self.best].unit
        return (
            f"log-likelihood per {unit} of these fitted models (nats); of procedures: compare_fits"
        )


def interval_text(interval: Any) -> str:
    """A mean and its interval, with two digits of the standard error and at least 2 decimals."""
    if not np.isfinite(interval.mean):
        return f"{interval.mean}"
    n = digits(interval)
    low, high = interval.combined
    return f"{interval.mean:.{n}f} [{low:.{n}f}, {high:.{n}f}]"


def digits(interval: Any) -> int:
    """Decimals that show two digits of the standard error, at least 2."""
    return max(2, decimals(interval.mean, half_width(interval.combined) / 2))


def half_width(ends: tuple[float, float]) -> float:
    """Half the distance of an interval's ends."""
    return (ends[1] - ends[0]) / 2

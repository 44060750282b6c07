"""TrainingDisplay: what a model was worth while it trained."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import norm

from sklpf._utils.validation import check_count
from sklpf.display._drawing import Display, fitted_model
from sklpf.models._energy_based import EnergyBasedModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS = "mean log-likelihood of validation rows"
_TRAINING = "mean log-likelihood of training rows"
_LOSS = "minus the training loss"
_ELBO = "evidence lower bound of all training rows"


@dataclass(eq=False, repr=False)
class TrainingDisplay(Display):
    """Log-likelihood after every pass of training, and log Z where it was tracked.

    Parameters
    ----------
    values : ndarray of shape (n_passes,) or None, default=None
        The objective that training raises, after every pass, in nats.
    std_errors : ndarray of shape (n_passes,) or None, default=None
        Standard errors of `values`, in nats.
    log_partition : ndarray of shape (n_passes,) or None, default=None
        log Z after every pass, in nats.
    log_partition_std_errors : ndarray of shape (n_passes,) or None, default=None
        Standard errors of log Z, in nats. Passes with inf, in which log Z was not known, are
        marked; NaN has no band.
    best_iteration : int or None, default=None
        The pass, counted from 1, whose parameters were kept.
    label : str, default="log-likelihood"
        Name of the objective.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, all (values, log Z), and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.display import TrainingDisplay
    >>> X = np.random.default_rng(0).integers(2, size=(200, 6))
    >>> rbm = BernoulliRBM(3, n_iter=5, early_stopping=True, random_state=0).fit(X)
    >>> display = TrainingDisplay.from_estimator(rbm)
    >>> bool(np.all(display.values == rbm.validation_scores_))
    True
    """

    values: Any = None
    _: KW_ONLY
    std_errors: Any = None
    log_partition: Any = None
    log_partition_std_errors: Any = None
    best_iteration: int | None = None
    label: str = "log-likelihood"

    _shapes = {
        "values": "n_passes",
        "std_errors": "n_passes",
        "log_partition": "n_passes",
        "log_partition_std_errors": "n_passes",
    }

    @classmethod
    def from_estimator(cls, estimator, *, ax: Axes | None = None) -> Self:
        """Draw what a fitted model kept of its training.

        Parameters
        ----------
        estimator : model
            `BernoulliRBM` with `early_stopping` or `track_log_partition`; a model with
            ``loss_curve_`` (of which minus is drawn: for `ProductOfExperts` and `MeanCovarianceRBM`
            the mean log-likelihood of the training rows); `FactorialMixture`; or a pipeline that
            ends in one.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : TrainingDisplay

        Raises
        ------
        ValueError
            If the model kept nothing of its training.
        """
        model = fitted_model(estimator)
        tracked: dict[str, Any] = {
            "log_partition": getattr(model, "log_partition_curve_", None),
            "log_partition_std_errors": getattr(model, "log_partition_std_errors_", None),
        }
        if hasattr(model, "validation_scores_"):
            errors = model.validation_score_std_errors_
            kept = {"std_errors": errors, "best_iteration": model.best_iteration_, "label": _ROWS}
            return cls(model.validation_scores_, **kept, **tracked).plot(ax)
        if hasattr(model, "loss_curve_"):
            label = _TRAINING if isinstance(model, EnergyBasedModel) else _LOSS
            return cls(np.negative(model.loss_curve_), label=label).plot(ax)
        if hasattr(model, "elbo_curve_"):
            return cls(model.elbo_curve_, label=_ELBO).plot(ax)
        if tracked["log_partition"] is None:
            raise ValueError(
                f"{cls.__name__} draws what a model keeps of training, and this"
                f" {type(model).__name__} kept nothing: BernoulliRBM and CategoricalRBM do with"
                " early_stopping=True or track_log_partition; after fit ProductOfExperts,"
                " MeanCovarianceRBM, LinearGenerativeModel, BilinearGenerativeModel and"
                " FactorialMixture do"
            )
        return cls(**tracked).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Bands are 95 %, from the standard errors by the normal distribution.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided if there are two panels, or as many. None makes a figure.

        Returns
        -------
        self
        """
        self._check_arrays()
        if self.best_iteration is not None:
            check_count(self.best_iteration, "best_iteration")
        both = (
            (self.values, self.std_errors, self.label),
            (self.log_partition, self.log_partition_std_errors, "log Z"),
        )
        curves = [curve for curve in both if curve[0] is not None]
        if not curves:
            raise ValueError("values or log_partition must be given")
        for axes, (values, errors, label) in zip(
            self._panels(ax, len(curves), (6.0, 3.5), n_columns=1, sharex=True), curves
        ):
            _draw(axes, values, errors)
            axes.set_ylabel("nats")
            axes.set_title(label, loc="left", fontsize="medium")
            if self.best_iteration is not None:
                axes.axvline(
                    self.best_iteration,
                    color="k",
                    linestyle=":",
                    linewidth=1,
                    label="parameters kept",
                )
        self.axes_[-1].set_xlabel("pass")
        self.axes_[-1].xaxis.get_major_locator().set_params(integer=True)
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend()
        return self


def _draw(axes, values, errors, *, level=0.95):
    """A curve with its band, and the passes in which it was not known."""
    passes = np.arange(1, len(values) + 1)
    (line,) = axes.plot(passes, values, marker="." if len(values) <= 50 else None)
    if errors is None:
        return
    half = norm.ppf(0.5 + level / 2) * errors
    known = np.isfinite(half)
    half = np.where(known, half, 0.0)
    band = {
        "color": line.get_color(),
        "alpha": 0.3,
        "linewidth": 0,
        "label": f"{100 * level:.0f} % band",
    }
    if known.any():
        axes.fill_between(passes, values - half, values + half, where=known, **band)
    for i, lost in enumerate(np.flatnonzero(np.isinf(errors))):
        label = "log Z not known" if i == 0 else None
        axes.axvspan(passes[lost] - 0.5, passes[lost] + 0.5, color="0.85", zorder=0, label=label)

"""RBM: what restricted Boltzmann machines share, whatever their visible units are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from sklpf._utils.sklearn import (
    POSITIVE,
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    Interval,
    StrOptions,
    TransformerMixin,
    at_least,
)
from sklpf.models._learning import check_goes_on, drawing_all_or_nothing
from sklpf.models.scoring._likelihood import SCORING, LogLikelihoodMixin


@dataclass(eq=False, repr=False, kw_only=True)
class RBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LogLikelihoodMixin, BaseEstimator):
    """transform, gibbs, sample and score of a restricted Boltzmann machine that learns minibatch by
    minibatch.

    A model has the parameters below, and defines

    - ``_hidden_inputs(X)``: inputs of the hidden units (n, n_components), of a fitted model;
    - ``_rows_given(h, rng)``: rows drawn given hidden units;
    - ``fit``, ``partial_fit`` and what `LogLikelihoodMixin` asks for.
    """

    n_components: int = 16
    learning_rate: float = 0.1
    batch_size: int = 10
    n_iter: int = 10
    verbose: int = 0
    random_state: Any = None
    average: bool | int = True
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    n_chains: int | None = None
    _parameter_constraints = {
        **SCORING,
        "n_components": [at_least(1)],
        "learning_rate": [POSITIVE],
        "batch_size": [at_least(1)],
        "n_iter": [at_least(0)],
        "average": ["boolean", Interval(Integral, 1, None, closed="neither")],
        "learning_rate_schedule": [StrOptions({"constant", "linear"})],
        "n_chains": [at_least(1), None],
    }

    _hidden_inputs: ClassVar[Callable[..., NDArray]]
    _rows_given: ClassVar[Callable[..., NDArray]]

    # -- units
    def transform(self, X) -> NDArray:
        """Probabilities of the hidden units given X.

        Parameters
        ----------
        X : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        h : ndarray of shape (n_samples, n_components)
        """
        return expit(self._hidden_inputs(X))

    def gibbs(self, v) -> NDArray:
        """Make one Gibbs step: hidden units given v, then visible units given them.

        Parameters
        ----------
        v : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        v_new : ndarray of shape (n_samples, n_features)
            Of bool where the visible units are binary.
        """
        on = self.transform(v)
        rng = self._stream_of_numbers()
        with drawing_all_or_nothing(self):
            return self._rows_given(rng.uniform(size=on.shape) < on, rng)

    # -- training
    @property
    def _n_chains(self) -> int:
        """Number of persistent chains."""
        return self.batch_size if self.n_chains is None else self.n_chains

    def _stream_of_numbers(self) -> RandomState:
        """The generator that goes on from call to call of `partial_fit` and `gibbs`."""
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        return self.random_state_

    def _begins_stream(self) -> bool:
        """Whether a call of `partial_fit` is the first; ValueError if it can't be made."""
        self._validate_params()
        if self.learning_rate_schedule == "linear":
            raise ValueError(
                "partial_fit does not know after how many updates a linear schedule should arrive"
                ' at 0: set learning_rate_schedule="constant" and lower learning_rate between the'
                " calls, or call fit"
            )
        first = not hasattr(self, "components_")
        if not first:
            check_goes_on(self)
        return first

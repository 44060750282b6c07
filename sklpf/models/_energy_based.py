"""EnergyBasedModel: what models share that are an unnormalised density on R^d, with one log Z,
learned from rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sklpf._utils.context import reporting
from sklpf._utils.numbers import Array, Booleans
from sklpf._utils.parallel import run_tasks
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    StrOptions,
    TransformerMixin,
)
from sklpf._utils.validation import (
    LARGEST,
    NOT_NEGATIVE,
    POSITIVE,
    TOO_FAR,
    at_least,
    check_squares,
    validate_data,
)
from sklpf.models._density_ratio_path import N_DRAWS, DensityRatioPath, draws_of_both
from sklpf.models._learning import (
    all_or_nothing,
    check_goes_on,
    fitted_values,
    same_values,
)
from sklpf.partition import HAIS, PartitionEstimator
from sklpf.paths import density_at
from sklpf.scoring import SCORING, LogLikelihoodMixin
from sklpf.training import (
    Chains,
    Lowered,
    MaximumLikelihood,
    MinimumProbabilityFlow,
    PersistentContrastiveDivergence,
    Settled,
    check_not_diverged,
    parts_of,
    train,
    warn_unsettled,
)

# passes whose mean losses are compared; probability flow may begin with 20 that bring nothing
_FEW_PASSES = 5
_MANY_PASSES = 15


class CompiledFamily:
    """A `Family` of compiled densities: a subclass defines ``packed`` and ``grad_parameters``."""

    packed: Callable[[Array], Any]

    def log_density(self, parameters: Array, x: Array) -> Array:
        """Return log f at points (n, d), shape (n,), in nats."""
        density = self.packed(parameters)
        parts = [x[rows] for rows in parts_of(x)]
        return np.concatenate(run_tasks(lambda part: density_at(density, part)[0], parts))

    def grad(self, parameters: Array, x: Array) -> Array:
        """Return the gradient of log f by the points, shape (n, d)."""
        return density_at(self.packed(parameters), x)[1]


@dataclass(eq=False, repr=False, kw_only=True)
class EnergyBasedModel(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, LogLikelihoodMixin, BaseEstimator
):
    """fit, partial_fit, score and sample of a model p(x) = f(x) / Z on R^d.

    A model has the parameters below, and defines

    - ``_begin(X, rng)``: sets what is learned from X once, returns a `Family` and the parameters to
      start from; ``_shown()`` returns those that the fitted attributes stand for;
    - ``_coordinates(X)``: rows in the coordinates that the family is trained in, ``_log_volume``
      log |det| of these;
    - ``_family_path(family, parameters)``: the path to a density of the family, in these
      coordinates;
    - ``_store(family, parameters)``: sets the fitted attributes;
    - ``_fitted_shapes``: dimensions of the fitted attributes;
    - ``_log_density(X)``: log f of the rows, (n,), whose integral is the path's Z;
    - ``transform(X)`` and ``_n_features_out``, the number of its columns;
    - ``path()`` as `LogLikelihoodMixin` says; the path's ``rows(state)``
      gives x.
    """

    algorithm: Literal["pcd", "mpf", "ml"] = "pcd"
    learning_rate: float = 0.01
    batch_size: int = 200
    n_chains: int = 500
    n_leapfrog: int = 5
    max_iter: int = 200
    tol: float | None = 0.01
    verbose: int = 0
    _log_volume = 0.0
    # of log Z after every pass, where it has no closed form
    _monitor: ClassVar[PartitionEstimator] = HAIS(100, 200, checks=False, random_state=0)
    _rescale_chains = False  # whether rows have very different lengths, see `Chains`
    _parameter_constraints = {
        **SCORING,
        "algorithm": [StrOptions({"pcd", "mpf"})],
        "learning_rate": [POSITIVE],
        "batch_size": [at_least(1)],
        "n_chains": [at_least(2)],
        "n_leapfrog": [at_least(1)],
        "max_iter": [at_least(1)],
        "tol": [NOT_NEGATIVE, None],
    }

    # -- training
    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Learn the parameters from rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X can't be used, or training diverges; the model then stays as it was before.

        Warns
        -----
        ConvergenceWarning
            If the log-likelihood has not settled after `max_iter` passes.
        """
        trainer, rows = self._trainer(X, self.algorithm)
        self._forget_convergence()
        watch: Any = Lowered(self.max_iter)
        if self.tol is not None:
            n_passes = _MANY_PASSES if self.algorithm == "mpf" else _FEW_PASSES
            watch = Settled(functools.partial(self._loss, trainer.family, rows), self.tol, n_passes)

        def report(*_):
            return f"log-likelihood = {-watch.curve[-1]:.3f}"

        self.n_iter_, converged = train(
            trainer,
            self.max_iter,
            report=None if self.tol is None else report,
            callbacks=[watch],
            store=lambda model: model._store(trainer.family, trainer.parameters),
        )
        self._keep_trained(trainer, rows)
        if self.tol is not None:
            self.loss_curve_ = np.array(watch.curve)
            self.converged_ = converged
            if not converged:
                warn_unsettled(self.n_iter_)
        return self

    @all_or_nothing
    def partial_fit(self, X, y=None) -> Self:
        """Make one step of persistent contrastive divergence on X, one minibatch.

        It goes on from where `fit` or the last call ended, or from fitted attributes that were set
        since. What is learned of the data's location and scale is that of the first call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self
            Without `loss_curve_` and `converged_`, which are those of one fit.
        """
        if not all(hasattr(self, name) for name in self._fitted_shapes):
            trainer, rows = self._trainer(X, "pcd")
        else:
            self._check_goes_on()
            trainer, rows = self._going_on(self._validate(X))
        trainer.step(rows)
        self._forget_convergence()
        self._keep_trained(trainer, rows)
        return self

    def _forget_convergence(self) -> None:
        """Drop what an earlier fit says of itself."""
        for name in ("loss_curve_", "converged_"):
            self.__dict__.pop(name, None)

    def _check_goes_on(self) -> None:
        check_goes_on(self)

    def _going_on(self, X):
        """Return the trainer that continues a fitted model, and the rows in its coordinates."""
        if "_training" not in vars(self):  # known parameters
            family, parameters = self._shown()
            rows = self._coordinates(X)
            return self._contrastive(family, parameters, rows), rows
        trainer, shown = self._training
        if not same_values(shown, fitted_values(self)):
            trainer.begin(self._shown()[1])
        rows = self._coordinates(X)
        chains = trainer.chains
        chains.n_leapfrog = self.n_leapfrog
        chains.position = np.resize(chains.position, (self.n_chains, rows.shape[1]))
        trainer.learning_rate = self.learning_rate
        return trainer, rows

    def _keep_trained(self, trainer, rows) -> None:
        """Store what was learned, and the chains that `partial_fit` goes on with; no rows."""
        self._store(trainer.family, trainer.parameters)
        if not isinstance(trainer, PersistentContrastiveDivergence):
            trainer = self._contrastive(trainer.family, trainer.parameters, rows)
        trainer.X = rows[:0].copy()
        self._training = trainer, fitted_values(self)

    def _trainer(self, X, algorithm):
        """Return the trainer of a new fit, and the rows in its coordinates."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        check_squares(X)
        random_state = check_random_state(self.random_state)
        self._partition_seed = draw_seed(random_state)
        rng = np.random.default_rng(draw_seed(random_state))
        family, parameters = self._begin(X, rng)
        rows = self._coordinates(X)
        if algorithm == "ml":
            return MaximumLikelihood(family, parameters, rows), rows
        if algorithm == "mpf":
            return MinimumProbabilityFlow(family, parameters, rows, rng), rows
        return self._contrastive(family, parameters, rows, rng), rows

    def _contrastive(self, family, parameters, rows, rng=None):
        """Return the trainer by persistent chains: with a generator from normal numbers, of known
        parameters from the rows.
        """
        shape = (self.n_chains, rows.shape[1])
        start = np.resize(rows, shape) if rng is None else rng.standard_normal(shape)
        rng = rng or np.random.default_rng(self._partition_seed)
        chains = Chains(start, rng, n_leapfrog=self.n_leapfrog, rescale=self._rescale_chains)
        return PersistentContrastiveDivergence(
            family, parameters, rows, chains, self.batch_size, self.learning_rate
        )

    def _loss(self, family, rows, parameters) -> float:
        """Mean negative log-likelihood of the rows in nats; log Z by a short run with the same
        random numbers.
        """
        check_not_diverged(parameters)
        mean = float(np.mean(family.log_density(parameters, rows)))
        return self._family_log_partition(family, parameters) - mean - self._log_volume

    def _family_log_partition(self, family, parameters) -> float:
        path = self._family_path(family, parameters)
        return clone(self._monitor).set_params(n_jobs=self.n_jobs)._fit(path).log_partition_

    # -- use
    def _ratio_path(self, other):
        """The path from this model to another of as many features, None if there is none."""
        if not isinstance(other, EnergyBasedModel) or other.n_features_in_ != self.n_features_in_:
            return None
        draws = draws_of_both((self, other), N_DRAWS)
        return None if draws is None else DensityRatioPath(self.path(), other.path(), *draws)

    _impossible = TOO_FAR

    def _log_f(self, X) -> tuple[Array, Booleans]:
        return self._log_density(X), np.all(np.abs(X) < LARGEST, axis=1)

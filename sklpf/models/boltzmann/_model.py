"""BoltzmannMachine: the pairwise maximum-entropy model of binary variables."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import entr, expit
from sklearn.utils import check_random_state

from sklpf._utils.context import reporting
from sklpf._utils.numbers import Array, Booleans
from sklpf._utils.random import draw_seed, seeded
from sklpf._utils.sklearn import BaseEstimator, DrawsInContainer, StrOptions
from sklpf._utils.validation import (
    NOT_NEGATIVE,
    POSITIVE,
    Interval,
    at_least,
    check_fitted,
    check_level,
    check_number,
    check_parameter,
    check_vector,
)
from sklpf._utils.warnings import warn
from sklpf.models._enumerable_path import (
    NOT_BINARY,
    BinaryUnits,
    binary_rows,
    given_means,
    means_of_base,
)
from sklpf.models._learning import all_or_nothing
from sklpf.models.boltzmann._learning import (
    Pairs,
    Penalty,
    PersistentChains,
    PseudoLikelihood,
    log_pseudo_likelihood,
)
from sklpf.models.boltzmann._path import BoltzmannPath, as_couplings, log_f
from sklpf.scoring import SCORING, LogLikelihoodMixin, ScoreInterval
from sklpf.training import train, warn_unsettled


@dataclass(eq=False, repr=False)
class BoltzmannMachine(LogLikelihoodMixin, DrawsInContainer, BaseEstimator):
    """Boltzmann machine without hidden units, the pairwise maximum-entropy model of binary data.

    p(x) = exp(b @ x + x @ J @ x / 2) / Z for x of 0 and 1, with b = `intercept_` and symmetric
    couplings J = `couplings_`. With units of -1 and 1 it is the Ising model (see `from_spins`).
    Among all distributions with the same means and correlations it has the highest entropy. It is
    used, for example, for correlated neurons (Schneidman et al. 2006).

    Parameters
    ----------
    algorithm : {"pl", "pcd"}, default="pl"
        "pl": maximum pseudo-likelihood (Besag 1975), which is deterministic and consistent. "pcd":
        starts from it, and then maximises the likelihood by persistent chains (Younes 1989;
        Tieleman 2008).
    alpha : float, default=1e-4
        Strength of the penalty on couplings, per row of data: ``alpha * (l1_ratio * sum(abs(J)) +
        (1 - l1_ratio) * sum(J**2) / 2)``, sums over pairs. With 0 couplings may be infinite, if one
        column determines another.
    l1_ratio : float, default=0.0
        Share of the penalty that is L1, which makes couplings exactly 0 with "pl".
    graph : array-like or sparse matrix of shape (n_features, n_features) or None, default=None
        Couplings may differ from 0 where its entries do. None: all. With a sparse matrix, time and
        memory go with the number of its entries.
    learning_rate : float, default=0.05
        Initial learning rate of "pcd". It falls linearly to 0.
    n_chains : int, default=500
        Persistent chains of "pcd".
    max_iter : int, default=100
        Largest number of passes of "pl", each of 50 iterations of L-BFGS. Number of passes of
        "pcd", each of ten steps, with a Gibbs sweep of every chain before each step.
    tol : float, default=1e-5
        "pl" ends when a pass raises its objective by no more than this (nats a row).
    verbose : int, default=0
        Whether to report, after a pass but at most once a second, the mean pseudo-likelihood, and
        the progress of the estimation of log Z.
    random_state : int, RandomState or None, default=None
        Seed of the chains of "pcd" and of the estimate of log Z.
    partition_estimator : PartitionEstimator or None, default=None
        How log Z is estimated. None is `Exact` of at most 20 features, else `ParallelTempering`. If
        its `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do when log Z can't be trusted: return the number with a
        ConvergenceWarning, return NaN and log why (logger "sklpf"), or raise RuntimeError. Rows
        that hold other values than 0 and 1 give NaN, with a warning, a line in the log, or an
        error.
    n_jobs : int or None, default=None
        For the estimation of log Z, in threads unless ``joblib.parallel_config`` says otherwise.

    Attributes
    ----------
    couplings_ : ndarray or sparse csr_array of shape (n_features, n_features)
        Symmetric, with zeros on the diagonal. Sparse where `graph`, or the couplings that
        `from_parameters` and `from_spins` were given, are sparse.
    intercept_ : ndarray of shape (n_features,)
        Biases.
    offset_ : float
        Constant of log f in nats: 0 after `fit`.
    mean_ : ndarray of shape (n_features,)
        Smoothed means (sum + 1) / (n + 2) of the training data: the base from which log Z is
        computed.
    n_iter_ : int
        Passes made.
    log_partition_, log_partition_std_error_, log_partition_interval_ : float, float, tuple of float
        log Z in nats, its standard error and 95 % interval; exist once log Z has been estimated.
    partition_estimator_ : PartitionEstimator
        The fitted estimator of log Z, its ``result_`` without samples; exists once log Z has been
        estimated.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Ackley, D., Hinton, G. & Sejnowski, T. (1985). A learning algorithm for Boltzmann machines.
    Cognitive Science 9. Besag, J. (1975). Statistical analysis of non-lattice data. The
    Statistician 24. Schneidman, E. et al. (2006). Weak pairwise correlations imply strongly
    correlated network states in a neural population. Nature 440.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BoltzmannMachine
    >>> X = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> model = BoltzmannMachine(alpha=0.1).fit(X)
    >>> bool(model.couplings_[0, 1] > 0)
    True
    >>> round(model.score(X), 2)
    -1.77
    """

    algorithm: Literal["pl", "pcd"] = "pl"
    _: KW_ONLY
    alpha: float = 1e-4
    l1_ratio: float = 0.0
    graph: ArrayLike | sp.spmatrix | None = None
    learning_rate: float = 0.05
    n_chains: int = 500
    max_iter: int = 100
    tol: float = 1e-5
    verbose: int = 0

    _parameter_constraints = {
        **SCORING,
        "algorithm": [StrOptions({"pl", "pcd"})],
        "alpha": [NOT_NEGATIVE],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "graph": ["array-like", "sparse matrix", None],
        "learning_rate": [POSITIVE],
        "n_chains": [at_least(2)],
        "max_iter": [at_least(1)],
        "tol": [NOT_NEGATIVE],
    }

    # -- training
    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Learn intercepts and couplings from rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of 0 and 1. Values between are taken for probabilities; others are clipped, with a
            UserWarning.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X or `graph` can't be used, or training diverges; the model then stays as it was
            before.

        Warns
        -----
        ConvergenceWarning
            If "pl" has not settled after `max_iter` passes.
        """
        X = self._validate(X, reset=True)
        if X.min() < 0 or X.max() > 1:
            warn(
                "X holds values outside [0, 1], but the units are binary: binarise X, of spins -1"
                " and 1 take (X + 1) / 2"
            )
            X = X.clip(0, 1)
        rng = check_random_state(self.random_state)
        self._partition_seed = draw_seed(rng)
        self.mean_ = BinaryUnits().smoothed_means(X.sum(axis=0), len(X))
        penalty = Penalty(self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio))
        trainer: Any = PseudoLikelihood(X, self._pairs(X.shape[1]), penalty)
        if not self._train(trainer, X, [self._has_settled]):
            warn_unsettled(self.n_iter_, "the pseudo-likelihood", "max_iter, tol or alpha")
        if self.algorithm == "pcd":
            trainer = PersistentChains(self, trainer, seeded(draw_seed(rng)))
            self._train(trainer, X)
        self._store(trainer)
        return self

    def _train(self, trainer, X, callbacks=()) -> bool:
        """Make passes; whether one of the callbacks has ended them."""

        def report(trainer, iteration):
            intercept, couplings = trainer.parameters
            matrix = trainer.pairs.matrix(couplings)
            mean = log_pseudo_likelihood(X, intercept, matrix).mean()
            return f"pseudo-likelihood = {mean:.3f}"

        self.n_iter_, ended = train(
            trainer,
            self.max_iter,
            report=report,
            callbacks=callbacks,
            store=lambda model: model._store(trainer),
        )
        return ended

    def _has_settled(self, trainer, iteration) -> bool:
        """True if the last pass has raised the pseudo-likelihood by no more than `tol`."""
        gains = np.diff(trainer.objectives[-2:])
        return bool(gains.size and gains[0] <= self.tol)

    def _pairs(self, n_features) -> Pairs:
        graph: Any = np.ones((n_features, n_features)) if self.graph is None else self.graph
        graph = check_parameter(graph, "graph", accept_sparse="csr")
        if graph.shape != (n_features, n_features):
            raise ValueError(
                f"graph must have the shape ({n_features}, {n_features}) to match X, got"
                f" {graph.shape}"
            )
        allowed = sp.csr_array(graph != 0)
        if (allowed != allowed.T).nnz:
            raise ValueError("graph must be symmetric: give graph + graph.T")
        first, second = sp.triu(allowed, 1, format="csr").nonzero()
        return Pairs(first, second, n_features, sp.issparse(graph))

    def _store(self, trainer) -> None:
        intercept, couplings = trainer.parameters
        self.intercept_ = intercept.copy()
        self.couplings_ = trainer.pairs.matrix(couplings)
        self.offset_ = 0.0

    @classmethod
    def from_parameters(
        cls, couplings, intercept=None, *, offset=0.0, mean=None, **parameters
    ) -> Self:
        """Return a fitted model with known parameters.

        Parameters
        ----------
        couplings : array-like or sparse matrix of shape (n_features, n_features)
            Symmetric, with zeros on the diagonal.
        intercept : array-like of shape (n_features,) or None, default=None
            Biases; None is 0.
        offset : float, default=0.0
            Constant of log f in nats.
        mean : array-like of shape (n_features,) or None, default=None
            Means of the training data, from which log Z is computed, moved to at least 0.001 from 0
            and 1. None takes those of a mean-field approximation.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : BoltzmannMachine

        Raises
        ------
        ValueError
            If a value is not finite, a shape does not fit, or the couplings are not symmetric.
        """
        is_sparse = sp.issparse(couplings)
        couplings = as_couplings(couplings)
        n_features = couplings.shape[0]
        model = cls(**parameters)
        model._be_known(n_features)
        model.couplings_ = couplings if is_sparse else couplings.toarray()
        model.intercept_ = check_vector(intercept, n_features, "intercept", default=0.0)
        model.offset_ = check_number(offset, "offset")
        if mean is None:
            mean = _mean_field_means(couplings, model.intercept_)
        model.mean_ = given_means(check_vector(mean, n_features, "mean"), "mean")
        model.path()
        return model

    @classmethod
    def from_spins(cls, couplings, fields=None, **parameters) -> Self:
        """Return the model of spins s of -1 and 1 with log f = sum_(i<j) K_ij s_i s_j + h @ s.

        Its rows have x = (s + 1) / 2, and its log Z is that of the spins: `offset_` is the
        difference.

        Parameters
        ----------
        couplings : array-like or sparse matrix of shape (n_features, n_features)
            K, over the temperature: symmetric, with zeros on the diagonal.
        fields : array-like of shape (n_features,) or None, default=None
            h, over the temperature; None is 0.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : BoltzmannMachine

        Examples
        --------
        >>> import numpy as np
        >>> from sklpf import BoltzmannMachine
        >>> ring = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
        >>> model = BoltzmannMachine.from_spins(0.5 * ring).estimate_log_partition()
        >>> exact = np.log((2 * np.cosh(0.5)) ** 12 + (2 * np.sinh(0.5)) ** 12)
        >>> bool(np.isclose(model.log_partition_, exact))
        True
        """
        spins = as_couplings(couplings)
        n_features = spins.shape[0]
        h = check_vector(fields, n_features, "fields", default=0.0)
        intercept = 2 * h - 2 * np.asarray(spins.sum(axis=1)).ravel()
        offset = float(spins.sum() / 2 - h.sum())
        binary = 4 * spins if sp.issparse(couplings) else 4 * spins.toarray()
        return cls.from_parameters(binary, intercept, offset=offset, **parameters)

    # -- log-likelihood
    def path(self, base="data") -> BoltzmannPath:
        """Return the tempered path from independent units to this model.

        Parameters
        ----------
        base : {"data", "uniform"} or array-like of shape (n_features,), default="data"
            Means of the independent units: `mean_`, 1/2, or given ones (moved to at least 0.001
            from 0 and 1). A run from "data" that has missed a region, or has not mixed, is followed
            by one from 1/2.

        Returns
        -------
        path : BoltzmannPath
        """
        check_fitted(self)
        mean = means_of_base(base, self.mean_)
        path = BoltzmannPath(self.couplings_, self.intercept_, mean, offset=self.offset_)
        path.base_is_ours = isinstance(base, str) and base == "data"
        return path

    def pseudo_log_likelihood(self, X) -> Array:
        """Log pseudo-likelihood of every row: the sum over units of log p(x_i | all other units).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of 0 and 1.

        Returns
        -------
        pseudo_log_likelihood : ndarray of shape (n_samples,)
            In nats. Needs no log Z.
        """
        return log_pseudo_likelihood(self._scorable(X), self.intercept_, self.couplings_)

    def entropy_interval(
        self, n_samples: int = 1000, level: float = 0.95, random_state=None
    ) -> ScoreInterval:
        """The entropy -E[log p(x)] in nats: exact where log Z is, else a mean over draws.

        Parameters
        ----------
        n_samples : int, default=1000
            Draws from the model over which -log p(x) is averaged, where log Z is estimated.
        level : float, default=0.95
            Probability with which each interval covers.
        random_state : int, RandomState or None, default=None
            Seed of the draws.

        Returns
        -------
        interval : ScoreInterval
            ``mean`` is the entropy; its intervals are from the draws and from log Z.
        """
        check_level(level)
        result = self._partition().result_
        if result.statement == "exact":
            path = self.path()
            entropy = 0.0
            for block in range(path.n_enumeration_blocks):
                log_probabilities = path.enumerate_block(block, 1) - result.log_partition
                entropy += float(np.sum(entr(np.exp(log_probabilities))))
            exact = (entropy, entropy)
            return ScoreInterval(entropy, exact, exact, exact, level, unit="entropy")
        model = copy.copy(self)
        vars(model).pop("feature_names_in_", None)  # draws are an array
        score = model.score_interval(model.sample(n_samples, random_state), level)
        intervals = (score.sampling, score.partition, score.combined)
        sampling, partition, combined = ((-high, -low) for low, high in intervals)
        return dataclasses.replace(
            score,
            mean=-score.mean,
            sampling=sampling,
            partition=partition,
            combined=combined,
            unit="entropy",
            baseline=None,
        )

    _fitted_shapes = {
        "couplings_": ("n_features", "n_features"),
        "intercept_": ("n_features",),
        "mean_": ("n_features",),
        "offset_": (),
    }
    _may_be_sparse = ("couplings_",)
    _discrete = True
    _visible_units = BinaryUnits()
    _states_are_points = False
    _impossible = NOT_BINARY

    def _log_f(self, X) -> tuple[Array, Booleans]:
        values = log_f(X, self.couplings_, self.intercept_, self.offset_)
        return values, binary_rows(X)


def _mean_field_means(couplings, intercept) -> Array:
    """Means of the units after some damped mean-field updates, which start at 1/2.

    At the end they are moved a tenth of the way back to 1/2. If the model is symmetric in 0 and 1
    they are exactly 1/2, as are the means over both of its phases.
    """
    means = np.full(len(intercept), 0.5)
    for _ in range(20):
        means = 0.5 * means + 0.5 * expit(couplings @ means + intercept)
    return np.round(0.9 * means + 0.05, 6)

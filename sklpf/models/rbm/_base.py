"""RBM and DiscreteRBM: what restricted Boltzmann machines share, whatever their visible units are,
and those whose visible units have finitely many states.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils import check_random_state, gen_batches

from sklpf._utils.context import reporting
from sklpf._utils.numbers import Array, Booleans, Integers
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    Options,
    StrOptions,
    TransformerMixin,
    in_container,
)
from sklpf._utils.validation import (
    INSIDE_0_1,
    NOT_NEGATIVE,
    POSITIVE,
    Interval,
    as_float64,
    at_least,
    check_fitted,
    check_option,
    check_parameter,
    check_vector,
    evenly_spaced,
)
from sklpf.models._density_ratio_path import draws_of_both
from sklpf.models._enumerable_path import BinaryUnits, binary_rows, given_means, means_of_base
from sklpf.models._learning import all_or_nothing, check_goes_on, drawing_all_or_nothing
from sklpf.models._missing import (
    KnownRows,
    Layers,
    RowPaths,
    check_columns_known,
    content,
    log_sums,
    posteriors,
    weighted_rows,
)
from sklpf.models.rbm._checkpoints_path import RBMRatioPath, RBMTrajectoryPath
from sklpf.models.rbm._learning import Trainer
from sklpf.models.rbm._monitor import ATTRIBUTES, Monitor, make_tracker, split, store_tracker
from sklpf.models.rbm._path import Parameters, RBMPath
from sklpf.scoring import SCORING, LogLikelihoodMixin, Marginals, report
from sklpf.training import train

ROWS_AT_ONCE = 1024  # whose float64 inputs of the hidden layer are held
_MOST_STARTS = 50  # rows, and chains, of training that are kept to look for regions


@dataclass(eq=False, repr=False, kw_only=True)
class RBM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LogLikelihoodMixin, BaseEstimator):
    """transform, gibbs, impute and score of a restricted Boltzmann machine that learns minibatch by
    minibatch, of rows that may have missing values.

    A model has the parameters below, and defines

    - ``_hidden_inputs(X)``: inputs of the hidden units (n, n_components) by validated rows;
    - ``_rows_given(h, rng)``: rows drawn given hidden units;
    - ``_missing(X)``: columns of validated rows that are not known, (n, n_features), None where all
      are; ``_without_missing(X)``: rows with any values there;
    - ``_known(X)``: rows as far as they are known;
    - ``_data_rows(X)``: rows as the user has them; ``_part_values(part, units, row)``: values of
      the columns of a part of a row, of its units; ``_part_units(part, rows)``: its units, of rows
      of its path;
    - ``fit``, ``partial_fit`` and what `LogLikelihoodMixin` asks for.
    """

    n_components: int = 16
    learning_rate: float = 0.1
    batch_size: int = 10
    n_iter: int = 10
    verbose: int = 0
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

    _takes_missing = True
    _hidden_inputs: ClassVar[Callable[..., NDArray]]
    _rows_given: ClassVar[Callable[..., NDArray]]
    _missing: ClassVar[Callable[..., Booleans | None]]
    _without_missing: ClassVar[Callable[..., Any]]
    _known: ClassVar[Callable[..., KnownRows]]
    _part_values: ClassVar[Callable[..., NDArray]]
    _part_units: ClassVar[Callable[..., NDArray]]
    _centre: ClassVar[str] = "mean"  # what `impute` gives that is no draw

    # -- units
    def transform(self, X) -> NDArray:
        """Probabilities of the hidden units given X.

        Parameters
        ----------
        X : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
            Rows; NaN is a value that is not known.

        Returns
        -------
        h : ndarray of shape (n_samples, n_components)
            Given the known values of each row: exact where the missing units or the hidden ones can
            be enumerated, else means over 100 weighted draws from annealed chains, or from tempered
            ones where these do not do.
        """
        X = self._scorable(X)
        if self._missing(X) is None:
            return expit(self._hidden_inputs(X))
        known = self._known(X)
        on = expit(known.fields).astype(self.components_.dtype)
        for t, part, states, shares in posteriors(known, self._draws_of_row):
            on[t, part.hidden] = states.hidden_means(shares, known.fields[t])
        return on

    def impute(self, X, how: str | None = None, random_state=None) -> NDArray:
        """Fill in the values that are not known, given the known ones of the same row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a value that is not known.
        how : {"draw", "mean", "mode"} or None, default=None
            "draw", which is the default, draws the missing values of a row jointly: only draws keep
            the spread of the data. "mean" takes the conditional mean of each missing value, of
            binary ones the probability of 1. `CategoricalRBM` has "mode" instead, the most probable
            category of each.
        random_state : int, RandomState or None, default=None
            Seed of the draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Without missing values, in the container of `set_output`. Exact where the missing units
            or the hidden ones can be enumerated; else from 100 annealed chains (`AIS`) for each
            row, by their weights, or from tempered ones where these do not do.
        """
        return in_container(self, self._imputed(X, how, random_state))

    def _imputed(self, X, how, random_state) -> NDArray:
        how = "draw" if how is None else how
        check_option(how, ("draw", self._centre), "how")
        X_units = self._scorable(X)
        filled = self._data_rows(X)
        if self._missing(X_units) is None:
            return filled
        known = self._known(X_units)
        rng = np.random.default_rng(draw_seed(random_state))
        draws = how == "draw"
        drawn = functools.partial(self._draws_of_row, rng=rng) if draws else self._draws_of_row
        for t, part, states, shares in posteriors(known, drawn):
            units = states.draw(shares, rng) if draws else states.visible_means(shares)
            filled[t, part.columns] = self._part_values(part, units, filled[t])
        return filled

    def _draws_of_row(self, part, path, rng=None) -> tuple[NDArray, NDArray]:
        """Draws of the missing units of a row whose states can't be enumerated, (n, m), and their
        shares (n,); from the row's own generator, unless one is given.
        """
        if rng is None:
            rng = np.random.default_rng([self._partition_seed, zlib.crc32(content(path))])
        rows, shares = weighted_rows(path, rng, self.n_jobs)
        return self._part_units(part, rows), shares

    def _data_rows(self, X) -> NDArray:
        rows = self._validate(X)
        return rows.toarray() if sp.issparse(rows) else rows.copy()

    def _units_of(self, rows) -> Any:
        """Units of rows of data, in the form of validated rows."""
        return rows

    def _marginals(self, X) -> Marginals:
        missing = self._missing(X)
        if missing is None:
            return Marginals(*self._log_f(X))
        log_f, possible = self._log_f(self._without_missing(X))
        empty = missing.all(axis=1)
        some = np.flatnonzero(missing.any(axis=1) & ~empty)
        if not some.size:
            return Marginals(log_f, possible | empty, missing)
        log_f[some], rows, paths = log_sums(self._known(X[some]))
        estimated = RowPaths(paths) if paths else None
        return Marginals(log_f, possible | empty, missing, some[rows], estimated)

    def gibbs(self, v) -> NDArray:
        """Make one Gibbs step: hidden units given v, then visible units given them.

        Parameters
        ----------
        v : array-like, or sparse matrix where the model takes one, of shape (n_samples, n_features)
            Rows; missing values are drawn first.

        Returns
        -------
        v_new : ndarray of shape (n_samples, n_features)
            Of bool where the visible units are binary.
        """
        units = self._scorable(v)
        rng = self._stream_of_numbers()
        with drawing_all_or_nothing(self):
            if self._missing(units) is not None:
                units = self._units_of(self._imputed(v, None, rng))
            on = expit(self._hidden_inputs(units))
            return self._rows_given(rng.uniform(size=on.shape) < on, rng)

    # -- training
    @property
    def _n_chains(self) -> int:
        """Number of persistent chains."""
        return self.batch_size if self.n_chains is None else self.n_chains

    def _stream_of_numbers(self) -> np.random.RandomState:
        """The generator that goes on from call to call of `partial_fit` and `gibbs`."""
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        return self.random_state_

    def _begins_stream(self) -> bool:
        """True if a call of `partial_fit` is the first; ValueError if it can't be made."""
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


@dataclass(eq=False, repr=False, kw_only=True)
class DiscreteRBM(RBM):
    """fit, partial_fit and path of an RBM whose visible units have finitely many states.

    A model has the parameters below, and defines

    - ``_validate(X, reset)``: rows as values of the units (n, n_units), dense or CSR;
      ``_training_rows(X)`` may do more for rows to train on;
    - ``_visible_units``, where the visible units are not binary;
    - ``_report(trainer, iteration)``, where training has something to say after a pass.
    """

    intercept_init: Literal["log-odds", "zeros"] = "log-odds"
    weight_decay: float = 0.0
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 1e-4
    track_log_partition: Literal[False, "particles", "rts"] = False
    track_trajectory: bool = False
    _discrete = True
    _states_are_points = False
    _visible_units = BinaryUnits()
    _report: ClassVar[Any] = None
    _parameter_constraints = {
        **RBM._parameter_constraints,
        "intercept_init": [StrOptions({"log-odds", "zeros"})],
        "weight_decay": [NOT_NEGATIVE],
        "early_stopping": ["boolean"],
        "validation_fraction": [INSIDE_0_1],
        "n_iter_no_change": [at_least(1)],
        "tol": [NOT_NEGATIVE],
        "track_log_partition": [StrOptions({"particles", "rts"}), Options(bool, {False})],
        "track_trajectory": ["boolean"],
    }

    # -- training
    @all_or_nothing
    @reporting
    def fit(self, X, y=None) -> Self:
        """Fit to X by persistent contrastive divergence, from new weights and chains.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of the values that the visible units have. NaN, of dense X, is a value that is not
            known: such values are draws from the model given the known ones of their row, which go
            on for a few Gibbs sweeps before every pass (stochastic approximation), and begin at
            the shares of their column.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X can't be used, training diverges, or `early_stopping` can't score the rows; the
            model then stays as it was before.

        Warns
        -----
        ConvergenceWarning
            If the log-likelihood still scatters between the last passes.
        """
        X = self._training_rows(X, reset=True)
        check_columns_known(self._missing(X))
        rng = check_random_state(self.random_state)
        X, X_validation = split(self, X, rng)
        self._begin(X, rng)
        trainer = Trainer(self, X, self.batch_size, rng)
        monitor = Monitor(self, X_validation, X.shape[0])
        self.n_iter_, _ = train(
            trainer,
            self.n_iter,
            report=self._report,
            callbacks=[monitor],
            store=trainer.store,
        )
        monitor.store(self, trainer)
        trainer.store(self)
        return self

    @all_or_nothing
    def partial_fit(self, X, y=None) -> Self:
        """Make one step of persistent contrastive divergence on X, one minibatch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A batch, for one update however many rows it has: learning takes as many calls as `fit`
            makes updates, one for every `batch_size` rows in every pass.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X can't be used, training diverges, or with `early_stopping` or a linear schedule;
            the model then stays as it was before.
        """
        first = self._begins_stream()
        if self.early_stopping:
            raise ValueError("partial_fit has no passes: set early_stopping=False, or call fit")
        X = self._training_rows(X, reset=first)
        rng = self._stream_of_numbers()
        if first:
            check_columns_known(self._missing(X))
            self._begin(X, rng)
        else:
            self._count(X)
        trainer = Trainer(self, X, X.shape[0], rng)
        trainer.run()
        trainer.store(self)
        if self.track_log_partition:
            tracker = make_tracker(self, X.shape[0], before=vars(self).get("_tracker"))
            tracker(trainer, 1)
            store_tracker(self, tracker)
        else:
            self._forget_tracking()
        return self

    def _training_rows(self, X, reset):
        return self._validate(X, reset=reset)

    def _begin(self, X, rng) -> None:
        """Draw weights, count the rows, and forget what an earlier training has left.

        With biases that are the data's log odds training starts at independent units with the means
        of the data.
        """
        n_units = X.shape[1]
        weights = rng.normal(0, 0.01, (self.n_components, n_units)).astype(X.dtype)
        biases = (np.zeros(n, dtype=X.dtype) for n in (n_units, self.n_components))
        self._set_weights(weights, *biases)
        self._partition_seed = draw_seed(rng)
        self._forget_tracking()
        self._count(X)
        if self.intercept_init == "log-odds":
            log_odds = self._visible_units.logits_of(self.visible_mean_)
            self.intercept_visible_ = log_odds.astype(X.dtype)

    def _set_weights(self, components, intercept_visible, intercept_hidden) -> None:
        """Set the weights, with chains whose hidden units are off, and no rows seen."""
        n_components, n_units = components.shape
        self.components_ = components
        self.intercept_visible_ = intercept_visible
        self.intercept_hidden_ = intercept_hidden
        self.h_samples_ = np.zeros((self._n_chains, n_components), dtype=components.dtype)
        self._n_features_out = n_components
        self._n_seen = 0
        self._visible_sum = np.zeros(n_units)
        for name in ("_training", "_trajectory"):
            self.__dict__.pop(name, None)

    def _count(self, X) -> None:
        """Add rows to the means of the visible units, and keep some of them."""
        missing = self._missing(X)
        complete = X if missing is None else X[~missing.any(axis=1)]
        rows = evenly_spaced(complete, _MOST_STARTS)
        self._some_rows = (rows.toarray() if sp.issparse(rows) else rows) > 0.5
        sums, n = self._visible_units.counts(X)
        self._n_seen = self._n_seen + n
        self._visible_sum = self._visible_sum + sums
        self.visible_mean_: Array = self._visible_units.smoothed_means(
            self._visible_sum, self._n_seen
        )

    def _forget_tracking(self) -> None:
        """Drop what following log Z has left."""
        for name in (*ATTRIBUTES, "_tracker"):
            self.__dict__.pop(name, None)

    @classmethod
    def _with_weights(
        cls, components, intercept_visible, intercept_hidden, visible_mean, parameters, **fitted
    ) -> Self:
        """A fitted model with known weights, biases and other fitted attributes."""
        dtypes = (np.float64, np.float32)
        components = check_parameter(components, "components", dtype=dtypes, copy=True)
        n_components, n_units = components.shape
        visible = check_vector(intercept_visible, n_units, "intercept_visible")
        hidden = check_vector(intercept_hidden, n_components, "intercept_hidden")
        means = check_vector(visible_mean, n_units, "visible_mean", default=0.5)
        model = cls(n_components=n_components, **parameters)
        model._be_known(n_units)
        vars(model).update(fitted)
        dtype = components.dtype
        model._set_weights(components, visible.astype(dtype), hidden.astype(dtype))
        model.visible_mean_ = given_means(means, "visible_mean")
        model.path()
        if visible_mean is None:
            model.visible_mean_ = short_run_mean(model)
        return model

    # -- units
    def _hidden_inputs(self, X) -> NDArray:
        return Parameters.of(self).hidden_fields(X)

    # -- missing values
    def _missing(self, X) -> Booleans | None:
        return self._visible_units.missing(X)

    def _without_missing(self, X):
        return self._visible_units.without_missing(X)

    def _part_values(self, part, units, row) -> NDArray:
        return units

    def _part_units(self, part, rows) -> NDArray:
        return rows

    def _known(self, X, parameters=None) -> KnownRows:
        units = self._visible_units
        if parameters is None:
            parameters = Parameters.of(self).astype(np.float64)
        weights, visible_bias, _ = parameters
        layers = Layers(
            weights,
            visible_bias,
            units,
            units.column_starts(len(visible_bias)),
            self._path_of_part,
        )
        values = units.without_missing(X)
        fields = parameters.hidden_fields(values)
        return KnownRows(layers, fields, values @ visible_bias, units.missing(X))

    def _path_of_part(self, part, fields) -> RBMPath:
        """The path to the RBM of one row's missing units, from independent units about as they are
        given the known ones.
        """
        least_mean = 0.01  # of the base's units
        on = expit(fields + part.weights @ self.visible_mean_[part.visible])
        means = part.units.clipped_means(part.bias + on @ part.weights, least_mean)
        return RBMPath(part.weights, part.bias, fields, means, visible_units=part.units)

    def _rows_given(self, h, rng) -> NDArray:
        inputs = Parameters.of(self).visible_fields(h)
        return self._visible_units.codes(self._visible_units.draw(inputs, rng))

    def conditional_proba(self, X, columns, states=None) -> Array:
        """Probabilities of the values of some columns given the others, such as those of a label
        that the model was fitted to beside its features (Larochelle & Bengio 2008).

        log Z cancels: no estimate of it is needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, whose values in `columns` are ignored; NaN is a value that is not known.
        columns : int, str, or sequence of either
            Columns whose values are asked for, by number or by name in `feature_names_in_`.
        states : array-like of shape (n_states, n_columns) or None, default=None
            Values of these columns between which to decide: ``np.eye(n_columns)`` for a label in
            one-hot code. None takes all that the columns can have, the last column running fastest.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_states)
            Of which each row sums to 1.

        Raises
        ------
        ValueError
            If columns or states are none of the model.

        References
        ----------
        Larochelle, H. & Bengio, Y. (2008). Classification using discriminative restricted Boltzmann
        machines. ICML.
        """
        self._scorable(X)
        rows = self._data_rows(X)
        columns = self._column_numbers(columns)
        sizes = self._visible_units.column_sizes(self.n_features_in_)[columns]
        states = _all_values(sizes) if states is None else as_float64(states, "states")
        if states.ndim != 2 or states.shape[1] != len(columns):
            raise ValueError(f"states must have {len(columns)} columns, got shape {states.shape}")
        if not np.all((states >= 0) & (states < sizes) & (states % 1 == 0)):
            raise ValueError(
                "states must hold values that the model knows: whole numbers from 0 up to"
                f" {(sizes - 1).tolist()} in these columns"
            )
        log_f = np.empty((len(rows), len(states)))
        for k, state in enumerate(states):
            rows[:, columns] = state
            log_f[:, k], possible = self._sums(self._units_of(rows))
        if not possible.all():
            raise ValueError(
                "X must hold values that the model knows in the other columns, and row"
                f" {possible.argmin()} has others"
            )
        return softmax(log_f, axis=1)

    def _column_numbers(self, columns) -> Integers:
        """Return the numbers of columns that are given by number or by name."""
        known: list[Any] = list(range(self.n_features_in_))
        places = dict(zip(known, known))
        wanted = f"numbers from 0 to {len(known) - 1}"
        if hasattr(self, "feature_names_in_"):
            places |= dict(zip(self.feature_names_in_, known))
            wanted += f" or names among {', '.join(self.feature_names_in_)}"
        else:
            wanted += ", as fit got no names (a pipeline gives them by set_output)"
        given = np.atleast_1d(columns).tolist()
        if not all(column in places and not isinstance(column, bool) for column in given):
            raise ValueError(f"columns must be {wanted}, got {columns}")
        if len(set(map(places.get, given))) < len(given):
            raise ValueError(f"columns must differ from each other, got {columns}")
        return np.array([places[column] for column in given])

    def _sums(self, X) -> tuple[Array, Booleans]:
        """log f of what is known of rows, where need be estimated, (n,), and which rows are in the
        model's domain.
        """
        log_f, possible, _, rows, path = self._marginals(X)
        if path is not None:
            result = self._row_partition(path, "_kept_sums").result_
            np.add.at(log_f, rows, result.log_partition)
            if not result.converged:
                report(self, f"sums over missing values are not to be trusted: {result.reasons[0]}")
        return log_f, possible

    # -- log-likelihood
    def path(self, base="data", weights="marginal", trajectory=None) -> RBMPath | RBMTrajectoryPath:
        """Return the path from independent visible units to this model.

        Parameters
        ----------
        base : {"data", "uniform"} or array-like of shape (n_units,), default="data"
            Means of the independent units: `visible_mean_`, equal ones of all states, or given
            ones (moved to at least 0.001 from 0 and 1).
        weights : {"marginal", "joint"}, default="marginal"
            Whether the hidden layer is summed out of the densities. With "joint" all estimates
            scatter more, those of `RTS` most.
        trajectory : bool or None, default=None
            Whether levels follow training, through the checkpoints that `track_trajectory` has
            kept, instead of the inverse temperature. None is `track_trajectory`, if h is summed
            out.

        Returns
        -------
        path : RBMPath or RBMTrajectoryPath
        """
        check_fitted(self)
        path = RBMPath(
            self.components_,
            self.intercept_visible_,
            self.intercept_hidden_,
            means_of_base(base, self.visible_mean_),
            weights=weights,
            starts=self._starts(),
            visible_units=self._visible_units,
        )
        path.base_is_ours = isinstance(base, str) and base == "data"
        kept = vars(self).get("_trajectory")
        if trajectory is None:
            trajectory = self.track_trajectory and kept is not None and weights == "marginal"
        if not trajectory:
            return path
        if kept is None or weights != "marginal":
            raise ValueError(
                "trajectory=True needs a model that was fitted with track_trajectory=True, and"
                ' weights="marginal"'
            )
        return RBMTrajectoryPath(path, *kept.to_path())

    def _starts(self) -> NDArray | None:
        """Rows that training has left, from which chains look for regions of the model: some of its
        own, and the modes of p(v | h) of its chains; None without training.
        """
        if "_some_rows" not in self.__dict__:
            return None
        inputs = Parameters.of(self).visible_fields(self.h_samples_[:_MOST_STARTS])
        return np.concatenate([self._some_rows, self._visible_units.modes(inputs)])

    def _as_data(self, units) -> NDArray:
        return self._visible_units.codes(units)

    def _log_f(self, X) -> tuple[Array, Booleans]:
        """log f of every row, the hidden units summed out, and which rows are binary."""
        parameters = Parameters.of(self).astype(np.float64)
        values = np.empty(X.shape[0])
        for rows in gen_batches(X.shape[0], ROWS_AT_ONCE):
            values[rows] = parameters.log_f(X[rows].astype(np.float64))
        return values, binary_rows(X)

    def _ratio_path(self, other):
        """The path to another model of the same visible units, None for models of other kinds."""
        n_draws = 128  # of each of two models, for every ladder
        if not isinstance(other, DiscreteRBM):
            return None
        same_units = np.array_equal(self._visible_units.starts, other._visible_units.starts)
        if not same_units or other.n_features_in_ != self.n_features_in_:
            return None
        models = self, other
        draws = draws_of_both(models, n_draws)
        if draws is None:
            return None
        a, b = (Parameters.of(model).astype(np.float64) for model in models)
        draws_a, draws_b = draws
        return RBMRatioPath(a, b, draws_a, draws_b, visible_units=self._visible_units)


@np.errstate(over="ignore")  # infinitely many beyond 1e308
def _all_values(sizes) -> Array:
    """All values of columns with so many values each, (n_states, n_columns)."""
    most_states = 1 << 16
    n_states = np.prod(sizes, dtype=np.float64)
    if n_states > most_states:
        raise ValueError(
            f"columns have {n_states:g} joint values, more than {most_states}: ask for fewer"
            " columns, or give the states between which to decide"
        )
    return np.indices(tuple(sizes)).reshape(len(sizes), -1).T.astype(np.float64)


def short_run_mean(model) -> Array:
    """Visible means of 100 chains after 20 Gibbs sweeps from random hidden units, pulled a tenth of
    the way to those of units without inputs.

    Rounded, so that they do not depend on the number of BLAS threads.
    """
    rng = np.random.default_rng(0)
    parameters = Parameters.of(model)
    units = model._visible_units
    hidden = rng.random((100, len(parameters.components))) < 0.5
    for _ in range(20):
        inputs = parameters.visible_fields(hidden)
        visible = units.draw(inputs, rng)
        hidden = rng.random(hidden.shape) < expit(parameters.hidden_fields(visible))
    mean = units.means(inputs).mean(axis=0, dtype=np.float64)
    return np.round(0.9 * mean + 0.1 * units.means(np.zeros(mean.shape)), 6)

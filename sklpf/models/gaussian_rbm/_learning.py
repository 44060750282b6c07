"""Persistent contrastive divergence of a Gaussian RBM (Tieleman 2008; Cho et al. 2011).

Chains also move over the hidden units alone, the visible ones integrated out: block Gibbs sweeps
between v and h can't leave a mode where components are large beside the standard deviations, and
training with these alone diverges, as the chains don't find what the model has become.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sklpf._utils.numbers import Array, Booleans
from sklpf._utils.parallel import equal_parts, run_tasks
from sklpf.models._learning import same_values
from sklpf.models._missing import column_moments
from sklpf.paths import shrunk_covariance
from sklpf.training import RunningAverage, check_not_diverged
from sklpf.uncertainty import log_mean_exp

# Inputs of hidden units whose probability is 0; smaller ones would give numbers with which products
# take 50 times as long
_LEAST_FIELD = np.float32(-40.0)
_TURN = 64  # hidden units that are drawn between two products with the weights
# Of the visible units given the hidden ones, where training begins with uncorrelated columns of
# variance 1 that many rows determine: with 1, one Gaussian, most units learn nothing.
_FIRST_VARIANCE = 0.3


class Parameters(NamedTuple):
    """log f(v, h) = c @ h - sum (v - b)² / 2 s² + h @ W @ ((v - b) / s²)."""

    components: Array  # W (J, M)
    intercept_visible: Array  # b (M,)
    intercept_hidden: Array  # c (J,)
    variances: Array  # s² (M,)

    def hidden_fields(self, v) -> Array:
        """Inputs of the hidden units, (n, J)."""
        return self._residuals(v) @ self.components.T + self.intercept_hidden

    def visible_means(self, h) -> Array:
        """Means of the visible units given hidden ones, (n, M)."""
        return self.intercept_visible + h @ self.components

    def log_f(self, v) -> Array:
        """log f(v), the hidden units summed out, (n,), in nats."""
        away = v - self.intercept_visible
        square = np.einsum("ij,ij->i", away, self._residuals(v))
        return np.logaddexp(0, self.hidden_fields(v)).sum(axis=1) - 0.5 * square

    def _residuals(self, v):
        return (v - self.intercept_visible) / self.variances

    def rescaled(self, location, scale) -> Parameters:
        """The same model of rows location + scale * v, for scales (M,)."""
        return Parameters(
            self.components * scale,
            location + scale * self.intercept_visible,
            self.intercept_hidden,
            scale**2 * self.variances,
        )


class Coordinates(NamedTuple):
    """Coordinates of rows v, v B, in which training begins with uncorrelated columns of variance 1.

    Attributes
    ----------
    basis : ndarray of shape (M, M) or None
        B, of determinant 1 or -1: principal axes of the standardised columns, whose covariance is
        shrunk. None: the columns themselves.
    variances : ndarray of shape (M,)
        Shrunk variances of the coordinates.
    unseen : ndarray of shape (M,)
        Shares of these that shrinking has added: training adds noise of these variances to rows.
    n_constant : int
        Principal axes along which more rows than columns do not vary, so that densities there hang
        on the shrinking.
    """

    basis: Array | None
    variances: Array
    unseen: Array
    n_constant: int = 0

    @classmethod
    def of_columns(cls, X) -> Coordinates:
        """Return the columns themselves; ValueError if their variances overflow."""
        _, mean, variance = column_moments(X)
        spread = np.sqrt(variance)
        # Of a constant column rounding errors are all that would be scaled up.
        constant = spread <= 1e-10 * np.abs(mean)
        variances = np.where(constant, 1.0, spread) ** 2
        if not np.all(np.isfinite(variances)):
            raise ValueError("X holds such large values that its variances overflow: rescale it")
        return cls(None, variances, np.zeros(len(variances)))

    @classmethod
    def principal(cls, X) -> Coordinates:
        """Return the principal axes of complete rows; the columns where fewer than three distinct
        rows leave the covariance singular.
        """
        rows_per_column = 5  # as many as the Gaussian of the baseline takes, unshrunk
        least_variance = 1e-8  # of the largest, below which a column repeats others
        singular = 1e-13  # a variance, as a share of the largest, that is rounding errors
        columns = cls.of_columns(X)
        scale = np.sqrt(columns.variances)
        standardised = (X - X.mean(axis=0)) / scale
        variances, axes = np.linalg.eigh(standardised.T @ standardised / len(X))
        if variances[-1] < 0.5:  # the largest is at least 1 unless all columns are constant
            return columns
        unseen = np.zeros(len(variances))
        n_constant = int(np.sum(variances <= least_variance * variances[-1]))
        if len(X) < rows_per_column * X.shape[1] or n_constant:
            variances, axes = np.linalg.eigh(shrunk_covariance(standardised))
            if variances[0] <= singular * variances[-1]:
                return columns
            seen = np.mean((standardised @ axes) ** 2, axis=0)
            unseen = np.clip(1 - seen / variances, 0.0, 1.0)
        volume = np.exp(np.log(scale).mean())
        basis = volume * axes / scale[:, np.newaxis]
        n_constant *= len(X) > X.shape[1]
        return cls(basis, volume**2 * variances, unseen, n_constant)


def draws_given_known(drawn, rows, missing: Booleans, precision) -> Array:
    """Draws of a Gaussian given the known columns of rows, by Matheron's rule.

    Parameters
    ----------
    drawn : ndarray of shape (n, M)
        Draws, with no regard to what is known.
    rows : ndarray of shape (n, M)
        Known columns; what stands in the others does not matter.
    missing : ndarray of shape (n, M)
        Columns that are not known.
    precision : ndarray of shape (M, M)
        Inverse covariance of each row of `drawn`.
    """
    # Of each row as many columns as any row misses, its missing ones first
    most = int(missing.sum(axis=1).max())
    columns = np.argsort(~missing, axis=1, kind="stable")[:, :most]
    absent = np.take_along_axis(missing, columns, axis=1)
    both = absent[:, :, np.newaxis] & absent[:, np.newaxis]
    among = precision[columns[:, :, np.newaxis], columns[:, np.newaxis]]

    given = np.where(missing, drawn, rows)
    pulls = np.take_along_axis((given - drawn) @ precision, columns, axis=1)
    pulls = np.where(absent, pulls, 0.0)[:, :, np.newaxis]
    moves = np.linalg.solve(np.where(both, among, np.eye(most)), pulls)[:, :, 0]
    np.put_along_axis(given, columns, np.take_along_axis(given, columns, axis=1) - moves, axis=1)
    return given


def completed_by_gaussian(X, rng) -> Array:
    """Rows whose missing values are drawn given the known ones from one Gaussian, with the shrunk
    covariance of rows that were completed in this way before, at first by means.
    """
    n_draws = 20  # before which the covariance hangs on where the draws began
    least_variance = 1e-10  # of a direction, in columns of variance 1
    rows_at_once = 256
    missing = np.isnan(X)
    _, mean, variance = column_moments(X)
    rows = np.where(missing, 0.0, (X - mean) / np.sqrt(Coordinates.of_columns(X).variances))
    parts = [slice(first, first + rows_at_once) for first in range(0, len(X), rows_at_once)]
    for _ in range(n_draws):
        centre = rows.mean(axis=0)
        covariance = shrunk_covariance(rows - centre) + least_variance * np.eye(len(mean))
        noise = rng.standard_normal(rows.shape)
        drawn = centre + noise @ np.linalg.cholesky(covariance).T
        precision = np.linalg.inv(covariance)
        for part in parts:
            rows[part] = draws_given_known(drawn[part], rows[part], missing[part], precision)
    return np.where(missing, mean + np.sqrt(variance) * rows, X)


class Weights:
    """The weights in training and what follows from them, in float32.

    Parameters
    ----------
    components : ndarray of shape (J, M)
        W, which training writes to.
    """

    def __init__(self, components):
        self.components = np.array(components, np.float32, order="C")
        n_hidden, n_visible = self.components.shape
        self.scaled = np.empty_like(self.components)  # W / s²
        self.turns = [slice(a, min(a + _TURN, n_hidden)) for a in range(0, n_hidden, _TURN)]
        self.couplings = [np.empty(0, np.float32)] * len(self.turns)  # among units of one turn
        self.own = np.empty(n_hidden, np.float32)  # half of those with themselves
        self.turns_at_once = equal_parts(len(self.turns), 2)
        self.hidden = [
            slice(self.turns[part.start].start, self.turns[part.stop - 1].stop)
            for part in self.turns_at_once
        ]
        self.visible = equal_parts(n_visible, 120)

    def renew(self, variances) -> None:
        """Compute what follows from the components, (J, M), and variances (M,) as they are now."""
        precisions = (1 / variances).astype(np.float32)

        def renew_part(part):
            for turn in range(part.start, part.stop):
                units = self.turns[turn]
                np.multiply(self.components[units], precisions, out=self.scaled[units])
                self.couplings[turn] = self.scaled[units] @ self.components[units].T
                self.own[units] = 0.5 * np.diag(self.couplings[turn])

        run_tasks(renew_part, self.turns_at_once)

    def hidden_fields(self, away, bias):
        """Inputs of the hidden units, (n, J), by v - b (n, M)."""
        fields = np.empty((len(away), len(self.components)), np.float32)

        def fill(units):
            np.matmul(away, self.scaled[units].T, out=fields[:, units])
            fields[:, units] += bias[units]

        run_tasks(fill, self.hidden)
        return fields

    def pulls(self, h):
        """Contributions of hidden units (n, J) to the means of the visible ones, (n, M)."""
        pulls = np.empty((len(h), self.components.shape[1]), np.float32)

        def fill(units):
            np.matmul(h, self.components[:, units], out=pulls[:, units])

        run_tasks(fill, self.visible)
        return pulls


def sweep(weights: Weights, bias, h, pull, uniforms) -> None:
    """Draw the hidden units (n, J) in turn, each given all others, in place; `pull` (n, M) is what
    they add to the means, before and after.
    """
    from sklpf.models.gaussian_rbm._learning_kernels import draw_in_turn

    constant = bias + weights.own

    def draw(chains):
        for units, couplings in zip(weights.turns, weights.couplings):
            inputs = pull[chains] @ weights.scaled[units].T
            inputs += constant[units]
            change = np.empty_like(inputs)
            draw_in_turn(inputs, couplings, uniforms[chains, units], h[chains, units], change)
            pull[chains] += change @ weights.components[units]

    run_tasks(draw, equal_parts(len(h), 48))


def jump(weights: Weights, bias, variances, h, pull, fields, rng):
    """A Metropolis-Hastings step to hidden units that are proposed whatever h is.

    Half of the proposals are drawn given one of the rows, whose units have the inputs `fields` (n,
    J), and half from independent units with the mean activities given the rows.

    Returns
    -------
    h, pull : ndarray of shape (n_chains, J) and (n_chains, M)
        Hidden units and what they add to the means.
    accepted : ndarray of shape (n_chains,)
    """
    least_activity = 0.02  # of a unit in proposals, and as much from 1
    on = expit(fields)
    mean = on.mean(axis=0).clip(least_activity, 1 - least_activity)
    softplus = np.maximum(fields, 0) + np.log1p(np.exp(-np.abs(fields)))
    log_normalisers = softplus.sum(axis=1, dtype=np.float64)

    def log_proposal(units):
        log_given_rows = units @ fields.T - log_normalisers
        log_independent = units @ np.log(mean) + (1 - units) @ np.log1p(-mean)
        return np.logaddexp(log_mean_exp(log_given_rows, axis=1), log_independent)

    def log_marginal(units, pull):
        return units @ bias + 0.5 * pull**2 @ (1 / variances)

    given_row = rng.random((len(h), 1)) < 0.5
    probabilities = np.where(given_row, on[rng.integers(len(fields), size=len(h))], mean)
    proposed = (rng.random(h.shape, dtype=np.float32) < probabilities).astype(np.float32)
    proposed_pull = weights.pulls(proposed)
    log_rate = log_marginal(proposed, proposed_pull) - log_marginal(h, pull)
    log_rate += log_proposal(h) - log_proposal(proposed)
    accepted = np.log(rng.random(len(h))) < log_rate
    accept = accepted[:, np.newaxis]
    return np.where(accept, proposed, h), np.where(accept, proposed_pull, pull), accepted


def gradient_sums(components, on, away) -> tuple[NDArray, NDArray, NDArray]:
    """Sums over rows in the gradient, for J hidden units.

    Parameters
    ----------
    components : ndarray of shape (J, M)
    on : ndarray of shape (n, J)
        Probabilities of the hidden units, each row times its coefficient in the gradient.
    away : ndarray of shape (n, M)
        Visible units less their biases.

    Returns
    -------
    by_weights : ndarray of shape (J, M)
        Sum of the products of `on` and `away`: the gradient by W times the variances.
    along, pull : ndarray of shape (M,)
        Sums over rows of what the hidden units add to the means, times `away` and alone.
    """
    by_weights = on.T @ away
    along = np.einsum("ji,ji->i", components, by_weights)
    return by_weights, along, on.sum(axis=0) @ components


class Trainer:
    """Weights, their average and the chains, in coordinates where every column has variance 1.

    A step goes along the gradient by W, b, c and log s², in which that by a visible unit's weights
    and bias is multiplied by its variance. Without that, steps would grow as variances fall. The
    curvature by the weights of a hidden unit, and by log s², grows with |u|², u = (v - b) / s, and
    their steps are divided by 1 + |u|² / 16. With full steps of log s² a model whose variances are
    small goes astray again and again, as all modes change their weights at once. Each unit's
    weights start at a share of the difference between two rows and some noise: from noise alone
    several units often learn the same direction. Weights of more than 16 units start smaller, and
    the rate of their steps is at most the inverse of the number of units that are on, whose changes
    add up. Each step is followed by three moves of the chains: a jump and a sweep over the hidden
    units, and a Gibbs step to the visible ones and back. Where no chain has jumped for a while only
    some steps try it.

    Products are in float32, and each is made of parts that do not depend on the number of threads.

    Parameters
    ----------
    model : GaussianRBM
        Its parameters say how to train.
    X : ndarray of shape (n_samples, n_features)
        Rows in the model's coordinates.
    seed : int
        Seed of all random numbers.
    coordinates : Coordinates
        Of the model.
    start : Parameters or None, default=None
        Initial parameters, in the coordinates of X; None draws weights.
    missing : ndarray of shape (n_samples, n_features) or None, default=None
        Columns that are not known, where X has been completed; None: where X is NaN.
    """

    def __init__(
        self,
        model,
        X,
        seed: int,
        coordinates: Coordinates,
        start: Parameters | None = None,
        missing: Booleans | None = None,
    ):
        self.rng = np.random.default_rng(seed)
        self.location = column_moments(X)[1]
        self.scale = np.sqrt(coordinates.variances)
        self.noise = np.sqrt(coordinates.unseen, dtype=np.float32)
        is_sure = coordinates.basis is not None and not self.noise.any()
        self.first_variance = _FIRST_VARIANCE if is_sure else 1.0
        self.missing = np.isnan(X) if missing is None else missing
        self.X = self._coordinates(X)
        self.basis = None if coordinates.basis is None else coordinates.basis / self.scale
        self.columns = self.X  # from the mean, in which values are known
        if self.basis is not None and self.missing.any():
            self.columns = (X - self.location) / self.scale @ np.linalg.inv(self.basis)
        self._set(self._first(model.n_components) if start is None else self._scaled(start))
        self.shown = self.current  # by the model, whose user may replace them
        self.average = RunningAverage(model.average)
        units = self.rng.random((model._n_chains, len(self.current.components))) < 0.5
        self.h = units.astype(np.float32)
        self.n_without_jump = 0
        self.n_updates = np.inf
        if model.learning_rate_schedule == "linear":
            self.n_updates = model.n_iter * -(-len(X) // model.batch_size)
        self._configure(model)
        self.step_number = 0

    def go_on(self, model) -> None:
        """Take the model's parameters as they are now, with a constant learning rate, and its
        weights where a user has set them.
        """
        self._configure(model)
        self.n_updates = np.inf
        self.average = RunningAverage(model.average, self.average.n_rows, self.average.n_averaged)
        self.h = np.resize(self.h, (model._n_chains, self.h.shape[1]))
        if not same_values(self.shown, model._parameters):
            self._set(self._scaled(model._parameters))
            self.average.n_averaged = 0

    def _set(self, parameters: Parameters) -> None:
        """Go on from other parameters, in the coordinates of training."""
        self.weights = Weights(parameters.components)
        components: Any = self.weights.components
        self.current = parameters._replace(components=components)
        self.averaged = Parameters(*map(np.copy, self.current))

    def _configure(self, model) -> None:
        self.batch_size = model.batch_size
        self.learning_rate = model.learning_rate
        self.variance_floor = model.variance_floor

    def _scaled(self, parameters) -> Parameters:
        """Parameters of X in the coordinates of training."""
        return parameters.rescaled(-self.location / self.scale, 1 / self.scale)

    def _first(self, n_components) -> Parameters:
        """Parameters to start from, in the coordinates of training."""
        first_weights = 0.1  # standard deviation, in those of the data
        first_share = 0.3  # of the difference between two rows
        most_units = 16
        n_features = self.X.shape[1]
        first, second = self.rng.integers(len(self.X), size=(2, n_components))
        weights = self.rng.normal(scale=first_weights, size=(n_components, n_features))
        weights += first_share * (self.X[first] - self.X[second])
        # More units together make about as much variance.
        weights *= min(1.0, np.sqrt(most_units / n_components))
        zeros = np.zeros(n_features)
        variances = np.full(n_features, self.first_variance)
        return Parameters(weights, zeros, np.zeros(n_components), variances)

    def _coordinates(self, X):
        """Rows in the coordinates of training, in which missing values are at their means."""
        away = (X - self.location) / self.scale
        return np.nan_to_num(away, nan=0.0, posinf=None, neginf=None).astype(np.float32)

    @property
    def parameters(self) -> Parameters:
        """Learned parameters, in the coordinates of the rows; ValueError if training has
        diverged.
        """
        check_not_diverged(*self.current)
        learned = self.averaged if self.average.n_averaged else self.current
        return learned.rescaled(self.location, self.scale)

    def run(self) -> None:
        """Make one pass over the rows, in random order."""
        order = self.rng.permutation(len(self.X))
        for first in range(0, len(order), self.batch_size):
            batch = order[first : first + self.batch_size]
            missing = self.missing[batch]
            if missing.any():
                self.X[batch] = self._completed(self.X[batch], missing, self.columns[batch])
            self._ascend(self.X[batch])

    def step(self, X) -> None:
        """Make one step on rows of X, one minibatch."""
        rows = self._coordinates(X)
        missing = np.isnan(X)
        self._ascend(self._completed(rows, missing, rows) if missing.any() else rows)

    def forget_rows(self) -> None:
        """Keep no rows of training."""
        self.X = self.X[:0].copy()
        self.columns = self.X
        self.missing = self.missing[:0].copy()

    def _completed(self, rows, missing, columns):
        """Rows whose missing values are drawn given the known ones of `columns`, by Gibbs sweeps
        from those that they have.
        """
        n_sweeps = 5
        here = self.current
        spread = np.sqrt(here.variances)
        if self.basis is not None:
            root = np.linalg.inv(self.basis)
            precision = self.basis / here.variances @ self.basis.T
        for _ in range(n_sweeps):
            on = expit(here.hidden_fields(rows))
            h = self.rng.random(on.shape) < on
            drawn = here.visible_means(h) + spread * self.rng.standard_normal(rows.shape)
            if self.basis is None:
                rows = np.where(missing, drawn, columns)
            else:
                rows = draws_given_known(drawn @ root, columns, missing, precision) @ self.basis
            rows = rows.astype(np.float32)
        return rows

    def _ascend(self, rows):
        curvature = 16.0  # |u|² at which the steps of the weights and variances are halved
        if self.noise.any():
            rows = rows + self.noise * self.rng.standard_normal(rows.shape, dtype=np.float32)
        here = self.current
        rate = self.learning_rate * (1 - self.step_number / self.n_updates)
        n = len(rows)
        bias = here.intercept_hidden.astype(np.float32)
        away = np.empty((n + len(self.h), rows.shape[1]), np.float32)
        np.subtract(rows, here.intercept_visible, out=away[:n], casting="same_kind")
        self.weights.renew(here.variances)
        data = self.weights.hidden_fields(away[:n], bias)
        away[n:] = self._move(here, bias, data)
        fields = np.vstack([data, self.weights.hidden_fields(away[n:], bias)])
        on = expit(np.maximum(fields, _LEAST_FIELD))
        n_on = np.einsum("ij,ij->", on, on, dtype=np.float64) / len(on)
        self.h = (self.rng.random(self.h.shape, dtype=np.float32) < on[n:]).astype(np.float32)

        coefficients = np.repeat([1 / n, -1 / len(self.h)], [n, len(self.h)]).astype(np.float32)
        on *= coefficients[:, np.newaxis]
        square = coefficients[:n] @ away[:n] ** 2 @ (1 / here.variances)
        damping = 1 / (1 + square / curvature)
        by_units = min(1.0, 1 / (rate * n_on)) if rate > 0 else 1.0
        share = float(self.average.shares(np.array([n]))[0])
        averaged = self.averaged.components

        def ascend(units):
            weights = here.components[units]
            by_weights, *sums = gradient_sums(weights, on[:, units], away)
            by_weights *= np.float32(rate * damping * by_units)
            weights += by_weights
            if share > 0:
                np.subtract(weights, averaged[units], out=by_weights)
                by_weights *= np.float32(share)
                averaged[units] += by_weights
            return sums

        sums = np.array(run_tasks(ascend, self.weights.hidden), dtype=np.float64)
        along, pull = sums.sum(axis=0)
        by_log_variance = (0.5 * coefficients @ away**2 - along) / here.variances
        self.current = Parameters(
            here.components,
            here.intercept_visible + rate * (coefficients @ away - pull),
            here.intercept_hidden + rate * on.sum(axis=0),
            np.maximum(
                here.variances * np.exp(damping * rate * by_log_variance), self.variance_floor
            ),
        )
        self.step_number += 1
        if share > 0:
            ends = zip(self.averaged[1:], self.current[1:])
            self.averaged = Parameters(averaged, *(a + share * (b - a) for a, b in ends))

    def _move(self, here, bias, fields):
        """Move the chains; returns their visible units less the biases, (n_chains, M)."""
        patience = 50  # updates in a row without an accepted jump, after which ...
        seldom = 10  # ... one in so many tries it
        h = self.h
        pull = self.weights.pulls(h)
        if self.n_without_jump < patience or self.step_number % seldom == 0:
            h, pull, accepted = jump(self.weights, bias, here.variances, h, pull, fields, self.rng)
            self.n_without_jump = 0 if accepted.any() else self.n_without_jump + 1
        uniforms = self.rng.random(h.shape, dtype=np.float32)
        sweep(self.weights, bias, h, pull, uniforms)
        noise = self.rng.standard_normal(pull.shape, dtype=np.float32)
        noise *= np.sqrt(here.variances).astype(np.float32)
        return pull + noise

"""FactorialPosterior: the variational posterior of the factorial mixture, and its coordinate
updates, and better activations of single rows: where coordinate ascent has stopped, flips of two or
three components go on.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve
from scipy.special import entr, expit, logit
from sklearn.utils import gen_batches

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.parallel import parallel_map
from sklpf.models._missing import column_moments
from sklpf.variational import ConjugateModel

_VALUES_AT_ONCE = 1 << 19  # of the rows and activations of a block
_JITTER_COST = 1.0  # nats


class RowEnergy(NamedTuple):
    """The part of the bound that the activations v of a row decide: bias @ v - v @ coupling @ v / 2
    + entropy of v.

    `bias` has the shape (n, K), `coupling` (n, K, K), or (1, K, K) where rows share it, and a zero
    diagonal.
    """

    bias: Array
    coupling: Array

    @classmethod
    def of(cls, products, gram, log_odds, half_precision) -> RowEnergy:
        """Return the energy of rows with products (K, n) = means @ x.T and gram = E[means @
        means.T], (K, K), or (n, K, K) of each row.
        """
        own = np.diagonal(gram, axis1=-2, axis2=-1)
        bias = log_odds + 2 * half_precision * (products.T - 0.5 * own)
        coupling = 2 * half_precision * gram.reshape(-1, *gram.shape[-2:])
        diagonal = np.arange(len(log_odds))
        coupling[:, diagonal, diagonal] = 0.0
        return cls(np.ascontiguousarray(bias), coupling)

    def of_rows(self, rows) -> RowEnergy:
        """Return the energy of some rows."""
        shared = len(self.coupling) == 1
        return RowEnergy(self.bias[rows], self.coupling if shared else self.coupling[rows])

    def _coupled(self, active) -> Array:
        """Activations (n, K) times the coupling of each row."""
        if len(self.coupling) == 1:
            return active @ self.coupling[0]
        return np.einsum("nk,nkj->nj", active, self.coupling)

    def bounds(self, active) -> Array:
        """Return the value of every row of activations (n, K)."""
        linear = self.bias - 0.5 * self._coupled(active)
        return np.sum(active * linear + entr(active) + entr(1 - active), axis=1)

    def forced(self, z, k: int, value) -> tuple[NDArray[np.uint8], Array]:
        """Return z (n, K) with component k (none if it is -1) at `value` and the others where the
        energy then leads, and what it gains.
        """
        from sklpf.models.factorial.learning._activation_kernels import climb_rows

        z = z.copy()
        values = np.broadcast_to(np.asarray(value, dtype=np.uint8), len(z)).copy()
        gains = climb_rows(self.bias, self.coupling, z, k, values)
        return z, gains

    def searched(self, z, forced: Iterable[int]) -> NDArray[np.uint8]:
        """Return z (n, K) after flips that gain, of one or two components, or of two besides a
        forced one.

        Of many to be forced every row takes those whose own flips lose least.
        """
        z, _ = self.forced(z, -1, 0)
        for k, rows in self._to_be_forced(z, list(forced)):
            before = z[rows]
            other, gains = self.of_rows(rows).forced(before, k, 1 - before[:, k])
            z[rows] = np.where(gains[:, None] > 0, other, before)
        return z

    def _to_be_forced(self, z, forced: list[int]):
        """Pairs of a component and the rows in which it is forced."""
        most_forced = 16  # components in a row
        if len(forced) <= most_forced:
            return [(k, slice(None)) for k in forced]
        losses = ((2.0 * z - 1) * (self.bias - self._coupled(z)))[:, forced]
        most = np.partition(losses, most_forced - 1, axis=1)[:, [most_forced - 1]]
        return [(k, np.flatnonzero(rows)) for k, rows in zip(forced, (losses <= most).T)]


def search_activations(products, active, terms, forced: Iterable[int] = ()) -> None:
    """Replace activations (K, n), in place, of rows for which a search by flips finds some with a
    higher bound; terms as in `RowEnergy.of`.
    """
    max_settling = 30
    energy = RowEnergy.of(products, *terms)
    before = np.ascontiguousarray(active.T > 0.5).astype(np.uint8)
    found = energy.searched(before, forced)
    rows = np.flatnonzero(np.any(found != before, axis=1))
    if len(rows) == 0:
        return
    energy = energy.of_rows(rows)
    old = active[:, rows]
    new = np.ascontiguousarray(found[rows].T, dtype=np.float64)
    gram, *others = terms
    gram = gram if gram.ndim == 2 else gram[rows]
    chosen = np.ascontiguousarray(products[:, rows])
    settle_activations(chosen, new, (gram, *others), max_settling)
    better = energy.bounds(new.T) > energy.bounds(old.T)
    active[:, rows[better]] = new[:, better]


def settle_activations(products, active, terms, max_iter: int) -> None:
    """Update activations (K, n), in place, until those of a row no longer change, at T = 1."""
    settled = 1e-6
    _update(products, active, terms, np.ones(active.shape[1]), max_iter, settled)


def _update(products, active, terms, inverse, max_iter, tol) -> float:
    """Update activations (K, n), in place, and return their entropy; terms as in `RowEnergy.of`."""
    from sklpf.models.factorial.learning import _activation_kernels as kernels

    update = kernels.update_activations if terms[0].ndim == 2 else kernels.update_rows
    return update(products, active, *terms, inverse, max_iter, tol)


def known_grams(known: Array, means: Array) -> Array:
    """Return means @ means.T over the features that each row holds, (n, K, K), given 1 where a
    feature is known, (n, D), and 0 elsewhere.
    """
    n_components, n_features = means.shape
    pairs = (means[:, None] * means[None]).reshape(-1, n_features)
    return (known @ pairs.T).reshape(len(known), n_components, n_components)


class Statistics(NamedTuple):
    """Sufficient statistics of an update: means over n rows of E[z z'], E[z] x' and |x|²."""

    n: int
    second: Array
    products: Array
    square: float

    def blended(self, new: Statistics) -> Statistics:
        """Return the means over both, in which the new ones, of a share r of the rows, weigh r **
        0.7.
        """
        n = self.n + new.n
        share = (new.n / n) ** 0.7
        return Statistics(n, *((1 - share) * a + share * b for a, b in zip(self[1:], new[1:])))

    def implying(
        self,
        means,
        covariance,
        noise_variance,
        component_variance,
        activation_probability,
        *,
        former_probability,
    ) -> Statistics:
        """Return the statistics, of as many rows, from which these parameters follow."""
        n_components, n_features = means.shape
        scale = np.sqrt(activation_probability / former_probability)
        second = scale[:, np.newaxis] * self.second * scale
        ridge = noise_variance / (self.n * component_variance)
        products = (second + ridge * np.eye(n_components)) @ means
        gram = means @ means.T + n_features * covariance
        square = n_features * noise_variance + 2 * np.sum(means * products) - np.sum(gram * second)
        return Statistics(self.n, second, products, float(square))


class FactorialPosterior(ConjugateModel):
    """q(means) q(activations) of the factorial mixture on given rows, for
    `sklpf.variational.sweeps`.

    The columns of the means (K, D) are normal with a common covariance S (K, K); the activations
    are Bernoulli.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Rows.
    activations : ndarray of shape (n, K)
        Where q(activations) starts; q(means) is fitted to them.
    noise_variance, component_variance : float
        Variances of the noise and of the components' prior.
    activation_probability : ndarray of shape (K,)
        Prior probability that a component is on.
    diagonal : bool, default=False
        Whether S is diagonal, the plain mean field.
    learned : tuple of str, default=()
        Names of the hyperparameters that `update_hyperparameters` sets.
    jitter : numpy.random.Generator or None, default=None
        Where given, sweeps above T = 1 start from noisy means, so that heat can't make components
        equal, nor cooling keep the first split that it finds. The noise costs every row about one
        nat for each component that is on, at any temperature.
    n_jobs : int or None, default=None
        For blocks of rows.

    Attributes
    ----------
    means, covariance, activations : ndarray of shape (K, D), (K, K) and (n, K)
        The activations in Fortran order: components are far apart in memory.
    noise_variance, component_variance, activation_probability
        Current values of the hyperparameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.models import FactorialPosterior
    >>> from sklpf.variational import sweeps
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    >>> posterior = FactorialPosterior(
    ...     X, np.array([[0.1], [0.9], [0.9]]), 0.1, 1.0, np.array([0.5])
    ... )
    >>> *_, last = sweeps(posterior)
    >>> posterior.activations.round(1).ravel()
    array([0., 1., 1.])
    """

    def __init__(
        self,
        X,
        activations,
        noise_variance,
        component_variance,
        activation_probability,
        *,
        diagonal=False,
        learned=(),
        jitter=None,
        n_jobs=None,
    ):
        self.X = X
        self.activations = np.array(activations, dtype=np.float64, order="F")
        self.noise_variance = float(noise_variance)
        self.component_variance = float(component_variance)
        self.activation_probability = np.array(activation_probability, dtype=np.float64)
        self.diagonal = diagonal
        self.learned = learned
        self.jitter = jitter
        self.n_jobs = n_jobs
        self.forced: tuple[int, ...] | None = None
        self.n, n_features = X.shape
        n_values = self._n_values(n_features, self.activations.shape[1])
        self._blocks = list(gen_batches(self.n, max(256, _VALUES_AT_ONCE // n_values)))
        self._smallest_variance = 1e-9 * self.noise_variance
        self._squares = sum(float(np.vdot(x, x)) for x in map(self.rows, self._blocks))
        self._start()

    @staticmethod
    def _n_values(n_features: int, n_components: int) -> int:
        """Numbers that an update holds of a row."""
        return n_features + n_components

    def _start(self) -> None:
        """Fit the means to the activations."""
        parts = [_sums(self.rows(rows), self.activations[rows].T) for rows in self._blocks]
        self._second, self._products = (sum(part) for part in zip(*parts))
        self.means = np.zeros((self.activations.shape[1], self.X.shape[1]))
        self._update_means(1.0)

    def rows(self, rows) -> Array:
        """Return some rows of X, dense.

        Parameters
        ----------
        rows : slice or ndarray of int
            Indices of the rows.

        Returns
        -------
        ndarray of shape (n_rows, D)
        """
        return dense(self.X[rows])

    @property
    def _gram(self) -> Array:
        """E[means @ means.T], (K, K)."""
        return self.means @ self.means.T + self.means.shape[1] * self.covariance

    @property
    def log_odds(self) -> Array:
        """Log odds of the components to be on."""
        return logit(self.activation_probability)

    def terms(self):
        """Return what beside the products of means and rows decides activations.

        Returns
        -------
        gram : ndarray of shape (K, K)
            E[means @ means.T].
        log_odds : ndarray of shape (K,)
        half_precision : float
            1 / (2 noise variance).
        """
        return self._gram, self.log_odds, 0.5 / self.noise_variance

    @property
    def statistics(self) -> Statistics:
        """Sufficient statistics of the rows, after a sweep at one temperature for all."""
        return Statistics(
            self.n, self._second / self.n, self._products / self.n, self._squares / self.n
        )

    def update_from(self, statistics: Statistics) -> None:
        """Update the means, and what is learned, from statistics of other rows; activations stay as
        they are.

        Parameters
        ----------
        statistics : Statistics
            Sufficient statistics, as `statistics` returns them.
        """
        self.n, second, products, square = statistics
        self._second = self.n * second
        self._products = self.n * products
        self._squares = self.n * square
        self._update_means(1.0)
        self.update_hyperparameters()

    # -- other posteriors
    def with_activations(self, activations, activation_probability=None) -> FactorialPosterior:
        """Return another posterior on the same rows, fitted to other activations.

        Parameters
        ----------
        activations : ndarray of shape (n, K')
            Any number of components.
        activation_probability : ndarray of shape (K',) or None, default=None
            None keeps this one's.

        Returns
        -------
        FactorialPosterior
        """
        other = copy.copy(self)
        other.activations = np.array(activations, dtype=np.float64, order="F")
        if activation_probability is not None:
            other.activation_probability = np.array(activation_probability, dtype=np.float64)
        other._start()
        return other

    def with_newborn(self, mean) -> FactorialPosterior:
        """Return another posterior with one more component, last, of average odds and off in all
        rows.

        Parameters
        ----------
        mean : ndarray of shape (D,)
            Its mean.

        Returns
        -------
        FactorialPosterior
        """
        off = np.zeros((len(self.activations), 1))
        other = copy.copy(self)
        other.activations = np.asfortranarray(np.hstack([self.activations, off]))
        other.activation_probability = np.append(
            self.activation_probability, expit(np.mean(self.log_odds))
        )
        other.means = np.vstack([self.means, mean])
        other.covariance = block_diag(self.covariance, 0.0)
        return other

    # -- the protocol
    def update(self, inverse) -> None:
        if self.jitter is not None and np.ndim(inverse) == 0 and inverse < 1:
            variance = 2 * _JITTER_COST * self.noise_variance / (inverse * self.means.shape[1])
            self.means = self.means + np.sqrt(variance) * self.jitter.normal(size=self.means.shape)
        self._update_activations(inverse)
        self._update_means(1.0 if self._weighted else inverse)

    def expected_log_joint(self, per_datum=False):
        n = self.n
        n_features = self.X.shape[1]
        constant = -0.5 * n_features * np.log(2 * np.pi * self.noise_variance)
        log_odds = self.log_odds
        log_off = np.log1p(-self.activation_probability).sum()
        if per_datum or self._weighted:
            squares = np.concatenate([self._expected_squares(rows) for rows in self._blocks])
            values = (
                constant
                + log_off
                + self.activations @ log_odds
                - squares / (2 * self.noise_variance)
            )
            return values if per_datum else float(values.sum())
        value = n * (constant + log_off) + np.diag(self._second) @ log_odds
        return float(value - self._expected_square() / (2 * self.noise_variance))

    def regulariser(self):
        n_components, n_features = self.means.shape
        squares = np.sum(self.means**2) + n_features * np.trace(self.covariance)
        prior = -0.5 * n_features * n_components * np.log(2 * np.pi * self.component_variance)
        prior -= squares / (2 * self.component_variance)
        _, log_det = np.linalg.slogdet(self.covariance)
        entropy_of_means = 0.5 * n_features * (n_components * (1 + LOG_TAU) + log_det)
        return float(prior + entropy_of_means + self._entropy)

    def log_partition(self, temperatures):
        """log C(T) in nats; with the noise's own constant, which the paper's appendix C
        leaves out.
        """
        temperatures = np.asarray(temperatures, dtype=np.float64)
        n = self.n
        n_features = self.X.shape[1]
        power = 1 / temperatures[:, None]
        gaussian = np.log(temperatures) + (1 - 1 / temperatures) * np.log(
            2 * np.pi * self.noise_variance
        )
        on = np.log(self.activation_probability)
        off = np.log1p(-self.activation_probability)
        return n * (0.5 * n_features * gaussian + np.logaddexp(power * on, power * off).sum(axis=1))

    def elbo(self) -> float:
        """Return the bound at T = 1.

        Returns
        -------
        float
            In nats.
        """
        return self.regulariser() + float(self.expected_log_joint())

    def update_hyperparameters(self) -> None:
        n = self.n
        n_features = self.X.shape[1]
        if "activation_probability" in self.learned:
            smallest = 0.5 / (n + 1)
            self.activation_probability = np.clip(np.diag(self._second) / n, smallest, 1 - smallest)
        if "noise_variance" in self.learned:
            self.noise_variance = max(
                self._expected_square() / (n * n_features), self._smallest_variance
            )
        if "component_variance" in self.learned:
            squares = np.sum(self.means**2) / n_features + np.trace(self.covariance)
            self.component_variance = max(squares / len(self.means), self._smallest_variance)

    # -- coordinate updates
    def _update_activations(self, inverse) -> None:
        """Pass over the rows: activations, their entropy, and the sums that the means need."""
        self._weighted = np.ndim(inverse) > 0
        inverses = np.broadcast_to(np.asarray(inverse, dtype=np.float64), self.n)
        untempered = not self._weighted and inverse == 1
        sweep = functools.partial(
            _sweep_rows,
            means=self.means,
            terms=self.terms(),
            weighted=self._weighted,
            forced=self.forced if untempered else None,
        )
        parts = [(self.X[rows], self.activations[rows], inverses[rows]) for rows in self._blocks]
        done = parallel_map(sweep, parts, n_jobs=self.n_jobs)
        for rows, result in zip(self._blocks, done):
            self.activations[rows] = result[0]
        self._second, self._products, self._entropy = (
            sum(part) for part in zip(*(result[1:] for result in done))
        )

    def _update_means(self, inverse) -> None:
        """Normal posterior of the means given the sums of the last pass."""
        weight = inverse / self.noise_variance
        if self.diagonal:
            self._update_means_one_by_one(weight)
            return
        identity = np.eye(len(self.means))
        precision = weight * self._second + identity / self.component_variance
        try:
            factor = cho_factor(precision)
        except LinAlgError:
            raise ValueError(
                "some values of X are so large that the rest is lost in rounding; rescale X, clip"
                " its outliers, or set noise_variance and component_variance to its scale"
            ) from None
        covariance = cho_solve(factor, identity)
        self.covariance = 0.5 * (covariance + covariance.T)
        self.means = cho_solve(factor, weight * self._products)

    def _update_means_one_by_one(self, weight: float) -> None:
        """Update the mean field of the components, each given the others."""
        second = np.diag(self._second)
        variance = 1 / (1 / self.component_variance + weight * second)
        self.covariance = np.diag(variance)
        off_diagonal = self._second - np.diag(second)
        self.means = self.means.copy()
        for k in range(len(self.means)):
            unexplained = self._products[k] - off_diagonal[k] @ self.means
            self.means[k] = variance[k] * weight * unexplained

    # -- expectations
    def _expected_square(self) -> float:
        """Sum over the rows of E|x - sum_k z_k mu_k|^2, from the unweighted sums of the
        last pass.
        """
        cross = np.sum(self.means * self._products)
        quadratic = np.sum(self._gram * self._second)
        return float(self._squares - 2 * cross + quadratic)

    def _expected_squares(self, rows) -> Array:
        """E|x - sum_k z_k mu_k|^2 of some rows, (n,)."""
        x = self.rows(rows)
        active = self.activations[rows].T
        gram = self._gram
        own = (1 - active) * np.diag(gram)[:, None]
        return np.einsum("nd,nd->n", x, x) + np.sum(
            active * (gram @ active + own - 2 * self.means @ x.T), axis=0
        )


class IncompletePosterior(FactorialPosterior):
    """`FactorialPosterior` of rows with missing values, which are latent variables as well.

    q(activations) q(missing values | activations): given activations z, the missing values are
    normal around means.T @ z, so that activations depend on the known values alone. At T = 1 only.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Rows, with NaN for what is missing; held with expectations in these places.
    activations, noise_variance, component_variance, activation_probability, **options
        As of `FactorialPosterior`.
    """

    def __init__(self, X, activations, *variances, **options):
        self.missing = np.isnan(X)
        self.n_missing = int(self.missing.sum())
        _, mean, _ = column_moments(dense(X))
        super().__init__(np.where(self.missing, mean, X), activations, *variances, **options)

    @staticmethod
    def _n_values(n_features: int, n_components: int) -> int:
        return n_features + n_components + n_components**2

    def expect(self, means, covariance, activations) -> None:
        """Set the posterior of the means, and the sums over rows that follow from these activations
        for an update.

        Parameters
        ----------
        means : ndarray of shape (K, D)
        covariance : ndarray of shape (K, K)
        activations : ndarray of shape (n, K)
        """
        self.means = means
        self.covariance = covariance
        self.activations = activations
        self._update_activations(1.0)

    def _update_activations(self, inverse) -> None:
        self._weighted = False
        sweep = functools.partial(
            _sweep_incomplete_rows, means=self.means, terms=self.terms(), forced=self.forced
        )
        parts = [
            (self.X[rows], self.missing[rows], self.activations[rows]) for rows in self._blocks
        ]
        done = parallel_map(sweep, parts, n_jobs=self.n_jobs)
        filled, activations = zip(*(result[:2] for result in done))
        self.X = np.concatenate(filled)
        self.activations = np.asfortranarray(np.concatenate(activations))
        self._second, self._products, squares, entropy = (
            sum(part) for part in zip(*(result[2:] for result in done))
        )
        self._squares = float(squares) + self.n_missing * self.noise_variance
        normal_entropy = 0.5 * (1 + LOG_TAU + np.log(self.noise_variance))
        self._entropy = entropy + self.n_missing * normal_entropy


def _sweep_incomplete_rows(part, *, means, terms, forced):
    """Update some rows: (rows with expected values, activations, sum E[z z'], sum E[z x'], sum of
    E[x²] without noise, entropy of the activations).
    """
    X, missing, activations = part
    known = np.where(missing, 0.0, 1.0)
    active = np.array(activations.T, order="C")
    gram, *others = terms
    shared = gram - means @ means.T  # from the components' covariance
    terms = known_grams(known, means) + shared, *others
    products = means @ (known * X).T
    if forced is not None:
        search_activations(products, active, terms, forced)
    entropy = _update(products, active, terms, np.ones(len(X)), 1, 0.0)
    filled = np.where(missing, active.T @ means, X)
    variance = (active * (1 - active)) @ missing  # of activations, by the features that they fill
    second, cross = _sums(filled, active)
    squares = np.vdot(filled, filled) + np.sum(variance * means**2)
    return filled, active.T, second, cross + variance * means, squares, np.array(entropy)


def _sweep_rows(part, *, means, terms, weighted, forced):
    """Update some rows: (activations, sum b E[z z'], sum b E[z] x', entropy), where b is 1 unless
    weighted.
    """
    X, activations, inverse = part
    x = dense(X)
    active = np.array(activations.T, order="C")
    products = means @ x.T
    if forced is not None:
        search_activations(products, active, terms, forced)
    entropy = _update(products, active, terms, np.array(inverse), 1, 0.0)
    return active.T, *_sums(x, active, inverse if weighted else None), np.array(entropy)


def dense(X) -> Array:
    """Return rows, dense or sparse, as a dense array of float64."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _sums(x, active, inverse=None):
    """sum_n b_n E[z z'] (K, K) and sum_n b_n E[z] x' (K, D) of activations (K, n), b = 1 where it
    is not given.
    """
    weights = active if inverse is None else active * inverse
    second = weights @ active.T
    np.fill_diagonal(second, weights.sum(axis=1))
    return second, weights @ x

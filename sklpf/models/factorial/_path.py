"""The tempered path of the factorial mixture model: one target, log p(x), for each row of data."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array, Booleans, Integers
from sklpf._utils.random import Stream
from sklpf._utils.validation import (
    as_float64,
    check_components,
    check_finite,
    check_scale,
    rows_by_pattern,
)
from sklpf.models._enumerable_path import (
    EnumerablePath,
    missing_values,
    quadratic_sums,
    subset_sums,
)
from sklpf.partition import AIS
from sklpf.paths import check_ladder, read_only


class FactorialState(NamedTuple):
    """Chains of one row: active components, and the two ends of their log densities in nats."""

    z: NDArray[np.uint8]
    log_base: Array
    gain: Array


class FactorialPath(EnumerablePath):
    """Path from the prior of the active components to their posterior given a row (Mandt et al.
    2016, appendix C).

    With component means M, their posterior covariance S (the same for every feature) and activation
    probabilities pi,

        log f_beta(z) = sum_k z_k log pi_k + (1 - z_k) log(1 - pi_k)
                        + beta log N(x; Mᵀ z, (noise_variance + z @ S @ z) I),    z in {0, 1}^K,

    so that f_0 is normalised and log Z of the target is log p(x). There is a log Z for each row of
    X: estimators run on ``path.row(t)`` and give arrays of shape (n_rows,). Only M x and ``|x|²``
    are kept of a row, and no step of a chain depends on the number of features.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Rows whose likelihood is wanted: of what is known of each, where dense X holds NaN.
    components : array-like of shape (n_components, n_features)
        Means M.
    component_covariance : array-like of shape (n_components, n_components)
        S, symmetric and positive semidefinite.
    noise_variance : float
        Positive.
    activation_probability : float or array-like of shape (n_components,)
        pi, strictly between 0 and 1.
    ladder : array-like of shape (n_levels,)
        Inverse temperatures, increasing in [0, 1].

    Raises
    ------
    ValueError
        If shapes don't match, or a number isn't finite or in its range.

    Notes
    -----
    ``|x - Mᵀ z|²`` is computed from ``|x|²``, M x and M Mᵀ, with an absolute rounding error near
    ``1e-16 (|x|² + |Mᵀ z|²)``: log p(x) loses accuracy where the noise variance is 1e-10 times that
    or less.

    Examples
    --------
    >>> from sklpf import Exact
    >>> from sklpf.models import FactorialPath
    >>> path = FactorialPath(
    ...     [[1.0], [0.0]],
    ...     [[1.0]],
    ...     [[0.0]],
    ...     noise_variance=1.0,
    ...     activation_probability=[0.5],
    ... )
    >>> Exact().fit(path).log_partition_.round(4)
    array([-1.138, -1.138])
    """

    base_log_partition: float | None = 0.0
    _kernels = "sklpf.models.factorial._path_kernels"
    gibbs_is_reversible = False
    n_moves_per_segment = 10_000

    def __init__(
        self,
        X: ArrayLike,
        components: ArrayLike,
        component_covariance: ArrayLike,
        noise_variance: float,
        activation_probability: float | ArrayLike,
        ladder: ArrayLike = (0.0, 1.0),
    ):
        components = check_components(components)
        n_components, self.n_features = components.shape
        self.component_covariance = _check_covariance(component_covariance, n_components)
        self.noise_variance = check_scale(noise_variance, "noise_variance")
        probability = check_probability(activation_probability, n_components)
        self.activation_probability = np.broadcast_to(probability, n_components)
        self.products = components @ components.T
        self.statistics, self.missing = _project(X, components)
        self.components = components
        self.n_rows: int | None = len(self.statistics)
        self.ladder = check_ladder(ladder)

    # -- rows
    def row(self, t: int) -> FactorialPath:
        """Return the path of row t alone."""
        other = self if self.missing is None else self._of_features(~self.missing[t])
        other = copy.copy(other)
        other.statistics = self.statistics[t]
        other.n_rows = None
        return other

    def _of_features(self, known: Booleans) -> FactorialPath:
        """Return the path of rows of which these features (D,) are known."""
        other = copy.copy(self)
        if not known.all():
            components = self.components[:, known]
            other.products = components @ components.T
            other.n_features = int(known.sum())
        other.missing = None
        return other

    def row_content(self, t: int) -> bytes:
        """Return M x and ``|x|²`` of row t, and which of its values are missing: its likelihood
        depends on nothing else of it.
        """
        content = self.statistics[t].tobytes()
        if self.missing is not None and self.missing[t].any():
            content += np.packbits(self.missing[t]).tobytes()
        return content

    # -- what the kernels work on
    def _pack(self):
        from sklpf.models.factorial._path_kernels import Row

        return Row(self._gram(), read_only(self.statistics[:-1]), float(self.statistics[-1]))

    def _gram(self):
        """The arrays that all rows share, as kernels take them."""
        from sklpf.models.factorial._path_kernels import Gram

        probability = self.activation_probability
        return Gram(
            products=read_only(self.products),
            covariance=read_only(self.component_covariance),
            logit=read_only(np.log(probability) - np.log1p(-probability)),
            log_off=float(np.log1p(-probability).sum()),
            noise_variance=self.noise_variance,
            n_features=float(self.n_features),
        )

    @property
    def ladder_cost(self) -> float:  # type: ignore[override]  # derived from the model's size here
        """Work of a redraw among all levels in sweeps: measured, 3 ns a level and 22 ns a
        component.
        """
        return 3.0 * len(self.ladder) / (22.0 * len(self.products))

    # -- states
    def default_estimator(self) -> AIS:
        """Return `AIS`, for more components than can be enumerated."""
        return AIS()

    def sample_base(self, n: int, stream: Stream) -> FactorialState:
        """Return n exact draws from the prior: one sweep at beta = 0, where components are
        independent.
        """
        off = np.zeros((n, len(self.products)), dtype=np.uint8)
        return self._sweep(FactorialState(off, np.zeros(n), np.zeros(n)), np.zeros(n), stream)

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary: the components that are on."""
        return len(self.products)

    # -- exact enumeration
    @property
    def log2_states(self) -> int:  # type: ignore[override]
        """Number of components: 2 to this power states are enumerated for every row."""
        return len(self.products)

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return log f at `level` of one block of states; bit k of a state's number says whether
        z_k = 1.
        """
        row = self.packed
        log_prior, variance, quadratic, high = self._block(block)
        low = self.log2_states - len(high)
        linear = subset_sums(row.projection[:low]) + row.projection[low:] @ high
        distance = np.maximum(row.squared_norm - 2 * linear + quadratic, 0)
        exponent = self.n_features * np.log(2 * np.pi * variance) + distance / variance
        return log_prior - 0.5 * self.ladder[level] * exponent

    def enumerate_rows(self, rows: ArrayLike) -> Array:
        """Return log Z of rows: about a nanosecond a state.

        Parameters
        ----------
        rows : array-like of int
            Numbers of rows.

        Returns
        -------
        ndarray of shape (n,)
            In nats.
        """
        rows = np.array(rows, dtype=np.int64)
        if self.missing is None:
            return self._enumerate_complete(rows)
        log_z = np.empty(len(rows))
        for places, pattern in rows_by_pattern(self.missing[rows]):
            log_z[places] = self._of_features(~pattern)._enumerate_complete(rows[places])
        return log_z

    def _enumerate_complete(self, rows: Integers) -> Array:
        """Return log Z of rows without missing values."""
        from sklpf.models.factorial._path_kernels import add_states

        maxima = np.full(len(rows), -np.inf)
        sums = np.zeros(len(rows))
        for block in range(self.n_enumeration_blocks):
            log_prior, variance, quadratic, high = self._block(block)
            log_weight = log_prior - 0.5 * self.n_features * np.log(2 * np.pi * variance)
            add_states(
                log_weight,
                0.5 / variance,
                quadratic,
                high,
                read_only(self.statistics),
                rows,
                maxima,
                sums,
            )
        with np.errstate(divide="ignore"):
            return maxima + np.log(sums)

    def _block(self, block):
        """Terms of the states of a block for every row: log prior, variance, z @ G @ z; and their
        upper bits.
        """
        gram = self._gram()
        low = self._units_of_a_block
        high = (block >> np.arange(self.log2_states - low)) & 1
        log_prior = gram.log_off + gram.logit[low:] @ high + subset_sums(gram.logit[:low])
        variance = self.noise_variance + quadratic_sums(gram.covariance, low, high)
        return (
            log_prior,
            np.maximum(variance, self.noise_variance),
            quadratic_sums(gram.products, low, high),
            high,
        )


# -- parameters
def _check_covariance(covariance, n_components):
    """Return a copy that is symmetric to the bit, or raise ValueError."""
    covariance = as_float64(covariance, "component_covariance", copy=True)
    if covariance.shape != (n_components, n_components):
        raise ValueError(
            f"component_covariance must have the shape {(n_components, n_components)}, got"
            f" {covariance.shape}"
        )
    check_finite(covariance, "component_covariance")
    size = np.abs(covariance).max()
    if np.abs(covariance - covariance.T).max() > 1e-8 * size:
        raise ValueError("component_covariance must be symmetric; pass (S + S.T) / 2")
    covariance = (covariance + covariance.T) / 2
    if np.linalg.eigvalsh(covariance)[0] < -1e-8 * size:
        raise ValueError(
            "component_covariance must be positive semidefinite; one of its eigenvalues is negative"
        )
    return covariance


def check_probability(probability: ArrayLike, n_components: int) -> Array:
    """Return a copy, of shape () or (n_components,), or raise ValueError."""
    probability = as_float64(probability, "activation_probability", copy=True)
    if probability.shape not in ((), (n_components,)):
        raise ValueError(
            f"activation_probability must be a number or have shape ({n_components},) to fit"
            f" n_components, got {probability.shape}"
        )
    if not np.all((probability > 0) & (probability < 1)):
        raise ValueError(
            "activation_probability must lie strictly between 0 and 1; clip it or drop components"
            " at 0"
        )
    return probability


def _project(X, components):
    """M x and |x|² of every row, (n, K + 1), some rows at a time; a row's bits don't depend on the
    others. And which values are missing, (n, D), None where all are known.
    """
    from sklpf.models.factorial._path_kernels import project

    rows_at_once = 4096  # that are converted to float64 together

    X = sp.csr_array(X) if sp.issparse(X) else np.asanyarray(X)
    if X.ndim != 2 or X.shape[1] != components.shape[1]:
        raise ValueError(
            f"X must have the shape (n_rows, {components.shape[1]}) to match components, got"
            f" {X.shape}"
        )
    if X.shape[0] == 0:
        raise ValueError("X must hold at least one row")
    statistics = np.empty((X.shape[0], len(components) + 1))
    missing = missing_values(X)
    by_feature = read_only(components.T)
    for start in range(0, X.shape[0], rows_at_once):
        rows = X[start : start + rows_at_once]
        if missing is not None:
            rows = np.where(missing[start : start + rows_at_once], 0.0, rows)
        rows = read_only(rows.toarray() if sp.issparse(rows) else rows)
        if not np.all(np.isfinite(rows)):
            raise ValueError(
                "X must be finite; it holds infinity, or NaN in a sparse matrix: drop those rows"
            )
        project(rows, by_feature, statistics[start : start + rows_at_once])
    if not np.all(np.isfinite(statistics)):
        raise ValueError(
            "X must be small enough for the sum of squares of a row to be finite: rescale it"
        )
    return statistics, missing

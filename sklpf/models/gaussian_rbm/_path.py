"""The tempered path of a Gaussian RBM."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from sklpf._utils.limits import LOG_2
from sklpf._utils.numbers import LOG_TAU, Array, Booleans
from sklpf._utils.random import Stream
from sklpf._utils.validation import as_float64, check_positive
from sklpf.models._enumerable_path import N_CENTRES, UnitsPath, check_layers
from sklpf.models.boltzmann import BoltzmannPath
from sklpf.paths import CompiledDensityPath, Gaussian, Points, check_ladder, read_only
from sklpf.uncertainty import log_mean_exp

_FAR = 7.0  # standard deviations that no normal number of the kernels exceeds


class GaussianRBMState(NamedTuple):
    """Chains of a Gaussian RBM: u = (v - b) / s, the inputs of the hidden units, and the two parts
    of the log densities that are linear in beta.
    """

    u: Array  # (n, M)
    field: Array  # (n, J)
    start: Array  # (n,)
    slope: Array  # (n,)


class GaussianRBMPath(UnitsPath):
    """Path from independent normal columns to a Gaussian RBM, geometric in the joint density of v
    and h.

    With base means m and variances t², biases b and c, variances s² and weights W (hidden by
    visible)

        log f_beta(v, h) = -(1 - beta) (sum (v - m)² / 2 t² + C) + beta log f(v, h),
        log f(v, h) = c @ h - sum (v - b)² / 2 s² + h @ W @ ((v - b) / s²),
        C = sum log(2 pi t²) / 2 + J log 2,

    so that f_0 is normalised (h uniform). h is summed out of every f_beta. Moves are block Gibbs
    sweeps: h given v, then v given h. With a `basis` B, v, m, b and the rows of W stand for v B, m
    B, b B and W B.

    Parameters
    ----------
    components : array-like of shape (n_hidden, n_visible)
        Weights.
    intercept_visible, intercept_hidden : array-like of shape (n_visible,) and (n_hidden,)
        Biases.
    variances : array-like of shape (n_visible,)
        Variances of the visible units given the hidden ones.
    base_mean, base_variance : array-like of shape (n_visible,)
        Means and variances of the base's columns.
    ladder : array-like of shape (K,)
        Inverse temperatures, increasing in [0, 1].
    basis : array-like of shape (n_visible, n_visible) or None, default=None
        Coordinates v B in which the visible units are independent given the hidden ones, with
        determinant 1 or -1, so that log f is a density of v too. `variances` and `base_variance`
        are those of the coordinates. None: of the columns themselves.

    Raises
    ------
    ValueError
        If shapes don't match, a parameter isn't finite, a variance isn't positive, or parameters
        are so large that log f overflows.

    Examples
    --------
    >>> from sklpf import Exact
    >>> from sklpf.models import GaussianRBMPath
    >>> path = GaussianRBMPath(
    ...     [[2.0]], [0.0], [-2.0], [1.0], base_mean=[1.0], base_variance=[2.0]
    ... )
    >>> round(Exact().fit(path).log_partition_, 4)  # log 2 + log(2 pi) / 2
    1.6121
    """

    _work_per_segment = 1e9  # multiplications by a weight
    _kernels = "sklpf.models.gaussian_rbm._path_kernels"

    def __init__(
        self,
        components: ArrayLike,
        intercept_visible: ArrayLike,
        intercept_hidden: ArrayLike,
        variances: ArrayLike,
        base_mean: ArrayLike,
        base_variance: ArrayLike,
        ladder: ArrayLike = (0.0, 1.0),
        basis: ArrayLike | None = None,
    ):
        self.components = as_float64(components, "components", copy=True)
        self.intercept_visible = as_float64(intercept_visible, "intercept_visible", copy=True)
        self.intercept_hidden = as_float64(intercept_hidden, "intercept_hidden", copy=True)
        self.variances = as_float64(variances, "variances", copy=True)
        self.base_mean = as_float64(base_mean, "base_mean", copy=True)
        self.base_variance = as_float64(base_variance, "base_variance", copy=True)
        self.n_visible = check_layers(
            self.components,
            self.intercept_hidden,
            intercept_visible=self.intercept_visible,
            variances=self.variances,
            base_mean=self.base_mean,
            base_variance=self.base_variance,
        )
        check_positive(self.variances, "variances")
        check_positive(self.base_variance, "base_variance")
        self.basis = None if basis is None else check_basis(basis, self.n_visible, "basis")
        if not np.isfinite(self._sum_of_terms):
            raise ValueError(
                "log f overflows: components, or differences of the means, are too large beside"
                " variances or base_variance"
            )
        self.ladder = check_ladder(ladder)

    # -- in units of u = (v - b) / s
    @property
    def _scale(self):
        return np.sqrt(self.variances)

    @property
    def _filters(self):
        return self._standardised(self.components)

    @property
    def _standard_base(self):
        """Means and precisions of the base."""
        away = self._standardised(self.base_mean - self.intercept_visible)
        return away, self.variances / self.base_variance

    def _standardised(self, away):
        """Rows less the biases in units of the standard deviations, (n, n_visible)."""
        return (away if self.basis is None else away @ self.basis) / self._scale

    def _rows_of(self, u) -> Array:
        """Return visible rows (n, n_visible) of units u of the same shape."""
        return self.intercept_visible + columns_of(self._scale * u, self.basis)

    @property
    def _base_constant(self) -> float:
        n_hidden, n_visible = self.components.shape
        log_norm = 0.5 * (n_visible * LOG_TAU + np.log(self.base_variance).sum())
        return float(log_norm + n_hidden * LOG_2)

    @property
    def _sum_of_terms(self) -> float:  # type: ignore[override]
        """A bound of every sum in log f, of chains at any level, in nats."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            mean, precision = self._standard_base
            pull = np.abs(self._filters).sum(axis=0)
            widest = _FAR * np.maximum(1, 1 / np.sqrt(precision))
            u = np.abs(mean) + pull + widest
            terms = np.sum(u**2 + precision * (u + np.abs(mean)) ** 2 + pull * u)
            terms += np.abs(self.intercept_hidden).sum() + abs(self._base_constant)
        return float(terms)

    n_chains_per_block = 50  # products by BLAS take twice as long a row with a dozen rows

    # -- the kernels' arguments
    def _pack(self):
        from sklpf.models.gaussian_rbm._path_kernels import Packed

        mean, precision = self._standard_base
        return Packed(
            by_hidden=read_only(self._filters),
            by_visible=read_only(self._filters.T),
            intercept_hidden=read_only(self.intercept_hidden),
            base_mean=read_only(mean),
            base_precision=read_only(precision),
            base_constant=self._base_constant,
        )

    @property
    def _work(self) -> tuple[float, float]:  # type: ignore[override]
        return self.components.size + 50 * sum(self.components.shape), 10 * len(self.components)

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary: the probabilities of the hidden units."""
        return len(self.components)

    # -- states
    def state_from_rows(self, v: ArrayLike) -> GaussianRBMState:
        """Return chains that start at the rows v (n, n_visible)."""
        v = as_float64(v, "visible rows")
        if v.ndim != 2 or v.shape[1] != self.n_visible:
            raise ValueError(
                f"visible rows must have the shape (n, {self.n_visible}), got {v.shape}"
            )
        return self._state(self._standardised(v - self.intercept_visible))

    def _state(self, u) -> GaussianRBMState:
        from sklpf.models.gaussian_rbm._path_kernels import write_fields

        n = len(u)
        state = GaussianRBMState(
            np.ascontiguousarray(u), np.empty((n, len(self.components))), np.empty(n), np.empty(n)
        )
        write_fields(self.packed, *state)
        return state

    def rows(self, state: GaussianRBMState) -> Array:
        """Return the visible rows of all chains.

        Parameters
        ----------
        state : GaussianRBMState
            The chains.

        Returns
        -------
        ndarray of shape (n, n_visible)
        """
        return self._rows_of(state.u)

    def _random_chains(self, rng) -> GaussianRBMState:
        return self._draw_visible(rng.random((N_CENTRES, len(self.components))) < 0.5, rng)

    def _centres(self, state, rng) -> Booleans:
        """Hidden units (n, J) drawn given the visible ones of every chain."""
        return rng.random(state.field.shape) < expit(state.field)

    def _draw_visible(self, hidden, rng) -> GaussianRBMState:
        """Chains whose visible units are drawn given hidden ones (n, J)."""
        means = hidden @ self._filters
        return self._state(means + rng.standard_normal(means.shape))

    def _mixture_log_weights(self, centres, rng) -> Array:
        state = self._draw_visible(centres, rng)
        means = centres @ self._filters
        # |u - mean|² without what all parts have in common, which cancels against log f.
        log_parts = state.u @ means.T - 0.5 * np.einsum("ij,ij->i", means, means)
        log_norm = 0.5 * np.sum(LOG_TAU + np.log(self.variances))
        softplus = np.logaddexp(0, state.field).sum(axis=1)
        return softplus + log_norm - log_mean_exp(log_parts, axis=1)

    def as_density(self) -> GaussianRBMDensityPath:
        """Return the path of the visible units alone, the hidden ones summed out of the target.

        Returns
        -------
        GaussianRBMDensityPath
            For moves that need points of R^d, such as those of `HAIS`.
        """
        return GaussianRBMDensityPath(self)

    # -- exact enumeration
    @property
    def log2_states(self) -> int:  # type: ignore[override]
        """Number of hidden units: 2 to this power states are enumerated."""
        return len(self.components)

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return the log weights at `level` of one block of states of the hidden units, the visible
        ones integrated out.
        """
        return self._hidden_path(level).enumerate_block(block, 1)

    def _hidden_path(self, level: int) -> BoltzmannPath:
        """The hidden units at a level, a Boltzmann machine once the visible ones are integrated
        out.

        Given h these are normal, with the precision P and the mean q / P, and leave q² / 2 P, where
        q is linear in h.
        """
        beta = self.ladder[level]
        mean, base_precision = self._standard_base
        base = (1 - beta) * base_precision
        precision = base + beta
        linear = base * mean
        filters = beta * self._filters

        products = (filters / precision) @ filters.T
        couplings = np.triu(products, 1)
        intercept = beta * self.intercept_hidden + filters @ (linear / precision)
        intercept += 0.5 * np.diag(products)
        log_norm = LOG_TAU + np.log(self.variances) - np.log(precision)
        log_norm += linear**2 / precision - base * mean**2
        offset = 0.5 * log_norm.sum() - (1 - beta) * self._base_constant
        halves = np.full(len(intercept), 0.5)
        try:
            return BoltzmannPath(couplings + couplings.T, intercept, halves, offset)
        except ValueError as error:
            raise ValueError(
                "log f of the hidden units overflows: components or intercept_hidden are too large,"
                " or variances too small beside them; rescale X or the parameters"
            ) from error

    def _state_of_units(self, units, rng) -> GaussianRBMState:
        return self._draw_visible(units.astype(np.float64), rng)


class GaussianRBMDensityPath(CompiledDensityPath):
    """Path from independent normal columns to log f(v) of a Gaussian RBM, a density on R^d with a
    gradient.

    log f(v) = -sum (v - b)² / 2 s² + sum log(1 + exp(c + W (v - b) / s²)). Chains move in u, v = b
    + s u.

    Parameters
    ----------
    joint : GaussianRBMPath
        The path of the visible and hidden units, whose `as_density` makes this one.

    Examples
    --------
    >>> from sklpf import HAIS, GaussianRBM
    >>> model = GaussianRBM.from_parameters([[2.0]], [0.0], [-2.0], [1.0])
    >>> hais = HAIS(random_state=0).fit(model.path())
    >>> bool(abs(hais.log_partition_ - 1.6121) < 0.02)  # log 2 + log(2 pi) / 2
    True
    """

    _kernels = "sklpf.models.gaussian_rbm._path_kernels"
    tail_alarms = ()  # a mixture of Gaussians with the variances of the visible units

    def __init__(self, joint: GaussianRBMPath):
        self.joint = joint
        self.bound_cost = joint.bound_cost
        units = joint.packed
        super().__init__(Gaussian(units.base_mean, 1 / units.base_precision))

    def _packed_target(self):
        from sklpf.models.gaussian_rbm._path_kernels import PackedDensity

        constant = float(0.5 * np.log(self.joint.variances).sum())
        return PackedDensity(self.joint.packed, constant)

    def bound_draws(self, stream: Stream) -> Array:
        """Return log weights (10, 100), as `GaussianRBMPath.bound_draws`."""
        return self.joint.bound_draws(stream)

    def rows(self, state: Points) -> Array:
        """Return the visible rows of the chains.

        Parameters
        ----------
        state : Points
            The chains.

        Returns
        -------
        ndarray of shape (n, n_visible)
        """
        return self.joint._rows_of(state.position)


def columns_of(coordinates: Array, basis: Array | None) -> Array:
    """Return the rows v of coordinates v B, of the same shape; None is the identity."""
    if basis is None:
        return coordinates
    return np.asarray(np.linalg.solve(basis.T, coordinates.T).T, dtype=np.float64)


def check_basis(basis: ArrayLike, n: int, name: str) -> Array:
    """Return a matrix (n, n) of determinant 1 or -1, or raise ValueError."""
    basis = as_float64(basis, name, copy=True)
    if basis.shape != (n, n) or not np.isfinite(basis).all():
        raise ValueError(f"{name} must be a finite matrix of shape ({n}, {n}), got {basis.shape}")
    log_volume = np.linalg.slogdet(basis)[1]
    if not abs(log_volume) < 1e-6:
        raise ValueError(
            f"{name} must have the determinant 1 or -1, got exp({log_volume:.3g}): divide it by"
            " abs(det) ** (1 / n)"
        )
    return basis

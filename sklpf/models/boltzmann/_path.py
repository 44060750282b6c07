"""The tempered path of a Boltzmann machine without hidden units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from sklpf._utils.numbers import Array, Bits
from sklpf._utils.validation import as_float64, check_finite, check_number
from sklpf.models._enumerable_path import (
    N_CENTRES,
    PathWithRegions,
    binary_units,
    bits,
    check_vectors,
)
from sklpf.paths import Regions, check_ladder, read_only


class BoltzmannState(NamedTuple):
    """Chains of a Boltzmann machine: units, and the two ends of their log densities in nats."""

    x: Bits
    log_base: Array
    gain: Array


class BoltzmannPath(PathWithRegions):
    """Path from independent units to a Boltzmann machine, geometric in their densities.

    With base logits a, intercepts b and symmetric couplings J whose diagonal is 0

        log f_beta(x) = (1 - beta) (a @ x - C) + beta (b @ x + x @ J @ x / 2 + offset),
        C = sum_i log(1 + e^a_i),

    so that f_0 is normalised. Moves are Gibbs sweeps over the units, one after another, which
    leave the density invariant whatever the graph of the couplings is; the time reversal takes the
    units in the opposite order.

    Parameters
    ----------
    couplings : array-like or sparse matrix of shape (n_units, n_units)
        Symmetric, with zeros on the diagonal.
    intercept : array-like of shape (n_units,)
        Biases.
    base_mean : array-like of shape (n_units,)
        Means of the base's units, inside (0, 1).
    offset : float, default=0.0
        Constant of log f in nats.
    ladder : array-like of shape (K,)
        Inverse temperatures, increasing in [0, 1].

    Raises
    ------
    ValueError
        If shapes don't match, a parameter isn't finite, the couplings are not symmetric or have a
        diagonal, or a base mean is not strictly between 0 and 1.

    Examples
    --------
    >>> from sklpf import Exact
    >>> from sklpf.models import BoltzmannPath
    >>> path = BoltzmannPath([[0.0, 1.0], [1.0, 0.0]], [0.0, 0.0], base_mean=[0.5, 0.5])
    >>> round(Exact().fit(path).log_partition_, 4)  # log(3 + e)
    1.7437
    """

    gibbs_is_reversible = False
    base_is_ours = False  # models set True where they have chosen it
    _work_per_segment = 2e9  # couplings
    _kernels = "sklpf.models.boltzmann._path_kernels"

    def __init__(
        self,
        couplings: ArrayLike | sp.spmatrix,
        intercept: ArrayLike,
        base_mean: ArrayLike,
        offset: float = 0.0,
        ladder: ArrayLike = (0.0, 1.0),
    ):
        self.couplings = as_couplings(couplings)
        self.intercept = as_float64(intercept, "intercept", copy=True)
        self.offset = check_number(offset, "offset")
        mean = as_float64(base_mean, "base_mean")
        self.n_visible = self.couplings.shape[0]
        check_vectors(self.n_visible, "couplings", intercept=self.intercept, base_mean=mean)
        self.base_logit = self.visible_units.logits_of(mean)
        if not self._sum_of_terms <= np.finfo(np.float32).max:
            raise ValueError(
                "couplings and intercept are so large that log f overflows: their absolute values"
                " must sum to less than 3e38"
            )
        self.ladder = check_ladder(ladder)

    def with_regions(self, regions: Regions) -> BoltzmannPath:
        """Return the path to the same machine from units whose states are equally probable.

        Such a base favours none of the regions. Means of one of them may leave out the others, and
        those of all are near 1/2 where regions are unlike.

        Parameters
        ----------
        regions : Regions
            Such as ``run_.regions`` of a run that has missed some of them.

        Returns
        -------
        BoltzmannPath
        """
        return BoltzmannPath(
            self.couplings, self.intercept, np.full(self.n_visible, 0.5), self.offset, self.ladder
        )

    # -- the kernels' arguments
    def _pack(self):
        from sklpf.models.boltzmann._path_kernels import Couplings

        starts = self.couplings.indptr.astype(np.int64)
        neighbours = self.couplings.indices.astype(np.int64)
        units = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        n_before = np.bincount(units[neighbours < units], minlength=len(starts) - 1)
        return Couplings(
            starts=read_only(starts, np.int64),
            middles=read_only(starts[:-1] + n_before, np.int64),
            neighbours=read_only(neighbours, np.int64),
            values=read_only(self.couplings.data),
            intercept=read_only(self.intercept),
            base_logit=read_only(self.base_logit),
            base_constant=self._base_constant,
            offset=self.offset,
        )

    @property
    def _base_constant(self) -> float:
        return float(np.logaddexp(0, self.base_logit).sum())

    @property
    def _work(self) -> tuple[float, float]:  # type: ignore[override]
        return self.couplings.nnz + 10 * self.n_visible, 1

    @property
    def _sum_of_terms(self) -> float:  # type: ignore[override]
        """The absolute values of all terms that log_f may add up."""
        with np.errstate(over="ignore"):
            terms = np.abs(self.couplings.data).sum() / 2 + np.abs(self.intercept).sum()
            terms += 2 * np.abs(self.base_logit).sum() + abs(self.offset)
        return terms

    @property
    def n_summaries(self) -> int:
        """Length of a state's summary: its units."""
        return self.n_visible

    # -- states
    def state_from_rows(self, x: ArrayLike) -> BoltzmannState:
        """Return chains that start at the rows x (n, n_units) of 0 and 1."""
        x = binary_units(x, self.n_visible)
        log_base = x @ self.base_logit - self._base_constant
        return BoltzmannState(x, log_base, self._log_f_of_rows(x) - log_base)

    def _log_f_of_rows(self, x):
        return log_f(x, self.couplings, self.intercept, self.offset)

    def rows(self, state: BoltzmannState) -> Bits:
        """Return the units of all chains.

        Parameters
        ----------
        state : BoltzmannState
            The chains.

        Returns
        -------
        ndarray of shape (n, n_units)
            Zeros and ones.
        """
        return state.x

    def _random_chains(self, rng) -> BoltzmannState:
        return self.state_from_rows(rng.random((N_CENTRES, self.n_visible)) < 0.5)

    def _inputs(self, state) -> Array:
        return state.x @ self.couplings + self.intercept

    @property
    def _work_of_f(self) -> int:  # type: ignore[override]
        return self.couplings.nnz + self.n_visible

    # -- exact enumeration
    @property
    def log2_states(self) -> int:  # type: ignore[override]
        """Number of units: 2 to this power states are enumerated."""
        return self.n_visible

    def enumerate_block(self, block: int, level: int) -> Array:
        """Return log f at `level` of all states whose units beyond the first 14 are the bits of
        `block`; the first ones are the bits of the state's number.
        """
        beta = self.ladder[level]
        linear = (1 - beta) * self.base_logit + beta * self.intercept
        couplings = beta * self.couplings.toarray()
        constant = beta * self.offset - (1 - beta) * self._base_constant
        n_low = self._units_of_a_block
        high = bits(np.array([block]), self.log2_states - n_low)[0]
        constant += linear[n_low:] @ high + high @ couplings[n_low:, n_low:] @ high / 2
        fields = linear[:n_low] + couplings[:n_low, n_low:] @ high

        # One more unit doubles the states: with it they have its field, from the units before it.
        log_f = np.array([constant])
        inputs = fields[:, np.newaxis]
        for i in range(n_low):
            log_f = np.concatenate([log_f, log_f + inputs[0]])
            rest = inputs[1:]
            added = couplings[i + 1 : n_low, i, np.newaxis]
            inputs = np.concatenate([rest, rest + added], axis=1)
        return log_f

    def _state_of_units(self, units, rng) -> BoltzmannState:
        return self.state_from_rows(units)


def as_couplings(couplings) -> sp.csr_array:
    """Return couplings as a CSR array of float64 with sorted indices and no stored zeros.

    Raises
    ------
    ValueError
        If they are not square, finite and symmetric with zeros on the diagonal.
    """
    if not sp.issparse(couplings):
        couplings = as_float64(couplings, "couplings")
    if couplings.ndim != 2 or couplings.shape[0] != couplings.shape[1] or 0 in couplings.shape:
        raise ValueError(f"couplings must have the shape (n_units, n_units), got {couplings.shape}")
    matrix = sp.csr_array(couplings, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    check_finite(matrix.data, "couplings")
    if matrix.diagonal().any():
        raise ValueError(
            "couplings must have zeros on the diagonal: a binary unit's coupling to itself is an"
            " intercept"
        )
    if (matrix != matrix.T).nnz:
        raise ValueError("couplings must be symmetric: give J + J.T where each pair is stored once")
    return matrix


def log_f(x, couplings, intercept, offset=0.0) -> Array:
    """intercept @ x + x @ couplings @ x / 2 + offset of every row, (n,), in nats."""
    x = np.asarray(x, dtype=np.float64)
    pairs = 0.5 * np.einsum("ij,ij->i", x @ couplings, x)
    return x @ intercept + pairs + offset

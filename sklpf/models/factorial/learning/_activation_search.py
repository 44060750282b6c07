"""Better activations of single rows: where coordinate ascent has stopped, flips of two or three
components go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from sklpf._utils.numbers import Array

_MOST_FORCED = 16  # components that a search forces in a row
_SETTLED = 1e-6
_MAX_SETTLING = 30


class RowEnergy(NamedTuple):
    """The part of the bound that the activations v of a row decide: bias @ v - v @ coupling @ v / 2
    + entropy of v.

    `bias` has the shape (n, K), `coupling` (K, K) and a zero diagonal.
    """

    bias: Array
    coupling: Array

    @classmethod
    def of(cls, products, gram, log_odds, half_precision) -> RowEnergy:
        """Return the energy of rows with products (K, n) = means @ x.T and gram (K, K) = E[means @
        means.T].
        """
        own = np.diag(gram)
        bias = log_odds + 2 * half_precision * (products.T - 0.5 * own)
        return cls(np.ascontiguousarray(bias), 2 * half_precision * (gram - np.diag(own)))

    def bounds(self, active) -> Array:
        """Return the value of every row of activations (n, K)."""
        linear = self.bias - 0.5 * active @ self.coupling
        return np.sum(active * linear + entr(active) + entr(1 - active), axis=1)

    def forced(self, z, k: int, value) -> tuple[NDArray[np.uint8], Array]:
        """Return z (n, K) with component k at `value` and the others where the energy then leads,
        and what it gains.
        """
        from sklpf.models.factorial.learning._activation_kernels import force_component

        z = z.copy()
        values = np.broadcast_to(np.asarray(value, dtype=np.uint8), len(z)).copy()
        gains = force_component(self.bias, self.coupling, z, k, values)
        return z, gains

    def searched(self, z, forced: Iterable[int]) -> NDArray[np.uint8]:
        """Return z (n, K) after flips that gain, of one or two components, or of two besides a
        forced one.

        Of many to be forced every row takes those whose own flips lose least.
        """
        from sklpf.models.factorial.learning._activation_kernels import climb_rows

        z = z.copy()
        climb_rows(self.bias, self.coupling, z)
        for k, rows in self._to_be_forced(z, list(forced)):
            before = z[rows]
            other, gains = self._replace(bias=self.bias[rows]).forced(before, k, 1 - before[:, k])
            z[rows] = np.where(gains[:, None] > 0, other, before)
        return z

    def _to_be_forced(self, z, forced: list[int]):
        """Pairs of a component and the rows in which it is forced."""
        if len(forced) <= _MOST_FORCED:
            return [(k, slice(None)) for k in forced]
        losses = ((2.0 * z - 1) * (self.bias - z @ self.coupling))[:, forced]
        most = np.partition(losses, _MOST_FORCED - 1, axis=1)[:, [_MOST_FORCED - 1]]
        return [(k, np.flatnonzero(rows)) for k, rows in zip(forced, (losses <= most).T)]


def search_activations(products, active, terms, forced: Iterable[int] = ()) -> None:
    """Replace activations (K, n), in place, of rows for which a search by flips finds some with a
    higher bound; terms as in `RowEnergy.of`.
    """
    energy = RowEnergy.of(products, *terms)
    before = np.ascontiguousarray(active.T > 0.5).astype(np.uint8)
    found = energy.searched(before, forced)
    rows = np.flatnonzero(np.any(found != before, axis=1))
    if len(rows) == 0:
        return
    energy = energy._replace(bias=energy.bias[rows])
    old = active[:, rows]
    new = np.ascontiguousarray(found[rows].T, dtype=np.float64)
    settle_activations(np.ascontiguousarray(products[:, rows]), new, terms, _MAX_SETTLING)
    better = energy.bounds(new.T) > energy.bounds(old.T)
    active[:, rows[better]] = new[:, better]


def settle_activations(products, active, terms, max_iter: int) -> None:
    """Update activations (K, n), in place, until those of a row no longer change, at T = 1."""
    from sklpf.models.factorial.learning._activation_kernels import update_activations

    update_activations(products, active, *terms, np.ones(active.shape[1]), max_iter, _SETTLED)

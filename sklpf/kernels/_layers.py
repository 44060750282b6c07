"""The product of a layer of units with weights, on which every RBM's sampling and training rest.

What a row of units adds is the sum, in the order of the units, of the weight rows of those that are
not zero, each rounded to float32. Few such rows are added one by one, as they are listed; for many
it is faster to go through all units of several rows at once, in tiles that stay in registers. Both
give the same bits, whatever the other rows are and how many, so that the choice is one of speed
alone.
"""

from typing import NamedTuple

import numpy as np

from sklpf.kernels._compile import inlined, njit
from sklpf.kernels._vectors import (
    HAS_LONG_REGISTERS,
    differing_bits,
    flat,
    load,
    lowest_bit,
    multiply_add,
    store,
    tile_multiplier,
)

TILE_ROWS = 6  # with the columns of a tile of products: what 16 or 32 registers hold
_TILE_COLUMNS = 64 if HAS_LONG_REGISTERS else 16
_SUM_COLUMNS = 256 if HAS_LONG_REGISTERS else 64
# Weight rows that are read again for the next rows of units before others take their place in the
# second-level cache.
_ROWS_IN_CACHE = 128
# Of the units that are not zero: above, products are faster than sums of the listed rows, with
# AVX-512 and with AVX2.
_DENSE_SHARE = 0.35


class Layer(NamedTuple):
    """Work space for the products of n rows of m units."""

    indices: np.ndarray  # (n, m) int32: of the weight rows that are added, ascending
    factors: np.ndarray  # (n, m) float32: what these are multiplied by
    counts: np.ndarray  # (n,) int64: how many there are
    units: np.ndarray  # (n, m) float32: rows for the products
    dense: np.ndarray  # (n,) int64: numbers of these rows


@inlined
def layer(n, m):
    """Work space for the products of n rows of m units."""
    return Layer(
        np.empty((n, m), np.int32),
        np.empty((n, m), np.float32),
        np.empty(n, np.int64),
        np.empty((n, m), np.float32),
        np.empty(n, np.int64),
    )


# ---- listing units
@inlined
def list_differences(first, second, n, indices):
    """Write the j < n where first[j] != second[j] (uint8) to indices; returns how many. Cost goes
    with their number.
    """
    count = j = np.int64(0)  # of one type from the first use on, so that nothing is compiled twice
    while j + 64 <= n:
        mask = differing_bits(first, second, j)
        while mask != np.uint64(0):
            indices[count] = j + lowest_bit(mask)
            count += 1
            mask &= mask - np.uint64(1)
        j += 64
    while j < n:
        if first[j] != second[j]:
            indices[count] = j
            count += 1
        j += 1
    return count


@inlined
def is_dense(count, n):
    """Whether the product is faster than the sum of so many of n weight rows."""
    return count > _DENSE_SHARE * n


@njit
def multiply(sums, units, rows, work):
    """sums += units @ rows, for units (n, m) float32 and weights (m, width); see `add_rows`."""
    n, m = units.shape
    n_dense = 0
    for c in range(n):
        count = np.int64(0)
        for j in range(m):
            work.indices[c, count] = j
            work.factors[c, count] = units[c, j]
            count += np.int64(units[c, j] != np.float32(0.0))
        work.counts[c] = count
        if is_dense(count, m):
            work.counts[c] = 0
            work.dense[n_dense] = c
            n_dense += 1
    add_rows(sums, rows, work.indices, work.factors, work.counts)
    add_products(sums, rows, units, work.dense, n_dense)


# ---- sums of the listed rows
def _tile_adder(lanes):
    """A kernel that adds n rows, of chain c, to as many columns from place `place` on."""

    @inlined
    def add(accumulators, place, rows, column, row_length, indices, factors, c, n):
        total = load(accumulators, place, lanes)
        for p in range(n):
            row = load(rows, column + indices[c, p] * row_length, lanes)
            total = multiply_add(factors[c, p], row, total)
        store(accumulators, place, total)

    return add


_add_16, _add_32, _add_64, _add_128, _add_256 = map(_tile_adder, (16, 32, 64, 128, 256))


@njit
def add_rows(accumulators, rows, indices, factors, counts):
    """accumulators[c] += sum over p < counts[c] of factors[c, p] * rows[indices[c, p]], for every
    chain c.

    Shapes: accumulators (n, width), rows (m, width), indices and factors (n, >= max(counts));
    C-contiguous, or the first columns of C-contiguous arrays; float32 and int32, width a multiple
    of 16. Columns go in tiles whose sums stay in registers.
    """
    n, width = accumulators.shape
    stride = accumulators.strides[0] // 4
    row_length = rows.strides[0] // 4
    column = 0
    while column < width:
        left = width - column
        tile = 16
        while tile < _SUM_COLUMNS and 2 * tile <= left:
            tile *= 2
        for c in range(n):
            tile_of_chain = (
                accumulators,
                c * stride + column,
                rows,
                column,
                row_length,
                indices,
                factors,
                c,
                counts[c],
            )
            if tile == 256:
                _add_256(*tile_of_chain)
            elif tile == 128:
                _add_128(*tile_of_chain)
            elif tile == 64:
                _add_64(*tile_of_chain)
            elif tile == 32:
                _add_32(*tile_of_chain)
            else:
                _add_16(*tile_of_chain)
        column += tile


# ---- products with all rows
_multiply_16, _multiply_32, _multiply_widest = (
    tile_multiplier(TILE_ROWS, columns) for columns in (16, 32, _TILE_COLUMNS)
)


@njit
def add_products(sums, rows, units, dense, n_dense):
    """sums[c] += units[c] @ rows for the chains c = dense[:n_dense], as `add_rows` adds them.

    Shapes: sums (n, width), rows (m, width), units (n, m), all float32 and as of `add_rows`. The
    last tile is filled up with the last chain, which is then written several times.
    """
    if n_dense == 0:
        return
    m = rows.shape[0]
    width = sums.shape[1]
    stride = sums.strides[0] // 4
    row_length = rows.strides[0] // 4
    n_tiles = (n_dense + TILE_ROWS - 1) // TILE_ROWS
    order = np.empty(n_tiles * TILE_ROWS, np.int64)
    for p in range(order.shape[0]):
        order[p] = dense[min(p, n_dense - 1)]
    for first in range(0, m, _ROWS_IN_CACHE):
        n = min(_ROWS_IN_CACHE, m - first)
        column = 0
        while column < width:
            left = width - column
            tile = _TILE_COLUMNS if left >= _TILE_COLUMNS else 32 if left >= 32 else 16
            for place in range(0, order.shape[0], TILE_ROWS):
                operands = (
                    flat(sums),
                    stride,
                    column,
                    flat(order),
                    place,
                    flat(units),
                    units.strides[0] // 4,
                    first,
                    flat(rows),
                    row_length,
                    n,
                )
                if tile == _TILE_COLUMNS:
                    _multiply_widest(*operands)
                elif tile == 32:
                    _multiply_32(*operands)
                else:
                    _multiply_16(*operands)
            column += tile

"""The product of a layer of units with weights, on which the sampling of RBMs of discrete units
rests.

What a row of units adds is the sum, in the order of the units, of the weight rows of those that are
not zero, each rounded to float32. Few such rows are added one by one, as they are listed; for many
it is faster to go through all units of several rows at once, in tiles that stay in registers. Both
give the same bits, whatever the other rows are and how many, so that the choice is one of speed
alone.
"""

import functools
from typing import NamedTuple

import numpy as np

from sklpf.kernels._compile import BORROWS, inlined, njit
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

# Tiles of sums that stay in registers, of products and of sums of listed rows.
_TILE_ROWS = 6
_TILE_COLUMNS = 64 if HAS_LONG_REGISTERS else 16
_SUM_COLUMNS = 128 if HAS_LONG_REGISTERS else 64
# Weight rows, in so many columns, that stay in the cache until all rows of units have taken them.
_PRODUCT_BLOCK = 128
_SUM_BLOCK = 512
# Of the units that are not zero: with more, products are faster than sums of the listed rows, with
# AVX-512 and with AVX2, for 12 rows of units and for 100, from 64 to 4000 of them.
_DENSE_SHARE = 0.3


class Layer(NamedTuple):
    """What the products of n rows of m units with weights add: some rows' listed weight rows, and
    all weight rows times the units of the others.
    """

    indices: np.ndarray  # (n, m) int32: of the weight rows that are added, ascending
    factors: np.ndarray  # (n, m) float32: what these are multiplied by
    counts: np.ndarray  # (n,) int64: how many there are, -1 where all units are gone through
    units: np.ndarray  # (n, m) float32: these
    off: np.ndarray  # (m,) uint8: zeros


@inlined
def layer(n, m):
    """Room for n rows of m units."""
    return Layer(
        np.empty((n, m), np.int32),
        np.empty((n, m), np.float32),
        np.empty(n, np.int64),
        np.empty((n, m), np.float32),
        np.zeros(m, np.uint8),
    )


# ---- listing units
@functools.partial(inlined, **BORROWS)
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


@functools.partial(inlined, **BORROWS)
def is_dense(count, n):
    """Whether the product is faster than the sum of so many of n weight rows."""
    return count > _DENSE_SHARE * n


@functools.partial(inlined, **BORROWS)
def change_units(units, drawn, products, c, anew):
    """Set the units of row c (uint8) to those that were drawn, and list the rows that this adds and
    takes away; returns False where all units are to be summed: if `anew`, or if this is faster.
    """
    n = units.shape[0]
    indices = products.indices[c]
    factors = products.factors[c]
    n_on = np.int64(0)
    n_changed = np.int64(0)
    for j in range(n):
        n_on += np.int64(drawn[j])
        n_changed += np.int64(drawn[j] != units[j])
    anew = anew or n_on < n_changed
    count = n_on if anew else n_changed
    if is_dense(count, n):
        anew = True
        count = np.int64(-1)
        for j in range(n):
            products.units[c, j] = np.float32(drawn[j])
    elif anew:
        list_differences(drawn, products.off, n, indices)
        for p in range(count):
            factors[p] = np.float32(1.0)
    else:
        list_differences(drawn, units, n, indices)
        for p in range(count):
            factors[p] = np.float32(2.0) * np.float32(drawn[indices[p]]) - np.float32(1.0)
    for j in range(n):
        units[j] = drawn[j]
    products.counts[c] = count
    return not anew


@functools.partial(inlined, **BORROWS)
def add_layer(sums, rows, products):
    """sums += what is prepared in `products` of the weights (m, width)."""
    add_rows(sums, rows, products.indices, products.factors, products.counts)
    add_products(sums, rows, products.units, products.counts)


# ---- sums of the listed rows
def _tile_adder(lanes):
    """A kernel that adds the rows of chain c that are listed from `start` to `stop`, to as many
    columns from place `place` on.
    """

    @functools.partial(inlined, **BORROWS)
    def add(accumulators, place, rows, column, row_length, indices, factors, c, start, stop):
        total = load(accumulators, place, lanes)
        for p in range(start, stop):
            row = load(rows, column + indices[c, p] * row_length, lanes)
            total = multiply_add(factors[c, p], row, total)
        store(accumulators, place, total)

    return add


_add_16, _add_32, _add_64, _add_128 = map(_tile_adder, (16, 32, 64, 128))


@njit
def add_rows(accumulators, rows, indices, factors, counts):
    """accumulators[c] += sum over p < counts[c] of factors[c, p] * rows[indices[c, p]], for every
    chain c.

    Shapes: accumulators (n, width), rows (m, width), indices, ascending, and factors (n, >=
    max(counts)); C-contiguous, or the first columns of C-contiguous arrays; float32 and int32,
    width a multiple of 16. Columns go in tiles whose sums stay in registers, rows in blocks that
    stay in the cache.
    """
    n, width = accumulators.shape
    stride = accumulators.strides[0] // 4
    row_length = rows.strides[0] // 4
    starts = np.zeros(n, np.int64)
    stops = np.zeros(n, np.int64)
    for first in range(0, rows.shape[0], _SUM_BLOCK):
        for c in range(n):
            starts[c] = stops[c]
            while stops[c] < counts[c] and indices[c, stops[c]] < first + _SUM_BLOCK:
                stops[c] += 1
        column = 0
        while column < width:
            left = width - column
            tile = 16
            while tile < _SUM_COLUMNS and 2 * tile <= left:
                tile *= 2
            for c in range(n):
                if starts[c] == stops[c]:
                    continue
                tile_of_chain = (
                    accumulators,
                    c * stride + column,
                    rows,
                    column,
                    row_length,
                    indices,
                    factors,
                    c,
                    starts[c],
                    stops[c],
                )
                if tile == 128:
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
    tile_multiplier(_TILE_ROWS, columns) for columns in (16, 32, _TILE_COLUMNS)
)


@njit
def add_products(sums, rows, units, counts):
    """sums[c] += units[c] @ rows for the chains c whose counts are -1, as `add_rows` adds them.

    Shapes: sums (n, width), rows (m, width), units (n, >= m), all float32 and as of `add_rows`. The
    last tile is filled up with the last chain, which is then written several times.
    """
    m = rows.shape[0]
    width = sums.shape[1]
    stride = sums.strides[0] // 4
    row_length = rows.strides[0] // 4
    order = np.empty(counts.shape[0] + _TILE_ROWS, np.int64)
    n_dense = 0
    for c in range(counts.shape[0]):
        if counts[c] < 0:
            order[n_dense : n_dense + _TILE_ROWS] = c
            n_dense += 1
    for first in range(0, m, _PRODUCT_BLOCK):
        n = min(_PRODUCT_BLOCK, m - first)
        column = 0
        while column < width:
            left = width - column
            tile = _TILE_COLUMNS if left >= _TILE_COLUMNS else 32 if left >= 32 else 16
            for place in range(0, n_dense, _TILE_ROWS):
                # the first two tiles ask for half of the next columns each
                ahead = 0
                if place < 2 * _TILE_ROWS:
                    after = tile if left > tile else _PRODUCT_BLOCK * row_length - column
                    ahead = after + tile // 2 * (place // _TILE_ROWS)
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
                    ahead,
                )
                if tile == _TILE_COLUMNS:
                    _multiply_widest(*operands)
                elif tile == 32:
                    _multiply_32(*operands)
                else:
                    _multiply_16(*operands)
            column += tile

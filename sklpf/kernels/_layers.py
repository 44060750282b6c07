"""The product of a layer of units with weights, on which the sampling of RBMs of discrete units
rests.

What a row of units adds is the sum, in the order of the units, of the weight rows of those that are
not zero, each rounded to float32. Few such rows are added one by one, as they are listed; for many
it is faster to go through all units of several rows at once, in tiles that stay in registers. Both
give the same bits, whatever the other rows are and how many, so that the choice is one of speed
alone.
"""

from typing import NamedTuple

import numpy as np

from sklpf._utils.layout import LANES
from sklpf.kernels._compile import borrowing, inlined, njit, summing
from sklpf.kernels._vectors import (
    HAS_LONG_REGISTERS,
    differing_bits,
    flat,
    list_on,
    load,
    lowest_bit,
    multiply_add,
    store,
    tile_multiplier,
    transpose_tile,
)

# Tiles of sums that stay in registers, of products and of sums of listed rows.
_TILE_ROWS = 6
_TILE_COLUMNS = 64 if HAS_LONG_REGISTERS else 16
_SUM_COLUMNS = 128 if HAS_LONG_REGISTERS else 64
# Weight rows that stay in the cache, a tile of columns at a time, until all rows of units have
# taken them. For more rows of units than `_COPIED_FOR` a block of them is copied first.
_PRODUCT_BLOCK = 128
_COPIED_BLOCK = 256
_COPIED_COLUMNS = 256
_COPIED_FOR = 4 * _TILE_ROWS
_SUM_BLOCK = 128
_SPARSE_BLOCK = 512  # where fewer than a tenth of the rows are listed
_SPARSE_SHARE = 0.1
# Of the units that are not zero: with more, products are faster than sums of the listed rows, for
# 100 and 200 rows of units, from 64 to 784 of them. Measured 0.4 to 0.45 with AVX-512, 0.5 with
# AVX2, and 0.3 for 64 columns with AVX-512.
_DENSE_SHARE = 0.4


class Layer(NamedTuple):
    """Products of n rows of m units with weights: some rows' listed weight rows, and all weight
    rows times the units of the others.
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
@borrowing
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


@borrowing
def is_dense(count, n):
    """True if the product is faster than the sum of so many of n weight rows."""
    return count > _DENSE_SHARE * n


@summing
def list_units(products, n_rows, n, first=0, step=1):
    """Prepare the sums of rows first, first + step, … < n_rows of `products.units`, each of n units
    of any values, behind which there is room for 16, as in the lists.
    """
    length = products.units.strides[0] // 4
    room = products.indices.shape[1]
    units = flat(products.units)
    indices = flat(products.indices)
    factors = flat(products.factors)
    for r in range(first, n_rows, step):
        count = np.float32(0.0)  # exact, and of as many bits as units: integers of 64 take longer
        for j in range(n):
            count += np.float32(units[r * length + j] != np.float32(0.0))
        if is_dense(count, n):
            products.counts[r] = -1
            continue
        products.counts[r] = np.int64(count)
        place = r * room
        for j in range(0, n, LANES):
            place += list_on(units, r * length + j, j, n - j, indices, factors, place)


@borrowing
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


@borrowing
def add_layer(sums, rows, products):
    """sums += what is prepared in `products` of the weights (m, width)."""
    add_rows(sums, rows, products.indices, products.factors, products.counts)
    add_products(sums, rows, products.units, products.counts)


@borrowing
def transpose(source, target):
    """target = source.T of float32 arrays whose both lengths are multiples of 16; they lie by rows,
    which may be parts of longer ones.
    """
    length = source.strides[0] // 4
    target_length = target.strides[0] // 4
    for i in range(0, source.shape[0], LANES):
        for j in range(0, source.shape[1], LANES):
            transpose_tile(
                source, i * length + j, length, target, j * target_length + i, target_length
            )


# ---- sums of the listed rows
def _tile_adder(lanes):
    """A kernel that adds the rows of chain c that are listed from `start` to `stop`, to as many
    columns from place `place` on.
    """

    @borrowing
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
    m = rows.shape[0]
    starts = np.zeros(n, np.int64)
    stops = np.zeros(n, np.int64)
    n_listed = np.int64(0)
    for c in range(n):
        n_listed += max(counts[c], 0)
    if n_listed == 0:
        return
    block = _SPARSE_BLOCK if n_listed < _SPARSE_SHARE * n * m else _SUM_BLOCK
    for first in range(0, m, block):
        for c in range(n):
            starts[c] = stops[c]
            while stops[c] < counts[c] and indices[c, stops[c]] < first + block:
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


@borrowing
def _copy_tiles(rows, place, row_length, n, tile, n_tiles, copied):
    """Copy tiles of n rows from a place on, each to where its rows lie next to one another."""
    for k in range(n):
        source = place + k * row_length
        for t in range(n_tiles):
            target = (t * n + k) * tile
            for j in range(0, tile, LANES):
                store(copied, target + j, load(rows, source + t * tile + j, LANES))


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
    if n_dense == 0:
        return
    is_copied = n_dense > _COPIED_FOR
    block = min(m, _COPIED_BLOCK if is_copied else _PRODUCT_BLOCK)
    copied = np.empty(block * _COPIED_COLUMNS if is_copied else 0, np.float32)
    for first in range(0, m, block):
        n = min(block, m - first)
        column = 0
        begin_copied = 0
        end_copied = 0
        while column < width:
            left = width - column
            tile = _TILE_COLUMNS if left >= _TILE_COLUMNS else 32 if left >= 32 else 16
            weights = flat(rows[first:, column:])
            length = row_length
            if is_copied:
                if column == end_copied:
                    begin_copied = column
                    place = first * row_length + column
                    n_tiles = min(left, _COPIED_COLUMNS) // tile
                    _copy_tiles(rows, place, row_length, n, tile, n_tiles, copied)
                    end_copied += n_tiles * tile
                weights = flat(copied[(column - begin_copied) * n :])
                length = tile
            for place in range(0, n_dense, _TILE_ROWS):
                # the first two tiles ask for half of the next columns each
                ahead = 0
                if place < 2 * _TILE_ROWS and not is_copied:
                    after = tile if left > tile else block * row_length - column
                    ahead = after + tile // 2 * (place // _TILE_ROWS)
                operands = (
                    flat(sums[:, column:]),
                    stride,
                    flat(order),
                    place,
                    flat(units[:, first:]),
                    units.strides[0] // 4,
                    weights,
                    length,
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

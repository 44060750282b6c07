"""Units that differ between two rows, and sums of the weight rows of such units."""

import numpy as np

from sklpf.kernels._compile import inlined, njit
from sklpf.kernels._vectors import differing_bits, load, lowest_bit, multiply_add, store


# ---- comparing units
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


# ---- sums of weight rows
def _tile_adder(lanes):
    """A kernel that adds n rows, of chain c, to as many columns from place `place` on."""

    @inlined
    def add(accumulators, place, rows, column, row_length, indices, signs, c, n):
        total = load(accumulators, place, lanes)
        for p in range(n):
            row = load(rows, column + indices[c, p] * row_length, lanes)
            total = multiply_add(signs[c, p], row, total)
        store(accumulators, place, total)

    return add


_add_16, _add_32, _add_64, _add_128, _add_256 = map(_tile_adder, (16, 32, 64, 128, 256))


@njit
def add_rows(accumulators, rows, indices, signs, counts):
    """accumulators[c] += sum over p < counts[c] of signs[c, p] * rows[indices[c, p]], for every
    chain c.

    Shapes: accumulators (n, width), rows (m, width), indices and signs (n, >= max(counts));
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
        while tile < 256 and 2 * tile <= left:
            tile *= 2
        for c in range(n):
            tile_of_chain = (
                accumulators,
                c * stride + column,
                rows,
                column,
                row_length,
                indices,
                signs,
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

"""Units that differ between two rows, and sums of the weight rows of such units."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklpf._utils.layout import LANES
from sklpf.kernels._compile import inlined, njit


# ---- comparing units
def _mask_maker(width):
    """An intrinsic: bit i of the result is set where byte i of two rows of `width` bytes
    differs.
    """
    word = ir.IntType(width)
    byte = ir.IntType(8)

    @intrinsic
    def differing(typing_context, first, second):
        def generate(context, builder, signature, arguments):
            vector = ir.VectorType(byte, width).as_pointer()
            a, b = (
                builder.load(builder.inttoptr(address, vector), align=1) for address in arguments
            )
            bits = builder.bitcast(builder.icmp_unsigned("!=", a, b), word)
            return bits if width == 64 else builder.zext(bits, ir.IntType(64))

        return types.uint64(types.intp, types.intp), generate

    return differing


_differing_64 = _mask_maker(64)
_differing_16 = _mask_maker(16)


@intrinsic
def _lowest_bit(typing_context, mask):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@inlined
def _list_bits(mask, offset, count, indices):
    while mask != np.uint64(0):
        indices[count] = offset + _lowest_bit(mask)
        count += 1
        mask &= mask - np.uint64(1)
    return count


@inlined
def list_differences(first, second, n, indices):
    """Write the j < n where first[j] != second[j] (uint8) to indices; returns how many. Cost goes
    with their number.
    """
    a = first.ctypes.data
    b = second.ctypes.data
    count = j = np.int64(0)  # of one type from the first use on, so that nothing is compiled twice
    while j + 64 <= n:
        count = _list_bits(_differing_64(a + j, b + j), j, count, indices)
        j += 64
    while j + 16 <= n:
        count = _list_bits(_differing_16(a + j, b + j), j, count, indices)
        j += 16
    while j < n:
        if first[j] != second[j]:
            indices[count] = j
            count += 1
        j += 1
    return count


# ---- sums of weight rows
def _row_adder(n_registers):
    """An intrinsic: accumulator += sum_p signs[p] * rows[indices[p]], kept in `n_registers` vector
    registers.

    Arguments are addresses: accumulator, first row, row length in floats, indices (int32), signs
    (float32), count.
    """

    @intrinsic
    def add_rows(typing_context, accumulator, rows, row_length, indices, signs, count):
        def generate(context, builder, signature, arguments):
            _emit_add_rows(builder, n_registers, *arguments)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 6), generate

    return add_rows


def _emit_add_rows(builder, n_registers, accumulator, rows, row_length, indices, signs, count):
    float32 = ir.FloatType()
    int32 = ir.IntType(32)
    int64 = ir.IntType(64)
    vector = ir.VectorType(float32, LANES)
    offsets = [ir.Constant(int64, register) for register in range(n_registers)]
    accumulator = builder.inttoptr(accumulator, vector.as_pointer())
    rows = builder.inttoptr(rows, float32.as_pointer())
    indices = builder.inttoptr(indices, int32.as_pointer())
    signs = builder.inttoptr(signs, float32.as_pointer())
    slots = [builder.gep(accumulator, [offset]) for offset in offsets]
    start = [builder.load(slot, align=4) for slot in slots]
    entry = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)

    builder.position_at_end(head)
    p = builder.phi(int64)
    p.add_incoming(ir.Constant(int64, 0), entry)
    sums = [builder.phi(vector) for _ in offsets]
    for total, value in zip(sums, start):
        total.add_incoming(value, entry)
    builder.cbranch(builder.icmp_signed("<", p, count), body, end)

    builder.position_at_end(body)
    index = builder.sext(builder.load(builder.gep(indices, [p])), int64)
    sign = builder.load(builder.gep(signs, [p]))
    undefined = ir.Constant(vector, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(int32, LANES), [0] * LANES)
    sign = builder.shuffle_vector(
        builder.insert_element(undefined, sign, ir.Constant(int32, 0)), undefined, zeros
    )
    row = builder.bitcast(builder.gep(rows, [builder.mul(index, row_length)]), vector.as_pointer())
    for total, offset in zip(sums, offsets):
        weights = builder.load(builder.gep(row, [offset]), align=4)
        product = builder.fmul(sign, weights, flags=("contract",))
        total.add_incoming(builder.fadd(product, total, flags=("contract",)), body)
    p.add_incoming(builder.add(p, ir.Constant(int64, 1)), body)
    builder.branch(head)

    builder.position_at_end(end)
    for slot, total in zip(slots, sums):
        builder.store(total, slot, align=4)


_add_rows_16 = _row_adder(16)
_add_rows_8 = _row_adder(8)
_add_rows_4 = _row_adder(4)
_add_rows_2 = _row_adder(2)
_add_rows_1 = _row_adder(1)


@njit
def add_rows(accumulators, rows, indices, signs, counts):
    """accumulators[c] += sum over p < counts[c] of signs[c, p] * rows[indices[c, p]], for every
    chain c.

    Shapes: accumulators (n, width), rows (m, width), indices and signs (n, >= max(counts));
    C-contiguous, or the first columns of C-contiguous arrays; float32 and int32, width a multiple
    of 16. Columns go in tiles whose sums stay in registers.
    """
    n, width = accumulators.shape
    row_length = rows.strides[0] // 4
    column = 0
    while column < width:
        left = width - column
        tile = 16
        while tile < 256 and 2 * tile <= left:
            tile *= 2
        for c in range(n):
            target = accumulators.ctypes.data + c * accumulators.strides[0] + 4 * column
            source = rows.ctypes.data + 4 * column
            index = indices.ctypes.data + 4 * c * indices.shape[1]
            sign = signs.ctypes.data + 4 * c * signs.shape[1]
            if tile == 256:
                _add_rows_16(target, source, row_length, index, sign, counts[c])
            elif tile == 128:
                _add_rows_8(target, source, row_length, index, sign, counts[c])
            elif tile == 64:
                _add_rows_4(target, source, row_length, index, sign, counts[c])
            elif tile == 32:
                _add_rows_2(target, source, row_length, index, sign, counts[c])
            else:
                _add_rows_1(target, source, row_length, index, sign, counts[c])
        column += tile

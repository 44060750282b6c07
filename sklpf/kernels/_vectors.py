"""Vectors of numbers that stay in registers: the instructions that numba's own loops don't become.

LLVM neither adds up a sum in another order than is written nor sees that rows at computed places
don't overlap, and would leave such loops scalar (8 times slower). Each instruction has its meaning
as a body in NumPy, which is what it does outside of kernels. Vectors know ``+``, ``-``, ``*``,
``>>`` and ``<`` (1 or 0 a lane), with numbers too. Longer ones than a register are several.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once, for_range
from numba.core.registry import cpu_target
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model, type_callable

REGISTER = 64  # bytes
# Whether there are 32 registers of 64 bytes, else 16 of 32 bytes or what holds as much.
HAS_LONG_REGISTERS = "+avx512f" in cpu_target.target_context.codegen().magic_tuple()[2]
_INT32 = ir.IntType(32)
_LANES_IN_TILE = 16


class Vector(types.Type):
    """So many numbers of one type."""

    def __init__(self, dtype, lanes):
        self.dtype = dtype
        self.lanes = lanes
        super().__init__(name=f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        number = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(number, vector.lanes))


def _instruction(body, result_type):
    """Decorator of a function that writes the code of a function of NumPy, for kernels to call;
    `result_type` is the type of what it gives, by those of its parameters.
    """
    type_callable(body)(lambda context: result_type)
    return lower_builtin(body, types.VarArg(types.Any))


def _literal(number) -> int | None:
    return number.literal_value if isinstance(number, types.IntegerLiteral) else None


def _constant(kind, value):
    """The same number in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def _lanes(numbers):
    """Numbers of lanes, for shuffles."""
    return ir.Constant(ir.VectorType(_INT32, len(numbers)), numbers)


def _spread(builder, value, lanes):
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, undefined, _lanes([0] * lanes))


# ---- memory
def flat(array):
    """All numbers of a C-contiguous array in a row: what `load` and `store` take too, and functions
    take faster, as nothing counts references to it.
    """
    return array.reshape(-1)


def lanes_of(array):
    """Number of an array's numbers that fill a register."""
    return REGISTER // array.itemsize


def zeros(array, lanes=None):
    """Zeros of an array's type; `lanes` is a constant, None what fills a register."""
    return np.zeros(lanes_of(array) if lanes is None else lanes, array.dtype)


def load(array, index, lanes=None):
    """Numbers of a C-contiguous array from place `index` of all on; `lanes` as of `zeros`."""
    lanes = lanes_of(array) if lanes is None else lanes
    return array.reshape(-1)[index : index + lanes].copy()


def store(array, index, vector):
    """Write a vector to a C-contiguous array, from place `index` of all on."""
    array.reshape(-1)[index : index + len(vector)] = vector


def _place(context, builder, array_type, array, index, vector):
    data = _data(context, builder, array_type, array)
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _lanes_in_register(array) -> int:
    return REGISTER * 8 // array.dtype.bitwidth


def _zeros_type(array, lanes=None):
    n = _lanes_in_register(array) if lanes is None else _literal(lanes)
    return None if n is None else Vector(array.dtype, n)


def _data(context, builder, kind, array):
    if isinstance(kind, types.CPointer):
        return array
    return context.make_array(kind)(context, builder, array).data


@_instruction(flat, lambda array: types.CPointer(array.dtype))
def _emit_flat(context, builder, signature, arguments):
    return _data(context, builder, signature.args[0], arguments[0])


@_instruction(lanes_of, lambda array: types.int64)
def _emit_lanes_of(context, builder, signature, arguments):
    return context.get_constant(types.int64, _lanes_in_register(signature.args[0]))


@_instruction(zeros, _zeros_type)
def _emit_zeros(context, builder, signature, arguments):
    return _constant(context.get_value_type(signature.return_type), 0)


@_instruction(load, lambda array, index, lanes=None: _zeros_type(array, lanes))
def _emit_load(context, builder, signature, arguments):
    array_type = signature.args[0]
    vector = context.get_value_type(signature.return_type)
    place = _place(context, builder, array_type, *arguments[:2], vector)
    return builder.load(place, align=array_type.dtype.bitwidth // 8)


@_instruction(store, lambda array, index, vector: types.none)
def _emit_store(context, builder, signature, arguments):
    array_type = signature.args[0]
    place = _place(context, builder, array_type, *arguments[:2], arguments[2].type)
    builder.store(arguments[2], place, align=array_type.dtype.bitwidth // 8)
    return context.get_dummy_value()


# ---- arithmetic
def multiply_add(first, second, third):
    """first * second + third of vectors or numbers, rounded once where there is an operation for
    it.
    """
    return first * second + third


def to_float32(vector):
    """A vector of integers or float64 as float32."""
    return vector.astype(np.float32)


def _vector_of(*arguments) -> Vector | None:
    return next((each for each in arguments if isinstance(each, Vector)), None)


def _as_vectors(context, builder, kinds, values):
    """Numbers among vectors, in every lane."""
    vector = _vector_of(*kinds)
    return [
        value
        if isinstance(kind, Vector)
        else _spread(builder, context.cast(builder, value, kind, vector.dtype), vector.lanes)
        for kind, value in zip(kinds, values)
    ]


@_instruction(multiply_add, lambda first, second, third: _vector_of(first, second, third))
def _emit_multiply_add(context, builder, signature, arguments):
    first, second, third = _as_vectors(context, builder, signature.args, arguments)
    product = builder.fmul(first, second, flags=("contract",))
    return builder.fadd(product, third, flags=("contract",))


@_instruction(to_float32, lambda vector: Vector(types.float32, vector.lanes))
def _emit_to_float32(context, builder, signature, arguments):
    vector = context.get_value_type(signature.return_type)
    dtype = signature.args[0].dtype
    if isinstance(dtype, types.Float):
        return builder.fptrunc(arguments[0], vector)
    convert = builder.sitofp if dtype.signed else builder.uitofp
    return convert(arguments[0], vector)


def _operator(operation, result_type, emit) -> None:
    """Let kernels apply an operator to two vectors, or to a vector and a number: `result_type` is
    the type of the result, by the vector's, and `emit` writes its code for two vectors.
    """

    @infer_global(operation)
    class _Template(AbstractTemplate):
        def generic(self, arguments, keywords):
            vector = _vector_of(*arguments)
            return None if vector is None else signature(result_type(vector), *arguments)

    def emit_for_vectors(context, builder, signature, arguments):
        operands = _as_vectors(context, builder, signature.args, arguments)
        return emit(builder, context.get_value_type(signature.return_type), *operands)

    for kinds in ((Vector, Vector), (Vector, types.Any), (types.Any, Vector)):
        lower_builtin(operation, *kinds)(emit_for_vectors)


def _arithmetic(of_floats, of_integers):
    """Code of an operation by its names for floating-point numbers and for integers."""

    def emit(builder, result, first, second):
        is_float = isinstance(result.element, (ir.FloatType, ir.DoubleType))
        return getattr(builder, of_floats if is_float else of_integers)(first, second)

    return emit


def _emit_less(builder, result, first, second):
    return builder.zext(builder.fcmp_ordered("<", first, second), result)


_operator(operator.add, lambda vector: vector, _arithmetic("fadd", "add"))
_operator(operator.sub, lambda vector: vector, _arithmetic("fsub", "sub"))
_operator(operator.mul, lambda vector: vector, _arithmetic("fmul", "mul"))
_operator(operator.rshift, lambda vector: vector, _arithmetic(None, "lshr"))
_operator(operator.lt, lambda vector: Vector(types.int32, vector.lanes), _emit_less)


# ---- across lanes
def lane(vector, number):
    """The number in one lane."""
    return vector[number]


def sum_lanes(vector):
    """The sum of all lanes, the upper half added to the lower until one is left."""
    while len(vector) > 1:
        half = len(vector) // 2
        vector = vector[:half] + vector[half:]
    return vector[0]


def running_sums(vector):
    """Sums over lanes 0, …, j, for all j."""
    by = 1
    while by < len(vector):
        vector = vector + np.concatenate([np.zeros(by, vector.dtype), vector[:-by]])
        by *= 2
    return vector


def count_below(vector, number):
    """In how many lanes there is less than a number (int64)."""
    return np.int64(np.sum(vector < number))


@_instruction(lane, lambda vector, number: vector.dtype)
def _emit_lane(context, builder, signature, arguments):
    vector, number = arguments
    return builder.extract_element(vector, builder.trunc(number, _INT32))


@_instruction(sum_lanes, lambda vector: vector.dtype)
def _emit_sum_lanes(context, builder, signature, arguments):
    value = arguments[0]
    n = signature.args[0].lanes
    while n > 1:
        n //= 2
        low, high = (
            builder.shuffle_vector(value, value, _lanes([first + i for i in range(n)]))
            for first in (0, n)
        )
        value = builder.fadd(low, high)
    return builder.extract_element(value, ir.Constant(_INT32, 0))


@_instruction(running_sums, lambda vector: vector)
def _emit_running_sums(context, builder, signature, arguments):
    value = arguments[0]
    n = signature.args[0].lanes
    nothing = _constant(value.type, 0.0)
    by = 1
    while by < n:
        moved = _lanes([n + i - by if i >= by else 0 for i in range(n)])
        value = builder.fadd(value, builder.shuffle_vector(nothing, value, moved))
        by *= 2
    return value


@_instruction(count_below, lambda vector, number: types.int64)
def _emit_count_below(context, builder, signature, arguments):
    first, second = _as_vectors(context, builder, signature.args, arguments)
    below = builder.fcmp_ordered("<", first, second)
    mask = builder.bitcast(below, ir.IntType(signature.args[0].lanes))
    return builder.zext(builder.ctpop(mask), ir.IntType(64))


# ---- tiles
def transpose_tile(source, first, source_width, target, place, target_width):
    """target[j, i] = source[i, j] for 16 rows and columns of float32, from place `first` of a
    C-contiguous array with so many columns to place `place` of another.
    """
    numbers = np.arange(16)
    rows = source.reshape(-1)[first + numbers[:, np.newaxis] * source_width + numbers]
    target.reshape(-1)[place + numbers[:, np.newaxis] * target_width + numbers] = rows.T


@_instruction(
    transpose_tile, lambda source, first, source_width, target, place, target_width: types.none
)
def _emit_transpose_tile(context, builder, signature, arguments):
    """In round s, rows i and i + s exchange their blocks of s columns."""
    vector = ir.VectorType(ir.FloatType(), 16)

    def places(kind, array, first, width):
        for row in range(16):
            offset = builder.add(first, builder.mul(width, ir.Constant(width.type, row)))
            yield _place(context, builder, kind, array, offset, vector)

    rows = [builder.load(place, align=4) for place in places(signature.args[0], *arguments[:3])]
    for s in (1, 2, 4, 8):
        low = _lanes([j if j & s == 0 else 16 + j - s for j in range(16)])
        high = _lanes([j + s if j & s == 0 else 16 + j for j in range(16)])
        for i in range(16):
            if i & s == 0:
                pair = rows[i], rows[i + s]
                rows[i], rows[i + s] = (builder.shuffle_vector(*pair, mask) for mask in (low, high))
    for row, place in zip(rows, places(signature.args[3], *arguments[3:])):
        builder.store(row, place, align=4)
    return context.get_dummy_value()


def _prefetch(builder, place):
    """Ask for a line of memory."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, *3 * [_INT32]])
    function = builder.module.globals.get("llvm.prefetch.p0")
    if function is None:
        function = ir.Function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [builder.bitcast(place, byte), _INT32(0), _INT32(3), _INT32(1)])


def tile_multiplier(n_rows, n_columns):
    """An instruction that multiplies some rows of units, over n of these, by `n_columns` columns,
    a multiple of 16, of weights.
    """

    def multiply_tile(sums, stride, order, place, units, n_units, rows, row_length, n, ahead):
        """sums[c] += units[c, :n] @ rows[:n], in the first columns, for the rows c = order[place],
        …; arrays are flat, and their rows `stride`, `n_units` and `row_length` numbers apart. Half
        of the weights that lie `ahead` of these are asked for.
        """
        columns = np.arange(n_columns)
        for c in order[place : place + n_rows]:
            for k in range(n):
                row = rows[k * row_length + columns]
                sums[c * stride + columns] += units[c * n_units + k] * row

    def result_type(sums, stride, order, place, units, n_units, rows, row_length, n, ahead):
        return types.none

    @_instruction(multiply_tile, result_type)
    def emit(context, builder, signature, arguments):
        """All sums stay in registers from the first to the last unit."""
        sums, stride, order, place, units, n_units, rows, row_length, n, ahead = arguments
        vector = ir.VectorType(ir.FloatType(), _LANES_IN_TILE)
        offsets = [ir.Constant(stride.type, j) for j in range(0, n_columns, _LANES_IN_TILE)]

        def places(array, start):
            return [
                builder.bitcast(builder.gep(array, [builder.add(start, j)]), vector.as_pointer())
                for j in offsets
            ]

        targets = []
        totals = []
        starts = []  # of the rows of units
        for row in range(n_rows):
            chain = builder.load(builder.gep(order, [builder.add(place, place.type(row))]))
            starts.append(builder.mul(chain, n_units))
            targets += places(sums, builder.mul(chain, stride))
        for target in targets:
            totals.append(alloca_once(builder, vector))
            builder.store(builder.load(target, align=4), totals[-1])

        with for_range(builder, n) as loop:
            row = builder.mul(loop.index, row_length)
            weights = [builder.load(each, align=4) for each in places(rows, row)]
            next_lines = places(rows, builder.add(row, ahead))
            for line in next_lines[: (len(offsets) + 1) // 2]:
                _prefetch(builder, line)
            own_totals = iter(totals)
            for start in starts:
                unit = builder.load(builder.gep(units, [builder.add(start, loop.index)]))
                factor = _spread(builder, unit, _LANES_IN_TILE)
                for weight, total in zip(weights, own_totals):
                    product = builder.fmul(factor, weight, flags=("contract",))
                    added = builder.fadd(product, builder.load(total), flags=("contract",))
                    builder.store(added, total)

        for total, target in zip(totals, targets):
            builder.store(builder.load(total), target, align=4)
        return context.get_dummy_value()

    return multiply_tile


# ---- lists
def list_on(array, index, first, n, numbers, values, place):
    """Write those of 16 float32 from place `index` of all on that are not zero, of which the first
    n count, to `values` from place `place` on, and their numbers, `first` and following ones, to
    `numbers` (int32); returns how many. There is room for 16.
    """
    found = array.reshape(-1)[index : index + min(n, _LANES_IN_TILE)]
    on = np.flatnonzero(found)
    numbers.reshape(-1)[place : place + len(on)] = first + on
    values.reshape(-1)[place : place + len(on)] = found[on]
    return len(on)


@_instruction(list_on, lambda array, index, first, n, numbers, values, place: types.int64)
def _emit_list_on(context, builder, signature, arguments):
    """AVX-512 does this at once; else every lane is written, and the next one over it if it is
    zero.
    """
    kinds = signature.args
    array, index, first, n, numbers, values, place = arguments
    vector = ir.VectorType(ir.FloatType(), _LANES_IN_TILE)
    found = builder.load(_place(context, builder, kinds[0], array, index, vector), align=4)
    lanes = _lanes(list(range(_LANES_IN_TILE)))
    counted = builder.icmp_signed(
        "<", lanes, _spread(builder, builder.trunc(n, _INT32), _LANES_IN_TILE)
    )
    on = builder.fcmp_unordered("!=", found, _constant(vector, 0.0))
    on = builder.and_(on, counted)
    own = builder.add(lanes, _spread(builder, builder.trunc(first, _INT32), _LANES_IN_TILE))
    outputs = [
        (own, _data(context, builder, kinds[4], numbers), "v16i32"),
        (found, _data(context, builder, kinds[5], values), "v16f32"),
    ]
    if HAS_LONG_REGISTERS:
        for value, target, name in outputs:
            kind = ir.FunctionType(value.type, [value.type, value.type, on.type])
            name = f"llvm.x86.avx512.mask.compress.{name}"
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            ahead = builder.call(function, [value, _constant(value.type, 0), on])
            place_of_first = builder.gep(target, [place])
            builder.store(ahead, builder.bitcast(place_of_first, value.type.as_pointer()), align=4)
        mask = builder.zext(builder.bitcast(on, ir.IntType(_LANES_IN_TILE)), place.type)
        return builder.ctpop(mask)
    end = place
    for lane in range(_LANES_IN_TILE):
        for value, target, _ in outputs:
            builder.store(builder.extract_element(value, _INT32(lane)), builder.gep(target, [end]))
        is_on = builder.extract_element(on, _INT32(lane))
        end = builder.add(end, builder.zext(is_on, place.type))
    return builder.sub(end, place)


# ---- bits
def differing_bits(first, second, index):
    """Bit b is set where byte b of 64 differs, of two C-contiguous arrays of bytes from place
    `index` of all on (uint64).
    """
    a, b = (array.reshape(-1)[index : index + 64] for array in (first, second))
    return np.uint64(sum(1 << int(bit) for bit in np.flatnonzero(a != b)))


def lowest_bit(mask):
    """The number of the lowest bit that is set (int64); one must be."""
    return (int(mask) & -int(mask)).bit_length() - 1


@_instruction(differing_bits, lambda first, second, index: types.uint64)
def _emit_differing_bits(context, builder, signature, arguments):
    *arrays, index = arguments
    vector = ir.VectorType(ir.IntType(8), 64)
    a, b = (
        builder.load(_place(context, builder, kind, array, index, vector), align=1)
        for kind, array in zip(signature.args, arrays)
    )
    return builder.bitcast(builder.icmp_unsigned("!=", a, b), ir.IntType(64))


@_instruction(lowest_bit, lambda mask: types.int64)
def _emit_lowest_bit(context, builder, signature, arguments):
    return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))


def _bitcast(source, target):
    """An instruction that takes the bits of a number for those of another type."""

    def cast(number):
        return number.view(np.dtype(target.name))

    @_instruction(cast, lambda number: target)
    def emit(context, builder, signature, arguments):
        number = context.cast(builder, arguments[0], signature.args[0], source)
        return builder.bitcast(number, context.get_value_type(target))

    return cast


bits_to_float32 = _bitcast(types.int32, types.float32)
bits_to_float64 = _bitcast(types.int64, types.float64)
float64_to_bits = _bitcast(types.float64, types.int64)

"""Numba building blocks of the topics of documents: digamma, loops over registers, four rows at a
time times a vector.

The products name their registers: LLVM neither adds up a sum in another order than is written nor
sees that rows at computed places don't overlap, and would leave both scalar.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklpf._utils.layout import LANES
from sklpf.kernels import exp64, inlined, log64, njit

FLUSH = 1e-18  # smaller factors count as 0: products of two would be subnormal in float32, and slow


# ---- digamma
@inlined
def _shifted(x):
    """(u, r) with digamma(x) = log u - r for x > 0.

    r = 1/x + ... + 1/(x + 7), in pairs that share t = x (x + 7); u = exp(digamma(x + 8)) by its
    series in v = x + 15/2.
    """
    t = x * x + 7.0 * x
    v = x + 7.5
    product = t * (t + 6.0) * (t + 10.0) * (t + 12.0)
    both = (2.0 * t + 6.0) * (t + 10.0) * (t + 12.0) + (2.0 * t + 22.0) * t * (t + 6.0)
    inverse = 1.0 / (product * v)  # one division for two
    w = inverse * product
    z = w * w
    series = 1 / 24 - z * (37 / 5760 - z * (10313 / 2903040 - z * (5509121 / 1393459200)))
    return v + w * series, (2.0 * x + 7.0) * both * (inverse * v)


@inlined
def exp_digamma(x):
    """exp(digamma(x)) for 1e-300 <= x <= 1e30; 2e-11 relative (digamma below -708 counts as that),
    vectorises.
    """
    u, r = _shifted(x)
    return u * exp64(-r)


@inlined
def digamma(x):
    """digamma(x) for 1e-300 <= x <= 1e30; 2e-11 absolute or 1e-15 relative, vectorises."""
    u, r = _shifted(x)
    return log64(u) - r


@inlined
def log_gamma(x):
    """log Gamma(x) for 1e-300 <= x <= 1e30; 2e-11 absolute or relative, vectorises (Stirling at x +
    8).
    """
    t = x * x + 7.0 * x
    y = x + 8.0
    w = 1.0 / y
    z = w * w
    series = w * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680))))
    stirling = (y - 0.5) * log64(y) - y + 0.9189385332046727 + series
    return stirling - log64(t * (t + 6.0) * (t + 10.0) * (t + 12.0))


@inlined
def trigamma(x):
    """Derivative of digamma for 1e-150 <= x <= 1e30; 1e-11 relative, vectorises (asymptotic series
    at x + 8).
    """
    total = 0.0
    y = x
    for _ in range(8):
        total += 1.0 / (y * y)
        y += 1.0
    w = 1.0 / y
    z = w * w
    return total + w * (1.0 + 0.5 * w + z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30)))))


# ---- registers
@njit
def aligned(shape, like):
    """Zeros of four bytes each from a multiple of 64 bytes on: no register crosses a line of the
    cache.
    """
    size = 1
    for n in shape:
        size *= n
    buffer = np.zeros(size + LANES, like)
    start = (-(buffer.ctypes.data // 4)) % LANES
    return buffer[start : start + size].reshape(shape)


class Loop:
    """Emits a loop over k = 0, step, ... < n, once at least."""

    def __init__(self, builder, n, step=1):
        self.builder = builder
        self.n = n
        self.step = step

    def __enter__(self):
        self.entry = self.builder.block
        self.body, self.end = (self.builder.append_basic_block(name) for name in ("body", "end"))
        self.builder.branch(self.body)
        self.builder.position_at_end(self.body)
        self.k = self.carry(ir.Constant(self.n.type, 0))
        return self

    def carry(self, start):
        """A value that goes from round to round."""
        phi = self.builder.phi(start.type)
        phi.add_incoming(start, self.entry)
        return phi

    def next(self, carried=(), values=()):
        """Set what the carried values are in the next round."""
        following = self.builder.add(self.k, ir.Constant(self.n.type, self.step))
        for phi, value in zip([self.k, *carried], [following, *values]):
            phi.add_incoming(value, self.body)
        self.builder.cbranch(self.builder.icmp_signed("<", following, self.n), self.body, self.end)

    def __exit__(self, *exception):
        self.builder.position_at_end(self.end)


def repeated(kind, value):
    """A constant of a vector type with the same number in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def spread(builder, value, lanes=LANES):
    """A register that holds a number in every lane."""
    undefined = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first, undefined, repeated(ir.VectorType(ir.IntType(32), lanes), 0)
    )


def shifted(builder, values, by):
    """The lanes of a register moved up, with zeros below."""
    places = [LANES + lane - by if lane >= by else 0 for lane in range(LANES)]
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
    return builder.shuffle_vector(repeated(values.type, 0.0), values, places)


def running_sums(builder, values):
    """Sums over lanes 0, ..., j of a register."""
    for by in (1, 2, 4, 8):
        values = builder.fadd(values, shifted(builder, values, by))
    return values


def lanes_below(builder, prefix, share):
    """A share of a register's last number, and how many of its lanes (16 bits) are below that."""
    last = builder.extract_element(prefix, ir.Constant(ir.IntType(32), LANES - 1))
    threshold = builder.fmul(share, last)
    below = builder.fcmp_ordered("<", prefix, spread(builder, threshold))
    return threshold, builder.ctpop(builder.bitcast(below, ir.IntType(LANES)))


# ---- four rows
def _pointers(context, builder, signature, arguments):
    """Arguments with the data of arrays in their place."""
    return [
        context.make_array(kind)(context, builder, value).data
        if isinstance(kind, types.Array)
        else value
        for kind, value in zip(signature.args, arguments)
    ]


def _lanes(signature):
    """Numbers of the first argument's type in a register."""
    return LANES // 2 if signature.args[0].dtype == types.float64 else LANES


@intrinsic
def four_dots(typing_context, weights, rows, starts, first, width, out):
    """out[first + j] = sum of weights[:width] * rows[starts[first + j]:][:width] for j < 4; width
    fills registers.
    """

    def generate(context, builder, signature, arguments):
        _emit_four_dots(
            builder, _lanes(signature), *_pointers(context, builder, signature, arguments)
        )
        return context.get_dummy_value()

    return types.void(weights, rows, starts, types.intp, types.intp, out), generate


@intrinsic
def add_four(typing_context, weights, rows, starts, first, width, out):
    """out[:width] += weights[first + j] * rows[starts[first + j]:][:width] for j < 4; width fills
    registers.
    """

    def generate(context, builder, signature, arguments):
        _emit_add_four(
            builder, _lanes(signature), *_pointers(context, builder, signature, arguments)
        )
        return context.get_dummy_value()

    return types.void(weights, rows, starts, types.intp, types.intp, out), generate


def _emit_four_dots(builder, lanes, weights, rows, starts, first, width, out):
    int32 = ir.IntType(32)
    vector = ir.VectorType(out.type.pointee, lanes)
    indices, begins = _begins(builder, rows, starts, first)
    with Loop(builder, width, lanes) as loop:
        sums = [loop.carry(repeated(vector, 0.0)) for _ in begins]
        shared = _load(loop, weights, vector)
        more = [
            _multiply_add(builder, shared, _load(loop, begin, vector), total)
            for begin, total in zip(begins, sums)
        ]
        loop.next(sums, more)
    for index, value in zip(indices, more):
        n = lanes
        while n > 1:  # add the upper half to the lower
            n //= 2
            low, high = (
                ir.Constant(ir.VectorType(int32, n), [i + s for i in range(n)]) for s in (0, n)
            )
            value = builder.fadd(
                builder.shuffle_vector(value, value, low),
                builder.shuffle_vector(value, value, high),
            )
        builder.store(
            builder.extract_element(value, ir.Constant(int32, 0)), builder.gep(out, [index])
        )


def _emit_add_four(builder, lanes, weights, rows, starts, first, width, out):
    vector = ir.VectorType(out.type.pointee, lanes)
    indices, begins = _begins(builder, rows, starts, first)
    factors = [
        spread(builder, builder.load(builder.gep(weights, [index])), lanes) for index in indices
    ]
    with Loop(builder, width, lanes) as loop:
        total = _load(loop, out, vector)
        for factor, begin in zip(factors, begins):
            total = _multiply_add(builder, factor, _load(loop, begin, vector), total)
        builder.store(total, _place(loop, out, vector), align=4)
        loop.next()


def _begins(builder, rows, starts, first):
    """Numbers of four rows, and where they begin."""
    indices = [builder.add(first, ir.Constant(ir.IntType(64), j)) for j in range(4)]
    return indices, [
        builder.gep(rows, [builder.load(builder.gep(starts, [index]))]) for index in indices
    ]


def _place(loop, begin, vector):
    """Where a loop stands in an array, as a pointer to a register."""
    return loop.builder.bitcast(loop.builder.gep(begin, [loop.k]), vector.as_pointer())


def _load(loop, begin, vector):
    """The register at which a loop stands."""
    return loop.builder.load(_place(loop, begin, vector), align=4)


def _multiply_add(builder, first, second, third):
    """first * second + third, in one operation where there is one."""
    return builder.fadd(
        builder.fmul(first, second, flags=("contract",)), third, flags=("contract",)
    )

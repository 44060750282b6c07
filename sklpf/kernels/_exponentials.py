"""exp in float32 and float64, by polynomials that vectorise."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklpf.kernels._compile import inlined


def bitcast(source, target, to_ir):
    @intrinsic
    def cast(typing_context, value):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], to_ir)

        return target(source), generate

    return cast


_as_float32 = bitcast(types.int32, types.float32, ir.FloatType())
_as_float64 = bitcast(types.int64, types.float64, ir.DoubleType())


@inlined
def exp32(x):
    """exp of a float32, clipped to [-87, 87]; 2e-7 relative, vectorises (reduction by ln 2,
    polynomial of degree 7).
    """
    x = min(max(x, np.float32(-87.0)), np.float32(87.0))
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    r = x - n * np.float32(0.693359375)
    r = r - n * np.float32(-2.12194440e-4)
    p = np.float32(1 / 5040)
    p = p * r + np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(0.5)
    p = p * r + np.float32(1.0)
    p = p * r + np.float32(1.0)
    return p * _as_float32((np.int32(n) + np.int32(127)) << np.int32(23))


@inlined
def exp64(x):
    """exp of a float64, clipped to [-708, 708]; 1e-15 relative, vectorises (polynomial of degree
    13).
    """
    x = min(max(x, -708.0), 708.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = x - n * 6.93145751953125e-1
    r = r - n * 1.42860682030941723212e-6
    p = 1 / 6227020800
    p = p * r + 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _as_float64((np.int64(n) + np.int64(1023)) << np.int64(52))

"""exp and log by polynomials that vectorise, and sums of log(1 + exp)."""

import math

import numpy as np

from sklpf.kernels._compile import inlined, summing
from sklpf.kernels._vectors import bits_to_float32, bits_to_float64, float64_to_bits

_FACTORS = 512  # of 1 to 2, whose product is no overflow


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
    return p * bits_to_float32((np.int32(n) + np.int32(127)) << np.int32(23))


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
    return p * bits_to_float64((np.int64(n) + np.int64(1023)) << np.int64(52))


@inlined
def log64(x):
    """log of a positive normal float64; 1e-15 relative, vectorises (2 artanh, with the coefficients
    of fdlibm).
    """
    bits = float64_to_bits(x)
    mantissa = bits_to_float64((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)  # in [1, 2)
    large = mantissa > 1.4142135623730951
    exponent = np.float64((bits >> 52) - 1023) + (1.0 if large else 0.0)
    mantissa *= 0.5 if large else 1.0
    s = (mantissa - 1.0) / (mantissa + 1.0)
    t = s * s
    p = 1.479819860511658591e-01
    p = p * t + 1.531383769920937332e-01
    p = p * t + 1.818357216161805012e-01
    p = p * t + 2.222219843214978396e-01
    p = p * t + 2.857142874366239149e-01
    p = p * t + 3.999999999940941908e-01
    p = p * t + 6.666666666666735130e-01
    return exponent * 0.6931471805599453 + (2.0 * s + s * t * p)


@summing
def softplus_sum(x, scale):
    """Sum over j of log(1 + e^(s x_j)) = s max(x_j, 0) + log(1 + e^(-s |x_j|)), with s the scale,
    at least 0, in float64; a product of many factors needs one logarithm.
    """
    positive = 0.0
    total = 0.0
    for first in range(0, x.shape[0], _FACTORS):
        product = 1.0
        block = x[first : first + _FACTORS]
        for j in range(block.shape[0]):
            positive += max(block[j], 0.0)
            product *= 1.0 + exp64(-scale * abs(block[j]))
        total += math.log(product)
    return scale * positive + total


@summing
def softplus_sum_and_sigmoids(x):
    """Sum over j of log(1 + e^x_j), in float64; replaces x by the sigmoids."""
    total = 0.0
    for first in range(0, x.shape[0], _FACTORS):
        product = 1.0
        block = x[first : first + _FACTORS]
        for j in range(block.shape[0]):
            a = block[j]
            small = exp64(-abs(a))
            total += max(a, 0.0)
            product *= 1.0 + small
            block[j] = (1.0 if a > 0.0 else small) / (1.0 + small)
        total += math.log(product)
    return total

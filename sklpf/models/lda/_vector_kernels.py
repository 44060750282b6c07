"""Numba building blocks of the topics of documents: digamma and the like, sums and draws, and four
rows at a time times a vector.
"""

import numpy as np

from sklpf._utils.layout import LANES
from sklpf.kernels import exp64, inlined, log64
from sklpf.kernels._vectors import (
    count_below,
    lane,
    lanes_of,
    load,
    multiply_add,
    running_sums,
    store,
    sum_lanes,
    zeros,
)

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


# ---- sums and draws
@inlined
def total_of(values):
    """Sum of an array, (n,); numba compiles four functions for its own."""
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i]
    return total


@inlined
def draw_topic(total, sums, n_topics, u):
    """Draw a topic: first its number modulo 16, then the topic.

    `total` holds the sums of the weights over topics j, j + 16, …, and `sums` (a multiple of 16,)
    these sums over the first 16, 32, … topics. Rounding may reach past the last positive weight, in
    a share of about 1e-7 of the draws: the topic is then the nearest that exists.
    """
    prefix = running_sums(total)
    threshold = u * lane(prefix, LANES - 1)
    j = min(count_below(prefix, threshold), LANES - 1)
    left = threshold - (lane(prefix, j - 1) if j > 0 else np.float32(0))
    topic = j
    for k in range(j, sums.shape[0] - LANES, LANES):
        topic += LANES if sums[k] < left else 0
    return min(topic, n_topics - 1)


# ---- four rows
@inlined
def four_dots(weights, rows, starts, first, width, out):
    """out[first + j] = sum of weights[:width] * rows[starts[first + j]:][:width] for j < 4.

    All are `flat`, and width fills registers.
    """
    a, b, c, d = starts[first], starts[first + 1], starts[first + 2], starts[first + 3]
    sum_a, sum_b, sum_c, sum_d = zeros(out), zeros(out), zeros(out), zeros(out)
    for k in range(0, width, lanes_of(weights)):
        shared = load(weights, k)
        sum_a = multiply_add(shared, load(rows, a + k), sum_a)
        sum_b = multiply_add(shared, load(rows, b + k), sum_b)
        sum_c = multiply_add(shared, load(rows, c + k), sum_c)
        sum_d = multiply_add(shared, load(rows, d + k), sum_d)
    out[first] = sum_lanes(sum_a)
    out[first + 1] = sum_lanes(sum_b)
    out[first + 2] = sum_lanes(sum_c)
    out[first + 3] = sum_lanes(sum_d)


@inlined
def add_four(weights, rows, starts, first, width, out):
    """out[:width] += weights[first + j] * rows[starts[first + j]:][:width] for j < 4.

    All are `flat`, and width fills registers.
    """
    a, b, c, d = starts[first], starts[first + 1], starts[first + 2], starts[first + 3]
    by_a, by_b, by_c, by_d = (
        weights[first],
        weights[first + 1],
        weights[first + 2],
        weights[first + 3],
    )
    for k in range(0, width, lanes_of(out)):
        total = multiply_add(by_a, load(rows, a + k), load(out, k))
        total = multiply_add(by_b, load(rows, b + k), total)
        total = multiply_add(by_c, load(rows, c + k), total)
        total = multiply_add(by_d, load(rows, d + k), total)
        store(out, k, total)

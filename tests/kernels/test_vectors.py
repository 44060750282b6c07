"""Instructions on vectors do in kernels what their bodies do in NumPy, to the bit."""

import numpy as np
import pytest

from sklpf.kernels import _vectors as vectors
from sklpf.kernels import njit
from sklpf.kernels._vectors import (
    bits_to_float32,
    bits_to_float64,
    count_below,
    differing_bits,
    flat,
    float64_to_bits,
    lane,
    lanes_of,
    load,
    lowest_bit,
    multiply_add,
    running_sums,
    store,
    sum_lanes,
    tile_multiplier,
    to_float32,
    zeros,
)


@njit
def arithmetic(a, b, words, whole, out):
    x = load(a, 1)
    y = load(flat(b), 2)
    place = 0
    for result in (x + y, x - y, x * y, 2 * x, x + b[0], zeros(b), running_sums(x)):
        store(out, place, result)
        place += lanes_of(a)
    store(whole, 0, x < y)
    store(whole, lanes_of(a), (x < b[0]) + load(whole, 0))
    store(out, place, to_float32(load(words, 0, 16) >> 9) + to_float32(load(whole, 0, 16)))
    out[-1] = lane(x, 3)
    out[-2] = sum_lanes(x)
    out[-3] = count_below(y, a[0])


@njit
def wide(a, b, out):
    total = zeros(a, 64)
    for k in range(3):
        total = multiply_add(b[k], load(a, k, 64), total)
    store(out, 0, total)


@njit
def bits(first, second, numbers, out):
    out[0] = differing_bits(first, second, 0)
    out[1] = differing_bits(first, second, 3)
    out[2] = lowest_bit(out[1])
    numbers[0] = bits_to_float64(float64_to_bits(numbers[1]) + 1)
    numbers[2] = bits_to_float32(np.int32(1 << 30))


multiply_tile = tile_multiplier(2, 32)


@njit
def tile_product(sums, order, units, rows):
    multiply_tile(flat(sums), 40, flat(order), 1, flat(units), 9, flat(rows), rows.shape[1], 6, 0)


def uncompiled(kernel, *arrays):
    copies = [array.copy() for array in arrays]
    kernel.py_func(*copies)
    return copies


def compiled(kernel, *arrays):
    kernel(*arrays)
    return arrays


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_arithmetic_and_lanes(rng):
    a, b = rng.normal(size=(2, 40)).astype(np.float32)
    words = rng.integers(2**32, size=16, dtype=np.uint32)
    given = a, b, words, np.zeros(32, np.int32), np.zeros(8 * 16 + 3, np.float32)
    expected = uncompiled(arithmetic, *given)
    for found, wanted in zip(compiled(arithmetic, *given), expected):
        np.testing.assert_array_equal(found, wanted)
    assert vectors.lanes_of(a) == 16


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_longer_than_a_register(rng, dtype):
    """Once rounded or twice: within one unit in the last place of each sum's largest term."""
    given = rng.normal(size=80).astype(dtype), rng.normal(size=3).astype(dtype), np.zeros(64, dtype)
    expected = uncompiled(wide, *given)[2]
    np.testing.assert_allclose(compiled(wide, *given)[2], expected, atol=16 * np.finfo(dtype).eps)


def test_bits(rng):
    first, second = rng.integers(2, size=(2, 80), dtype=np.uint8)
    given = first, second, np.array([0.0, 1.5, 0.0]), np.zeros(3, np.uint64)
    expected = uncompiled(bits, *given)
    for found, wanted in zip(compiled(bits, *given), expected):
        np.testing.assert_array_equal(found, wanted)


def test_tiles_of_products(rng):
    """Once rounded or twice: within some units in the last place of sums of six terms of size 1."""
    arrays = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 40), (5, 9), (9, 36)))
    sums, units, rows = arrays
    given = sums, np.array([9, 4, 1, 9]), units, rows
    before = sums.copy()
    expected = uncompiled(tile_product, *given)[0]
    found = compiled(tile_product, *given)[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    before[[4, 1], :32] += units[[4, 1], :6] @ rows[:6, :32]
    np.testing.assert_allclose(found, before, atol=1e-5)

"""Numba building blocks against NumPy in float64: accuracy over their range, extremes, NaN."""

import numba
import numpy as np
import pytest

from sklpf import kernels
from sklpf._utils.layout import aligned_zeros as zeros
from sklpf.kernels import OPTIONS, _layers, _programs

exp32, exp64 = kernels.exp32, kernels.exp64
# not cached: numba's cache does not see changes of called functions
compiled = numba.njit(**OPTIONS)


@compiled
def _map_exp32(x, out):
    for i in range(x.shape[0]):
        out[i] = exp32(x[i])


@compiled
def _map_exp64(x, out):
    for i in range(x.shape[0]):
        out[i] = exp64(x[i])


def mapped(kernel, x):
    out = np.empty_like(x)
    kernel(x, out)
    return out


@pytest.mark.parametrize(
    ("kernel", "dtype", "end", "tolerance"),
    [(_map_exp32, np.float32, 87, 3e-7), (_map_exp64, np.float64, 708, 4e-15)],
)
def test_exponentials_are_accurate_over_their_range(kernel, dtype, end, tolerance):
    x = np.r_[np.linspace(-end, end, 200_001), np.linspace(-1, 1, 20_001)].astype(dtype)
    exact = np.exp(x.astype(np.float64))
    assert np.max(np.abs(mapped(kernel, x) / exact - 1)) < tolerance
    assert mapped(kernel, np.zeros(1, dtype))[0] == 1


@pytest.mark.parametrize("n", [0, 7, 1300])
@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
def test_softplus_sum_equals_numpy(n, scale):
    x = np.random.default_rng(n).normal(scale=300.0, size=n)
    exact = np.logaddexp(0, scale * x).sum()
    assert kernels.softplus_sum(x, scale) == pytest.approx(exact, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(
    ("kernel", "dtype", "limit"), [(_map_exp32, np.float32, 87.0), (_map_exp64, np.float64, 708.0)]
)
@pytest.mark.parametrize("length", [1, 40])  # scalar code and vector code
def test_exp_clips_and_keeps_nan(kernel, dtype, limit, length):
    big = np.finfo(dtype).max
    x = np.array([np.inf, big, -np.inf, -big, np.nan], dtype=dtype)
    for value, expected in zip(x, [limit, limit, -limit, -limit, np.nan]):
        out = mapped(kernel, np.full(length, value, dtype=dtype))
        np.testing.assert_allclose(out, np.exp(expected), rtol=1e-6)


@compiled
def _multiply_all(sums, units, rows):
    n = units.shape[0]
    _layers.add_products(sums, rows, units, np.full(n, -1))


@pytest.mark.parametrize(
    ("n", "m", "width"), [(1, 5, 16), (13, 300, 80), (6, 64, 272), (30, 300, 528)]
)
@pytest.mark.parametrize("share", [0.05, 0.35, 1.0])
def test_a_product_has_the_same_bits_by_sums_by_tiles_and_among_other_rows(n, m, width, share):
    rng = np.random.default_rng(n)
    units = (rng.normal(size=(n, m)) * (rng.random((n, m)) < share)).astype(np.float32)
    rows = rng.normal(size=(m, width + 16)).astype(np.float32)[:, :width]
    start = rng.normal(size=(n, width)).astype(np.float32)
    listed, dense, alone = start.copy(), start.copy(), start.copy()
    for c in range(n):
        on = np.flatnonzero(units[c])[np.newaxis]
        counts = np.array([on.size])
        kernels.add_rows(listed[c : c + 1], rows, on.astype(np.int32), units[c, on], counts)
        _multiply_all(alone[c : c + 1], units[c : c + 1], rows)
    _multiply_all(dense, units, rows)
    np.testing.assert_array_equal(dense, listed)
    np.testing.assert_array_equal(alone, listed)
    # sequential float32 sums of at most 300 terms of size 1 to 4
    exact = start + units.astype(float) @ rows.astype(float)
    np.testing.assert_allclose(listed, exact, atol=2e-4, rtol=0)


@compiled
def _list_units(units, n, first, step, indices, factors, counts):
    off = np.zeros(n, np.uint8)
    products = kernels.Layer(indices, factors, counts, units, off)
    kernels.list_units(products, units.shape[0], n, first, step)


@pytest.mark.parametrize("n", [16, 37])
@pytest.mark.parametrize("kernel", [_list_units, _list_units.py_func])
def test_units_of_every_other_row_are_listed(n, kernel):
    rng = np.random.default_rng(n)
    units = zeros(9, n)
    units[:] = rng.normal(size=units.shape)  # behind the units too
    units[:, :n] *= rng.random((9, n)) < np.linspace(0, 1, 9)[:, np.newaxis]
    shape = 9, n + 16
    indices, factors = np.full(shape, -1, np.int32), np.zeros(shape, np.float32)
    counts = np.full(9, -7)
    kernel(units, n, 1, 2, indices, factors, counts)
    np.testing.assert_array_equal(counts[::2], -7)
    np.testing.assert_array_equal(indices[::2], -1)
    for r in range(1, 9, 2):
        on = np.flatnonzero(units[r, :n])
        if len(on) > _layers._DENSE_SHARE * n:
            assert counts[r] == -1
        else:
            assert counts[r] == len(on)
            np.testing.assert_array_equal(indices[r, : len(on)], on)
            np.testing.assert_array_equal(factors[r, : len(on)], units[r, on])


def test_add_rows_keeps_nan_and_inf():
    rows = np.ones((2, 16), dtype=np.float32)
    rows[1, 5], rows[1, 6] = np.nan, np.inf
    out = np.zeros((1, 16), dtype=np.float32)
    one, weight = np.array([[1]], np.int32), np.ones((1, 1), np.float32)
    kernels.add_rows(out, rows, one, weight, np.array([1]))
    assert np.isnan(out[0, 5])
    assert out[0, 6] == np.inf
    assert np.sum(out[0]) != np.sum(out[0, :5])


def test_a_log_density_that_is_not_a_number_stays_one_in_the_sums_of_tempering():
    """As in the plain loop, after which a run ends with an error."""
    for place in range(3):
        log_densities = np.array([0.0, 1.0, -1.0])
        log_densities[place] = np.nan
        sums = np.zeros(3)
        level = _programs.redraw(log_densities, np.zeros(3), 0.5, sums, np.empty(3))
        assert np.isnan(sums).all()
        assert level == 0

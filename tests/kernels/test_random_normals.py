"""Normal random numbers of chains: against Box and Muller's formula in NumPy, their distribution,
and their streams.

Seeds are fixed; bounds are false alarms at the rates given.
"""

import numpy as np
import pytest
from scipy import stats

from sklpf._utils.random import FIRST, SECOND, Keys, philox
from sklpf.kernels._random import normals

KEYS = Keys(0x12345678, 0x9ABCDEF0, 5, 7)
DIMENSIONS = range(1, 10)  # odd and even, one to three counters


def drawn(n, d, keys=KEYS, purpose=FIRST):
    out = np.full((n, d), np.nan)
    normals(keys, purpose, out)
    return out


def box_muller(n, d, keys, purpose):
    """Words 0 and 1 of every counter give lengths, 2 and 3 angles; the cosines come first, then the
    sines.
    """
    quarter, out = -(-d // 4), np.empty((n, d))
    for c in range(n):
        counter = np.array([[i, keys.step, keys.chain + c, purpose] for i in range(quarter)])
        words = philox(counter, (keys.key0, keys.key1)).T.astype(float)
        radii = np.sqrt(-2 * np.log((words[:2].ravel() + 0.5) / 2**32))
        angles = 2 * np.pi * words[2:].ravel() / 2**32
        out[c] = np.concatenate([radii * np.cos(angles), radii * np.sin(angles)])[:d]
    return out


@pytest.mark.parametrize("d", DIMENSIONS)
def test_normals_are_box_and_mullers(d):
    np.testing.assert_allclose(drawn(40, d), box_muller(40, d, KEYS, FIRST), rtol=0, atol=1e-12)


def test_large_steps_chains_and_keys_agree_with_numpy():
    keys = Keys(2**32 - 1, 2**32 - 1, 2**32 - 100, 2**32 - 1)
    np.testing.assert_allclose(
        drawn(40, 6, keys, SECOND), box_muller(40, 6, keys, SECOND), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("d", DIMENSIONS)
def test_a_block_cut_in_two_has_the_same_numbers(d):
    """To the bit: chains must not depend on the block that they are in, nor on vector lengths."""
    whole = drawn(37, d)
    for cut in (1, 8, 20):
        parts = drawn(cut, d), drawn(37 - cut, d, KEYS._replace(chain=KEYS.chain + cut))
        np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_every_coordinate_is_normal(d):
    """Moments of 20,000 draws of each coordinate, and Kolmogorov and Smirnov's test: false alarms
    in 3e-4 of runs.
    """
    n = 20_000
    x = drawn(n, d, KEYS._replace(step=d))
    moments = [
        np.mean(x, axis=0),
        np.mean(x**2 - 1, axis=0) / 2**0.5,
        np.mean(x**3, axis=0) / 15**0.5,
    ]
    moments.append(np.mean(x**4 - 3, axis=0) / 96**0.5)
    assert np.abs(moments).max() * n**0.5 < 5
    assert min(stats.kstest(column, "norm").pvalue for column in x.T) > 1e-5


def test_tails_are_normal():
    """Exceedances of 4 among 9 million: 570 on average; a false alarm is beyond 4.8 standard
    deviations.
    """
    x = drawn(1_000_000, 9)
    expected = x.size * 2 * stats.norm.sf(4)
    assert abs(np.sum(np.abs(x) > 4) - expected) < 4.8 * expected**0.5
    assert np.isfinite(x).all()
    assert np.abs(x).max() < 6.8


def test_coordinates_chains_and_steps_are_independent():
    """Correlations of values and of squares: 36 + 9 + 9 pairs of either kind, |z| < 5: false alarms
    in 6e-5 of runs.
    """
    n, d = 50_000, 9
    x, later, other = drawn(n, d), drawn(n, d, KEYS._replace(step=8)), drawn(n, d, purpose=SECOND)
    for f in (lambda x: x, lambda x: (x**2 - 1) / 2**0.5):
        within = f(x).T @ f(x) / n**0.5
        assert np.abs(within[np.triu_indices(d, 1)]).max() < 5
        for y in (
            later,
            other,
            np.roll(x, 1, axis=0),
        ):  # the next step, another purpose, the next chain
            assert np.abs(np.mean(f(x) * f(y), axis=0) * n**0.5).max() < 5


def test_other_keys_give_other_numbers():
    x = drawn(10, 4)
    for changed in (
        KEYS._replace(key0=1),
        KEYS._replace(key1=1),
        KEYS._replace(step=8),
        KEYS._replace(chain=100),
    ):
        assert not np.isclose(drawn(10, 4, changed), x).any()

import numpy as np
import pytest

from sklpf._utils.random import FIRST, SECOND, SWAP, Keys, seeded
from sklpf.kernels import random_bits, uniform
from sklpf.kernels._random import normals
from sklpf.paths import Stream, stream_key
from sklpf.transitions import stream_uniforms

# the known answers that the Random123 library publishes for philox4x32-10: counter, key, output
ONES = 0xFFFFFFFF
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def philox(counter, key):
    """Philox4x32-10 (Salmon et al. 2011) in NumPy, of the counters (n, 4): 4 words of 32 bits each,
    as uint64.
    """
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    x0, x1, x2, x3 = (np.asarray(counter, dtype=np.uint64).T) & mask
    k0 = np.uint64(key[0])
    k1 = np.uint64(key[1])
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * x0
        p1 = np.uint64(0xCD9E8D57) * x2
        x0 = (p1 >> shift) ^ x1 ^ k0
        x1 = p1 & mask
        x2 = (p0 >> shift) ^ x3 ^ k1
        x3 = p0 & mask
        k0 = (k0 + np.uint64(0x9E3779B9)) & mask
        k1 = (k1 + np.uint64(0xBB67AE85)) & mask
    return np.stack([x0, x1, x2, x3], axis=1)


def kernel_words(n, key, step, chain, purpose):
    """The kernel's numbers as (counters, words), whatever their order in its buffer."""
    quarter = -(-n // 4)
    out = np.zeros(4 * quarter, dtype=np.uint32)
    random_bits(out, n, *key, step, chain, purpose)
    return out.reshape(4, quarter).T


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_numpy_philox_gives_the_known_answers(counter, key, expected):
    assert tuple(philox(np.array([counter], dtype=np.uint64), key)[0]) == expected


@pytest.mark.parametrize("n", [1, 3, 4, 5, 64, 783, 784])
@pytest.mark.parametrize(
    ("key", "step", "chain", "purpose"),
    [
        ((0, 0), 0, 0, 0),
        ((ONES, ONES), ONES, ONES, 5),
        ((0xA4093822, 0x299F31D0), 0x85A308D3, 0x13198A2E, 3),
        ((1, 2), 2**33 + 7, 11, 1),  # steps beyond 32 bits wrap in the same way
    ],
)
def test_kernel_philox_equals_numpy(n, key, step, chain, purpose):
    counters = np.array([(i, step, chain, purpose) for i in range(-(-n // 4))], dtype=np.uint64)
    np.testing.assert_array_equal(kernel_words(n, key, step, chain, purpose), philox(counters, key))


def test_kernel_uniform_is_inside_the_open_interval_and_exact():
    bits = np.array([0, 1, 2**9, 2**31, 2**32 - 2**9, 2**32 - 1], dtype=np.uint32)
    values = np.array([uniform(b) for b in bits], dtype=np.float32)
    assert np.all((values > 0) & (values < 1))
    # in float64: nothing is rounded
    np.testing.assert_array_equal(values, (bits >> 9) * 2.0**-23 + 2.0**-24)
    assert uniform(np.uint32(0)) + uniform(np.uint32(2**32 - 1)) == 1


def test_stream_uniform_equals_the_kernels():
    stream = Stream((123, 456), chain=7, step=9)
    expected = [uniform(kernel_words(1, stream.key, 9, 7 + c, SWAP)[0, 0]) for c in range(20)]
    np.testing.assert_array_equal(stream_uniforms(stream, 20, SWAP), expected)


def test_streams_of_blocks_steps_purposes_and_stages_share_no_number():
    names = (("pilot",), ("round",), ("round", 0))
    keys = [stream_key(0), stream_key(1), *(seeded(0).of(*name).key for name in names)]
    assert len(set(keys)) == len(keys)
    streams = [Stream(key, chain, step) for key in keys for chain in (0, 16) for step in (0, 1, 2)]
    purposes = FIRST, SECOND, SWAP
    draws = [stream_uniforms(s, 16, purpose) for s in streams for purpose in purposes]
    numbers = np.concatenate(draws)
    # 1440 draws of 2^23 values: Poisson(0.12) agree by chance, more than 3 with probability 9e-6
    assert len(np.unique(numbers)) >= len(numbers) - 3
    starts = {float(s.generator().random()) for s in streams}
    assert len(starts) == len(streams)


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


@pytest.mark.parametrize("d", range(1, 10))  # odd and even, one to three counters
@pytest.mark.parametrize(
    ("keys", "purpose"),
    [
        (Keys(0x12345678, 0x9ABCDEF0, 5, 7), FIRST),
        (Keys(2**32 - 1, 2**32 - 1, 2**32 - 100, 2**32 - 1), SECOND),
    ],
)
def test_normals_are_box_and_mullers(d, keys, purpose):
    out = np.full((40, d), np.nan)
    normals(keys, purpose, out)
    np.testing.assert_allclose(out, box_muller(40, d, keys, purpose), rtol=0, atol=1e-12)

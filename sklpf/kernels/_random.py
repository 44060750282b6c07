"""Random bits and numbers: Philox4x32-10 in numba."""

import math

import numpy as np

from sklpf._utils import random as _random
from sklpf._utils.random import Keys
from sklpf.kernels._compile import borrowing, inlined, njit
from sklpf.kernels._exponentials import exp32, log64

# Purposes of draws; typed, since numba compiles a function anew for each literal number that it is
# given.
FIRST = np.int64(_random.FIRST)
SECOND = np.int64(_random.SECOND)
SWAP = np.int64(_random.SWAP)
ACCEPT = np.int64(_random.ACCEPT)
_SHIFT32 = np.uint64(32)
_MASK32 = np.uint64(0xFFFFFFFF)
_PHILOX_M0 = np.uint64(0xD2511F53)
_PHILOX_M1 = np.uint64(0xCD9E8D57)
_PHILOX_W0 = np.uint64(0x9E3779B9)
_PHILOX_W1 = np.uint64(0xBB67AE85)


@inlined
def _philox(x0, x1, x2, x3, k0, k1):
    """Philox4x32-10 (Salmon et al. 2011) of one counter: four words of 32 bits."""
    for _ in range(10):
        p0 = _PHILOX_M0 * x0
        p1 = _PHILOX_M1 * x2
        x0 = ((p1 >> _SHIFT32) ^ x1 ^ k0) & _MASK32
        x1 = p1 & _MASK32
        x2 = ((p0 >> _SHIFT32) ^ x3 ^ k1) & _MASK32
        x3 = p0 & _MASK32
        k0 = (k0 + _PHILOX_W0) & _MASK32
        k1 = (k1 + _PHILOX_W1) & _MASK32
    return np.uint32(x0), np.uint32(x1), np.uint32(x2), np.uint32(x3)


@borrowing
def random_bits(out, n, key0, key1, step, chain, purpose):
    """Fill out[:n] with random bits; out holds at least 4 * ceil(n / 4) uint32.

    Word w of the counter (i, step, chain, purpose) goes to out[w * ceil(n / 4) + i]: contiguous, so
    that it vectorises.
    """
    quarter = (n + 3) // 4
    c1 = np.uint64(step) & _MASK32
    c2 = np.uint64(chain) & _MASK32
    c3 = np.uint64(purpose)
    for i in range(quarter):
        first, second, third, fourth = _philox(
            np.uint64(i), c1, c2, c3, np.uint64(key0), np.uint64(key1)
        )
        out[i] = first
        out[quarter + i] = second
        out[2 * quarter + i] = third
        out[3 * quarter + i] = fourth


@borrowing
def bits_of_one_chain(out, n, keys, chain, purpose):
    """Fill out[:n] with `random_bits` of one chain of a block."""
    random_bits(out, n, keys.key0, keys.key1, keys.step, keys.chain + chain, purpose)


@inlined
def uniform(bits):
    """A uniform float32 in (0, 1), ends excluded, from the upper 23 of 32 random bits: every value
    is exact.
    """
    return np.float32(bits >> np.uint32(9)) * np.float32(2.0**-23) + np.float32(2.0**-24)


@borrowing
def chain_uniform(keys, chain, purpose, bits):
    """A uniform float32 of one chain of a block; bits (4,) is work space."""
    bits_of_one_chain(bits, 1, keys, chain, purpose)
    return uniform(bits[0])


@inlined
def at_sweep(keys, t):
    """The same random stream t sweeps later."""
    return Keys(keys.key0, keys.key1, keys.chain, keys.step + t)


@borrowing
def draw_categories(logits, starts, bits, units):
    """In each group of units starts[g] <= i < starts[g + 1] turn on one, with probability
    proportional to exp(logits_i), and turn off all others; logits (float32) are overwritten.
    """
    n_groups = starts.shape[0] - 1
    for g in range(n_groups):
        largest = logits[starts[g]]
        for i in range(starts[g] + 1, starts[g + 1]):
            largest = max(largest, logits[i])
        for i in range(starts[g], starts[g + 1]):
            logits[i] -= largest

    # All groups at once: a loop over one is too short to vectorise.
    for i in range(starts[n_groups]):
        logits[i] = exp32(logits[i])
        units[i] = 0

    for g in range(n_groups):
        last = starts[g + 1] - 1
        total = 0.0
        for i in range(starts[g], last + 1):
            total += np.float64(logits[i])
        chosen = starts[g]
        left = np.float64(uniform(bits[g])) * total - np.float64(logits[chosen])
        while left >= 0.0 and chosen < last:
            chosen += 1
            left -= np.float64(logits[chosen])
        units[chosen] = 1


@borrowing
def draw_units(inputs, starts, bits, n, units):
    """Draw n units given their inputs (float32), each on with probability sigmoid(input), or with
    more than one start as `draw_categories` does.
    """
    if starts.shape[0] > 1:
        draw_categories(inputs, starts, bits, units)
        return
    one = np.float32(1.0)
    for i in range(n):
        units[i] = np.uint8(uniform(bits[i]) * (one + exp32(-inputs[i])) < one)


@inlined
def _cos_sin(bits):
    """Cosine and sine of 2 pi bits / 2^32; 1e-15 absolute, vectorises (series up to an eighth of a
    turn).
    """
    q = (bits + np.uint32(1 << 29)) >> np.uint32(30)  # the nearest quarter; modulo 2^32
    x = np.float64(np.int32(bits << np.uint32(2))) * (6.283185307179586 * 2.0**-34)  # from there
    t = x * x
    s = 1 / 6227020800
    s = s * t - 1 / 39916800
    s = s * t + 1 / 362880
    s = s * t - 1 / 5040
    s = s * t + 1 / 120
    s = s * t - 1 / 6
    s = x + x * t * s
    c = -1 / 87178291200
    c = c * t + 1 / 479001600
    c = c * t - 1 / 3628800
    c = c * t + 1 / 40320
    c = c * t - 1 / 720
    c = c * t + 1 / 24
    c = c * t - 0.5
    c = c * t + 1.0
    odd = (q & np.uint32(1)) != 0
    cosine, sine = (s, c) if odd else (c, s)
    if ((q + np.uint32(1)) & np.uint32(2)) != 0:
        cosine = -cosine
    if (q & np.uint32(2)) != 0:
        sine = -sine
    return cosine, sine


@inlined
def bits_of_all_chains(out, quarter, keys, purpose):
    """Write what `random_bits` gives for 4 quarter words of n chains, out (4 quarter, n);
    vectorises over chains.
    """
    for i in range(quarter):
        bits_of_counter(out, i, quarter, i, keys, purpose)


@inlined
def bits_of_counter(out, row, quarter, counter, keys, purpose):
    """Fill the rows row, quarter + row, … of out (4 quarter, n) with the four words of one counter
    of n chains; vectorises over chains.
    """
    c1 = np.uint64(keys.step) & _MASK32
    c3 = np.uint64(purpose)
    chain = np.uint64(keys.chain)
    first = out[row]
    second = out[quarter + row]
    third = out[2 * quarter + row]
    fourth = out[3 * quarter + row]
    for c in range(out.shape[1]):
        first[c], second[c], third[c], fourth[c] = _philox(
            np.uint64(counter),
            c1,
            (chain + np.uint64(c)) & _MASK32,
            c3,
            np.uint64(keys.key0),
            np.uint64(keys.key1),
        )


@njit
def uniforms(keys, purpose, out):
    """Fill out (n,) with a uniform number for each chain."""
    bits = np.empty((4, out.shape[0]), np.uint32)
    bits_of_all_chains(bits, 1, keys, purpose)
    for c in range(out.shape[0]):
        out[c] = uniform(bits[0, c])


@njit
def normals(keys, purpose, out):
    """Fill out (n, d) with standard normal numbers, d for each chain (Box and Muller 1958).

    They reach 6.7 standard deviations, beyond which 3e-11 of the distribution lies.
    """
    n, d = out.shape
    quarter = (d + 3) // 4
    bits = np.empty((4 * quarter, n), np.uint32)
    drawn = np.empty((4 * quarter, n))
    bits_of_all_chains(bits, quarter, keys, purpose)
    half = 2 * quarter
    for j in range(half):
        lengths = bits[j]
        angles = bits[half + j]
        cosines = drawn[j]
        sines = drawn[half + j]
        for c in range(n):
            radius = math.sqrt(-2.0 * log64((np.float64(lengths[c]) + 0.5) * 2.0**-32))
            cosine, sine = _cos_sin(angles[c])
            cosines[c] = radius * cosine
            sines[c] = radius * sine
    for c in range(n):
        for j in range(d):
            out[c, j] = drawn[j, c]

"""Random bits and numbers: Philox4x32-10 in numba."""

import numpy as np

from sklpf.kernels._compile import inlined

_SHIFT32 = np.uint64(32)
_MASK32 = np.uint64(0xFFFFFFFF)
_PHILOX_M0, _PHILOX_M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_PHILOX_W0, _PHILOX_W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@inlined
def random_bits(out, n, key0, key1, step, chain, purpose):
    """Philox4x32-10 (Salmon et al. 2011): fill out[:n]; out holds at least 4 * ceil(n / 4) uint32.

    Word w of the counter (i, step, chain, purpose) goes to out[w * ceil(n / 4) + i]: contiguous, so that it vectorises.
    """
    quarter = (n + 3) // 4
    c1, c2, c3 = np.uint64(step) & _MASK32, np.uint64(chain) & _MASK32, np.uint64(purpose)
    for i in range(quarter):
        x0, x1, x2, x3 = np.uint64(i), c1, c2, c3
        k0, k1 = np.uint64(key0), np.uint64(key1)
        for _ in range(10):
            p0, p1 = _PHILOX_M0 * x0, _PHILOX_M1 * x2
            x0, x1 = ((p1 >> _SHIFT32) ^ x1 ^ k0) & _MASK32, p1 & _MASK32
            x2, x3 = ((p0 >> _SHIFT32) ^ x3 ^ k1) & _MASK32, p0 & _MASK32
            k0, k1 = (k0 + _PHILOX_W0) & _MASK32, (k1 + _PHILOX_W1) & _MASK32
        out[i], out[quarter + i] = np.uint32(x0), np.uint32(x1)
        out[2 * quarter + i], out[3 * quarter + i] = np.uint32(x2), np.uint32(x3)


@inlined
def uniform(bits):
    """A uniform float32 in (0, 1), ends excluded, from the upper 23 of 32 random bits: every value is exact."""
    return np.float32(bits >> np.uint32(9)) * np.float32(2.0**-23) + np.float32(2.0**-24)

"""Layout of float32 arrays in memory: rows fill whole registers, and begin where a line of the
cache does.
"""

import math

import numpy as np
from numpy.typing import DTypeLike, NDArray

LANES = 16  # float32 in one AVX-512 register, which is as long as a line of the cache


def padded(n: int) -> int:
    """The next multiple of a register."""
    return -(-n // LANES) * LANES


def aligned(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
    """Zeros of four bytes each that begin at a multiple of 64 bytes.

    NumPy aligns to 16, and vectors that straddle two cache lines take a fifth to a third longer to
    add.
    """
    size = math.prod(map(int, shape))
    raw = np.zeros(size + LANES, dtype)
    first = -raw.ctypes.data % 64 // 4
    return raw[first : first + size].reshape(shape)


def aligned_zeros(n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Aligned float32 of shape (n_rows, n_columns padded to a register)."""
    return aligned((n_rows, padded(n_columns)), np.float32)

"""How float32 arrays lie in memory: rows fill whole registers, and begin where a line of the cache
does.
"""

import numpy as np
from numpy.typing import NDArray

LANES = 16  # float32 in one AVX-512 register, which is as long as a line of the cache


def padded(n: int) -> int:
    """The next multiple of a register."""
    return -(-n // LANES) * LANES


def aligned_zeros(n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Zeros of shape (n_rows, n_columns padded to a register) that begin at a multiple of 64 bytes.

    NumPy aligns to 16, and vectors that straddle two cache lines take a fifth to a third longer to
    add.
    """
    width = padded(n_columns)
    raw = np.zeros(n_rows * width + LANES, dtype=np.float32)
    first = -raw.ctypes.data % 64 // 4
    return raw[first : first + n_rows * width].reshape(n_rows, width)

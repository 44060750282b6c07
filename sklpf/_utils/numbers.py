"""Types of arrays, and a constant."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Bits = NDArray[np.uint8]  # 0 and 1
Matrix = NDArray | sp.csr_matrix  # rows of a model, dense or sparse

LOG_TAU = np.log(2 * np.pi)

"""The one numba decorator of the package. Only kernel modules import this file, and they are imported lazily."""

import warnings
from typing import Any

import numba

# error_model="numpy": division by zero gives inf, as NumPy does. The fast-math flags keep NaN and inf intact.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}


def njit(function, **options):
    """Compile `function` without the GIL, cached on disk where a cache directory is writable."""
    options = _OPTIONS | options
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no writable cache directory
        warnings.warn(
            "no directory for numba's cache is writable, so kernels are compiled again in every process; "
            "set NUMBA_CACHE_DIR to a writable directory",
            RuntimeWarning,
            stacklevel=1,  # one place, so that Python shows it once
        )
        return numba.njit(**options)(function)


def inlined(function):
    """Like `njit`, and made a part of its callers: counting references to arrays that a call hands on takes 100 ns."""
    return njit(function, forceinline=True)

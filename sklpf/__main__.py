"""`python -m sklpf`: what a bug report needs about this installation."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import pkgutil
import platform
from collections.abc import Iterator
from pathlib import Path

from numba.core.dispatcher import Dispatcher

import sklpf

_PACKAGES = ("sklpf", "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "joblib")


def main() -> None:
    """Print versions, and for each module where its kernels are kept and how many are compiled."""
    print(f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} CPUs")
    for package in _PACKAGES:
        print(package, importlib.metadata.version(package))
    print("compiled kernels (others are compiled at their first use; sklpf.warm_up() does all):")
    for module in pkgutil.walk_packages(sklpf.__path__, "sklpf."):
        if "kernels" not in module.name:
            continue
        kernels = list(_kernels(module.name))
        if not kernels:
            continue
        n_compiled = sum(_is_compiled(kernel) for kernel in kernels)
        directory = kernels[0].stats.cache_path
        print(f"  {module.name}: {n_compiled} of {len(kernels)}, in {directory}")


def _kernels(module: str) -> Iterator[Dispatcher]:
    """The kernels that a module defines."""
    for value in vars(importlib.import_module(module)).values():
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module:
            yield value


def _is_compiled(kernel: Dispatcher) -> bool:
    """True if numba's cache holds an index of it; of any processor, and perhaps an older one."""
    directory = kernel.stats.cache_path
    if directory is None:
        return False
    module = Path(kernel.py_func.__code__.co_filename).stem
    return any(Path(directory).glob(f"{module}.{kernel.py_func.__qualname__}-*.nbi"))


if __name__ == "__main__":
    main()

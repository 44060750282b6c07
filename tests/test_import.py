"""What is imported when, and `python -m sklpf`."""

import runpy
import subprocess
import sys

import pytest
from library import ROOT

import sklpf


def run(code, **environment):
    """The output of Python code in a fresh process, with warnings on stderr."""
    import os

    command = [sys.executable, "-W", "default", "-c", code]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


LATE = """
import sys
def heavy():
    names = "numba", "sklearn", "scipy", "matplotlib"
    print([name for name in names if name in sys.modules])
import sklpf
heavy()
print(sklpf.interop.__name__, "interop" in dir(sklpf))
from sklpf import AIS, Exact, Path
AIS(), Exact(), Path()
import sklpf.display
import sklpf.programs._programs
heavy()
"""


def test_the_package_imports_nothing_heavy_estimators_no_numba_and_displays_no_matplotlib():
    output, _ = run(LATE)
    assert output == "[]\nsklpf.interop True\n['sklearn', 'scipy']\n"


def test_names_are_known_and_misspelt_ones_are_not():
    assert set(sklpf.__all__) <= set(dir(sklpf))
    with pytest.raises(AttributeError, match="module 'sklpf' has no attribute 'Nothing'"):
        _ = sklpf.Nothing


def test_versions_and_kernels_are_printed(capsys):
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Python ")
    assert f"sklpf {sklpf.__version__}" in lines
    assert any(line.startswith("  sklpf.models.rbm._path_kernels: ") for line in lines)


def test_kernels_work_without_a_writable_cache_and_say_so_once():
    code = """
from numba.core import caching
implementation = caching.CompileResultCacheImpl
# the folder of NUMBA_CACHE_DIR alone
implementation._locator_classes = implementation._locator_classes[:1]
from sklpf.kernels import random_bits
import numpy as np
out = np.zeros(4, dtype=np.uint32)
random_bits(out, 4, 0, 0, 0, 0, 0)
print(hex(out[0]))
"""
    output, errors = run(code, NUMBA_CACHE_DIR="/proc/no/such/folder")
    assert output == "0x6627e8d5\n"
    assert errors.count("no directory for numba's cache is writable") == 1

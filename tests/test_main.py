"""`python -m sklpf`."""

import subprocess
import sys

import sklpf


def test_versions_and_kernels_are_printed():
    command = [sys.executable, "-m", "sklpf"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines[0].startswith("Python ")
    assert f"sklpf {sklpf.__version__}" in lines
    assert any(line.startswith("  sklpf.models.rbm._path_kernels: ") for line in lines)

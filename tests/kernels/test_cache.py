"""Compiled kernels are kept under a digest of all that they include, so that an edit elsewhere is
never missed.
"""

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numba
import pytest
from numba.core import event
from numba.core.caching import NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher

import sklpf
from sklpf.kernels import _compile, _programs

ROOT = Path(sklpf.__file__).parent
FILES = [*sorted((ROOT / "kernels").glob("_*.py")), *sorted(ROOT.glob("*/**/*kernels.py"))]
FILES = [file for file in FILES if file.name != "__init__.py"]


def module_of(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return importlib.import_module("sklpf." + ".".join(parts))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_cached_functions_carry_the_digest(file):
    digest, module = _compile._digest(file.parent), module_of(file)
    functions = (f for f in vars(module).values() if isinstance(f, CPUDispatcher))
    own = [f for f in functions if f.py_func.__module__ == module.__name__]
    cached = [function for function in own if not isinstance(function._cache, NullCache)]
    assert all(function.py_func.__qualname__.endswith("_" + digest) for function in cached)
    if file.name.endswith("kernels.py"):
        assert cached == own  # nothing of a model is compiled anew in every process


@pytest.mark.parametrize("name", ["anneal", "exchange", "temper", "log_f"])
@pytest.mark.parametrize(
    "file", sorted(ROOT.glob("models/*/_path_kernels.py")), ids=lambda file: file.parent.name
)
def test_programs_carry_the_digest_of_their_model(file, name):
    """Machine code of a program holds the hooks of the model that it was compiled for."""
    program = _programs.compiled(getattr(_programs, name), module_of(file).__name__)
    assert not isinstance(program._cache, NullCache)
    assert program.py_func.__qualname__ == f"{name}_{_compile._digest(file.parent)}"


def digested(folder):
    """The files that the digest of a folder reads."""
    read, original = set(), Path.read_bytes

    def note(self):
        read.add(self.resolve())
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", note)
        _compile._digest.__wrapped__(folder)
    return read


COMPILED = [file for file in FILES if file.name != "_compile.py"]


@pytest.mark.parametrize("file", COMPILED, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_digest_knows_every_file_that_is_imported_from(file):
    """What a kernel imports from this package is built into its machine code."""
    known = digested(file.parent)
    assert file.resolve() in known
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("sklpf"):
            for alias in node.names:
                parts = [*node.module.split(".")[1:], alias.name]
                while not (
                    ROOT.joinpath(*parts).with_suffix(".py").exists()
                    or ROOT.joinpath(*parts).is_dir()
                ):
                    parts.pop()  # a name in a module
                found = ROOT.joinpath(*parts)
                found = found / "__init__.py" if found.is_dir() else found.with_suffix(".py")
                assert found.resolve() in known, f"{found} is not in the digest"


# ---- an edit is seen
def test_an_interruption_that_llvm_loses_is_one(tmp_path, monkeypatch):
    """llvmlite ignores what is raised while machine code is handed over, and so loses the code."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @_compile.njit
    def double(x):
        return 2 * x

    lost = mock.patch.object(JITCodeLibrary, "_get_compiled_object", side_effect=RuntimeError)
    with lost, pytest.raises(KeyboardInterrupt):
        double(1.0)
    assert double(1.0) == 2.0


RUN = """
import numpy as np
from sklpf.models.rbm import _free_energy_kernels as kernels
import sklpf, sys
assert sklpf.__file__.startswith(sys.argv[1])
out = np.empty(1)
kernels.softplus_sums(np.array([[100.0, -3.0]]), out)
print(out[0], sum(kernels.softplus_sums.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package that may be edited."""
    shutil.copytree(ROOT, tmp_path / "sklpf", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "sklpf"


def output(package, code):
    """What code prints in a fresh process with that copy."""
    folder = package.parent
    paths = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", code, str(package)]
    options = {"capture_output": True, "text": True, "timeout": 300, "cwd": folder}
    result = subprocess.run(command, env={**os.environ, **paths}, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def run(package):
    """What a fresh process computes with that copy, and how many kernels it found compiled."""
    value, hits = output(package, RUN).split()
    return float(value), int(hits)


@pytest.mark.large
def test_a_change_of_a_shared_kernel_is_seen(package):
    first, hits = run(package)
    assert hits == 0
    assert run(package) == (first, 1)  # kept
    users = package / "models" / "rbm" / "_free_energy_kernels.py"
    shared = package / "kernels" / "_exponentials.py"
    before, content = users.stat(), shared.read_text(encoding="utf-8")
    times = shared.stat().st_atime_ns, shared.stat().st_mtime_ns
    edited = content.replace("+ 1.0\n    return", "+ 2.0\n    return", 1)
    assert len(edited) == len(content)
    assert edited != content
    shared.write_text(edited, encoding="utf-8")
    os.utime(shared, ns=times)  # not even the edited file's time and size show the change
    # Python's own cache goes by these
    shutil.rmtree(package / "kernels" / "__pycache__", ignore_errors=True)
    second, hits = run(package)
    assert (users.stat().st_mtime_ns, users.stat().st_size) == (before.st_mtime_ns, before.st_size)
    assert hits == 0
    assert abs(second - first) > 0.01
    shared.write_text(content, encoding="utf-8")
    shutil.rmtree(package / "kernels" / "__pycache__", ignore_errors=True)
    assert run(package) == (first, 1)  # the first version's machine code is still there


FIT = """
import numpy as np
import sklpf
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 4)) + 4 * rng.integers(2, size=(200, 1))
model = sklpf.MeanCovarianceRBM(max_iter=3, tol=None, random_state=0).fit(X)
print(model.factors_.tobytes().hex())
"""


@pytest.mark.large
def test_the_process_that_compiles_gives_the_bits_of_later_ones(package):
    assert output(package, FIT) == output(package, FIT)


@_compile.inlined
def part(x):
    return x + 1.0


@_compile.inlined
def larger_part(x):
    return 2.0 * part(x)


@numba.njit(**_compile.OPTIONS, pipeline_class=_compile._KernelCompiler)
def kernel(x):
    return part(x) + larger_part(x)


def test_a_part_is_compiled_once_for_all_its_callers():
    with event.install_recorder("numba:compile") as recorder:
        assert kernel(1.0) == 6.0
    begun = [each for _, each in recorder.buffer if each.is_start]
    names = [each.data["dispatcher"].py_func.__name__ for each in begun]
    assert sorted(names) == ["kernel", "larger_part", "part"]

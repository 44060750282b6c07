"""The one numba decorator of the package."""

import functools
import hashlib
import logging
import multiprocessing
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import parse_assembly
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.targetconfig import ConfigStack
from numba.extending import register_jitable

from sklpf._utils import context as _context

_NOTICE = (
    "sklpf compiles what it needs at its first use, 10 to 30 seconds for a model, and keeps it for"
    " later processes; sklpf.warm_up() compiles everything ahead"
)

# error_model="numpy": division by zero gives inf, as NumPy does. The fast-math flags keep NaN and
# inf intact. No kernel is called from C, for which numba would compile a wrapper around each.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz"},
    "no_cfunc_wrapper": True,
    "forceinline": False,  # else that of the first caller, as the next
    "_nrt": True,
}


class _Part(JITCodeLibrary):
    """The code of a function that only other compiled functions call, which take it as it is.

    numba optimises every function and makes machine code of it before it copies it into those that
    call it, where it is optimised again: half of the time of compiling a deep program.
    """

    def _optimize_final_module(self):
        """Leave this to the functions that call it."""

    def _finalize_final_module(self):
        """Hand only the addresses of environments to the engine, which numba writes to."""
        self._finalize_dynamic_globals()
        environments = [
            str(variable)
            for variable in self._final_module.global_variables
            if variable.name.startswith("_ZN08NumbaEnv")
        ]
        self._codegen._add_module(parse_assembly("\n".join(environments)))
        self._finalize_specific()
        self._finalized = True


class _KernelCompiler(Compiler):
    """Compiles each function that a kernel or a part calls with the same flags, whoever calls it.
    numba takes the caller's flags, and would compile it once for kernels and again for parts.
    """

    def define_pipelines(self):
        flags = ConfigStack().top()
        flags.forceinline = True
        flags.no_cpython_wrapper = True
        flags.dbg_optnone = False
        return super().define_pipelines()


class _PartCompiler(_KernelCompiler):
    def define_pipelines(self):
        state = self.state
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class _Wide(JITCodeLibrary):
    """Code whose loops use registers of 512 bits where there are, of which LLVM prefers half."""

    def add_ir_module(self, ir_module):
        for function in ir_module.functions:
            if not function.is_declaration:
                set.add(function.attributes, '"prefer-vector-width"="512"')
        super().add_ir_module(ir_module)


class _WideCompiler(_KernelCompiler):
    def define_pipelines(self):
        state = self.state
        state.library = _Wide(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


# Of functions that only other compiled functions call.
PART: dict[str, Any] = OPTIONS | {"pipeline_class": _PartCompiler}
# Of functions that neither make nor return arrays: references to arrays are not counted, which took
# a third of a sweep of small models.
BORROWS: dict[str, Any] = {"_nrt": False}
# Of kernels without sums of many numbers, whose bits depend on the length of registers.
WIDE: dict[str, Any] = {"pipeline_class": _WideCompiler}
# Of functions whose sums may be taken in another order, so that they vectorise.
SUMS: dict[str, Any] = {"fastmath": {*OPTIONS["fastmath"], "reassoc"}}


def njit(function, *, folder: Path | None = None, **options):
    """Compile `function` without the GIL, cached on disk where a cache directory is writable.

    numba's cache knows the time and size of the function's own file alone, and would go on using
    machine code that includes a former version of a function in another file. The name under which
    it is kept therefore ends in a digest of what it may include: the shared kernels, those of moves
    and of a folder (by default its own) and the one above with the states they work on, and the
    constants that these take from elsewhere.
    """
    options = OPTIONS | {"pipeline_class": _KernelCompiler} | options
    folder = Path(function.__code__.co_filename).parent if folder is None else folder
    function.__qualname__ += "_" + _digest(folder)
    try:
        return _mending(numba.njit(cache=True, **options)(function))
    except RuntimeError:  # numba found no writable cache directory
        warnings.warn(
            "no directory for numba's cache is writable, so kernels are compiled again in every"
            " process; set NUMBA_CACHE_DIR to a writable directory",
            RuntimeWarning,
            stacklevel=1,  # one place, so that Python shows it once
        )
        return numba.njit(**options)(function)


def _mending(dispatcher):
    """Let a function be compiled anew where its file in the cache can't be read, as one that a full
    disk has cut off, at which numba would raise UnpicklingError at every start.

    An interruption while LLVM hands over the machine code is lost in its callback, and numba then
    has none to save, which is a RuntimeError: it is a KeyboardInterrupt here.
    """
    cache = dispatcher._cache
    files = cache._cache_file
    load, save = files.load, cache.save_overload

    def load_or_forget(key):
        try:
            return load(key)
        except Exception:  # whatever unpickling raises
            try:
                files.flush()
            except OSError:
                cache.disable()
            return None

    def save_unless_interrupted(*arguments):
        try:
            save(*arguments)
        except RuntimeError as error:
            raise KeyboardInterrupt from error

    files.load = load_or_forget
    cache.save_overload = save_unless_interrupted
    return dispatcher


def inlined(function, /, **options):
    """Compile a function into the kernels that call it; Python that calls it gets it uncompiled.

    numba would compile a wrapper for calls from Python, and keep the function on disk once more.
    Its code is always copied: a call would count references to arrays, and in the process that
    compiles it would run other machine code than in later ones, with other last bits.
    """
    return register_jitable(**(PART | {"forceinline": True} | options))(function)


def borrowing(function, /, **options):
    """Compile a function that neither makes nor returns arrays, as `inlined` does."""
    return inlined(function, **BORROWS, **options)


def summing(function, /):
    """Compile a function as `borrowing` does, whose sums may be taken in another order."""
    return borrowing(function, **SUMS)


@functools.cache
def _digest(folder: Path) -> str:
    """Digest of the source of the kernels of a folder and the one above, of the shared ones, those
    of bases and of moves, and of constants.
    """
    package = Path(__file__).parent.parent
    files = [
        *(package / "kernels").glob("*.py"),
        *(package / "_utils" / f"{name}.py" for name in ("layout", "limits", "random")),
        *(package / "paths" / f"{name}.py" for name in ("_bases", "_density_kernels")),
        *(package / "transitions").glob("*kernels.py"),
        *folder.parent.glob("*kernels.py"),
        *folder.glob("*kernels.py"),
        *folder.glob("*_path.py"),  # with the states that kernels work on
    ]
    content = b"".join(file.read_bytes() for file in sorted(set(files)))
    return hashlib.blake2b(content, digest_size=5).hexdigest()


class _Announcer(event.Listener):
    """Says that the caller waits for the compiler and not for a model: each fit with `verbose`,
    else the log, once for each file of kernels. Takes this time off the clock that tells how long
    is left.
    """

    def __init__(self):
        self.depth = 0
        self.began = 0.0
        self.announced = set()

    def on_start(self, event):
        module = event.data["dispatcher"].py_func.__module__ or ""
        if self.depth == 0:
            self.began = time.perf_counter()
            if module.startswith("sklpf."):
                self.announce(module)
        self.depth += 1

    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            _context.compiler_worked(time.perf_counter() - self.began)

    def announce(self, module):
        if (
            not _context.compiler_begins("compiling kernels, once, about 10 s")
            and module not in self.announced
        ):
            logging.getLogger("sklpf").info("compiling kernels for %s, once, about 10 s", module)
            if not self.announced and _somebody_waits():
                _context.put(_NOTICE, sys.stderr)
        self.announced.add(module)


def _somebody_waits() -> bool:
    """True if a person sees the standard error of this process, which is no worker."""
    if multiprocessing.current_process().name != "MainProcess":
        return False
    try:
        at_terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, it was replaced, or it is closed
        at_terminal = False
    return at_terminal or "ipykernel" in sys.modules


event.register("numba:compile", _Announcer())

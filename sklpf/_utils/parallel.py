"""Blocks of chains in parallel, segment by segment, with optional checkpoints.

A task is one block and one segment of sweeps: arrays in, arrays out. Blocks and segments never
depend on the number of jobs, and random numbers depend on (key, block, sweep) alone, so every back
end gives the same bits.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from contextvars import ContextVar, copy_context
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import joblib
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

from sklpf._utils import context as _context
from sklpf._utils.context import (
    Budget,
    BudgetSpent,
    current_budget,
    evaluations_here,
    holding,
    spending,
)


class _BLASLimit:
    """The limit of BLAS to one thread, from the first thread that asks for it to the last.

    Most libraries have one number of threads for the process, so that a thread that set back what
    it had found would lift the limit of the others, or leave theirs for good. OpenBLAS on OpenMP
    has a number for each thread.
    """

    def __init__(self):
        self._lock = threading.RLock()
        self._threads: set[int] = set()  # in the limit
        self._before: dict[int, int] = {}  # number of threads of shared libraries, by position

    def holds(self, thread: int) -> bool:
        return thread in self._threads

    def enter(self, thread: int) -> list[int]:
        """Limit BLAS, and return the numbers of threads of libraries that have one for each."""
        shared, own = _blas()
        with self._lock:
            self._threads.add(thread)
            for position, library in enumerate(shared):
                n_threads = library.get_num_threads()
                if n_threads != 1:
                    self._before[position] = n_threads
                    _set_blas_threads(library, 1)
        numbers = [library.get_num_threads() for library in own]
        for library in own:
            library.set_num_threads(1)
        return numbers

    def leave(self, thread: int, numbers: list[int]) -> None:
        """Give up a thread's limit; the last one sets back what is still limited."""
        shared, own = _blas()
        for library, n_threads in zip(own, numbers):
            library.set_num_threads(n_threads)
        with self._lock:
            self._threads.discard(thread)
            self._restore(shared)

    def _restore(self, shared) -> None:
        if self._threads:
            return
        for position, n_threads in self._before.items():
            if shared[position].get_num_threads() == 1:
                _set_blas_threads(shared[position], n_threads)
        self._before = {}

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget the threads that the child does not have."""
        self._lock = threading.RLock()
        self._threads &= {threading.get_ident()}
        if self._before:
            self._restore(_blas()[0])


@functools.cache
def _blas() -> tuple[list[Any], list[Any]]:
    """BLAS libraries with one number of threads for the process, and with one for each thread."""
    import scipy.linalg  # noqa: F401 - loads SciPy's own BLAS before the libraries are counted

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [each for each in libraries if getattr(each, "threading_layer", None) == "openmp"]
    return [each for each in libraries if each not in own], own


def _set_blas_threads(library, n_threads: int) -> None:
    # newer versions of threadpoolctl ignore all threads but the one that was first to set a number
    free = getattr(library, "clear_controlling_thread", None)
    if free is not None:
        free(force=True)
    library.set_num_threads(n_threads)
    if free is not None and n_threads != 1:
        free(force=True)


_LIMIT = _BLASLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LIMIT.before_fork,
        after_in_parent=_LIMIT.after_fork_in_parent,
        after_in_child=_LIMIT.after_fork_in_child,
    )


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS runs on one thread: more of them give other bits, and compete with
    the blocks. An interruption that comes while numba converts what a kernel takes or gives, which
    it makes a SystemError of, leaves it as a KeyboardInterrupt.
    """
    thread = threading.get_ident()
    is_outermost = not _LIMIT.holds(thread)
    numbers: list[int] = []
    try:
        if is_outermost:
            numbers = _LIMIT.enter(thread)
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise cause from None
        raise
    finally:
        if is_outermost:
            _LIMIT.leave(thread, numbers)


@contextlib.contextmanager
def own_arithmetic() -> Iterator[None]:
    """Arithmetic that no setting of the caller's changes: BLAS on one thread, and floating-point
    errors that NumPy would raise, as `numpy.seterr` may have it, warned of as by default.
    """
    raised = [kind for kind, how in np.geterr().items() if how == "raise"]
    by_default: dict[str, Any] = dict.fromkeys(raised, "warn")
    if "under" in raised:
        by_default["under"] = "ignore"
    with one_blas_thread(), np.errstate(**by_default):
        yield


def _task(budget: Budget | None, position, function, *arguments):
    """Run one task of a fit with a budget, in whatever thread or process, and return its position
    and result, how many evaluations it made, and its process. A budget that is spent comes back as
    the result.
    """
    before = evaluations_here()
    with one_blas_thread(), spending(budget):
        try:
            result = function(*arguments)
        except BudgetSpent as spent:
            result = spent
    return position, result, evaluations_here() - before, os.getpid()


def _arrived(arriving: Iterable[Any]) -> Iterator[tuple[int, Any, int]]:
    """Positions, results and evaluations of tasks as they arrive.

    Raises
    ------
    BudgetSpent
        If a task, or all together, have spent the current budget.
    """
    budget = current_budget()
    for position, result, n_evaluations, process in arriving:
        if budget is not None:
            budget.arrived(n_evaluations, process)
        if isinstance(result, BudgetSpent):
            raise result
        yield position, result, n_evaluations


class _Run(NamedTuple):
    """Idle workers and open checkpoints that the parts of a run share."""

    idle_workers: dict[tuple, Parallel]
    checkpoints: list[Checkpoint]


_RUNNING: ContextVar[_Run | None] = ContextVar("running", default=None)


@contextlib.contextmanager
def running() -> Iterator[None]:
    """A context of a run, whose parts share their workers, which some clusters take seconds to
    open. At its end the files of all checkpoints opened within are removed, unless an error comes
    out; nested, the outermost does it.
    """
    if _RUNNING.get() is not None:
        yield
        return
    run = _Run({}, [])
    try:
        with holding(_RUNNING, run):
            yield
    finally:
        for workers in run.idle_workers.values():
            workers.__exit__(None, None, None)
    for checkpoint in run.checkpoints:
        checkpoint.remove()


def _open_workers(n_jobs: int | None, return_as: str) -> Parallel:
    try:
        workers = Parallel(n_jobs=n_jobs, prefer="threads", return_as=return_as)
    except ValueError:  # the back ends "multiprocessing" and "ray" return lists only
        workers = Parallel(n_jobs=n_jobs, prefer="threads")
    return workers.__enter__()


@contextlib.contextmanager
def _workers(n_jobs: int | None, n_tasks: int, return_as: str = "generator") -> Iterator[Any]:
    """A context that gives a function from tasks to their results, in order unless `return_as` says
    otherwise.
    """
    # joblib takes 0.2 ms to begin, too much for the runs of single rows within a task
    if n_jobs == 1 or n_tasks < 2:
        yield lambda tasks: (task(*arguments) for task, arguments, _ in tasks)
        return
    run = _RUNNING.get()
    idle = {} if run is None else run.idle_workers
    kind = n_jobs, return_as
    workers = idle.pop(kind, None) or _open_workers(n_jobs, return_as)
    try:
        yield workers
    except BaseException as error:
        workers.__exit__(type(error), error, error.__traceback__)
        raise
    if run is None or kind in idle:
        workers.__exit__(None, None, None)
    else:
        idle[kind] = workers


def parallel_map(
    function: Callable[[Any], Any],
    items: Sequence[Any],
    *,
    n_jobs: int | None,
    stage: str | None = None,
    on_result: Callable[[int, Any], Any] | None = None,
) -> list[Any]:
    """Return [function(item) for item in items].

    Parameters
    ----------
    function : callable
        Picklable and pure.
    items : sequence
    n_jobs : int or None
        As in joblib; threads unless the caller chose a back end with ``joblib.parallel_config``.
    stage : str or None, default=None
        Name of this part of a fit, which then reports how far it is.
    on_result : callable or None, default=None
        on_result(position, result) is called here, in the parent, as soon as an item is done, in
        any order.
    """
    reported = contextlib.nullcontext() if stage is None else _context.stage(stage, len(items))
    workers = _workers(
        n_jobs, len(items), "generator" if on_result is None else "generator_unordered"
    )
    budget = current_budget()
    results: list[Any] = [None] * len(items)
    with one_blas_thread(), reported as task_done, workers as parallel:
        tasks = (delayed(_task)(budget, i, function, item) for i, item in enumerate(items))
        arriving = parallel(tasks)
        try:
            for position, result, _ in _arrived(arriving):
                results[position] = result
                if on_result is not None:
                    on_result(position, result)
                if task_done is not None:
                    task_done()
        except BaseException as error:
            # it drops the tasks that are left, of which joblib would warn if it were closed
            if hasattr(arriving, "throw"):
                arriving.throw(error)
            raise
    return results


_EVALUATION_JOBS: ContextVar[int | None] = ContextVar("evaluation_jobs", default=1)


def evaluating(n_jobs: int | None) -> AbstractContextManager[None]:
    """A context in which a user's function is evaluated by as many workers as `n_jobs` stands for,
    but within tasks: these run in parallel already.
    """
    return holding(_EVALUATION_JOBS, n_jobs)


def evaluate_parts(
    function: Callable[[Any], Any],
    parts: Sequence[Any],
    seconds: float,
    *,
    worthwhile: float = 0.005,  # seconds
) -> list[Any]:
    """Return [function(part) for part in parts], by the workers of the fit if that is expected to
    take so many seconds that these pay.
    """
    n_jobs = _EVALUATION_JOBS.get()
    if n_jobs == 1 or len(parts) < 2 or seconds < worthwhile:
        return [function(part) for part in parts]
    if joblib.effective_n_jobs(n_jobs) == 1:
        return [function(part) for part in parts]
    with _workers(n_jobs, len(parts)) as workers:
        arriving = workers(delayed(_task)(None, i, function, part) for i, part in enumerate(parts))
        return [result for _, result, _ in _arrived(arriving)]


def n_threads_for(n_jobs: int | None) -> int:
    """Number of threads of this process that `n_jobs` stands for, as joblib reads it."""
    return 1 if n_jobs == 1 else max(1, min(joblib.effective_n_jobs(n_jobs), joblib.cpu_count()))


def equal_parts(n: int, least: int) -> list[slice]:
    """Parts of 0, …, n - 1 for tasks, a power of two and at most 8, each at least so long."""
    n_parts = 2 ** min(3, max(0, (n // least).bit_length() - 1))
    edges = [n * part // n_parts for part in range(n_parts + 1)]
    return [slice(a, b) for a, b in zip(edges, edges[1:])]


def _limit_own_thread() -> None:
    """Limit BLAS libraries that have a number of threads for each thread, in one that ends soon."""
    for library in _blas()[1]:
        library.set_num_threads(1)


_TASK_THREADS: ContextVar[ThreadPoolExecutor | None] = ContextVar("task_threads", default=None)


@contextlib.contextmanager
def task_threads(n_jobs: int | None) -> Iterator[None]:
    """A context in which `run_tasks` has as many threads as `n_jobs` stands for."""
    n_threads = n_threads_for(n_jobs)
    if n_threads == 1:
        yield
        return
    threads = ThreadPoolExecutor(n_threads, initializer=_limit_own_thread)
    with threads, holding(_TASK_THREADS, threads):
        yield


def run_tasks(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return [function(item) for item in items], in the threads of `task_threads` where there are
    some. A task costs 20 µs, and may not depend on the order.
    """
    threads = _TASK_THREADS.get()
    if threads is None or len(items) < 2:
        return [function(item) for item in items]

    def call(item):
        _TASK_THREADS.set(None)  # in the copy of the context
        with one_blas_thread():
            return function(item)

    running = [threads.submit(copy_context().run, call, item) for item in items]
    return [each.result() for each in running]


class SideBySide:
    """Threads that stay, since to start them takes as long as some updates of training.

    Parameters
    ----------
    n_threads : int
        With one there is none beside the caller's.
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._threads = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def run(self, function: Callable[[int], Any]) -> None:
        """Call function(thread) for all 0 <= thread < n_threads, all at the same time, so that they
        may wait for one another.

        Once one has begun all go on to their ends: an interruption waits for that.
        """
        if self._threads is None:
            function(0)
            return
        may_begin = threading.Event()
        all_there = False

        def begin(thread):
            may_begin.wait()
            if all_there:
                function(thread)

        running: list[Any] = []
        try:
            for thread in range(self.n_threads):
                running.append(self._threads.submit(begin, thread))
            all_there = True
            may_begin.set()
            for each in running:
                each.result()
        finally:
            may_begin.set()
            wait(running)


def run_segments(
    start: Callable[[int], Any],
    advance: Callable[[int, int, int, Any], Any],
    n_blocks: int,
    bounds: Sequence[int],
    *,
    n_jobs: int | None,
    checkpoint: Checkpoint | None = None,
    stage: str,
    so_far: Callable[[int, list[Any]], str] | None = None,
) -> list[Any]:
    """Return carry_b = advance(b, begin, end, carry_b) over all segments, from carry_b = start(b),
    for every block b.

    Parameters
    ----------
    start : callable
        Called here, in the parent. A carry is an array or a (nested) tuple of arrays.
    advance : callable
        Picklable and pure.
    n_blocks : int
    bounds : sequence of int
        First step of every segment, and the end.
    n_jobs : int or None
        As in joblib; threads unless the caller chose a back end with ``joblib.parallel_config``.
    checkpoint : Checkpoint or None
        Where every finished segment is kept.
    stage : str
        Name of this part of the run, distinct within a run.
    so_far : callable or None, default=None
        so_far(end, carries) is what the run arrived at after some steps, for its lines of progress.
    """
    done = [0] * n_blocks
    spent = [0] * n_blocks
    budget = current_budget()
    with one_blas_thread():
        carries = [start(block) for block in range(n_blocks)]
        if checkpoint is not None:
            for block in range(n_blocks):
                kept = checkpoint.load(f"{stage}-{block}", (carries[block], spent[block]))
                done[block], (carries[block], spent[block]) = kept
                if budget is not None:
                    budget.add(int(spent[block]))
        n_tasks = n_blocks * (len(bounds) - 1) - sum(done)
        reported = _context.stage(stage, n_tasks)
        with reported as task_done, _workers(n_jobs, n_blocks) as parallel:
            for segment, (begin, end) in enumerate(zip(bounds, bounds[1:])):
                tasks = (
                    delayed(_task)(budget, block, advance, block, begin, end, carries[block])
                    for block in range(n_blocks)
                    if done[block] <= segment
                )
                for block, carry, n_evaluations in _arrived(parallel(tasks)):
                    carries[block] = carry
                    spent[block] += n_evaluations
                    task_done()
                    if checkpoint is not None:
                        checkpoint.save(f"{stage}-{block}", segment + 1, (carry, spent[block]))
                if so_far is not None and max(done) <= segment + 1:
                    task_done(0, functools.partial(so_far, end, carries))
    return carries


class Checkpoint:
    """Finished segments of one run in a directory of .npz files, written atomically and read
    without pickle.

    They are for a run that was interrupted: `running` removes those of a finished one.

    Parameters
    ----------
    directory : str or path-like
        Created if it does not exist.
    fingerprint : str
        Hash of everything that the run's numbers depend on; the first part of every file name.
    """

    def __init__(self, directory: str | os.PathLike, fingerprint: str):
        self.fingerprint = fingerprint
        if isinstance(directory, str) and not directory:
            raise ValueError('checkpoint must name a directory, got ""; "." is the current one')
        try:
            self.directory = FilePath(directory)
            self.directory.mkdir(parents=True, exist_ok=True)
        except (TypeError, OSError) as error:
            raise ValueError(
                f"checkpoint must name a directory to write to, got {directory!r}: {error}"
            ) from error
        run = _RUNNING.get()
        if run is not None:
            run.checkpoints.append(self)

    def _file(self, name: str) -> FilePath:
        return self.directory / f"{self.fingerprint}-{name}.npz"

    def save(self, name: str, n_segments: int, carry: object) -> None:
        """Keep the carry after `n_segments` segments, replacing the one before.

        Raises
        ------
        OSError
            If the file can't be written, as on a full disk; the one before is then kept.
        """
        arrays: dict[str, Any] = {f"a{i}": array for i, array in enumerate(_leaves(carry))}
        checksum = np.array(self._checksum(name, n_segments, arrays))
        try:
            handle, temporary = tempfile.mkstemp(
                dir=self.directory, prefix=f"{self.fingerprint}-", suffix=".part"
            )
            try:
                with os.fdopen(handle, "wb") as file:
                    np.savez(file, n_segments=np.array(n_segments), checksum=checksum, **arrays)
                    file.flush()
                    os.fsync(file.fileno())
                # Another process that has finished the same run may have removed it.
                with contextlib.suppress(FileNotFoundError):
                    os.replace(temporary, self._file(name))
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise OSError(
                error.errno,
                f"checkpoint {self.directory} can't be written to ({error}): free space there, or"
                " give another directory; what was saved before is kept",
            ) from error

    def load(self, name: str, like: object) -> tuple[int, Any]:
        """Return (finished segments, carry), or (0, like) where nothing is kept yet."""
        file = self._file(name)
        try:
            with open(file, "rb") as opened, np.load(opened, allow_pickle=False) as kept:
                arrays = {f"a{i}": kept[f"a{i}"] for i in range(len(_leaves(like)))}
                n_segments = int(kept["n_segments"])
                if str(kept["checksum"]) != self._checksum(name, n_segments, arrays):
                    raise ValueError("its arrays are not those that were saved under this name")
                return n_segments, _rebuild(like, iter(arrays.values()))
        except FileNotFoundError:
            return 0, like
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"checkpoint file {file} can't be read ({error}); delete it to start afresh"
            ) from error

    def _checksum(self, name: str, n_segments: int, arrays: dict[str, np.ndarray]) -> str:
        """A digest of a file's name and what it holds: arrays with NaN or of other shapes may be
        right, so that only this tells what another program wrote, or another part of the run.
        """
        label = f"{self.fingerprint} {name} {n_segments}"
        digest = hashlib.blake2b(label.encode(), digest_size=16)
        for key, array in arrays.items():
            digest.update(f"{key} {array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def remove(self) -> None:
        """Delete the files of this run, and no others."""
        for file in self.directory.glob(f"{self.fingerprint}-*"):
            file.unlink(missing_ok=True)


def _leaves(carry: object) -> list[np.ndarray]:
    if isinstance(carry, tuple):
        return [leaf for part in carry for leaf in _leaves(part)]
    return [np.asarray(carry)]


def _rebuild(like: object, arrays) -> Any:
    if isinstance(like, tuple):
        parts = [_rebuild(part, arrays) for part in like]
        return type(like)(*parts) if hasattr(like, "_fields") else tuple(parts)
    return next(arrays)


def fingerprint(*things: object) -> str:
    """Return a hash of the contents of arrays, numbers, strings and other things that can be
    pickled.
    """
    try:
        return joblib.hash(things)
    except (pickle.PicklingError, TypeError) as error:
        reason = str(error.args[0]).strip("() ")[:200] if error.args else type(error).__name__
        raise ValueError(
            f"all that a run depends on must be picklable, and something isn't ({reason}): with"
            " checkpoint, define functions and classes at module level, without lambda"
        ) from error

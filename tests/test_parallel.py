"""Blocks of chains on every back end, checkpoints, and what happens when a run is killed or
interrupted.
"""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
from convergence import may_not_converge
from interruption import kept_files, saves
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend
from known_problems import HiddenModePath, hidden_mode_problem, make_rbm_problem
from marks import large
from threadpoolctl import threadpool_info, threadpool_limits

from sklpf import BernoulliRBM
from sklpf._utils.parallel import (
    Checkpoint,
    one_blas_thread,
    parallel_map,
    run_segments,
    running,
)
from sklpf.partition import AIS, ParallelTempering
from sklpf.paths import Path


# ---- the same bits everywhere
def fit(path, n_jobs=None, **parameters):
    """Log weights of chains that go up, and of those that come back down."""
    with may_not_converge():  # some runs are of two chains
        defaults = {"n_chains": 40, "n_temperatures": 601, "random_state": 3, "n_jobs": n_jobs}
        run = AIS(**{**defaults, **parameters}).fit(path).run_
    return np.concatenate([run.forward, run.reverse.ravel()])


@pytest.fixture
def short_segments(monkeypatch):
    """RBM runs in segments of 500 sweeps."""
    monkeypatch.setattr("sklpf.models.rbm._path.RBMPath._work_per_segment", 0)


@pytest.mark.usefixtures("short_segments")
@pytest.mark.parametrize(
    ("backend", "make"),
    [
        ("threading", lambda: make_rbm_problem("digits", weights="joint")),
        ("loky", lambda: make_rbm_problem("digits")),
        ("loky", lambda: hidden_mode_problem(6, 0.8)),
        large("multiprocessing", lambda: hidden_mode_problem(6, 0.8)),  # has no generators
    ],
)
@pytest.mark.filterwarnings("ignore:.*use of fork")  # in a process with threads
def test_two_jobs_give_the_bits_of_one(backend, make):
    path = make().path
    assert path.n_moves_per_segment < 600
    serial = fit(path, n_jobs=1)
    np.testing.assert_array_equal(fit(path, n_jobs=2), serial)  # the default back end: threads
    with parallel_config(backend=backend, n_jobs=2):
        np.testing.assert_array_equal(fit(path), serial)


def _matrix_power(path, block, begin, end, carry):
    return carry @ carry / np.linalg.norm(carry)


def _random_matrix(block):
    return np.random.default_rng(block).normal(size=(200, 200))


class CountingBackend(ThreadingBackend):
    """Threads that count how often they are opened, and closed."""

    n_opened = n_closed = 0

    def configure(self, *arguments, **options):
        CountingBackend.n_opened += 1
        return super().configure(*arguments, **options)

    def terminate(self):
        CountingBackend.n_closed += 1
        super().terminate()


register_parallel_backend("counting", CountingBackend)
RBM = BernoulliRBM.from_parameters(np.eye(3, 4), np.zeros(4), np.zeros(3))


def test_a_fit_opens_its_workers_once():
    CountingBackend.n_opened = CountingBackend.n_closed = 0
    with parallel_config(backend="counting"), may_not_converge():
        ParallelTempering(n_sweeps=400, n_jobs=2, random_state=0).fit(RBM)
    assert CountingBackend.n_opened == CountingBackend.n_closed == 1


def test_workers_of_a_failed_part_are_closed_at_once():
    CountingBackend.n_opened = CountingBackend.n_closed = 0
    with parallel_config(backend="counting"), running():
        for _ in range(2):
            assert parallel_map(abs, [-1, 1, -2], n_jobs=2) == [1, 1, 2]
        assert (CountingBackend.n_opened, CountingBackend.n_closed) == (1, 0)
        with pytest.raises(TypeError):
            parallel_map(abs, [1, "one"], n_jobs=2)
        assert CountingBackend.n_opened == CountingBackend.n_closed
        assert parallel_map(abs, [-1, 1], n_jobs=2) == [1, 1]
    assert CountingBackend.n_opened == CountingBackend.n_closed


@pytest.mark.parametrize("backend", ["loky", large("multiprocessing")])
@pytest.mark.filterwarnings("ignore:.*use of fork")
def test_blas_uses_one_thread_in_every_back_end(backend):
    advance = functools.partial(_matrix_power, None)
    serial = run_segments(_random_matrix, advance, 3, range(5), n_jobs=1, stage="blas")
    with parallel_config(backend=backend):
        parallel = run_segments(_random_matrix, advance, 3, range(5), n_jobs=2, stage="blas")
        mapped = parallel_map(functools.partial(advance, 0, 0, 1), serial, n_jobs=2)
    np.testing.assert_array_equal(parallel, serial)
    alone = parallel_map(functools.partial(advance, 0, 0, 1), serial, n_jobs=1)
    np.testing.assert_array_equal(mapped, alone)


def n_blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.fixture
def two_blas_threads():
    """BLAS on two threads, which a test must leave so."""
    with threadpool_limits(2, user_api="blas"):
        yield
        assert set(n_blas_threads()) == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_errors_within_a_limit_lift_it_and_a_signal_in_a_compiled_call_is_an_interruption():
    """numba's dispatcher makes a SystemError of it."""
    lost, another = SystemError("returned a result with an exception set"), SystemError("another")
    for error, cause, seen in (
        (lost, KeyboardInterrupt(), KeyboardInterrupt),
        (another, None, SystemError),
    ):
        with one_blas_thread():
            with pytest.raises(seen), one_blas_thread():
                raise error from cause
            assert set(n_blas_threads()) == {1}
    assert set(n_blas_threads()) == {2}


class LimitedThread(threading.Thread):
    """A thread that is in the limit until it is told to leave it."""

    def __init__(self):
        super().__init__()
        self.is_in = threading.Event()
        self.may_leave = threading.Event()

    def run(self):
        with one_blas_thread():
            self.is_in.set()
            assert self.may_leave.wait(20)

    def enter(self):
        self.start()
        assert self.is_in.wait(20)

    def leave(self):
        self.may_leave.set()
        self.join()


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("first", [0, 1])
def test_the_last_of_two_threads_lifts_the_limit(first):
    threads = LimitedThread(), LimitedThread()
    for thread in threads:
        thread.enter()
    threads[first].leave()
    assert set(n_blas_threads()) == {1}
    threads[1 - first].leave()
    assert set(n_blas_threads()) == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_another_library_that_lifts_the_limit_is_left_so():
    thread = LimitedThread()
    thread.enter()
    threadpool_limits(2, user_api="blas")
    with one_blas_thread():
        assert set(n_blas_threads()) == {1}
    thread.leave()


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork")
@pytest.mark.parametrize("is_in", [False, True])
def test_a_forked_process_has_the_limit_of_its_thread_alone(is_in):
    thread = LimitedThread()
    thread.enter()
    with one_blas_thread() if is_in else contextlib.nullcontext():
        child = os.fork()
        if child == 0:
            os._exit(len(set(n_blas_threads()) ^ {1 if is_in else 2}))
    assert os.waitpid(child, 0)[1] == 0
    thread.leave()


# ---- checkpoints
@pytest.fixture
def files_stay():
    """Finished runs keep their files, as if interrupted at the very end."""
    with kept_files():
        yield


def test_a_finished_run_removes_its_own_files_and_runs_anew(tmp_path):
    path = hidden_mode_problem(6, 0.8).path
    options = {"n_temperatures": 30, "n_chains": 2, "checkpoint": tmp_path}
    with kept_files():
        fit(path, random_state=7, **options)
    others = {tmp_path / "notes.txt", *tmp_path.iterdir()}
    (tmp_path / "notes.txt").touch()
    assert len(others) == 5
    for _ in range(2):
        with saves() as saved:
            fit(path, random_state=8, **options)
        assert len(saved) == 6  # 2 blocks, in one segment up and two down
        assert set(tmp_path.iterdir()) == others


@pytest.mark.usefixtures("files_stay")
def test_runs_that_differ_do_not_share_files(tmp_path):
    path = hidden_mode_problem(6, 0.8).path
    options = {"n_temperatures": 12, "n_chains": 2, "checkpoint": tmp_path}
    longer = hidden_mode_problem(6, 0.8).path
    longer.n_moves_per_segment = 5
    runs = [
        (path, {}),
        (hidden_mode_problem(6, 0.81).path, {}),
        (longer, {}),
        (path, {"random_state": 4}),
        (path, {"n_temperatures": 13}),
        (path, {"ladder": "power"}),
        (path, {"n_chains": 3}),
    ]
    for other, changes in runs:
        before = len(set(tmp_path.iterdir()))
        kept = fit(other, **(options | changes))
        assert len(set(tmp_path.iterdir())) > before, changes
        alone = fit(other, **(options | changes | {"checkpoint": None}))
        np.testing.assert_array_equal(kept, alone)


def coins(log_odds, share=0.5):
    """A class of paths that is made anew at every call, under the same name."""

    class Coins(Path):
        base_log_partition = 0.0

        def sample_base(self, n, stream):
            return stream.generator().integers(2, size=(n, 3))

        def log_f(self, state, levels):
            return self.ladder[levels] * log_odds * state.sum(axis=1) - 3 * np.log(2)

        def gibbs(self, state, levels, stream):
            odds = np.exp(self.ladder[levels] * log_odds)[:, np.newaxis]
            uniform = stream.generator().random((2, *state.shape))
            drawn = (uniform[0] < odds / (1 + odds)).astype(state.dtype)
            return np.where(uniform[1] < share, drawn, state)

    Coins.__module__ = __name__
    Coins.__qualname__ = "Coins"
    return Coins


@pytest.mark.usefixtures("files_stay")
@pytest.mark.parametrize("changed", [coins(1.5), coins(1.0, 0.7)], ids=["log f", "move"])
def test_a_changed_class_of_paths_does_not_resume_a_run(changed, tmp_path, monkeypatch):
    options = {"n_temperatures": 12, "n_chains": 2}
    monkeypatch.setattr(sys.modules[__name__], "Coins", coins(1.0), raising=False)
    before = fit(Coins(), checkpoint=tmp_path, **options)  # noqa: F821
    with saves() as again:
        np.testing.assert_array_equal(fit(Coins(), checkpoint=tmp_path, **options), before)  # noqa: F821
    assert not again
    monkeypatch.setattr(sys.modules[__name__], "Coins", changed)
    after = fit(Coins(), checkpoint=tmp_path, **options)  # noqa: F821
    np.testing.assert_array_equal(after, fit(Coins(), **options))  # noqa: F821
    assert np.any(after != before)


def with_another_array(file, change):
    with np.load(file) as kept:
        arrays = dict(kept)
    name = next(name for name, array in arrays.items() if array.dtype == float and array.size > 1)
    np.savez(file, **(arrays | {name: change(arrays[name])}))


def with_a_flipped_byte(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(content)


UNREADABLE, OTHER = "can't be read", "not those that were saved"


@pytest.mark.usefixtures("files_stay")
@pytest.mark.parametrize(
    ("damage", "seen"),
    [
        (lambda file: file.write_bytes(b""), UNREADABLE),
        (with_a_flipped_byte, UNREADABLE),
        (lambda file: np.savez(file, something=np.zeros(3)), UNREADABLE),
        (lambda file: with_another_array(file, lambda array: array * np.nan), OTHER),
        (lambda file: with_another_array(file, lambda array: array[:-1]), OTHER),
    ],
    ids=["empty", "flipped", "other arrays", "NaN", "shape"],
)
def test_a_damaged_checkpoint_is_named(tmp_path, damage, seen):
    path, options = hidden_mode_problem(6, 0.8).path, {"n_temperatures": 30, "checkpoint": tmp_path}
    fit(path, **options)
    file = sorted(tmp_path.iterdir())[3]
    damage(file)
    with pytest.raises(ValueError, match=f"{file.name} .*{seen}.*delete it to start afresh"):
        fit(path, **options)
    file.unlink()
    assert len(fit(path, **options)) == 40 + 10


def test_another_process_may_finish_the_same_run(tmp_path, monkeypatch):
    """It removes what this one is about to read, and what it is writing."""
    mine, other = Checkpoint(tmp_path, "name"), Checkpoint(tmp_path, "name")
    mine.save("a", 1, np.zeros(2))
    savez = np.savez

    def interfering(*arguments, **arrays):
        savez(*arguments, **arrays)
        other.remove()

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", interfering)
        mine.save("a", 2, np.ones(2))
    assert mine.load("a", np.zeros(2))[0] == 0
    mine.save("a", 3, np.ones(2))
    assert mine.load("a", np.zeros(2))[0] == 3
    assert [file.name for file in tmp_path.iterdir()] == ["name-a.npz"]


def test_what_can_not_be_a_checkpoint_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for directory in ("", tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(ValueError, match="checkpoint must name a directory"):
            fit(hidden_mode_problem(4).path, checkpoint=directory)
    with pytest.raises(ValueError, match="checkpoint needs random_state to be an int"):
        fit(hidden_mode_problem(4).path, checkpoint=tmp_path, random_state=None)


# ---- killed, interrupted, crashed
RUN = """
import os, signal, sys, time
from joblib import parallel_config
from sklpf.partition import AIS
from known_problems import HiddenModePath

class Path(HiddenModePath):
    def gibbs(self, state, levels, stream, reverse=False):
        if stream.step == 25 and stream.chain > 4:
            if sys.argv[3] == "crash":
                os._exit(7)
            while sys.argv[3] == "wait" and not os.path.exists(sys.argv[4]):
                time.sleep(0.01)
        return super().gibbs(state, levels, stream, reverse)

signal.signal(signal.SIGINT, signal.default_int_handler)  # where the parent ignores it too
path = Path(6, 0.8)
path.n_moves_per_segment = 10
with parallel_config(backend=sys.argv[2]):
    ais = AIS(16, 41, random_state=0, checkpoint=sys.argv[1], n_jobs=int(sys.argv[5])).fit(path)
print(ais.result_.diagnostics["log_weights"].tobytes().hex())
"""


def start_run(folder, backend, deed, n_jobs=2):
    """A run that crashes at its 25th sweep, or waits there until there is a file `go`."""
    arguments = folder / "kept", backend, deed, folder / "go", n_jobs
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    paths = os.pathsep.join(path for path in sys.path if path)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, **pipes)


def segments(folder):
    """How many segments each block has saved."""
    return [int(np.load(file)["n_segments"]) for file in folder.glob("kept/*.npz")]


def assert_goes_on(folder):
    output, errors = start_run(folder, "threading", "go on").communicate(timeout=60)
    path = HiddenModePath(6, 0.8)
    path.n_moves_per_segment = 10
    expected = fit(path, n_chains=16, n_temperatures=41, random_state=0)[:16]
    assert output.split() == [expected.tobytes().hex()], errors


@pytest.mark.parametrize(("stop", "n_jobs"), [large(signal.SIGKILL, 1), (signal.SIGINT, 2)])
def test_a_stopped_process_goes_on_with_the_same_bits(tmp_path, stop, n_jobs):
    """Blocks wait in their third segment, so that the run can't end before the signal."""
    process = start_run(tmp_path, "threading", "wait", n_jobs)
    deadline = time.monotonic() + 60
    while not segments(tmp_path):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(stop)
    (tmp_path / "go").touch()  # threads that still wait end
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    if stop == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
    assert segments(tmp_path)
    assert_goes_on(tmp_path)


@pytest.mark.large
def test_a_worker_that_dies_is_reported_and_its_run_goes_on(tmp_path):
    process = start_run(tmp_path, "loky", "crash")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "A worker process managed by the executor was unexpectedly terminated" in errors
    assert "EXIT(7)" in errors
    assert min(segments(tmp_path)) == 2
    assert_goes_on(tmp_path)


# ---- memory
class Gaussians(Path):
    """Normal densities of precision 1 + 3 beta, redrawn exactly."""

    base_log_partition = 0.5 * np.log(2 * np.pi)

    def log_f(self, state, levels):
        return -0.5 * (1 + 3 * self.ladder[levels]) * state**2

    def sample_base(self, n, stream):
        return stream.generator().standard_normal(n)

    def gibbs(self, state, levels, stream):
        return stream.generator().standard_normal(len(state)) / np.sqrt(1 + 3 * self.ladder[levels])


def peak_memory(path, n_temperatures):
    tracemalloc.start()
    try:
        fit(path, n_chains=40, n_temperatures=n_temperatures)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_peak_memory_does_not_grow_with_the_number_of_sweeps():
    path = Gaussians()
    peak_memory(path, 10)
    growth = peak_memory(path, 410) - peak_memory(path, 110)
    # a few arrays of the ladder's length; the levels of a whole run would take 20 chains * 8 bytes
    # a level and array
    assert growth < 6 * 8 * 300

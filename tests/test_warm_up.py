"""warm_up leaves nothing to compile, and compilation is logged."""

import importlib.util
import logging
import multiprocessing
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numba.core import event
from numba.core.dispatcher import Dispatcher

import sklpf
import sklpf.kernels  # which listens to the compiler
from sklpf import (
    AIS,
    BDMC,
    RTS,
    SMC,
    BernoulliRBM,
    FactorialMixture,
    LatentDirichletAllocation,
    ParallelTempering,
    PartitionEstimator,
    PartitionResult,
)
from sklpf.partition import RAISE

RNG = np.random.default_rng(0)
BINARY = (RNG.random((40, 30)) < 0.4).astype(float)
COUNTS = RNG.poisson(0.5, (20, 15))
ESTIMATORS = (
    AIS(4, 10),
    AIS(4, 40, ladder="adaptive"),
    RTS(10, 5, 320, sweeps_per_redraw=1),
    ParallelTempering(2, 3, 64),
    SMC(4, 10, 2),
    RAISE(10, 10, 10),
    BDMC(4, 10),
)


def signatures():
    """Names and argument types of all kernels that this process has compiled or read from numba's
    cache.
    """
    modules = [sys.modules[name] for name in list(sys.modules) if name.startswith("sklpf.")]
    values = (value for module in modules for value in vars(module).values())
    kernels = [value for value in values if isinstance(value, Dispatcher)]
    return {
        (kernel.py_func.__name__, str(types)) for kernel in kernels for types in kernel.signatures
    }


def estimators():
    return [estimator.set_params(random_state=0) for estimator in ESTIMATORS]


def use_rbm(X):
    model = BernoulliRBM(17, n_iter=1, random_state=0, partition_estimator=AIS(4, 10)).fit(X)
    model.score(X)
    model.pseudo_log_likelihood(X)
    for weights in ("marginal", "joint"):
        for estimator in estimators():
            estimator.fit(model.path(weights=weights))
    model.set_params(partition_estimator=None, n_jobs=2).sample(3)
    model.set_params(partition_estimator=ParallelTempering(n_sweeps=512))
    ParallelTempering(2, 4, 64, random_state=0).fit(model._ratio_path(model))


def use_topics(X):
    online = {"learning_method": "online", "learn_doc_topic_prior": True}
    for options in ({}, online, {"tempering": "local"}):
        options = {"max_iter": 2, "evaluate_every": 1, "random_state": 0} | options
        model = LatentDirichletAllocation(3, **options).fit(X)
        model.transform(X)
        model.perplexity(X)
        model.completion_score(X)
        model.partial_fit(X).score(X[:3])
        model.set_params(doc_topic_prior=0.2, n_jobs=2).fit(X)
    model = LatentDirichletAllocation(
        3, learning_method="gibbs", learn_topic_word_prior=True, max_iter=2, n_init=2
    )
    model.set_params(learn_doc_topic_prior=True, random_state=0).fit(X).transform(X)
    for estimator in estimators()[:5]:
        estimator.fit(model.path(X[:2]))


def use_mixture(X):
    diagonal = {"covariance": "diag", "tempering": "global"}
    for options in ({}, diagonal, {"tempering": sklpf.Tempering("local", n_tempered=3)}):
        model = FactorialMixture(4, max_iter=3, n_moves=1, random_state=0, **options).fit(X)
        model.transform(X)
        model.score(X[:3])
    for estimator in estimators()[:5]:
        estimator.fit(model.path(X[:2]))


def what_is_left_to_compile():
    """Print the kernels that work on data of all kinds needs after warm_up."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as a short run's that did not converge
        sklpf.warm_up()
    before = signatures()
    warnings.simplefilter("ignore")
    others = (kind(BINARY, dtype=np.float32) for kind in (sp.csr_matrix, np.asfortranarray))
    for X in (BINARY, BINARY > 0, *others):
        use_rbm(X)
    for X in (COUNTS, sp.csr_matrix(COUNTS, dtype=np.float32), COUNTS.tolist()):
        use_topics(X)
    for X in (BINARY, BINARY.astype(np.float32)):
        use_mixture(X)
    assert len(before) > 40
    print(sorted(signatures() - before))


@pytest.mark.large
def test_nothing_is_left_to_compile():
    command = [sys.executable, "-c", "import test_warm_up; test_warm_up.what_is_left_to_compile()"]
    options = {"cwd": Path(__file__).parent, "capture_output": True, "text": True}
    result = subprocess.run(command, timeout=600, **options)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[]\n"


@pytest.mark.large
def test_warm_up_says_in_one_line_how_long_it_took(caplog):
    caplog.set_level(logging.INFO, logger="sklpf")
    sklpf.warm_up()
    (line,) = [
        record.getMessage() for record in caplog.records if "all kernels" in record.getMessage()
    ]
    assert line.startswith("compiling, once: all kernels are ready after ")
    assert line.endswith(" s")


def kernels():
    """Two functions that look like kernels of two models, of which one calls the other."""

    def double(x):
        return 2 * x

    def twice(x):
        return inner(x) + inner(x)

    double.__module__ = "sklpf.models.other._kernels"
    twice.__module__ = "sklpf.models.mine._kernels"
    inner = numba.njit(double)
    return inner, numba.njit(twice)


@pytest.fixture
def unannounced(monkeypatch):
    listeners = event._registered["numba:compile"]
    (announcer,) = (one for one in listeners if type(one).__name__ == "_Announcer")
    monkeypatch.setattr(announcer, "announced", set())


@pytest.mark.parametrize(
    ("process", "terminal"), [("MainProcess", 1), ("Worker", 1), ("MainProcess", 0)]
)
def test_a_person_at_a_terminal_is_told_once(process, terminal, capsys, monkeypatch, unannounced):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: bool(terminal), raising=False)
    monkeypatch.setattr(multiprocessing.current_process(), "name", process)
    inner, outer = kernels()
    for kernel in (inner, outer):
        kernel(1)
    told = terminal and process == "MainProcess"
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == told
    assert all("sklpf.warm_up()" in line for line in lines)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_cache_that_was_cut_off_is_made_anew(tmp_path, monkeypatch, suffix, share):
    """numba raises UnpicklingError or EOFError."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    source = tmp_path / "mine_kernels.py"
    source.write_text("from sklpf.kernels import njit\n\n@njit\ndef twice(x):\n    return 2 * x\n")

    def fresh():
        spec = importlib.util.spec_from_file_location("mine_kernels", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.twice(1) == 2
        return module.twice.stats.cache_hits

    assert fresh() == {}
    assert sum(fresh().values()) == 1
    (file,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    assert fresh() == {}
    assert sum(fresh().values()) == 1


class Compiles(PartitionEstimator):
    """What happens in it is no estimate: it calls kernels."""

    def __init__(self, kernels, verbose=0):
        self.kernels, self.verbose = kernels, verbose

    def _estimate(self, path, seed):
        for x in (1, 1.5):
            for kernel in self.kernels:
                kernel(x)
        return PartitionResult("Compiles", 0.0, 1.0)


def test_a_fit_with_verbose_says_once_that_it_waits_for_the_compiler(capsys, unannounced):
    rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    Compiles(kernels(), verbose=0).fit(rbm)
    assert capsys.readouterr().out == ""
    compiled = kernels()
    for first in (True, False):
        Compiles(compiled, verbose=1).fit(rbm)
        lines = capsys.readouterr().out.splitlines()
        assert lines[:-1] == ["[Compiles] compiling kernels, once, about 10 s"] * first
        assert "log Z" in lines[-1]

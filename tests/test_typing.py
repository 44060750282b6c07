"""What a type checker sees of the package in strictly checked code of a user."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklpf

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None,
    reason="mypy is not installed (group lint of pyproject.toml)",
)

GOOD = """
import numpy as np

import sklpf
from sklpf import AIS, BDMC, RTS, BernoulliRBM, FactorialMixture
from sklpf.partition import RAISE
from sklpf import LatentDirichletAllocation, compare

X = np.zeros((3, 4))
rng = np.random.RandomState(0)
rbm = BernoulliRBM(n_components=3, learning_rate=0.1, random_state=rng, n_jobs=2)
score: float = rbm.fit(X).partial_fit(X).score(X)
rows = rbm.sample(3), rbm.transform(X), rbm.gibbs(X), rbm.score_samples(X)
pseudo = rbm.pseudo_log_likelihood(X)
error: float = rbm.estimate_log_partition().log_partition_std_error_
known: BernoulliRBM = BernoulliRBM.from_parameters(X, X[0], X[:, 0])
interval: tuple[float, float] = compare(rbm, known, X).combined
topics = LatentDirichletAllocation(5, tempering=sklpf.Tempering("global")).fit(X)
perplexity: float = topics.perplexity(X) + topics.completion_score(X)
mixture = FactorialMixture(8, activation_probability=[0.1, 0.2], tempering=None).fit(X)
mean: float = mixture.score_interval(X).mean
again = mixture.inverse_transform(mixture.transform(X))
result = sklpf.Exact().fit(rbm).result_
tempering: RTS = RTS(n_chains=20, tol=0.1, checkpoint="folder", random_state=0).fit(rbm)
annealed = AIS(10, ladder="adaptive").fit(rbm.path()), RAISE(starts=X).fit(rbm)
both_ways = BDMC(10).fit(rbm.path(base=X[0]))
tempered = sklpf.ParallelTempering(n_temperatures="auto").fit(rbm)
left_to_right = sklpf.LeftToRight(10).fit(topics.path(X))
"""


def run_mypy(folder, code):
    """Errors of mypy --strict in a file outside the package."""
    # a new name: the cache knows files by time and size
    file = folder / f"user{len(list(folder.iterdir()))}.py"
    file.write_text(code)
    root = Path(sklpf.__file__).parents[1]
    # where mypy looks anyway, and refuses to be pointed at
    installed = root.name == "site-packages"
    # the package's own lines are checked by `mypy` as pyproject.toml says; here only the user's
    # file is
    flags = ["--strict", "--follow-imports=silent", f"--cache-dir={folder}/cache", "--config-file="]
    command = [sys.executable, "-m", "mypy", *flags, file.name]
    environment = {**os.environ, "MYPYPATH": "" if installed else str(root)}
    options = {"cwd": folder, "capture_output": True, "text": True, "timeout": 300}
    return subprocess.run(command, env=environment, **options).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder, so that mypy's cache serves all tests."""
    return tmp_path_factory.mktemp("mypy")


def test_good_code_passes(folder):
    assert run_mypy(folder, GOOD).startswith("Success")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "BernoulliRBM(n_componentz=3)",
            r'"n_componentz" for "BernoulliRBM"; did you mean "n_components"\?',
        ),
        ('BernoulliRBM(n_components="3")', 'incompatible type "str"; expected "int"'),
        ("text: str = rbm.score(X)", 'expression has type "float", variable has type "str"'),
        ("AIS(n_chain=3)", '"n_chain" for "AIS"; did you mean "n_chains"'),
        ('BernoulliRBM(track_log_partition="n")', "incompatible type \"Literal\\['n'\\]\""),
    ],
)
def test_mistakes_are_found(folder, line, message):
    output = run_mypy(folder, GOOD + line + "\n")
    assert re.search(message, output), output
    assert "Found 1 error" in output


def test_type_checkers_are_told_of_every_public_name(folder):
    names = [name for name in sklpf.__all__ if name != "__version__"]
    code = "import sklpf\n" + "".join(f"reveal_type(sklpf.{name})\n" for name in names)
    output = run_mypy(folder, code)
    assert output.count("Revealed type is") == len(names), output
    assert 'is "Any"' not in output, output

"""The code of every page in doc/ runs as it stands."""

from dataclasses import replace

import numpy as np
import pytest
from convergence import assert_right, quietly
from known_problems import make_rbm_problem
from pages import PAGES, check_outputs, run, text

from sklpf import AIS, Gaussian, GeometricPath
from sklpf.partition import DIAGNOSTICS
from sklpf.partition.alarms import KINDS
from sklpf.partition.checks import CHECKS
from sklpf.testing import Problem, check_partition_estimator


def test_own_density():
    """The transfer matrix gives the ring's log Z; 4.8 SE of a t with 99 degrees of freedom: 6e-6
    false alarms.
    """
    estimate = run("doc/developers/add_a_path.md")[0]["estimate"]
    exact = np.log((2 * np.cosh(0.5)) ** 12 + (2 * np.sinh(0.5)) ** 12)
    assert_right(estimate, exact)


def test_own_estimator():
    page = run("doc/developers/add_an_estimator.md")[0]
    estimator = page["FromTheBase"](random_state=0)
    problem = make_rbm_problem("easy")
    check_partition_estimator(estimator, Problem(problem.name, problem.path, problem.log_partition))


def test_own_check(monkeypatch):
    sentences = KINDS["missed-region"].sentences
    monkeypatch.setitem(sentences, "excess", "")  # and is taken out afterwards
    monkeypatch.setitem(DIAGNOSTICS, "excess", None)
    excess = run("doc/developers/add_a_check.md")[0]["Excess"]
    monkeypatch.setitem(CHECKS, "excess", excess)

    path = GeometricPath(lambda x: -0.5 * np.sum(x**2, axis=1), base=Gaussian([0.0], 1.5))
    fitted = quietly(AIS(20, 20, random_state=0), path)
    assert fitted.converged_
    assert fitted.run_.read().diagnostics["excess"] == fitted.result_.diagnostics["excess"] < 1
    assert "log f of base draws above the run's" in str(fitted.result_.summary())

    missed = {**fitted.run_.findings, "excess": excess(excess=9.0, n_evaluations=3)}
    read = replace(fitted.run_, findings=missed).read()
    assert "9.0 nats above all draws of the run: give a base that covers it" in read.reasons[-1]
    assert fitted.result_.check_evaluations - read.check_evaluations == 1000 + 20 - 3


# tested above
ELSEWHERE = tuple(f"doc/developers/add_a{name}.md" for name in ("_path", "n_estimator", "_check"))
SLOW = (  # a minute to some seconds each
    *("guide/image_models", "guide/recipes", "guide/searches", "guide/large_runs"),
    *("guide/your_density", "guide/comparing", "guide/log_likelihood", "guide/topic_models"),
    *("guide/pictures", "guide/large_corpora", "migration/evidence", "guide/decoders"),
    *("guide/choosing", "guide/elementary", "guide/evidence", "guide/saving"),
    *("guide/tempering", "guide/results", "guide/training_rbm", "index"),
)


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, marks=[pytest.mark.large] * file[4:].startswith(SLOW))
        for file in PAGES
        if "```python\n" in text(file) and file not in ELSEWHERE
    ],
)
def test_pages_run(file):
    check_outputs(file, within=0.3 if file in ("doc/quickstart.md", "doc/index.md") else 0.0)

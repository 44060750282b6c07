"""The code in README.md and doc/ runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest

from sklpf.testing import Problem, check_partition_estimator, make_rbm_problem

ROOT = Path(__file__).parents[1]


def run(file):
    """Execute all python blocks of a Markdown file in one namespace; returns it."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks, f"{file} has no python block"
    namespace = {}
    for block in blocks:
        exec(compile(block, file, "exec"), namespace)
    return namespace


def test_own_density():
    """The transfer matrix gives the ring's log Z; 4.8 SE of a t with 99 degrees of freedom: 6e-6 false alarms."""
    estimate = run("doc/add_a_model.md")["estimate"]
    exact = np.log((2 * np.cosh(0.5)) ** 12 + (2 * np.sinh(0.5)) ** 12)
    assert estimate.converged_
    assert abs(estimate.log_partition_ - exact) < 4.8 * estimate.log_partition_std_error_


def test_own_estimator():
    estimator = run("doc/add_an_estimator.md")["BaseImportanceSampling"](random_state=0)
    problem = make_rbm_problem("easy")
    check_partition_estimator(estimator, Problem(problem.name, problem.path, problem.log_partition))


@pytest.mark.parametrize("file", ["README.md", "doc/guide.md", "doc/guide/large_corpora.md"])
def test_examples_run(file):
    run(file)

"""The code of every page in doc/ runs as it stands."""

import numpy as np
import pytest
from convergence import assert_right
from known_problems import make_rbm_problem
from pages import PAGES, check_outputs, run, text

from sklpf.testing import Problem, check_partition_estimator


def test_own_density():
    """The transfer matrix gives the ring's log Z; 4.8 SE of a t with 99 degrees of freedom: 6e-6
    false alarms.
    """
    estimate = run("doc/developers/add_a_model.md")[0]["estimate"]
    exact = np.log((2 * np.cosh(0.5)) ** 12 + (2 * np.sinh(0.5)) ** 12)
    assert_right(estimate, exact)


def test_own_estimator():
    page = run("doc/developers/add_an_estimator.md")[0]
    estimator = page["BaseImportanceSampling"](random_state=0)
    problem = make_rbm_problem("easy")
    check_partition_estimator(estimator, Problem(problem.name, problem.path, problem.log_partition))


ELSEWHERE = ("doc/developers/add_a_model.md", "doc/developers/add_an_estimator.md")  # tested above
SLOW = (  # a minute to some seconds each
    *("guide/image_models", "guide/recipes", "guide/searches", "guide/large_runs"),
    *("guide/your_density", "guide/comparing", "guide/log_likelihood", "guide/topic_models"),
    *("guide/pictures", "guide/large_corpora", "migration/evidence", "guide/decoders"),
    *("guide/choosing", "guide/elementary", "guide/evidence", "guide/saving"),
    *("guide/tempering", "guide/results"),
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
    check_outputs(file, within=0.3 if file == "doc/quickstart.md" else 0.0)

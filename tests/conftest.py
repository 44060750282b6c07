"""What holds for every test."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # else the threads of two processes wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def fixed_seeds():
    """Seed NumPy's global state, of which `random_state=None` draws."""
    np.random.seed(0)  # noqa: NPY002

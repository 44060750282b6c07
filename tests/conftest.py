"""What holds for every test."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def fixed_seeds():
    """Seed NumPy's global state, of which `random_state=None` draws."""
    np.random.seed(0)  # noqa: NPY002

"""Reference data that is not part of the repository."""

import numpy as np
import pytest

from sklpf.testing import find_shared_data


def shared_data(name):
    """Open a file of the reference data, or skip the test that asks for it where it is absent."""
    file = find_shared_data(name)
    if file is None:
        pytest.skip(f"reference data {name} not found: set SKLPF_DATA to the folder that holds it")
    return np.load(file, allow_pickle=False)

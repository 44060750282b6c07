"""Arguments of `pytest.mark.parametrize`."""

import pytest


def large(*values):
    """Those that are tried by `pytest -m large` alone."""
    return pytest.param(*values, marks=pytest.mark.large)

"""Reference data that is not part of the package: found by environment variable or beside the
repository.
"""

from __future__ import annotations

import os
from pathlib import Path as FilePath

import numpy as np


def find_shared_data(name: str) -> FilePath | None:
    """Return the path of a file of the reference data, or None where it is absent.

    Looked up in the folder that the environment variable ``SKLPF_DATA`` names and, in a checkout of
    the repository, in ``../shared/data`` beside it.

    Parameters
    ----------
    name : str
        Relative to the folder, such as "rbm/mnist_h10.npz".

    Returns
    -------
    pathlib.Path or None
    """
    return next((folder / name for folder in _folders() if (folder / name).is_file()), None)


def shared_data(name: str):
    """Open a file of the reference data, or skip the test that asks for it where the file is
    absent.

    Parameters
    ----------
    name : str
        Relative to the folder of `find_shared_data`, such as "rbm/mnist_h10.npz".

    Returns
    -------
    numpy.lib.npyio.NpzFile or ndarray
        As `numpy.load` returns it, pickles refused.
    """
    file = find_shared_data(name)
    if file is None:
        import pytest

        pytest.skip(f"reference data {name} not found: set SKLPF_DATA to the folder that holds it")
    return np.load(file, allow_pickle=False)


def _folders() -> list[FilePath]:
    folders = [FilePath(os.environ["SKLPF_DATA"])] if os.environ.get("SKLPF_DATA") else []
    checkouts = (
        FilePath(__file__).resolve().parents[2],
        FilePath.cwd(),
    )  # the second where the package is installed
    return folders + [
        root.parent / "shared" / "data" for root in checkouts if (root / "pyproject.toml").is_file()
    ]

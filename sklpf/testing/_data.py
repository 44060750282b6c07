"""Reference data that is not part of the package: found by environment variable or beside the
repository.
"""

from __future__ import annotations

import os
from pathlib import Path as FilePath


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


def _folders() -> list[FilePath]:
    named = os.environ.get("SKLPF_DATA")
    folders = [FilePath(named)] if named else []
    # The working directory is the checkout where the package is installed elsewhere.
    for root in (FilePath(__file__).resolve().parents[2], FilePath.cwd()):
        if (root / "pyproject.toml").is_file():
            folders.append(root.parent / "shared" / "data")
    return folders

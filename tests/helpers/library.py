"""The syntax trees of the library's files."""

import ast
import functools
from pathlib import Path

import sklpf

ROOT = Path(sklpf.__file__).parent


@functools.cache
def trees():
    """By file, parsed once."""
    files = sorted(ROOT.rglob("*.py"))
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}

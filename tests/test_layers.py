"""No import goes against the order of the layers, wherever in a file it stands."""

import ast

import pytest
from library import ROOT, trees

# A package may import those that stand later in this list.
ORDER = (
    "testing",
    "display",
    "comparing",
    "interop",
    "models",
    "scoring",
    "training",
    "partition",
    "exploration",
    "programs",
    "reweighting",
    "transitions",
    "paths",
    "kernels",
    "uncertainty",
    "variational",
    "datasets",
    "sampling",
    "_utils",
)
MODULES = [file.relative_to(ROOT) for file in trees() if file != ROOT / "__init__.py"]


def rank(name):
    """Place of a module or public name in the order: 'sklpf.paths._base' has that of paths."""
    parts = name.split(".")
    if len(parts) > 1 and parts[1] in ORDER:
        return ORDER.index(parts[1])
    return -1  # the package itself, or a public name of it, loaded from anywhere


def imports(module):
    """Line and full name of everything that a file imports from this package."""
    for node in ast.walk(trees()[ROOT / module]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "sklpf"]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            inside = node.module == "sklpf" or node.module.startswith("sklpf.")
            names = [f"{node.module}.{alias.name}" for alias in node.names] if inside else []
        else:
            continue
        yield from ((node.lineno, name) for name in names)


def test_every_package_has_its_place():
    packages = {folder.parent.name for folder in ROOT.glob("*/__init__.py")}
    modules = {file.stem for file in ROOT.glob("*.py")}
    assert packages | modules == {*ORDER, "__init__", "__main__"}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_follow_the_order(module):
    own = rank("sklpf." + ".".join(module.with_suffix("").parts))
    assert [(line, name) for line, name in imports(module) if rank(name) < own] == []


@pytest.mark.parametrize("module", [m for m in MODULES if "learning" in m.parts], ids=str)
def test_what_learns_knows_no_path(module):
    names = {name for _, name in imports(module)}
    paths = ("sklpf.paths", "sklpf.partition")
    assert not {name for name in names if "._path" in name or name.startswith(paths)}

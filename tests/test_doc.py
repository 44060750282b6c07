"""README.md's code prints what is said, links lead somewhere, and the reference and versions are
complete.
"""

import contextlib
import importlib
import io
import pkgutil
import re
import runpy
import tomllib

import pytest
from pages import PAGES, ROOT, agree, check_outputs, text

import sklpf

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {module.name for module in pkgutil.iter_modules(sklpf.__path__)}
API = sorted(MODULES - {"kernels", "_utils", "__main__"})


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("log Z 1.24 of  10 rows", True),
        ("log Z 1.26 of 10 rows", False),
        ("log Z 1.23 of 11 rows", False),
        ("log Z 1.2 of 10 rows", False),
        ("log Z nan of 10 rows", False),
        ("log Z -1.23 of 10 rows", False),
    ],
)
def test_outputs_agree_but_for_rounding(printed, same):
    assert agree("log Z 1.23 of 10 rows", printed) == same


@pytest.mark.large
def test_readme_prints_what_it_says():
    assert check_outputs("README.md")


@pytest.mark.parametrize("file", ["README.md", *PAGES])
def test_code_is_as_wide_as_its_column(file):
    """The column of text holds 80 characters at the widths of most windows."""
    blocks = re.findall(r"^```(?:python|py)\n(.*?)^```", text(file), re.S | re.M)
    wide = [line for block in blocks for line in block.splitlines() if len(line) > 80]
    assert not wide


@pytest.mark.large
def test_readme_says_what_its_example_prints(tmp_path, monkeypatch):
    script, said = re.search(
        r"```bash\n[^`]*?(examples/\w+/\w+\.py)\n```\n\n```text\n(.*?)```", text("README.md"), re.S
    ).groups()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [script])
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert agree(said, output.getvalue())


def links(file):
    return re.findall(r"\]\((?!#)([^)\s]+)\)", text(file)) + re.findall(
        r"<(https?://[^>\s]+)>", text(file)
    )


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md"])
def test_links_that_a_package_index_shows_are_absolute_and_lead_to_files(file):
    source = re.escape(PROJECT["urls"]["Source"])
    raw = r"https://raw\.githubusercontent\.com/sklpf/sklpf/"
    own = re.compile(f"(?:{raw}|{source}/(?:blob|tree)/)main/")
    assert links(file)
    for link in links(file):
        assert link.startswith("https://"), f"{file} has the relative link {link}"
        if own.match(link):
            assert (ROOT / own.sub("", link).partition("#")[0]).exists(), (
                f"{file} links to {link}, which is no file"
            )


@pytest.mark.parametrize("file", [file for file in PAGES if links(file)])
def test_links_between_pages_lead_to_files(file):
    for link in links(file):
        if not link.startswith(("http://", "https://")) and "auto_examples" not in link:
            assert (ROOT / file).parent.joinpath(link.partition("#")[0]).exists(), (
                f"{file} links to {link}"
            )


def test_versions_agree():
    cited = re.search(r"^version: (.*)$", text("CITATION.cff"), re.M).group(1)
    assert sklpf.__version__ == PROJECT["version"] == cited
    assert PROJECT["urls"]["Source"] in text("CITATION.cff")


def test_the_conda_recipe_needs_what_the_project_needs():
    recipe = text("doc/developers/recipe.yaml")
    wanted = {need.replace(">=", " >=") for need in PROJECT["dependencies"]}
    run = recipe.partition("  run:")[2].partition("tests:")[0]
    needs = set(re.findall(r"^    - (.*)$", run, re.M)) - {"python >=${{ python_min }}"}
    assert needs == wanted
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe


def test_the_reference_has_every_public_name_once():
    modules = ["sklpf", *(f"sklpf.{name}" for name in API)]
    objects = {}
    for module in modules:
        for name in set(importlib.import_module(module).__all__) - {"__version__"}:
            objects.setdefault(f"{module}.{name}", getattr(importlib.import_module(module), name))
    listed = []
    for page in sorted((ROOT / "doc" / "api").glob("*.md")):
        for table in text(page.relative_to(ROOT)).split(".. currentmodule:: ")[1:]:
            module = table.split("\n", 1)[0]
            listed += [f"{module}.{name}" for name in re.findall(r"^ {3}(\w+)$", table, re.M)]
    assert len(listed) == len(set(listed))
    unknown = set(listed) - set(objects)
    found = {id(objects[name]) for name in listed if name in objects}
    missing = sorted(name for name, item in objects.items() if id(item) not in found)
    assert not unknown, f"doc/api lists {sorted(unknown)}, which are not public"
    assert not missing, f"add {missing} to a page of doc/api"


def test_the_page_of_coverage_has_the_sums_of_its_ledger(monkeypatch):
    """On failure: run tests/benchmarks/calibration_page.py."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "benchmarks")
    import calibration_page

    page = (calibration_page.PAGES / "calibration.md").read_text(encoding="utf-8")
    assert calibration_page.table(calibration_page.read_ledger()) in page

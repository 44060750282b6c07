"""The Markdown of README.md and doc/, and its python code."""

import contextlib
import io
import re
import sys
import types
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ("_build", "auto_examples", "api/generated")
NUMBER = r"-?\d+(?:\.\d+)?"
PAGES = sorted(
    str(file.relative_to(ROOT))
    for file in (ROOT / "doc").rglob("*.md")
    if not file.relative_to(ROOT / "doc").as_posix().startswith(BUILT)
)


def text(file):
    return (ROOT / file).read_text(encoding="utf-8")


def run(file):
    """Execute all python blocks of a Markdown file in one namespace; returns it, and what each
    block printed.
    """
    blocks = re.findall(r"```python\n(.*?)```", text(file), flags=re.DOTALL)
    assert blocks, f"{file} has no python block"
    module = types.ModuleType(re.sub(r"\W", "_", file))
    sys.modules[module.__name__] = module  # where pickle looks for the classes of the page
    namespace, printed = module.__dict__, []
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, file, "exec"), namespace)
        printed.append(output.getvalue())
    return namespace, printed


def agree(said, printed, within=0.0):
    """Whether two texts have the same words, and numbers that differ by at most two units in the
    last place shown, or by `within`.

    Chains and fits are the same bits on one machine. On another processor sums are rounded
    otherwise, which two units allow for: runs that differ by Monte-Carlo errors don't agree.
    Weights that were trained for many passes differ by as much as those of two seeds.
    """
    if re.sub(NUMBER, "#", said).split() != re.sub(NUMBER, "#", printed).split():
        return False
    for a, b in zip(re.findall(NUMBER, said), re.findall(NUMBER, printed)):
        decimals = max(len(number.partition(".")[2]) for number in (a, b))  # NumPy drops zeros
        allowed = max(2.01 * 10**-decimals, within) * bool(decimals)
        if abs(float(a) - float(b)) > allowed:
            return False
    return True


def check_outputs(file, within=0.0):
    """Assert that python blocks print what a text block right after them says, as `agree` has it;
    returns the number of those.
    """
    blocks = r"```python\n.*?```(?:\n\n```text\n(.*?)```)?"
    said = re.findall(blocks, text(file), flags=re.DOTALL)
    printed = run(file)[1]
    for a, b in zip(said, printed, strict=True):
        assert not a or agree(a, b, within), f"{file} says\n{a}\nbut its code prints\n{b}"
    return sum(bool(a) for a in said)

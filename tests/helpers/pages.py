"""The Markdown of README.md and doc/, and its python code."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ("_build", "auto_examples", "api/generated")
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
    namespace, printed = {}, []
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, file, "exec"), namespace)
        printed.append(output.getvalue())
    return namespace, printed

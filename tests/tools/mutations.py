"""Do tests notice that a threshold, a Metropolis step or an error bar is wrong?

    COVERAGE_FILE=DATA pytest --cov=sklpf --cov-context=test --cov-report= tests/partition ...
    python tests/tools/mutations.py DATA [PART OF A NAME ...]

Each mutation changes one place of a copy of the library: a threshold of the table of alarms is ten
times as large, or else as small; a Metropolis step always accepts; the standard error of one
jackknife is a quarter. Then the tests that execute this place run. Mutations that no test notices
are listed at the end.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).parents[2]
MOST_TESTS = 12
SECONDS = 300.0
ALARMS = "sklpf/partition/alarms.py"
STEPS = [  # file, code of a Metropolis step, and what always accepts
    ("sklpf/transitions/_base.py", "np.exp(np.minimum(log_ratio, 0.0))", "1.0"),
    ("sklpf/transitions/_random_walk.py", "ACCEPT) < rate", "ACCEPT) < 1.0"),
    ("sklpf/transitions/_hmc.py", "ACCEPT) < rate", "ACCEPT) < 1.0"),
    ("sklpf/transitions/_gibbs.py", "ACCEPT) < rate", "ACCEPT) < 1.0"),
    ("sklpf/transitions/_continuous_kernels.py", "uniform(bits[0, c]) < rate", "True"),
    ("sklpf/programs/_exploring.py", "rng.random(len(old)) < rate", "rate > -1"),
    ("sklpf/programs/_learning.py", "rng.random(len(old)) < rate", "rate > -1"),
    ("sklpf/training/_chains.py", "np.log(self.rng.random(n)) < log_rate", "log_rate < np.inf"),
    (
        "sklpf/models/gaussian_rbm/_learning.py",
        "rng.random(len(h))) < log_rate",
        "1 + 0 * h[:, 0])",
    ),
    ("sklpf/exploration/_joint.py", "np.log(rng.random(n)) <", "-np.inf * np.ones(n) <"),
    ("sklpf/partition/checks/tails.py", "(np.log(rng.random(len(position))) < log_rate)", "True"),
]
NARROW = """

def _narrow(*arguments):
    value, error = jackknife(*arguments)
    return value, error / 4
"""

Mutation = namedtuple("Mutation", "name file texts line")  # line: (file, number) that tests execute


def thresholds():
    """Mutations of all thresholds that checks ask for."""
    source = (ROOT / ALARMS).read_text(encoding="utf-8")
    for file in sorted((ROOT / "sklpf").rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        for found in re.finditer(r'threshold\(\s*"([a-z-]+)",\s*"(\w+)"', code):
            kind, name = found.groups()
            begin = re.search(rf'^    "{kind}": ', source, re.M).start()
            value = re.compile(rf'"{name}": ([^,}}]+)').search(source, begin)
            texts = [
                f"{source[: value.start(1)]}{factor} * ({value[1]}){source[value.end(1) :]}"
                for factor in (10, 0.1)
            ]
            line = str(file), code.count("\n", 0, found.start()) + 1
            yield Mutation(f"{kind}.{name} in {file.name}", ALARMS, texts, line)


def steps():
    """Mutations of Metropolis steps."""
    for file, old, new in STEPS:
        code = (ROOT / file).read_text(encoding="utf-8")
        if old not in code:
            raise ValueError(f"{file} has no {old!r}")
        line = str(ROOT / file), code.count("\n", 0, code.index(old)) + 1
        yield Mutation(f"step of {file}", file, [code.replace(old, new)], line)


def jackknives():
    """Mutations of the standard errors of all jackknives."""
    for file in sorted((ROOT / "sklpf").rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        for number, found in enumerate(re.finditer(r"(?<!def )\bjackknife\(", code)):
            text = f"{code[: found.start()]}_narrow({code[found.end() :]}{NARROW}"
            line = str(file), code.count("\n", 0, found.start()) + 1
            name = str(file.relative_to(ROOT))
            yield Mutation(f"jackknife {number} of {name}", name, [text], line)


def tests_of(data, mutation):
    """Tests that execute a mutation's statement, by name."""
    file, line = mutation.line
    contexts = data.contexts_by_lineno(file)
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    spans = [
        (node.lineno, node.end_lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno
    ]
    first, last = min(spans, key=lambda span: span[1] - span[0])
    names = {name for number in range(first, last + 1) for name in contexts.get(number, ())}
    tests = {name.partition("|")[0] for name in names} - {""}
    near = Path(file).parent.name.strip("_")
    return sorted(tests, key=lambda test: (near not in test, test))[:MOST_TESTS]


def is_noticed(copy, mutation, tests):
    """Whether one of the tests fails with each of a mutation's texts, or with one of them."""
    target = copy / mutation.file
    original = target.read_bytes(), target.stat()
    environment = os.environ | {"PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        for text in mutation.texts:
            target.write_text(text, encoding="utf-8")
            try:
                run = subprocess.run(
                    command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS
                )
            except subprocess.TimeoutExpired:
                return True
            if run.returncode:
                return True
        return False
    finally:
        target.write_bytes(original[0])
        os.utime(target, ns=(original[1].st_atime_ns, original[1].st_mtime_ns))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="a file of coverage.py, with contexts")
    parser.add_argument("parts", nargs="*", help="only mutations whose names hold one of these")
    arguments = parser.parse_args()
    data = CoverageData(arguments.data)
    data.read()
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("sklpf", "tests", "doc", "pyproject.toml", "README.md"):
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name)
            else:
                shutil.copy2(source, copy)
        for mutation in [*thresholds(), *steps(), *jackknives()]:
            parts = arguments.parts
            if parts and not any(part in mutation.name for part in parts):
                continue
            tests = tests_of(data, mutation)
            noticed = bool(tests) and is_noticed(copy, mutation, tests)
            print(
                f"{'noticed ' if noticed else 'SURVIVES'} {mutation.name}: {len(tests)} tests",
                flush=True,
            )
            survivors += [] if noticed else [mutation.name]
    print(f"{len(survivors)} survive:", *survivors, sep="\n  ")


if __name__ == "__main__":
    main()

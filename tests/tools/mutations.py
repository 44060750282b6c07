"""Do tests notice that a threshold, a Metropolis step or an error bar is wrong?

    COVERAGE_FILE=DATA pytest --cov=sklpf --cov-context=test --cov-report= tests/partition ...
    python tests/tools/mutations.py DATA [PART OF A NAME ...]

Each mutation changes one place of a copy of the library: a threshold of the table of alarms is ten
times as large, or else a tenth; a Metropolis step always accepts; the standard error of one
jackknife is a quarter. Then tests that execute this place run, by the data of coverage.py: those of
thresholds, and at most `MOST_TESTS` others, those first whose code or name speaks of the alarm, or
of the file and of right numbers. Mutations that they don't notice in time are listed at the end.
"""

import argparse
import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parents[2]
MOST_TESTS = 24
MOST_OF_FUNCTION = 3
SEES_ERRORS = "cover|contract|invariant|agree|jackknife|right|unbiased|error"
SEES_ALARMS = "alarm|trusted|flag|refused|warn|not_|too_few|right|cover"
SECONDS = 240.0
ALARMS = "sklpf/partition/alarms.py"
STEPS = [  # file, code of a Metropolis step, and what always accepts
    ("sklpf/transitions/_base.py", "np.exp(np.minimum(log_ratio, 0.0))", "1.0"),
    ("sklpf/transitions/_random_walk.py", "ACCEPT) < rate", "ACCEPT) < 1.0"),
    ("sklpf/transitions/_hmc.py", "ACCEPT) < rate", "ACCEPT) < 1.0"),
    ("sklpf/transitions/_gibbs.py", "ACCEPT) < rate", "ACCEPT) < 1.0"),
    ("sklpf/transitions/_continuous_kernels.py", "uniform(bits[0, c]) < rate", "True"),
    ("sklpf/programs/_outward_walks.py", "rng.random(len(old)) < rate", "rate > -1"),
    ("sklpf/programs/_learning.py", "rng.random(len(old)) < rate", "rate > -1"),
    ("sklpf/training/_chains.py", "np.log(self.rng.random(n)) < log_rate", "log_rate < np.inf"),
    (
        "sklpf/models/gaussian_rbm/_learning.py",
        "np.log(rng.random(len(h))) < log_rate",
        "h.T[0] > -1",
    ),
    ("sklpf/exploration/_joint.py", "np.log(rng.random(n)) <", "-np.inf * np.ones(n) <"),
    ("sklpf/partition/checks/tails.py", "(np.log(rng.random(len(position))) < log_rate)", "True"),
]
NARROW = """

def _narrow(*arguments):
    value, error = jackknife(*arguments)
    return value, error / 4
"""


class Mutation(NamedTuple):
    """Texts of a file, tried in turn, and the lines (file, number) that use what is changed."""

    name: str
    file: str
    texts: list
    lines: list


def thresholds():
    """Mutations of all thresholds that checks ask for."""
    source = (ROOT / ALARMS).read_text(encoding="utf-8")
    lines = defaultdict(list)
    for file in sorted((ROOT / "sklpf").rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        for found in re.finditer(r'threshold\(\s*"([a-z-]+)",\s*"(\w+)"', code):
            lines[found.groups()].append((file, code.count("\n", 0, found.start()) + 1))
    for (kind, name), places in lines.items():
        begin = re.search(rf'^    "{kind}": ', source, re.M).start()
        value = re.compile(rf'"{name}": ([^,}}]+)').search(source, begin)
        texts = [
            f"{source[: value.start(1)]}{factor} * ({value[1]}){source[value.end(1) :]}"
            for factor in (10, 0.1)
        ]
        yield Mutation(f"{kind}.{name}", ALARMS, texts, places)


def steps():
    """Mutations of Metropolis steps."""
    for file, old, new in STEPS:
        code = (ROOT / file).read_text(encoding="utf-8")
        if old not in code:
            raise ValueError(f"{file} has no {old!r}")
        line = ROOT / file, code.count("\n", 0, code.index(old)) + 1
        yield Mutation(f"step of {file}", file, [code.replace(old, new)], [line])


def jackknives():
    """Mutations of the standard errors of all jackknives."""
    for file in sorted((ROOT / "sklpf").rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        name = str(file.relative_to(ROOT))
        for found in re.finditer(r"(?<!def )\bjackknife\(", code):
            text = f"{code[: found.start()]}_narrow({code[found.end() :]}{NARROW}"
            line = code.count("\n", 0, found.start()) + 1
            yield Mutation(f"jackknife at {name}:{line}", name, [text], [(file, line)])


@functools.cache
def statements(file):
    """First and last lines of the statements of a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return [(node.lineno, node.end_lineno) for node in ast.walk(tree) if isinstance(node, ast.stmt)]


@functools.cache
def code_of(file, function):
    """The code of a test."""
    text = (ROOT / file).read_text(encoding="utf-8")
    nodes = [node for node in ast.walk(ast.parse(text)) if getattr(node, "name", "") == function]
    return " ".join(filter(None, (ast.get_source_segment(text, node) for node in nodes)))


def tests_of(data, mutation):
    """Tests that execute a mutation's statements, by name; of compiled ones those of the folder and
    those that compare with plain loops.
    """
    tests = set()
    for file, line in mutation.lines:
        around = [(a, b) for a, b in statements(file) if a <= line <= b]
        first, last = min(around, key=lambda span: span[1] - span[0])
        contexts = data.contexts_by_lineno(str(file))
        names = {name for number in range(first, last + 1) for name in contexts.get(number, ())}
        tests |= {name.partition("|")[0] for name in names} - {""}
    if not tests:
        return ["tests/paths/test_compiled_density.py", f"tests/{Path(mutation.file).parts[1]}"]
    kind = mutation.name.partition(".")[0]
    stem = mutation.lines[0][0].stem.strip("_")
    folder = f"tests/{Path(mutation.file).parts[1]}/"

    def rank(test):
        file, _, name = test.partition("::")
        function = name.partition("[")[0]
        if mutation.file != ALARMS:
            named = stem.replace("_", "") in test.replace("_", "").lower()
            return not named, folder not in file, not re.search(SEES_ERRORS, function), test
        speaks = re.search(SEES_ALARMS, function)
        return f'"{kind}"' not in code_of(file, function), stem not in file, not speaks, test

    beside = [test for test in tests if "test_thresholds.py" in test]  # of all alarms, and fast
    of_function, others = defaultdict(list), []
    for test in sorted(tests.difference(beside), key=rank):
        of_function[test.partition("[")[0]].append(test)
    for same in of_function.values():
        others += same[:MOST_OF_FUNCTION]
    return beside + others[:MOST_TESTS]


def outcome(copy, mutation, tests):
    """Whether a test fails with one of a mutation's texts, in a word."""
    target = copy / mutation.file
    original = target.read_bytes(), target.stat()
    environment = os.environ | {"PYTHONPATH": str(copy)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    options = {"cwd": copy, "env": environment, "capture_output": True, "timeout": SECONDS}
    try:
        for text in mutation.texts:
            target.write_text(text, encoding="utf-8")
            try:
                if subprocess.run(command, **options).returncode:
                    return "noticed"
            except subprocess.TimeoutExpired:
                return "OUT OF TIME"
        return "SURVIVES"
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
    unnoticed = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("sklpf", "tests", "doc"):
            shutil.copytree(ROOT / name, copy / name)
        for name in ("pyproject.toml", "README.md"):
            shutil.copy2(ROOT / name, copy)
        for mutation in [*thresholds(), *steps(), *jackknives()]:
            if arguments.parts and not any(part in mutation.name for part in arguments.parts):
                continue
            tests = tests_of(data, mutation)
            word = outcome(copy, mutation, tests)
            print(f"{word:11}", mutation.name, len(tests), flush=True)
            unnoticed += [] if word == "noticed" else [mutation.name]
    print(f"{len(unnoticed)} not noticed:", *unnoticed, sep="\n  ")


if __name__ == "__main__":
    main()

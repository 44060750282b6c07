"""The table holds all alarms that checks raise, and the page of the guide is printed from it."""

import ast
import re
from pathlib import Path
from string import Formatter

from sklpf.partition.alarms import KINDS, page

ROOT = Path(__file__).parents[1]


def _calls(node, *names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def raised():
    """Kind and sentence of every alarm that is raised, as they stand in the code."""
    for file in sorted((ROOT / "sklpf").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if _calls(node, "raised"):
                kind, sentence = node.args[:2]
                for part in ast.walk(sentence):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield kind.value, part.value


def test_what_is_raised_has_a_row_and_a_sentence():
    known = {(kind, sentence) for kind, row in KINDS.items() for sentence in row.sentences}
    assert set(raised()) <= known


def test_every_row_and_sentence_is_raised():
    """By name: some sentences are chosen before they are raised."""
    strings = {
        node.value
        for file in (ROOT / "sklpf").rglob("*.py")
        if file.name != "alarms.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    strings |= {part for pair in raised() for part in pair}  # by the table's own functions too
    for kind, row in KINDS.items():
        assert {kind, *row.sentences} <= strings


def test_alarms_are_made_by_the_table_alone():
    """Or read from a file, or by a user."""
    made = [
        file.name
        for file in sorted((ROOT / "sklpf").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if _calls(node, "Alarm")
    ]
    assert made == ["_result.py", "alarms.py"]


def test_the_page_has_one_heading_for_each_kind():
    assert re.findall(r"^### (.*)$", page(), re.MULTILINE) == list(KINDS)


def thresholds_asked_for():
    """Kind and name of every threshold that checks compare with."""
    for file in sorted((ROOT / "sklpf").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if _calls(node, "threshold"):
                yield tuple(argument.value for argument in node.args)


def test_each_threshold_stands_in_the_row_of_its_kind_and_is_used():
    asked = set(thresholds_asked_for())
    assert asked <= {(kind, name) for kind, row in KINDS.items() for name in row.thresholds}
    shared = {"between", "nats", "difference", "false_alarm"}  # constants that more rows name
    for kind, row in KINDS.items():
        named = {name for _, name, _, _ in Formatter().parse(row.rule) if name}
        assert named <= row.thresholds.keys(), kind
        filled_in = {
            name
            for sentence in row.sentences.values()
            for _, name, _, _ in Formatter().parse(sentence)
        }
        unused = row.thresholds.keys() - {name for k, name in asked if k == kind}
        assert unused <= filled_in | shared, kind


def test_a_search_by_a_printed_sentence_finds_its_paragraph():
    """Every word of a sentence that is no number stands in the paragraph of its kind."""
    paragraphs = dict(re.findall(r"### ([\w-]+)\n(.*?)(?=\n### |\Z)", page(), re.DOTALL))
    for kind, row in KINDS.items():
        for sentence in row.sentences.values():
            printed = re.sub(r"\{[^{}]*\}", " ", sentence)
            assert set(re.findall(r"\w+", printed)) <= set(re.findall(r"\w+", paragraphs[kind]))

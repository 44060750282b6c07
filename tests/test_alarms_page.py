"""The table holds all alarms that checks raise, and the page of the guide is printed from it."""

import ast
import functools
import re
from string import Formatter

from library import trees

from sklpf.partition.alarms import KINDS, page


@functools.cache
def nodes():
    """File and node of all syntax trees of the library."""
    return [(file.name, node) for file, tree in trees().items() for node in ast.walk(tree)]


def calls(name):
    """File and node of all calls of a function."""
    for file, node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield file, node


def strings(nodes):
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def raised():
    """Kind and sentence of every alarm that is raised, as they stand in the code."""
    for _, node in calls("raised"):
        kind, sentence = node.args[:2]
        yield from ((kind.value, part) for part in strings(ast.walk(sentence)))


def test_what_is_raised_has_a_row_and_a_sentence():
    known = {(kind, sentence) for kind, row in KINDS.items() for sentence in row.sentences}
    assert set(raised()) <= known


def test_every_row_and_sentence_is_raised():
    """By name: some sentences are chosen before they are raised."""
    known = strings(node for file, node in nodes() if file != "alarms.py")
    known |= {part for pair in raised() for part in pair}  # by the table's own functions too
    for kind, row in KINDS.items():
        assert {kind, *row.sentences} <= known


def test_alarms_are_made_by_the_table_alone():
    """Or read from a file, or by a user."""
    made = [file for file, _ in calls("Alarm")]
    assert made == ["_result.py", "alarms.py"]


def test_the_page_has_one_heading_for_each_kind():
    assert re.findall(r"^### (.*)$", page(), re.MULTILINE) == list(KINDS)


def test_each_threshold_stands_in_the_row_of_its_kind_and_is_used():
    asked = {tuple(part.value for part in node.args) for _, node in calls("threshold")}
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

"""The table holds every alarm that checks raise, and no other; the guide's page is printed from it,
and explains warnings beside: a new one without an entry fails here.
"""

import ast
import re
from pathlib import Path
from string import Formatter

from sklpf.partition.alarms import KINDS, page

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "doc" / "guide" / "alarms.md"
TEXT = PAGE.read_text(encoding="utf-8") + page()
FOLDERS = ("kernels", "models", "partition", "paths", "programs", "training")
NO_SENTENCES = ("progress.py", "alarms.py")  # lines of `verbose`; the table
# Strings of at least four words that are no alarms: what is printed, and parts of errors that stand
# outside of `raise`.
NO_ALARMS = """
exponents_ are too small | a second try, from a base that covers it | expected from |
difference from the first | sweeps and moves | (nats) | Iteration …, log-likelihood |
Iteration …, pseudo-likelihood | log p(words, topics): … | log p(words, topics) = … |
variance given hidden units = | The tracking of log Z | only RBMs of discrete | define it |
its states are no points of R^d | only topic models have one |
choose AIS, RTS or ParallelTempering | an estimator of log Z (such as | compiling kernels, once |
compiles what it needs at its first use | compiled kernels (others are |
log Z is not estimated, but | a ParallelTempering() or an RTS() | a move (such as HMC()) |
of a function of one point say | takes points (n, |
takes one point ( | of functions of one point | dimensions (the error is above): give a base |
an array of real numbers of shape ( | encoder must give mean and log variance |
needs a run of RTS(continuous=True) | takes the weights of another library's RBM |
sklpf.interop.from_sklearn(model) makes one of it | makes a path of a function |
take the last step, pipeline[-1] | and compare_estimates read runs of |
take the model that the search found | at the end of a pipeline |
the part of the pipeline that ends in its model | pass the part that ends in its model |
without a best_estimator_ | that another library fitted sklpf.interop makes |
of another library's topic model | an estimator of one log Z for each row |
log_density is not normalisable | -inf where a constant stands for density 0 |
the negative Hessian of log_density |
give another start, or the base itself | a mixture fitted to |
X holds values too large |
lower learning_rate or rescale X | fits are there from an earlier run |
nats per row, expected from | training rows | of these two fits |
between the last passes of training | coordinates in | a path, which has them already |
at inverse temperature | and Gaussians at regions that it missed | moves points of R^d, where |
regions with mass were found, and draws | no mode was found at which | R-hat is at most |
draws are effective, in the worst | by halves log Z differs | terms of the bridge have Pareto |
by two kinds of proposals log Z | nothing speaks against them |
checks beside the run | converged by the run alone, without checks | evaluations of the density, … |
` of the target. | of the halves of a single chain | and models are compared by one: see compare |
pool those of one row | no model here takes missing values | weights of the draws |
give a base that covers it; where its support
"""
NO_ALARMS = [part.strip() for part in NO_ALARMS.split("|")]


def _calls(node, *names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _logs(node):
    function = getattr(node, "func", None)
    return isinstance(function, ast.Attribute) and function.attr in ("info", "debug")


def _unread(tree):
    """Nodes whose strings are no sentences, or those of the table: docstrings, errors, alarms, what
    is only logged, what diagnostics mean.
    """
    for node in ast.walk(tree):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        if documented and ast.get_docstring(node) is not None:
            yield node.body[0]
        elif isinstance(node, ast.Raise) or _calls(node, "Diagnostic", "raised") or _logs(node):
            yield node


def sentences(source):
    """Every string of at least four words in a module's code, with … for what is filled in."""
    tree = ast.parse(source)
    skipped = {id(inner) for node in _unread(tree) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(inner) for inner in ast.walk(node))
            parts = (getattr(part, "value", None) for part in node.values)
            text = "".join(part if isinstance(part, str) else "…" for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(re.findall(r"[A-Za-z']+", text)) >= 4 and text.count(" ") >= 3:
            yield text


def key_phrase(sentence):
    """The longest stretch of a sentence that holds nothing filled in."""
    return max((" ".join(part.split()) for part in sentence.split("…")), key=len)


def alarms():
    for folder in ("", *FOLDERS):
        for file in sorted((ROOT / "sklpf" / folder).glob("**/*.py" if folder else "*.py")):
            if file.name in NO_SENTENCES or file.name == "__init__.py":
                continue
            for sentence in sentences(file.read_text(encoding="utf-8")):
                if not any(part in sentence for part in NO_ALARMS):
                    yield f"{file.relative_to(ROOT / 'sklpf')}: {key_phrase(sentence)}"


def test_the_scan_finds_alarms_and_no_errors():
    source = '''def f(x):
    """A docstring of more than five words."""
    reasons = [f"effective sample size {x:.1f} of the many: raise n_chains"]
    raise ValueError("x must be one of these numbers")
'''
    assert list(sentences(source)) == ["effective sample size … of the many: raise n_chains"]


def test_alarms_have_an_entry():
    """On failure: explain the sentences in doc/guide/alarms.md, or name them in NO_ALARMS if they
    are none.
    """
    text = " ".join(TEXT.split())
    assert not [alarm for alarm in sorted(set(alarms())) if alarm.split(": ", 1)[1] not in text]


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

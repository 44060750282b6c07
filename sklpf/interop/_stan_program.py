"""What the text of a Stan program says about its evidence: constants that its statements drop, and
parameters without a prior.
"""

from __future__ import annotations

import re

_PROPER_TYPES = ("simplex", "unit_vector", "corr_matrix", "cholesky_factor_corr")  # compact
_DROPS_BY_NAME = re.compile(r"\b\w+_lup[dm]f\s*\(")
_DENSITY = re.compile(r"\btarget \+= \w+_lu?p[dm]f ?\(([^|]*)\|(.*)\)$")


def dropping_statements(program: str) -> list[str]:
    """Return the statements that drop constants: ``y ~ normal(mu, 1)``, and those that call a
    function ``_lupdf`` or ``_lupmf``.
    """
    return [
        statement
        for statement in _statements(_block(program, "model"))
        if " ~ " in statement or _DROPS_BY_NAME.search(statement)
    ]


def without_prior(program: str) -> list[str]:
    """Return the unbounded parameters that only say how something else is distributed.

    Where a parameter is used in any other way it may have a prior, which this cannot tell, and is
    left out.
    """
    statements = [
        *_statements(_block(program, "transformed parameters")),
        *_statements(_block(program, "model")),
    ]
    return [
        name
        for name in _unbounded_parameters(_block(program, "parameters"))
        if all(_is_condition(name, s) for s in statements if _mentions(s, name))
    ]


def _block(program: str, name: str) -> str:
    """The text between the braces of a block; "" where there is none."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"]*"', " ", program, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    before = "(?<!transformed )" if name == "parameters" else ""
    start = re.search(rf"{before}\b{name} ?{{", text)
    if start is None:
        return ""
    depth = 1
    for end in range(start.end(), len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[start.end() : end]
    return text[start.end() :]


def _statements(block: str) -> list[str]:
    spaced = re.sub(r" ?(\+=|~) ?", r" \1 ", block)
    return [part.strip() for part in re.split("[;{}]", spaced) if part.strip()]


def _unbounded_parameters(block: str) -> list[str]:
    names: list[str] = []
    for declaration in _statements(block):
        has_bounds = "lower" in declaration and "upper" in declaration
        if has_bounds or any(kind in declaration for kind in _PROPER_TYPES):
            continue
        bare = declaration
        for brackets in (r"\[[^\[\]]*\]", r"<[^<>]*>"):
            while re.search(brackets, bare):
                bare = re.sub(brackets, " ", bare)
        names.extend(part.split()[-1] for part in bare.split(",") if part.strip())
    return names


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _is_condition(name: str, statement: str) -> bool:
    """Whether a statement is the distribution of something else, given this parameter."""
    if " ~ " in statement:
        return not _mentions(statement.split(" ~ ")[0], name)
    density = _DENSITY.search(statement)
    if density is None or _mentions(density[1], name):
        return False
    # One call alone: more terms could follow its closing parenthesis.
    depth = 0
    for character in density[2]:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return True

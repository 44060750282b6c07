"""Answers to what several rows ask at once: densities at points, and moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklpf.paths._base import n_chains, take
from sklpf.programs import _plain
from sklpf.transitions._side_by_side import Passage, joined


def answer(path: Any, questions: Sequence[Any]) -> list[Any]:
    """Return the answers to the questions of several rows of a path, in the same order.

    A `Passage` is answered by what the program `anneal` returns for it; anything else the path
    answers itself.
    """
    answers: list[Any] = [None] * len(questions)
    kinds: dict[Any, list[int]] = {}
    for i, question in enumerate(questions):
        kind = question.reverse if isinstance(question, Passage) else None
        kinds.setdefault(kind, []).append(i)
    for kind, places in kinds.items():
        alike = [questions[i] for i in places]
        found = path.answer(alike) if kind is None else _anneal_together(alike)
        for i, of_one in zip(places, found):
            answers[i] = of_one
    return answers


def _anneal_together(passages: list[Passage]) -> list[Any]:
    """State, memory and log weights of every passage; rows that are through leave the others."""
    passages = list(passages)
    moving = [i for i, passage in enumerate(passages) if passage.n_moves]
    while moving:
        n_moves = min(passages[i].n_moves for i in moving)
        with np.errstate(invalid="ignore"):  # each row looks at its own log weights
            moved = _plain.anneal(*joined([passages[i] for i in moving], n_moves))
        first = 0
        for i in moving:
            passage = passages[i]
            last = first + n_chains(passage.state)
            chains = np.arange(first, last)
            state, memory, log_weights = (take(part, chains) for part in moved)
            first = last
            passages[i] = passage._replace(
                state=state,
                memory=memory,
                log_weights=log_weights,
                levels=passage.levels[n_moves:],
                stream=passage.stream.at(passage.stream.step + n_moves),
            )
        moving = [i for i in moving if passages[i].n_moves]
    return [(passage.state, passage.memory, passage.log_weights) for passage in passages]

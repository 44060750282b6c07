"""What a check is given, and what it leaves."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklpf._utils.random import Stream, seeded
from sklpf.paths._climbs import Evaluations
from sklpf.transitions import Transition


class Work(NamedTuple):
    """What a check may use.

    Attributes
    ----------
    path : Path
    seed : int
        Of the run: a check takes a stream of its own name.
    run : Run or None
        None before chains are run.
    move : Transition or None
        The tuned move of reverse chains, where weights of independent chains are what is read.
    n_jobs : int or None
    """

    path: Any
    seed: int
    run: Any = None
    move: Transition | None = None
    n_jobs: int | None = None

    def stream(self, name: str) -> Stream:
        """Random stream of this name."""
        return seeded(self.seed).of(name)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check has found: arrays and numbers, and what they took.

    Attributes
    ----------
    n_evaluations : int
        How often the check asked for the log density, or its gradient, at a point, and sweeps of
        its chains.
    n_failed : int
        Points at which the density raised an error then.
    """

    n_evaluations: int = 0
    n_failed: int = 0


Findings = Mapping[str, Finding]  # by the names of checks


def counted(path: Any) -> tuple[Any, Evaluations]:
    """Return a copy of a path that counts evaluations where it can, and the counter."""
    evaluations = Evaluations()
    if hasattr(path, "evaluations"):
        path = copy.copy(path)
        path.evaluations = evaluations
    return path, evaluations

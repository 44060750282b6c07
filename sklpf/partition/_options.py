"""Rules for the parameters that several estimators share, and for the moves that they make."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

from sklpf._sklearn import Interval, StrOptions
from sklpf.runs._plan import ADAPTIVE_LADDERS
from sklpf.transitions import Transition

SAMPLING: dict[str, Any] = {
    "weights": [str, None],
    "base": [str, "array-like", None],
    "transition": [Transition, None],
    "checkpoint": [str, os.PathLike, None],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}
ANNEALING: dict[str, Any] = {
    **SAMPLING,
    "n_temperatures": [Interval(Integral, 2, None, closed="left")],
    "ladder": [StrOptions(set(ADAPTIVE_LADDERS)), "array-like"],
}

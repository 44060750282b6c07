"""What diagnostics mean: every estimator says it of its own, in `_diagnostics`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sklpf.runs import Run
from sklpf.runs._run import with_round


class Diagnostic(NamedTuple):
    """What one of the numbers beside log Z means.

    Attributes
    ----------
    meaning : str
        Its line in a summary; empty for those that have none.
    good : str
        The side that is good, "high" or "low": of an array a summary shows the worst. Empty: the
        range.
    dimensions : tuple of str
        Of an array.
    per_chain : bool
        Whether it has a number for every chain, ladder or population, which models don't keep.
    """

    meaning: str = ""
    good: str = ""
    dimensions: tuple[str, ...] = ()
    per_chain: bool = False


# a pair is one of neighbouring levels
LEVEL = ("level",)
PAIR = ("pair",)
ROUND = ("round",)

CURVE = {"curve_std_error": Diagnostic(dimensions=LEVEL)}
FIRST_TRY = {
    "first_try": Diagnostic("log Z of a first try, whose base did not cover all regions", "")
}
PLAIN_BOUND = {"plain_bound": Diagnostic("lower bound of log Z by plain chains, estimated (nats)")}
ROUNDS = {
    "round_log_partition": Diagnostic(dimensions=ROUND),
    "round_std_error": Diagnostic(dimensions=ROUND),
    "round_sweeps": Diagnostic(dimensions=ROUND),
}
MOVES = {
    "acceptance": Diagnostic("acceptance rate of moves, lowest of all levels", "high", LEVEL),
    "step_sizes": Diagnostic(dimensions=LEVEL),
}
WEIGHTS = {
    "log_weights": Diagnostic(dimensions=("chain",), per_chain=True),
    "effective_sample_size": Diagnostic("effective sample size", "high"),
    "pareto_shape": Diagnostic("Pareto shape of the weights' tail (heavy from 0.7)", "low"),
}
LOWER_BOUND = {"lower_bound": Diagnostic("log Z is above, with 95 % certainty (nats)")}


def round_diagnostics(run: Run, log_partition: float, std_error: float) -> dict[str, Any]:
    """The estimate after every earlier round and at last the result's own, shape (R + 1,)."""
    rounds = with_round(run.history, log_partition, std_error, run.n_sweeps)
    values, errors, sweeps = rounds.T.copy()
    return {
        "round_log_partition": values,
        "round_std_error": errors,
        "round_sweeps": sweeps.astype(np.int64),
    }

"""Numbers beside log Z: what they mean, for summaries and datasets."""

from __future__ import annotations

from typing import NamedTuple

# a pair is one of neighbouring levels
LEVEL = ("level",)
PAIR = ("pair",)
ROUND = ("round",)


class Diagnostic(NamedTuple):
    """Meaning of one of the numbers beside log Z.

    Attributes
    ----------
    meaning : str
        Its line in a summary; empty for those that have none.
    good : str
        The side that is good, "high" or "low": of an array a summary shows the worst. Empty: the
        range.
    dimensions : tuple of str
        Names of an array's dimensions.
    per_chain : bool
        Whether it has a number for every chain, ladder or population, which models don't keep.
    """

    meaning: str = ""
    good: str = ""
    dimensions: tuple[str, ...] = ()
    per_chain: bool = False


CURVE = {"curve_std_error": Diagnostic(dimensions=LEVEL)}
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
LOWER_BOUND = {
    "lower_bound": Diagnostic(
        "lower bound of log Z, with probability 95 % (Markov's inequality; nats)"
    )
}

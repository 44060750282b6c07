"""The stage between sampling and reading: checks find what a run can't show itself.

A check is a file with a `Finding`, whose ``collect(work)`` looks and whose ``judge(run, result)``
says what follows. Findings are kept in the run, so that `judge` is a pure function of it.

===========  ====================================================================
check        applies to
===========  ====================================================================
tails        densities on R^d, before they are sampled
bound        paths with `bound_draws`
missed_mass  paths with `regions`, of runs that keep draws
===========  ====================================================================
"""

from __future__ import annotations

from sklpf.partition._result import Finding, Findings, Judgement, Work  # noqa: F401
from sklpf.partition.checks.bound import Bound
from sklpf.partition.checks.missed_mass import MissedMass
from sklpf.partition.checks.tails import Tails

CHECKS: dict[str, type[Finding]] = {
    "bound": Bound,
    "missed_mass": MissedMass,
    "tails": Tails,
}

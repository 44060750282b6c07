"""The reading of runs of simulated tempering: `RTS` and the estimators that extend it."""

from __future__ import annotations

from sklpf.readings._continuous import judge_continuous
from sklpf.readings._reading import Reading, conclude, tol_alarms
from sklpf.readings._rounds import judge, started_from
from sklpf.runs import ContinuousRun, TemperingRun
from sklpf.runs._history import round_diagnostics


def read_tempering(run: TemperingRun | ContinuousRun) -> Reading:
    """The reading of a run of `RTS`, at levels or at continuous inverse temperatures."""
    rao_blackwell = run.options.get("rao_blackwell", True)
    if not isinstance(run, ContinuousRun):
        verdict = judge(run.first, run.rounds, started_from(run), rao_blackwell)
    elif rao_blackwell:
        verdict = judge_continuous(run)
    else:
        raise ValueError(
            "rao_blackwell must be True for a run with continuous beta: no beta is drawn twice"
        )

    log_partition = float(run.base_log_partition + verdict.curve[-1])
    return conclude(
        run,
        "RTS" if rao_blackwell else "TS",
        log_partition,
        verdict.std_error,
        verdict.degrees_of_freedom,
        alarms=verdict.alarms
        + tol_alarms(verdict.std_error, run.options["tol"], "raise max_sweeps"),
        diagnostics={
            **verdict.diagnostics,
            "sweeps_per_redraw": run.sweeps_per_redraw,
            **round_diagnostics(run, log_partition, verdict.std_error),
        },
        levels=run.base_log_partition + verdict.curve,
        curve=verdict.pooled,
    )

"""Parts of a run that should say the same: an alarm where they don't."""

from __future__ import annotations

from sklpf._alarm import Alarm
from sklpf.uncertainty import Difference


def halves_alarms(drift: Difference, n_groups: int) -> list[Alarm]:
    """An alarm if the halves of the last round differ by more than chance."""
    if not drift.alarms(n_groups):
        return []
    return [Alarm("halves-disagree", f"the halves of the last round disagree (t = {drift.t:.1f})", "raise n_sweeps")]

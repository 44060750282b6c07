"""What an estimate was after every round of a run, so that it can be drawn against the sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# of (R, 3): log Z in nats, its standard error, and the sweeps of all chains until then
NO_ROUNDS = np.empty((0, 3))


def with_round(
    history: NDArray, log_partition: float, std_error: float, n_sweeps: int
) -> NDArray[np.float64]:
    """The history with one more round."""
    return np.vstack([history, [log_partition, std_error, n_sweeps]])


def round_diagnostics(run: Any, log_partition: float, std_error: float) -> dict[str, Any]:
    """Diagnostics that hold the estimate after every earlier round and at last the result's own,
    shape (R + 1,).
    """
    values, errors, sweeps = with_round(
        run.history, log_partition, std_error, run.n_sweeps
    ).T.copy()
    return {
        "round_log_partition": values,
        "round_std_error": errors,
        "round_sweeps": sweeps.astype(np.int64),
    }

"""Iterated conditional modes: climbing to a mode of a discrete density, block by block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.random import Stream
from sklpf.paths._capabilities import Base, ConditionalModes, has, require

_MOST_PASSES = 10_000


class Modes(NamedTuple):
    """Where iterated conditional modes ended.

    Attributes
    ----------
    state : state of the path
    log_f : ndarray of shape (n_passes + 1, n)
        Log density of all variables before the first and after every pass, in nats, of each of the
        n chains.
    """

    state: Any
    log_f: Array


def iterated_conditional_modes(path: Any, state: Any) -> Modes:
    """Set each block of variables to its most probable values given the others, until nothing
    changes (ICM).

    Gibbs sampling with maxima in the place of draws (Besag 1986; Bishop 2006, 11.3): log f never
    falls, and ends at a state that no change of a single block improves, which need not be the
    highest mode.

    Parameters
    ----------
    path : Path
        With `ConditionalModes`; `sklpf.models.RBMPath` has them, with its two layers as blocks.
    state : state of the path
        Where the n chains start: ``path.state_from_rows(X)``, or ``path.sample_base(n, stream)``.

    Returns
    -------
    Modes

    Raises
    ------
    TypeError
        If the path lacks `log_joint` or `conditional_modes`, or `state` is no state of it.
    ValueError
        If log f is NaN or +inf at the start, or falls, so that these two don't belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.models import RBMPath
    >>> path = RBMPath([[2.0, -1.0]], [-0.5, 0.0], [0.5], [0.5, 0.5])
    >>> modes = iterated_conditional_modes(path, path.state_from_rows([[0, 1]]))
    >>> modes.state.v, modes.state.h, modes.log_f.ravel()
    (array([[0, 1]], dtype=uint8), array([[0]], dtype=uint8), array([0., 0.]))
    """
    if callable(getattr(path, "path", None)):
        raise TypeError(f"path must be a path, got a {type(path).__name__}: give its path()")
    require(path, ConditionalModes, "iterated_conditional_modes")
    if has(path, Base) and not isinstance(state, type(path.sample_base(1, Stream((0, 0))))):
        raise TypeError(
            f"state must be a state of the path, got {type(state).__name__}: give"
            " path.state_from_rows(X) or path.sample_base(n, stream)"
        )
    trace = [path.log_joint(state)]
    if np.any(np.isnan(trace[0]) | (trace[0] == np.inf)):
        raise ValueError(
            "state must have a log density that is a number or -inf: start the chains elsewhere"
        )
    for _ in range(_MOST_PASSES):
        state = path.conditional_modes(state)
        trace.append(path.log_joint(state))
        if not np.all(trace[-1] >= trace[-2] - 1e-9 * np.maximum(1.0, np.abs(trace[-1]))):
            raise ValueError(
                f"log_joint falls at a pass of {type(path).__name__}.conditional_modes: check both"
            )
        if np.all(trace[-1] <= trace[-2]):
            return Modes(state, np.array(trace))
    raise ValueError(
        f"log_joint still grows after {_MOST_PASSES} passes of"
        f" {type(path).__name__}.conditional_modes"
    )

"""Newton's method with step halving, for the convex functions whose minima are log normalisers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array

_MAX_STEPS = 100


def minimise(
    evaluate: Callable[[NDArray], tuple[float, Any]],
    newton_step: Callable[[NDArray, Any], NDArray],
    start: NDArray,
    *,
    tol: float,
    smallest: float,
    fallback: Callable[[NDArray, Any], NDArray] | None = None,
) -> Array:
    """Return the minimiser of a convex function, from `start`.

    Parameters
    ----------
    evaluate : callable
        Returns the function's value and what the steps need besides it.
    newton_step : callable
    start : ndarray
    tol : float
        Largest change in the last step.
    smallest : float
        A step is halved until the function does not rise, but not below this share of it.
    fallback : callable or None, default=None
        The step to take where Newton's would be halved below that; None takes the halved one.
    """
    x = start
    value, extra = evaluate(x)
    for _ in range(_MAX_STEPS):
        step = newton_step(x, extra)
        size = 1.0
        new_value, new_extra = evaluate(x + step)
        while new_value > value + 1e-12 * abs(value) and size > smallest:
            size /= 2
            # far off the Hessian may be nearly singular
            if size < smallest and fallback is not None:
                step = fallback(x, extra)
                size = 1.0
                new_value, new_extra = evaluate(x + step)
                break
            new_value, new_extra = evaluate(x + size * step)
        x = x + size * step
        value = new_value
        extra = new_extra
        if np.abs(size * step).max() < tol:
            break
    return x

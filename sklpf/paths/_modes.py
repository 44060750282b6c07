"""A mode of a log density, and the curvature there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, optimize

from sklpf._utils.numbers import Array
from sklpf.paths._functions import values_of_shape

Function = Callable[[Array], Array]
_INSTEAD = (
    "give another start, or the base itself as Gaussian(mean, covariance), such as the prior; a"
    " hierarchy may have a mode in its non-centred form"
)
_DIFFERENCE = 1e-3  # steps of numerical derivatives, in standard deviations


def checked_function(
    name: str, function: Function, start: Array, shape: tuple[int, ...]
) -> Function:
    """The user's function with float64 arrays for values, once it gave a finite one of this shape
    for the start: () of a density, (d,) of a gradient.
    """

    def checked(points: Array) -> Array:
        hint = "; of a function of one point say lambda points: np.array([f(x) for x in points])"
        return values_of_shape(name, function(points), (len(points), *shape), hint)

    values = checked(start[np.newaxis])
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite at start, got {values[0]}: {_INSTEAD}")
    return checked


def _slopes(function: Function, x: Array, steps: Array) -> Array:
    """Central differences of a function of points along every coordinate of x: (d,), or (d, …) if
    it gives rows.
    """
    moves = np.diag(steps)
    return ((function(x + moves) - function(x - moves)).T / (2 * steps)).T


def _gradients(log_density: Function, grad: Function | None, points: Array, steps: Array) -> Array:
    return (
        np.stack([_slopes(log_density, x, steps) for x in points]) if grad is None else grad(points)
    )


def mode_and_widths(
    log_density: Function, grad: Function | None, start: Array
) -> tuple[Array, Array]:
    """A mode and the widths there, found in rounds until the widths suit the steps that
    were made.
    """
    mode = start
    widths = np.ones_like(start)
    for _ in range(10):
        mode = _bfgs(log_density, grad, mode, widths)
        previous = widths
        widths = _widths(log_density, mode, widths)
        if np.all(np.abs(np.log(widths / previous)) < 0.5):
            break
    return mode, widths


def _bfgs(log_density: Function, grad: Function | None, start: Array, widths: Array) -> Array:
    """Return the end of BFGS from a start, in coordinates of these widths."""

    def loss(u: Array) -> tuple[float, Array]:
        x = (start + widths * u)[np.newaxis]
        value = float(log_density(x)[0])
        slope = _gradients(log_density, grad, x, _DIFFERENCE * widths)[0]
        return -value if np.isfinite(value) else np.inf, -slope * widths

    return start + widths * optimize.minimize(loss, np.zeros_like(start), jac=True, method="BFGS").x


def _widths(log_density: Function, mode: Array, widths: Array) -> Array:
    """Distances along every coordinate at which the log density is half a nat lower than at its
    mode.
    """
    for i in range(30):
        moves = np.diag(widths)
        drops = (
            log_density(mode[np.newaxis])
            - (log_density(mode + moves) + log_density(mode - moves)) / 2
        )
        ratios = np.sqrt(0.5 / np.where(np.isnan(drops), np.inf, np.maximum(drops, 1e-300)))
        if np.all((ratios > 0.3) & (ratios < 20)):
            return widths * ratios
        # whole steps can go to and fro forever between a flat top and a steep side
        widths = widths * np.clip(ratios, 0.01, 100) ** (1 if i < 10 else 0.5)
    column = int(np.argmax(np.abs(np.log(ratios))))
    raise ValueError(
        f"no mode of log_density was found, as it has no maximum along column {column}: {_INSTEAD}"
    )


def inverse_curvature(
    log_density: Function, grad: Function | None, mode: Array, widths: Array
) -> Array:
    """Inverse of the negative Hessian at the mode; ValueError if it's none."""

    def gradients(points: Array) -> Array:
        return _gradients(log_density, grad, points, _DIFFERENCE * widths)

    precision = -_slopes(gradients, mode, _DIFFERENCE * widths) * np.outer(widths, widths)
    try:
        factor = linalg.cho_factor((precision + precision.T) / 2)
    except (linalg.LinAlgError, ValueError):
        message = (
            "the negative Hessian of log_density must be positive definite where the climb from"
            " start ended"
        )
        raise ValueError(f"{message}: {_INSTEAD}") from None
    slope = gradients(mode[np.newaxis])[0] * widths
    # a quadratic function would rise by half of it
    if not slope @ linalg.cho_solve(factor, slope) < 2e-3:
        raise ValueError(
            f"no mode of log_density was found, as it still rises where the climb ended: {_INSTEAD}"
        )
    covariance = linalg.cho_solve(factor, np.eye(len(mode)))
    return (covariance + covariance.T) / 2 * np.outer(widths, widths)

"""ParameterPath: the posterior of another library's model, with the names of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import as_float64
from sklpf._utils.warnings import warn
from sklpf.paths import Gaussian, GeometricPath

Values = dict[str, NDArray[np.float64]]

_WIDER = 1.5  # a base at the mode, than the curvature there says


class Posterior(NamedTuple):
    """What a library says of its model, in unconstrained coordinates x (n, d)."""

    log_density: Callable[[NDArray], NDArray]  # (n,), with the Jacobian
    grad: Callable[[NDArray], NDArray]  # (n, d)
    constrain: Callable[[NDArray], Values]
    unconstrain: Callable[[Values], NDArray]
    parameter_shapes: dict[str, tuple[int, ...]]
    start: NDArray[np.float64]  # (d,), where a climb to the mode begins


class ParameterPath(GeometricPath):
    """The path to the posterior of another library's model, in unconstrained coordinates.

    `from_numpyro` and `from_pymc` make it. Its log Z is the log evidence of the model.

    Parameters
    ----------
    posterior : object
        What those functions know of the model: its log density, gradient and transformations.
    base : object
        In the unconstrained coordinates, as the parameter of `GeometricPath`.
    ladder : array-like of shape (K,), default=(0.0, 1.0)
        Inverse temperatures, increasing in [0, 1].

    Attributes
    ----------
    parameter_shapes : dict of str to tuple of int
        Shapes of the parameters, by name.

    Examples
    --------
    >>> from sklpf.interop import from_numpyro
    >>> path = from_numpyro(model, data)  # doctest: +SKIP
    >>> path.constrain(path.base.sample(10, rng))  # doctest: +SKIP
    """

    def __init__(self, posterior: Posterior, *, base: Any, ladder: ArrayLike = (0.0, 1.0)) -> None:
        self.posterior = posterior
        self.parameter_shapes = posterior.parameter_shapes
        super().__init__(posterior.log_density, grad=posterior.grad, base=base, ladder=ladder)

    def with_base(self, base: Any) -> ParameterPath:
        """Return the path to the same posterior from another base.

        Parameters
        ----------
        base : object
            In the unconstrained coordinates, as the parameter of `GeometricPath`.

        Returns
        -------
        ParameterPath
        """
        return ParameterPath(self.posterior, base=base, ladder=self.ladder)

    def constrain(self, position: NDArray[np.float64]) -> Values:
        """Return the parameters of points.

        Parameters
        ----------
        position : ndarray of shape (n, d)
            In the unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (n, ...)
            By name, as the model has them.
        """
        return self.posterior.constrain(np.asarray(position, dtype=np.float64))

    def unconstrain(self, values: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
        """Return the points of parameters.

        Parameters
        ----------
        values : dict of str to array-like of shape (n, ...)
            By name: all parameters, and nothing else.

        Returns
        -------
        ndarray of shape (n, d)

        Raises
        ------
        ValueError
            If a name is missing or unknown, or a shape is another one.
        """
        wanted = self.parameter_shapes
        missing = [name for name in wanted if name not in values]
        surplus = [name for name in values if name not in wanted]
        if missing or surplus:
            raise ValueError(
                f"parameters must be {', '.join(wanted)}: missing {', '.join(missing) or 'none'},"
                f" surplus {', '.join(surplus) or 'none'}"
            )
        arrays = {name: as_float64(values[name], name) for name in wanted}
        for name, shape in wanted.items():
            if arrays[name].shape[1:] != shape:
                raise ValueError(
                    f"{name} must have shape (n, {', '.join(map(str, shape))}), got"
                    f" {arrays[name].shape}"
                )
        return np.asarray(self.posterior.unconstrain(arrays), dtype=np.float64)


def path_to(posterior: Posterior, base: Any) -> ParameterPath:
    """Return the path from a base, or from one at the mode where it is None."""
    is_ours = base is None
    if is_ours:
        base = _base_at_mode(posterior)
    path = ParameterPath(posterior, base=base)
    path.base_is_ours = is_ours
    return path


def _base_at_mode(posterior: Posterior) -> Gaussian:
    try:
        return Gaussian.at_mode(
            posterior.log_density, posterior.start, grad=posterior.grad, factor=_WIDER
        )
    except ValueError as error:
        warn(
            f"the posterior has no mode to start from ({error}), so that the base is N(0, I):"
            " give a base, or draws to BridgeSampling, which needs none",
            UserWarning,
        )
        return Gaussian(np.zeros(len(posterior.start)), 1.0)

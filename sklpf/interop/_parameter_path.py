"""ParameterPath: the posterior of another library's model, with the names of its parameters."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.validation import as_float64
from sklpf._utils.warnings import warn
from sklpf.partition.weights import posterior_draws
from sklpf.paths import Gaussian, GeometricPath
from sklpf.programs import Draws

Values = dict[str, Array]

_WIDER = 1.5  # variances of a base, than those of what it is made of
_N_PRIOR_DRAWS = 1000
_N_FURTHER_CLIMBS = 5
_FARTHEST_START = 2.0  # of a coordinate of these from 0, as Stan's chains begin
_HEAVIER = 1.0  # nats of mass by which their mode is taken instead of the first


@dataclass(eq=False, repr=False)
class Posterior:
    """Posterior of another library's model, in unconstrained coordinates x (n, d)."""

    log_density: Callable[[NDArray], NDArray]  # (n,), with the Jacobian
    grad: Callable[[NDArray], NDArray]  # (n, d)
    constrain: Callable[[NDArray], Values]
    unconstrain: Callable[[Values], NDArray]
    parameter_shapes: dict[str, tuple[int, ...]]
    start: Array  # (d,), where a climb to the mode begins
    draw_prior: Callable[[int], Values] | None = None  # parameters of n draws


class ParameterPath(GeometricPath):
    """The path to the posterior of another library's model, in unconstrained coordinates.

    `from_numpyro`, `from_pymc` and `from_stan` make it. Its log Z is the log evidence of the model.

    Parameters
    ----------
    posterior : object
        The model as those functions know it: its log density, gradient and transformations.
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

    def __init__(
        self, posterior: Posterior, *, base: object, ladder: ArrayLike = (0.0, 1.0)
    ) -> None:
        self.posterior = posterior
        self.parameter_shapes = posterior.parameter_shapes
        super().__init__(posterior.log_density, grad=posterior.grad, base=base, ladder=ladder)

    def constrain(self, position: Array) -> Values:
        """Return the parameters of points.

        Parameters
        ----------
        position : ndarray of shape (n, d)
            In the unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (n, ...)
            The parameters by their names in the model.
        """
        return self.posterior.constrain(np.asarray(position, dtype=np.float64))

    def unconstrain(self, values: Mapping[str, ArrayLike]) -> Array:
        """Return the points of parameters.

        Parameters
        ----------
        values : dict of str to array-like of shape (n, ...)
            All parameters by name, and nothing else.

        Returns
        -------
        ndarray of shape (n, d)

        Raises
        ------
        ValueError
            If a name is missing or unknown, a shape is another one, or a parameter lies outside of
            its support.
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
        with np.errstate(divide="ignore", invalid="ignore"):  # outside of the support
            points = np.asarray(self.posterior.unconstrain(arrays), dtype=np.float64)
            outside = np.flatnonzero(~np.isfinite(points).all(axis=1))
            if len(outside):
                draw = {name: array[outside[0]] for name, array in arrays.items()}
                raise ValueError(
                    f"{self._outside(draw)}, in {len(outside)} of {len(points)} draws: leave out"
                    " draws that failed, and give parameters as the model has them, not their"
                    " logarithms or other transforms"
                )
        return points

    def _outside(self, draw: Values) -> str:
        """Name the parameter of a draw that has no point: alone among those of the point 0."""
        inside = self.constrain(np.zeros((1, self.n_dimensions)))
        for name, value in draw.items():
            mixed = {**inside, name: value[np.newaxis]}
            if not np.isfinite(self.posterior.unconstrain(mixed)).all():
                return f"{name} must lie inside its support, got {np.array2string(value)}"
        return "parameters must lie inside their support"


def path_to(posterior: Posterior, base: object) -> ParameterPath:
    """Return the path from a base, from one around draws, or from the best that is known where it
    is "auto".
    """
    if isinstance(base, str) and base == "auto":
        base, chosen = _best_base(posterior)
        path = ParameterPath(posterior, base=base)
        path.base_is_ours = True
        path.base_chosen = chosen
        return path
    at_origin = Gaussian(np.zeros(len(posterior.start)), 1.0)
    return from_given_base(ParameterPath(posterior, base=at_origin), base)


def from_given_base(path: GeometricPath, base: object) -> Any:
    """Return the path to the same posterior from the base that a user gave, or from one around the
    draws that he gave.
    """
    if isinstance(base, str) or base is None:
        raise ValueError(f'base must be "auto", draws of the posterior, or a base, got {base!r}')
    are_draws = isinstance(base, (np.ndarray, Mapping, Draws, tuple)) or any(
        hasattr(base, name) for name in ("posterior", "data_vars", "result_", "results", "samples")
    )
    if not are_draws:
        return path.with_base(base)
    draws = posterior_draws(base, path).points
    points = draws.reshape(-1, path.n_dimensions)
    if len(points) <= path.n_dimensions:
        raise ValueError(
            f"{len(points)} draws are too few for the covariance of {path.n_dimensions}"
            " coordinates: give more draws, or a base"
        )
    covariance = np.atleast_2d(np.cov(points.T))
    path = path.with_base(Gaussian(points.mean(axis=0), _WIDER * covariance))
    path.base_is_ours = True
    return path


def _best_base(posterior: Posterior) -> tuple[Gaussian, str]:
    """A Gaussian at the heaviest mode of a few; where there is none, as wide as the prior; else
    N(0, I). And what it is, for summaries.
    """
    logger = logging.getLogger("sklpf")
    try:
        base = _at_heaviest_mode(posterior)
    except ValueError as error:
        reason = str(error)
    else:
        logger.info("base: a Gaussian at the mode of the posterior")
        return base, "a Gaussian at the mode of the posterior"

    if posterior.draw_prior is not None:
        points = posterior.unconstrain(posterior.draw_prior(_N_PRIOR_DRAWS))
        low, middle, high = np.quantile(points, [0.16, 0.5, 0.84], axis=0)
        logger.info("base: a Gaussian as wide as the prior; the posterior has no mode (%s)", reason)
        return Gaussian(middle, _WIDER * ((high - low) / 2) ** 2), "a Gaussian as wide as the prior"
    warn(
        f"the posterior has no mode to start from ({reason}), so that the base is N(0, I): give a"
        " base or draws of the posterior, or these to BridgeSampling, which needs no base",
        UserWarning,
    )
    return Gaussian(np.zeros(len(posterior.start)), 1.0), "N(0, I)"


def _at_heaviest_mode(posterior: Posterior) -> Gaussian:
    """A Gaussian at the mode above the posterior's start, or at one above other starts that has
    more mass.

    Raises
    ------
    ValueError
        If there is no mode above the posterior's start.
    """
    at_mode = functools.partial(
        Gaussian.at_mode, posterior.log_density, grad=posterior.grad, factor=_WIDER
    )
    base = at_mode(posterior.start)
    largest = _log_mass(posterior, base) + _HEAVIER
    further = (_N_FURTHER_CLIMBS, len(posterior.start))
    for start in np.random.default_rng(0).uniform(-_FARTHEST_START, _FARTHEST_START, further):
        try:
            other = at_mode(start)
        except ValueError:  # nothing is there to climb
            continue
        log_mass = _log_mass(posterior, other)
        if log_mass > largest:
            base = other
            largest = log_mass
    return base


def _log_mass(posterior: Posterior, base: Gaussian) -> float:
    """Log of the integral of the posterior around a mode by Laplace's method, up to a constant."""
    mode = base.mean[np.newaxis]
    return float(posterior.log_density(mode)[0] - base.log_density(mode)[0])

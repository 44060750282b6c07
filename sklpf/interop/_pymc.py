"""from_pymc: the posterior of a PyMC model as a path."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.tables import imported
from sklpf._utils.warnings import warn
from sklpf.interop._parameter_path import ParameterPath, Posterior, Values, path_to

_IMPROPER = ("FlatRV", "HalfFlatRV")


def from_pymc(model: Any, *, base: object = "auto") -> ParameterPath:
    """Return the path to the posterior of a PyMC model; its log Z is the log evidence.

    Parameters
    ----------
    model : pymc.Model
        A model with continuous parameters.
    base : object, default="auto"
        Where chains start, in unconstrained coordinates. "auto": a Gaussian at a mode, with 1.5
        times the covariance that the curvature there says, or where there is no mode one as wide as
        the prior; the logger "sklpf" says which, at level INFO. The mode is that above the model's
        own start, unless one of five climbs from other points, with coordinates in (-2, 2), finds
        one with e times its mass. Draws of the posterior, as for `BridgeSampling`: a Gaussian with
        their mean and 1.5 times their covariance. Else a base, as in `GeometricPath`.

    Returns
    -------
    ParameterPath
        A path with gradients, names, ``constrain`` and ``unconstrain``.

    Raises
    ------
    ImportError
        If PyMC is not installed.
    TypeError
        If `model` is none of PyMC's.
    ValueError
        If the evidence is not defined, by discrete parameters or improper priors; or if PyTensor
        computes in 32 bits.

    Warns
    -----
    UserWarning
        If the model has potentials or minibatches.
    """
    pymc = imported("pymc", "from_pymc")
    if not isinstance(model, pymc.Model):
        raise TypeError(f"from_pymc takes a pymc.Model, got {type(model).__name__}")
    _check_model(model)
    return path_to(_PyMCPosterior(model), base)


class _PyMCPosterior(Posterior):
    """The model's compiled functions, of many points (n, d) at once: its value variables in their
    order.
    """

    def __init__(self, model: Any) -> None:
        import pytensor
        import pytensor.tensor as pt
        from pytensor.graph.replace import clone_replace, vectorize_graph

        self.model = model
        point = model.initial_point()
        self.start = np.concatenate([np.ravel(point[v.name]) for v in model.value_vars]).astype(
            float
        )
        values: dict[Any, Any] = {}
        at = 0
        x = pt.dvector("x")
        points = pt.dmatrix("points")
        for variable in model.value_vars:
            shape = np.shape(point[variable.name])
            size = int(np.prod(shape))
            part = x[at : at + size].reshape(shape)
            values[variable] = pt.specify_shape(part, variable.type.shape).astype(variable.dtype)
            at += size

        log_density = clone_replace([model.logp()], replace=values)
        (log_densities,) = vectorize_graph(log_density, {x: points})
        gradient = pytensor.grad(log_densities.sum(), points)
        self.log_density = pytensor.function([points], log_densities)
        self.grad = pytensor.function([points], gradient)

        constrained = clone_replace(model.replace_rvs_by_values(model.free_RVs), replace=values)
        self._constrain = pytensor.function(
            [points], vectorize_graph(constrained, {x: points}), on_unused_input="ignore"
        )
        one = pytensor.function([x], constrained, on_unused_input="ignore")(np.zeros(at))
        self._names = [rv.name for rv in model.free_RVs]
        self.parameter_shapes = dict(zip(self._names, map(np.shape, one)))

        # A transform may depend on other parameters, which are given here and not drawn.
        given = {rv: rv.type(name=rv.name) for rv in model.free_RVs}
        forward = [_forward(model, rv) for rv in model.free_RVs]
        flat = pt.concatenate([part.ravel() for part in clone_replace(forward, replace=given)])
        self._unconstrain = pytensor.function(list(given.values()), flat)

    def constrain(self, points: NDArray) -> Values:
        """Return the parameters, each (n, ...)."""
        return dict(zip(self._names, self._constrain(points)))

    def draw_prior(self, n: int) -> Values:
        """Return the parameters of n draws, each (n, ...)."""
        import pymc

        values = pymc.draw(self.model.free_RVs, draws=n, random_seed=0)
        return dict(zip(self._names, values))

    def unconstrain(self, values: Values) -> Array:
        """Return points (n, d)."""
        each = zip(*(values[name] for name in self._names))
        return np.array([self._unconstrain(*parameters) for parameters in each])


def _forward(model: Any, rv: Any) -> Any:
    """The value variable as a function of a parameter."""
    transform = model.rvs_to_transforms[rv]
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _check_model(model: Any) -> None:
    """Raise ValueError unless the evidence is defined."""
    discrete = [variable.name for variable in model.discrete_value_vars]
    if discrete:
        raise ValueError(
            f"{', '.join(discrete)} are discrete parameters, for which there is no density: sum"
            " over them, by pymc_extras.marginalize for instance"
        )
    improper = [rv.name for rv in model.free_RVs if type(rv.owner.op).__name__ in _IMPROPER]
    if improper:
        raise ValueError(
            f"{', '.join(improper)} have improper priors, so that the evidence is not defined: give"
            " them proper ones"
        )
    single = [value.name for value in model.value_vars if value.dtype == "float32"]
    if single:
        raise ValueError(
            f"{', '.join(single)} have 32 bits, too few for log densities: set"
            ' pytensor.config.floatX = "float64" before the model is made'
        )
    if model.potentials:
        names = ", ".join(potential.name for potential in model.potentials)
        warn(
            f"{names} are potentials: they count as part of the density, and log Z is an evidence"
            " only if they are log probabilities with all constants",
            UserWarning,
        )
    if any(
        rv.owner and type(rv.owner.op).__name__ == "MinibatchRandomVariable"
        for rv in model.observed_RVs
    ):
        warn("the data are a minibatch: its evidence is not that of all data", UserWarning)

"""What a parametric density must offer to be trained."""

from __future__ import annotations

from typing import Protocol

from sklpf._utils.numbers import Array


class Family(Protocol):
    """Unnormalised densities f(x; parameters) on R^d. The parameters are one vector (P,), without
    constraints.

    Two more members are used where they exist. ``project(parameters)`` returns the nearest
    parameters that have a normaliser: training calls it after every step.
    ``log_partition(parameters)`` returns log Z and its gradient (P,): with it, maximum likelihood
    needs no samples.
    """

    def log_density(self, parameters: Array, x: Array) -> Array:
        """Return log f at points (n, d), shape (n,), in nats."""
        ...

    def grad(self, parameters: Array, x: Array) -> Array:
        """Return the gradient of log f by the points (n, d), shape (n, d)."""
        ...

    def grad_parameters(self, parameters: Array, x: Array, weights: Array) -> Array:
        """Return the gradient of weights @ log f by the parameters, shape (P,); weights has shape
        (n,).
        """
        ...


def projected(family: Family, parameters: Array) -> Array:
    """The parameters, or the nearest ones that have a normaliser."""
    project = getattr(family, "project", None)
    return parameters if project is None else project(parameters)

"""Coordinate ascent on the bound of a conditionally conjugate model under any tempering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sklpf._utils.numbers import Array
from sklpf.variational._temperatures import Temperatures


class ConjugateModel:
    """Members that `sweeps` asks of a model with global variables g, local variables z and data
    x; subclass it for your own.

    The model holds q(g) q(z) and its data. U = E_q[log p(x, z | g)] is the part that a temperature
    divides, so the bound at inverse temperature b is ``regulariser() + b U`` plus the temperature's
    own part.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.variational import ConjugateModel, sweeps
    >>> class Mean(ConjugateModel):  # x ~ N(g, 1), g ~ N(0, 1), q(g) = N(m, v)
    ...     x, m, v = np.array([1.0, 2.0, 3.0]), 0.0, 1.0
    ...
    ...     def update(self, inverse):
    ...         self.v = 1 / (1 + inverse * len(self.x))
    ...         self.m = self.v * inverse * self.x.sum()
    ...
    ...     def expected_log_joint(self, per_datum=False):
    ...         return -0.5 * np.sum(
    ...             np.log(2 * np.pi) + (self.x - self.m) ** 2 + self.v
    ...         )
    ...
    ...     def regulariser(self):
    ...         return 0.5 * (1 + np.log(self.v) - self.m**2 - self.v)
    >>> *_, last = sweeps(Mean())
    >>> round(float(last.elbo), 3)  # the log evidence, as q is exact
    -5.95
    """

    def update(self, inverse: float | Array) -> None:
        """Update q(z), then q(g).

        Both are the updates of the model itself in which log p(x, z | g) is multiplied by
        `inverse`: that scales the natural parameters of q(z), and the expected sufficient
        statistics that enter q(g). The prior of g is never tempered.

        Parameters
        ----------
        inverse : float or ndarray of shape (n,)
            b, the same for all data or one a datum.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update(inverse)")

    def expected_log_joint(self, per_datum: bool = False) -> float | Array:
        """Return U, untempered.

        Parameters
        ----------
        per_datum : bool, default=False
            Whether each datum's part is wanted, which only `LocalTempering` asks for.

        Returns
        -------
        float or ndarray of shape (n,)
            In nats.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define expected_log_joint(per_datum)"
        )

    def regulariser(self) -> float:
        """Return E_q[log p(g) - log q(g)] - E_q[log q(z)], in nats."""
        raise NotImplementedError(f"{type(self).__name__} must define regulariser()")

    def update_hyperparameters(self) -> None:
        """Maximise the bound in the hyperparameters; called after every sweep at T = 1. Does
        nothing by default.
        """

    def log_partition(self, temperatures: Array) -> Array:
        """Return log C(T) of all data at every temperature, what a learned temperature needs
        (equation 3).

        C(T) integrates p(x, z | g)^(1 / T) p(g) over x, z and g. All terms of U count, constants
        included: where one is left out of either, the temperature is driven by the difference.

        Parameters
        ----------
        temperatures : ndarray of shape (M,)
            From 1 upwards.

        Returns
        -------
        ndarray of shape (M,)
            log C(T) in nats.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define log_partition(temperatures) to be tempered"
        )


class Sweep(NamedTuple):
    """One sweep of `sweeps`.

    Attributes
    ----------
    objective : float
        The bound that is being climbed, at the sweep's own temperature, in nats.
    elbo : float
        The bound at T = 1 of the same q, in nats.
    temperature : float
        1 / E_q[1 / T], averaged over the data before the division where they have temperatures of
        their own.
    converged : bool
        Whether the sweep was one at T = 1 and raised the bound by less than `tol`.
    """

    objective: float
    elbo: float
    temperature: float
    converged: bool


def sweeps(
    model: ConjugateModel,
    tempering: Temperatures | None = None,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
) -> Iterator[Sweep]:
    """Climb the bound sweep by sweep: first as `tempering` says, then at T = 1 until it no longer
    rises.

    Parameters
    ----------
    model : ConjugateModel
        It is changed in place.
    tempering : Temperatures or None, default=None
        None goes to T = 1 at once.
    tol : float, default=1e-3
        Nats by which a sweep must raise the bound to go on.
    max_iter : int, default=1000
        Most sweeps at T = 1.

    Yields
    ------
    sweep : Sweep
    """
    if tempering is not None:
        yield from _tempered(model, tempering, tol)
    last = -np.inf
    for _ in range(max_iter):
        model.update(1.0)
        model.update_hyperparameters()
        elbo = model.regulariser() + float(model.expected_log_joint())
        converged = elbo - last < tol
        yield Sweep(elbo, elbo, 1.0, converged)
        if converged:
            return
        last = elbo


def _tempered(model, tempering, tol):
    """Sweeps above T = 1."""
    last = -np.inf
    for _ in range(tempering.n_sweeps):
        inverse = tempering.inverse
        model.update(inverse)
        value = model.expected_log_joint(tempering.per_datum)
        regulariser = model.regulariser()
        objective = regulariser + np.sum(inverse * value) + tempering.term
        yield Sweep(
            float(objective), float(regulariser + np.sum(value)), 1 / float(np.mean(inverse)), False
        )
        if tempering.stops_early and objective - last < tol:
            return
        last = objective
        tempering.advance(value)

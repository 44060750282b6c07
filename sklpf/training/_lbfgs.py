"""Trainers by L-BFGS: maximum likelihood where log Z is known, and minimum probability flow."""

from __future__ import annotations

import functools

import numpy as np
from scipy.optimize import minimize

from sklpf._utils.numbers import Array
from sklpf.training._chains import Chains
from sklpf.training._contrastive import Family, projected

_ITERATIONS = 10  # of L-BFGS in a pass
_LARGEST = 20.0  # exponent of a flow, so that a poor trajectory can't rule


class MaximumLikelihood:
    """Climbs the likelihood of a family that knows its log Z, by L-BFGS.

    Parameters
    ----------
    family : Family
        With ``log_partition(parameters)``.
    parameters : ndarray of shape (P,)
        Initial parameters.
    X : ndarray of shape (n_samples, d)
        The data.

    Attributes
    ----------
    parameters : ndarray of shape (P,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.training import MaximumLikelihood, train
    >>> class Gaussians:  # of standard deviation exp(-s)
    ...     def log_density(self, s, x):
    ...         return -0.5 * np.sum((x * np.exp(s)) ** 2, axis=1)
    ...
    ...     def grad(self, s, x):
    ...         return -x * np.exp(2 * s)
    ...
    ...     def grad_parameters(self, s, x, weights):
    ...         return -weights @ (x * np.exp(s)) ** 2
    ...
    ...     def log_partition(self, s):
    ...         return 0.5 * len(s) * np.log(2 * np.pi) - s.sum(), -np.ones(len(s))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)) * 0.5
    >>> trainer = MaximumLikelihood(Gaussians(), np.zeros(1), X)
    >>> _ = train(trainer, 20)
    >>> bool(abs(np.exp(-trainer.parameters[0]) - 0.5) < 0.05)
    True
    """

    def __init__(self, family, parameters: Array, X: Array):
        self.family = family
        self.parameters = parameters
        self.X = X
        self.weights = np.full(len(X), -1 / len(X))

    def run(self) -> None:
        """Make some iterations of L-BFGS."""
        options = {"maxiter": _ITERATIONS, "maxcor": 20}
        found = minimize(self._loss, self.parameters, jac=True, method="L-BFGS-B", options=options)
        self.parameters = found.x

    def _loss(self, parameters):
        log_partition, slope = self.family.log_partition(parameters)
        mean = self.weights @ self.family.log_density(parameters, self.X)
        return log_partition + mean, slope + self.family.grad_parameters(
            parameters, self.X, self.weights
        )


class MinimumProbabilityFlow:
    """Makes the flow of probability from the rows to where Hamiltonian trajectories take them
    small.

    ``K = mean exp((H(x, v) - H(x', v')) / 2)``, ``H = -log f + |v|² / 2``, over rows x with a
    normal velocity v and the ends (x', v') of their trajectories (Sohl-Dickstein, Battaglino &
    DeWeese 2011, eq. 12, with that connectivity). The ends are those of the density as it is, and
    are renewed after some iterations of L-BFGS. No log Z is needed.

    Parameters
    ----------
    family : Family
        The density that is trained.
    parameters : ndarray of shape (P,)
        Initial parameters.
    X : ndarray of shape (n_samples, d)
        With scales of about one.
    rng : numpy.random.Generator
        Where the velocities come from.
    n_leapfrog : int
        Steps of a trajectory.
    n_iterations : int
        Number of iterations of L-BFGS with the same ends.

    Attributes
    ----------
    parameters : ndarray of shape (P,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.training import MinimumProbabilityFlow, train
    >>> class Gaussians:  # of standard deviation exp(-s)
    ...     def log_density(self, s, x):
    ...         return -0.5 * np.sum((x * np.exp(s)) ** 2, axis=1)
    ...
    ...     def grad(self, s, x):
    ...         return -x * np.exp(2 * s)
    ...
    ...     def grad_parameters(self, s, x, weights):
    ...         return -weights @ (x * np.exp(s)) ** 2
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)) * 0.5
    >>> trainer = MinimumProbabilityFlow(Gaussians(), np.zeros(1), X, rng)
    >>> _ = train(trainer, 20)
    >>> bool(abs(np.exp(-trainer.parameters[0]) - 0.5) < 0.1)
    True
    """

    def __init__(
        self, family: Family, parameters: Array, X: Array, rng, n_leapfrog=10, n_iterations=3
    ):
        self.family = family
        self.parameters = projected(family, parameters)
        self.X = X
        self.n_iterations = n_iterations
        self.chains = Chains(X, rng, n_leapfrog=n_leapfrog, step_size=0.5 * X.shape[1] ** -0.25)

    def run(self) -> None:
        """Renew the ends of all trajectories and lower the flow to them."""
        ends, change = self._ends()
        found = minimize(
            self._flow,
            self.parameters,
            args=(ends, change),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.n_iterations},
        )
        self.parameters = projected(self.family, found.x)

    def _ends(self):
        """End points, and by how much the velocities' energy falls on the way; the step size
        follows acceptance.
        """
        at = functools.partial(self.family.log_density, self.parameters)
        velocity = self.chains.rng.standard_normal(self.X.shape)
        with np.errstate(all="ignore"):
            ends, after = self.chains.trajectory(
                functools.partial(self.family.grad, self.parameters), velocity
            )
            change = 0.5 * np.sum(velocity**2 - after**2, axis=1)
            log_rate = change + at(ends) - at(self.X)
        self.chains.adapt(log_rate)
        lost = ~np.isfinite(log_rate)
        return np.where(lost[:, np.newaxis], self.X, ends), np.where(lost, 0.0, change)

    def _flow(self, parameters, ends, change):
        family = self.family
        parameters = projected(self.family, parameters)
        rise = family.log_density(parameters, ends) - family.log_density(parameters, self.X)
        flow = np.exp(np.minimum((rise + change) / 2, _LARGEST)) / len(self.X)
        slope = family.grad_parameters(parameters, ends, flow / 2)
        return flow.sum(), slope - family.grad_parameters(parameters, self.X, flow / 2)

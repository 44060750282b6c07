"""Maximum likelihood where log Z is known in closed form."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from sklpf.training._contrastive import Array

_ITERATIONS = 10  # of L-BFGS in a pass


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

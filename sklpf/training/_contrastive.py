"""Persistent contrastive divergence with chains of Hamiltonian Monte Carlo."""

from __future__ import annotations

import functools
from typing import Protocol

import numpy as np

from sklpf._utils.numbers import Array
from sklpf.training._chains import Chains
from sklpf.training._loop import check_not_diverged

# of Adam's moments
_DECAY = 0.9
_SQUARE_DECAY = 0.99
_TINY = 1e-12
_FEWEST_STEPS = 50  # of a pass


class Family(Protocol):
    """Unnormalised densities f(x; parameters) on R^d. The parameters are one vector (P,), without
    constraints.

    Three more members are used where they exist. ``project(parameters)`` returns the nearest
    parameters that have a normaliser: training calls it after every step. ``packed(parameters)``
    returns the density as compiled programs know it, in which chains then make their trajectories.
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


class PersistentContrastiveDivergence:
    """Stochastic ascent of the likelihood, whose second term is an average over persistent chains
    (Tieleman 2008).

    The gradient of the mean log-likelihood is E_data[d log f] - E_f[d log f]. Rows in minibatches
    stand for the data, chains that follow f as it changes for the model. Steps are Adam's (Kingma &
    Ba 2015).

    Parameters
    ----------
    family : Family
        The density that is trained.
    parameters : ndarray of shape (P,)
        Initial parameters.
    X : ndarray of shape (n_samples, d)
        With scales of about one, as chains move in these coordinates.
    chains : Chains
        Started at draws from f, or near the data.
    batch_size : int
        Rows of a minibatch.
    learning_rate : float
        Length of a step in every parameter.

    Attributes
    ----------
    parameters : ndarray of shape (P,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.training import Chains, PersistentContrastiveDivergence, train
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
    >>> chains = Chains(rng.normal(size=(100, 1)), rng)
    >>> trainer = PersistentContrastiveDivergence(
    ...     Gaussians(), np.zeros(1), X, chains, 100, learning_rate=0.02
    ... )
    >>> _ = train(trainer, 40)
    >>> bool(abs(np.exp(-trainer.parameters[0]) - 0.5) < 0.1)
    True
    """

    def __init__(
        self, family: Family, parameters: Array, X: Array, chains: Chains, batch_size, learning_rate
    ):
        self.family = family
        self.X = X
        self.chains = chains
        self.batch_size = min(batch_size, len(X))
        self.learning_rate = learning_rate
        self.begin(parameters)

    def begin(self, parameters: Array) -> None:
        """Begin anew at some parameters, with the chains as they are.

        Parameters
        ----------
        parameters : ndarray of shape (P,)
            Parameters of the family.
        """
        self.parameters = projected(self.family, parameters)
        self.first = np.zeros_like(parameters)
        self.second = np.zeros_like(parameters)
        self.n_steps = 0

    def run(self) -> None:
        """Make one pass over the rows in random order, or several if that is few steps."""
        n_batches = -(-len(self.X) // self.batch_size)
        for _ in range(-(-_FEWEST_STEPS // n_batches)):
            order = self.chains.rng.permutation(len(self.X))
            for batch in np.array_split(order, n_batches):
                self.step(self.X[batch])

    def step(self, rows: Array) -> None:
        """Make one step, then move the chains.

        Parameters
        ----------
        rows : ndarray of shape (n, d)
            A minibatch.
        """
        chains = self.chains
        family = self.family
        data = np.full(len(rows), 1 / len(rows))
        model = np.full(len(chains.position), 1 / len(chains.position))
        ascent = family.grad_parameters(self.parameters, rows, data)
        ascent -= family.grad_parameters(self.parameters, chains.position, model)
        parameters = self.parameters + self._adam(ascent)
        check_not_diverged(parameters**2)
        self.parameters = projected(family, parameters)
        packed = getattr(family, "packed", None)
        if packed is not None:
            chains.move_on(packed(self.parameters))
            return
        at = (
            functools.partial(function, self.parameters)
            for function in (family.log_density, family.grad)
        )
        chains.move(*at)

    def _adam(self, ascent):
        self.n_steps += 1
        self.first += (1 - _DECAY) * (ascent - self.first)
        self.second += (1 - _SQUARE_DECAY) * (ascent**2 - self.second)
        mean = self.first / (1 - _DECAY**self.n_steps)
        square = self.second / (1 - _SQUARE_DECAY**self.n_steps)
        return self.learning_rate * mean / (np.sqrt(square) + _TINY)

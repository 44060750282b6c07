"""Trainers: persistent contrastive divergence with chains of Hamiltonian Monte Carlo, maximum
likelihood and minimum probability flow by L-BFGS, and EM.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from sklpf._utils.numbers import Array
from sklpf.training._chains import Chains
from sklpf.training._loop import check_not_diverged, has_settled, train

_FEWEST_STEPS = 50  # of a pass
_ITERATIONS = 10  # of L-BFGS in a pass
_WARM_UP = 20  # trajectories before the parameters first move
# rates fall as k^-0.7 once the loss has settled: their sum is infinite, that of their squares
# finite
_FORGETTING = 0.7


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

    def grad(self, parameters: Array, x: Array) -> Array:
        """Return the gradient of log f by the points (n, d), shape (n, d)."""

    def grad_parameters(self, parameters: Array, x: Array, weights: Array) -> Array:
        """Return the gradient of weights @ log f by the parameters, shape (P,); weights has shape
        (n,).
        """


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
        self, family: Any, parameters: Array, X: Array, chains: Chains, batch_size, learning_rate
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
        ascent = self._mean_slope(rows) - self._mean_slope(chains.position)
        parameters = self.parameters + self._adam(ascent)
        check_not_diverged(parameters**2)
        self.parameters = projected(family, parameters)
        if hasattr(family, "packed"):
            chains.move_on(family.packed(self.parameters))
        else:
            log_density = functools.partial(family.log_density, self.parameters)
            chains.move(log_density, functools.partial(family.grad, self.parameters))

    def _mean_slope(self, points):
        """Mean over points of the gradient of log f by the parameters."""
        weights = np.full(len(points), 1 / len(points))
        return self.family.grad_parameters(self.parameters, points, weights)

    def _adam(self, ascent):
        decay = 0.9  # of means
        decay_of_squares = 0.99
        tiny = 1e-12
        self.n_steps += 1
        self.first += (1 - decay) * (ascent - self.first)
        self.second += (1 - decay_of_squares) * (ascent**2 - self.second)
        mean = self.first / (1 - decay**self.n_steps)
        square = self.second / (1 - decay_of_squares**self.n_steps)
        return self.learning_rate * mean / (np.sqrt(square) + tiny)


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
        family = self.family
        log_partition, slope = family.log_partition(parameters)
        loss = log_partition + self.weights @ family.log_density(parameters, self.X)
        return loss, slope + family.grad_parameters(parameters, self.X, self.weights)


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
        grad = functools.partial(self.family.grad, self.parameters)
        velocity = self.chains.rng.standard_normal(self.X.shape)
        with np.errstate(all="ignore"):
            ends, after = self.chains.trajectory(grad, velocity)
            change = 0.5 * np.sum(velocity**2 - after**2, axis=1)
            log_rate = change + at(ends) - at(self.X)
        self.chains.adapt(log_rate)
        lost = ~np.isfinite(log_rate)
        return np.where(lost[:, np.newaxis], self.X, ends), np.where(lost, 0.0, change)

    def _flow(self, parameters, ends, change):
        largest_exponent = 20.0  # so that a poor trajectory can't rule
        family = self.family
        parameters = projected(self.family, parameters)
        rise = family.log_density(parameters, ends) - family.log_density(parameters, self.X)
        flow = np.exp(np.minimum((rise + change) / 2, largest_exponent)) / len(self.X)
        slope = family.grad_parameters(parameters, ends, flow / 2)
        return flow.sum(), slope - family.grad_parameters(parameters, self.X, flow / 2)


class LatentModel(Protocol):
    """A model in training: its rows, its parameters as they are now, and a chain of latent
    variables for each row.

    With several chains a row the rows are repeated. Positions (n, d) are coordinates in which the
    latent variables of a row have scales of about one; they may depend on the parameters.
    """

    def log_density(self, position: Array) -> Array:
        """Return log p(row, latent) of every chain up to a constant, shape (n,)."""

    def grad(self, position: Array) -> Array:
        """Return its gradient, shape (n, d)."""

    def maximise(self, position: Array, rate: float) -> None:
        """Move the parameters by a share `rate` of an M-step, given draws from p(latent | row)."""

    def loss(self, position: Array) -> float:
        """Return what training lowers, such as an estimate of -log p(row), in nats a row."""


class EM:
    """Monte-Carlo EM (Bishop 2006, eq. 11.28 and 11.29): an M-step after every trajectory of
    persistent chains.

    One chain a row makes it stochastic EM, several the average over draws of eq. 11.29, without the
    constant factor. Full M-steps go on until the loss no longer falls. Then their share decreases,
    which averages over the passes that follow (Delyon, Lavielle & Moulines 1999), half as many
    again and at least 20.

    Parameters
    ----------
    model : object
        A `LatentModel`.
    position : array-like of shape (n, d)
        Where the chains start.
    rng : numpy.random.Generator
        Where the random numbers come from.
    n_leapfrog : int, default=10
        Steps of a trajectory.
    bounds : tuple (low, high) or None, default=None
        Box of the positions.
    tol : float, default=0.01
        The loss has settled when its mean over 10 passes is not lower by more than that in the 10
        passes after.

    Attributes
    ----------
    losses : list of float
        After every pass.
    converged : bool
        Whether the loss has settled, and the passes with falling shares were made.
    chains : Chains

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.training import EM
    >>> class Location:  # x ~ N(latent, 1), latent ~ N(mean, 1); learns the mean
    ...     rows, mean = np.array([[1.0], [2.0], [3.0]]), 0.0
    ...
    ...     def log_density(self, z):
    ...         return -0.5 * np.sum(
    ...             (self.rows - z) ** 2 + (z - self.mean) ** 2, axis=1
    ...         )
    ...
    ...     def grad(self, z):
    ...         return self.rows - z + self.mean - z
    ...
    ...     def maximise(self, z, rate):
    ...         self.mean += rate * (z.mean() - self.mean)
    ...
    ...     def loss(self, z):
    ...         return np.mean((self.rows - self.mean) ** 2) / 4
    >>> model = Location()
    >>> EM(model, np.zeros((3, 1)), np.random.default_rng(0)).fit(max_iter=200)
    >>> bool(abs(model.mean - 2) < 0.5)
    True
    """

    def __init__(self, model: Any, position, rng, *, n_leapfrog=10, bounds=None, tol=0.01):
        self.model = model
        self.tol = tol
        self.losses: list[float] = []
        self.converged = False
        self.chains = Chains(position, rng, n_leapfrog=n_leapfrog, bounds=bounds)
        self._n_searching: int | None = None  # passes, of all fits, until the loss had settled

    def fit(self, max_iter: int) -> None:
        """Make passes until the loss settles, and those with falling rates after them.

        Parameters
        ----------
        max_iter : int
            Most passes, of both kinds.
        """
        for _ in range(_WARM_UP):
            self.chains.move(self.model.log_density, self.model.grad)
        _, self.converged = train(
            self,
            max_iter,
            report=lambda *_: f"loss = {self.losses[-1]:.3f}",
            callbacks=[self._ended],
        )

    def run(self) -> None:
        """Make one pass: a trajectory of every chain, and the M-step."""
        self.chains.move(self.model.log_density, self.model.grad)
        n_settled = 0 if self._n_searching is None else len(self.losses) - self._n_searching + 1
        self.model.maximise(self.chains.position, (1 + n_settled) ** -_FORGETTING)
        self.losses.append(self.model.loss(self.chains.position))

    def _ended(self, *_) -> bool:
        """True if training is over, as a callback of `train`."""
        window = 10  # passes whose mean losses are compared
        fewest_settling = 20  # passes with falling rates
        if self._n_searching is None and has_settled(self.losses, self.tol, window):
            self._n_searching = len(self.losses)
        if self._n_searching is None:
            return False
        n_settling = max(fewest_settling, self._n_searching // 2)
        return len(self.losses) >= self._n_searching + n_settling

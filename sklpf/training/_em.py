"""EM whose E-step draws latent variables by Hamiltonian Monte Carlo."""

from __future__ import annotations

from typing import Any, Protocol

from sklpf._utils.numbers import Array
from sklpf.training._chains import Chains
from sklpf.training._loop import train
from sklpf.training._settle import has_settled

_WARM_UP = 20  # trajectories before the parameters first move
_WINDOW = 10  # passes whose mean losses are compared
# rates fall as k^-0.7 once the loss has settled: their sum is infinite, that of their squares
# finite
_FORGETTING = 0.7
_FEWEST_SETTLING = 20  # passes with falling rates


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
    bounds : ndarray of shape (2, d) or None, default=None
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
        self._n_searching: int | None = None  # passes until the loss had settled

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
            callbacks=[EM._ended],
        )

    def run(self) -> None:
        """Make one pass: a trajectory of every chain, and the M-step."""
        self.chains.move(self.model.log_density, self.model.grad)
        n_settled = 0 if self._n_searching is None else len(self.losses) - self._n_searching + 1
        self.model.maximise(self.chains.position, (1 + n_settled) ** -_FORGETTING)
        self.losses.append(self.model.loss(self.chains.position))

    def _ended(self, iteration: int) -> bool:
        """The callback that says whether training is over."""
        if self._n_searching is None and has_settled(self.losses, self.tol, _WINDOW):
            self._n_searching = iteration
        if self._n_searching is None:
            return False
        return iteration >= self._n_searching + max(_FEWEST_SETTLING, self._n_searching // 2)

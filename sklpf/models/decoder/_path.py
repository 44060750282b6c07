"""The path of a decoder: one target, log p(x), for each row of data."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.random import Stream
from sklpf._utils.validation import as_float64
from sklpf.models.decoder._network import Network
from sklpf.partition import PartitionEstimator
from sklpf.paths import (
    Box,
    Gaussian,
    PointsPath,
    Regions,
    SlopedPoints,
    check_ladder,
    find_regions,
    functions_for_climbs,
)

# Climbs begin at draws of the prior: at the most likely of many, and at some others.
_N_SCREENED = 4000
_N_HIGHEST = 16
_N_OTHERS = 16
_FEWEST_PROBED = 64  # points at which a decoder is evaluated, to be recognised
# of rows (n, n_features): means and standard deviations of their bases, both (n, n_latents)
Encode = Callable[[NDArray], tuple[NDArray, NDArray]]


class DecoderPath(PointsPath):
    """Latent variables z of each row x, where z ~ N(0, I) and x ~ p(x | decoder(z)): log Z is log
    p(x).

    `DecoderModel.path` makes it. The base is the prior, or a normal density for each row, such as
    an encoder's. Chains live in coordinates y with z = center + scale y, in which the base is
    N(0, I). Chains of all rows of a block take each step in one array.
    Moves are tuned on each row by itself, as posteriors differ in width from row to row.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Rows whose likelihood is wanted.
    network : object
        The decoder with its likelihood, as `DecoderModel` holds it.
    n_latents : int
        Number of latent variables.
    encode : callable or None, default=None
        Gives means and standard deviations, both (n, n_latents), of the bases of rows (n,
        n_features). None: the base is the prior.
    ladder : array-like of shape (n_levels,), default=(0, 1)
        Inverse temperatures, increasing in [0, 1].
    drawn : array-like of shape (n_rows, n_latents) or None, default=None
        Of rows that were drawn from the model, the latent variables that they were drawn with.

    Attributes
    ----------
    n_dimensions : int
        Number of latent variables.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import HAIS
    >>> from sklpf.interop import from_decoder
    >>> noise = dict(likelihood="gaussian", noise_std=1.0)
    >>> model = from_decoder(lambda z: 2 * z, 1, pullback=lambda z, g: 2 * g, **noise)
    >>> hais = HAIS(n_temperatures=200, random_state=0).fit(model.path([[1.0], [2.0]]))
    >>> exact = -0.5 * np.log(2 * np.pi * 5) - np.array([1, 4]) / 10  # x ~ N(0, 5)
    >>> bool(np.all(np.abs(hais.log_partition_ - exact) < 0.05))
    True
    """

    base_log_partition = 0.0
    n_chains_per_block = 1000  # all chains of a row move together
    n_draws = 1000  # of a batch of importance sampling

    _counted = ("_target_and_slope",)

    def __init__(
        self,
        X: ArrayLike,
        network: Network,
        n_latents: int,
        encode: Encode | None = None,
        ladder: ArrayLike = (0.0, 1.0),
        drawn: ArrayLike | None = None,
    ):
        self.X = as_float64(X, "X", copy=True)
        self.network = network
        self.n_dimensions = n_latents
        self.bounds = Box.everywhere(n_latents)
        self.encode = encode
        self.ladder = check_ladder(ladder)
        self.n_rows: int | None = len(self.X)
        self.drawn = None if drawn is None else as_float64(drawn, "drawn")
        # Of the base of each row, (n_rows, n_latents); of one row (1, n_latents).
        self.center = np.zeros((len(self.X), n_latents))
        self.scale = np.ones((len(self.X), n_latents))
        if encode is not None:
            self.center, self.scale = encode(self.X)

    def default_estimator(self) -> PartitionEstimator:
        """Return `DecoderImportance`, with a standard error of 0.1 nats a row.

        Returns
        -------
        PartitionEstimator
            Not fitted.
        """
        from sklpf.models.decoder._importance import DecoderImportance

        return DecoderImportance()

    def unchanged(self) -> AbstractContextManager[None]:
        """Return a context that finds a decoder whose numbers change in it."""
        return self.network.unchanged(self.n_dimensions)

    @property
    def region_remedy(self) -> str:  # type: ignore[override]
        """Remedy where a run has missed a region."""
        if self.encode is None:
            return "raise n_chains, or give an encoder whose density covers it"
        return "score without the encoder, whose density misses it"

    # -- rows
    def row(self, t: int) -> Self:
        """Return the path of row t alone."""
        row = copy.copy(self)
        row.X = self.X[t : t + 1]
        row.center = self.center[t : t + 1]
        row.scale = self.scale[t : t + 1]
        row.drawn = None if self.drawn is None else self.drawn[t : t + 1]
        row.n_rows = None
        return row

    def row_content(self, t: int) -> bytes:
        """Return row t."""
        return self.X[t].tobytes()

    def probe(self) -> list[str]:
        """Log likelihoods and gradients of the rows at fixed latent variables, to ten digits.

        They tell decoders apart that a pickle does not: it holds functions by their names.
        """
        rows = np.resize(np.arange(len(self.X)), max(len(self.X), _FEWEST_PROBED))
        points = np.random.default_rng(0).standard_normal((len(rows), self.n_dimensions))
        latents = self.center[rows] + self.scale[rows] * points
        parts = self.network.log_likelihood(latents, self.X[rows])
        return [f"{value:.9e}" for part in parts for value in np.ravel(part)]

    def batch_rows(self, rows: Sequence[Self], n_chains: int) -> Self:
        """Return the path of so many chains of each row, one row after the other."""
        joint = copy.copy(self)
        for name in ("X", "center", "scale"):
            of_rows = np.concatenate([getattr(row, name) for row in rows])
            setattr(joint, name, np.repeat(of_rows, n_chains, axis=0))
        return joint

    # -- one row's densities
    def sample_base(self, n: int, stream: Stream) -> SlopedPoints:
        """Return n exact draws from the base."""
        position = np.empty((n, self.n_dimensions))
        for row_stream, chains in stream.rows():
            row_stream.generator().standard_normal(out=position[chains])
        return self.at(position)

    @property
    def exact_start(self) -> Callable[[], SlopedPoints]:
        """A function without arguments: the state of one chain at an exact draw from the target,
        which only a row has that was drawn from the model.
        """
        drawn = self.drawn
        if drawn is None:
            raise AttributeError("the latent variables of a row that is given are not known")
        return lambda: self.at((drawn - self.center) / self.scale)

    def latents(self, position: Array) -> Array:
        """Return the latent variables at points.

        Parameters
        ----------
        position : ndarray of shape (n, n_latents)
            Coordinates y of the chains.

        Returns
        -------
        ndarray of shape (n, n_latents)
            The latent variables z.
        """
        return self.center + self.scale * position

    def at(self, position: Array) -> SlopedPoints:
        """Return the state of chains at some points (n, n_latents)."""
        if self.n_rows is not None:
            raise ValueError("this path has one log Z for each row of X: choose one with row(t)")
        latents = self.latents(position)
        X = np.broadcast_to(self.X, (len(latents), self.X.shape[1]))
        log_likelihood, slope = self.network.log_likelihood(latents, X)
        log_base = -0.5 * (np.sum(position**2, axis=1) + self.n_dimensions * LOG_TAU)
        log_prior = -0.5 * (np.sum(latents**2, axis=1) + self.n_dimensions * LOG_TAU)
        log_target = log_prior + np.log(self.scale).sum(axis=1) + log_likelihood
        return SlopedPoints(
            position, log_base, log_target - log_base, self.scale * (slope - latents)
        )

    def regions(self, stream: Stream) -> Regions:
        """Return ellipsoids around the modes to which climbs from the prior lead, in coordinates y,
        with estimates of their masses.

        An encoder may know one of several modes, and chains from the prior seldom find a narrow
        one, such as that of a row which a decoder has learned by heart.

        Parameters
        ----------
        stream : Stream
            Of random numbers.

        Returns
        -------
        Regions
            Of one row.
        """
        rng = stream.generator()
        log_target, slopes = functions_for_climbs(
            lambda y: self._target_and_slope(y)[0], None, self._target_and_slope
        )
        prior = Gaussian(-self.center[0] / self.scale[0], self.scale[0] ** -2.0)
        draws = prior.sample(_N_SCREENED, rng)
        gain = log_target(draws) - prior.log_density(draws)
        highest = np.argsort(gain)[-_N_HIGHEST:]
        starts = np.concatenate([draws[highest], draws[:_N_OTHERS]])
        return find_regions(log_target, slopes, True, prior, self.bounds, rng, starts)

    def _target_and_slope(self, position):
        state = self.at(position)
        return state.log_base + state.gain, state.slope

    def gradients(self, state: SlopedPoints) -> tuple[Array, Array]:
        """Return the gradients of log f_0 and of log f_1 - log f_0, both (n, n_latents)."""
        return -state.position, state.slope + state.position

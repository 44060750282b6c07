"""Mixtures that are fitted to points: of Gaussians, and a base with tails."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from sklpf._utils.numbers import Array
from sklpf._utils.parallel import one_blas_thread
from sklpf.paths._bases import Gaussian, Mixture, Parts, StudentT
from sklpf.paths._box import Box

_PRECISE, _ROUGH = 1e-3, 1e-2  # gain of the last EM step in the log-likelihood of a point
# of a base
DEGREES_OF_FREEDOM = (30.0, 10.0, 5.0, 3.0)
_SHARES = (0.92, 0.05, 0.03)  # of the fit, of the old base, of a Cauchy distribution


class FittedParts(NamedTuple):
    """Gaussians, of which a mixture of at least two consists.

    Attributes
    ----------
    means : ndarray of shape (K, d)
    covariances : ndarray of shape (K, d, d)
    weights : ndarray of shape (K,)
    """

    means: Array
    covariances: Array
    weights: Array


def fit_parts(
    points: Array,
    whole: Gaussian,
    n_effective: float,
    most: int,
    rng: np.random.Generator,
    covariance_type: str = "full",
    patience: int = 2,  # parts more than the best mixture has, beyond which none is tried
    fewest: int = 1,
    is_rough: bool = False,
    *,
    points_per_number: int = 5,  # coordinates of effective points that each fitted number needs
    decimals: int = 6,  # of standard deviations, up to which points are the same
) -> FittedParts | None:
    """Return as many Gaussians as the Bayesian information criterion asks for, None for one.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        To fit them to.
    whole : Gaussian
        With their moments: they are standardised.
    n_effective : float
        How many independent points these are worth.
    most : int
        Gaussians that are tried at most.
    rng : numpy.random.Generator
        For where fits begin.
    covariance_type : {"full", "diag"}, default="full"
        As of `sklearn.mixture.GaussianMixture`.
    patience : int, default=2
        How many Gaussians more than the best mixture has are tried.
    fewest : int, default=1
        Gaussians of the smallest mixture that is tried.
    is_rough : bool, default=False
        Whether each mixture has twice as many as the one before, up to twice the best one's, and
        few EM steps.

    Returns
    -------
    FittedParts or None
    """
    scale = whole.scale
    scaled = (points - whole.mean) / scale
    n_dimensions = points.shape[1]
    # share, mean and covariance of a part
    n_numbers = (n_dimensions + 1) * (n_dimensions + 2) / 2
    if covariance_type == "diag":
        n_numbers = 2 * n_dimensions + 1
    n_distinct = len(np.unique(scaled.round(decimals), axis=0))  # k-means finds no more clusters
    most = int(min(most, n_distinct, n_effective * n_dimensions / (points_per_number * n_numbers)))
    tol = _ROUGH if is_rough else _PRECISE
    best, largest = None, -np.inf
    n_components = min(fewest, max(most, 1))
    # k-means adds what its threads find in the order in which they end
    openmp = ThreadpoolController().select(user_api="openmp").limit(limits=1)
    with one_blas_thread(), openmp:
        while n_components <= most:
            seed = int(rng.integers(2**31))
            mixture = _gaussian_mixture()(
                n_components, covariance_type=covariance_type, tol=tol, random_state=seed
            ).fit(scaled)
            log_likelihood = n_effective * mixture.score(scaled)
            criterion = log_likelihood - 0.5 * n_components * n_numbers * np.log(n_effective)
            if best is None or criterion > largest:
                best, largest = mixture, criterion
            n_components = 2 * n_components if is_rough else n_components + 1
            enough = best.n_components + patience
            if is_rough:
                enough = max(enough, 2 * best.n_components)
            if n_components > enough:
                break
    if best is None or best.n_components == 1:
        return None
    covariances = best.covariances_
    if covariance_type == "diag":
        covariances = covariances[..., np.newaxis] * np.eye(n_dimensions)
    return FittedParts(
        whole.mean + scale * best.means_, covariances * np.outer(scale, scale), best.weights_
    )


@functools.cache
def _gaussian_mixture() -> type:
    """scikit-learn's mixture without its warning that EM was not finished, of which a base or a
    proposal need not be.
    """
    from sklearn.mixture import GaussianMixture  # slow to import

    class UnwarnedMixture(GaussianMixture):
        converged_ = property(lambda self: True, lambda self, value: None)

    return UnwarnedMixture


def fit_base(
    points: Array,
    n_effective: float,
    bounds: Box,
    rng: np.random.Generator,
    fewest: int = 1,
    is_rough: bool = False,
    *,
    patience: int = 6,  # many modes on a lattice are not better by two or three parts
    widening: float = 1.5,  # variances in a box, over those of the fit
    most_parts: int = 30,
) -> Mixture:
    """Return a mixture that covers points: of t distributions, a little wider than these, with the
    most likely number of degrees of freedom.

    In a box the parts are Gaussians with independent coordinates, which can be truncated to it.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        To cover.
    n_effective : float
        How many independent points these are worth.
    bounds : Box
        The box.
    rng : numpy.random.Generator
        For where fits begin.
    fewest : int, default=1
        Parts of the smallest mixture that is tried.
    is_rough : bool, default=False
        As of `fit_parts`.

    Returns
    -------
    Mixture
    """
    whole = Gaussian.fit(points)
    kind = "diag" if bounds.has_sides else "full"
    parts = fit_parts(
        points,
        whole,
        n_effective,
        most_parts,
        rng,
        kind,
        patience,
        fewest,
        is_rough,
    )
    if parts is None:
        parts = FittedParts(whole.mean[np.newaxis], whole.covariance[np.newaxis], np.ones(1))
    if not bounds.has_sides:
        tails = [with_tails(parts, df) for df in DEGREES_OF_FREEDOM]
        return max(tails, key=lambda mixture: mixture.log_density(points).mean())
    variances = widening * np.diagonal(parts.covariances, axis1=1, axis2=2)
    gaussians = [Gaussian(*each) for each in zip(parts.means, variances)]
    return Mixture(gaussians, parts.weights).truncated(*bounds)


def with_tails(
    parts: FittedParts,
    df: float,
    *,
    widening: float = 1.3,  # variances of the parts, over those of the fit
) -> Mixture:
    """Return Student t distributions with the covariances of fitted Gaussians, a little wider."""
    scales = widening * (df - 2) / df * parts.covariances
    return Mixture([StudentT(*each, df) for each in zip(parts.means, scales)], parts.weights)


def defensive(fitted: Mixture, old: Any, bounds: Box) -> Mixture:
    """Return a fitted base with a small share of another one, whose tails so stay covered, and
    without bounds with one of a Cauchy distribution (Hesterberg 1995).

    Parameters
    ----------
    fitted : Mixture
        Of `fit_base`.
    old : object
        The other base; left out where it can't be part of a mixture.
    bounds : Box
        The box.

    Returns
    -------
    Mixture
    """
    parts: list[Any] = [fitted]
    shares = [_SHARES[0]]
    if isinstance(getattr(old, "packed", None), Parts):
        parts.append(old)
        shares.append(_SHARES[1])
    if not bounds.has_sides:
        parts.append(StudentT(fitted.center, fitted.scale**2, 1.0))
        shares.append(_SHARES[2])
    return Mixture(parts, shares)

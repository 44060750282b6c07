"""Moves that sweeps can't make: a start from the moments, and components reborn where rows are
badly explained.

A move ends in some sweeps at T = 1, and is kept where it has raised the bound. `Pursuit` gives
activations from the moments of X alone: directions in which rows are spread least like a normal
distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sklpf._utils.numbers import Array
from sklpf.models.factorial.learning._posterior import FactorialPosterior, RowEnergy
from sklpf.variational import sweeps

_MAX_SWEEPS = 30  # of a move
_SETTLED = 1e-3  # nats a row
_N_REFINED = 2


def leading_eigenvalues(X, n: int) -> Array:
    """About the n largest eigenvalues of the covariance of X, falling, by subspace iteration."""
    _, basis = _leading_subspace(X, n)
    return np.sort(np.linalg.norm(basis, axis=0))[::-1]


def _leading_subspace(X, n: int):
    """Mean of X (D,), and its covariance times a basis (D, m) of about the leading n directions."""
    power_steps = 15
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    basis = np.random.default_rng(0).normal(size=(X.shape[1], min(n, X.shape[1])))
    for _ in range(power_steps):
        basis = np.linalg.qr(basis)[0]
        scores = X @ basis.astype(X.dtype) - mean @ basis
        basis = (X.T @ scores.astype(X.dtype) - np.outer(mean, scores.sum(axis=0))) / X.shape[0]
    return mean, basis


class Pursuit:
    """Guesses at which components are on in every row, by projection pursuit.

    Rows are whitened in the leading directions that stand out from the noise, and rotated by the
    fixed-point iteration of independent component analysis to coordinates of large skewness and
    kurtosis. A coordinate that takes two values, as that of a component does, is told by its
    skewness where these lie.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, D)
    n_components : int
    variance : float
        Mean variance of the features.

    Attributes
    ----------
    basis : ndarray of shape (D, m)
        Orthonormal, about the leading directions of X, some more than components.
    """

    def __init__(self, X, n_components: int, variance: float):
        n_spare = 8  # directions of the subspace iteration beyond those that are asked for
        self.X = X
        mean, spread = _leading_subspace(X, n_components + n_spare)
        self.basis = np.linalg.qr(spread)[0]
        scores = np.asarray(X @ self.basis.astype(X.dtype), dtype=np.float64) - mean @ self.basis
        values, vectors = np.linalg.eigh(scores.T @ scores / len(scores))
        values = values[::-1]
        vectors = vectors[:, ::-1]
        noise, kept = _above_noise(values, n_components, variance, X.shape)
        self._whitened = scores @ vectors[:, kept] / np.sqrt(values[kept] - noise)

    def activations(self, rng) -> Array:
        """Return activations (n, m), 0 or 1, from a random rotation; m is smaller where fewer
        directions stand out.
        """
        max_rows = 20_000
        n, m = self._whitened.shape
        if m == 0:
            return self._whitened
        rows = slice(None) if n <= max_rows else rng.choice(n, max_rows, replace=False)
        coordinates = self._whitened @ _rotate(self._whitened[rows], rng).T
        skewness = np.mean(coordinates**3, axis=0)
        coordinates *= np.where(skewness < 0, -1, 1)
        return _without_offset(self.X, (coordinates > np.abs(skewness) / 2).astype(np.float64))


def _above_noise(values, n: int, variance: float, shape):
    """Variance of the noise, and which of the first n eigenvalues (falling) are too large
    for it.
    """
    n_rows, n_features = shape
    n = min(n, len(values))
    rest = n_features - n
    noise = max(0.0, (variance * n_features - values[:n].sum()) / rest) if rest > 0 else 0.0
    edge = noise * (1 + np.sqrt(n_features / n_rows)) ** 2  # where the eigenvalues of noise end
    return noise, np.flatnonzero(values[:n] > max(edge, 1e-6 * values[0]))


def _rotate(whitened, rng) -> Array:
    """Rotation (m, m) that raises the sum of skewness² / 12 + kurtosis² / 48 over the
    coordinates.
    """
    max_steps = 100
    aligned_within = 1e-4
    n, m = whitened.shape
    rotation = np.linalg.qr(rng.normal(size=(m, m)))[0]
    for _ in range(max_steps):
        u = whitened @ rotation.T
        skewness = np.mean(u**3, axis=0)
        kurtosis = np.mean(u**4, axis=0) - 3
        value = skewness * u**2 / 2 + kurtosis * u**3 / 6
        slope = np.mean(skewness * u + kurtosis * u**2 / 2, axis=0)
        left, _, right = np.linalg.svd(value.T @ whitened / n - slope[:, None] * rotation)
        last = rotation
        rotation = left @ right
        if np.max(1 - np.abs(np.sum(rotation * last, axis=1))) < aligned_within:
            break
    return rotation


def _without_offset(X, activations) -> Array:
    """The activations with on and off exchanged where that leaves rows with nothing on closest to
    zero.
    """
    design = np.column_stack([np.ones(len(activations)), activations])
    cross = np.asarray((X.T @ design.astype(X.dtype)).T, dtype=np.float64)
    offset, *components = np.linalg.lstsq(design.T @ design, cross, rcond=None)[0]
    exchanged = np.linalg.lstsq(np.array(components).T, -offset, rcond=None)[0] > 0.5
    return np.where(exchanged, 1 - activations, activations)


def improve(
    posterior: FactorialPosterior,
    rng: np.random.Generator,
    n_moves: int,
    variance: float,
    on_move: Callable[[float, str], None],
) -> FactorialPosterior:
    """Make moves until `n_moves` in a row have failed.

    Parameters
    ----------
    posterior : FactorialPosterior
        Not changed.
    rng : numpy.random.Generator
    n_moves : int
    variance : float
        Mean variance of the features.
    on_move : callable
        Called as on_move(elbo, kind) after every move that was kept.

    Returns
    -------
    posterior : FactorialPosterior
    """
    n_pursuits = 3
    most_born = 3  # in one move
    best = posterior
    bound = posterior.elbo()
    pursuit = Pursuit(posterior.X, posterior.activations.shape[1], variance)
    made = failures = 0
    while failures < n_moves:
        pursued = made < n_pursuits
        if pursued:
            other = _pursued(posterior, pursuit, rng)
        else:
            other = _reborn(best, pursuit.basis, 1 + failures % most_born, rng)
        value = other.elbo()
        made += 1
        failures += 1
        if value > bound + _SETTLED * len(posterior.activations):
            best = other
            bound = value
            failures = 0
            on_move(bound, "pursuit" if pursued else "rebirth")
    return best


def _settle(posterior, max_sweeps) -> None:
    """Sweep at T = 1 until the bound has settled; each sweep forces another component, the last
    one, a newborn, first.
    """
    n, n_components = posterior.activations.shape
    posterior.forced = (n_components - 1,)
    for i, _ in enumerate(sweeps(posterior, tol=_SETTLED * n, max_iter=max_sweeps)):
        posterior.forced = ((-2 - i) % n_components,)


# -- moves
def _pursued(posterior, pursuit, rng) -> FactorialPosterior:
    """A start from the moments of X; components for which no direction is left are off, until they
    are reborn.
    """
    found = pursuit.activations(rng)
    activations = np.zeros(posterior.activations.shape)
    by_share = np.argsort(found.mean(axis=0))[::-1]
    slots = np.argsort(posterior.activation_probability, kind="stable")[::-1][: len(by_share)]
    activations[:, slots] = found[:, by_share]
    other = posterior.with_activations(activations)
    _settle(other, _MAX_SWEEPS)
    return other


def _reborn(posterior, basis, n_born, rng) -> FactorialPosterior:
    """Add components where rows are badly explained, and drop as many that are then
    needed least.
    """
    birth_sweeps = 6  # with a component too many
    n_components = posterior.activations.shape[1]
    other = posterior
    for _ in range(n_born):
        other = _with_newborn(other, basis, rng)
        _settle(other, birth_sweeps)
    while other.activations.shape[1] > n_components:
        other = _without(other, int(np.argmin(_losses(other, rng))))
        _settle(other, birth_sweeps)
    _settle(other, _MAX_SWEEPS)
    return other


def _without(posterior, k):
    """The posterior without component k, in whose place the last one comes."""
    activations = posterior.activations[:, :-1].copy()
    probability = posterior.activation_probability[:-1].copy()
    if k < len(probability):
        activations[:, k] = posterior.activations[:, -1]
        if "activation_probability" in posterior.learned:
            probability[k] = posterior.activation_probability[-1]
    return posterior.with_activations(activations, probability)


def _with_newborn(posterior, basis, rng) -> FactorialPosterior:
    """Return the posterior with one more component.

    Candidates are drawn in proportion to the gain of the rows, each is improved by some steps, and
    the best one is kept. They are drawn, since the candidate with the highest gain would be the
    same at every move, even after it has been removed.
    """
    rows_screened = 200
    seed_steps = 2
    x, energy, z = _look_at_rows(posterior, rng)
    means, own = _candidates(posterior, basis, x, z, rng)
    few = slice(rows_screened)
    screening = energy.of_rows(few)
    totals = np.empty(len(means))
    for i, mean in enumerate(means):
        _, gains = _gains(posterior, screening, x[few], z[few], mean)
        gains[own[i]] = 0  # empty where that row is not among the few
        totals[i] = np.maximum(gains, 0).sum()
    totals += 1e-9 * totals.mean() or 1.0

    n_refined = min(_N_REFINED, len(means))
    best_total = -np.inf
    best_mean = means[0]
    for i in rng.choice(len(means), n_refined, replace=False, p=totals / totals.sum()):
        mean = means[i]
        for _ in range(seed_steps):
            changed, gains = _gains(posterior, energy, x, z, mean)
            gains[own[i]] = 0
            total = np.maximum(gains, 0).sum()
            if total > best_total:
                best_total = total
                best_mean = mean
            on = gains > 0
            if not on.any():
                break
            mean = np.mean(x[on] - changed[on, :-1] @ posterior.means, axis=0)
    return posterior.with_newborn(best_mean)


def _candidates(posterior, basis, x, z, rng) -> tuple[np.ndarray, list[slice]]:
    """Means of components that could be born, (n, D), and the row that each was made from, whose
    own gain says nothing.
    """
    n_seeds = 30
    residuals = x - z @ posterior.means
    square = np.sum(residuals**2, axis=1)
    square += 1e-6 * square.mean() or 1.0
    seeds = rng.choice(len(x), size=min(n_seeds, len(x)), replace=False, p=square / square.sum())
    chosen = _some_that_are_on(z[seeds], rng)
    single = residuals[seeds] + chosen @ posterior.means
    halves = _halves(posterior, residuals @ basis, z, np.unique(chosen, axis=0), basis)
    means = np.vstack([single, halves]) @ basis @ basis.T  # nearly all noise is elsewhere
    return means, [slice(row, row + 1) for row in seeds] + [slice(0)] * len(halves)


def _halves(posterior, scores, z, sets, basis):
    """Either half of what sets of components (n_sets, K) stand for where they look like blends, as
    no single row shows.

    That is where residuals of the rows that have the whole set are spread along a direction by more
    than noise is: of n rows with m scores, the residuals in the basis, that is its variance times
    (1 + sqrt(m / n))^2 at most.
    """
    found = [np.empty((0, len(basis)))]
    noise = posterior.noise_variance
    for chosen in sets:
        on = scores[z @ chosen == chosen.sum()]
        middle = on.mean(axis=0)
        variances, directions = np.linalg.eigh((on - middle).T @ (on - middle) / len(on))
        if variances[-1] > noise * (1 + np.sqrt(scores.shape[1] / len(on))) ** 2:
            half = np.sqrt(variances[-1] - noise) * directions[:, -1]
            found.append(chosen @ posterior.means + (middle + [half, -half]) @ basis.T)
    return np.vstack(found)


def _some_that_are_on(z, rng):
    """For every row none, one or two of the components that are on, so that what they are a blend
    of can be born.
    """
    most_added = 2  # components added to a residual
    chosen = np.zeros(z.shape)
    for row, n in enumerate(rng.integers(most_added + 1, size=len(z))):
        on = np.flatnonzero(z[row])
        chosen[row, rng.choice(on, min(n, len(on)), replace=False)] = 1
    return chosen


def _gains(posterior, energy, x, z, mean):
    """Gains of rows from a new component of this mean, and the activations with it, once the
    others have followed.
    """
    precision = 1 / posterior.noise_variance
    n = z.shape[1]
    bias = np.mean(posterior.log_odds) + precision * (x @ mean - 0.5 * mean @ mean)
    coupling = np.zeros((1, n + 1, n + 1))
    coupling[0, :n, :n] = energy.coupling[0]
    coupling[0, n, :n] = coupling[0, :n, n] = precision * (posterior.means @ mean)
    extended = RowEnergy(np.column_stack([energy.bias, bias]), coupling)
    return extended.forced(np.pad(z, ((0, 0), (0, 1))), n, 1)


def _losses(posterior, rng):
    """Losses of the bound of some rows without each of the components, in nats."""
    _, energy, z = _look_at_rows(posterior, rng)
    return [-energy.forced(z, k, 0)[1].sum() for k in range(z.shape[1])]


def _look_at_rows(posterior, rng):
    """Some rows as float64 (n, D), the energy of their activations, and these as 0 and 1."""
    n_rows = 1000
    n = len(posterior.activations)
    rows = rng.choice(n, min(n, n_rows), replace=False)
    x = posterior.rows(rows)
    energy = RowEnergy.of(posterior.means @ x.T, *posterior.terms())
    return x, energy, np.ascontiguousarray(posterior.activations[rows] > 0.5).astype(np.uint8)

"""AdaptiveRejection: log Z of a log-concave density on the line between two certain bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from sklpf._utils.sklearn import POSITIVE
from sklpf._utils.warnings import Alarm
from sklpf.partition._base import PartitionEstimator
from sklpf.partition._hull import Hull
from sklpf.partition._result import Diagnostic, PartitionResult
from sklpf.partition.checks._beside import rounding_alarms
from sklpf.paths import GeometricPath
from sklpf.paths._base import concatenate


@dataclass(eq=False, repr=False)
class AdaptiveRejection(PartitionEstimator):
    """Both bounds of log Z of a log-concave density on the line, and exact draws from it (Gilks &
    Wild 1992).

    Chords between points of log f lie below it and their continuations above it (Gilks 1992,
    without derivatives). The integrals of their exponentials enclose Z; points are added where
    these differ most. Nothing is random.

    Parameters
    ----------
    tol : float, default=1e-6
        Distance of the two bounds of log Z in nats at which it stops.

    Attributes
    ----------
    log_partition_ : float
        The middle between the bounds.
    log_partition_std_error_ : float
        Half their distance: no error is larger, except for rounding of log f.
    log_partition_interval_ : tuple of float
        The bounds, whatever the level: ``result_.statement`` is "enclosed".
    converged_, result_
        See `PartitionEstimator`. ``result_.diagnostics`` holds ``n_evaluations`` of log f.

    Raises
    ------
    TypeError
        If the path is no `GeometricPath`.
    ValueError
        If it has more dimensions than one, or log f is not concave, has no mass within 8 scales of
        the base's center, or doesn't fall far out.

    Notes
    -----
    The base is only used to find the mass (by its center and scale). A departure from concavity
    between the points is not detected; points are close only where f has mass. Not converged if
    20,000 points don't reach `tol`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import Gaussian, GeometricPath
    >>> from sklpf.partition import AdaptiveRejection
    >>> path = GeometricPath(lambda x: -(x[:, 0] ** 4), base=Gaussian(0.0, 1.0))
    >>> hull = AdaptiveRejection().fit(path)
    >>> round(hull.log_partition_, 4), hull.result_.statement  # log of 2 Gamma(5 / 4)
    (0.5949, 'enclosed')
    """

    tol: float = 1e-6

    _parameter_constraints = {"tol": [POSITIVE]}

    def _estimate(self, path, seed) -> PartitionResult:
        hull = _hull(path)
        low, high = hull.refine(self.tol)
        n = hull.n_evaluations
        alarms: tuple[Alarm, ...] = ()
        if not high - low < self.tol:
            alarms = (
                Alarm(
                    "bounds-apart",
                    f"after {n} points the bounds differ by {high - low:.2g}",
                    "raise tol",
                ),
            )
        log_partition = (low + high) / 2
        return PartitionResult(
            method="AdaptiveRejection",
            log_partition=log_partition,
            std_error=(high - low) / 2,
            statement="enclosed",
            alarms=(*alarms, *rounding_alarms(log_partition)),
            diagnostics={"n_evaluations": n},
            described={"n_evaluations": Diagnostic("evaluations of log f", "low")},
        )

    def sample(self, path, n: int, rng: np.random.Generator) -> Any:
        """Return a state of n chains, exact and independent draws from the target of such
        a path.
        """
        hull = _hull(path)
        drawn = []
        missing = n
        hull.refine(max(self.tol, 1e-3))  # one draw in a thousand is rejected
        pieces, _ = hull.upper()
        shares = softmax(pieces.log_masses())
        while missing > 0:
            x, log_upper = pieces.draw(rng.choice(len(shares), size=missing, p=shares), rng)
            state = path.at(x[:, np.newaxis])
            log_f = sum(path.ends(state))
            _check_below(x, log_f, log_upper)
            drawn.append(
                path.take(state, np.flatnonzero(np.log1p(-rng.random(missing)) < log_f - log_upper))
            )
            missing = n - sum(len(part.position) for part in drawn)
        return concatenate(drawn)


def _hull(path) -> Hull:
    if not isinstance(path, GeometricPath):
        raise TypeError(
            "AdaptiveRejection needs a GeometricPath, a density on the line, got"
            f" {type(path).__name__}"
        )
    if path.n_dimensions != 1:
        raise ValueError(
            f"AdaptiveRejection needs a density in one dimension, got {path.n_dimensions};"
            " choose AIS"
        )

    def log_density(x):
        values = path.raw_log_density(x[:, np.newaxis])
        bad = np.isnan(values) | (values == np.inf)
        if bad.any():
            raise ValueError(
                f"log_density is {values[bad][0]} at {x[bad][0]:.6g}: it must be a number or -inf"
            )
        return values

    low, high = (
        (-np.inf, np.inf) if path.bounds is None else (float(side) for side in path.bounds[:, 0])
    )
    return Hull(log_density, low, high, float(path.base.center[0]), float(path.base.scale[0]))


def _check_below(x, log_f, log_upper) -> None:
    above = log_f - log_upper > 1e-9 * np.maximum(1.0, np.abs(log_f))
    if above.any():
        i = int(above.argmax())
        raise ValueError(
            f"log_density is not log-concave: at {x[i]:.6g} it lies above its continued chords"
        )

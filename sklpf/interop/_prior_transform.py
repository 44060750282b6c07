"""from_prior_transform: a likelihood with a prior transform, as nested samplers take them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from sklpf._utils.numbers import LOG_TAU, Array
from sklpf._utils.validation import as_float64, check_bool, check_count
from sklpf.interop._parameter_path import from_given_base
from sklpf.paths import (
    Gaussian,
    GeometricPath,
    Pool,
    evaluate,
    pool_of,
    shape_given,
    values_of,
    values_of_shape,
)

_SMALLEST = np.finfo(np.float64).epsneg  # of a uniform number: 0 and 1 may be infinite parameters
_LARGEST = 1 - _SMALLEST
_FARTHEST = ndtri(_LARGEST)  # normal coordinate, 8.2: beyond it the next uniform number is 1


@dataclass(eq=False, repr=False)
class _Posterior:
    """log likelihood + log N(z; 0, I) of normal coordinates z (n, d); NaN beyond the farthest."""

    log_likelihood: Callable[..., Any]
    transform: Callable[..., Any]
    grad: Callable[..., Any] | None
    vectorized: bool
    pool: Pool | None = None

    def __call__(self, z: Array) -> Array:
        is_inside = np.all(np.abs(z) <= _FARTHEST, axis=1)
        log_f = np.full(len(z), np.nan)
        if is_inside.any():
            log_f[is_inside] = self._log_density(z[is_inside])
        return log_f

    def _log_density(self, z: Array) -> Array:
        log_prior = -0.5 * np.sum(z**2 + LOG_TAU, axis=1)
        values = self._call(self.log_likelihood, self.parameters(z))
        return values_of_shape("log_likelihood", values, (len(z),), self._hint()) + log_prior

    def parameters(self, z: Array) -> Array:
        """Return T(Phi(z)), shape (n, n_parameters)."""
        parameters = values_of("transform", self._call(self.transform, _uniform(z)))
        if parameters.ndim != 2 or len(parameters) != len(z):
            raise ValueError(
                "transform must give the parameters of each point, got the shape"
                f" {parameters.shape} for {len(z)} points{self._hint()}"
            )
        return parameters

    def gradient(self, z: Array) -> Array:
        """Return that of the log density, shape (n, d)."""
        values = self._call(self.grad, _uniform(z))
        by_uniform = values_of_shape("grad", values, z.shape, self._hint())
        return by_uniform * np.exp(-0.5 * (z**2 + LOG_TAU)) - z

    def _hint(self) -> str:
        return "; of functions of one point say vectorized=False" if self.vectorized else ""

    def _call(self, function, points):
        # Either may change the array that it is given, as dynesty allows, or give it back.
        return evaluate(function, points.copy(), self.vectorized, self.pool)


class PriorTransformPath(GeometricPath):
    """The path from the prior to a posterior in normal coordinates, as `from_prior_transform` makes
    it.

    Parameters
    ----------
    posterior : callable
        The log density of points (n, d) in normal coordinates, giving (n,), in nats.
    names : sequence of str
        Names of the parameters, one for each dimension.
    base : object
        In the normal coordinates, as the parameter of `GeometricPath`.
    ladder : array-like of shape (K,), default=(0.0, 1.0)
        Inverse temperatures, increasing in [0, 1].

    Attributes
    ----------
    parameter_shapes : dict of str to tuple
        Names of the parameters, each a number.

    Examples
    --------
    >>> from sklpf.interop import from_prior_transform
    >>> path = from_prior_transform(lambda x: -x @ x, lambda u: 10 * u - 5, 2)
    >>> list(path.parameter_shapes)
    ['parameter_0', 'parameter_1']
    """

    tail_alarms = ()  # the posterior ends where uniform numbers do
    may_be_nan = True
    density_name = "log_likelihood, at normal coordinates z = ndtri(u),"

    def __init__(
        self,
        posterior: _Posterior,
        names: Sequence[str],
        *,
        base: object,
        ladder: ArrayLike = (0.0, 1.0),
    ) -> None:
        self.parameter_shapes: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
        self.posterior = posterior
        grad = None if posterior.grad is None else posterior.gradient
        super().__init__(posterior, grad=grad, base=base, ladder=ladder)

    def _evaluate(self, function, position):
        return function(position)  # which shares it among workers

    @property
    def gradients(self) -> Callable[[Any], tuple[NDArray, NDArray]]:
        """The gradients of `GeometricPath`; AttributeError without `grad`."""
        if self.grad is None:
            raise AttributeError(
                "give grad to from_prior_transform, or choose AdaptiveSMC, SMC or"
                " ParallelTempering, or RandomWalk or Slice as transition"
            )
        return super().gradients

    def from_unit_cube(self, points: ArrayLike) -> Array:
        """Return normal coordinates of points of the unit cube, such as `samples_u` of dynesty.

        Parameters
        ----------
        points : array-like of shape (n, d)
            Uniform numbers.

        Returns
        -------
        ndarray of shape (n, d)

        Raises
        ------
        ValueError
            If a number lies outside [0, 1].
        """
        points = as_float64(points, "points")
        if not np.all((points >= 0) & (points <= 1)):
            raise ValueError("points of the unit cube must lie in [0, 1]")
        return np.clip(ndtri(points), -_FARTHEST, _FARTHEST)

    def constrain(self, position: Array) -> dict[str, Array]:
        """Return the parameters of points.

        Parameters
        ----------
        position : ndarray of shape (n, d)
            In the normal coordinates.

        Returns
        -------
        dict of str to ndarray of shape (n,)
        """
        values = self.posterior.parameters(np.asarray(position, dtype=np.float64))
        return dict(zip(self.parameter_shapes, values.T))


def from_prior_transform(
    log_likelihood: Callable[..., Any],
    transform: Callable[..., Any],
    n_dimensions: int,
    *,
    grad: Callable[..., Any] | None = None,
    names: Sequence[str] | None = None,
    vectorized: bool = False,
    pool: object = None,
    base: object = "auto",
) -> PriorTransformPath:
    """Return the path from the prior to the posterior of a model written for a nested sampler.

    Its coordinates are normal: z ~ N(0, I) under the prior, u = Phi(z) uniform, and the parameters
    are ``transform(u)``. The log density is the log likelihood of these plus log N(z; 0, I), which
    is smooth and needs no Jacobian, and its log Z is the log evidence. It ends at z = 8.2
    and -8.2, where u is 1 or 0 up to rounding: a posterior that reaches so far is an alarm. Effects
    whose prior depends on other parameters become independent under the prior (not centred).
    An array of draws for this path holds such z, and no parameters: ``path.from_unit_cube(u)``
    gives them.

    Parameters
    ----------
    log_likelihood : callable
        Log likelihood in nats, a function of the parameters (n_parameters,) of one point; -inf is a
        likelihood of 0.
    transform : callable
        The prior transform: of a point u (n_dimensions,) in the open unit cube, giving the
        parameters (n_parameters,).
    n_dimensions : int
        Number of coordinates of the unit cube.
    grad : callable or None, default=None
        Gradient of ``log_likelihood(transform(u))`` by u, a function of u that gives
        (n_dimensions,), in nats: ``jax.grad(lambda u: log_likelihood(transform(u)))``. None leaves
        estimators without a gradient.
    names : sequence of str or None, default=None
        Names of the parameters; None numbers them, "parameter_0" and so on.
    vectorized : bool, default=False
        True: all functions take points (n, ...) and give (n,), (n, n_parameters) and (n,
        n_dimensions).
    pool : object or None, default=None
        As in `GeometricPath`.
    base : object, default="auto"
        Where chains start, in the normal coordinates. "auto": the prior. Draws of the posterior, as
        for `BridgeSampling` (of results of nested samplers their points of the unit cube are read):
        a Gaussian with their mean and 1.5 times their covariance. Else a base, as in
        `GeometricPath`.

    Returns
    -------
    PriorTransformPath
        A `GeometricPath`.

    Raises
    ------
    TypeError
        If something is no function.
    ValueError
        If shapes don't fit, or a function gives NaN or +inf at draws of the prior, or `grad`
        disagrees with differences there.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import SMC
    >>> from sklpf.interop import from_prior_transform
    >>> def transform(u):  # a mean, uniform from -5 to 5
    ...     return 10 * u - 5
    >>> def log_likelihood(x):
    ...     return -np.sum((x - 1) ** 2 / 0.02 + np.log(0.1 * np.sqrt(2 * np.pi)))
    >>> path = from_prior_transform(log_likelihood, transform, 1, names=["mean"])
    >>> smc = SMC(random_state=0).fit(path)
    >>> bool(abs(smc.log_partition_ + np.log(10)) < 4 * smc.log_partition_std_error_)
    True
    >>> path.constrain(np.array([[0.0]]))
    {'mean': array([0.])}
    """
    functions = {"log_likelihood": log_likelihood, "transform": transform}
    for name, function in (functions | ({} if grad is None else {"grad": grad})).items():
        if not callable(function):
            raise TypeError(f"{name} must be a function, got {function!r}")
    n_dimensions = check_count(n_dimensions, "n_dimensions")
    check_bool(vectorized, "vectorized")
    posterior = _Posterior(log_likelihood, transform, grad, vectorized, pool_of(pool, vectorized))
    few = np.zeros((3 if n_dimensions == 2 else 2, n_dimensions))  # n != d: axes differ
    with _explained("transform", transform, few, vectorized, few.shape):
        middle = posterior.parameters(few)
    if names is None:
        names = [f"parameter_{i}" for i in range(middle.shape[1])]
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(f"names must be a sequence of str, one for each parameter, got {names!r}")
    if len(names) != middle.shape[1] or len(set(names)) != len(names):
        raise ValueError(
            f"names must name each of the {middle.shape[1]} parameters that transform gives, once,"
            f" got {list(names)}"
        )
    with _explained("log_likelihood", log_likelihood, middle, vectorized, few.shape):
        posterior(few)
    path = PriorTransformPath(posterior, names, base=Gaussian(np.zeros(n_dimensions), 1.0))
    path.base_is_ours = True
    path.base_chosen = "the prior"
    if isinstance(base, str) and base == "auto":
        return path
    return from_given_base(path, base)


def _uniform(z: Array) -> Array:
    return np.clip(ndtr(z), _SMALLEST, _LARGEST)


@contextlib.contextmanager
def _explained(name, function, points, vectorized, shape):
    """Say of an error whether the function takes one point, points, or of other dimensions."""
    try:
        yield
    except (IndexError, TypeError, ValueError) as error:
        given, other = (points, points[0]) if vectorized else (points[0], points[:1])
        if shape_given(function, given) is not None:
            raise  # of what it gives
        if shape_given(function, other) is not None:
            what = "one point" if vectorized else "points (n, ...) and no single one"
            raise ValueError(f"{name} takes {what}: say vectorized={not vectorized}") from error
        raise ValueError(
            f"{name} fails at {points.shape[1]} numbers a point, with n_dimensions = {shape[1]}:"
            f" {error}; give the number of coordinates that transform takes as n_dimensions, or"
            " correct the function"
        ) from error

"""Temperature at every sweep: on a schedule, with a global distribution, or one distribution a
datum.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from sklpf._utils.numbers import Array
from sklpf._utils.validation import as_float64, check_bool, check_count, check_number, check_option

_DATA_AT_ONCE = 4096  # whose distributions over the temperatures are held at a time


# -- temperatures
def temperature_schedule(
    schedule: str | ArrayLike, initial: float = 10.0, n_sweeps: int = 100
) -> Array:
    """Return the temperature of every annealed sweep; T = 1 comes after them.

    Parameters
    ----------
    schedule : {"constant", "linear", "geometric"} or array-like of shape (n,)
        How T goes from `initial` to 1, which it would reach one sweep after the last; or the
        temperatures themselves.
    initial : float, default=10.0
        First temperature, at least 1.
    n_sweeps : int, default=100
        Number of annealed sweeps, where the schedule is named.

    Returns
    -------
    temperatures : ndarray of shape (n_sweeps,) or (n,)
    """
    if not isinstance(schedule, str):
        return _check(schedule, "schedule")
    if check_number(initial, "initial") < 1:
        raise ValueError(f"initial must be a temperature of at least 1, got {initial}")
    check_count(n_sweeps, "n_sweeps", 0)
    if schedule == "constant":
        return np.full(n_sweeps, float(initial))
    check_option(schedule, ("linear", "geometric", "constant"), "schedule")
    space = np.linspace if schedule == "linear" else np.geomspace
    return space(initial, 1.0, n_sweeps, endpoint=False)


def temperature_ladder(
    highest: float, n_temperatures: int | ArrayLike = 100, spacing: str = "geometric"
) -> Array:
    """Return temperatures T_1 = 1 < … < T_M = `highest`, the support of a learned temperature.

    Parameters
    ----------
    highest : float
        Above 1.
    n_temperatures : int or array-like of shape (M,), default=100
        At least 2. Temperatures themselves are returned as they are, if they rise from 1.
    spacing : {"geometric", "inverse"}, default="geometric"
        In equal ratios, or with inverse temperatures evenly spaced: with ``highest=100`` the 0.01,
        0.02, ..., 1 of Mandt et al. (2016) for local temperatures.

    Returns
    -------
    temperatures : ndarray of shape (M,)
    """
    if not isinstance(n_temperatures, Integral):
        temperatures = _check(n_temperatures, "n_temperatures")
        if len(temperatures) < 2 or temperatures[0] != 1 or np.any(np.diff(temperatures) <= 0):
            raise ValueError(
                "n_temperatures must be a number of temperatures, or at least two temperatures that"
                f" rise from 1, got {n_temperatures!r:.80}"
            )
        return temperatures
    if check_number(highest, "highest") <= 1:
        raise ValueError(f"highest must be a temperature above 1, got {highest}")
    n = check_count(n_temperatures, "n_temperatures", 2)
    check_option(spacing, ("geometric", "inverse"), "spacing")
    if spacing == "geometric":
        return np.geomspace(1.0, highest, n)
    return 1 / np.linspace(1.0, 1 / highest, n)


def temperature_posterior(
    expected_log_joint: ArrayLike,
    temperatures: Array,
    log_partition: Array,
) -> tuple[Array, Array]:
    """Return E_q[1 / T] and the temperature's part of the bound, at the best q(T) under a uniform
    prior (equation 9).

    q(T_m) = r_m is proportional to exp(U / T_m - log C(T_m)). The part of the bound is what it
    holds beside b U: sum_m r_m (log(1 / M) - log r_m - log C(T_m)).

    Parameters
    ----------
    expected_log_joint : float or array-like of shape (n,)
        U = E_q[log p(x, z | globals)] of all data, or of each datum with a temperature of its own.
    temperatures : ndarray of shape (M,)
        The T_m.
    log_partition : ndarray of shape (M,) or (n, M)
        log C(T_m), of all data or of one.

    Returns
    -------
    inverse : ndarray of shape () or (n,)
        b = sum_m r_m / T_m.
    term : ndarray of shape () or (n,)
        In nats.
    """
    values = as_float64(expected_log_joint, "expected_log_joint")
    temperatures = _check(temperatures, "temperatures")
    log_partition = as_float64(log_partition, "log_partition")
    if log_partition.shape[-1:] != temperatures.shape:
        raise ValueError(
            f"log_partition must hold log C(T) of each of {len(temperatures)} temperatures, got"
            f" the shape {log_partition.shape}"
        )
    scores = values[..., None] / temperatures - log_partition - np.log(len(temperatures))
    log_norm = logsumexp(scores, axis=-1)
    inverse = np.exp(scores - log_norm[..., None]) @ (1 / temperatures)
    return inverse, log_norm - inverse * values


# -- a sequence of temperatures
class Temperatures:
    """The temperature of a run, from sweep to sweep.

    Attributes
    ----------
    inverse : float or ndarray of shape (n,)
        b = E_q[1 / T] of the next sweep, one for all data or one a datum.
    term : float
        Terms of the bound beside the model's own and b U, in nats.
    per_datum : bool
        Whether every datum has a temperature of its own.
    n_sweeps : int
        Most sweeps before the last phase at T = 1.
    stops_early : bool
        Whether that phase may begin as soon as the bound no longer rises.

    Examples
    --------
    >>> from sklpf.variational import Temperatures
    >>> Temperatures().inverse  # T = 1 throughout
    1.0
    """

    inverse: float | Array = 1.0
    term: float = 0.0
    per_datum: bool = False
    n_sweeps: int = 0
    stops_early: bool = False

    def advance(self, expected_log_joint) -> None:
        """Set `inverse` and `term` for the next sweep.

        Parameters
        ----------
        expected_log_joint : float or ndarray of shape (n,)
            U in nats, of each datum if `per_datum`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define advance(expected_log_joint)")


class Annealed(Temperatures):
    """Temperatures on a schedule (equation 4).

    Parameters
    ----------
    temperatures : array-like of shape (n_sweeps,)
        Temperature of every sweep, such as `temperature_schedule` gives.

    Examples
    --------
    >>> from sklpf.variational import Annealed, temperature_schedule
    >>> Annealed(temperature_schedule("linear", initial=3.0, n_sweeps=2)).temperatures
    array([3., 2.])
    """

    def __init__(self, temperatures: ArrayLike):
        self.temperatures = _check(temperatures, "temperatures")
        self.n_sweeps = len(self.temperatures)
        self._left = [1.0, *1 / self.temperatures[::-1]]
        self.advance(None)

    def advance(self, expected_log_joint) -> None:
        self.inverse = self._left.pop() if len(self._left) > 1 else 1.0


class _Learned(Temperatures):
    """Base class of learned temperatures: all of them have the same probability at first."""

    stops_early = True

    def __init__(self, temperatures: ArrayLike, log_partition: ArrayLike, n_sweeps: int):
        self.temperatures = _check(temperatures, "temperatures")
        self.log_partition = as_float64(log_partition, "log_partition", copy=True)
        if (
            len(self.temperatures) == 0
            or self.log_partition.shape != self.temperatures.shape
            or not np.all(np.isfinite(self.log_partition))
        ):
            raise ValueError(
                "log_partition must hold one finite log C(T) for every one of the temperatures"
            )
        self.n_sweeps = check_count(n_sweeps, "n_sweeps", 0)
        self.inverse = float(np.mean(1 / self.temperatures))
        self.term = -float(np.mean(self.log_partition))


class GlobalTempering(_Learned):
    """One learned temperature for all data (equation 9), uniformly distributed in the first sweep.

    Parameters
    ----------
    temperatures : array-like of shape (M,)
        Increasing from 1.
    log_partition : array-like of shape (M,)
        log C(T_m) of all data, in nats: 0 at T = 1.
    n_sweeps : int, default=100
        Most sweeps with a learned temperature.
    monotone : bool, default=False
        Whether q(T) stays as it is where the update would raise the temperature. The bound rises
        all the same.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.variational import GlobalTempering
    >>> tempering = GlobalTempering([1.0, 2.0], log_partition=np.zeros(2))
    >>> tempering.inverse  # E[1 / T], both temperatures equally probable
    0.75
    >>> tempering.advance(2.0)
    >>> round(float(tempering.inverse), 3)
    0.866
    """

    def __init__(
        self,
        temperatures: ArrayLike,
        log_partition: ArrayLike,
        n_sweeps: int = 100,
        *,
        monotone: bool = False,
    ):
        super().__init__(temperatures, log_partition, n_sweeps)
        check_bool(monotone, "monotone")
        self.monotone = monotone

    def advance(self, expected_log_joint) -> None:
        inverse, term = temperature_posterior(
            expected_log_joint, self.temperatures, self.log_partition
        )
        if not (self.monotone and inverse < self.inverse):
            self.inverse = float(inverse)
            self.term = float(term)


class LocalTempering(_Learned):
    """A learned temperature for every datum, uniformly distributed in the first sweep.

    Parameters
    ----------
    temperatures : array-like of shape (M,)
        Increasing from 1.
    log_partition : array-like of shape (M,)
        log C(T_m) of a single datum, in nats. Exact where C does not depend on the global
        variables.
    n_data : int
        Number of data.
    n_sweeps : int, default=100
        Most sweeps with learned temperatures.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.variational import LocalTempering
    >>> tempering = LocalTempering([1.0, 2.0], log_partition=np.zeros(2), n_data=2)
    >>> tempering.advance(np.array([0.0, 2.0]))
    >>> tempering.inverse.round(3)
    array([0.75 , 0.866])
    """

    per_datum = True

    def __init__(
        self, temperatures: ArrayLike, log_partition: ArrayLike, n_data: int, n_sweeps: int = 100
    ):
        super().__init__(temperatures, log_partition, n_sweeps)
        check_count(n_data, "n_data")
        self.inverse = np.full(n_data, self.inverse)
        self.term *= n_data

    def advance(self, expected_log_joint) -> None:
        inverse = np.empty(len(expected_log_joint))
        term = np.empty(len(expected_log_joint))
        for rows in gen_batches(len(inverse), _DATA_AT_ONCE):
            inverse[rows], term[rows] = temperature_posterior(
                expected_log_joint[rows], self.temperatures, self.log_partition
            )
        self.inverse = inverse
        self.term = float(term.sum())


def _check(temperatures: ArrayLike, name: str) -> Array:
    """Return temperatures (n,), or raise ValueError."""
    temperatures = as_float64(temperatures, name, copy=True)
    if temperatures.ndim != 1 or not np.all(np.isfinite(temperatures) & (temperatures >= 1)):
        raise ValueError(f"{name} must be a sequence of finite temperatures of at least 1")
    return temperatures

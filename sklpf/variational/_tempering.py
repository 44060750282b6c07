"""Tempering: the temperatures that training begins with, as one parameter of a model."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Literal

from numpy.typing import ArrayLike

from sklpf._utils.sklearn import BaseEstimator, StrOptions
from sklpf._utils.validation import NOT_NEGATIVE, Instance, Interval, ValidatedParameters, at_least

_KINDS = StrOptions({"annealed", "global", "local"})
_AUTO = StrOptions({"auto"})


@dataclass(eq=False, repr=False)
class Tempering(ValidatedParameters, BaseEstimator):
    """Temperatures before the updates at T = 1 that end the training of a topic model or of a
    factorial mixture (Mandt et al. 2016).

    Parameters
    ----------
    kind : {"annealed", "global", "local"}, default="annealed"
        On a schedule, one temperature that is learned, or one learned for every row or document.
    initial_temperature : "auto" or float, default="auto"
        The highest temperature, above 1. "auto" depends on the model, see there.
    schedule : {"linear", "geometric", "constant"} or array-like of shape (n,), default="linear"
        For "annealed": how the temperature falls to 1, or the temperature of every update.
    n_tempered : "auto" or float, default="auto"
        Passes over the documents of a topic model before T = 1 (3 for "auto"), or sweeps of a
        factorial mixture (an integer, 300 for "auto").
    n_temperatures : int or array-like of shape (M,), default=100
        Size of the geometric ladder over which a learned temperature is distributed; or its
        temperatures, which rise from 1, such as ``temperature_ladder(100, spacing="inverse")`` of
        `sklpf.variational`. `initial_temperature` then has no meaning.
    monotone : "auto" or bool, default="auto"
        For "global": never raise the temperature. "auto" is True for topic models, and False for
        factorial mixtures.
    partition : {"joint", "marginal"}, default="joint"
        For "global" of a topic model: which log C(T). "joint" tempers the tokens' topics as well,
        as the updates do; "marginal" sums them out first (the paper's equation 17).

    Examples
    --------
    >>> from sklpf import FactorialMixture, Tempering
    >>> from sklpf.datasets import make_factorial_shapes
    >>> X, _, _ = make_factorial_shapes(300, random_state=0)
    >>> tempering = Tempering("annealed", initial_temperature=10.0, n_tempered=20)
    >>> model = FactorialMixture(8, tempering=tempering, random_state=0)
    >>> model.set_params(tempering__n_tempered=10).fit(X).temperatures_[:2]
    array([10. ,  9.1])
    """

    kind: Literal["annealed", "global", "local"] = "annealed"
    _: KW_ONLY
    initial_temperature: float | Literal["auto"] = "auto"
    schedule: Literal["linear", "geometric", "constant"] | ArrayLike = "linear"
    n_tempered: float | Literal["auto"] = "auto"
    n_temperatures: int | ArrayLike = 100
    monotone: bool | Literal["auto"] = "auto"
    partition: Literal["joint", "marginal"] = "joint"

    _parameter_constraints = {
        "kind": [_KINDS],
        "initial_temperature": [_AUTO, Interval(Real, 1, None, closed="neither")],
        "schedule": [StrOptions({"linear", "geometric", "constant"}), "array-like"],
        "n_tempered": [_AUTO, NOT_NEGATIVE],
        "n_temperatures": [at_least(2), "array-like"],
        "monotone": [_AUTO, "boolean"],
        "partition": [StrOptions({"joint", "marginal"})],
    }


# the rule for the parameter of a model
TEMPERING = {"tempering": [_KINDS, Instance(Tempering, "an instance of 'Tempering'"), None]}


def tempering_of(model) -> Tempering | None:
    """Return the tempering that a model's parameter stands for, or raise ValueError for its
    parameters.
    """
    tempering: Any = model.tempering
    if tempering is None:
        return None
    if not isinstance(tempering, Tempering):
        return Tempering(tempering)
    tempering._validate_params()
    return tempering

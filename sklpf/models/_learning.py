"""What models share in how they learn: a step works on a copy, and goes on from what the model
shows.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.random import RandomState
from sklearn.utils import check_random_state

from sklpf._utils.parallel import one_blas_thread
from sklpf._utils.sklearn import Parameters
from sklpf.models._validation import check_fitted
from sklpf.training._loop import check_not_diverged

_Method = TypeVar("_Method", bound=Callable[..., Any])


def all_or_nothing(method: _Method) -> _Method:
    """Let a method learn on a copy of the model, which takes the model's place when it has
    succeeded.

    An error or an interruption at any moment so leaves the model as it was, and the generators that
    it draws from. Fitted arrays are replaced by training and never written to; all else that
    training goes on from is one object, ``_training``, which is copied.
    """

    @functools.wraps(method)
    def learning(self, *args, **kwargs):
        model = object.__new__(type(self))
        model.__dict__.update(vars(self))
        if "_training" in vars(self):
            model._training = copy.deepcopy(self._training)
        try:
            # divergence is an error
            with drawing_all_or_nothing(self), one_blas_thread(), np.errstate(all="ignore"):
                method(model, *args, **kwargs)
                learned = vars(model).keys() & getattr(model, "_fitted_shapes", {}).keys()
                check_not_diverged(*(vars(model)[name] for name in learned))
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise ValueError(f"training diverged ({error}): rescale X") from error
        self.__dict__ = model.__dict__
        return self

    return cast(_Method, learning)


@contextlib.contextmanager
def drawing_all_or_nothing(model) -> Iterator[None]:
    """Set the generators of a model back if an error or an interruption ends what draws from them.

    They may be shared with other models, so they stay the same objects.
    """
    generators = [value for value in vars(model).values() if isinstance(value, RandomState)]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    except BaseException:
        for generator, state in zip(generators, states):
            generator.set_state(state)
        raise


def check_goes_on(model) -> None:
    """Check a fitted model before `partial_fit` goes on: what was learned has a size, which
    parameters can't change.

    Raises
    ------
    ValueError
        As `check_fitted`, or if a parameter asks for another size.
    """
    sizes = check_fitted(model)
    for name in sizes.keys() & model.get_params(deep=False).keys():
        wanted = getattr(model, name)
        if wanted is None:
            wanted = model.n_features_in_
        if wanted != sizes[name]:
            raise ValueError(
                f"{name} is {wanted}, but {sizes[name]} were fitted; call fit to begin anew"
            )


def fitted_values(model) -> tuple[Any, ...]:
    """Copies of the model's fitted attributes."""
    return tuple(np.copy(getattr(model, name)) for name in model._fitted_shapes)


def same_values(first: Iterable[Any], second: Iterable[Any]) -> bool:
    """Whether arrays are equal one by one: those that training has shown, and those that the model
    has now, which a user may have replaced.
    """
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@dataclass(eq=False, repr=False, kw_only=True)
class StreamMixin(Parameters):
    """A model with `random_state` and `learning_rate_schedule` that learns minibatch by
    minibatch.
    """

    learning_rate: float = 0.1
    batch_size: int = 10
    random_state: Any = None
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    n_chains: int | None = None

    @property
    def _n_chains(self) -> int:
        """Number of persistent chains."""
        return self.batch_size if self.n_chains is None else self.n_chains

    def _stream_of_numbers(self) -> RandomState:
        """The generator that goes on from call to call of `partial_fit` and `gibbs`."""
        if not hasattr(self, "random_state_"):
            self.random_state_ = check_random_state(self.random_state)
        return self.random_state_

    def _begins_stream(self) -> bool:
        """Whether a call of `partial_fit` is the first; ValueError if it can't be made."""
        self._validate_params()
        if self.learning_rate_schedule == "linear":
            raise ValueError(
                "partial_fit does not know after how many updates a linear schedule should arrive"
                ' at 0: set learning_rate_schedule="constant" and lower learning_rate between the'
                " calls, or call fit"
            )
        first = not hasattr(self, "components_")
        if not first:
            check_goes_on(self)
        return first

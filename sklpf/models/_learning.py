"""Shared parts of learning: a step works on a copy, and goes on from what the model shows."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
from numpy.random import RandomState

from sklpf._utils.parallel import one_blas_thread, task_threads
from sklpf._utils.validation import check_fitted
from sklpf.training import check_not_diverged

_Method = TypeVar("_Method", bound=Callable[..., Any])


def all_or_nothing(method: _Method) -> _Method:
    """Let a method learn on a copy of the model, which takes the model's place when it has
    succeeded, and count the rows for the baseline of its scores.

    An error or an interruption at any moment so leaves the model as it was, and the generators that
    it draws from. Fitted arrays are replaced by training and never written to; all else that
    training goes on from is one object, ``_training``, which is copied.
    """

    @functools.wraps(method)
    def learning(self, X, *args, **kwargs):
        self._validate_params()
        model = object.__new__(type(self))
        model.__dict__.update(vars(self))
        if "_training" in vars(self):
            model._training = copy.deepcopy(self._training)
        try:
            # divergence is an error
            with (
                drawing_all_or_nothing(self),
                one_blas_thread(),
                np.errstate(all="ignore"),
                task_threads(getattr(model, "n_jobs", 1)),
            ):
                method(model, X, *args, **kwargs)
                model._see_rows(X, begins=method.__name__ == "fit")
                learned = vars(model).keys() & getattr(model, "_fitted_shapes", {}).keys()
                check_not_diverged(*(vars(model)[name] for name in learned))
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise ValueError(
                f"training diverged ({error}): rescale X, or lower learning_rate if there is one"
            ) from error
        self.__dict__ = dict(vars(model))  # in 3.13.0 another object's dict can lose values
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
    """Return whether arrays are equal one by one: those that training has shown, and those that the
    model has now, which a user may have replaced.
    """
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))

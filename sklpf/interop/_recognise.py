"""Which class of another library a model is of, and whether it is fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.exceptions import NotFittedError


def recognise(model: Any, library: str, accepted: Mapping[str, str], function: str) -> str:
    """Return which of the accepted classes a model is of.

    Parameters
    ----------
    model : object
    library : str
        Name of its package. The first class of this package that the model's class is or derives from decides: derived
        classes of the library itself are often other models. Where there is none the name of its own class does.
    accepted : dict of str to str
        Names of classes, and how to call them in an error.
    function : str
        Which function was called.

    Raises
    ------
    TypeError
        If it is none of them.
    """
    classes = type(model).__mro__
    name = next((c.__name__ for c in classes if c.__module__.partition(".")[0] == library), classes[0].__name__)
    if name not in accepted:
        given = f"{classes[0].__module__}.{classes[0].__qualname__}"
        raise TypeError(f"{function} takes a fitted {' or '.join(accepted.values())}, got {given}")
    return name


def check_fitted(fitted: bool, function: str, how: str) -> None:
    """Raise NotFittedError, which is a ValueError, unless a model is fitted."""
    if not fitted:
        raise NotFittedError(f"{function} needs a fitted model, and this one has learned nothing yet: {how}")

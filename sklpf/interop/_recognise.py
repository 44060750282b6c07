"""Which class of another library a model is of, whether it is fitted, and what its words are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sklearn.exceptions import NotFittedError

from sklpf._utils.vocabulary import in_order


def recognise(model: Any, library: str, accepted: Mapping[str, str], function: str) -> str:
    """Return which of the accepted classes a model is of.

    Parameters
    ----------
    model : object
    library : str
        Name of its package. The first class of this package that the model's class is or derives
        from decides: derived classes of the library itself are often other models. Where there is
        none the name of its own class does.
    accepted : dict of str to str
        Names of classes, and how to call them in an error.
    function : str
        Name of the function that was called, for errors.

    Raises
    ------
    TypeError
        If it is none of them.
    """
    classes = type(model).__mro__
    name = next(
        (c.__name__ for c in classes if c.__module__.partition(".")[0] == library),
        classes[0].__name__,
    )
    if name not in accepted:
        given = f"{classes[0].__module__}.{classes[0].__qualname__}"
        steps = (
            "; take the last step, pipeline[-1], and transform rows by the others"
            if name == "Pipeline"
            else ""
        )
        raise TypeError(
            f"{function} takes a fitted {' or '.join(accepted.values())}, got {given}{steps}"
        )
    return name


def check_learned(fitted: bool, function: str, how: str) -> None:
    """Raise NotFittedError, which is a ValueError, unless a model is fitted."""
    if not fitted:
        raise NotFittedError(
            f"{function} needs a fitted model, and this one has learned nothing yet: {how}"
        )


def columns(
    words: Sequence[Any], vocabulary: Iterable[str] | None, function: str, own: str
) -> list[int]:
    """Return which of a model's words each column of X is of.

    Parameters
    ----------
    words : sequence
        Words of the model, in its order.
    vocabulary : iterable of str, dict of str to int or None
        Words of X, in order or with their columns.
    function : str
        Name of the function that was called, for errors.
    own : str
        What to give where the columns are in the model's order.

    Raises
    ------
    TypeError
        If there is no vocabulary, or it has no order.
    ValueError
        If X has other words than the model, or one twice.
    """
    if vocabulary is None:
        raise TypeError(
            f"{function} needs vocabulary, the words of the columns of X, such as the vectorizer's"
            f" get_feature_names_out(), or {own} where they are in the model's own order"
        )
    places = {word: i for i, word in enumerate(words)}
    wanted = in_order(vocabulary, "vocabulary")
    unknown = [word for word in wanted if word not in places]
    missing = places.keys() - wanted
    if unknown or missing or len(wanted) != len(words):
        raise ValueError(
            f"{function} needs a vocabulary of the model's words, each once: of {len(wanted)} given"
            f" {len(unknown)} are none of its words{_example(unknown)}, and {len(missing)} of its"
            f" {len(words)} are missing{_example(missing)}; make X with the model's words"
        )
    return [places[word] for word in wanted]


def _example(words: Iterable[str]) -> str:
    return "".join(f" ({word!r})" for word in sorted(words, key=str)[:1])

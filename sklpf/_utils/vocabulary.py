"""Words in the order of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any


def in_order(words: Iterable[Any], name: str) -> list[Any]:
    """Return words as a list, those of a dict of word to column (as `CountVectorizer.vocabulary_`)
    by their columns.

    Parameters
    ----------
    words : iterable
    name : str
        Name of the parameter, for errors.

    Raises
    ------
    TypeError
        If they are a set, which has no order, one str, or no words.
    ValueError
        If the columns of a dict are not 0, 1, ..., each once.
    """
    if isinstance(words, (Set, str)) or not isinstance(words, Iterable):
        raise TypeError(
            f"{name} must be words in the order of the columns of X, such as the vectorizer's "
            f"get_feature_names_out(), got {type(words).__name__}"
        )
    if not isinstance(words, Mapping):
        return list(words)
    by_column = {column: word for word, column in words.items()}
    if by_column.keys() != set(range(len(words))):
        raise ValueError(
            f"{name} must have the columns 0 to {len(words) - 1}, each once, where it is a dict of"
            " word to column, such as the vectorizer's vocabulary_: else give words in the order"
            " of the columns of X"
        )
    return [by_column[column] for column in range(len(words))]

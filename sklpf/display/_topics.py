"""TopicsDisplay: the first words of each topic as bars."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from sklpf._utils.validation import check_count, check_option, in_order
from sklpf.display._drawing import Display, fitted_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class TopicsDisplay(Display):
    """The first words of each topic, with their probabilities as bars.

    Parameters
    ----------
    words : array-like of str of shape (n_topics, n_words)
        The words of every topic, the first one on top.
    probabilities : array-like of shape (n_topics, n_words)
        Probability of each of these words in its topic.
    names : array-like of str of shape (n_topics,) or None, default=None
        Titles; None counts the topics from 0.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, those of all topics, and their figure, once drawn.

    Examples
    --------
    >>> from sklpf import LatentDirichletAllocation
    >>> from sklpf.datasets import make_bars_corpus
    >>> from sklpf.display import TopicsDisplay
    >>> counts, _, _ = make_bars_corpus(100, random_state=0)
    >>> lda = LatentDirichletAllocation(4, random_state=0).fit(counts)
    >>> display = TopicsDisplay.from_estimator(lda, n_words=5)
    >>> display.words.shape
    (4, 5)
    """

    words: Any
    probabilities: Any
    _: KW_ONLY
    names: Any = None

    _shapes = {
        "probabilities": "n_topics n_words",
    }

    @classmethod
    def from_estimator(
        cls,
        estimator,
        feature_names=None,
        *,
        n_words: int = 10,
        topics=None,
        order: Literal["probability", "lift"] = "probability",
        ax: Axes | None = None,
        **options,
    ) -> Self:
        """Draw the topics of a fitted topic model.

        Parameters
        ----------
        estimator : model
            `LatentDirichletAllocation`, or another with positive ``components_`` of shape
            (n_topics, n_features), or a pipeline that ends in one.
        feature_names : array-like of str (n_features,), dict of str to int or None, default=None
            The words (a vectorizer's ``get_feature_names_out()`` or ``vocabulary_``); None takes
            the model's ``feature_names_in_``, or x0, x1, …
        n_words : int, default=10
            Number of words of each topic.
        topics : array-like of int or None, default=None
            Topics to draw, in this order; None draws all.
        order : {"probability", "lift"}, default="probability"
            The words that come first: those that the topic makes most likely, or those that it
            makes likely and that are rare in the others: the largest p log(p / geometric mean of p
            over all topics) (Blei & Lafferty 2009).
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.
        **options
            As in `plot`.

        Returns
        -------
        display : TopicsDisplay

        Raises
        ------
        ValueError
            If the model has no topics, or an argument does not fit.
        """
        model = fitted_model(estimator)
        components = np.asarray(getattr(model, "components_", np.empty(0)), dtype=float)
        if components.ndim != 2 or not np.all(components > 0):
            raise ValueError(
                f"{cls.__name__} draws positive components_ of shape (n_topics, n_features), and a"
                f" {type(model).__name__} has none: LatentDirichletAllocation has;"
                " ComponentsDisplay draws others"
            )
        names = _feature_names(model, feature_names, components.shape[1])
        p = components / components.sum(axis=1, keepdims=True)
        check_count(n_words, "n_words")
        first = np.argsort(-_ranked(p, order), axis=1, kind="stable")[:, :n_words]
        topics = np.arange(len(p)) if topics is None else _check_topics(topics, len(p))
        chosen = first[topics]
        titles = [f"topic {k}" for k in topics]
        return cls(names[chosen], np.take_along_axis(p[topics], chosen, axis=1), names=titles).plot(
            ax, **options
        )

    def plot(self, ax: Axes | None = None, *, n_columns: int | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into a panel for each topic, or as many. None makes a figure.
        n_columns : int or None, default=None
            Panels side by side; None is at most 5, or what `ax` has room for.

        Returns
        -------
        self
        """
        self._check_arrays()
        words = np.asarray(self.words)
        p = self.probabilities
        titles = [f"topic {k}" for k in range(len(p))] if self.names is None else self.names
        for name, given, wanted in ("words", words, p.shape), ("names", titles, p.shape[:1]):
            if np.shape(given) != wanted:
                raise ValueError(f"{name} must have shape {wanted}, got {np.shape(given)}")
        size = 2.4, 0.9 + 0.2 * words.shape[1]
        room: dict[str, Any] = {"n_columns": n_columns, "most": 5, "narrowest": 1.0}
        for k, panel in enumerate(self._panels(ax, len(words), size, **room, sharex=True)):
            panel.barh(np.arange(words.shape[1]), p[k], alpha=0.4)
            panel.set_yticks([])
            for line, word in enumerate(words[k]):  # on its bar, cut where the panel ends
                place = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
                style = {"fontsize": "small", "parse_math": False, "clip_on": True}
                panel.annotate(word, (0, line), **place, **style)
            panel.locator_params(axis="x", nbins=3)
            panel.invert_yaxis()
            panel.set_title(titles[k], fontsize="medium")
            panel.tick_params(labelbottom=True)
            panel.set_xlabel("probability", fontsize="small")
        return self


def _feature_names(model, given, n):
    names = getattr(model, "feature_names_in_", None) if given is None else given
    names = np.array(
        [f"x{i}" for i in range(n)] if names is None else in_order(names, "feature_names"),
        dtype=object,
    )
    if names.shape != (n,):
        raise ValueError(
            f"feature_names must be {n} words, one for each feature of the model, got {len(names)}"
        )
    return names


def _ranked(p, order):
    check_option(order, ("probability", "lift"), "order")
    if order == "probability":
        return p
    return p * (np.log(p) - np.log(p).mean(axis=0))


def _check_topics(topics, n):
    numbers = np.atleast_1d(topics)
    whole = numbers.dtype.kind in "iu" and numbers.ndim == 1 and len(numbers)
    if not whole or not np.isin(numbers, np.arange(n)).all():
        raise ValueError(
            f"topics must be numbers of topics from 0 to {n - 1}, got {numbers.tolist()!r:.80}"
        )
    return numbers

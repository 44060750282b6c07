"""from_sklearn: RBMs and topic models of scikit-learn."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from sklpf.interop._dirichlet import learned_topics
from sklpf.interop._recognise import check_learned, recognise
from sklpf.models import BernoulliRBM, LatentDirichletAllocation

_ACCEPTED = {
    "BernoulliRBM": "sklearn.neural_network.BernoulliRBM",
    "LatentDirichletAllocation": "sklearn.decomposition.LatentDirichletAllocation",
}
# what training left, as far as the model has it
_PROGRESS = ("n_iter_", "n_batch_iter_", "random_state_", "feature_names_in_", "h_samples_")


def from_sklearn(model: Any, **parameters: Any) -> BernoulliRBM | LatentDirichletAllocation:
    """Return the model of this library with what a model of scikit-learn has learned.

    Parameters
    ----------
    model : fitted BernoulliRBM or LatentDirichletAllocation of scikit-learn
        It is not changed. Of a pipeline take the last step, and transform rows by the others.
    **parameters
        Parameters of `BernoulliRBM.from_parameters` (such as `visible_mean`, the means of the
        training data, from which log Z is found sooner) or `LatentDirichletAllocation.from_topics`;
        in place of the model's own.

    Returns
    -------
    fitted : BernoulliRBM or LatentDirichletAllocation
        A fitted model with the same parameters. `transform` gives its numbers, and `partial_fit`
        goes on where it stopped (with the chains of an RBM, unless another `batch_size` is given).

    Raises
    ------
    TypeError
        If it is a model of another class, or n_components is given.
    NotFittedError
        If it is not fitted.
    ValueError
        If a value is not finite or a shape does not fit.

    Examples
    --------
    >>> from sklearn.decomposition import LatentDirichletAllocation
    >>> from sklpf.datasets import make_bars_corpus
    >>> from sklpf.interop import from_sklearn
    >>> X, _, _ = make_bars_corpus(60, size=2, n_tokens=10, random_state=0)
    >>> theirs = LatentDirichletAllocation(4, random_state=0).fit(X[:50])
    >>> ours = from_sklearn(theirs, random_state=0)
    >>> bool(abs(ours.transform(X) - theirs.transform(X)).max() < 1e-6)
    True
    >>> -14 < ours.score(X[50:]) < -11  # nats per document
    True
    """
    name = recognise(model, "sklearn", _ACCEPTED, "from_sklearn")
    check_learned(hasattr(model, "components_"), "from_sklearn", "call fit first")
    if "n_components" in parameters:
        raise TypeError(
            "from_sklearn takes no n_components: the model's weights have that number, and another"
            " one needs a fit of its own"
        )
    make = _rbm if name == "BernoulliRBM" else _lda
    fitted = make(model, parameters)
    for attribute in _PROGRESS:
        if hasattr(model, attribute) and _fits(attribute, model, fitted, parameters):
            setattr(fitted, attribute, copy.deepcopy(getattr(model, attribute)))
    return fitted


def _fits(attribute, model, fitted, parameters) -> bool:
    """Whether the parameters that were given leave a use for what training left: chains, and the
    state of a seed.
    """
    if attribute == "h_samples_":
        return np.shape(model.h_samples_) == fitted.h_samples_.shape
    return attribute != "random_state_" or "random_state" not in parameters


def _rbm(model, parameters) -> BernoulliRBM:
    arrays = model.components_, model.intercept_visible_, model.intercept_hidden_
    return BernoulliRBM.from_parameters(*arrays, **{**_settings(model, BernoulliRBM), **parameters})


def _lda(model, parameters) -> LatentDirichletAllocation:
    priors = {
        "doc_topic_prior": model.doc_topic_prior_,
        "topic_word_prior": model.topic_word_prior_,
    }
    settings = {**_settings(model, LatentDirichletAllocation), **priors, **parameters}
    return learned_topics(model.components_, settings)


def _settings(model, ours) -> dict[str, Any]:
    """The parameters that both classes have; the number of components follows from what was
    learned.
    """
    names = ours._parameter_constraints.keys() - {"n_components"}
    return {
        name: copy.deepcopy(value)
        for name, value in model.get_params(deep=False).items()
        if name in names
    }

"""
Does a topic model find the topics that are there?
==================================================

Latent Dirichlet allocation is fitted to documents with known topics, the rows
and columns of a square of words, and to real text: news of the Associated Press
if the reference data are there, else the docstrings of scikit-learn. Models are
compared by the likelihood of whole held-out documents.
"""

# %%
# Bars
# ----
# Every topic is one bar. A model has found them if each of its topics is close
# to a true one. Of several starts the one with the best bound is kept.

import inspect

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.discovery import all_estimators, all_functions

from sklpf import LatentDirichletAllocation, compare
from sklpf.datasets import make_bars_corpus
from sklpf.display import ComponentsDisplay, TopicsDisplay
from sklpf.testing import find_shared_data

size = 5
X, true_topics, _ = make_bars_corpus(
    1000, size=size, n_tokens=100, doc_topic_prior=0.3, random_state=0
)
train, test = X[:900], X[900:]


def fit(n_topics, seed):
    parameters = {
        "doc_topic_prior": 0.3,
        "learning_method": "online",
        "max_iter": 20,
    }
    return LatentDirichletAllocation(
        n_topics, **parameters, random_state=seed
    ).fit(train)


models = [fit(2 * size, seed) for seed in range(5)]
model = max(models, key=lambda model: model.elbo_)
topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
distances = np.abs(true_topics[:, np.newaxis] - topics).sum(axis=2) / 2
true, found = linear_sum_assignment(distances)
print(
    "total variation between true and found topics: at most"
    f" {distances[true, found].max():.3f}"
)

# %%
# How many topics? Compare held-out likelihoods.

print("| topics | log-likelihood of a held-out document (100 words) |")
print("|---|---|")
fits = {5: fit(5, 0), 10: model, 20: fit(20, 0)}
for n, fitted in fits.items():
    interval = fitted.score_interval(test)
    print(
        f"| {n} | {interval.mean:.2f} ({interval.combined[0]:.2f} to"
        f" {interval.combined[1]:.2f}) |"
    )
gain = compare(fits[10], fits[5], test)
print(
    f"10 topics are better than 5 by {gain.combined[0]:.2f} to"
    f" {gain.combined[1]:.2f} nats a"
    " document"
)

figure, axes = plt.subplots(2, 1, figsize=(5, 4.6), layout="constrained")
for axis, name, bars in zip(
    axes, ("true", "found"), (true_topics[true], topics[found])
):
    ComponentsDisplay(bars.reshape(-1, size, size)).plot(
        axis, n_columns=size, scale="each"
    )
    axis.set_title(name)
figure.savefig("plot_lda_topics.png", dpi=110)

# %%
# Text
# ----


def news():
    """Word counts of 2,000 news of the Associated Press, and the words."""
    with np.load(find_shared_data("text/ap.npz"), allow_pickle=False) as data:
        arrays = tuple(
            data[f"train_{array}"] for array in ("data", "indices", "indptr")
        )
        words = data["vocabulary"]
    return sp.csr_matrix(
        arrays, shape=(len(arrays[2]) - 1, len(words)), dtype=np.float32
    ), words


def documentation():
    """Word counts of what scikit-learn says about its classes, functions
    and methods, and the words.
    """
    members = [member for _, member in all_estimators() + all_functions()]
    members += [
        method
        for member in members
        if inspect.isclass(member)
        for method in vars(member).values()
    ]
    texts = {inspect.getdoc(member) for member in members if callable(member)}
    texts = sorted(text for text in texts if text and len(text) > 400)
    vectorizer = CountVectorizer(
        token_pattern=r"[a-z]{4,}", stop_words="english", min_df=5, max_df=0.25
    )
    return vectorizer.fit_transform(texts).astype(
        np.float32
    ), vectorizer.get_feature_names_out()


X, words = news() if find_shared_data("text/ap.npz") else documentation()
print(
    f"{X.shape[0]} documents of {X.sum() / X.shape[0]:.0f} words on average,"
    f" {X.shape[1]} different"
    " ones"
)
model = LatentDirichletAllocation(
    20,
    doc_topic_prior=0.1,
    topic_word_prior=0.05,
    learning_method="online",
    max_iter=10,
    random_state=0,
    n_jobs=2,
).fit(X)

# %%
# The ten largest topics, by words that are likely in the topic and rare
# elsewhere.

share = model.transform(X).mean(axis=0)
largest = np.argsort(-share)[:10]
display = TopicsDisplay.from_estimator(
    model, words, n_words=8, topics=largest, order="lift"
)
display.figure_.savefig("plot_lda_topics_words.png", dpi=110)
for k, first in zip(largest, display.words):
    print(f"{share[k]:5.1%}  {' '.join(first)}")

# %%
# Of bars it finds all ten, up to a tenth of their words; ten topics explain
# held-out documents better than five, and as well as twenty. Of docstrings the
# topics are scikit-learn's chapters.

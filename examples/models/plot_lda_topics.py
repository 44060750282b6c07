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
settings = {"size": size, "n_tokens": 100, "doc_topic_prior": 0.3}
X, true_topics, _ = make_bars_corpus(1000, **settings, random_state=0)
train, test = X[:900], X[900:]


def fit(n_topics, seed):
    parameters = {"doc_topic_prior": 0.3, "max_iter": 20}
    parameters |= {"learning_method": "online", "random_state": seed}
    return LatentDirichletAllocation(n_topics, **parameters).fit(train)


models = [fit(2 * size, seed) for seed in range(5)]
model = max(models, key=lambda model: model.elbo_)
topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
distances = np.abs(true_topics[:, np.newaxis] - topics).sum(axis=2) / 2
true, found = linear_sum_assignment(distances)
apart = f"at most {distances[true, found].max():.3f}"
print(f"total variation between true and found topics: {apart}")

# %%
# How many topics? Compare held-out likelihoods.

print("| topics | log-likelihood of a held-out document (100 words) |")
print("|---|---|")
fits = {5: fit(5, 0), 10: model, 20: fit(20, 0)}
for n, fitted in fits.items():
    interval = fitted.score_interval(test)
    low, high = interval.combined
    print(f"| {n} | {interval.mean:.2f} ({low:.2f} to {high:.2f}) |")
low, high = compare(fits[10], fits[5], test).combined
gain = f"{low:.2f} to {high:.2f} nats a document"
print(f"10 topics are better than 5 by {gain}")

figure, axes = plt.subplots(2, 1, figsize=(5, 4.6), layout="constrained")
all_bars = {"true": true_topics[true], "found": topics[found]}
for axis, (name, bars) in zip(axes, all_bars.items()):
    display = ComponentsDisplay(bars.reshape(-1, size, size))
    display.plot(axis, n_columns=size, scale="each")
    axis.set_title(name)
figure.savefig("plot_lda_topics.png", dpi=110)

# %%
# Text
# ----


def news():
    """Word counts of 2,000 news of the Associated Press, and the words."""
    with np.load(find_shared_data("text/ap.npz"), allow_pickle=False) as data:
        names = ("data", "indices", "indptr")
        arrays = tuple(data[f"train_{name}"] for name in names)
        words = data["vocabulary"]
    shape = (len(arrays[2]) - 1, len(words))
    return sp.csr_matrix(arrays, shape=shape, dtype=np.float32), words


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
    pattern = {"token_pattern": r"[a-z]{4,}", "stop_words": "english"}
    vectorizer = CountVectorizer(min_df=5, max_df=0.25, **pattern)
    counts = vectorizer.fit_transform(texts).astype(np.float32)
    return counts, vectorizer.get_feature_names_out()


X, words = news() if find_shared_data("text/ap.npz") else documentation()
length = f"{X.sum() / X.shape[0]:.0f} words on average"
print(f"{X.shape[0]} documents of {length}, {X.shape[1]} different ones")
settings = {"doc_topic_prior": 0.1, "topic_word_prior": 0.05, "max_iter": 10}
settings |= {"learning_method": "online", "random_state": 0, "n_jobs": 2}
model = LatentDirichletAllocation(20, **settings).fit(X)

# %%
# The ten largest topics, by words that are likely in the topic and rare
# elsewhere.

share = model.transform(X).mean(axis=0)
largest = np.argsort(-share)[:10]
looks = {"n_words": 8, "topics": largest, "order": "lift"}
display = TopicsDisplay.from_estimator(model, words, **looks)
display.figure_.savefig("plot_lda_topics_words.png", dpi=110)
for k, first in zip(largest, display.words):
    print(f"{share[k]:5.1%}  {' '.join(first)}")

# %%
# Of bars it finds all ten, up to a tenth of their words; ten topics explain
# held-out documents better than five, and as well as twenty. Of docstrings the
# topics are scikit-learn's chapters.

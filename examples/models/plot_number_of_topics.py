"""
How many topics do documents have?
==================================

Documents are generated from 8 topics and from words that all documents share,
which are a ninth topic. The held-out likelihood of a document, which `score`
estimates, rises steeply up to 9 topics and is flat beyond 10, which cross-
validation selects here. "The smallest number that loses less than a nat" is 10
as well; that rule is a choice. If all topics had the same prior, more would be
better. scikit-learn's perplexity is a bound that depends on the number of
documents.
"""

# %%
# A corpus with background words
# ------------------------------
# Every topic is a bar in a square of 4 × 4 words. Ten further words occur in
# all documents, in some more than in others: a ninth topic.

import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation as Reference
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from sklpf import LatentDirichletAllocation, LeftToRight, compare
from sklpf.datasets import make_bars_corpus

n_train, n_test = 400, 120
corpus = {"size": 4, "n_tokens": 60, "doc_topic_prior": 0.2, "random_state": 0}
bars, _, _ = make_bars_corpus(n_train + n_test, **corpus)
rng = np.random.default_rng(0)
shared = np.arange(1, 11) / 55
background = rng.multinomial(rng.integers(0, 80, n_train + n_test), shared)
X = sp.hstack([bars, background], format="csr")
train, test = X[:n_train], X[n_train:]

# %%
# A search that is cheap
# ----------------------
# A grid search ranks means over hundreds of documents. The spread over
# documents is far larger than the error of a single likelihood, so few
# particles are enough: here 2 filters of 10. The topics are found by Gibbs
# sampling. A single chain may merge two topics and split another, so the best
# of four is taken. Priors are learned along with the topics.

numbers = [4, 8, 9, 10, 13]
cheap = LeftToRight(n_particles=10, n_filters=2, n_sweeps=2)
settings = {"learning_method": "gibbs", "max_iter": 60, "n_init": 4}
settings |= {"doc_topic_prior": 0.2, "learn_doc_topic_prior": True}
settings |= {"topic_word_prior": 0.1, "random_state": 0}
model = LatentDirichletAllocation(partition_estimator=cheap, **settings)
with warnings.catch_warnings():
    # 60 passes are few, and so are the filters.
    warnings.simplefilter("ignore", ConvergenceWarning)
    search = GridSearchCV(model, {"n_components": numbers}, cv=2, refit=False)
    scores = search.fit(train).cv_results_["mean_test_score"]
    fits = {
        n: clone(model).set_params(n_components=n).fit(train) for n in numbers
    }
best = numbers[np.argmax(scores)]
print(f"best by cross-validation: {best} topics")

# %%
# Intervals, and differences
# --------------------------
# With few filters the likelihoods have errors, which the intervals include. So
# take more filters once the grid search is done. The interval of a mean is
# wide, since documents differ. `compare` pairs the models document by document,
# and so detects smaller differences. Additional topics lose little, as several
# then share the words of one: of numbers that are about as good take the
# smallest.

precise = LeftToRight(n_particles=40, n_filters=5, n_sweeps=2)
for fitted in fits.values():
    fitted.set_params(partition_estimator=precise)
intervals = {n: fits[n].score_interval(test) for n in numbers}
gains = {n: compare(fits[n], fits[best], test) for n in numbers if n != best}
needed = min([best] + [n for n in gains if gains[n].combined[0] > -1])
print(f"the fewest topics that lose less than a nat a document: {needed}")


def shown(interval):
    if interval is None:
        return ""
    low, high = interval.combined
    return f"{interval.mean:.2f} ({low:.2f} to {high:.2f})"


print("| topics | nats a document | difference to the best |")
print("|---|---|---|")
for n in numbers:
    print(f"| {n} | {shown(intervals[n])} | {shown(gains.get(n))} |")

# %%
# Why the prior matters
# ---------------------
# Documents have more of the shared words than of any topic. Take the true
# topics, with the same prior for all. A second copy of the shared topic makes
# documents more likely, since with two copies twice as many shared words are
# expected. A larger prior of one copy has the same effect, and is what learning
# finds. A second copy of another topic makes documents less likely. So if all
# priors are the same, the best number is not the number of different topics, in
# any search.

topics = np.full((9, X.shape[1]), 1e-5)
topics[:8, :16] += make_bars_corpus(1, **corpus)[1]
topics[8, 16:] += shared
topics /= topics.sum(axis=1, keepdims=True)
from_topics = LatentDirichletAllocation.from_topics
settings = {"partition_estimator": precise, "random_state": 0}
true = from_topics(topics, 0.2, **settings)
others = {
    "a second copy of the shared topic": (np.vstack([topics, topics[8:]]), 0.2),
    "its prior 0.8 instead of 0.2": (topics, [0.2] * 8 + [0.8]),
    "a second copy of a bar": (np.vstack([topics, topics[:1]]), 0.2),
}
for name, parameters in others.items():
    gain = compare(from_topics(*parameters, **settings), true, test)
    low, high = gain.combined
    interval = f"({low:+.2f} to {high:+.2f})"
    print(f"{name}: {gain.mean:+.2f} nats a document {interval}")
low, *_, high, one = np.sort(fits[9].doc_topic_prior_)
others_learned = f"{low:.2f} to {high:.2f} for the others"
print(f"learned with 9 topics: {one:.2f} for one topic, {others_learned}")

# %%
# scikit-learn's perplexity
# -------------------------
# Its bound includes a term for the topics themselves. Every call includes this
# term as a whole, and divides by the number of its tokens: fewer test documents
# give a larger perplexity. Ours comes from likelihoods, which depend on one
# document each.

subsets = [2, 10, 50, 120]
settings = {"doc_topic_prior": 0.2, "topic_word_prior": 0.1, "random_state": 0}
references = {n: Reference(n, **settings).fit(train) for n in (9, 16)}
bounds = {
    n: [references[n].perplexity(test[:size]) for size in subsets]
    for n in references
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    ours = [fits[9].perplexity(test[:size]) for size in subsets]
head = "| test documents | scikit-learn, 9 topics | scikit-learn, 16 topics"
print(head, "| ours, 9 topics |")
print("|---|---|---|---|")
for i, n in enumerate(subsets):
    print(f"| {n} | {bounds[9][i]:.4g} | {bounds[16][i]:.4g} | {ours[i]:.4g} |")

axes = [plt.subplots(figsize=(5, 3.6), layout="constrained")[1] for _ in "123"]
left, middle, right = axes
means = np.array([intervals[n].mean for n in numbers])
errors = np.abs(np.array([intervals[n].combined for n in numbers]).T - means)
left.errorbar(numbers, means, errors, fmt="o-", capsize=3)
left.set(xlabel="topics", ylabel="nats a document", title="held-out likelihood")
others = [n for n in numbers if n != best]
means = np.array([gains[n].mean for n in others])
errors = np.abs(np.array([gains[n].combined for n in others]).T - means)
middle.errorbar(others, means, errors, fmt="o", capsize=3)
middle.axhline(0, color="grey", linewidth=0.8)
middle.set(xlabel="topics", ylabel="nats a document")
middle.set_title(f"difference to {best} topics, paired")
for n, style in ((9, "o-"), (16, "s-")):
    right.plot(subsets, bounds[n], style, label=f"scikit-learn, {n} topics")
right.plot(subsets, ours, "^-", label="from likelihoods, 9 topics")
right.set(xscale="log", yscale="log", xlabel="test documents")
right.set(ylabel="perplexity", title="perplexity")
right.legend()
for axis, name in zip(axes, ("likelihood", "differences", "perplexity")):
    axis.figure.savefig(f"number_of_topics_{name}.png", dpi=110)

# %%
# So these documents of nine topics are likeliest with ten, and more topics gain
# nothing.

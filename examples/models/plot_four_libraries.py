"""
Which library fits the better topics?
=====================================

scikit-learn, gensim, tomotopy and this library all fit latent Dirichlet
allocation, and each prints a perplexity. These are four different quantities.
`sklpf.interop` imports the models of the others. They are then compared by the
log-likelihood of the same held-out documents, which depends on a document and
the model alone.

gensim and tomotopy are optional: this page shows those that are installed.
"""

# %%
# One corpus, and who fits it
# ---------------------------
# Documents about bars, whose topics are the rows and columns of a square of 25
# words, with a few other words.

import importlib.util
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation as TheirLDA

from sklpf import LatentDirichletAllocation, compare
from sklpf.datasets import make_bars_corpus
from sklpf.interop import from_gensim, from_sklearn, from_tomotopy

alpha, eta = 0.2, 0.1
settings = {"n_tokens": 60, "doc_topic_prior": alpha, "background": 0.05}
X, true_topics, _ = make_bars_corpus(550, **settings, random_state=0)
train, test = X[:500], X[500:]
n_topics = len(true_topics)
options = {"learning_method": "online", "max_iter": 20, "random_state": 0}
options |= {"doc_topic_prior": alpha, "topic_word_prior": eta}
words = [f"word {i}" for i in range(X.shape[1])]


def texts(X):
    """The words of every document, each as often as it occurs."""
    return [
        [words[i] for i in np.repeat(row.indices, row.data.astype(int))]
        for row in X
    ]


# %%
# Every function below returns the imported model, and the perplexity of some
# documents that the library itself gives.


def fit_sklearn():
    lda = TheirLDA(n_topics, **options).fit(train)
    return from_sklearn(lda, random_state=0), lda.perplexity


def fit_gensim():
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    def corpus(X):
        return list(Sparse2Corpus(X.T))

    names = dict(enumerate(words))
    options = {"alpha": alpha, "eta": eta, "passes": 20, "chunksize": 128}
    options |= {"id2word": names, "random_state": 0}
    lda = LdaModel(corpus(train), n_topics, **options)

    def perplexity(X):
        return 2 ** -lda.log_perplexity(corpus(X))

    return from_gensim(lda, vocabulary=words, random_state=0), perplexity


def fit_tomotopy():
    from tomotopy import LDAModel

    lda = LDAModel(k=n_topics, alpha=alpha, eta=eta, seed=0)
    for document in texts(train):
        lda.add_doc(document)
    lda.train(300, workers=1)

    def perplexity(X):
        documents = [lda.make_doc(document) for document in texts(X)]
        return np.exp(-np.sum(lda.infer(documents)[1]) / X.sum())

    return from_tomotopy(lda, vocabulary=words, random_state=0), perplexity


def fit_sklpf():
    lda = LatentDirichletAllocation(n_topics, **options).fit(train)
    return lda, lda.perplexity


fits = {
    "sklpf": fit_sklpf,
    "scikit-learn": fit_sklearn,
    "gensim": fit_gensim,
    "tomotopy": fit_tomotopy,
}
present = [
    name
    for name in fits
    if name in ("sklpf", "scikit-learn") or importlib.util.find_spec(name)
]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the other libraries' own
    fitted = {name: fits[name]() for name in present}
    own = {
        name: [float(perplexity(test)), float(perplexity(test[:5]))]
        for name, (_, perplexity) in fitted.items()
    }
models = {name: model for name, (model, _) in fitted.items()}

# %%
# What each library says
# ----------------------
# scikit-learn and gensim add the topics' part of a bound to that of the
# documents. So the fewer documents there are, the larger is their figure.
# gensim also raises 2 to the power of nats, as in its log. tomotopy's figure is
# a likelihood of the words with one draw of their topics. Only the
# log-likelihood of a document does not depend on the other documents.

head = "| library | perplexity by itself, 50 documents | the first 5 of them"
print(head, "| by the log-likelihood, 50 | 5 |")
print("|---|---|---|---|---|")
for name, (all_, few) in own.items():
    values = models[name].score_samples(test)
    one, other = (np.exp(-values[:n].sum() / test[:n].sum()) for n in (50, 5))
    print(f"| {name} | {all_:.1f} | {few:.1f} | {one:.1f} | {other:.1f} |")

# %%
# On one scale
# ------------
# Documents are paired, so the differences have a much smaller error than the
# scores. The true topics are compared too: no model can be better than these by
# more than chance.

from_topics = LatentDirichletAllocation.from_topics
truth = from_topics(true_topics, alpha, random_state=0)
print(compare({**models, "the truth": truth}, test))

_, right = plt.subplots(figsize=(5, 3), layout="constrained")
_, left = plt.subplots(figsize=(5, 3), layout="constrained")
places = np.arange(len(own))
of_all, of_few = np.array(list(own.values())).T
left.plot(of_all, places, "o", label="50 documents")
left.plot(of_few, places, "s", mfc="none", label="the first 5 of them")
left.set(xscale="log", xlabel="perplexity, by the library itself")
left.set_title("What each library says")
left.set_xticks([10, 20, 50, 100, 200], labels=["10", "20", "50", "100", "200"])
left.minorticks_off()
left.legend(loc="upper right")
for place, model in zip(places, models.values()):
    difference = compare(model, truth, test)
    right.plot(difference.combined, [place, place], "C0-", lw=2)
    right.plot(difference.mean, place, "C0o")
right.axvline(0, color="0.5", ls="--")
of_true = "log-likelihood less that of the true topics"
right.set_xlabel(f"{of_true}\n(nats a document)")
right.set_title("The same 50 documents, one scale")
for axis, name in ((left, "own"), (right, "one_scale")):
    axis.set_yticks(places, own)
    axis.set_ylim(len(own) - 0.5, -0.5)
    axis.figure.savefig(f"four_libraries_{name}.png", dpi=110)

# %%
# The topics
# ----------
# One row for each library, below the true topics.

n_rows = len(own) + 1
looks = {"figsize": (n_topics, 1.1 * n_rows), "layout": "constrained"}
figure, axes = plt.subplots(n_rows, n_topics, squeeze=False, **looks)
rows = {
    "truth": true_topics,
    **{name: models[name].components_ for name in own},
}
for row, (name, topics) in zip(axes, rows.items()):
    topics = topics / topics.sum(axis=1, keepdims=True)
    apart = np.abs(true_topics[:, np.newaxis] - topics).sum(axis=2) / 2
    for axis, k in zip(row, linear_sum_assignment(apart)[1]):
        axis.imshow(topics[k].reshape(5, 5), cmap="gray_r", vmin=0, vmax=0.2)
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(name)
figure.savefig("four_libraries_topics.png", dpi=80)

# %%
# By the same likelihood all four are within 0.6 nats a document of the topics
# that made the documents. gensim and tomotopy are ahead by 0.3 to 0.4, and the
# perplexities that libraries print say nothing about it.

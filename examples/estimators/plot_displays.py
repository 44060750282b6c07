"""
What does each Display show?
============================

`sklpf.display` draws what estimators find and what models learn, in the manner
of scikit-learn's Displays: a class method takes the object to draw, and
optionally ``ax=``. The display that it returns keeps the arrays, ``axes_`` and
``figure_``. This page shows them for an RBM of scikit-learn's digits and for a
topic model.
"""

# %%
# What a model was worth while it trained
# ---------------------------------------
# With ``early_stopping`` an RBM estimates log Z after every epoch, and so the
# log-likelihood of held-out rows. For other models the same display shows
# ``loss_curve_`` as a likelihood, or ``elbo_curve_``.

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from sklpf import (
    AIS,
    RTS,
    BernoulliRBM,
    LatentDirichletAllocation,
    ParallelTempering,
    compare,
)
from sklpf.datasets import make_bars_corpus
from sklpf.display import (
    ComparisonDisplay,
    ComponentsDisplay,
    RunDisplay,
    TopicsDisplay,
    TrainingDisplay,
)

X = (load_digits().data > 7).astype(float)
train, test = X[:1500], X[1500:]
settings = {"learning_rate": 0.02, "n_iter": 40, "random_state": 0}
rbm = BernoulliRBM(64, early_stopping=True, **settings).fit(train)
display = TrainingDisplay.from_estimator(rbm)
display.figure_.savefig("display_training.png", dpi=100)

# %%
# The components as images: `ComponentsDisplay` takes the ``components_`` of any
# model. For rows that were whitened, such as those of `make_patches`,
# ``whitening=`` maps them back to pixels.

display = ComponentsDisplay.from_estimator(rbm, n_columns=16)
display.figure_.savefig("display_components.png", dpi=100)

# %%
# log Z, and how it was found
# ---------------------------
# `RunDisplay` has a panel for each thing that a run shows: log Z at every level
# of the ladder, and the band of its error, which is much narrower than the line
# of the curve. Chains move along the ladder if neighbouring levels reject few
# swaps, that is, if their states overlap. Round trips show that they do. Log Z
# after every round stands against its cost in sweeps; the last round is the
# result.

# sphinx_gallery_thumbnail_number = 3
tempering = ParallelTempering(random_state=0, n_jobs=2).fit(rbm)
display = RunDisplay.from_estimator(tempering)
display.figure_.savefig("display_tempering.png", dpi=100)

# %%
# For `RTS` it shows how often each level was visited, and the chains that
# visited both ends.

rts = RTS(n_sweeps=500, random_state=0, n_jobs=2).fit(rbm)
display = RunDisplay.from_estimator(rts)
display.figure_.savefig("display_tempering_rts.png", dpi=100)

# %%
# To draw two estimates in one picture, name the panels, and give the second the
# axes of the first.

panels = ["log Z", "band"]
display = RunDisplay.from_estimator(tempering, panels=panels)
RunDisplay.from_estimator(rts, panels=panels, ax=display.axes_)
display.figure_.savefig("display_log_partition.png", dpi=100)

# %%
# The tail of the importance weights shows whether they can be trusted: if k is
# below 0.5 their variance is finite; from 0.7 on not even their mean should be
# trusted. Few temperatures give uneven weights.

looks = {"figsize": (11, 4), "sharey": True, "layout": "constrained"}
figure, axes = plt.subplots(1, 2, **looks)
for ax, n_temperatures in zip(axes, (60, 1000)):
    annealing = AIS(1000, n_temperatures, random_state=1, n_jobs=2).fit(rbm)
    RunDisplay.from_estimator(annealing, panels=["weights"], ax=ax)
figure.savefig("display_weights.png", dpi=100)

# %%
# Models compared
# ---------------
# The error over rows shrinks with more rows, that of log Z does not. The
# differences have a smaller error over rows, since rows are paired: what is
# hard for all models cancels.

models = {"64 units": rbm}
settings["n_iter"] = rbm.best_iteration_
for n_components in (8, 24):
    smaller = BernoulliRBM(n_components, **settings)
    models[f"{n_components} units"] = smaller.fit(train)
display = ComparisonDisplay.from_result(compare(models, test))
display.figure_.savefig("display_comparison.png", dpi=100)

# %%
# Topics
# ------
# The words of this corpus are places in a square, and every true topic is one
# of its rows or columns.

corpus = {"size": 4, "n_tokens": 100, "doc_topic_prior": 0.3}
counts, _, _ = make_bars_corpus(500, **corpus, random_state=0)
words = [f"row {i} col {j}" for i in range(4) for j in range(4)]
settings = {"doc_topic_prior": 0.3, "learning_method": "online", "max_iter": 10}
lda = LatentDirichletAllocation(8, **settings, random_state=0)
display = TopicsDisplay.from_estimator(lda.fit(counts), words, n_words=6)
display.figure_.savefig("display_topics.png", dpi=100)

# %%
# So displays of models show what was learned, `RunDisplay` how log Z was found,
# and `ComparisonDisplay` which model is better, all with their errors.

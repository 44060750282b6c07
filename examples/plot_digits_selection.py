"""
Select a model of digits by its held-out log-likelihood
=======================================================

Restricted Boltzmann machines of three sizes are fitted to scikit-learn's bundled digits in a pipeline, and a grid
search picks one by the log-likelihood of held-out images: an actual density in nats, with an error bar, where
scikit-learn's own class could only offer the pseudo-likelihood. The smallest machine's normaliser is
enumerated, that of the others is estimated by parallel tempering.
"""

# %%
# Fit, and select by log-likelihood
# ---------------------------------
# ``on_nonconvergence="nan"`` keeps a model out of the selection if its normaliser can't be trusted.

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from sklpf import BernoulliRBM

X_train, X_test = train_test_split(load_digits().data, test_size=0.25, random_state=0)
rbm = BernoulliRBM(learning_rate=0.05, n_iter=60, random_state=0, on_nonconvergence="nan")
pipeline = make_pipeline(Binarizer(threshold=7), rbm)
search = GridSearchCV(pipeline, {"bernoullirbm__n_components": [16, 64, 128]}, cv=3).fit(X_train)

# %%
# What each model says about the test images
# ------------------------------------------
# The sampling error over test rows and the error of log Z, which all rows share, are combined in the ± column.

print("        model | test log-likelihood ± error | pseudo-likelihood |      log Z [95 % interval] | how")
rows = []
for candidate in search.cv_results_["params"]:
    model = pipeline.set_params(**candidate).fit(X_train)
    binarizer, fitted = model[0], model[-1]
    held_out = binarizer.transform(X_test)
    interval = fitted.score_interval(held_out)
    low, high = fitted.log_partition_interval_
    pseudo = np.mean(fitted.pseudo_log_likelihood(held_out))
    rows.append((candidate["bernoullirbm__n_components"], interval, pseudo))
    print(
        f"{rows[-1][0]:>3} hidden{' *' if candidate == search.best_params_ else '  ':>3}"
        f" | {interval.mean:>18.2f} ± {interval.combined[1] - interval.mean:<6.2f}"
        f" | {pseudo:>17.2f}"
        f" | {fitted.log_partition_:>8.3f} [{low:.3f}, {high:.3f}]"
        f" | {fitted.partition_estimator_.result_.method}"
    )
print(f"* selected by {search.cv} folds of cross-validated log-likelihood, {search.best_score_:.2f} nats per image")

# %%
# The picture
# -----------

sizes, intervals, pseudo = zip(*rows)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), width_ratios=[3, 2], layout="constrained")
means = np.array([interval.mean for interval in intervals])
errors = np.array([interval.combined[1] - interval.mean for interval in intervals])
left.plot(sizes, pseudo, "s:", color="0.6", label="pseudo-likelihood (test)")
left.errorbar(sizes, means, errors, fmt="o-", capsize=4, label="log-likelihood (test), 95 %")
left.plot(sizes, search.cv_results_["mean_test_score"], "o--", mfc="none", label="log-likelihood (cross-validated)")
left.set(xscale="log", xlabel="hidden units", ylabel="nats per image", title="Which model is best?")
left.set_xticks(sizes, sizes)
left.minorticks_off()
left.legend(fontsize=8, loc="center right", bbox_to_anchor=(1, 0.62))
best = search.best_estimator_[-1]
images = best.sample(30, random_state=0).reshape(5, 6, 8, 8)
mosaic = np.pad(images, [(0, 0), (0, 0), (1, 1), (1, 1)]).swapaxes(1, 2).reshape(50, 60)
right.imshow(mosaic, cmap="gray_r")
right.set_axis_off()
right.set_title("Samples of the selected model")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "digits_log_likelihood.png", dpi=120)

"""
Which model explains patches of images best?
============================================

How well do models of image patches explain patches that they have not seen?
Likelihoods answer this in nats, also for models with an unknown normaliser
(Sohl-Dickstein & Culpepper 2012, table 1 and figure 5). The reference is a
Gaussian with the covariance of the patches. Models of scikit-learn are compared
too.

By default the page uses small patches of scikit-learn's two photographs. With
``SKLPF_FULL=1`` in the environment it has the paper's size, on natural images
if they are there (`SKLPF_DATA`), and takes eight minutes. At that size a
product of 144 Laplace experts gains 6.5 nats a row, one of Student-t experts
9.8 and the mean-covariance RBM 10.6 (a mixture of 8 Gaussians: 9.9), and one
log Z takes less than a second (the paper: 170 s), those of 100 rows of the
linear model 20 s (4 h).
"""

import os
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from sklpf import (
    BilinearGenerativeModel,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
)
from sklpf.datasets import make_patches
from sklpf.testing import find_shared_data

full = os.environ.get("SKLPF_FULL") == "1"
size, d, n_train, n_test, n_rows = 8, 8, 1500, 500, 5
if full:
    size, d, n_train, n_test, n_rows = 16, 36, 10_000, 1000, 100
file = find_shared_data("natural/images.npz") if full else None
if file is None:
    images = [image.mean(axis=2) for image in load_sample_images().images]
else:
    with np.load(file) as archive:
        images = [archive[name] for name in archive]
        if "images" in archive:
            images = list(archive["images"])
patches = make_patches(images, size, n_train, d, n_test=n_test, random_state=0)
X_train, X_test = patches.X_train, patches.X_test

# %%
# Gains over the Gaussian
# -----------------------
# Gains are paired row by row, with the standard error over rows; the
# Monte-Carlo error of log Z is given separately. Generative models have a log Z
# for each row, and only the first rows are scored. Numbers that can't be
# trusted are marked. Seconds are processor time.

# Without ``tol`` log Z is not estimated after every pass.
passes = {} if full else {"max_iter": 15, "tol": None}
gaussian = GaussianMixture(1, reg_covar=0).fit(X_train).score_samples(X_test)
passes["random_state"] = 0
laplace = ProductOfExperts(4 * d, "laplace", **passes)
student = ProductOfExperts(4 * d, **passes)
complete = ProductOfExperts(algorithm="ml", random_state=0)
models = {
    "mixture of 8 Gaussians (scikit-learn)": GaussianMixture(8, random_state=0),
    f"linear generative, Laplace, {d}": LinearGenerativeModel(random_state=0),
    f"product of Laplace, {4 * d}": laplace,
    f"product of Student-t, {d}": complete,
    f"product of Student-t, {4 * d}": student,
    "mean-covariance RBM": MeanCovarianceRBM(**passes),
}
if full:  # its training takes minutes
    models["bilinear generative"] = BilinearGenerativeModel(random_state=0)
gains = {}
head = f"{'model':>40} | nats a row |  gain ± error | Monte Carlo"
print(head, "| fit, score (s) | trusted")
for name, model in models.items():
    rows = slice(n_rows if "generative" in name else None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        began = time.process_time()
        model.fit(X_train)
        fitted = time.process_time()
        values = model.score_samples(X_test[rows])
        scored = time.process_time()
    gain = values - gaussian[rows]
    gains[name] = gain.mean(), gain.std(ddof=1) / np.sqrt(len(gain))
    error, trusted = 0.0, 1.0
    estimator = getattr(model, "partition_estimator_", None)
    if estimator is not None:
        result = estimator.result_
        error = result.diagnostics.get("mean_std_error", result.std_error)
        trusted = np.mean(result.diagnostics.get("converged", result.converged))
    line = f"{name:>40} | {values.mean():10.2f} | {gain.mean():5.2f} ±"
    line += f" {gains[name][1]:.2f} | {error:11.3f} | {fitted - began:6.1f}"
    print(f"{line} {scored - fitted:6.1f} | {trusted:.0%}")

# %%
# Likelihood against size
# -----------------------
# With more Laplace experts the likelihood stops rising. With more Student-t
# experts it rises further on test rows, and more on training rows.

sizes = [d, 2 * d, 4 * d, 8 * d] if full else [d, 2 * d, 4 * d]
curves = {}
for expert, name in (("laplace", "Laplace"), ("student_t", "Student-t")):
    for n_components in sizes:
        model = models.get(f"product of {name}, {n_components}")
        if model is None:
            model = ProductOfExperts(n_components, expert, **passes)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X_train)
        for rows, X in (("training", X_train), ("test", X_test)):
            interval = model.score_interval(X)
            points = curves.setdefault((name, rows), [])
            points.append((interval.mean, *interval.partition))

# %%
# Plots
# -----

_, left = plt.subplots(figsize=(5.5, 4), layout="constrained")
_, right = plt.subplots(figsize=(5.5, 4), layout="constrained")
means, errors = np.array(list(gains.values())).T
left.barh(range(len(gains)), means, xerr=errors, color="tab:blue", alpha=0.8)
left.set_yticks(range(len(gains)), list(gains))
left.invert_yaxis()
left.set_xlabel("gain over the Gaussian (nats a row)")
for (name, rows), points in curves.items():
    mean, low, high = np.array(points).T
    color = "tab:blue" if name == "Laplace" else "tab:orange"
    looks = {"color": color, "linestyle": "-" if rows == "test" else ":"}
    looks |= {"marker": "o", "label": f"{name}, {rows} rows"}
    right.errorbar(sizes, mean, [mean - low, high - mean], **looks)
right.set_xscale("log", base=2)
right.set_xticks(sizes, sizes)
right.set_xlabel("experts")
right.set_ylabel("log-likelihood (nats a row)")
# The legend stands above the panel, since lines are everywhere in it.
right.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
left.figure.savefig("image_models_gains.png", dpi=120)
right.figure.savefig("image_models_experts.png", dpi=120)

# %%
# The answer
# ----------

best, second = sorted(gains, key=gains.get, reverse=True)[:2]
print(f"Best is the {best}, {gains[best][0]:.1f} nats above the")
print(f"Gaussian, then the {second} with {gains[second][0]:.1f}.")

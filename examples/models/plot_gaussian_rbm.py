"""
Which mixture of Gaussians does a GaussianRBM learn?
====================================================

A Gaussian RBM with n hidden units is a mixture of 2 ** n Gaussians that share
their variances, and whose means are sums of n components. Its score is a
log-likelihood of real rows. Here it is compared with that of the model that
made the rows, and with that of one Gaussian.
"""

# %%
# A known model, and rows of it
# -----------------------------
# Biases that balance the eight groups.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import multivariate_normal

from sklpf import GaussianRBM

rng = np.random.default_rng(9)
components = 1.5 * rng.normal(size=(3, 4))
variances = rng.uniform(0.3, 2.0, 4)
biases = -0.5 * ((components / variances) @ components.T).sum(axis=1)
truth = GaussianRBM.from_parameters(components, np.zeros(4), biases, variances)
X_train = truth.sample(3000, random_state=0)
X_test = truth.sample(3000, random_state=1)

# %%
# Scores of held-out rows
# -----------------------
# In nats per row.

rbm = GaussianRBM(3, random_state=0).fit(X_train)
print(f"the model that made the rows: {truth.score(X_test):.3f}")
print(f"a GaussianRBM of the rows:    {rbm.score(X_test):.3f}")
gaussian = multivariate_normal(X_train.mean(axis=0), np.cov(X_train.T))
print(f"one Gaussian:                 {gaussian.logpdf(X_test).mean():.3f}")

# %%
# Held-out rows beside new ones
# -----------------------------

looks = {"figsize": (7, 3.5), "sharex": True, "sharey": True}
fig, axes = plt.subplots(1, 2, **looks, layout="constrained")
drawn = rbm.sample(3000, random_state=0)
for ax, rows, title in zip(axes, (X_test, drawn), ("held-out rows", "drawn")):
    ax.plot(rows[:, 0], rows[:, 1], ".", markersize=2)
    ax.set(title=title, xlabel="column 0", ylabel="column 1")
plt.show()

# %%
# It learns the mixture that made the rows: its score is within 0.02 nats of
# that of the true model, and that of one Gaussian 0.7 below.

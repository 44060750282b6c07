"""
What does a temperature do to the bound of a mixture?
=====================================================

Figure 1 of Mandt et al. (2016): the variational objective of a mixture of two
Gaussians on the line, as a function of their means, at four temperatures. With
unequal weights the means can be assigned to the clusters in two ways, of which
one is better. At T = 20 there is one optimum; both are there at T = 1. An
annealed fit follows the one that was alone: it ends at the better optimum from
5 of 5 starts, and a plain one from 2.

The paper gives neither its data nor its weights. Here 30 % of 200 rows are
around -3.2 and 70 % around 3.2, the weights 0.3 and 0.7 are known, and so are
the unit variances.
"""

# %%
# A model of one's own
# --------------------
# `ConjugateModel` asks for the updates at an inverse temperature, for U, which
# a temperature divides, and for the rest of the bound.

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import maximum_filter
from scipy.special import softmax, xlogy

from sklpf.variational import (
    Annealed,
    ConjugateModel,
    sweeps,
    temperature_schedule,
)

rng = np.random.default_rng(0)
x = np.where(rng.random(200) < 0.3, -3.2, 3.2) + rng.normal(size=200)
log_weights = np.log([0.3, 0.7])
PRIOR_VARIANCE = 25.0


class TwoGaussians(ConjugateModel):
    """x ~ sum_k weights[k] N(mean_k, 1), mean_k ~ N(0, 25)."""

    def __init__(self, means):
        self.means = np.array(means, dtype=float)
        self.variances = np.zeros(2)  # of q(mean_k)

    def update(self, inverse):
        self.assign(inverse)
        counts = inverse * self.shares.sum(axis=0)
        self.variances = 1 / (1 / PRIOR_VARIANCE + counts)
        self.means = self.variances * inverse * (x @ self.shares)

    def assign(self, inverse):
        """The best q(z) given q(means)."""
        self.shares = softmax(inverse * self.log_joint(), axis=1)

    def log_joint(self):
        squares = (x[:, np.newaxis] - self.means) ** 2 + self.variances
        return log_weights - (np.log(2 * np.pi) + squares) / 2

    def expected_log_joint(self, per_datum=False):
        return float(np.sum(self.shares * self.log_joint()))

    def regulariser(self):
        ratios = (self.means**2 + self.variances) / PRIOR_VARIANCE
        logs = np.log(PRIOR_VARIANCE / self.variances)
        divergence = np.sum(ratios - 1 + logs) / 2
        return -divergence - float(np.sum(xlogy(self.shares, self.shares)))


# %%
# The objective
# -------------
# Of each pair of means q(z) and the variances of q(means) are the best ones.


def objective(means, inverse):
    model = TwoGaussians(means)
    for _ in range(3):  # q(z) and the variances, in turn
        model.assign(inverse)
        counts = inverse * model.shares.sum(axis=0)
        model.variances = 1 / (1 / PRIOR_VARIANCE + counts)
    model.assign(inverse)
    return model.regulariser() + inverse * model.expected_log_joint()


axis_values = np.linspace(-6, 6, 61)
looks = {"figsize": (9, 2.7), "sharey": True, "layout": "constrained"}
figure, axes = plt.subplots(1, 4, **looks)
for axis, temperature in zip(axes, (20.0, 13.0, 8.5, 1.0)):
    beta = 1 / temperature
    surface = [
        [objective((m0, m1), beta) for m0 in axis_values] for m1 in axis_values
    ]
    surface = np.array(surface)
    tops = np.argwhere(surface == maximum_filter(surface, size=3))
    inside = np.all((tops > 0) & (tops < len(axis_values) - 1), axis=1)
    tops = tops[inside]
    best = tops[np.argmax([surface[tuple(top)] for top in tops])]
    axis.contourf(axis_values, axis_values, surface, levels=30, cmap="viridis")
    axis.plot(*axis_values[tops[:, ::-1]].T, "wo", ms=5, mfc="none")
    axis.plot(*axis_values[best[::-1]], "ro", ms=5)
    plural = "optimum" if len(tops) == 1 else "optima"
    axis.set(title=f"T = {temperature:g}, {len(tops)} {plural}")
    axis.set(xlabel="mean 0, of weight 0.3", aspect="equal")
axes[0].set_ylabel("mean 1, of weight 0.7")
figure.savefig("plot_annealed_mixture.png", dpi=110)

# %%
# Fits
# ----
# From five pairs of means, drawn from N(0, 3²): plain coordinate ascent, and
# 100 sweeps in which T falls from 20 to 1 before it.

starts = np.random.default_rng(1).normal(scale=3.0, size=(5, 2))
schedule = temperature_schedule("linear", initial=20.0, n_sweeps=100)
print("| start | plain | annealed |")
print("|---|---|---|")
ends = []
for start in starts:
    row = []
    for tempering in (None, Annealed(schedule)):
        *_, last = sweeps(TwoGaussians(start), tempering, tol=1e-8)
        row.append(last.elbo)
    ends.append(row)
    means = f"{start[0]:.1f}, {start[1]:.1f}"
    print(f"| {means} | {row[0]:.1f} | {row[1]:.1f} nats |")
ends = np.array(ends)
reached = np.sum(ends > ends.max() - 0.1, axis=0)
plain, annealed = reached
print(f"\nThe best optimum: plain {plain} of 5, annealed {annealed} of 5")

# %%
# At a high temperature the bound has one optimum, and that is the better one:
# annealing leads there from every start.

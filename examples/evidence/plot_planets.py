"""
How many planets does a star have?
==================================

A planet pulls its star to and fro, once in every orbit. The evidence of models
with 0, 1 and 2 planets says how many there are in measured velocities of the
star.

The posterior is hard to find: a period is known to a hundredth of its prior,
and there are many of them that fit a little. ``AdaptiveSMC`` needs only the log
likelihood and a prior transform. How that transform is written matters, and
does not change the evidence:

* The planets have the same prior, so that each posterior mode would be there
  twice. Periods are therefore drawn in order, as the largest and the smallest
  of two uniform numbers are.
* A phase is an angle. As one coordinate its circle is cut somewhere, and if the
  posterior is there it falls into two parts, far from each other. Two normal
  coordinates are a point in the plane, whose angle is uniform and whose radius
  gives another uniform number. Here radius and angle are the height of a
  planet's signal and its phase.
* The phase is that in the middle of the measurements, where it hardly depends
  on the period.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtri

from sklpf import AdaptiveSMC, compare_evidence
from sklpf.display import ComparisonDisplay
from sklpf.interop import from_prior_transform

SHORTEST, LONGEST = 10.0, 50.0  # periods in days
HIGHEST = 50.0  # of a signal, in m/s
MIDDLE = 60.0  # of the measurements, in days


def velocity(t, period, height, phase):
    """Of the star at times (m,), for a circular orbit each (n, 1): (n, m)."""
    return height * np.cos(2 * np.pi * (t - MIDDLE) / period + phase)


rng = np.random.default_rng(0)
t = np.sort(rng.uniform(0, 2 * MIDDLE, size=40))
y = velocity(t, 23.4, 6.0, 3.1) + 2.0 * rng.normal(size=len(t))


def polar(u):
    """A uniform number and an angle of pairs of uniform numbers (n, 2)."""
    z = ndtri(u)
    return -np.expm1(-0.5 * np.sum(z**2, axis=1)), np.arctan2(z[:, 0], z[:, 1])


def prior_transform(n_planets):
    def transform(u):
        # mean velocity, log of the noise
        columns = [20 * u[:, 0] - 10, 2 * ndtri(u[:, 1])]
        place = 1.0
        for j in range(n_planets):
            own = u[:, 2 + 3 * j : 5 + 3 * j]
            place = place * own[:, 0] ** (1 / (n_planets - j))
            period = SHORTEST * (LONGEST / SHORTEST) ** place
            height, phase = polar(own[:, 1:])
            height = (1 + HIGHEST) ** height - 1
            columns += [period, height, phase]
        return np.column_stack(columns)

    return transform


def log_likelihood(x):
    model = x[:, :1].copy()
    for j in range(2, x.shape[1], 3):
        model = model + velocity(t, *x[:, j : j + 3].T[:, :, np.newaxis])
    log_noise = x[:, 1:2]
    z = (y - model) * np.exp(-log_noise)
    return np.sum(-0.5 * z**2 - log_noise - 0.5 * np.log(2 * np.pi), axis=1)


NAMES = ("no planet", "one planet", "two planets")
fitted, paths = {}, {}
for n_planets in (0, 1, 2):
    name = NAMES[n_planets]
    given = log_likelihood, prior_transform(n_planets), 2 + 3 * n_planets
    paths[name] = from_prior_transform(*given, vectorized=True)
    fitted[name] = AdaptiveSMC(250, random_state=0).fit(paths[name])
comparison = compare_evidence(fitted)
print(comparison.summary())

# %%
# One planet is certain. A second one costs little: the prior allows signals
# that are too small to be seen, and the data don't say whether there is one.

ComparisonDisplay.from_result(comparison)

# %%
# Draws of the posterior come with the evidence. On the left the star's velocity
# as a planet explains it, on the right the period in the models with one and
# with two planets, of the one whose signal is larger.

# sphinx_gallery_thumbnail_number = 2
looks = {"figsize": (9, 3.6), "width_ratios": (2, 1), "layout": "constrained"}
figure, (left, right) = plt.subplots(1, 2, **looks)
posterior = {}
for name in ("one planet", "two planets"):
    draws = fitted[name].result_.draws.resample().points
    parameters = paths[name].constrain(draws)
    posterior[name] = np.column_stack(list(parameters.values()))
times = np.linspace(t.min(), t.max(), 400)
x = posterior["one planet"][:30]
curves = x[:, :1] + velocity(times, *x[:, 2:].T[:, :, np.newaxis])
left.plot(times, curves.T, color="C0", alpha=0.2, linewidth=0.8)
left.plot(t, y, "k.", label="measured")
left.set(xlabel="time (days)", ylabel="velocity (m/s)")
left.legend()
bins = np.linspace(21.5, 25.5, 41)
for name, x in posterior.items():
    larger = 2 + 3 * x[:, 3::3].argmax(axis=1)
    periods = np.take_along_axis(x, larger[:, np.newaxis], axis=1)
    right.hist(periods, bins, density=True, histtype="step", label=name)
right.axvline(23.4, color="k", linewidth=0.8)
right.set(xlabel="period (days)", ylabel="density")
right.margins(y=0.3)  # room for the legend
right.legend(loc="upper left")
plt.show()

# %%
# So there is at least one planet; whether there is a second one, with a
# probability of about 0.3, these data don't tell.

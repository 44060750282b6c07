"""
Are eight schools alike?
========================

Nested samplers take a log likelihood and a prior transform, which maps the unit
cube to the parameters. ``from_prior_transform`` takes the same two functions
and gives a path from the prior to the posterior, in coordinates in which the
prior is N(0, I). There are no boundaries and no Jacobian, and the effects of a
hierarchical model are independent under the prior.

The data are Rubin's (1981): the effects of coaching in eight schools, with
their standard errors. Three models describe how the true effects differ between
schools: not at all, with a spread that is learned, or independently. All priors
have the same scales.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.special import ndtri

from sklpf import SMC, compare_evidence
from sklpf.display import ComparisonDisplay, RunDisplay
from sklpf.interop import from_prior_transform

effects = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
errors = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def log_likelihood(theta):
    """theta: points (n, 8), or (n, 1) where all schools are alike."""
    return stats.norm.logpdf(effects, theta, errors).sum(axis=1)


def alike(u):  # one effect ~ N(0, 10^2)
    return 10 * ndtri(u)


def related(u):
    """mean ~ N(0, 10^2), spread ~ half-normal(10),
    effects ~ N(mean, spread^2).
    """
    mean = 10 * ndtri(u[:, :1])
    spread = 10 * ndtri(0.5 + 0.5 * u[:, 1:2])
    return mean + spread * ndtri(u[:, 2:])


def unrelated(u):  # each effect ~ N(0, 2 * 10^2): mean and spread as above
    return np.sqrt(200) * ndtri(u)


models = {
    "alike": (alike, 1),
    "related": (related, 10),
    "unrelated": (unrelated, 8),
}
fitted, paths = {}, {}
for name, (transform, n_dimensions) in models.items():
    given = log_likelihood, transform, n_dimensions
    paths[name] = from_prior_transform(*given, vectorized=True)
    fitted[name] = SMC(n_temperatures=60, random_state=0).fit(paths[name])
comparison = compare_evidence(fitted)
print(comparison.summary())

# %%
# The data hardly distinguish between the models. This is not due to the errors
# of log Z, which are far too small to matter. Two of the evidences have closed
# forms, since effects and errors are normal.

variances = {"alike": 100.0 * np.ones((8, 8)), "unrelated": 200.0 * np.eye(8)}
for name, variance in variances.items():
    covariance = np.diag(errors**2) + variance
    exact = stats.multivariate_normal(np.zeros(8), covariance).logpdf(effects)
    off = fitted[name].log_partition_ - exact
    error = fitted[name].log_partition_std_error_
    print(f"{name}: off by {off:+.3f} +- {error:.3f} nats")

ComparisonDisplay.from_result(comparison)

# %%
# The run for the related schools: its levels, how often moves were accepted,
# how many of each population's particles were effective, and whether the draws
# lie where the mass is known to be.

RunDisplay.from_estimator(fitted["related"])

# %%
# The run keeps weighted draws of the posterior. Resampled and transformed they
# are draws of the schools' effects. In the model of related schools the effects
# shrink towards each other.

# sphinx_gallery_thumbnail_number = 3
figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
for place, name in enumerate(("unrelated", "related")):
    draws = fitted[name].result_.draws.resample().points
    theta = np.column_stack(list(paths[name].constrain(draws).values()))
    low, middle, high = np.percentile(theta, [5, 50, 95], axis=0)
    at = np.arange(8) + 0.25 * place
    spread = [middle - low, high - middle]
    axes.errorbar(at, middle, spread, fmt="o", capsize=3, label=name)
axes.plot(np.arange(8) + 0.12, effects, "k_", markersize=14, label="data")
axes.set_xticks(np.arange(8), list("ABCDEFGH"))
axes.set(xlabel="school", ylabel="effect, 90 % of the posterior")
axes.legend()
plt.show()

# %%
# Whether the schools are alike these data don't tell: that they are has a
# probability of 0.56, that they are related 0.34, and that they have nothing to
# do with each other 0.10.

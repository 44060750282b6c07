"""
Which noise does a regression need?
===================================

The marginal likelihood (evidence) of a Bayesian model is the integral of prior
times likelihood: the normalising constant of a density on R^d. ``HAIS``
estimates it from a NumPy function and its gradient.

The example is a linear regression on scikit-learn's diabetes data. Its noise is
Student t with nu degrees of freedom, from Cauchy (nu = 1) to normal (nu =
infinity). The prior is the same for all: coefficients N(0, 1) for standardised
data, log noise scale N(0, 1). Chains start at a Gaussian of the posterior's
mode and curvature, widened by half so that it covers the posterior's tails.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import gammaln
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from sklpf import HAIS, Gaussian, GeometricPath
from sklpf.transitions import HMC

data = load_diabetes()
X, y = scale(data.data), scale(data.target)
n, n_features = X.shape
d = n_features + 1  # coefficients and the log of the noise scale


class Posterior:
    """Log prior + log likelihood of points (m, d), and its gradient."""

    def __init__(self, nu):
        self.nu = nu

    def _residuals(self, points):
        """Residuals in units of the noise (m, n), log noise scale (m, 1)."""
        log_sigma = points[:, -1:]
        return (y - points[:, :-1] @ X.T) * np.exp(-log_sigma), log_sigma

    def log_density(self, points):
        z, log_sigma = self._residuals(points)
        log_noise = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        if np.isfinite(self.nu):
            log_noise = -(self.nu + 1) / 2 * np.log1p(z**2 / self.nu)
            log_noise += gammaln((self.nu + 1) / 2) - gammaln(self.nu / 2)
            log_noise -= 0.5 * np.log(self.nu * np.pi)
        log_prior = -0.5 * np.sum(points**2, axis=1) - d / 2 * np.log(2 * np.pi)
        return log_prior + np.sum(log_noise - log_sigma, axis=1)

    def grad(self, points):
        z, log_sigma = self._residuals(points)
        weight = z
        if np.isfinite(self.nu):
            weight = (self.nu + 1) * z / (self.nu + z**2)
        by_coefficients = (weight * np.exp(-log_sigma)) @ X
        by_scale = np.sum(weight * z - 1, axis=1)
        return np.column_stack([by_coefficients, by_scale]) - points


# %%
# The log evidence of every noise, with its 95 % interval.

DEGREES = [1, 2, 4, 8, 16, 32, np.inf]
values, errors = [], []
print("nu      log evidence")
for nu in DEGREES:
    posterior = Posterior(nu)
    log_density, grad = posterior.log_density, posterior.grad
    base = Gaussian.at_mode(log_density, np.zeros(d), grad=grad, factor=1.5)
    path = GeometricPath(log_density, grad=grad, base=base)
    dense = HMC(metric="dense")
    hais = HAIS(n_temperatures=300, transition=dense, random_state=0).fit(path)
    low, high = hais.log_partition_interval_
    values.append(hais.log_partition_)
    errors.append((high - low) / 2)
    estimate = f"{hais.log_partition_:9.3f} +- {errors[-1]:.3f}"
    print(f"{nu:<6} {estimate}  converged: {hais.converged_}")

# %%
# Differences of log evidence are log Bayes factors.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
factors = np.array(values) - max(values)
ax.errorbar(range(len(DEGREES)), factors, errors, fmt="o-", capsize=3)
ax.set_xticks(range(len(DEGREES)), [f"{nu:g}" for nu in DEGREES])
ax.set_xlabel("degrees of freedom of the noise")
ax.set_ylabel("log Bayes factor to the best (nats)")
ax.set_title("Diabetes data: evidence for the tails of the noise")
fig.savefig("evidence.png", dpi=100)

best = DEGREES[np.argmax(factors)]
print(f"The best noise has nu = {best:g}, {-factors[0]:.0f} nats above Cauchy")
print(f"noise and {-factors[-2]:.1f} above nu = {DEGREES[-2]}.")

"""
How likely are test images under a variational autoencoder?
===========================================================

The likelihood of a variational autoencoder can't be computed directly. Training
maximises a lower bound, which may be far off if the encoder is poor.
`sklpf.interop.from_decoder` estimates the likelihood itself, with an error for
every row, by importance sampling at the modes of its posterior, and by annealed
importance sampling (Wu et al. 2017) where those weights are heavy. So a decoder
can be compared with any other model of the same rows.

The autoencoder is written in NumPy here, and trained on scikit-learn's digits
in some seconds. Modules of PyTorch and functions of JAX need no `pullback`.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logsumexp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sklpf import BernoulliRBM, compare
from sklpf.interop import from_decoder

X = (load_digits().data > 7).astype(float)
X_train, X_test = train_test_split(X, test_size=30, random_state=0)

# %%
# An autoencoder of 64, 50 and 2 units
# ------------------------------------
# Encoder and decoder have a layer of 50 tanh units. Adam maximises the bound on
# log p(x), E_q log p(x | z) - KL(q(z | x) || p(z)), with one draw of z a row.

rng = np.random.default_rng(0)
n_features, n_hidden, n_latents = 64, 50, 2


def layer(n_in, n_out):
    return [rng.normal(0, 1 / np.sqrt(n_in), (n_in, n_out)), np.zeros(n_out)]


weights = [
    *layer(n_features, n_hidden),
    *layer(n_hidden, 2 * n_latents),
    *layer(n_latents, n_hidden),
    *layer(n_hidden, n_features),
]


def encoder(x):
    """Mean and log variance of z."""
    V, c, W, b = weights[:4]
    return np.split(np.tanh(x @ V + c) @ W + b, 2, axis=1)


def decoder(z):
    """Logits of x."""
    V, c, W, b = weights[4:]
    return np.tanh(z @ V + c) @ W + b


def pullback(z, g):
    """Gradient by z of sum(g * decoder(z))."""
    V, c, W, _ = weights[4:]
    return (g @ W.T * (1 - np.tanh(z @ V + c) ** 2)) @ V.T


def gradients(x):
    """Of the bound, summed over rows, by all weights."""
    V_x, c_x, W_x, _ = weights[:4]
    V_z, c_z, W_z, _ = weights[4:]
    h_x = np.tanh(x @ V_x + c_x)
    mean, log_variance = encoder(x)
    noise = rng.normal(size=mean.shape)
    z = mean + np.exp(log_variance / 2) * noise
    h_z = np.tanh(z @ V_z + c_z)

    g_logits = x - expit(decoder(z))
    g_h_z = g_logits @ W_z.T * (1 - h_z**2)
    g_z = g_h_z @ V_z.T
    g_mean = g_z - mean
    g_noise = g_z * noise * np.exp(log_variance / 2)
    g_log_variance = (g_noise + 1 - np.exp(log_variance)) / 2
    g_code = np.hstack([g_mean, g_log_variance])
    g_h_x = g_code @ W_x.T * (1 - h_x**2)
    return [
        x.T @ g_h_x,
        g_h_x.sum(axis=0),
        h_x.T @ g_code,
        g_code.sum(axis=0),
        z.T @ g_h_z,
        g_h_z.sum(axis=0),
        h_z.T @ g_logits,
        g_logits.sum(axis=0),
    ]


first = [np.zeros_like(weight) for weight in weights]
second = [np.zeros_like(weight) for weight in weights]
n_epochs, batch_size, step = 100, 50, 0
for _ in range(n_epochs):
    rows = rng.permutation(len(X_train))
    for start in range(0, len(rows), batch_size):
        step += 1
        batch = X_train[rows[start : start + batch_size]]
        for weight, g, m, v in zip(weights, gradients(batch), first, second):
            g = g / len(batch)
            m += 0.1 * (g - m)
            v += 0.001 * (g**2 - v)
            slope = m / (1 - 0.9**step)
            size = np.sqrt(v / (1 - 0.999**step)) + 1e-8
            weight += 0.003 * slope / size

# %%
# Its likelihood
# --------------
# `score_samples` gives log p(x) of every test row. Climbs to the modes start
# from draws of the prior, and with `encoder=` also at its mean: both must
# agree.

given = {"n_latents": n_latents, "pullback": pullback}
vae = from_decoder(decoder, **given, random_state=0)
from_prior = vae.score_samples(X_test)
errors = vae.partition_estimator_.log_partition_std_error_
encoded = from_decoder(decoder, **given, encoder=encoder, random_state=1)
from_encoder = encoded.score_samples(X_test)
difference = np.abs(from_encoder - from_prior)
print(f"largest difference of both: {difference.max():.2f} nats")

# %%
# Two lower bounds, in expectation, are usually reported: the bound of training,
# and the log of the mean of 1000 importance weights of draws from the encoder.

n_draws = 1000
mean, log_variance = encoder(X_test)
noise = rng.normal(size=(n_draws, *mean.shape))
z = mean + np.exp(log_variance / 2) * noise
logits = decoder(z.reshape(-1, n_latents)).reshape(n_draws, *X_test.shape)
log_p_x = np.sum(X_test * logits - np.logaddexp(0, logits), axis=2)
log_ratio = np.sum(-(z**2) + noise**2 + log_variance, axis=2) / 2
log_weights = log_p_x + log_ratio
bound = log_weights.mean(axis=0)
importance = logsumexp(log_weights, axis=0) - np.log(n_draws)

print(f"encoder's bound:       {bound.mean():.2f} nats a row")
print(f"importance weighting:  {importance.mean():.2f}")
rows = f"each row ± {errors.max():.2f}"
print(f"from_decoder:          {from_prior.mean():.2f}, {rows}")

# %%
# Beside an RBM
# -------------
# Any two models can be compared by likelihoods of the same rows.

rbm = BernoulliRBM(50, learning_rate=0.05, n_iter=60, random_state=0)
rbm.fit(X_train)
print(rbm.score_interval(X_test))
print(compare(vae, rbm, X_test))

# %%
fig, ax = plt.subplots()
order = np.argsort(from_prior)
places = np.arange(len(order))
half_widths = 2 * errors[order]
ax.errorbar(places, from_prior[order], half_widths, label="from_decoder")
ax.plot(importance[order], "^", label="importance weighting, 1000 draws")
ax.plot(bound[order], ".", label="encoder's bound")
ax.set(xlabel="test row", ylabel="log p(x), nats")
ax.legend()
plt.show()

# %%
# They have -20.3 nats a row, half a nat above the encoder's bound, and known to
# a few hundredths of a nat; the RBM explains them better.

"""
How does RTS find its weights?
==============================

Before its chains can move along the ladder, Rao-Blackwellised tempered sampling
needs an approximate log Z at every temperature. Carlson et al. (2016, section
2.4 and figure 1) start from Z = 1 everywhere and alternate short runs with
updates. This page repeats their figure: 100 temperatures, 50 sweeps of 100
chains a round, with and without Rao-Blackwellisation (counts of the visited
temperatures, plus 0.1).

If the reference data are there, the model is an RBM with 784 visible and 10
hidden units trained on MNIST, as in the paper; otherwise an RBM with 10 hidden
units is fitted to scikit-learn's digits. Both have an exact log Z.
"""

# %%
# The model and its exact log Z at some temperatures
# --------------------------------------------------

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp
from sklearn.datasets import load_digits

from sklpf import BernoulliRBM, Exact
from sklpf.paths import Stream, make_ladder, stream_key
from sklpf.programs import Chains, log_q_sums, temper
from sklpf.testing import find_shared_data
from sklpf.transitions import Gibbs

weights = find_shared_data("rbm/mnist_h10.npz")
train = find_shared_data("binary/mnist.npz")
if weights and train:
    parameters = np.load(weights, allow_pickle=False)
    bits = np.load(train, allow_pickle=False)["train"]
    mean = (np.unpackbits(bits, axis=1).sum(axis=0) + 1) / (len(bits) + 2)
    names = ("components", "intercept_visible", "intercept_hidden")
    given = [parameters[name] for name in names]
    rbm = BernoulliRBM.from_parameters(*given, visible_mean=mean)
else:
    digits = (load_digits().data > 7).astype(float)
    rbm = BernoulliRBM(10, learning_rate=0.05, n_iter=100, random_state=0)
    rbm.fit(digits)
n_levels, n_chains, n_sweeps = 100, 100, 50
path = rbm.path().with_ladder(make_ladder("linear", n_levels))
checked = np.arange(0, n_levels, 11)
exact = [0.0] + [
    Exact().fit(path.with_ladder([0, path.ladder[k]])).log_partition_
    for k in checked[1:]
]

# %%
# Algorithm 1, round after round
# ------------------------------
# After each round log Z_k grows by log c_k - log c_1 (equation 12). Chains
# continue from their states, with new temperatures drawn uniformly.


def initialise(rao_blackwell, n_rounds=8):
    rng = np.random.default_rng(0)
    log_z = np.zeros(n_levels)
    state = path.sample_base(n_chains, Stream(stream_key(0)))
    history = []
    for i in range(n_rounds):
        levels = rng.integers(n_levels, size=n_chains)
        stream = Stream(stream_key(0)).of("round", i)
        # Redraws, sweeps between two of them, and records: none are needed.
        order = (n_sweeps, 1, n_sweeps)
        chains = Chains(state, (), levels)
        left = temper(path, Gibbs(), chains, -log_z, *order, stream)
        state = left.chains.state
        log_c = np.log(left.counts.sum(axis=0) + 0.1)
        if rao_blackwell:
            log_c = logsumexp(log_q_sums(left.q_sums), axis=0)
        log_z = log_z + log_c - log_c[0]
        history.append((log_z, log_c - logsumexp(log_c)))
    return history


smooth, counted = initialise(True), initialise(False)
for i, ((log_z, log_c), (by_counts, _)) in enumerate(zip(smooth, counted)):
    uneven = np.abs(n_levels * np.exp(log_c) - 1).max()
    line = f"round {i + 1}: log Z = {log_z[-1]:8.3f} (counts:"
    line += f" {by_counts[-1]:8.3f}), largest |K c_k - 1| = {uneven:.2f}"
    print(f"{line}; exact log Z = {exact[-1]:.3f}")

# %%
# The picture
# -----------

looks = {
    "figsize": (9, 6),
    "sharex": True,
    "sharey": "row",
    "layout": "constrained",
}
figure, axes = plt.subplots(2, 2, **looks)
histories = {"Rao-Blackwellised": smooth, "counts + 0.1": counted}
for column, (title, history) in enumerate(histories.items()):
    for i in (0, 1, 3, 7):
        log_z, log_c = history[i]
        axes[0, column].plot(path.ladder, log_z, label=f"round {i + 1}")
        axes[1, column].plot(path.ladder, log_c)
    axes[0, column].plot(path.ladder[checked], exact, "kx", label="exact")
    axes[1, column].axhline(-np.log(n_levels), color="k", lw=0.8, ls=":")
    axes[0, column].set_title(title)
    axes[1, column].set(xlabel="inverse temperature", ylim=(-40, 0))
axes[0, 0].set_ylabel("log Z estimate")
axes[1, 0].set_ylabel("log c")
axes[0, 0].legend()
figure.savefig("plot_rts_initialisation.png", dpi=110)

# %%
# The answer
# ----------

by_rts, by_counts = (
    abs(history[-1][0][-1] - exact[-1]) for history in (smooth, counted)
)
print(f"After {len(smooth)} rounds of {n_sweeps} sweeps log Z is off by")
print(f"{by_rts:.1f} of {exact[-1]:.0f} nats, by counts alone {by_counts:.1f}.")

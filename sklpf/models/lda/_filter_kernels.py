"""Numba kernels of particle filters over the tokens of a document.

Sixteen particles lie side by side, and a token's topics are drawn for all of them at once: running
sums over topics of (alpha_k + c_k) p(w | k), then how many of these lie below a random share of the
total. Conditional probabilities are float32; predictions, which make the estimate, float64.
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf._utils.layout import LANES, aligned, padded
from sklpf._utils.random import Keys
from sklpf.kernels import FIRST, SECOND, SWAP, inlined, njit, random_bits, uniform
from sklpf.kernels._random import bits_of_all_chains
from sklpf.kernels._vectors import load, store, to_float32, zeros
from sklpf.models.lda._vector_kernels import total_of

_Z = FIRST
_NEW = SECOND
_ORDER = SWAP
_ONE = np.int64(1)
_STEP = np.float32(2.0**-23)  # between shares that 23 random bits give
_HALF_STEP = np.float32(2.0**-24)
_SMALLEST = 1e-290  # product of ratios that is kept as a number, not as a log


# ---- all particles of a filter
def work_space(n_tokens, n_topics, n_particles):
    """Topics of the tokens, counts of these, sums over topics, and random bits of new tokens and of
    old ones, of groups of 16 particles.
    """
    width = padded(n_particles)
    return (
        aligned((n_tokens, width), np.int32),
        aligned((width // LANES, n_topics, LANES), np.float32),
        aligned((n_topics, LANES), np.float32),
        *aligned((2, (n_tokens + 3) // 4 * 4 + 4, width), np.uint32),
    )


@inlined
def _add(counts, g, z, i, n):
    """Add n to the counts of the topics that group g of 16 particles gives to token i."""
    for c in range(LANES):
        counts[g, z[i, LANES * g + c], c] += n


@inlined
def _draw(alpha, rows, word, counts, sums, bits, z, i):
    """Draw the topics z[i] (n_particles,) of a token with bits[i], and count them.

    Each of 16 particles at once, in proportion to (alpha + counts) * rows[word]. Sums never fall,
    so that no topic of weight 0 is drawn.
    """
    n_groups, n_topics, _ = counts.shape
    for g in range(n_groups):
        total = zeros(sums)
        for k in range(n_topics):
            weights = load(counts, (g * n_topics + k) * LANES) + alpha[k]
            total = total + weights * rows[word, k]
            store(sums, k * LANES, total)
        place = g * LANES
        share = to_float32(load(bits, i * bits.shape[1] + place) >> 9) * _STEP + _HALF_STEP
        threshold = share * total
        topics = zeros(z)
        for k in range(n_topics):
            topics = topics + (load(sums, k * LANES) < threshold)
        store(z, i * z.shape[1] + place, topics)
        _add(counts, g, z, i, np.float32(1))


@inlined
def _sweep(alpha, rows, words, n_tokens, z, counts, sums, bits, reverse):
    """One Gibbs sweep over the first tokens of `words`, whose topics are z (n_tokens,
    n_particles), or its time reversal.
    """
    for j in range(n_tokens):
        i = n_tokens - 1 - j if reverse else j
        for g in range(counts.shape[0]):
            _add(counts, g, z, i, np.float32(-1))
        _draw(alpha, rows, words[i], counts, sums, bits, z, i)


@inlined
def _predict(particle_weights, counts, plan, i, word, sums):
    """Multiply weights by the probability that token i is this word, given those before; sums (16,)
    is work space.
    """
    stage = plan.stages[i]
    topics = plan.topics[word]
    prior = plan.predictions[stage, word]
    urn = plan.totals[stage] + i
    n = particle_weights.shape[0]
    whole = topics.shape[0] // 4 * 4
    for g in range(counts.shape[0]):
        sums[:] = prior
        for k in range(0, whole, 4):  # a loop over single topics takes a fifth longer in all
            a = topics[k]
            b = topics[k + 1]
            c = topics[k + 2]
            d = topics[k + 3]
            for j in range(LANES):
                first = counts[g, k, j] * a + counts[g, k + 1, j] * b
                second = counts[g, k + 2, j] * c + counts[g, k + 3, j] * d
                sums[j] += first + second
        for k in range(whole, topics.shape[0]):
            for j in range(LANES):
                sums[j] += counts[g, k, j] * topics[k]
        for c in range(min(LANES, n - LANES * g)):
            particle_weights[LANES * g + c] *= sums[c] / urn


@inlined
def _normalise(particle_weights):
    """Divide weights by their mean; returns its log, and the mean square of what they are now."""
    mean = 0.0
    squares = 0.0
    n = particle_weights.shape[0]
    for c in range(n):
        mean += particle_weights[c] / n
    for c in range(n):
        particle_weights[c] /= mean
        squares += particle_weights[c] ** 2 / n
    return math.log(mean), squares


@inlined
def _resample(particle_weights, u, z, n_tokens, counts, copies):
    """Systematic resampling in place: a particle keeps its own place, and further copies take those
    that die.
    """
    n = particle_weights.shape[0]
    total = total_of(particle_weights)
    reached = 0.0
    given = 0
    for c in range(n):
        reached += particle_weights[c] / total * n
        upto = n if c == n - 1 else min(n, math.ceil(reached - u))
        copies[c] = max(0, upto - given)
        given = max(given, upto)
    dead = 0
    for c in range(n):
        while copies[c] > 1:
            while copies[dead] > 0:
                dead += 1
            for i in range(n_tokens):
                z[i, dead] = z[i, c]
            for k in range(counts.shape[1]):
                counts[dead // LANES, k, dead % LANES] = counts[c // LANES, k, c % LANES]
            copies[dead] = 1
            copies[c] -= 1
    particle_weights[:] = 1.0


# ---- filters
class Plan(NamedTuple):
    """Steps of a document's filters before each of its N tokens, and at their end."""

    topics: np.ndarray  # (U, K) float64: the topics' probabilities of the document's words
    n_sweeps: np.ndarray  # (N,) int64: how often the tokens before number i are drawn anew
    stages: np.ndarray  # (N + 1,) int64: the prior priors[stages[i]] holds when number i comes
    priors: np.ndarray  # (n_stages, K) float64: alpha, that of the document at the end
    weights: np.ndarray  # the same as float32
    totals: np.ndarray  # (n_stages,) float64: their sums over topics
    predictions: np.ndarray  # (n_stages, U) float64: sum_k priors_k topics_k


@inlined
def _shuffle(words, keys):
    """Put tokens in a random order."""
    n = words.shape[0]
    bits = np.empty(n + 4, np.uint32)
    random_bits(bits, n, keys.key0, keys.key1, np.int64(0), keys.chain, _ORDER)
    for i in range(n - 1, 0, -1):
        j = (np.uint64(bits[i]) * np.uint64(i + 1)) >> np.uint64(32)
        words[i], words[j] = words[j], words[i]


@inlined
def _keep_ends(z, particle_weights, ends):
    """The topics of 16 particles, drawn by systematic resampling: ends (n_tokens, 16)."""
    total = total_of(particle_weights)
    chosen = np.empty(LANES, np.int64)
    c = 0
    reached = particle_weights[0]
    for j in range(LANES):
        while c < particle_weights.shape[0] - 1 and reached < (j + 0.5) / LANES * total:
            c += 1
            reached += particle_weights[c]
        chosen[j] = c
    for i in range(ends.shape[0]):
        for j in range(LANES):
            ends[i, j] = z[i, chosen[j]]


@inlined
def _fill_ratios(above, below, n, out):
    """Products of (above + j) / (below + j) over j < 0, …, n, and True; where these leave the range
    of numbers their logs, and False.
    """
    out[0] = 1.0
    for j in range(n):
        out[j + 1] = out[j] * ((above + j) / (below + j))
    if _SMALLEST < out[n] < 1 / _SMALLEST:
        return True
    out[0] = 0.0
    for j in range(n):
        out[j + 1] = out[j] + math.log((above + j) / (below + j))
    return False


@inlined
def _multiply_by_exp(particle_weights, counts, log_gains):
    """Multiply weights by the exp of log gains (by count, as counts (n_groups, 16) say) over the
    largest of the products; its log.
    """
    largest = -np.inf
    for c in range(particle_weights.shape[0]):
        log_gain = log_gains[np.int64(counts[c // LANES, c % LANES])]
        particle_weights[c] = math.log(particle_weights[c]) + log_gain
        largest = max(largest, particle_weights[c])
    for c in range(particle_weights.shape[0]):
        particle_weights[c] = math.exp(particle_weights[c] - largest)
    return largest


@inlined
def _prior_changes(plan, n_tokens):
    """True if the prior is another one when so many tokens have come."""
    return n_tokens > 0 and plan.stages[n_tokens] != plan.stages[n_tokens - 1]


@inlined
def _change_prior(particle_weights, counts, plan, n_tokens, gains):
    """Multiply weights by how much more probable the topics of so many tokens are a priori than
    they were before the last of these; log of the mean weight.

    Ratios are products over tokens, since differences of log Gamma lose their digits where priors
    are large; sums of logs where the product leaves the range of numbers. After each topic weights
    are divided by their mean, so that they stay in range. gains (n_tokens + 1,) is work space.
    """
    before = plan.stages[n_tokens - 1]
    now = plan.stages[n_tokens]
    old = plan.priors[before]
    new = plan.priors[now]
    total = 0.0
    for k in range(old.shape[0]):
        if old[k] == new[k]:
            continue
        most = np.int64(0)
        for c in range(particle_weights.shape[0]):
            most = max(most, np.int64(counts[c // LANES, k, c % LANES]))
        if _fill_ratios(new[k], old[k], most, gains):
            for c in range(particle_weights.shape[0]):
                particle_weights[c] *= gains[np.int64(counts[c // LANES, k, c % LANES])]
        else:
            total += _multiply_by_exp(particle_weights, counts[:, k], gains)
        total += _normalise(particle_weights)[0]
    if _fill_ratios(plan.totals[before], plan.totals[now], n_tokens, gains):
        return total + math.log(gains[n_tokens])
    return total + gains[n_tokens]


@njit
def left_to_right(
    document,
    plan,
    n_particles,
    keys,
    work,
    log_means,
    resampled,
    orders,
    ends,
    shares,
):
    """Independent particle filters over the tokens, each in an order of its own. Particles are
    resampled in proportion to their weights, once under half of them count.

    log_means (n, N + 2) get the logs of the estimates of Z before each token, after the last one
    and at the end, resampled (n, N + 2) where particles were, orders (n, N) the tokens as they
    came, ends (n, N, 16) their topics in some particles, and shares (K,) the mean of the topics'
    shares that the particles end with. log_means, resampled and shares are 0 before; work is a
    `work_space`.
    """
    n_tokens = document.word.shape[0]
    n_topics = document.alpha.shape[0]
    n_filters = log_means.shape[0]
    z, counts, sums, bits_of_new, bits = work
    width = z.shape[1]
    order = np.empty(4, np.uint32)
    rows = document.likelihoods
    predicted = np.empty(LANES)
    gains = np.empty(n_tokens + 1)
    particle_weights = np.empty(n_particles)
    copies = np.empty(n_particles, np.int64)
    for f in range(n_filters):
        own = Keys(keys.key0, keys.key1, (keys.chain + f) * width, keys.step)
        words = orders[f]
        for i in range(n_tokens):
            words[i] = document.word[i]
        _shuffle(words, own)
        step = own.step
        total = 0.0
        bits_of_all_chains(bits_of_new, (n_tokens + 3) // 4, own, _NEW)
        counts[:] = 0.0
        particle_weights[:] = 1.0
        for i in range(n_tokens + 1):
            if _prior_changes(plan, i):
                total += _change_prior(particle_weights, counts, plan, i, gains)
            if i == n_tokens:
                break
            alpha = plan.weights[plan.stages[i]]
            for _ in range(plan.n_sweeps[i]):
                step += 1
                bits_of_all_chains(
                    bits, (i + 3) // 4, Keys(own.key0, own.key1, own.chain, step), _Z
                )
                _sweep(alpha, rows, words, i, z, counts, sums, bits, False)
            word = words[i]
            _predict(particle_weights, counts, plan, i, word, predicted)
            log_mean, squares = _normalise(particle_weights)
            total += log_mean
            log_means[f, i + 1] = total
            if squares > 2.0:
                resampled[f, i + 1] = True
                random_bits(order, _ONE, own.key0, own.key1, i + 1, own.chain, _ORDER)
                _resample(particle_weights, np.float64(uniform(order[0])), z, i, counts, copies)
            _draw(alpha, rows, word, counts, sums, bits_of_new, z, i)
        log_means[f, n_tokens + 1] = total
        _keep_ends(z, particle_weights, ends[f])
        for c in range(n_particles):
            for k in range(n_topics):
                shares[k] += particle_weights[c] * counts[c // LANES, k, c % LANES]
    shares /= max(1, n_tokens) * n_particles * n_filters


@njit
def right_to_left(document, plan, words, starts, keys, work, log_steps):
    """Sixteen chains from the target through the distributions of a filter, which took the tokens
    in the order of `words`; log_steps (N + 1, 16), 0 before, get the logs of the factors of their
    weights on the way there.

    Each move of `left_to_right` is reversed. starts (N, 16) are the topics of these tokens.
    """
    n_tokens = words.shape[0]
    z, counts, sums, _, bits = work
    counts[:] = 0.0
    rows = document.likelihoods
    predicted = np.empty(LANES)
    gains = np.empty(n_tokens + 1)
    particle_weights = np.empty(LANES)
    particle_weights[:] = 1.0
    for i in range(n_tokens):
        for c in range(LANES):
            z[i, c] = starts[i, c]
        _add(counts, 0, z, i, np.float32(1))
    step = keys.step
    for i in range(n_tokens, -1, -1):
        if i < n_tokens:
            word = words[i]
            _add(counts, 0, z, i, np.float32(-1))
            _predict(particle_weights, counts, plan, i, word, predicted)
            for c in range(LANES):
                log_steps[i, c] = math.log(particle_weights[c])
            particle_weights[:] = 1.0
            alpha = plan.weights[plan.stages[i]]
            for _ in range(plan.n_sweeps[i]):
                step += 1
                own = Keys(keys.key0, keys.key1, keys.chain, step)
                bits_of_all_chains(bits, (i + 3) // 4, own, _Z)
                _sweep(alpha, rows, words, i, z, counts, sums, bits, True)
        if _prior_changes(plan, i):
            total = _change_prior(particle_weights, counts, plan, i, gains)
            for c in range(LANES):
                log_steps[i, c] += total + math.log(particle_weights[c])
            particle_weights[:] = 1.0

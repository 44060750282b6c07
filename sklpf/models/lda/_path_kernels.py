"""Numba kernels of a document's path in latent Dirichlet allocation: collapsed Gibbs on the tokens'
topics.

With the prior's means m_k = alpha_k / A and the counts c_k of the topics, of a chain with topics z
(N,) int32

    log_base = sum_n log m[z_n] topics[z_n, w_n],
    gain = sum_k sum_(j < c_k) log (alpha_k + j) / m_k - log denominator,

and log f_beta = log_base + beta gain. The conditional of a token is proportional to topics[k, w]
times m_k ((alpha_k + c_k) / m_k)^beta, where c does not count the token itself. These weights are
float32, 16 topics in a vector; counts are integers, and densities float64. The outer loop is over
tokens and the inner one over chains, so that no load of a chain waits for its own last store.
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf._utils.layout import LANES
from sklpf.kernels import FIRST, bits_of_one_chain, exp64, implements, inlined, njit, uniform
from sklpf.kernels import _programs as programs
from sklpf.kernels._vectors import load, store, zeros
from sklpf.models.lda._vector_kernels import draw_topic

_LEAST = 1e-290  # relative weight of counts that has all its digits as a number, not as a log


class Document(NamedTuple):
    """A document as kernels know it, with N tokens of U distinct words and of K topics;
    read-only.
    """

    word: np.ndarray  # (N,) int32: which of the distinct words a token is
    log_base: np.ndarray  # (U, K) float64: log m_k topics[k, w]
    # (U, K padded to 16) float32: topics[k, w] over the largest of w, 0 in the padding
    likelihoods: np.ndarray
    mean: np.ndarray  # (K,) float64: m
    alpha: np.ndarray  # (K,) float64
    log_urn: np.ndarray  # (K, N + 2) float64: sum_(j < c) log (alpha_k + j) / m_k
    log_denominator: float  # log A (A + 1) … (A + N - 1)


class Scratch(NamedTuple):
    """Work space of n chains."""

    counts: np.ndarray  # (n, K) int32: tokens of every topic
    # (n, padded K) float32: the topics' prior weights at the chain's beta, 0 in the padding
    weights: np.ndarray
    sums: np.ndarray  # (padded K,) float32: see `draw_topic`
    bits: np.ndarray  # (n, N + 4) uint32


# ---- one token
@inlined
def _weight(document, k, count, beta):
    """Prior weight m_k ((alpha_k + count) / m_k)^beta of topic k with so many other tokens."""
    if beta == 1.0:
        return np.float32(document.alpha[k] + count)
    log_urn = document.log_urn[k]
    return np.float32(document.mean[k] * exp64(beta * (log_urn[count + 1] - log_urn[count])))


# ---- densities
@njit
def urn_gain(document, counts):
    """Gain of log f from level 0 to level 1 with these counts of the topics."""
    total = -document.log_denominator
    for k in range(counts.shape[0]):
        total += document.log_urn[k, counts[k]]
    return total


# ---- what the programs need
programs.tempered(Document)


@implements(programs.scratch, Document)
def _scratch(model, state):
    n, n_tokens = state.z.shape
    padded = model.likelihoods.shape[1]
    counts = np.zeros((n, model.alpha.shape[0]), np.int32)
    for c in range(n):
        for i in range(n_tokens):
            counts[c, state.z[c, i]] += 1
    return Scratch(
        counts,
        np.zeros((n, padded), np.float32),
        np.zeros(padded, np.float32),
        np.empty((n, n_tokens + 4), np.uint32),
    )


@implements(programs.sweep, Document)
def _sweep(model, state, betas, reverse, keys, work):
    """Gibbs sampling of the tokens in turn, or in reverse."""
    z = state.z
    n, n_tokens = z.shape
    n_topics = model.alpha.shape[0]
    counts = work.counts
    weights = work.weights
    sums = work.sums
    bits = work.bits
    rows = model.likelihoods
    padded = rows.shape[1]
    if n_tokens == 0:
        return
    for c in range(n):
        bits_of_one_chain(bits[c], n_tokens, keys, c, FIRST)
        counts[c, z[c, n_tokens - 1 if reverse else 0]] -= 1
        for k in range(n_topics):
            weights[c, k] = _weight(model, k, counts[c, k], betas[c])
    for j in range(n_tokens):
        i = n_tokens - 1 - j if reverse else j
        following = i - 1 if reverse else i + 1
        for c in range(n):
            total = zeros(sums)
            for k in range(0, padded, LANES):
                likelihoods = load(rows, model.word[i] * padded + k)
                total = total + load(weights, c * padded + k) * likelihoods
                store(sums, k, total)
            topic = draw_topic(total, sums, n_topics, uniform(bits[c, i]))
            z[c, i] = topic
            counts[c, topic] += 1
            weights[c, topic] = _weight(model, topic, counts[c, topic], betas[c])
            if j + 1 < n_tokens:
                # The next token leaves its topic now: a vector that is read soon after a store into
                # it would wait for it.
                old = z[c, following]
                counts[c, old] -= 1
                weights[c, old] = _weight(model, old, counts[c, old], betas[c])
    for c in range(n):  # anew, so that rounding does not build up
        state.log_base[c] = 0.0
        for i in range(n_tokens):
            state.log_base[c] += model.log_base[model.word[i], z[c, i]]
        state.gain[c] = urn_gain(model, counts[c])


@implements(programs.summarise, Document)
def _summarise(model, state, c, out):
    """Tokens of every topic."""
    out[:] = 0.0
    for i in range(state.z.shape[1]):
        out[state.z[c, i]] += 1.0


# ---- exact enumeration, by the counts of the topics
@inlined
def _binomials(n_topics, n_tokens):
    """Table of t + b over t for t < n_topics and b <= n_tokens."""
    table = np.ones((n_topics, n_tokens + 1), np.int64)
    for t in range(1, n_topics):
        for b in range(1, n_tokens + 1):
            table[t, b] = table[t - 1, b] + table[t, b - 1]
    return table


@inlined
def _next_counts(counts):
    """The next counts of the topics, with the same sum, in colexicographic order of the sorted
    topics.
    """
    t = 0
    while counts[t] == 0:
        t += 1
    rest = counts[t] - 1
    counts[t] = 0
    counts[0] = rest
    counts[t + 1] += 1


@inlined
def _add_token(previous, weights, table, counts, n_tokens, in_logs, out):
    """Weights of all counts of n tokens, or their logs, from those of n - 1: remove a token of each
    topic in turn, times its weight.

    The rank of counts is the sum over t of (t + b_t over t) - (t + a_t over t), with a_t tokens in
    the topics before t and b_t in these and t.
    """
    counts[:] = 0
    counts[0] = n_tokens
    last = counts.shape[0] - 1
    for rank in range(out.shape[0]):
        below = rank
        above = 0
        b = n_tokens
        total = -np.inf if in_logs else 0.0
        for t in range(last, -1, -1):
            if counts[t] > 0:
                a = b - counts[t]
                below -= table[t, b] - table[t, a]
                former = previous[below + (table[t, b - 1] - table[t, a]) + above]
                if in_logs:
                    term = weights[t] + former
                    larger = max(total, term)
                    total = larger + math.log1p(math.exp(min(total, term) - larger))
                else:
                    total += weights[t] * former
                above += table[t, b - 1] - (table[t, a - 1] if a > 0 else 0)
                b = a
        out[rank] = total
        if counts[last] < n_tokens:
            _next_counts(counts)


@njit
def log_weights_of_counts(document, beta, out):
    """Log of f_beta summed over the assignments z that give topics the same counts, for all counts
    of N tokens: out.
    """
    n_tokens = document.word.shape[0]
    n_topics = document.alpha.shape[0]
    table = _binomials(n_topics, n_tokens)
    counts = np.zeros(n_topics, np.int64)
    weights = np.empty(n_topics)
    values = np.ones(1)
    offset = 0.0
    in_logs = False
    for i in range(n_tokens):
        row = document.log_base[document.word[i]]
        more = np.empty(table[n_topics - 1, i + 1])
        if not in_logs:
            largest = row.max()
            for k in range(n_topics):
                weights[k] = math.exp(row[k] - largest)
            _add_token(values, weights, table, counts, i + 1, False, more)
            scale = more.max()
            if more.min() >= _LEAST * scale:
                values = more / scale
                offset = offset + largest + math.log(scale)
                continue
            # The prior may favour counts that are this improbable without it: logs from here on.
            in_logs = True
            values = np.log(values)
        _add_token(values, row, table, counts, i + 1, True, more)
        values = more
    if not in_logs:
        values = np.log(values)
    counts[:] = 0
    counts[0] = n_tokens
    for rank in range(out.shape[0]):
        out[rank] = values[rank] + offset + beta * urn_gain(document, counts)
        if counts[n_topics - 1] < n_tokens:
            _next_counts(counts)

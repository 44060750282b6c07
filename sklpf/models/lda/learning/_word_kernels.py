"""Numba kernels of topics in latent Dirichlet allocation: rows of words, updates, bounds and
moments.

Words are rows: lambda of a word over all topics lies side by side, as base + scale * weights. Sums
are float64.
"""

import math

import numpy as np

from sklpf.kernels import exp64, inlined, njit
from sklpf.kernels._vectors import flat
from sklpf.models.lda._vector_kernels import (
    FLUSH,
    add_four,
    digamma,
    exp_digamma,
    log_gamma,
    total_of,
    trigamma,
)

_LOWEST = -1e4  # of E log beta: exponentials below this are 0 at any temperature


# ---- words
@njit
def fill_exp_rows(weights, words, base, scale, factors, out):
    """out[i] = exp(E log beta) of words[i], for lambda = base + scale * weights and factors
    exp(-digamma(sums)).
    """
    for i in range(words.shape[0]):
        row = weights[words[i]]
        for k in range(row.shape[0]):
            value = exp_digamma(base + scale * np.float64(row[k])) * factors[k]
            out[i, k] = value if value > FLUSH else 0.0


@njit
def fill_log_rows(weights, words, base, scale, offsets, inverse, log_rows, rows):
    """log_rows[i] = E log beta of words[i], not below _LOWEST; offsets are digamma(sums). And
    rows[i] = exp(inverse * log_rows[i]) where there are rows, which may be log_rows themselves.
    """
    for i in range(words.shape[0]):
        row = weights[words[i]]
        n_topics = row.shape[0]
        for k in range(n_topics):
            log_rows[i, k] = max(digamma(base + scale * np.float64(row[k])) - offsets[k], _LOWEST)
        if rows.shape[0] > 0:
            fill_powers(log_rows[i, :n_topics], inverse, rows[i, :n_topics])


@njit
def fill_powers(log_row, inverse, out):
    """out = exp(inverse * log_row), small values flushed to 0."""
    for k in range(out.shape[0]):
        value = exp64(inverse * np.float64(log_row[k]))
        out[k] = value if value > FLUSH else 0.0


@njit
def add_statistics(columns, documents, ratios, theta, rows, words, factor, weights, totals):
    """weights[words[i]] += factor * rows[i] * sum of ratios * theta over the documents with that
    word; totals too.

    columns, documents and ratios are the batch word by word: where each word begins, and its
    documents.
    """
    n_topics = weights.shape[1]
    padded = rows.shape[1]
    sums = np.empty_like(rows[0])
    starts = np.zeros(4, np.int64)
    factors = np.zeros(4, ratios.dtype)
    for i in range(words.shape[0]):
        sums[:] = 0
        for first in range(columns[i], columns[i + 1], 4):
            factors[:] = 0
            for j in range(first, min(first + 4, columns[i + 1])):
                starts[j - first] = documents[j] * padded
                factors[j - first] = ratios[j]
            add_four(flat(factors), flat(theta), flat(starts), 0, padded, flat(sums))
        _add_products(weights[words[i]], totals, sums[:n_topics], rows[i, :n_topics], factor)


@njit
def add_local_statistics(
    columns, documents, ratios, theta, log_rows, inverse, words, factor, weights, totals
):
    """Like `add_statistics` where each document has an inverse temperature of its own."""
    n_topics = weights.shape[1]
    sums = np.empty_like(log_rows[0])
    power = np.zeros_like(log_rows[0])
    ones = np.ones_like(log_rows[0])
    for i in range(words.shape[0]):
        sums[:] = 0
        for j in range(columns[i], columns[i + 1]):
            fill_powers(log_rows[i, :n_topics], inverse[documents[j]], power[:n_topics])
            for k in range(sums.shape[0]):
                sums[k] += ratios[j] * power[k] * theta[documents[j], k]
        _add_products(weights[words[i]], totals, sums[:n_topics], ones[:n_topics], factor)


@inlined
def _add_products(weights, totals, first, second, factor):
    """Add factor * first * second to the weights and to the totals."""
    for k in range(weights.shape[0]):
        more = factor * np.float64(first[k]) * np.float64(second[k])
        weights[k] += more
        totals[k] += more


# ---- bounds
@njit
def dirichlet_terms(prior, base, scale, values, of_rows, of_topics):
    """Terms that q's lambda = base + scale * values (n, K) add to E[log p - log q] of Dirichlet
    distributions, but for log Gamma of the prior (K,) and of the sums: sums over topics, (n,).

    The digamma function of the sums is of_rows (n,) + of_topics (K,).
    """
    sums = np.empty(values.shape[0])
    terms = np.empty(values.shape[1])
    for i in range(values.shape[0]):
        for k in range(values.shape[1]):
            value = base + scale * np.float64(values[i, k])
            expected_log = digamma(value) - (of_rows[i] + of_topics[k])
            terms[k] = (prior[k] - value) * expected_log + log_gamma(value)
        sums[i] = total_of(terms)
    return sums


# ---- moments
@njit
def mean_polygammas(prior, counts):
    """Means over documents of digamma and trigamma of prior + counts, (K,) each."""
    first, second = np.zeros(prior.shape[0]), np.zeros(prior.shape[0])
    for d in range(counts.shape[0]):
        for k in range(prior.shape[0]):
            first[k] += digamma(prior[k] + counts[d, k])
            second[k] += trigamma(prior[k] + counts[d, k])
    return first / counts.shape[0], second / counts.shape[0]


@njit
def power_sums(base, scale, weights, power):
    """Sum over words, (K,), of Gamma(lambda + power) / Gamma(lambda) for lambda = base + scale *
    weights.
    """
    sums = np.zeros(weights.shape[1])
    for v in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            value = base + scale * np.float64(weights[v, k])
            sums[k] += exp64(log_gamma(value + power) - log_gamma(value))
    return sums


@njit
def log_tempered_tokens(gamma, powers, log_sums):
    """A_d(s) = log sum_k E[theta_k^s] exp(log_sums[s, k]), shape (n, S), for theta ~
    Dirichlet(gamma_d).
    """
    out = np.empty((gamma.shape[0], powers.shape[0]))
    terms = np.empty(gamma.shape[1])
    for d in range(gamma.shape[0]):
        total = gamma[d].sum()
        for j in range(powers.shape[0]):
            for k in range(gamma.shape[1]):
                value = gamma[d, k]
                gain = log_gamma(value + powers[j]) - log_gamma(value)
                terms[k] = exp64(gain + log_sums[j, k])
            out[d, j] = math.log(terms.sum()) + log_gamma(total) - log_gamma(total + powers[j])
    return out

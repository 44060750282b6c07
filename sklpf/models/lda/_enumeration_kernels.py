"""Numba kernels that sum a document's density over all topics of its tokens, by the counts of the
topics.
"""

import math

import numpy as np

from sklpf.kernels import inner, njit
from sklpf.models.lda._path_kernels import urn_gain

_LEAST = 1e-290  # relative weight of counts that has all its digits as a number, not as a log


@inner
def _binomials(n_topics, n_tokens):
    """Table of t + b over t for t < n_topics and b <= n_tokens."""
    table = np.ones((n_topics, n_tokens + 1), np.int64)
    for t in range(1, n_topics):
        for b in range(1, n_tokens + 1):
            table[t, b] = table[t - 1, b] + table[t, b - 1]
    return table


@inner
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


@inner
def _add_token(previous, weights, table, counts, n_tokens, out):
    """Weights of all counts of n tokens from those of n - 1: remove a token of each topic in turn,
    times its weight.

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
        total = 0.0
        for t in range(last, -1, -1):
            if counts[t] > 0:
                a = b - counts[t]
                below -= table[t, b] - table[t, a]
                total += weights[t] * previous[below + (table[t, b - 1] - table[t, a]) + above]
                above += table[t, b - 1] - (table[t, a - 1] if a > 0 else 0)
                b = a
        out[rank] = total
        if counts[last] < n_tokens:
            _next_counts(counts)


@inner
def _add_token_in_logs(previous, weights, table, counts, n_tokens, out):
    """`_add_token` for logs of weights."""
    counts[:] = 0
    counts[0] = n_tokens
    last = counts.shape[0] - 1
    for rank in range(out.shape[0]):
        below = rank
        above = 0
        b = n_tokens
        total = -np.inf
        for t in range(last, -1, -1):
            if counts[t] > 0:
                a = b - counts[t]
                below -= table[t, b] - table[t, a]
                term = weights[t] + previous[below + (table[t, b - 1] - table[t, a]) + above]
                above += table[t, b - 1] - (table[t, a - 1] if a > 0 else 0)
                b = a
                larger = max(total, term)
                total = larger + math.log1p(math.exp(min(total, term) - larger))
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
            _add_token(values, weights, table, counts, i + 1, more)
            scale = more.max()
            if more.min() >= _LEAST * scale:
                values = more / scale
                offset = offset + largest + math.log(scale)
                continue
            # The prior may favour counts that are this improbable without it: logs from here on.
            in_logs = True
            values = np.log(values)
        _add_token_in_logs(values, row, table, counts, i + 1, more)
        values = more
    if not in_logs:
        values = np.log(values)
    counts[:] = 0
    counts[0] = n_tokens
    for rank in range(out.shape[0]):
        out[rank] = values[rank] + offset + beta * urn_gain(document, counts)
        if counts[n_topics - 1] < n_tokens:
            _next_counts(counts)

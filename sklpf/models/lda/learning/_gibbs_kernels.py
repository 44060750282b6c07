"""Numba kernels of collapsed Gibbs sampling for a corpus: the topics of all tokens, topics and
shares integrated out.

A token of word w in document d has the conditional (n_dk + alpha_k) (n_wk + eta) / (n_k + V eta),
counts without itself (Griffiths & Steyvers 2004, equation 5). All topics are weighed, 16 in a
vector, which takes less than what sparse samplers save up to hundreds of topics. Weights are
float32 (relative error 1e-7), counts are integers.
"""

import math

import numpy as np

from sklpf._utils.layout import LANES
from sklpf.kernels import FIRST, bits_of_one_chain, njit, uniform
from sklpf.kernels._vectors import load, store, to_float32, zeros
from sklpf.models.lda._vector_kernels import draw_topic

_LEAST = -100.0  # log2 of a weight that float32 holds


@njit
def sweep(words, indptr, alpha, eta, z, by_word, by_topic, keys, work):
    """Draw the topics of all tokens anew, in turn; one that has none yet (-1) is drawn given those
    before it.

    Parameters
    ----------
    words, indptr : (N,) int32, (n + 1,) int64
        The words of the tokens, and where documents begin.
    alpha, eta : (K,) float64, float
    z : (N,) int32
    by_word, by_topic : (V, padded K) int32, (K,) int64
        n_wk and n_k.
    keys : Keys
        The documents are its chains.
    work : (2, padded K) float32
        Zeros, aligned.
    """
    n_topics = alpha.shape[0]
    padded = by_word.shape[1]
    longest = np.diff(indptr).max()
    bits = np.empty(longest + 4, np.uint32)
    by_document = np.zeros(n_topics, np.int32)
    shares, sums = work
    reciprocals = np.empty(n_topics)
    eta32 = np.float32(eta)
    total = by_word.shape[0] * eta
    # A power of 2 for weights that would be lost in float32, as priors are so small.
    least = alpha.max() * eta / (words.shape[0] + total)
    scale = 2.0 ** max(0.0, math.ceil(_LEAST - math.log2(least)))
    for k in range(n_topics):
        reciprocals[k] = scale / (by_topic[k] + total)
    for d in range(indptr.shape[0] - 1):
        begin = indptr[d]
        n = indptr[d + 1] - indptr[d]
        bits_of_one_chain(bits, n, keys, d, FIRST)
        by_document[:] = 0
        for i in range(begin, begin + n):
            if z[i] >= 0:
                by_document[z[i]] += 1
        for k in range(n_topics):
            shares[k] = (by_document[k] + alpha[k]) * reciprocals[k]
        for i in range(n):
            word = words[begin + i]
            k = z[begin + i]
            if k >= 0:
                by_word[word, k] -= 1
                by_document[k] -= 1
                by_topic[k] -= 1
                reciprocals[k] = scale / (by_topic[k] + total)
                shares[k] = (by_document[k] + alpha[k]) * reciprocals[k]
            weight = zeros(sums)
            for j in range(0, padded, LANES):
                likelihoods = to_float32(load(by_word, word * padded + j)) + eta32
                weight = weight + likelihoods * load(shares, j)
                store(sums, j, weight)
            k = draw_topic(weight, sums, n_topics, uniform(bits[i]))
            by_word[word, k] += 1
            by_document[k] += 1
            by_topic[k] += 1
            reciprocals[k] = scale / (by_topic[k] + total)
            shares[k] = (by_document[k] + alpha[k]) * reciprocals[k]
            z[begin + i] = k

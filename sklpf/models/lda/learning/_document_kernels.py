"""Numba kernels of the topics of documents in latent Dirichlet allocation.

Words are rows: exp(E log beta) of a word lies in one padded row. Topics that a document hardly has
are dropped; when half are, or at once where topics are few, the others' part of the document's rows
is copied, topic by topic, to where it stays in a near cache. Rows and theta have the type of the
counts; gamma and the digamma function are float64. Nothing here mixes documents: a document's
numbers are the same in any company.
"""

import math
from typing import NamedTuple

import numpy as np

from sklpf._utils.layout import LANES
from sklpf.kernels import exp64, inlined, njit
from sklpf.kernels._vectors import flat
from sklpf.models.lda._vector_kernels import (
    FLUSH,
    add_four,
    digamma,
    exp_digamma,
    four_dots,
    total_of,
)
from sklpf.models.lda.learning._word_kernels import fill_powers

_REGISTER = 8  # gamma and the like go eight at a time
# topics: a document's matrix is turned at once, and one of more topics when half of them are left
_NARROW = 32
_SMALL = 0.002  # sums of gamma whose exp(digamma) is nearly out of range
_NOTHING = 1e-100  # gamma and alpha in the padding, where theta must be finite
# added to the probabilities of words under a document's topics, as in scikit-learn
_EPSILON = 2.0**-52
# Tokens, or their share of a document of less than one, below which a topic is dropped
_NEGLIGIBLE = 1e-6


@inlined
def _padded(n, multiple):
    """The next multiple."""
    return (n + multiple - 1) // multiple * multiple


# ---- one document
class Scratch(NamedTuple):
    """Work space for documents of up to n words and of K topics, both padded to multiples of LANES.

    While a document has many topics its matrix is the words' own rows. Later it is a copy with a
    row for each topic that is left, from which topics are dropped without moving anything.
    """

    powers: np.ndarray  # (n * K,) or empty: the words' rows at the document's own temperature
    matrix: np.ndarray  # ((K / 2 + 1) * n,) or more: rows of topics, the last of them 0
    word_starts: np.ndarray  # (n,) int64: where the rows of words begin
    topic_starts: np.ndarray  # (K,) int64: where the rows of topics begin
    counts: np.ndarray  # (n,)
    norms: np.ndarray  # (n,) probabilities
    ratios: np.ndarray  # (n,) counts / probabilities
    theta: np.ndarray  # (K,) exp(b E log theta)
    sums: np.ndarray  # (K,) sum of ratios * rows
    topics: np.ndarray  # (K,) int64: which topics are left
    gamma: np.ndarray  # (K,) float64; nearly 0 in the padding, as alpha
    alpha: np.ndarray  # (K,) float64
    ones: np.ndarray  # (K,) float64: 0 in the padding
    moves: np.ndarray  # (4 K,) float64: changes of gamma, gamma, whether a topic stays, and zeros
    totals: np.ndarray  # (4,) float64: the sums of those
    slots: np.ndarray  # (4,) int64: where those begin


@inlined
def _most_left(width):
    """The most topics for which the matrix is turned."""
    return width if width <= _NARROW else width // 2


def scratch_for(documents, first, last) -> Scratch:
    """Work space for documents first, …, last - 1; the matrix's row of zeros in its place."""
    dtype = documents.theta.dtype
    n_topics = documents.theta.shape[1]
    n_words = _padded(np.diff(documents.indptr[first : last + 1]).max(), LANES)
    matrix = np.empty((_most_left(n_topics) + 1) * n_words, dtype)
    matrix[-n_words:] = 0
    return Scratch(
        powers=np.zeros(n_words * n_topics if documents.own else 0, dtype),
        matrix=matrix,
        word_starts=np.zeros(n_words, np.int64),
        topic_starts=np.zeros(n_topics, np.int64),
        counts=np.zeros(n_words, dtype),
        norms=np.zeros(n_words, dtype),
        ratios=np.zeros(n_words, dtype),
        theta=np.zeros(n_topics, dtype),
        sums=np.zeros(n_topics, dtype),
        topics=np.zeros(n_topics, np.int64),
        gamma=np.zeros(n_topics),
        alpha=np.zeros(n_topics),
        ones=np.zeros(n_topics),
        moves=np.zeros(4 * n_topics),
        totals=np.zeros(4),
        slots=np.zeros(4, np.int64),
    )


@inlined
def _explain_words(scratch, rows, n_words, width):
    """Set norms, ratios and sums for theta as it is, word by word."""
    scratch.sums[:] = 0
    epsilon = scratch.norms.dtype.type(_EPSILON)
    theta = flat(scratch.theta)
    norms = flat(scratch.norms)
    ratios = flat(scratch.ratios)
    rows = flat(rows)
    starts = flat(scratch.word_starts)
    sums = flat(scratch.sums)
    for i in range(0, n_words, 4):
        four_dots(theta, rows, starts, i, width, norms)
        for j in range(i, i + 4):
            norms[j] += epsilon
            ratios[j] = scratch.counts[j] / norms[j]
        add_four(ratios, rows, starts, i, width, sums)


@inlined
def _explain_topics(scratch, n_left, width):
    """Like `_explain_words`, topic by topic of those that are left; width is that of the words."""
    theta = flat(scratch.theta)
    norms = flat(scratch.norms)
    ratios = flat(scratch.ratios)
    matrix = flat(scratch.matrix)
    starts = flat(scratch.topic_starts)
    sums = flat(scratch.sums)
    scratch.norms[:width] = _EPSILON
    for j in range(0, n_left, 4):
        add_four(theta, matrix, starts, j, width, norms)
    for i in range(width):
        scratch.ratios[i] = scratch.counts[i] / scratch.norms[i]
    for j in range(0, n_left, 4):
        four_dots(ratios, matrix, starts, j, width, sums)


@inlined
def _set_theta(gamma, total, inverse, theta):
    """theta = exp(inverse * E log theta) for Dirichlet(gamma) with sum `total`."""
    if inverse == 1.0 and total > _SMALL:
        factor = 1.0 / exp_digamma(total)
        for k in range(gamma.shape[0]):
            value = exp_digamma(gamma[k]) * factor
            theta[k] = value if value > FLUSH else 0.0
        return
    offset = digamma(total)
    for k in range(gamma.shape[0]):
        value = exp64(inverse * (digamma(gamma[k]) - offset))
        theta[k] = value if value > FLUSH else 0.0


@inlined
def _drop(scratch, gamma, width):
    """Drop topics without tokens, whose gamma is final and goes to `gamma`; returns the width of
    those that are left.

    The matrix stays as it is; the starts of the topics move along.
    """
    n = np.int64(0)
    for k in range(width):
        if scratch.ones[k] == 0.0:
            continue
        if scratch.moves[2 * width + k] == 0.0:
            gamma[scratch.topics[k]] = scratch.gamma[k]
            continue
        scratch.gamma[n] = scratch.gamma[k]
        scratch.alpha[n] = scratch.alpha[k]
        scratch.topics[n] = scratch.topics[k]
        scratch.topic_starts[n] = scratch.topic_starts[k]
        n += 1
    width = _padded(n, _REGISTER)
    _pad(scratch, n, width)
    return width


@inlined
def _pad(scratch, n, width):
    """Set what lies behind n topics so that it changes no sum."""
    scratch.ones[:n] = 1.0
    scratch.ones[n:width] = 0.0
    scratch.gamma[n:width] = _NOTHING
    scratch.alpha[n:width] = _NOTHING
    scratch.sums[n:width] = 0.0
    scratch.topic_starts[n:width] = scratch.matrix.shape[0] - scratch.counts.shape[0]
    scratch.moves[3 * width : 4 * width] = 0.0


@inlined
def _turn(scratch, rows, n_words, n_left, width):
    """Copy the words' rows, topic by topic; width is that of the words."""
    for i in range(n_words):
        begin = scratch.word_starts[i]
        for j in range(n_left):
            scratch.matrix[j * width + i] = rows[begin + scratch.topics[j]]
    for j in range(n_left):
        scratch.matrix[j * width + n_words : (j + 1) * width] = 0
        scratch.topic_starts[j] = j * width


@inlined
def _settle(scratch, rows, gamma, n_words, inverse, tolerance, max_iter, threshold):
    """Update gamma until its changes sum to less than `tolerance`.

    theta, ratios and sums are then up to date. Returns the width of the topics that are left, and
    whether the matrix is a copy of theirs.
    """
    n_kept = gamma.shape[0]
    width = scratch.gamma.shape[0]
    turned = False
    rest = 0.0
    total = total_of(gamma)
    width_words = _padded(n_words, LANES)
    for iteration in range(max_iter + 1):
        _set_theta(scratch.gamma[:width], total, inverse, scratch.theta[:width])
        if turned:
            _explain_topics(scratch, n_kept, width_words)
        else:
            _explain_words(scratch, rows, n_words, width)
        if iteration == max_iter:
            break
        for k in range(width):
            tokens = np.float64(scratch.theta[k]) * np.float64(scratch.sums[k])
            new = scratch.alpha[k] + inverse * tokens
            scratch.moves[k] = abs(new - scratch.gamma[k])
            scratch.moves[width + k] = new
            scratch.moves[2 * width + k] = 1.0 if tokens > threshold else 0.0
            scratch.gamma[k] = new
        scratch.slots[1] = width
        scratch.slots[2] = 2 * width
        scratch.slots[3] = 3 * width
        four_dots(
            flat(scratch.ones),
            flat(scratch.moves),
            flat(scratch.slots),
            0,
            width,
            flat(scratch.totals),
        )
        change = scratch.totals[0]
        total = scratch.totals[1] + rest
        n_left = np.int64(scratch.totals[2])
        if n_left > 0 and (
            _padded(n_left, 4) < _padded(n_kept, 4) if turned else n_left <= _most_left(width)
        ):
            before = scratch.totals[1]
            width = _drop(scratch, gamma, width)
            n_kept = n_left
            if not turned:
                _turn(scratch, rows, n_words, n_left, width_words)
                turned = True
            for k in range(n_left):
                before -= scratch.gamma[k]
            rest += before
        if change < tolerance:
            max_iter = iteration + 1
    return width, turned


@njit
def infer(documents, first, last, scratch, alpha, joint, tolerance, max_iter):
    """Update gamma of documents first, …, last - 1 until it settles, from the gamma given, and set
    their theta, ratios and values.

    Parameters
    ----------
    documents : sklpf.models.lda.learning._posterior.Documents
    scratch : Scratch
        As `scratch_for` returns it for these documents.
    alpha : (K,)
    joint : bool
        Whether `joints` are set, which needs `log_rows`.
    tolerance : float
        Largest mean change of gamma at which iterations stop.
    """
    words = documents.local
    counts = documents.counts
    indptr = documents.indptr
    log_rows = documents.log_rows
    gamma = documents.gamma
    own = documents.own
    n_topics = alpha.shape[0]
    padded = documents.theta.shape[1]
    rows = scratch.powers if own else documents.rows.reshape(-1)
    for d in range(first, last):
        span = slice(indptr[d], indptr[d + 1])
        inverse = documents.inverse[d if own else 0]
        if own:  # rows at the document's own temperature
            for i in range(indptr[d + 1] - indptr[d]):
                begin = i * padded
                row = log_rows[words[indptr[d] + i], :n_topics]
                fill_powers(row, inverse, scratch.powers[begin : begin + n_topics])
        tokens = _start(scratch, words[span], counts[span], alpha, gamma[d], 0 if own else padded)
        threshold = _NEGLIGIBLE * min(1.0, tokens)
        n_words = indptr[d + 1] - indptr[d]
        width, turned = _settle(
            scratch, rows, gamma[d], n_words, inverse, tolerance * n_topics, max_iter, threshold
        )
        documents.values[d] = _finish(
            scratch,
            counts[span],
            width,
            gamma[d],
            documents.theta[d],
            documents.ratios[span],
            inverse,
        )
        if joint:
            documents.joints[d] = _expected_log_joint(
                scratch, rows, log_rows, words[span], gamma[d], width, turned
            )


@inlined
def _start(scratch, words, counts, alpha, gamma, padded):
    """Set counts, starts, gamma and alpha; padded is 0 if the document has rows of its own. Returns
    its tokens.
    """
    n_words = counts.shape[0]
    n_topics = alpha.shape[0]
    tokens = 0.0
    for i in range(n_words):
        scratch.counts[i] = counts[i]
        scratch.word_starts[i] = words[i] * padded if padded > 0 else i * scratch.gamma.shape[0]
        tokens += counts[i]
    scratch.counts[n_words : _padded(n_words, LANES)] = 0
    scratch.word_starts[n_words : _padded(n_words, LANES)] = 0
    for k in range(n_topics):
        scratch.topics[k] = k
        scratch.gamma[k] = gamma[k]
        scratch.alpha[k] = alpha[k]
    _pad(scratch, n_topics, scratch.gamma.shape[0])
    return tokens


@inlined
def _finish(scratch, counts, width, gamma, theta, ratios, inverse):
    """Write gamma, theta and inverse * counts / probabilities; returns sum of counts * log
    probability.
    """
    value = 0.0
    for i in range(counts.shape[0]):
        ratios[i] = inverse * scratch.ratios[i]
        value += counts[i] * math.log(scratch.norms[i])
    theta[:] = 0
    for k in range(width):
        if scratch.ones[k] > 0.0:
            gamma[scratch.topics[k]] = scratch.gamma[k]
            theta[scratch.topics[k]] = scratch.theta[k]
    return value


@inlined
def _expected_log_joint(scratch, rows, log_rows, words, gamma, width, turned):
    """U = sum_v n_v sum_k phi_vk (E log theta_k + E log beta_kv), after `_settle`."""
    offset = digamma(total_of(gamma))
    value = 0.0
    sums = scratch.moves[:width]
    sums[:] = 0.0
    for i in range(words.shape[0]):
        log_row = log_rows[words[i]]
        ratio = scratch.ratios[i]
        row = rows[scratch.word_starts[i] :]
        for k in range(width):
            if scratch.ones[k] > 0.0:
                power = scratch.matrix[scratch.topic_starts[k] + i] if turned else row[k]
                sums[k] += np.float64(ratio * power) * log_row[scratch.topics[k]]
    for k in range(width):
        if scratch.ones[k] > 0.0:
            expected = digamma(scratch.gamma[k]) - offset
            value += scratch.theta[k] * (sums[k] + scratch.sums[k] * expected)
    return value

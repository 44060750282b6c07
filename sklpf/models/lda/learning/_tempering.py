"""Tempering for latent Dirichlet allocation: the temperature of every update of the topics until
T = 1, and the normaliser C(T) of the tempered likelihood.

The temperature is on a schedule, learned for all documents, or learned for each. Mandt et al.
(2016) print two things that don't go together: their updates temper the model with the topics of
the tokens (appendix B.2), their C(T) belongs to the one in which those are summed out (equations
16 to 18). Both are here; `log_partition` computes the one that fits the updates unless it is told
otherwise. s = 1 / T throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from sklpf._utils.numbers import Array
from sklpf.models.lda._counts import lengths
from sklpf.models.lda.learning._posterior import Documents, Posterior
from sklpf.uncertainty import log_mean_exp
from sklpf.variational import (
    Annealed,
    GlobalTempering,
    Temperatures,
    temperature_ladder,
    temperature_posterior,
    temperature_schedule,
    tempering_of,
)

# what did best on news and newsgroup posts
_HIGHEST = {"annealed": 1.5, "global": 2.0, "local": 10.0}
_N_TEMPERED = 3.0  # passes above T = 1
_LONGEST_SCHEDULE = 10**7
# temperatures at which log C and the moments of documents are computed; in between they are smooth
_NODES = 12


# ---- the temperature of every update
class Cooling:
    """The temperature of every update of the topics until T = 1.

    Parameters
    ----------
    tempering : Temperatures
        Its `n_sweeps`, at least 1, are the updates above T = 1.
    n_tokens : float, default=0
        Tokens of the corpus, for a global temperature.
    smoothing : float, default=1
        Weight of a new batch in the running mean of a token's U, for a global temperature.
    """

    def __init__(self, tempering: Temperatures, n_tokens: float = 0.0, smoothing: float = 1.0):
        self.tempering = tempering
        self.n_left = tempering.n_sweeps
        self.n_tokens = n_tokens
        self.smoothing = smoothing
        self.joint: float | None = None  # mean U of a token

    def infer(self, posterior: Posterior, X, gamma) -> Documents:
        """`Posterior.infer` at the temperature of the next update."""
        tempering = self.tempering
        inverse = tempering.inverse
        if isinstance(tempering, DocumentTempering):
            # Every document first settles at the mean temperature, from which its own follows.
            first = posterior.infer(X, gamma, inverse, joint=True)
            gamma = first.gamma
            inverse = tempering.inverses(posterior.topics, first.joints, lengths(X), gamma)
        return posterior.infer(X, gamma, inverse, joint=isinstance(tempering, GlobalTempering))

    def advance(self, X, documents: Documents) -> Cooling | None:
        """Return what the update leaves: itself, or None at T = 1."""
        self.n_left -= 1
        if self.n_left == 0:
            return None
        n_tokens = X.data.sum(dtype=np.float64)
        if n_tokens > 0:
            new = documents.joints.sum() / n_tokens
            last = new if self.joint is None else self.joint
            self.joint = last + self.smoothing * (new - last)
        self.tempering.advance(self.n_tokens * (self.joint or 0.0))
        return self


class DocumentTempering(Temperatures):
    """A learned temperature for every document, which begins anew whenever a document is met.

    r_dm is proportional to exp(s_m U_d - N_d A_d(s_m)) with A_d(s) = log sum_k E[theta_k^s] E[sum_v
    beta_kv^s], a bound of the tempered partition function by Jensen's inequality (in place of
    equation 10, which divides by T_m once too often). gamma and lambda are updated without the part
    of A (equation 11).

    Parameters
    ----------
    temperatures : ndarray of shape (M,)
        Rising from 1.
    n_sweeps : int
        Updates of the topics before the last phase at T = 1.
    """

    def __init__(self, temperatures: NDArray, n_sweeps: int):
        self.temperatures = temperatures
        self.n_sweeps = n_sweeps
        self.inverse = float(np.mean(1 / temperatures))
        self._nodes = nodes(float(temperatures[-1]))
        self._matrix = interpolation(temperatures)
        self._age = 0  # updates since the start

    def advance(self, expected_log_joint) -> None:
        """Do nothing: the temperatures follow from the documents of a batch."""

    def inverses(self, topics, joints: NDArray, n_tokens: NDArray, gamma: NDArray) -> Array:
        """b of every document, (n,), given U, the numbers of tokens, and gamma (n, n_topics); once
        before every update.
        """
        from sklpf.models.lda.learning._word_kernels import log_tempered_tokens

        refresh = 50  # updates after which the moments of the topics are computed anew

        if self._age % refresh == 0:
            self._log_sums = topics.log_power_sums(1 / self._nodes)
        self._age += 1
        tokens = log_tempered_tokens(gamma, 1 / self._nodes, self._log_sums)
        return temperature_posterior(
            joints, self.temperatures, n_tokens[:, None] * (tokens @ self._matrix.T)
        )[0]


def start_cooling(model, X, n_documents: float, batch_size: int, n_passes: float) -> Cooling | None:
    """Return the temperatures of a training, None for one at T = 1 throughout.

    Parameters
    ----------
    model : LatentDirichletAllocation
        With its priors and `_partition_seed`.
    X : CSR of shape (n, n_features)
    n_documents : float
        Number of documents that the rows of X represent.
    batch_size : int
        Documents in an update.
    n_passes : float
        Number of passes, infinite in a stream; the last one, or half of a single one, is at T = 1.
    """
    smoothing = 0.1  # weight of a new batch in the running mean of U
    tempering = tempering_of(model)
    if tempering is None:
        return None
    n_passes_above = _N_TEMPERED if tempering.n_tempered == "auto" else tempering.n_tempered
    per_pass = int(np.ceil(n_documents / batch_size))
    n_updates = int(np.ceil(n_passes_above * per_pass))
    most_updates = None
    if np.isfinite(n_passes):
        n_all = int(n_passes * per_pass)
        most_updates = n_all - int(min(per_pass, np.ceil(n_all / 2)))
        n_updates = min(n_updates, most_updates)

    highest = tempering.initial_temperature
    highest = _HIGHEST[tempering.kind] if highest == "auto" else float(highest)
    if tempering.kind == "annealed":
        if n_updates > _LONGEST_SCHEDULE:
            raise ValueError(
                f"a schedule of {n_updates:.3g} temperatures can't be held; lower n_tempered or"
                " total_samples"
            )
        schedule = temperature_schedule(tempering.schedule, highest, n_updates)
        schedule = schedule[:most_updates]
        return Cooling(Annealed(schedule)) if len(schedule) else None
    if n_updates == 0:
        return None
    temperatures = temperature_ladder(highest, tempering.n_temperatures)
    if tempering.kind == "local":
        return Cooling(DocumentTempering(temperatures, n_updates))

    corpus = CorpusSize.like(X, n_documents, model)
    few = nodes(float(temperatures[-1]))
    marginal = tempering.partition == "marginal"
    log_c = log_partition(few, corpus, marginal=marginal, random_state=model._partition_seed)
    log_c = interpolation(temperatures) @ log_c
    monotone = tempering.monotone is not False
    learned = GlobalTempering(temperatures, log_c, n_updates, monotone=monotone)
    n_tokens = float(corpus.lengths @ corpus.n_documents)
    # Where every update sees all documents there is nothing to smooth.
    return Cooling(learned, n_tokens, 1.0 if per_pass == 1 else smoothing)


# ---- the normaliser
class CorpusSize(NamedTuple):
    """Sizes and priors that log C(T) depends on.

    Attributes
    ----------
    lengths, n_documents : ndarray of shape (n,)
        Distinct numbers of tokens, and how many documents have each (also fractions, of a sample
        that stands for more).
    n_features : int
    topic_word_prior : float
    doc_topic_prior : ndarray of shape (n_topics,)
    """

    lengths: Array
    n_documents: Array
    n_features: int
    topic_word_prior: float
    doc_topic_prior: Array

    @classmethod
    def like(cls, X, n_documents: float, model) -> CorpusSize:
        """Return a corpus of so many documents with the lengths of those of X, and the priors of a
        model.
        """
        distinct, numbers = np.unique(lengths(X), return_counts=True)
        return cls(
            distinct,
            numbers * (n_documents / X.shape[0]),
            X.shape[1],
            model.topic_word_prior_,
            np.full(model.n_components, model.doc_topic_prior_, dtype=np.float64),
        )


def log_partition(
    temperatures: ArrayLike,
    corpus: CorpusSize,
    *,
    marginal: bool = False,
    n_topic_draws: int | None = None,
    random_state: int | None = None,
) -> Array:
    """Monte-Carlo estimate of log C(T), where C(T) integrates the tempered likelihood over data,
    topics and documents.

    C(T) = E_beta prod_d E_theta[c(theta, beta)^N_d]. With the tokens' topics tempered too, as the
    updates do it, c = sum_k theta_k^s sum_v beta_kv^s; with them summed out (equation 17), c =
    sum_v (sum_k theta_k beta_kv)^s, which is smaller. The averages are taken of exponentials: where
    they vary much, the estimate is too low, for long texts by about 0.05 nats a token at T = 2.

    Equation 15 would replace beta by the mode of its prior, with the opposite sign from the one
    that is printed. Of Dirichlet priors below 1 that is a corner of the simplex, where log C is 0;
    with the priors' means it is the upper bound log(K V) (1 - s) of every token.

    Parameters
    ----------
    temperatures : array-like of shape (M,)
        At least 1.
    corpus : CorpusSize
    marginal : bool, default=False
        Whether the tokens' topics are summed out.
    n_topic_draws : int or None, default=None
        Draws of beta, with 1000 of theta for each. None: 5 for large models, up to 200 for small
        ones.
    random_state : int or None, default=None

    Returns
    -------
    log_partition : ndarray of shape (M,)
        In nats.
    """
    rng = np.random.default_rng(random_state)
    powers = 1 / np.asarray(temperatures, dtype=np.float64)
    n_topics = len(corpus.doc_topic_prior)
    if n_topic_draws is None:
        n_topic_draws = int(np.clip(500_000 // (n_topics * corpus.n_features), 5, 200))
    draws = []
    for _ in range(n_topic_draws):
        topics = _dirichlet(rng, np.full(corpus.n_features, corpus.topic_word_prior), n_topics)
        proportions = _dirichlet(rng, corpus.doc_topic_prior, 1000)
        tokens = _log_tokens(powers, topics, proportions, marginal)
        draws.append([_log_documents(corpus, row) for row in tokens])
    return log_mean_exp(draws, axis=0)


def _dirichlet(rng, concentration, n):
    """n draws, (n, K)."""
    # Gamma(a) is Gamma(a + 1) U^(1 / a): in logs, as all of a row underflow where a is small
    shape = n, len(concentration)
    of_larger = np.log(rng.standard_gamma(concentration + 1, shape))
    return softmax(of_larger - rng.standard_exponential(shape) / concentration, axis=1)


def _log_tokens(powers, topics, proportions, marginal):
    """Log c(theta, beta) for every power and theta, (M, n)."""
    rows_at_once = 200  # draws of theta whose words are held at a time
    if marginal:
        starts = range(0, len(proportions), rows_at_once)
        parts = [proportions[i : i + rows_at_once] @ topics for i in starts]
        tokens = [np.concatenate([np.sum(p**power, axis=1) for p in parts]) for power in powers]
    else:
        tokens = [proportions**power @ np.sum(topics**power, axis=1) for power in powers]
    return np.array([np.log(each) for each in tokens])


def _log_documents(corpus, tokens):
    """Sum over documents of log E_theta[c^N_d], given log c of draws of theta."""
    each = log_mean_exp(np.multiply.outer(corpus.lengths, tokens), axis=1)
    return float(corpus.n_documents @ each)


# ---- in between
def nodes(highest: float) -> Array:
    """Temperatures from 1 to `highest` at the Chebyshev points of log T, ends included."""
    return highest ** ((chebyshev.chebpts2(_NODES) + 1) / 2)


def interpolation(at: Array) -> NDArray:
    """Matrix (len(at), _NODES) from values at `nodes` to values at temperatures that rise to the
    same: the polynomial in log T.
    """
    x = 2 * np.log(at) / np.log(at[-1]) - 1
    points = chebyshev.chebpts2(_NODES)
    return np.linalg.solve(
        chebyshev.chebvander(points, _NODES - 1).T, chebyshev.chebvander(x, _NODES - 1).T
    ).T

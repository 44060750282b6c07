"""Tempering of latent Dirichlet allocation: log C(T) of a corpus, and temperatures of single
documents.

Mandt et al. (2016) print two things that don't go together: their updates temper the model with the
topics of the tokens (appendix B.2), their C(T) belongs to the one in which those are summed out
(equations 16 to 18). Both are here; `log_partition` computes the one that fits the updates unless
it is told otherwise. s = 1 / T throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from sklpf.models.lda._inference import Documents, infer_documents, lengths
from sklpf.variational import (
    Annealed,
    GlobalTempering,
    Tempering,
    temperature_ladder,
    temperature_posterior,
    temperature_schedule,
)

# temperatures at which log C and the moments of documents are computed; in between they are smooth
_NODES = 12
_REFRESH = 50  # updates after which the moments of the topics are computed anew
SMOOTHING = 0.1  # weight of a new batch in the running mean of U
_HIGHEST = {
    "annealed": 1.5,
    "global": 2.0,
    "local": 10.0,
}  # what did best on news and newsgroup posts
_LONGEST_SCHEDULE = 10**7
_ROWS_AT_ONCE = 200  # draws of theta whose words are held at a time


class Corpus(NamedTuple):
    """What log C(T) depends on.

    Attributes
    ----------
    lengths, n_documents : ndarray of shape (n,)
        Distinct numbers of tokens, and how many documents have each (also fractions, of a sample
        that stands for more).
    n_features : int
    topic_word_prior : float
    doc_topic_prior : ndarray of shape (n_topics,)
    """

    lengths: NDArray[np.float64]
    n_documents: NDArray[np.float64]
    n_features: int
    topic_word_prior: float
    doc_topic_prior: NDArray[np.float64]

    @classmethod
    def like(
        cls, X, n_documents: float, topic_word_prior: float, doc_topic_prior: NDArray
    ) -> Corpus:
        """Return a corpus of so many documents with the lengths of those of X."""
        distinct, numbers = np.unique(lengths(X), return_counts=True)
        return cls(
            distinct,
            numbers * (n_documents / X.shape[0]),
            X.shape[1],
            topic_word_prior,
            doc_topic_prior,
        )

    @property
    def n_tokens(self) -> float:
        return float(self.lengths @ self.n_documents)


def log_partition(
    temperatures: ArrayLike,
    corpus: Corpus,
    *,
    marginal: bool = False,
    n_topic_draws: int = 5,
    n_proportion_draws: int = 1000,
    random_state=None,
) -> NDArray[np.float64]:
    """Monte-Carlo estimate of log C(T), where C(T) integrates the tempered likelihood over data,
    topics and documents.

    C(T) = E_beta prod_d E_theta[c(theta, beta)^N_d]. With the tokens' topics tempered too, as the
    updates do it, c = sum_k theta_k^s sum_v beta_kv^s; with them summed out (equation 17), c =
    sum_v (sum_k theta_k beta_kv)^s, which is smaller. The averages are taken of exponentials: where
    they vary much, the estimate is too low.

    Parameters
    ----------
    temperatures : array-like of shape (M,)
        At least 1.
    corpus : Corpus
    marginal : bool, default=False
        Whether the tokens' topics are summed out.
    n_topic_draws, n_proportion_draws : int, default=5 and 1000
        Draws of beta, and of theta for each of them.
    random_state : int or None, default=None

    Returns
    -------
    log_partition : ndarray of shape (M,)
        In nats.
    """
    rng, powers = (
        np.random.default_rng(random_state),
        1 / np.asarray(temperatures, dtype=np.float64),
    )
    n_topics = len(corpus.doc_topic_prior)
    draws = []
    for _ in range(n_topic_draws):
        topics = _dirichlet(rng, np.full(corpus.n_features, corpus.topic_word_prior), n_topics)
        proportions = _dirichlet(rng, corpus.doc_topic_prior, n_proportion_draws)
        tokens = _log_tokens(powers, topics, proportions, marginal)
        draws.append([_log_documents(corpus, row) for row in tokens])
    return logsumexp(draws, axis=0) - np.log(n_topic_draws)


def log_partition_at(
    temperatures: ArrayLike, corpus: Corpus, topics: NDArray, proportions: NDArray, marginal=False
):
    """Log C(T) with all mass at one beta and one theta, a point approximation (equation 15 with its
    sign corrected).

    Normalised topics have a_l = 0, so that log C = -N (a_l(beta) / T - a_l(beta / T)) = N log
    c(theta, beta). The paper prints the opposite sign.

    Parameters
    ----------
    temperatures : array-like of shape (M,)
    corpus : Corpus
    topics : ndarray of shape (n_topics, n_features)
    proportions : ndarray of shape (n_topics,)
    marginal : bool, default=False
        As in `log_partition`.
    """
    powers = 1 / np.asarray(temperatures, dtype=np.float64)
    return corpus.n_tokens * _log_tokens(powers, topics, proportions[None], marginal)[:, 0]


def log_partition_upper(
    temperatures: ArrayLike, corpus: Corpus, marginal: bool = False
) -> NDArray[np.float64]:
    """Upper bound of log C(T) for T >= 1: of every token's, by concavity of x^s.

    N (1 - s) log(V K), or N (1 - s) log V with the tokens' topics summed out. (The upper bound that
    the paper shows is another lower one.)
    """
    states = corpus.n_features if marginal else corpus.n_features * len(corpus.doc_topic_prior)
    return corpus.n_tokens * (1 - 1 / np.asarray(temperatures, dtype=np.float64)) * np.log(states)


def _dirichlet(rng, concentration, n):
    gamma = rng.standard_gamma(concentration, (n, len(concentration)))
    gamma += np.finfo(np.float64).tiny  # all may have underflowed
    return gamma / gamma.sum(axis=1, keepdims=True)


def _log_tokens(powers, topics, proportions, marginal):
    """Log c(theta, beta) for every power and theta, (M, n)."""
    if marginal:
        rows = [
            proportions[i : i + _ROWS_AT_ONCE] @ topics
            for i in range(0, len(proportions), _ROWS_AT_ONCE)
        ]
        return np.array(
            [
                np.log(np.concatenate([np.sum(part**power, axis=1) for part in rows]))
                for power in powers
            ]
        )
    return np.array(
        [np.log(proportions**power @ np.sum(topics**power, axis=1)) for power in powers]
    )


def _log_documents(corpus, tokens):
    """Sum over documents of log E_theta[c^N_d], given log c of draws of theta."""
    each = logsumexp(np.multiply.outer(corpus.lengths, tokens), axis=1) - np.log(len(tokens))
    return float(corpus.n_documents @ each)


# ---- in between
def nodes(highest: float) -> NDArray[np.float64]:
    """Temperatures from 1 to `highest` at the Chebyshev points of log T, ends included."""
    x = (1 - np.cos(np.pi * np.arange(_NODES) / (_NODES - 1))) / 2
    return np.exp(np.log(highest) * x)


def interpolation(temperatures: NDArray, at: NDArray) -> NDArray[np.float64]:
    """Matrix (len(at), len(temperatures)) from values at `nodes` to values at `at`: the polynomial
    in log T.
    """
    weights = np.where(np.arange(len(temperatures)) % 2, -1.0, 1.0)
    weights[[0, -1]] /= 2
    distance = np.log(at)[:, None] - np.log(temperatures)
    exact = np.abs(distance) < 1e-13
    terms = weights / np.where(exact, 1.0, distance)
    matrix = terms / terms.sum(axis=1, keepdims=True)
    hit = exact.any(axis=1)
    matrix[hit] = exact[hit]
    return matrix


def corpus_log_partition(
    temperatures: NDArray, corpus: Corpus, marginal: bool, seed: int
) -> NDArray[np.float64]:
    """`log_partition` at many temperatures from 1 to the last, interpolated."""
    few = nodes(float(temperatures[-1]))
    return interpolation(few, temperatures) @ log_partition(
        few, corpus, marginal=marginal, random_state=seed
    )


# ---- temperatures
class RunningMean:
    """Running mean of U of the corpus, from batches: that of a token, times the tokens of the
    corpus.
    """

    def __init__(self, n_tokens: float, smoothing: float = SMOOTHING):
        self.n_tokens, self.smoothing = n_tokens, smoothing
        self.value: float | None = None

    def add(self, joint: float, n_tokens: float) -> float:
        """Return the mean after a batch with this U and number of tokens."""
        if n_tokens > 0:
            new = joint / n_tokens
            self.value = (
                new if self.value is None else self.value + self.smoothing * (new - self.value)
            )
        return self.n_tokens * (self.value or 0.0)


class DocumentTempering(Tempering):
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

    per_datum = True

    def __init__(self, temperatures: NDArray, n_sweeps: int):
        self.temperatures, self.n_sweeps = temperatures, n_sweeps
        self.inverse = float(np.mean(1 / temperatures))
        self._nodes = nodes(float(temperatures[-1]))
        self._matrix = interpolation(self._nodes, temperatures)
        self._age, self._log_sums = 0, None

    def prepare(self, topics) -> None:
        """Compute the moments of the topics where they are out of date; once before every
        update.
        """
        if self._age % _REFRESH == 0:
            self._log_sums = topics.log_power_sums(1 / self._nodes)
        self._age += 1

    def inverses(self, joints: NDArray, n_tokens: NDArray, gamma: NDArray) -> NDArray[np.float64]:
        """b of every document, (n,), given U, the numbers of tokens, and gamma (n, n_topics)."""
        from sklpf.models.lda._word_kernels import log_tempered_tokens

        tokens = log_tempered_tokens(gamma, 1 / self._nodes, self._log_sums)
        return temperature_posterior(
            joints, self.temperatures, n_tokens[:, None] * (tokens @ self._matrix.T)
        )[0]


# ---- until T = 1
class Heat(NamedTuple):
    """How training begins: the parameters of LatentDirichletAllocation of these names."""

    tempering: str
    initial_temperature: float | str
    temperature_schedule: str | ArrayLike
    n_tempered: float
    n_temperatures: int
    monotone_temperature: bool
    tempered_partition: str


class Cooling:
    """The temperature of every update of the topics until T = 1.

    Parameters
    ----------
    tempering : Tempering
    n_updates : int
        Updates above T = 1, at least 1.
    joint : RunningMean or None, default=None
        U of the corpus, for a global temperature.
    """

    def __init__(self, tempering: Tempering, n_updates: int, joint: RunningMean | None = None):
        self.tempering, self.n_updates, self.joint = tempering, n_updates, joint

    def infer(self, topics, X, alpha, gamma, settings, tasks) -> Documents:
        """Like `infer_documents`, at the temperature of the next update."""
        tempering, options = self.tempering, (alpha, gamma, settings, tasks)
        if not isinstance(tempering, DocumentTempering):
            joint = isinstance(tempering, GlobalTempering)
            return infer_documents(topics, X, *options, inverse=tempering.inverse, joint=joint)
        tempering.prepare(topics)
        documents = infer_documents(topics, X, *options, inverse=tempering.inverse, joint=True)
        inverse = tempering.inverses(documents.joints, lengths(X), documents.gamma)
        return infer_documents(topics, X, alpha, documents.gamma, settings, tasks, inverse=inverse)

    def advance(self, X, documents: Documents) -> Cooling | None:
        """Return what the update leaves: itself, or None at T = 1."""
        self.n_updates -= 1
        if self.n_updates == 0:
            return None
        if self.joint is not None:
            self.tempering.advance(
                self.joint.add(documents.joints.sum(), X.data.sum(dtype=np.float64))
            )
        elif isinstance(self.tempering, Annealed):
            self.tempering.advance(None)
        return self


def start_cooling(
    heat: Heat, corpus: Corpus, per_pass: int, n_passes: float, smoothing: float, seed: int
) -> Cooling | None:
    """Return the temperatures of a training, None for one at T = 1 throughout.

    Parameters
    ----------
    heat : Heat
    corpus : Corpus
    per_pass : int
        Updates in a pass.
    n_passes : float
        Of which a pass, or half of a single one, is left for T = 1; infinite in a stream.
    smoothing : float
        Weight of an update in the running mean of U.
    seed : int
    """
    n_updates, limit = int(np.ceil(heat.n_tempered * per_pass)), None
    if np.isfinite(n_passes):
        total = int(n_passes * per_pass)
        limit = total - int(min(per_pass, np.ceil(total / 2)))
        n_updates = min(n_updates, limit)
    auto = heat.initial_temperature == "auto"
    highest = _HIGHEST[heat.tempering] if auto else float(heat.initial_temperature)
    if heat.tempering == "annealed":
        return _annealed(heat.temperature_schedule, highest, n_updates, limit)
    if n_updates == 0:
        return None
    temperatures = temperature_ladder(highest, heat.n_temperatures)
    if heat.tempering == "local":
        return Cooling(DocumentTempering(temperatures, n_updates), n_updates)
    log_c = corpus_log_partition(temperatures, corpus, heat.tempered_partition == "marginal", seed)
    tempering = GlobalTempering(temperatures, log_c, n_updates, monotone=heat.monotone_temperature)
    return Cooling(tempering, n_updates, RunningMean(corpus.n_tokens, smoothing))


def _annealed(schedule, highest, n_updates, limit) -> Cooling | None:
    if n_updates > _LONGEST_SCHEDULE:
        raise ValueError(
            f"a schedule of {n_updates:.3g} temperatures can't be held; lower n_tempered or"
            " total_samples"
        )
    temperatures = temperature_schedule(schedule, highest, n_updates)[:limit]
    tempering = Annealed(temperatures)
    return Cooling(tempering, len(temperatures)) if len(temperatures) else None

"""The temperature of every update of the topics until T = 1: on a schedule, learned for all
documents, or learned for each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sklpf.models.lda._counts import lengths
from sklpf.models.lda.learning._inference import Documents, infer_documents
from sklpf.models.lda.learning._tempered_partition import (
    CorpusSize,
    corpus_log_partition,
    interpolation,
    nodes,
)
from sklpf.variational import (
    Annealed,
    GlobalTempering,
    Tempering,
    temperature_ladder,
    temperature_posterior,
    temperature_schedule,
)

_REFRESH = 50  # updates after which the moments of the topics are computed anew
_SMOOTHING = 0.1  # weight of a new batch in the running mean of U
# what did best on news and newsgroup posts
_HIGHEST = {"annealed": 1.5, "global": 2.0, "local": 10.0}
_LONGEST_SCHEDULE = 10**7


class RunningMean:
    """Running mean of U of the corpus, from batches: that of a token, times the tokens of the
    corpus.
    """

    def __init__(self, n_tokens: float, smoothing: float = _SMOOTHING):
        self.n_tokens = n_tokens
        self.smoothing = smoothing
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
        self.temperatures = temperatures
        self.n_sweeps = n_sweeps
        self.inverse = float(np.mean(1 / temperatures))
        self._nodes = nodes(float(temperatures[-1]))
        self._matrix = interpolation(self._nodes, temperatures)
        self._age = 0
        self._log_sums = None

    def prepare(self, topics) -> None:
        """Compute the moments of the topics where they are out of date; once before every
        update.
        """
        if self._age % _REFRESH == 0:
            self._log_sums = topics.log_power_sums(1 / self._nodes)
        self._age += 1

    def inverses(self, joints: NDArray, n_tokens: NDArray, gamma: NDArray) -> NDArray[np.float64]:
        """b of every document, (n,), given U, the numbers of tokens, and gamma (n, n_topics)."""
        from sklpf.models.lda.learning._word_kernels import log_tempered_tokens

        tokens = log_tempered_tokens(gamma, 1 / self._nodes, self._log_sums)
        return temperature_posterior(
            joints, self.temperatures, n_tokens[:, None] * (tokens @ self._matrix.T)
        )[0]


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
        self.tempering = tempering
        self.n_updates = n_updates
        self.joint = joint

    def infer(self, topics, X, alpha, gamma, settings, tasks) -> Documents:
        """Like `infer_documents`, at the temperature of the next update."""
        tempering = self.tempering
        inverse = tempering.inverse
        if isinstance(tempering, DocumentTempering):
            # Every document first settles at the mean temperature, from which its own follows.
            tempering.prepare(topics)
            first = infer_documents(
                topics, X, alpha, gamma, settings, tasks, inverse=inverse, joint=True
            )
            gamma = first.gamma
            inverse = tempering.inverses(first.joints, lengths(X), gamma)
        joint = isinstance(tempering, GlobalTempering)
        return infer_documents(
            topics, X, alpha, gamma, settings, tasks, inverse=inverse, joint=joint
        )

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
    if model.tempering is None:
        return None
    per_pass = int(np.ceil(n_documents / batch_size))
    n_updates = int(np.ceil(model.n_tempered * per_pass))
    most_updates = None
    if np.isfinite(n_passes):
        n_all = int(n_passes * per_pass)
        most_updates = n_all - int(min(per_pass, np.ceil(n_all / 2)))
        n_updates = min(n_updates, most_updates)

    highest = model.initial_temperature
    highest = _HIGHEST[model.tempering] if highest == "auto" else float(highest)
    if model.tempering == "annealed":
        return _annealed(model.temperature_schedule, highest, n_updates, most_updates)
    if n_updates == 0:
        return None
    temperatures = temperature_ladder(highest, model.n_temperatures)
    if model.tempering == "local":
        return Cooling(DocumentTempering(temperatures, n_updates), n_updates)
    return _global(model, X, n_documents, temperatures, n_updates)


def _annealed(schedule, highest, n_updates, most_updates) -> Cooling | None:
    """Temperatures on a schedule, of which the first `most_updates` are used."""
    if n_updates > _LONGEST_SCHEDULE:
        raise ValueError(
            f"a schedule of {n_updates:.3g} temperatures can't be held; lower n_tempered or"
            " total_samples"
        )
    temperatures = temperature_schedule(schedule, highest, n_updates)[:most_updates]
    if len(temperatures) == 0:
        return None
    return Cooling(Annealed(temperatures), len(temperatures))


def _global(model, X, n_documents, temperatures, n_updates) -> Cooling:
    """One learned temperature, from the running mean of U over batches."""
    corpus = CorpusSize.like(X, n_documents, model.topic_word_prior_, model._alpha)
    marginal = model.tempered_partition == "marginal"
    log_c = corpus_log_partition(temperatures, corpus, marginal, model._partition_seed)
    tempering = GlobalTempering(temperatures, log_c, n_updates, monotone=model.monotone_temperature)
    # In batch learning every update sees all documents, so that there is nothing to smooth.
    sees_all = model.learning_method == "batch" and n_documents == X.shape[0]
    return Cooling(
        tempering, n_updates, RunningMean(corpus.n_tokens, 1.0 if sees_all else _SMOOTHING)
    )

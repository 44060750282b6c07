"""warm_up: compile all kernels now, not at their first use."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklpf.models import (
    BernoulliRBM,
    BilinearGenerativeModel,
    BoltzmannMachine,
    FactorialMixture,
    GaussianRBM,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
)
from sklpf.models.rbm import pseudo_log_likelihood
from sklpf.partition import (
    AIS,
    HAIS,
    RTS,
    SMC,
    Exact,
    LeftToRight,
    ParallelTempering,
    PartitionEstimator,
)
from sklpf.variational import Tempering

_KINDS: Any = ("annealed", "global", "local")  # of tempering
# one for each compiled program: anneal, temper and exchange, and SMC's moves
_SAMPLERS: tuple[PartitionEstimator, ...] = (
    AIS(2, 3, random_state=0),
    RTS(10, 3, 16, sweeps_per_redraw=1, random_state=0),
    ParallelTempering(2, 3, 32, random_state=0),
    SMC(2, 3, 2, random_state=0),
)

_ANY = 1e9  # tolerance at which training has settled at once


def warm_up() -> None:
    """Compile the kernels of all models now and cache them for later processes.

    Otherwise each compiles at its first use.

    Says in one line of the logger "sklpf" (level INFO) how long it took: a minute or two at first,
    then seconds.

    Examples
    --------
    >>> import sklpf
    >>> sklpf.warm_up()  # doctest: +SKIP
    """
    began = time.perf_counter()
    for dtype in (np.float64, np.float32):
        X = np.eye(4, 6, dtype=dtype)
        _train_and_score_rbm(X)
        _train_and_score_topics(sp.csr_matrix(X + 1))
        for tempering in (None, *(Tempering(kind, n_tempered=3) for kind in _KINDS)):
            mixture = FactorialMixture(2, tempering=tempering, tol=_ANY, random_state=0).fit(X)
        mixture.transform(X)
        _run(mixture.path(X), Exact())
    boltzmann = BoltzmannMachine.from_parameters(np.ones((3, 3)) - np.eye(3))
    _run(boltzmann, Exact())
    _run(GaussianRBM.from_parameters(np.eye(2, 3), np.zeros(3), np.zeros(2), np.ones(3)))
    for exponents in (None, [2.0, 2.0, 2.0]):
        _run(ProductOfExperts.from_parameters(np.eye(3, 2) + 0.5, exponents))
    _run(MeanCovarianceRBM.from_parameters(np.eye(3, 2), np.eye(3), np.eye(3, 2)))
    X = np.eye(4, 6)
    for model in (LinearGenerativeModel, BilinearGenerativeModel):
        fitted = model(2, tol=_ANY, max_iter=100, random_state=0).fit(X)
        fitted.transform(X)
        HAIS(2, 3, random_state=0)._fit(fitted.path(X))
    logging.getLogger("sklpf").info(
        "compiling, once: all kernels are ready after %.1f s", time.perf_counter() - began
    )


def _run(path, *others: PartitionEstimator) -> None:
    """Fit the samplers, and other estimators, to a path or a model."""
    for estimator in (*others, *_SAMPLERS):
        estimator._fit(path)


def _train_and_score_rbm(X) -> None:
    rbm = BernoulliRBM(3, batch_size=2, n_iter=1, random_state=0).fit(X)
    rbm.partial_fit(sp.csr_matrix(X)).score_samples(X)
    rbm.pseudo_log_likelihood(X)
    pseudo_log_likelihood(rbm, X / 2)
    for weights in ("marginal", "joint"):
        _run(rbm.path(weights=weights), Exact())
    ParallelTempering(2, 3, 32, random_state=0).fit(rbm._ratio_path(rbm))


def _train_and_score_topics(X) -> None:
    for method in ("batch", "online"):
        for tempering in (None, *_KINDS):
            lda = LatentDirichletAllocation(
                2,
                learning_method=method,
                tempering=tempering,
                learn_doc_topic_prior=method == "online",
                max_iter=2,
                evaluate_every=1,
                random_state=0,
            )
            lda.fit_transform(X)
    gibbs = LatentDirichletAllocation(2, learning_method="gibbs", max_iter=100, random_state=0)
    gibbs.set_params(learn_doc_topic_prior=True, learn_topic_word_prior=True).fit(X)
    lda.completion_score(X)
    _run(lda.path(X), Exact(), LeftToRight(2, 2, 1, random_state=0))

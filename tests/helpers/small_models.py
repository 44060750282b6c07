"""A model of every class that is fitted in a moment, and rows that suit it."""

import numpy as np

from sklpf import (
    HAIS,
    BernoulliRBM,
    BilinearGenerativeModel,
    BoltzmannMachine,
    CategoricalRBM,
    FactorialMixture,
    GaussianRBM,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
)

SHORT = HAIS(6, 6, checks=False)
MODELS = [
    BernoulliRBM(5, n_iter=2, batch_size=7),
    BoltzmannMachine(alpha=0.1),
    CategoricalRBM(2, n_iter=2, batch_size=7),
    GaussianRBM(2, n_iter=5),
    LatentDirichletAllocation(3, max_iter=5),
    FactorialMixture(3, max_iter=20, n_moves=1),
    LinearGenerativeModel(2, max_iter=20, partition_estimator=SHORT),
    BilinearGenerativeModel(1, 1, 1, max_iter=1, partition_estimator=SHORT),
    ProductOfExperts(max_iter=2, tol=None, n_chains=20),
    MeanCovarianceRBM(max_iter=1, tol=None, n_chains=20, partition_estimator=SHORT),
]
MODELS = [model.set_params(random_state=0) for model in MODELS]
BINARY = BernoulliRBM, BoltzmannMachine, CategoricalRBM, LatentDirichletAllocation


def rows(model):
    rng = np.random.default_rng(0)
    if isinstance(model, BINARY):
        return (rng.random((60, 5)) < 0.4).astype(float)
    return rng.laplace(size=(60, 3)) + 3 * rng.integers(2, size=(60, 1))

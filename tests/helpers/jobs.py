"""A computation for every model and every estimator, of numbers that are the same wherever it runs,
at sizes where BLAS takes several threads if it may.
"""

import functools

import numpy as np
from estimators import ESTIMATORS, fit
from sklearn.base import clone

from sklpf import (
    AIS,
    HAIS,
    BernoulliRBM,
    BilinearGenerativeModel,
    BoltzmannMachine,
    CategoricalRBM,
    FactorialMixture,
    Gaussian,
    GaussianRBM,
    GeometricPath,
    LatentDirichletAllocation,
    LeftToRight,
    LinearGenerativeModel,
    MeanCovarianceRBM,
    ProductOfExperts,
    check_draws,
    compare,
)
from sklpf.interop import from_decoder

_RNG = np.random.default_rng(0)
BINARY = (_RNG.random((100, 64)) < 0.4).astype(float)  # 100 x 64 x 64: several threads
REAL = _RNG.laplace(size=(100, 3)) @ _RNG.normal(size=(3, 6)) + 0.1 * _RNG.normal(size=(100, 6))
COUNTS = _RNG.poisson(0.4, size=(30, 40))
CATEGORIES = _RNG.integers(3, size=(60, 8)).astype(float)
WEIGHTS = _RNG.normal(scale=0.1, size=(64, 64))
DECODER = _RNG.normal(size=(3, 6))
SHORT = HAIS(8, 10)


def _log_density(x):
    return -0.5 * np.sum(x**2, axis=1) - 0.25 * np.sum((x @ _MIXING) ** 2, axis=1)


def _grad(x):
    return -x - 0.5 * x @ _MIXING @ _MIXING.T


_MIXING = 0.1 * np.random.default_rng(3).normal(size=(8, 8))


def _decode(z):
    return z @ DECODER


def _rbm():
    return BernoulliRBM.from_parameters(
        WEIGHTS, np.zeros(64), np.zeros(64), partition_estimator=AIS(8, 30), random_state=0
    )


def _model(model, X):
    """What a fitted model scores, transforms and draws."""
    model = clone(model).set_params(random_state=0).fit(X)
    parts = [model.score_samples(X[:12]), model.score(X[:12])]
    if hasattr(model, "transform"):
        parts.append(model.transform(X[:12]))
    if hasattr(model, "sample"):
        parts.append(model.sample(3, random_state=0))
    return parts


def _estimator(name):
    fitted = fit(name)
    return [fitted.log_partition_, fitted.log_partition_std_error_]


def _checked_draws():
    path = GeometricPath(_log_density, grad=_grad, base=Gaussian(np.zeros(8), np.eye(8)))
    draws = np.random.default_rng(5).normal(size=(4, 200, 8))
    return [check_draws(path, draws, random_state=0).result.log_partition]


def _shared():
    """A fitted model that all threads score."""
    return [_SHARED.score_samples(BINARY[:30])]


def _compared():
    first = _rbm()
    second = BernoulliRBM(64, n_iter=1, partition_estimator=AIS(8, 30), random_state=0).fit(BINARY)
    return [compare(first, second, BINARY[:30]).mean]


_SHARED = _rbm()
_MODELS = {
    "BernoulliRBM": (BernoulliRBM(64, n_iter=2, partition_estimator=AIS(8, 30)), BINARY),
    "BoltzmannMachine": (BoltzmannMachine(alpha=0.1, max_iter=3), BINARY[:, :8]),
    "CategoricalRBM": (CategoricalRBM(8, n_iter=2, partition_estimator=AIS(8, 30)), CATEGORIES),
    "GaussianRBM": (GaussianRBM(4, n_iter=3, partition_estimator=AIS(8, 30)), REAL),
    "LatentDirichletAllocation": (
        LatentDirichletAllocation(3, max_iter=3, partition_estimator=AIS(8, 10)),
        COUNTS,
    ),
    "gibbs": (
        LatentDirichletAllocation(
            3, learning_method="gibbs", max_iter=4, partition_estimator=LeftToRight(4)
        ),
        COUNTS,
    ),
    "FactorialMixture": (FactorialMixture(3, max_iter=5, n_moves=1), REAL),
    "LinearGenerativeModel": (
        LinearGenerativeModel(8, max_iter=3, partition_estimator=SHORT),
        REAL,
    ),
    "BilinearGenerativeModel": (
        BilinearGenerativeModel(2, 2, 1, max_iter=1, partition_estimator=SHORT),
        REAL,
    ),
    "ProductOfExperts": (ProductOfExperts(max_iter=2, tol=None, n_chains=20), REAL),
    "MeanCovarianceRBM": (
        MeanCovarianceRBM(max_iter=1, tol=None, n_chains=20, partition_estimator=SHORT),
        REAL,
    ),
    "DecoderModel": (
        from_decoder(
            _decode,
            3,
            pullback=lambda z, g: g @ DECODER.T,
            likelihood="gaussian",
            noise_std=0.5,
            partition_estimator=SHORT,
        ),
        REAL,
    ),
}
JOBS = {
    **{name: functools.partial(_model, *job) for name, job in _MODELS.items()},
    **{name: functools.partial(_estimator, name) for name in ESTIMATORS},
    "check_draws": _checked_draws,
    "compare": _compared,
    "one model": _shared,
}

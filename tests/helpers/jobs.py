"""A computation for every model and every estimator, of numbers that are the same wherever it runs;
some are of sizes where BLAS takes several threads if it may.
"""

import functools

import numpy as np
from estimators import ESTIMATORS, fit
from sklearn.base import clone
from small_models import MODELS, SHORT, rows

from sklpf import (
    AIS,
    BernoulliRBM,
    Gaussian,
    GeometricPath,
    LatentDirichletAllocation,
    LeftToRight,
    check_draws,
    compare,
)
from sklpf.interop import from_decoder

_RNG = np.random.default_rng(0)
BINARY = (_RNG.random((100, 64)) < 0.4).astype(float)  # 100 x 64 x 64: several threads
COUNTS = _RNG.poisson(0.4, size=(30, 40))
WEIGHTS = _RNG.normal(scale=0.1, size=(64, 64))
DECODER = _RNG.normal(size=(3, 6))


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
_GIBBS = {"learning_method": "gibbs", "max_iter": 4, "partition_estimator": LeftToRight(4)}
_DECODER = from_decoder(
    _decode,
    3,
    pullback=lambda z, g: g @ DECODER.T,
    likelihood="gaussian",
    noise_std=0.5,
    partition_estimator=SHORT,
)
JOBS = {
    **{type(model).__name__: functools.partial(_model, model, rows(model)) for model in MODELS},
    "gibbs": functools.partial(_model, LatentDirichletAllocation(3, **_GIBBS), COUNTS),
    "DecoderModel": functools.partial(_model, _DECODER, _RNG.normal(size=(100, 6))),
    **{name: functools.partial(_estimator, name) for name in ESTIMATORS},
    "check_draws": _checked_draws,
    "compare": _compared,
    "one model": _shared,
}

"""Fit of FactorialMixture: starts, tempered sweeps, moves, and the sweeps that end them;
batches of a stream.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis

from sklpf._utils.context import report, stage
from sklpf._utils.random import draw_seed
from sklpf._utils.validation import check_count
from sklpf.models._enumerable_path import missing_values
from sklpf.models._learning import fitted_values, same_values
from sklpf.models.factorial.learning._moves import improve, leading_eigenvalues
from sklpf.models.factorial.learning._posterior import (
    FactorialPosterior,
    IncompletePosterior,
    Statistics,
)
from sklpf.variational import (
    Annealed,
    GlobalTempering,
    LocalTempering,
    Sweep,
    Temperatures,
    sweeps,
    temperature_ladder,
    temperature_schedule,
    tempering_of,
)

_HYPERPARAMETERS = ("noise_variance", "component_variance", "activation_probability")
_N_TEMPERED = 300  # sweeps above T = 1
_TOO_LARGE = "X holds values too large to be squared; rescale X"


class Training(NamedTuple):
    """The state of training, from which `partial_fit` goes on."""

    statistics: Statistics
    shown: tuple[NDArray, ...]  # the fitted attributes that they led to


class Trainer:
    """Fits of one model to X: `run` makes one start.

    Parameters
    ----------
    model : FactorialMixture
        Its parameters are read, and nothing is set.
    X : {ndarray, sparse matrix} of shape (n, D)
    probability : ndarray of shape () or (K,)
        Activation probabilities to start from.

    Raises
    ------
    ValueError
        If values of X are too large.
    """

    def __init__(self, model, X, probability):
        self.model = model
        self.X = X
        self.n = X.shape[0]
        with np.errstate(over="ignore", invalid="ignore"):
            self.variance, square = moments(X)
        if not np.isfinite(square):
            raise ValueError(_TOO_LARGE)
        noise = model.noise_variance
        components = model.component_variance
        if noise is None:
            noise = self.variance / 2 or square or 1.0
        if components is None:
            components = (square or 1.0) / (model.n_components * float(np.mean(probability)))
        self.noise_variance = noise
        self.component_variance = components
        self.probability = np.broadcast_to(probability, model.n_components)
        self.tempering = tempering_of(model)
        if self.tempering is not None and missing_values(X) is not None:
            raise ValueError(
                "tempering can't be combined with missing values (NaN) in X: choose tempering=None,"
                " or impute X"
            )
        self.temperature = self._highest_temperature()

    def run(self, rng) -> tuple[FactorialPosterior, list[Sweep]]:
        """Return the posterior that a random start leads to, and the sweeps on the way: those of
        the start, its moves, and the sweeps after them.
        """
        model = self.model
        activations = rng.uniform(size=(self.n, model.n_components)) < self.probability
        annealed = self.tempering is not None and self.tempering.kind == "annealed"
        posterior = _kind_of_posterior(self.X)(
            self.X,
            activations,
            self.noise_variance,
            self.component_variance,
            self.probability,
            jitter=np.random.default_rng(draw_seed(rng)) if annealed else None,
            **_options(model),
        )
        steps: list[Sweep] = []

        def store(model):
            """Write what `fit` would have learned if its only start ended here."""
            model._store(posterior)
            model._partition_seed = draw_seed(copy.deepcopy(rng))

        def sweep(tempering):
            """Sweep until the bound has settled."""
            options = {"tol": model.tol * self.n, "max_iter": model.max_iter}
            for step in sweeps(posterior, tempering, **options):
                steps.append(step)
                done(words=f"bound = {step.elbo:.6g}", store=store)

        def record(elbo, kind):
            """Count a move that was kept as a step."""
            steps.append(Sweep(elbo, elbo, 1.0, False))
            done(words=f"{kind}: bound = {elbo:.6g}")

        with stage("start", None) as done:
            sweep(self._temperatures(posterior))
            if model.n_moves > 0:
                moving = np.random.default_rng(draw_seed(rng))
                posterior = improve(posterior, moving, model.n_moves, self.variance, record)
                posterior.forced = tuple(range(model.n_components))
                sweep(None)
        report(lambda: f"bound = {steps[-1].elbo:.6g} after {len(steps)} sweeps and moves")
        return posterior, steps

    def _highest_temperature(self) -> float:
        """The temperature to begin at, cautiously below where components die out."""
        if self.tempering is None:
            return 1.0
        if self.tempering.initial_temperature != "auto":
            return float(self.tempering.initial_temperature)
        with np.errstate(over="ignore", invalid="ignore"):
            eigenvalues = leading_eigenvalues(self.X, self.model.n_components)
            eigenvalues = eigenvalues / self.noise_variance
        if not np.all(np.isfinite(eigenvalues)):
            raise ValueError(_TOO_LARGE)
        n_active = self.n * np.mean(self.probability)  # rows a component
        rows_per_feature = n_active / self.X.shape[1]
        return float(max(2.0, min(eigenvalues[0], eigenvalues[-1] * rows_per_feature)))

    def _temperatures(self, posterior) -> Temperatures | None:
        """Temperatures of the sweeps, None for T = 1 throughout."""
        tempering = self.tempering
        if tempering is None:
            return None
        n_sweeps = _N_TEMPERED
        if tempering.n_tempered != "auto":
            n_sweeps = check_count(tempering.n_tempered, "n_tempered", 0)
        if tempering.kind == "annealed":
            return Annealed(temperature_schedule(tempering.schedule, self.temperature, n_sweeps))
        temperatures = temperature_ladder(self.temperature, tempering.n_temperatures)
        log_partition = posterior.log_partition(temperatures)
        if tempering.kind == "local":
            return LocalTempering(temperatures, log_partition / self.n, self.n, n_sweeps)
        monotone = tempering.monotone is True
        return GlobalTempering(temperatures, log_partition, n_sweeps, monotone=monotone)


def update(model, X, activations) -> FactorialPosterior:
    """Return what another batch of a stream, with its activations (n, K), makes of a
    fitted model.
    """
    posterior = _kind_of_posterior(X)(
        X,
        activations,
        model.noise_variance_,
        model.component_variance_,
        model.activation_probability_,
        **_options(model),
    )
    if isinstance(posterior, IncompletePosterior):
        posterior.expect(model.components_, model.component_covariance_, activations)
    statistics, shown = model._training
    now = fitted_values(model)
    if not same_values(shown, now):  # by the user
        statistics = statistics.implying(*now, former_probability=shown[-1])
    posterior.update_from(statistics.blended(posterior.statistics))
    return posterior


def _options(model) -> dict:
    """Options of `FactorialPosterior` from the model's parameters."""
    learned = tuple(name for name in _HYPERPARAMETERS if getattr(model, name) is None)
    return {"diagonal": model.covariance == "diag", "learned": learned, "n_jobs": model.n_jobs}


def _kind_of_posterior(X) -> type[FactorialPosterior]:
    return FactorialPosterior if missing_values(X) is None else IncompletePosterior


def moments(X) -> tuple[float, float]:
    """Mean variance of the features, and mean square of all values that are known."""
    if sp.issparse(X):
        square = np.sum(np.square(X.data, dtype=np.float64)) / np.prod(X.shape)
        variances = mean_variance_axis(X.astype(np.float64), axis=0)[1]
    else:
        square = np.nanmean(np.square(X, dtype=np.float64))
        variances = np.nanvar(X, axis=0, dtype=np.float64)
    return float(variances.mean()), float(square)

"""The log ratio of two models' Z by a run along a path from one to the other: when it is made, and
what it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sklpf._utils.numbers import Array
from sklpf.models.scoring._scored import fit_quietly
from sklpf.partition import ParallelTempering, PartitionResult
from sklpf.partition.checks._beside import regions_to_cover
from sklpf.uncertainty import MOST_BETWEEN

N_GROUPS = 10  # of independent chains, each with draws of the two models of its own
# nats; beyond, the difference of two log Z has the smaller error (doc/benchmarks/compare.md)
_MOST_SPREAD = 2.5
_MOST_APART = 3.0  # joint standard errors


def direct_ratio(model_a: Any, model_b: Any, values: Array) -> PartitionResult | None:
    """log Z_b - log Z_a by a run on the path from a to b; None where there is none, or it did not
    converge.

    Whether a run is made depends on nothing that is random: on the models' classes and on the
    spread of log p_a(x) - log p_b(x) over the rows, `values`, which no log Z changes.
    """
    if not hasattr(model_a, "_ratio_path") or not np.std(values) <= _MOST_SPREAD:
        return None
    if all(model.partition_estimator_.result_.statement == "exact" for model in (model_a, model_b)):
        return None
    return ratio_result(model_a, model_b)


def ratio_result(model_a: Any, model_b: Any) -> PartitionResult | None:
    """The result of a run on the path from a to b; None if there is no path, or draws or run are
    not trusted.
    """
    path = model_a._ratio_path(model_b)
    if path is None or path.draw_alarms:
        return None
    estimator = path.default_estimator().set_params(
        random_state=model_a._partition_seed, n_jobs=model_a.n_jobs
    )
    result = fit_quietly(estimator, path).result_
    return result if result.converged else None


def tempered_rows(
    path: Any, estimator: ParallelTempering, n_draws: int, rng: np.random.Generator, n_jobs: Any
) -> tuple[NDArray, PartitionResult]:
    """Return rows (N_GROUPS, n_draws, d) of a model from as many independent tempered ladders, and
    what their run says.

    Where the run has missed a region of the model there is a second one, from a base that covers
    it: chains between two models never leave what the draws at both ends have seen.
    """
    estimator = clone(estimator).set_params(n_ladders=N_GROUPS, checkpoint=None, n_jobs=n_jobs)
    for is_last in (False, True):
        state, run = estimator._draw(path, N_GROUPS * n_draws, rng)
        run = estimator._checks(path, int(rng.integers(2**31))).beside(run)
        result = run.read()
        attempts = regions_to_cover(path, run, result)
        if is_last or not attempts:
            break
        path = path.with_regions(attempts[-1])
    return path.rows(state).reshape(n_draws, N_GROUPS, -1).swapaxes(0, 1), result


def draw_alarms(shares: Sequence[float]) -> tuple[str, ...]:
    """Alarms about draws of the two models, in sentences, from the shares of their variance that
    lie between ladders.
    """
    return tuple(
        f"draws of the {name} model differ between ladders ({share:.0%} of the variance lies"
        " between them)"
        for name, share in zip(("first", "second"), shares)
        if share > MOST_BETWEEN
    )


def disagreement(direct: PartitionResult, a: Any, b: Any) -> str | None:
    """A sentence if the direct ratio and the difference of two log Z are too far apart,
    else None.
    """
    first, second = (entrant.model.partition_estimator_.result_ for entrant in (a, b))
    apart = direct.log_partition - (second.log_partition - first.log_partition)
    error = float(np.sqrt(direct.std_error**2 + first.std_error**2 + second.std_error**2))
    if abs(apart) <= _MOST_APART * error:
        return None
    return (
        f"the direct ratio of {b.name}'s Z to {a.name}'s and the difference of their log Z are"
        f" {abs(apart):.2g} nats apart, more than {_MOST_APART:g} joint standard errors"
        f" ({error:.2g}): one of the three runs missed a part of a model; give a longer"
        " partition_estimator"
    )

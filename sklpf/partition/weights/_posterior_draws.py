"""Draws of a posterior as users have them: arrays, arrays by name, ArviZ's and xarray's objects,
and the draws of our own runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.random import seeded
from sklpf._utils.validation import as_float64
from sklpf._utils.warnings import Alarm, warn
from sklpf.partition._result import PartitionResult, Run
from sklpf.partition.alarms import raised
from sklpf.paths import Gaussian, GeometricPath, Path, has, takes_one_point
from sklpf.programs import Draws
from sklpf.uncertainty import count_interleaved, deinterleaved, first_axis_is_time


class PosteriorDraws(NamedTuple):
    """Points (n_chains, n_draws, d) in the path's coordinates, each chain in its order, the number
    of divergent transitions, None where nobody counted, and alarms about where they come from.
    """

    points: Array
    n_divergent: int | None = None
    alarms: tuple[Alarm, ...] = ()


def path_and_draws(path: object, draws: object, seed: int) -> tuple[Any, Any]:
    """Return the path of a log density that is given as a function, with its base around the draws,
    and these as `PosteriorDraws`; any other path with its draws as they are.
    """
    if not callable(path) or hasattr(path, "path"):
        return path, draws
    draws = posterior_draws(draws, seed=seed)
    points = draws.points.reshape(-1, draws.points.shape[-1])
    of_points = not takes_one_point(path, points)
    return GeometricPath(path, base=Gaussian.fit(points), vectorized=of_points), draws


def posterior_draws(draws: Any, path: Path | None = None, seed: int = 0) -> PosteriorDraws:
    """Return draws in the coordinates of a path; without a path as they are.

    Arrays with their steps first, or with chains that take turns in one, are put into order, with a
    warning. The seed is that of thinning by weights.

    Raises
    ------
    TypeError
        If they are nothing that is known.
    ValueError
        If they have other names or dimensions than the path, or hold NaN or infinity.
    """
    if isinstance(draws, PosteriorDraws):
        return draws
    source = getattr(draws, "result_", draws)  # of a fitted estimator
    kept = source if isinstance(source, Draws) else getattr(source, "draws", None)
    if isinstance(kept, Draws):
        points = _checked(kept.resample().points, path)
        return PosteriorDraws(points, alarms=_run_alarms(source))
    if isinstance(source, (PartitionResult, Run)):
        raise ValueError("draws must be those of a run that kept its draws, and this kept none")

    n_divergent = _count_divergent(draws)
    if callable(getattr(draws, "get_chain", None)):  # of emcee and zeus, and emcee's backends
        points = as_float64(draws.get_chain(), "draws.get_chain()")
        return PosteriorDraws(_checked(points.swapaxes(0, 1), path))
    if callable(getattr(draws, "get_samples", None)):  # of NumPyro
        draws = draws.get_samples(group_by_chain=True)
    nested = _of_nested_sampling(draws)
    if nested is not None:
        draws = nested.thinned(path, seeded(seed).of("thinning").generator())
        return PosteriorDraws(_checked(draws, path))
    posterior = getattr(draws, "posterior", draws)
    if hasattr(posterior, "data_vars"):
        draws = {str(name): _by_chain(name, values) for name, values in posterior.data_vars.items()}
    points = _from_names(draws, path) if isinstance(draws, Mapping) else as_float64(draws, "draws")
    return PosteriorDraws(_in_order(_checked(points, path)), n_divergent)


def _in_order(points: Array) -> Array:
    """Points (n_chains, n_draws, d), of an array whose axes or chains may be in another order."""
    if first_axis_is_time(points):
        n_steps, n_chains = points.shape[:2]
        warn(
            f"draws are read as {n_steps} steps of {n_chains} chains, as neighbours along their"
            " first axis are alike: give draws.swapaxes(0, 1)"
        )
        return points.swapaxes(0, 1)
    n_interleaved = count_interleaved(points)
    if n_interleaved > 1:
        warn(
            f"draws are read as those of {n_interleaved} chains that take turns, as each is like"
            f" the one {n_interleaved} later: give them as chains, such as emcee's"
            " get_chain().swapaxes(0, 1)"
        )
        return deinterleaved(points, n_interleaved)
    return points


def _run_alarms(source: Draws | PartitionResult | Run) -> tuple[Alarm, ...]:
    """An alarm if the run that made the draws has one: its draws may miss a part of the target."""
    if isinstance(source, Draws):
        return ()  # without their run
    result = source.read() if isinstance(source, Run) else source
    if not result.alarms:
        return ()
    reason = result.alarms[0].seen
    return (raised("runs-not-converged", "draws", "draws", method=result.method, reason=reason),)


class _NestedPoints(NamedTuple):
    """Draws of a nested sampler: points of the unit cube, None where they are not known, the
    parameters of these, and weights (n,) of any scale.
    """

    unit: NDArray | None
    parameters: NDArray
    weights: NDArray

    def thinned(self, path: Any, rng: np.random.Generator) -> Array:
        """Those points that a chance proportional to their weights keeps, in any order, in the
        coordinates of a path: draws of the posterior of which none is repeated.
        """
        weights = as_float64(self.weights, "weights of the draws")
        points: Any = self.parameters
        if has(path, "from_unit_cube"):
            if self.unit is None:
                raise ValueError(
                    "draws are the parameters of a nested sampler's points, and this path needs"
                    " their points of the unit cube: give dynesty's results, UltraNest's result or"
                    " nautilus' sampler itself"
                )
            points = path.from_unit_cube(self.unit)
        points = as_float64(points, "draws")
        if weights.shape != points.shape[:1] or not np.max(weights, initial=0.0) > 0:
            raise ValueError(
                "draws of a nested sampler must have a weight for every point, and one above 0, got"
                f" {len(points)} points and weights of the shape {weights.shape}"
            )
        kept = rng.random(len(weights)) < weights / weights.max()
        return rng.permutation(points[kept])


def _of_nested_sampling(draws: Any) -> _NestedPoints | None:
    """The points of dynesty's and UltraNest's results or samplers, of nautilus' sampler, or of what
    its `posterior` gives; None of anything else.
    """
    if hasattr(draws, "shell_log_v"):
        parameters, log_weights = draws.posterior()[:2]
        unit: Any = np.concatenate(draws.points)
        if len(unit) > len(log_weights):  # those of the exploration are discarded
            kept = zip(draws.points, draws.shell_end_exp)
            unit = np.concatenate([points[start:] for points, start in kept])
        return _NestedPoints(unit, parameters, np.exp(log_weights - np.max(log_weights)))
    results = getattr(draws, "results", draws)
    if hasattr(results, "importance_weights"):
        unit = getattr(results, "samples_u", None)
        return _NestedPoints(unit, results.samples, results.importance_weights())
    if isinstance(results, Mapping) and "weighted_samples" in results:
        weighted = results["weighted_samples"]
        return _NestedPoints(weighted["upoints"], weighted["points"], weighted["weights"])
    if isinstance(draws, tuple) and len(draws) in (3, 4) and np.ndim(draws[1]) == 1:
        log_weights = as_float64(draws[1], "log weights of the draws")
        return _NestedPoints(None, draws[0], np.exp(log_weights - np.max(log_weights)))
    return None


def _by_chain(name: object, values: Any) -> NDArray:
    """The array of a variable of xarray with chains and draws first; of one chain that was selected
    it may lack the first.
    """
    if "draw" not in values.dims:
        raise ValueError(
            f"draws must have the dimensions chain and draw, got {values.dims} of {str(name)!r}:"
            " give the InferenceData itself, without az.extract, which mixes the chains"
        )
    if "chain" not in values.dims:
        values = values.expand_dims("chain")
    return np.asarray(values.transpose("chain", "draw", ...).values)


def _count_divergent(data: Any) -> int | None:
    """Count transitions that the sampler called divergent."""
    statistics = getattr(data, "sample_stats", None)
    if statistics is None or "diverging" not in getattr(statistics, "data_vars", ()):
        return None
    return int(np.sum(statistics["diverging"].values))


def _from_names(values: Mapping[str, Any], path: Any) -> Array:
    """Points of named parameters, each (n_chains, n_draws, ...), or of one chain (n_draws, ...)."""
    arrays = {name: as_float64(array, f"draws[{name!r}]") for name, array in values.items()}
    if not has(path, "unconstrain"):
        if len(arrays) == 1:
            (array,) = arrays.values()
            return array.reshape(*array.shape[:2], -1)
        raise ValueError(
            f"draws have the names {', '.join(arrays)}, and the path doesn't say which coordinates"
            " these are: give an array (n_chains, n_draws, d) of points of the path, or a path with"
            " a method unconstrain"
        )
    shapes = path.parameter_shapes if has(path, "constrain") else {}
    if all(array.shape[1:] == shapes.get(name) for name, array in arrays.items()):
        arrays = {name: array[np.newaxis] for name, array in arrays.items()}
    leading = {array.shape[:2] for array in arrays.values()}
    if len(leading) > 1 or any(array.ndim < 2 for array in arrays.values()):
        raise ValueError(
            "draws by name must have the same shape (n_chains, n_draws) before their own, as from"
            " NumPyro's get_samples(group_by_chain=True), got"
            f" {sorted(array.shape for array in arrays.values())}"
        )
    flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in arrays.items()}
    return path.unconstrain(flat).reshape(*leading.pop(), -1)


def _checked(points: Array, path: Path | None) -> Array:
    """Points (n_chains, n_draws, d), of one chain where they are (n, d)."""
    d = "d" if path is None else path.n_dimensions
    if points.ndim not in (2, 3) or (path is not None and points.shape[-1] != d):
        raise ValueError(
            f"draws must have shape (n_chains, n_draws, {d}) or (n, {d}), the dimensions of the"
            f" path, got {points.shape}"
        )
    if not np.isfinite(points).all():
        raise ValueError("draws hold NaN or infinity: leave out warm-up draws that failed")
    return points if points.ndim == 3 else points[np.newaxis]

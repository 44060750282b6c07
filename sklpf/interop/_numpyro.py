"""from_numpyro: the posterior of a NumPyro model as a path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sklpf._utils.tables import imported
from sklpf._utils.warnings import warn
from sklpf.interop._parameter_path import ParameterPath, Posterior, path_to


def from_numpyro(
    model: Callable[..., Any], *args: object, base: object = "auto", **kwargs: object
) -> ParameterPath:
    """Return the path to the posterior of a NumPyro model; its log Z is the log evidence.

    JAX must compute in 64 bits, ``jax.config.update("jax_enable_x64", True)``; draws may be of a
    sampler that has run in 32 bits.

    Parameters
    ----------
    model : callable
        A NumPyro model, or one within handlers such as ``reparam``.
    *args, **kwargs
        Arguments of the model: the data.
    base : object, default="auto"
        Where chains start, in unconstrained coordinates: "auto", draws of the posterior, or a base,
        as in `from_pymc`.

    Returns
    -------
    ParameterPath
        A path with gradients, names, ``constrain`` and ``unconstrain``.

    Raises
    ------
    ImportError
        If NumPyro is not installed.
    ValueError
        If JAX computes in 32 bits; or if the evidence is not defined: discrete parameters, improper
        priors, ``numpyro.param``.

    Warns
    -----
    UserWarning
        If the data are subsampled.
    """
    numpyro = imported("numpyro", "from_numpyro")
    import jax
    from jax.flatten_util import ravel_pytree
    from numpyro.infer.util import initialize_model, unconstrain_fn

    if not jax.config.jax_enable_x64:
        raise ValueError(
            "JAX computes in 32 bits, too few for log densities: begin the program with"
            ' jax.config.update("jax_enable_x64", True), before anything is computed; draws of a'
            " sampler that has run in 32 bits can be used"
        )
    handlers = numpyro.handlers
    started = handlers.substitute(  # an improper prior has no draws
        handlers.seed(model, 0), substitute_fn=numpyro.infer.init_to_uniform
    )
    _check_sites(handlers.trace(started).get_trace(*args, **kwargs))
    info = initialize_model(
        jax.random.PRNGKey(0), model, model_args=args, model_kwargs=kwargs, dynamic_args=False
    )
    start, unravel = ravel_pytree(info.param_info.z)
    names = list(info.param_info.z)

    def log_density(x):
        return -info.potential_fn(unravel(x))

    def constrain(x):
        values = info.postprocess_fn(unravel(x))
        return {name: values[name] for name in names}

    def unconstrain(values):
        return ravel_pytree(unconstrain_fn(model, args, kwargs, values))[0]

    def draw_prior(n):
        predictive = numpyro.infer.Predictive(model, num_samples=n)
        values = predictive(jax.random.PRNGKey(0), *args, **kwargs)
        return {name: values[name] for name in names}

    return path_to(
        Posterior(
            log_density=_over_points(jax, log_density),
            grad=_over_points(jax, jax.grad(log_density)),
            constrain=_over_points(jax, constrain),
            unconstrain=_over_points(jax, unconstrain),
            parameter_shapes={name: np.shape(value) for name, value in constrain(start).items()},
            start=np.asarray(start, dtype=np.float64),
            draw_prior=draw_prior,
        ),
        base,
    )


def _over_points(jax, function):
    """A function of one point as one of many, which takes and gives NumPy's arrays."""
    compiled = jax.jit(jax.vmap(function))

    def of_points(points):
        # JAX compiles anew for each number of points, so there are few of these: powers of two.
        n = len(jax.tree_util.tree_leaves(points)[0])
        size = 1 << max(n - 1, 0).bit_length()
        padded = jax.tree_util.tree_map(lambda a: np.resize(a, (size, *np.shape(a)[1:])), points)
        return jax.tree_util.tree_map(lambda a: np.array(a[:n]), compiled(padded))

    return of_points


def _check_sites(trace) -> None:
    """Raise ValueError unless the evidence is defined."""
    for name, site in trace.items():
        if site["type"] == "param":
            raise ValueError(
                f"{name} is a numpyro.param, a parameter without a prior, so that the evidence is"
                " not defined: give it one by numpyro.sample"
            )
        if site["type"] != "sample":
            continue
        if site.get("scale") not in (None, 1, 1.0):
            warn(
                f"{name} is scaled by {site['scale']}, as of a subsample of the data: its evidence"
                " is not that of all data",
                UserWarning,
            )
        if site["is_observed"]:
            continue
        distribution = site["fn"]
        while hasattr(distribution, "base_dist"):
            distribution = distribution.base_dist
        if getattr(site["fn"].support, "is_discrete", False):
            raise ValueError(
                f"{name} is a discrete parameter, for which there is no density: sum over it in the"
                " model"
            )
        if type(distribution).__name__ == "ImproperUniform":
            raise ValueError(
                f"{name} has an improper prior, so that the evidence is not defined: give it a"
                " proper one"
            )

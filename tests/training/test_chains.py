"""Chains that training uses."""

import functools

import numpy as np
import pytest

from sklpf.models.products._experts import ProductFamily
from sklpf.training import Chains


def test_chains_that_are_rescaled_find_points_of_all_lengths():
    """Two concentric Gaussians that trajectories hardly cross between: shares of 400 chains, 5
    standard deviations.
    """
    widths, d = np.array([0.8, 3.0]), 20

    def log_parts(x):
        return -0.5 * np.sum(x**2, axis=1)[:, np.newaxis] / widths**2 - d * np.log(widths)

    def grad(x):
        parts = log_parts(x)
        shares = np.exp(parts - np.logaddexp.reduce(parts, axis=1)[:, np.newaxis])
        return -x * (shares @ widths**-2.0)[:, np.newaxis]

    rng = np.random.default_rng(0)
    chains = Chains(3.0 * rng.normal(size=(400, d)), rng, rescale=True)
    for _ in range(300):
        chains.move(lambda x: np.logaddexp.reduce(log_parts(x), axis=1), grad)
    share = np.mean(np.linalg.norm(chains.position, axis=1) < 7)
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(400)


@pytest.mark.parametrize("rescale", [False, True])
def test_compiled_trajectories_are_those_of_the_functions(rescale):
    rng = np.random.default_rng(0)
    family = ProductFamily(5, 3, heavy=True)
    parameters = rng.normal(size=20)
    start = rng.normal(size=(30, 3))
    functions, compiled = (
        Chains(start, np.random.default_rng(1), n_leapfrog=4, rescale=rescale) for _ in range(2)
    )
    at = [functools.partial(f, parameters) for f in (family.log_density, family.grad)]
    for _ in range(20):
        functions.move(*at)
        compiled.move_on(family.packed(parameters))
    np.testing.assert_allclose(compiled.position, functions.position, rtol=1e-9)
    assert compiled.step_size == pytest.approx(functions.step_size)

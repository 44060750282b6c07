"""What tests of models on R^d share: slopes against differences, programs against loops, integrals
in the plane.
"""

import numpy as np

from sklpf.kernels import njit
from sklpf.kernels._densities import Values, evaluate
from sklpf.paths import Stream
from sklpf.programs import _plain, _programs
from sklpf.transitions import HMC


def slopes(function, x, width=1e-6):
    """Central differences of a function of one vector."""
    steps = width * np.eye(len(x))
    return np.array([(function(x + step) - function(x - step)) / (2 * width) for step in steps])


def assert_family_has_its_slopes(family, parameters, x, rng):
    """grad and grad_parameters against differences, rtol 1e-6."""
    expected = [
        slopes(lambda point: family.log_density(parameters, point[np.newaxis])[0], point)
        for point in x
    ]
    np.testing.assert_allclose(family.grad(parameters, x), expected, rtol=1e-6, atol=1e-7)
    weights = rng.normal(size=len(x))
    expected = slopes(lambda parameters: weights @ family.log_density(parameters, x), parameters)
    np.testing.assert_allclose(
        family.grad_parameters(parameters, x, weights), expected, rtol=1e-6, atol=1e-7
    )


@njit
def _evaluate(density, position, values):
    evaluate(density, position, values)


def assert_kernel_writes_all_values(path, n=7):
    """The compiled densities and slopes, on buffers filled with NaN, against the path's own."""
    state = path.sample_base(n, Stream((1, 2)))
    values = Values(
        *(
            np.full(shape, np.nan)
            for shape in (n, n, (n, path.n_dimensions), (n, path.n_dimensions))
        )
    )
    _evaluate(path.packed, state.position, values)
    for new, old in zip(values, (*path.ends(state), *path.gradients(state))):
        np.testing.assert_allclose(new, old, rtol=1e-12, atol=1e-12)


def assert_programs_are_those_of_the_loops(path, rtol=1e-9):
    """Annealing with HMC, compiled and plain; the other programs use the same hooks."""
    path, stream = path.with_ladder(np.linspace(0, 1, 8)), Stream((1, 2), 5)
    move, n_levels = HMC().tune(path, (3, 4)), len(path.ladder)
    state = path.sample_base(n_levels, stream)
    memory = move.init(path, state, stream.aside("memory"))
    order = np.repeat(np.arange(n_levels)[:, np.newaxis], n_levels, axis=1), stream
    looped = _plain.anneal(path, move, state, memory, *order)
    fused = _programs.anneal(path, move, state, memory, *order)
    for old, new in zip((*looped[0], *looped[1], *looped[2:]), (*fused[0], *fused[1], *fused[2:])):
        np.testing.assert_allclose(new, old, rtol=rtol, atol=rtol)


def log_integral(log_f, half_width, n=801):
    """log of the integral over a square of a log density at points (n, 2), by the
    trapezoidal rule.
    """
    grid = np.linspace(-half_width, half_width, n)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    return np.log(np.sum(np.exp(log_f(points)))) + 2 * np.log(grid[1] - grid[0])

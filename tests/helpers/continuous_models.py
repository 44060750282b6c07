"""What tests of models on R^d share: slopes against differences, and integrals in the plane."""

import numpy as np


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
    found = family.grad_parameters(parameters, x, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def assert_path_has_its_slopes(path, state, tolerance):
    """Gradients of both ends of a path against differences."""
    for point, *gradients in zip(state.position, *path.gradients(state)):
        for end, gradient in enumerate(gradients):
            expected = slopes(lambda u, e=end: path.ends(path.at(u[np.newaxis]))[e][0], point)
            np.testing.assert_allclose(gradient, expected, rtol=tolerance, atol=tolerance)


def log_integral(log_f, half_width, n=801):
    """log of the integral over a square of a log density at points (n, 2), by the
    trapezoidal rule.
    """
    grid = np.linspace(-half_width, half_width, n)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    return np.log(np.sum(np.exp(log_f(points)))) + 2 * np.log(grid[1] - grid[0])


def sources(n_samples, n_features=4, seed=0):
    """Rows with independent heavy-tailed sources, scaled and shifted."""
    rng = np.random.default_rng(seed)
    scales = np.logspace(-1, 2, n_features)[:, np.newaxis]
    mixing = scales * rng.normal(size=(n_features, n_features))
    return rng.standard_t(4, size=(n_samples, n_features)) @ mixing.T + 5

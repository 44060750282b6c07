"""Iterated conditional modes against enumeration of all states of a small RBM."""

import numpy as np
import pytest
from known_problems import all_rows

from sklpf import BernoulliRBM, Gaussian, GeometricPath
from sklpf.models import RBMPath
from sklpf.paths import Path, iterated_conditional_modes


def small_path(seed=0, weights="marginal", n_hidden=4, n_visible=6):
    rng = np.random.default_rng(seed)
    shapes = (n_hidden, n_visible), n_visible, n_hidden
    layers = (rng.normal(scale=1.5, size=shape) for shape in shapes)
    return RBMPath(*layers, np.full(n_visible, 0.5), weights=weights)


def log_f(path, v, h):
    return v @ path.components.T @ h + v @ path.intercept_visible + h @ path.intercept_hidden


@pytest.mark.parametrize("weights", ["marginal", "joint"])
@pytest.mark.parametrize("seed", range(3))
def test_it_ends_where_neither_layer_can_be_improved(seed, weights):
    path = small_path(seed, weights)
    visible, hidden = all_rows(6), all_rows(4)
    modes = iterated_conditional_modes(path, path.state_from_rows(visible))
    for v, h, value in zip(modes.state.v, modes.state.h, modes.log_f[-1]):
        assert value == pytest.approx(log_f(path, v, h))
        assert value == pytest.approx(max(log_f(path, v, other) for other in hidden))
        assert value == pytest.approx(max(log_f(path, other, h) for other in visible))
    best = max(log_f(path, v, h) for v in visible for h in hidden)
    # from all rows the highest mode is among them
    assert modes.log_f[-1].max() == pytest.approx(best)


class Descending(Path):
    def log_joint(self, state):
        return -state

    def conditional_modes(self, state):
        return state + 1.0


def test_bad_input_is_refused():
    path = GeometricPath(lambda x: -np.sum(x**2, axis=1), base=Gaussian(0.0, 1.0))
    with pytest.raises(TypeError, match="modes needs a path with the method log_joint"):
        iterated_conditional_modes(path, None)
    rbm = BernoulliRBM.from_parameters([[1.0, 2.0]], [0.0, 0.0], [0.0])
    with pytest.raises(TypeError, match=r"give its path\(\)"):
        iterated_conditional_modes(rbm, None)
    with pytest.raises(TypeError, match="give path.state_from_rows"):
        iterated_conditional_modes(rbm.path(), np.eye(2))
    with pytest.raises(ValueError, match="log_joint falls"):
        iterated_conditional_modes(Descending(), np.zeros(3))
    with pytest.raises(ValueError, match="state must have"):
        iterated_conditional_modes(Descending(), np.array([np.nan]))

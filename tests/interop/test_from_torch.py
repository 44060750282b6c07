"""RBMs written in PyTorch: by a stand-in of modules and tensors, and by itself where it is
installed.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from sklpf import BernoulliRBM
from sklpf.interop import from_torch

RNG = np.random.default_rng(0)
WEIGHTS, VISIBLE, HIDDEN = RNG.normal(size=(3, 4)), RNG.normal(size=4), RNG.normal(size=3)
ROWS = (RNG.random((8, 4)) < 0.5).astype(float)


@pytest.fixture(scope="module")
def expected():
    """What the rows score, by the library's own model."""
    return BernoulliRBM.from_parameters(WEIGHTS, VISIBLE, HIDDEN).score_samples(ROWS)


class Tensor:
    """As torch.Tensor: asked for its numbers while it needs a gradient or lies on a device, it
    raises.
    """

    def __init__(self, values, attached=True, device="cuda"):
        self._values, self._attached, self._device = np.asarray(values), attached, device

    def detach(self):
        return Tensor(self._values, False, self._device)

    def cpu(self):
        return Tensor(self._values, self._attached, "cpu")

    def double(self):
        return Tensor(self._values.astype(np.float64), self._attached, self._device)

    def __array__(self, dtype=None, copy=None):
        if self._attached or self._device != "cpu":
            raise RuntimeError("can't convert a tensor that requires grad, or of a device")
        return np.array(self._values, dtype=dtype)


def module(weights=WEIGHTS, visible=VISIBLE, hidden=HIDDEN, wrap=Tensor, **others):
    return SimpleNamespace(W=wrap(weights), v_bias=wrap(visible), h_bias=wrap(hidden), **others)


@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS.T])
@pytest.mark.parametrize("wrap", [Tensor, np.asarray, np.ndarray.tolist])
def test_either_layout_of_tensors_and_arrays(weights, wrap, expected):
    for rbm in (module(weights, wrap=wrap), vars(module(weights, wrap=wrap))):
        np.testing.assert_allclose(from_torch(rbm).score_samples(ROWS), expected, atol=1e-12)


def test_names_of_arrays(expected):
    inner = SimpleNamespace(weights=WEIGHTS, a=VISIBLE[np.newaxis], b=HIDDEN[np.newaxis])
    outer = SimpleNamespace(rbm=inner, w=WEIGHTS)
    names = {"weight": "rbm.weights", "visible": "rbm.a", "hidden": "rbm.b"}
    np.testing.assert_allclose(from_torch(outer, **names).score_samples(ROWS), expected, atol=1e-12)
    with pytest.raises(ValueError, match="no array 'v_bias' but rbm, w: say by weight, visible"):
        from_torch(outer)
    with pytest.raises(TypeError, match="module must be a module of PyTorch or a dict with"):
        from_torch({})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"weights": np.ones((3, 5))}, r"shape \(3, 4\) or \(4, 3\) to fit .*, got \(3, 5\)"),
        ({"visible": np.ones((2, 2))}, r"v_bias must be one bias .*, got the shape \(2, 2\)"),
        ({"weights": np.full((3, 4), np.inf)}, "components contains infinity"),
    ],
)
def test_wrong_arrays(arrays, message):
    with pytest.raises(ValueError, match=message):
        from_torch(module(**arrays))


@pytest.mark.parametrize("name", ["T", "temperature"])
def test_a_temperature_is_refused_until_it_is_said_what_it_means(name, expected):
    rbm = module(**{name: 0.5})
    with pytest.raises(ValueError, match=f"has a temperature {name} = 0.5: give it as temperature"):
        from_torch(rbm)
    for cold in (from_torch(rbm, temperature=1), from_torch(module(**{name: 1.0}))):
        np.testing.assert_allclose(cold.score_samples(ROWS), expected, atol=1e-12)
    folded = from_torch(rbm, temperature=0.5)
    np.testing.assert_allclose(folded.components_, 2 * WEIGHTS)
    chances = 1 / (1 + np.exp(-(ROWS @ WEIGHTS.T + HIDDEN) / 0.5))  # at this temperature
    np.testing.assert_allclose(folded.transform(ROWS), chances)


# ---- PyTorch itself
@pytest.mark.filterwarnings("ignore")  # torch's own
def test_torch(expected):
    torch = pytest.importorskip("torch", reason="torch is not installed (dependency group interop)")

    class RBM(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.W = torch.nn.Parameter(torch.tensor(WEIGHTS.T))
            self.v_bias = torch.nn.Parameter(torch.tensor(VISIBLE))
            self.register_buffer("h_bias", torch.tensor(HIDDEN)[None])

    rbm = RBM()
    for given in (rbm, rbm.state_dict()):
        np.testing.assert_allclose(from_torch(given).score_samples(ROWS), expected, atol=1e-12)
    half = from_torch(rbm.to(torch.bfloat16))
    assert half.components_.dtype == np.float64
    np.testing.assert_allclose(half.components_, WEIGHTS, rtol=0.01)
    with pytest.raises(ValueError, match="no array 'c' but W, v_bias"):
        from_torch(rbm, hidden="c")
    rbm.T = torch.tensor(2.0)
    with pytest.raises(ValueError, match="temperature T = 2.0"):
        from_torch(rbm)
    attached = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):  # as the stand-in
        np.asarray(attached)

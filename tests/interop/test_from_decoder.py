"""Decoders in NumPy, PyTorch and JAX give the same; what can't be used is refused in a sentence."""

import pickle

import numpy as np
import pytest
from convergence import may_not_converge
from decoders import Layers
from sklearn.base import clone

from sklpf import HAIS
from sklpf.interop import from_decoder

NETWORK = Layers([2, 20, 12], 2.0)
RNG = np.random.default_rng(0)


def make(decoder=NETWORK.decoder, pullback=NETWORK.pullback, **parameters):
    return from_decoder(decoder, 2, pullback=pullback, **parameters)


def of_other_precision(z):
    raise RuntimeError("mat1 and mat2 must have the same dtype, but got Float and Double")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"decoder": lambda z: z[:, 0]}, r"must give the shape \(16, n_features\)"),
        ({"decoder": lambda z: z * np.nan}, "decoder is NaN or infinite"),
        ({"decoder": lambda z: NETWORK.decoder(z) + 1j}, "decoder must give real numbers"),
        ({"decoder": lambda z: z + RNG.normal(size=z.shape)}, "decoder is random"),
        ({"decoder": lambda z: z @ np.ones((3, 4))}, "alone, such as vae.decode"),
        ({"decoder": lambda z, y: z}, "decoder can't be called with an array of shape"),
        ({"decoder": lambda z: NETWORK.decoder(z).astype(np.float16)}, "in half precision"),
        (
            {"decoder": of_other_precision},
            "several precisions .*: convert all of it by decoder.double",
        ),
        ({"pullback": lambda z, g: 2 * z}, "gradient disagrees with differences of its outputs"),
        ({"pullback": lambda z, g: 1e200 * z}, "the decoder's gradient is beyond 1e100"),
        ({"pullback": lambda z, g: g}, "gradient must have the shape"),
        ({"pullback": "x"}, "pullback must be a function of latent variables z and of g"),
        ({"pullback": lambda g: g}, r"as pullback\(z, g\), got pullback\(g\)"),
        ({"encoder": "x"}, "encoder must be a function of rows"),
        ({"likelihood": "gaussian"}, "noise_std must be a number"),
        ({"likelihood": "poisson"}, "likelihood"),
        ({"outputs": "logit"}, "outputs"),
        ({"outputs": "probabilities"}, r"must give numbers in \[0, 1\]"),
        ({"outputs": "logits", "likelihood": "gaussian", "noise_std": 1.0}, "outputs must be None"),
    ],
)
def test_what_can_not_be_used_is_refused(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**parameters)


def test_decoders_may_give_their_own_array_again():
    buffer = np.empty((256, 12))

    def decoder(z):
        buffer[: len(z)] = NETWORK.decoder(z)
        return buffer[: len(z)]

    rows = make().sample(600, random_state=0)
    np.testing.assert_array_equal(make(decoder).sample(600, random_state=0), rows)


def test_kinks_and_single_precision_are_taken():
    weights = np.random.default_rng(1).normal(size=(2, 30)).astype(np.float32)

    def decoder(z):
        return np.maximum(z.astype(np.float32) @ weights, 0)

    def pullback(z, g):
        return (g.astype(np.float32) * (z.astype(np.float32) @ weights > 0)) @ weights.T

    assert make(decoder, pullback).n_features_in_ == 30


# ---- PyTorch and JAX, where they are installed
SHORT = HAIS(12, 30, random_state=3)
ROWS = NETWORK.model().sample(4, random_state=0)


def scores(model):
    with may_not_converge():
        return model.set_params(partition_estimator=SHORT).score_samples(ROWS)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def module(torch):
    """The same network in PyTorch, ready to be used."""
    layers = []
    for weights, bias in zip(NETWORK.weights, NETWORK.biases):
        layer = torch.nn.Linear(*weights.shape, dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(weights.T))
            layer.bias.copy_(torch.as_tensor(bias))
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers[:-1]).eval()


def test_a_module_scores_as_the_same_network_in_numpy(module, torch):
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with torch.no_grad():  # whatever holds around
        model = from_decoder(module, 2, random_state=0)
        assert repr(model) == "DecoderModel(forward=Sequential, n_latents=2, random_state=0)"
        np.testing.assert_allclose(scores(model), scores(make(random_state=0)), atol=1e-9)
    for name, parameter in module.named_parameters():
        assert parameter.requires_grad
        assert parameter.grad is None
        assert torch.equal(parameter, before[name])
    copy = pickle.loads(pickle.dumps(clone(model).fit(ROWS)))
    np.testing.assert_array_equal(scores(copy), scores(model))


def test_modules_that_can_not_be_used_are_refused(module, torch):
    module[1].train()
    with pytest.raises(ValueError, match="training mode"):
        from_decoder(module, 2)
    module.eval()
    with pytest.raises(TypeError, match="pullback must be None"):
        from_decoder(module, 2, pullback=NETWORK.pullback)
    model = from_decoder(module, 2)
    module.train()
    with pytest.raises(ValueError, match="training mode"):
        model.sample()

    class Detached(torch.nn.Module):
        def forward(self, z):
            return module.eval()(z.detach())

    with pytest.raises(ValueError, match="no gradient"):
        from_decoder(Detached().eval(), 2)


def test_a_function_of_jax_scores_as_the_same_network_in_numpy():
    jax = pytest.importorskip("jax", reason="JAX is not installed")

    def decoder(z):
        for weights, bias in zip(NETWORK.weights[:-1], NETWORK.biases[:-1]):
            z = jax.numpy.tanh(z @ weights + bias)
        return z @ NETWORK.weights[-1] + NETWORK.biases[-1]

    model = from_decoder(decoder, 2, random_state=0)  # in single precision, unless told otherwise
    latents = np.random.default_rng(0).normal(size=(256, 2))
    outputs, pullback = model.forward(latents)
    np.testing.assert_allclose(outputs, NETWORK.decoder(latents), atol=1e-4)
    weights = np.ones_like(outputs)
    np.testing.assert_allclose(pullback(weights), NETWORK.pullback(latents, weights), atol=1e-3)
    assert np.isfinite(scores(model)).all()


def test_modules_of_two_precisions_are_told_to_have_one():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    inner = torch.nn.Linear(2, 12).double()
    mixed = torch.nn.Sequential(torch.nn.Linear(2, 2), inner).eval()
    with pytest.raises(TypeError, match=r"computes in several precisions.*decoder.double\(\)"):
        from_decoder(mixed, 2)
    from_decoder(mixed.double(), 2)
    with pytest.raises(ValueError, match="convert it by decoder.float"):
        from_decoder(mixed.bfloat16(), 2)

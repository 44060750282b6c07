"""Decoders that can't be used are refused with a sentence that says why."""

import numpy as np
import pytest
from decoders import Layers

from sklpf.interop import from_decoder

NETWORK = Layers([2, 20, 12], 2.0)
RNG = np.random.default_rng(0)


def make(decoder=NETWORK.decoder, pullback=NETWORK.pullback, **parameters):
    return from_decoder(decoder, 2, pullback=pullback, **parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"decoder": lambda z: z[:, 0]}, r"must give the shape \(256, n_features\)"),
        ({"decoder": lambda z: z[:7]}, r"must give the shape \(256, n_features\)"),
        ({"decoder": lambda z: z * np.nan}, "decoder is NaN or infinite"),
        ({"decoder": lambda z: "text"}, "must be an array of numbers"),
        ({"decoder": lambda z: z + RNG.normal(size=z.shape)}, "decoder is random"),
        ({"pullback": lambda z, g: 2 * NETWORK.pullback(z, g)}, "pullback disagrees"),
        ({"pullback": lambda z, g: g}, "gradient must have the shape"),
        ({"pullback": lambda z, g: np.inf * z}, "gradient is NaN or infinite"),
        ({"likelihood": "gaussian"}, "noise_std must be a number"),
        ({"noise_std": 0.1}, "noise_std must be a number"),
        ({"likelihood": "poisson"}, "likelihood"),
        ({"chunk_size": 0}, "chunk_size"),
    ],
)
def test_what_can_not_be_used_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters)


def test_functions_without_a_gradient_are_refused():
    with pytest.raises(TypeError, match="pullback"):
        make(pullback=None)


def test_decoders_may_write_to_what_they_are_given():
    def decoder(z):
        z *= 2
        return NETWORK.decoder(z / 2)

    rows = make().sample(3, random_state=0)
    np.testing.assert_array_equal(make(decoder).sample(3, random_state=0), rows)


def test_kinks_and_single_precision_are_taken():
    weights = np.random.default_rng(1).normal(size=(2, 30)).astype(np.float32)

    def decoder(z):
        return np.maximum(z.astype(np.float32) @ weights, 0)

    def pullback(z, g):
        return (g.astype(np.float32) * (z.astype(np.float32) @ weights > 0)) @ weights.T

    assert make(decoder, pullback).n_features_in_ == 30

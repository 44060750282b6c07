"""Decoders: the generative part of a variational autoencoder or a GAN."""

from sklpf.models.decoder._importance import DecoderImportance
from sklpf.models.decoder._model import DecoderModel
from sklpf.models.decoder._path import DecoderPath

__all__ = [
    "DecoderImportance",
    "DecoderModel",
    "DecoderPath",
]

"""Decoders: the generative part of a variational autoencoder or a GAN."""

"""from_decoder: the likelihood of rows under a decoder that another library trained."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sklpf.models import DecoderModel


def from_decoder(
    decoder: Any,
    n_latents: int,
    *,
    pullback: Callable[[NDArray, NDArray], NDArray] | None = None,
    likelihood: Literal["bernoulli", "gaussian"] = "bernoulli",
    noise_std: float | None = None,
    encoder: Any = None,
    **parameters: Any,
) -> DecoderModel:
    """Return a model of rows x ~ p(x | decoder(z)) with z ~ N(0, I), which scores them.

    As of variational autoencoders, and of generative adversarial networks with noise (Wu et al.
    2017). The decoder is used as it is and never changed.

    Parameters
    ----------
    decoder : callable
        A function of latent variables (n, n_latents) in float64 that gives logits ("bernoulli") or
        means ("gaussian") of shape (n, n_features).
    n_latents : int
        Number of latent variables.
    pullback : callable or None, default=None
        pullback(z, g) is the gradient by z of ``sum(g * decoder(z))``, of shape (n, n_latents).
    likelihood : {"bernoulli", "gaussian"}, default="bernoulli"
        Of a row given the outputs: independent binary features with these logits, or real ones with
        these means and noise of `noise_std`.
    noise_std : float or None, default=None
        Standard deviation of the noise, in the units of X; "gaussian" needs it.
    encoder : callable or None, default=None
        A function of rows (n, n_features) that gives mean and log variance of their latent
        variables, both (n, n_latents). Chains then start there, which takes fewer levels; it does
        not change what is estimated.
    **parameters
        Of `sklpf.models.DecoderModel`, such as `partition_estimator`, `chunk_size` or
        `random_state`.

    Returns
    -------
    model : DecoderModel
        With `score`, `score_samples`, `score_interval`, `path` and `sample`.

    Raises
    ------
    TypeError
        If there is no gradient.
    ValueError
        If the decoder gives NaN, shapes that do not fit, or two outputs for the same latent
        variables, or if `pullback` disagrees with it. Rows that a Bernoulli likelihood has no
        density of are refused when they are scored.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_decoder
    >>> W = np.array([[1.0, -2.0, 0.5]])
    >>> model = from_decoder(lambda z: z @ W, 1, pullback=lambda z, g: g @ W.T, random_state=0)
    >>> X = model.sample(5, random_state=0)
    >>> model.score_samples(X).shape
    (5,)
    """
    if pullback is None:
        raise TypeError(
            "decoder must come with pullback(z, g), the gradient by z of sum(g * decoder(z))"
        )
    forward = functools.partial(_with_pullback, decoder, pullback)
    model = DecoderModel(
        forward,
        n_latents,
        likelihood=likelihood,
        noise_std=noise_std,
        encode=encoder,
        **parameters,
    )
    return model._adopt()


def _with_pullback(decoder, pullback, latents):
    """Outputs of a decoder, and its pullback at these latent variables."""
    return np.asarray(decoder(latents.copy())), functools.partial(pullback, latents)

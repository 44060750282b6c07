"""from_decoder: the likelihood of rows under a decoder that another library trained."""

from __future__ import annotations

import functools
import inspect
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
    outputs: Literal["logits", "probabilities"] | None = None,
    **parameters: Any,
) -> DecoderModel:
    """Return a model of rows x ~ p(x | decoder(z)) with z ~ N(0, I), which scores them.

    As of variational autoencoders, and of generative adversarial networks with noise (Wu et al.
    2017). The decoder is used as it is and never changed.

    Parameters
    ----------
    decoder : torch.nn.Module, a method of one, or callable
        A function of latent variables (n, n_latents), which returns logits or probabilities
        ("bernoulli") or means ("gaussian") of shape (n, n_features). A module of PyTorch stays on
        its device and in its precision, and must be in evaluation mode; any other function is one
        of JAX, or with `pullback` of NumPy arrays in float64.
    n_latents : int
        Number of latent variables.
    pullback : callable or None, default=None
        pullback(z, g) is the gradient by z of ``sum(g * decoder(z))``, of shape (n, n_latents), of
        a decoder that is written in NumPy.
    likelihood : {"bernoulli", "gaussian"}, default="bernoulli"
        Likelihood of a row given the outputs: independent binary features with these logits or
        probabilities, or real ones with these means and noise of `noise_std`.
    noise_std : float or None, default=None
        Standard deviation of the noise, in the units of X; "gaussian" needs it.
    encoder : torch.nn.Module, a method of one, callable or None, default=None
        A function of rows (n, n_features), which returns mean and log variance of their latent
        variables, both (n, n_latents). Chains then start there, which takes fewer levels; it does
        not change what is estimated.
    outputs : {"logits", "probabilities"} or None, default=None
        Outputs of a "bernoulli" decoder. "probabilities" are those of 1, as of a last layer with a
        sigmoid; a log probability counts as at least -100, since an output of 0 or 1 may be
        rounded. Logits, from before that layer, are not rounded. None: logits, of which some must
        lie outside of [0, 1].
    **parameters
        Parameters of `sklpf.models.DecoderModel`, such as `partition_estimator`, `chunk_size` or
        `random_state`.

    Returns
    -------
    model : DecoderModel
        A model with `score`, `score_samples`, `score_interval`, `path` and `sample`.

    Raises
    ------
    TypeError
        If the decoder has no gradient, or can't be called with latent variables.
    ValueError
        If a module is in training mode, if the decoder gives NaN, shapes that do not fit, or two
        outputs for the same latent variables, or outputs in [0, 1] alone that nobody called
        probabilities, or if `pullback` disagrees with it. Rows that a Bernoulli likelihood has no
        density of are refused when they are scored, and so is a decoder that changes meanwhile.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_decoder
    >>> W = np.array([[1.0, -2.0, 0.5]])
    >>> pullback = lambda z, g: g @ W.T
    >>> model = from_decoder(lambda z: z @ W, 1, pullback=pullback, random_state=0)
    >>> X = model.sample(5, random_state=0)
    >>> model.score_samples(X).shape
    (5,)
    """
    if encoder is not None and not callable(encoder):
        raise TypeError(f"encoder must be a function of rows (n, n_features), got {encoder!r:.80}")
    model = DecoderModel(
        _forward(decoder, pullback),
        n_latents,
        likelihood=likelihood,
        noise_std=noise_std,
        outputs=outputs,
        encode=encoder if _module(encoder) is None else _Given(_encode_torch, encoder),
        **parameters,
    )
    return model._adopt()


class _Given(functools.partial):
    """A function that calls one of the user's, by whose name it is shown."""

    def __repr__(self) -> str:
        given = self.args[0]
        return getattr(given, "__qualname__", type(given).__name__)


def _forward(decoder, pullback):
    """The decoder as a function that gives its outputs and their pullback, in NumPy arrays."""
    if _module(decoder) is not None:
        if pullback is not None:
            raise TypeError("pullback must be None for a module of PyTorch, which has its own")
        return _Given(_with_torch, decoder)
    if not callable(decoder):
        raise TypeError(
            f"decoder must be a function of latent variables (n, n_latents), got {decoder!r:.80}"
        )
    if pullback is not None and not callable(pullback):
        raise TypeError(
            "pullback must be a function of latent variables z and of g, a gradient by the outputs"
            f" of decoder(z), got {pullback!r:.80}"
        )
    if pullback is not None:
        _check_takes_two(pullback)
        return _Given(_with_pullback, decoder, pullback)
    return _JaxForward(decoder)


def _check_takes_two(pullback):
    try:
        inspect.signature(pullback).bind(None, None)
    except TypeError:
        raise TypeError(
            "pullback must take latent variables z and g, a gradient by the outputs of decoder(z),"
            f" as pullback(z, g), got pullback{inspect.signature(pullback)}"
        ) from None
    except ValueError:  # a function that does not say what it takes
        return


def _called(name, function, array):
    """Return function(array), or raise TypeError which says that it can't be called."""
    try:
        return function(array)
    except Exception as error:
        wanted = "latent variables alone, such as vae.decode" if name == "decoder" else "rows alone"
        if "dtype" in str(error):
            raise TypeError(
                f"{name} computes in several precisions ({_first_line(error)}): convert all of it"
                f" by {name}.double(), and leave out what converts its input, such as float()"
            ) from error
        raise TypeError(
            f"{name} can't be called with an array of shape {tuple(array.shape)}"
            f" ({_first_line(error)}): give a function of {wanted}"
        ) from error


def _first_line(error):
    line = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line:.200}"


def _with_pullback(decoder, pullback, latents):
    """Outputs of a decoder in NumPy, and its pullback at these latent variables."""
    return _called("decoder", decoder, latents.copy()), functools.partial(pullback, latents)


# -- PyTorch
def _module(function) -> Any:
    """The module of PyTorch that a function is, or is a method of; else None."""
    for owner in (function, getattr(function, "__self__", None)):
        names = {(base.__module__.split(".")[0], base.__name__) for base in type(owner).__mro__}
        if ("torch", "Module") in names:
            return owner
    return None


def _to_torch(function, array):
    """An array as a tensor like the parameters of a function's module, which must not be in
    training mode.
    """
    import torch

    module = _module(function)
    if any(part.training for part in module.modules()):
        raise ValueError(
            f"{type(module).__name__} is in training mode, in which dropout and batch normalisation"
            " are random: call its eval() first"
        )
    parameter = next(module.parameters(), torch.zeros((), dtype=torch.float64))
    return torch.as_tensor(array, dtype=parameter.dtype, device=parameter.device)


def _to_numpy(tensor):
    if not hasattr(tensor, "detach"):
        raise TypeError(
            f"a module must give a tensor, got {type(tensor).__name__}: of an autoencoder give the"
            " decoder alone, such as vae.decode"
        )
    return tensor.detach().cpu().double().numpy()


def _with_torch(decoder, latents):
    """Outputs of a decoder in PyTorch, and its pullback; no parameter's gradient is touched."""
    import torch

    with torch.enable_grad():
        inputs = _to_torch(decoder, latents).requires_grad_()
        outputs = _called("decoder", decoder, inputs)

    def pullback(by_outputs):
        weights = torch.as_tensor(by_outputs).to(outputs)
        try:
            (gradient,) = torch.autograd.grad(outputs, inputs, weights)
        except RuntimeError as error:
            raise ValueError(f"decoder has no gradient by the latent variables: {error}") from error
        return _to_numpy(gradient)

    return _to_numpy(outputs), pullback


def _encode_torch(encoder, X):
    import torch

    with torch.no_grad():
        parts = _called("encoder", encoder, _to_torch(encoder, X))
    if hasattr(parts, "detach"):
        raise TypeError("encoder must give mean and log variance, two tensors, got one")
    return [_to_numpy(part) for part in parts]


# -- JAX
class _JaxForward:
    """Outputs of a decoder in JAX, and its pullback, compiled for chunks of one shape."""

    def __init__(self, decoder):
        try:
            import jax
        except ImportError as error:
            raise TypeError(
                "decoder must come with pullback(z, g), the gradient by z of sum(g * decoder(z)):"
                " it is no module of PyTorch, and JAX, which would find the gradient, is not"
                " installed"
            ) from error
        self._decoder = decoder
        self._outputs = jax.jit(decoder)
        self._pullback = jax.jit(self._pull_back)

    def __call__(self, latents):
        try:
            outputs = self._outputs(latents)
        except Exception as error:
            raise TypeError(
                "decoder must come with pullback(z, g), the gradient by z of sum(g * decoder(z)),"
                " unless it is a module of PyTorch (a function around one must become a module's"
                " forward) or a function of JAX, and JAX can't call it:"
                f" {_first_line(error)}"
            ) from error
        return np.asarray(outputs), lambda by_outputs: np.asarray(
            self._pullback(latents, by_outputs)
        )

    def _pull_back(self, latents, by_outputs):
        import jax

        outputs, pullback = jax.vjp(self._decoder, latents)
        return pullback(by_outputs.astype(outputs.dtype))[0]

    def __reduce__(self):
        return _JaxForward, (self._decoder,)

"""from_torch: the arrays of an RBM that was written in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from operator import attrgetter

import numpy as np

from sklpf._utils.numbers import Array
from sklpf._utils.validation import as_float64, check_scale
from sklpf.models import BernoulliRBM

_TEMPERATURES = ("T", "temperature")  # what such modules call it


def from_torch(
    module: object,
    *,
    weight: str = "W",
    visible: str = "v_bias",
    hidden: str = "h_bias",
    visible_first: bool | None = None,
    temperature: float | None = None,
    **parameters: object,
) -> BernoulliRBM:
    """Return a `BernoulliRBM` with the weights of a module.

    There is no RBM in PyTorch itself, so that modules name and lay out their arrays as they like.
    Units must be binary, with the energy -(c @ v + b @ h + h @ W @ v).

    Parameters
    ----------
    module : torch.nn.Module, its state_dict, or anything with such attributes or keys
        Tensors on any device, with or without gradients, or arrays; they are copied in float64.
    weight, visible, hidden : str, default="W", "v_bias" and "h_bias"
        Names of the weights, of the biases of the visible and of those of the hidden units; "rbm.W"
        is W of ``rbm``.
    visible_first : bool or None, default=None
        Whether the weights have the shape (n_visible, n_hidden). None: what the biases fit, which
        says nothing where there are as many visible as hidden units.
    temperature : float or None, default=None
        T of the density exp(-energy / T) / Z, as of units that are on with probability
        sigmoid(input / T); weights and biases are divided by it. None is 1, but an error for a
        module whose ``T`` or ``temperature`` is another one.
    **parameters
        Parameters of `BernoulliRBM.from_parameters`; `visible_mean`, the means of the training
        data, makes log Z easier to find.

    Returns
    -------
    fitted : BernoulliRBM

    Raises
    ------
    ValueError
        If an array is missing, not finite, or of a shape that does not fit the others; if the
        weights could be meant either way; or if it is not said at what temperature the module is
        meant.
    TypeError
        If an array does not hold real numbers, or the module has none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_torch
    >>> arrays = {
    ...     "W": np.zeros((2, 3)),
    ...     "v_bias": np.zeros(3),
    ...     "h_bias": np.zeros(2),
    ... }  # or a module
    >>> round(from_torch(arrays).score(np.eye(3)), 4)  # -3 log 2
    -2.0794
    """
    biases = _vector(module, visible), _vector(module, hidden)
    components = _by_hidden(_array(module, weight), len(biases[0]), len(biases[1]), visible_first)
    scale = 1 / _temperature(module, temperature)
    return BernoulliRBM.from_parameters(
        components * scale, *(bias * scale for bias in biases), **parameters
    )


def _array(module, name) -> Array:
    try:
        value = module[name] if isinstance(module, Mapping) else attrgetter(name)(module)
    except (KeyError, AttributeError):
        names = ", ".join(_names(module))
        if not names:
            raise TypeError(
                f"module must be a module of PyTorch or a dict with arrays, got {module!r:.80}"
            ) from None
        raise ValueError(
            f"the module has no array {name!r} but {names}: say by weight, visible and hidden what"
            " they are called"
        ) from None
    if hasattr(value, "detach"):
        value = value.double()  # NumPy has no bfloat16
    return as_float64(value, name)


def _names(module) -> list[str]:
    if hasattr(module, "named_parameters"):
        return [name for name, _ in module.named_parameters()]
    return [
        str(name)
        for name in (module if isinstance(module, Mapping) else getattr(module, "__dict__", ()))
    ]


def _vector(module, name) -> Array:
    bias = _array(module, name)
    if bias.size != max(bias.shape, default=0):
        raise ValueError(f"{name} must be one bias for each unit, got the shape {bias.shape}")
    return bias.ravel()


def _by_hidden(weights, n_visible, n_hidden, visible_first) -> Array:
    """The weights with a row for each hidden unit."""
    shapes = {True: (n_visible, n_hidden), False: (n_hidden, n_visible)}
    if visible_first is not None:
        shapes = {visible_first: shapes[visible_first]}
    fits = [first for first, shape in shapes.items() if weights.shape == shape]
    if len(fits) == 1:
        return np.ascontiguousarray(weights.T if fits[0] else weights)
    if fits:
        raise ValueError(
            f"there are {n_visible} visible and {n_hidden} hidden units, so that weights can be"
            " meant either way: give visible_first=True for the shape (n_visible, n_hidden), else"
            " False"
        )
    wanted = " or ".join(sorted(set(map(str, shapes.values()))))
    raise ValueError(
        f"the weights must have the shape {wanted} to fit the biases, got {weights.shape}"
    )


def _temperature(module, temperature) -> float:
    if temperature is not None:
        return check_scale(temperature, "temperature")
    look = module.get if isinstance(module, Mapping) else lambda name: getattr(module, name, None)
    for name in _TEMPERATURES:
        if not _is_number(look(name)):  # a method, for instance
            continue
        value = _array(module, name)
        if value.size != 1 or value.item() != 1:
            raise ValueError(
                f"the module has a temperature {name} = {value.tolist()}: give it as"
                " temperature for the density exp(-energy / T) / Z that its units follow, or"
                " temperature=1 if nothing but training used it"
            )
    return 1.0


def _is_number(value) -> bool:
    return (
        isinstance(value, (Real, np.ndarray))
        and not isinstance(value, bool)
        or hasattr(value, "detach")
    )

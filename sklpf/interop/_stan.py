"""from_stan: the posterior of a compiled Stan model as a path."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sklpf._utils.numbers import Array
from sklpf._utils.warnings import warn
from sklpf.interop._parameter_path import ParameterPath, Posterior, Values, path_to

_N_STARTS = 100  # points that are tried for one at which the density is finite, as Stan does
_N_NAMED = 5  # statements in a warning

# What Stan's C++ code throws where a density is not defined, by PyStan and by BridgeStan.
_THROWN = (RuntimeError, ValueError)
_PROPER_TYPES = ("simplex", "unit_vector", "corr_matrix", "cholesky_factor_corr")  # compact
_DROPS_BY_NAME = re.compile(r"\b\w+_lup[dm]f\s*\(")
_DENSITY = re.compile(r"\btarget \+= \w+_lu?p[dm]f ?\(([^|]*)\|(.*)\)$")


class _Model(NamedTuple):
    """A Stan model, of one point at a time, by whichever library compiled it."""

    log_density: Callable[[NDArray], float]
    grad: Callable[[NDArray], Any]
    constrain: Callable[[NDArray], Any]  # all parameters, one after the other
    unconstrain: Callable[[Values], Any]  # of one draw's parameters by name
    element_names: list[str]  # of what `constrain` gives: "mu", "theta.1", "theta.2"
    n_dimensions: int
    program: str  # "" where it is not known


def from_stan(model: Any, *, base: object = "auto") -> ParameterPath:
    """Return the path to the posterior of a Stan model; its log Z is the log evidence.

    Parameters
    ----------
    model : stan.model.Model or bridgestan.StanModel
        A model with its data, from ``stan.build`` of PyStan or from BridgeStan. Models are
        recognised by their methods.
    base : object, default="auto"
        Where chains start, in unconstrained coordinates: "auto", draws of the posterior, or a base.
        As in `from_pymc`, but that "auto" knows no prior: a Stan program has none apart from its
        density.

    Returns
    -------
    ParameterPath
        A path with gradients, names, ``constrain`` and ``unconstrain``.

    Raises
    ------
    TypeError
        If `model` has the methods of neither library.
    ValueError
        If a parameter has no prior, as far as the program's text says (PyStan); or if the log
        density is finite at none of 100 points.

    Warns
    -----
    UserWarning
        If statements drop constants (PyStan), or the posterior has no mode for the base.

    Notes
    -----
    Statements such as ``y ~ normal(mu, 1)`` drop the constants of their density, and functions
    such as ``normal_lupdf`` do. PyStan's log density lacks them, and so does its evidence: write
    ``target += normal_lpdf(y | mu, 1)`` in place of each. BridgeStan's has them.

    PyStan reads the data anew at every call, which for thousands of numbers takes far longer than
    the density; BridgeStan keeps them.

    Draws by name, as for `BridgeSampling`, are those of the parameters block: leave out transformed
    parameters and generated quantities by ``[list(path.parameter_shapes)]``.

    Examples
    --------
    >>> import stan  # doctest: +SKIP
    >>> from sklpf.interop import from_stan
    >>> path = from_stan(stan.build(program, data=data))  # doctest: +SKIP
    """
    if all(hasattr(model, name) for name in ("param_unc_num", "log_density_gradient")):
        known = _of_bridgestan(model)
    elif all(hasattr(model, name) for name in ("grad_log_prob", "unconstrain_pars")):
        known = _of_pystan(model)
    else:
        raise TypeError(
            "from_stan takes a model of PyStan (what stan.build gives) or of BridgeStan"
            f" (StanModel), with its data, got {type(model).__name__}"
        )
    _check_program(known.program)
    return path_to(_StanPosterior(known), base)


def _of_pystan(model: Any) -> _Model:
    log_prob, grad, constrain, unconstrain = _pystan_functions(model)
    n_dimensions = _count_dimensions(constrain, len(model.constrained_param_names))

    # Names of transformed parameters and generated quantities come after those of parameters.
    n_elements = len(constrain([0.1] * n_dimensions))
    return _Model(
        log_density=lambda x: log_prob(x.tolist()),
        grad=lambda x: grad(x.tolist()),
        constrain=lambda x: constrain(x.tolist()),
        unconstrain=lambda values: unconstrain(
            {name: value.tolist() for name, value in values.items()}
        ),
        element_names=list(model.constrained_param_names[:n_elements]),
        n_dimensions=n_dimensions,
        program=model.program_code,
    )


def _pystan_functions(model: Any) -> tuple[Callable, ...]:
    """log_prob, grad, constrain and unconstrain of lists, from the compiled module where it can be
    had: PyStan's own methods start a server for each call, 5 ms where the module needs 0.03.
    """
    with contextlib.suppress(ImportError, AttributeError, KeyError):
        models = importlib.import_module("httpstan.models")
        module = models.import_services_extension_module(model.model_name)
        return (
            lambda x: module.log_prob(model.data, x, True),
            lambda x: module.log_prob_grad(model.data, x, True),
            lambda x: module.write_array(model.data, x, False, False),
            lambda values: module.transform_inits(model.data, values),
        )
    return (
        model.log_prob,
        model.grad_log_prob,
        lambda x: model.constrain_pars(x, include_tparams=False, include_gqs=False),
        model.unconstrain_pars,
    )


def _count_dimensions(constrain: Callable[[list[float]], Any], largest: int) -> int:
    """The number of unconstrained coordinates, which PyStan does not tell: it refuses others."""
    for n in range(1, largest + 1):
        try:
            constrain([0.1] * n)
        except _THROWN as error:
            if "does not match" in str(error):
                continue
            raise
        return n
    raise ValueError("the Stan model has no parameters")


def _of_bridgestan(model: Any) -> _Model:
    names = list(model.param_names())
    n_dimensions = model.param_unc_num()
    if n_dimensions == 0:
        raise ValueError("the Stan model has no parameters")

    def unconstrain(values: Values) -> Any:
        flat = [np.ravel(value, order="F") for value in values.values()]
        return model.param_unconstrain(np.concatenate(flat))

    return _Model(
        log_density=lambda x: model.log_density(x, propto=False, jacobian=True),
        grad=lambda x: model.log_density_gradient(x, propto=False, jacobian=True)[1],
        constrain=model.param_constrain,
        unconstrain=unconstrain,
        element_names=names,
        n_dimensions=n_dimensions,
        program="",  # it is compiled, and has all constants
    )


class _StanPosterior(Posterior):
    """A model's functions of many points (n, d)."""

    def __init__(self, model: _Model) -> None:
        self.model = model
        self.parameter_shapes = _shapes(model.element_names)
        self.start = _start(model)

    def log_density(self, points: NDArray) -> Array:
        """Return (n,); -inf where Stan rejects a point."""
        return np.array([_or(self.model.log_density, x, -np.inf) for x in points], dtype=float)

    def grad(self, points: NDArray) -> Array:
        """Return (n, d); NaN where Stan rejects a point."""
        nothing = np.full(self.model.n_dimensions, np.nan)
        each = [_or(self.model.grad, x, nothing) for x in points]
        return np.array(each, dtype=float).reshape(points.shape)

    def constrain(self, points: NDArray) -> Values:
        """Return the parameters, each (n, ...)."""
        n = len(points)
        flat = np.array([self.model.constrain(x) for x in points], dtype=float)
        flat = flat.reshape(n, len(self.model.element_names))
        values: Values = {}
        at = 0
        for name, shape in self.parameter_shapes.items():
            size = int(np.prod(shape))
            # Stan's order: the first index runs fastest.
            part = flat[:, at : at + size].reshape(n, *reversed(shape))
            values[name] = part.transpose(0, *range(len(shape), 0, -1))
            at += size
        return values

    def unconstrain(self, values: Values) -> Array:
        """Return points (n, d); NaN where Stan rejects the parameters."""
        n = len(next(iter(values.values())))
        points = np.full((n, self.model.n_dimensions), np.nan)
        for i in range(n):
            parameters = {name: values[name][i] for name in self.parameter_shapes}
            with contextlib.suppress(*_THROWN):
                points[i] = self.model.unconstrain(parameters)
        return points


def _or(function: Callable[[NDArray], Any], x: NDArray, otherwise: Any) -> Any:
    if not np.isfinite(x).all():
        return otherwise
    try:
        return function(x)
    except _THROWN:
        return otherwise


def _shapes(element_names: list[str]) -> dict[str, tuple[int, ...]]:
    """Shapes by name: of "b.1.1", ..., "b.2.3" the last one says (2, 3). A name with other parts,
    such as those of complex numbers and tuples, is that of a number.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for element in element_names:
        name, *indices = element.split(".")
        if all(index.isdigit() for index in indices):
            shapes[name] = tuple(map(int, indices))
        else:
            shapes[element] = ()
    return shapes


def _start(model: _Model) -> Array:
    """A point at which the density is finite: 0 or, as Stan's, uniform from -2 to 2."""
    rng = np.random.default_rng(0)
    start = np.zeros(model.n_dimensions)
    thrown: Exception | None = None
    for _ in range(_N_STARTS):
        try:
            if np.isfinite(model.log_density(start)):
                return start
        except _THROWN as error:
            thrown = error
        start = rng.uniform(-2, 2, size=model.n_dimensions)
    raise ValueError(
        f"the log density of the Stan model is finite at none of {_N_STARTS} points"
    ) from thrown


def _check_program(program: str) -> None:
    """Raise ValueError where the evidence is not defined, and warn of dropped constants."""
    improper = without_prior(program)
    if improper:
        raise ValueError(
            f"{', '.join(improper)} have no priors, which Stan takes as improper ones, so that the"
            " evidence is not defined: give them proper ones"
        )
    dropping = dropping_statements(program)
    if dropping:
        more = len(dropping) - _N_NAMED
        rest = f" and {more} more" if more > 0 else ""
        warn(
            f"statements drop the constants of their densities, and log Z lacks these:"
            f" {'; '.join(dropping[:_N_NAMED])}{rest}. Write target += normal_lpdf(y | mu, sigma)"
            " in place of y ~ normal(mu, sigma)",
            UserWarning,
        )


def dropping_statements(program: str) -> list[str]:
    """Return the statements that drop constants: ``y ~ normal(mu, 1)``, and those that call a
    function ``_lupdf`` or ``_lupmf``.
    """
    return [
        statement
        for statement in _statements(_block(program, "model"))
        if " ~ " in statement or _DROPS_BY_NAME.search(statement)
    ]


def without_prior(program: str) -> list[str]:
    """Return the unbounded parameters that only say how something else is distributed.

    Where a parameter is used in any other way it may have a prior, which this cannot tell, and is
    left out.
    """
    statements = [
        *_statements(_block(program, "transformed parameters")),
        *_statements(_block(program, "model")),
    ]
    return [
        name
        for name in _unbounded_parameters(_block(program, "parameters"))
        if all(_is_condition(name, s) for s in statements if _mentions(s, name))
    ]


def _block(program: str, name: str) -> str:
    """The text between the braces of a block; "" where there is none."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|"[^"]*"', " ", program, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    before = "(?<!transformed )" if name == "parameters" else ""
    start = re.search(rf"{before}\b{name} ?{{", text)
    if start is None:
        return ""
    depth = 1
    for end in range(start.end(), len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return text[start.end() : end]
    return text[start.end() :]


def _statements(block: str) -> list[str]:
    spaced = re.sub(r" ?(\+=|~) ?", r" \1 ", block)
    return [part.strip() for part in re.split("[;{}]", spaced) if part.strip()]


def _unbounded_parameters(block: str) -> list[str]:
    names: list[str] = []
    for declaration in _statements(block):
        has_bounds = "lower" in declaration and "upper" in declaration
        if has_bounds or any(kind in declaration for kind in _PROPER_TYPES):
            continue
        bare = declaration
        for brackets in (r"\[[^\[\]]*\]", r"<[^<>]*>"):
            while re.search(brackets, bare):
                bare = re.sub(brackets, " ", bare)
        names.extend(part.split()[-1] for part in bare.split(",") if part.strip())
    return names


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _is_condition(name: str, statement: str) -> bool:
    """Return whether a statement is the distribution of something else, given this parameter."""
    if " ~ " in statement:
        return not _mentions(statement.split(" ~ ")[0], name)
    density = _DENSITY.search(statement)
    if density is None or _mentions(density[1], name):
        return False
    # One call alone: more terms could follow its closing parenthesis.
    depth = 0
    for character in density[2]:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return True

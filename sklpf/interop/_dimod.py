"""Binary quadratic models of dimod as Boltzmann machines."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklpf._utils.validation import check_finite, check_number, check_scale
from sklpf.models import BoltzmannMachine


def from_dimod(bqm: Any, beta: float = 1.0, **parameters: Any) -> BoltzmannMachine:
    """Return the `BoltzmannMachine` with p(x) = exp(-beta E(x)) / Z for the energy E of a binary
    quadratic model.

    Parameters
    ----------
    bqm : dimod.BinaryQuadraticModel
        Or any object with its attributes: ``linear`` and ``quadratic``, dicts of biases by variable
        and by pair of variables, ``offset``, and ``vartype``, whose name is "SPIN" or "BINARY".
        E(x) = sum_i linear_i x_i + sum_(i<j) quadratic_ij x_i x_j + offset.
    beta : float, default=1.0
        Inverse temperature, in units of 1 / E.
    **parameters
        Parameters of `BoltzmannMachine`, such as `partition_estimator` or `random_state`.

    Returns
    -------
    model : BoltzmannMachine
        Its columns are the variables in the order of ``bqm.variables``, kept as `variables_`;
        `feature_names_in_` holds their names unless these are the numbers of the columns. Rows hold
        0 and 1, of spins (s + 1) / 2. A ``SampleSet`` of dimod is read in its own order of
        variables, as a row for each of its reads; an array must have the order of the columns,
        since nothing in it says which it has. Its log Z is that of the energies: the offset adds
        -beta * offset to it.

    Raises
    ------
    TypeError
        If an attribute is missing.
    ValueError
        If the model has no variables, a variable is coupled to itself, a bias is not finite, or
        `beta` is not positive.

    Examples
    --------
    >>> import dimod  # doctest: +SKIP
    >>> pair = {"a": 0.0, "b": 0.0}, {("a", "b"): -1.0}
    >>> bqm = dimod.BinaryQuadraticModel(*pair, 0.0, "SPIN")  # doctest: +SKIP
    >>> model = from_dimod(bqm, beta=0.5).estimate_log_partition()  # doctest: +SKIP
    >>> round(model.log_partition_, 4)  # log(4 cosh(0.5))  # doctest: +SKIP
    1.5064
    """
    is_bqm = all(hasattr(bqm, name) for name in ("linear", "quadratic", "offset"))
    vartype = getattr(bqm, "vartype", None)
    vartype = getattr(vartype, "name", vartype)
    if not is_bqm or vartype not in ("SPIN", "BINARY"):
        raise TypeError(
            "from_dimod takes a BinaryQuadraticModel of dimod, of the vartype SPIN or BINARY, got"
            f" {type(bqm).__name__}"
        )
    if len(bqm.linear) == 0:
        raise ValueError("bqm has no variables: add some by add_variable")
    beta = check_scale(beta, "beta")
    variables = list(bqm.linear)
    linear = np.array([bqm.linear[name] for name in variables], dtype=np.float64)
    check_finite(linear, "bqm.linear")
    offset = -beta * check_number(bqm.offset, "bqm.offset")
    couplings = -beta * _couplings(bqm.quadratic, variables)
    if vartype == "SPIN":
        model = BoltzmannMachine.from_spins(couplings, -beta * linear, **parameters)
        model.offset_ += offset
    else:
        model = BoltzmannMachine.from_parameters(
            couplings, -beta * linear, offset=offset, **parameters
        )
    vars(model)["variables_"] = variables
    if variables != list(range(len(variables))):
        vars(model)["feature_names_in_"] = np.array([str(name) for name in variables], dtype=object)
    return model


def _couplings(quadratic: Any, variables: list[Any]) -> sp.csr_matrix:
    """The symmetric matrix of the biases of pairs."""
    column = {name: i for i, name in enumerate(variables)}
    pairs = [(column[a], column[b], bias) for (a, b), bias in quadratic.items()]
    first, second, biases = np.array(pairs, dtype=np.float64).reshape(-1, 3).T
    places = first.astype(np.int64), second.astype(np.int64)
    upper = sp.coo_matrix((biases, places), shape=(len(variables),) * 2)
    return (upper + upper.T).tocsr()

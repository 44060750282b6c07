"""Calls with inputs of all kinds: arrays, frames and containers of other libraries, right ones and
damaged ones, to models, estimators and converters.

    python tests/benchmarks/fuzz_inputs.py [--calls 5000] [--seed 0]

Every input is made of numbers whose answer is known. A call may give this answer, refuse the input
by a ValueError or a TypeError with a sentence, or say by a warning, an alarm or NaN that its number
is not to be trusted. All else is a fault: another number without a word, another exception, a
sentence that is too long or names nothing. Prints Markdown, and each fault with the seed that makes
it again. Containers of libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import time
import warnings
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone

from sklpf import (
    BernoulliRBM,
    BoltzmannMachine,
    BridgeSampling,
    CategoricalRBM,
    Exact,
    FactorialMixture,
    Gaussian,
    GaussianRBM,
    GeometricPath,
    LatentDirichletAllocation,
    LinearGenerativeModel,
    ProductOfExperts,
    check_draws,
)
from sklpf.interop import from_decoder, from_prior_transform, from_pymbar, from_tempering
from sklpf.partition import BAR, MBAR, ImportanceSampling, SteppingStone

LONGEST = 700  # characters of a sentence
SLOWEST = 20.0  # seconds of a call
STANDARD_ERRORS = 6.0
CLEAR = ValueError, TypeError, NotImplementedError, ImportError


def installed(*names):
    return {name: importlib.import_module(name) for name in names if has(name)}


def has(name):
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


LIBRARIES = installed("pandas", "polars", "pyarrow", "xarray", "torch", "jax.numpy")


# -- containers: the same numbers, as others keep them
def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


CONTAINERS = {
    "array": np.array,
    "Fortran order": np.asfortranarray,
    "reversed view": lambda a: np.array(a[::-1])[::-1],
    "strided view": lambda a: np.repeat(a, 2, axis=0)[::2],
    "transposed view": lambda a: np.ascontiguousarray(a.T).T,
    "read-only": read_only,
    "big-endian": lambda a: a.astype(">f8"),
    "longdouble": lambda a: a.astype(np.longdouble),
    "objects": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "tuple": lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else a.tolist(),
    "list of arrays": lambda a: list(a),
    "masked array without a mask": np.ma.array,
}
FRAMES = {
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "lil": sp.lil_matrix,
    "csr_array": sp.csr_array,
    "csr with duplicates": lambda a: with_duplicates(a),
}
if "pandas" in LIBRARIES:
    pd = LIBRARIES["pandas"]
    names = [f"c{i}" for i in range(999)]
    FRAMES |= {
        "DataFrame": lambda a: pd.DataFrame(a, columns=names[: a.shape[1]]),
        "DataFrame of Float64": lambda a: pd.DataFrame(a).astype("Float64"),
        "DataFrame of objects": lambda a: pd.DataFrame(a).astype(object),
        "sparse DataFrame": lambda a: pd.DataFrame(a).astype(pd.SparseDtype(float, 0)),
        "DataFrame, rows shuffled": lambda a: pd.DataFrame(a, index=range(len(a))[::-1]),
        "DataFrame with a MultiIndex": lambda a: pd.DataFrame(
            a, columns=pd.MultiIndex.from_product([["x"], range(a.shape[1])])
        ),
    }
if "polars" in LIBRARIES:
    FRAMES["polars"] = lambda a: LIBRARIES["polars"].DataFrame(
        {f"c{i}": column for i, column in enumerate(a.T)}
    )
if "pyarrow" in LIBRARIES:
    FRAMES["pyarrow"] = lambda a: LIBRARIES["pyarrow"].table(
        {f"c{i}": column for i, column in enumerate(a.T)}
    )
if "xarray" in LIBRARIES:
    CONTAINERS["xarray"] = LIBRARIES["xarray"].DataArray
if "torch" in LIBRARIES:
    CONTAINERS["torch"] = LIBRARIES["torch"].tensor
    CONTAINERS["torch with gradients"] = lambda a: LIBRARIES["torch"].tensor(a, requires_grad=True)
if "jax.numpy" in LIBRARIES:
    CONTAINERS["jax, 32 bits"] = LIBRARIES["jax.numpy"].asarray


def with_duplicates(a):
    rows = sp.coo_matrix(a)
    halves = np.concatenate([rows.data / 2, rows.data / 2])
    places = np.tile(rows.row, 2), np.tile(rows.col, 2)
    return sp.coo_matrix((halves, places), shape=a.shape)


# -- damages: no answer is right, but to refuse or to say so
def put(value, dtype=float):
    def damaged(a, rng):
        a = np.array(a, dtype=dtype)
        a[tuple(rng.integers(n) for n in a.shape)] = value
        return a

    return damaged


DAMAGES = {
    "NaN": put(np.nan),
    "infinite": put(np.inf),
    "text": put("x", object),
    "None": put(None, object),
    "complex": put(1 + 1j, complex),
    "a list inside": put([1, 2], object),
    "a date": lambda a, rng: a.astype("datetime64[s]"),
    "no rows": lambda a, rng: a[:0],
    "no columns": lambda a, rng: a[..., :0],
    "a column less": lambda a, rng: a[..., 1:],
    "a column more": lambda a, rng: np.concatenate([a, a[..., :1]], axis=-1),
    "an axis less": lambda a, rng: a[0],
    "an axis more": lambda a, rng: a[np.newaxis],
    "a number": lambda a, rng: 3.0,
    "None itself": lambda a, rng: None,
    "a string": lambda a, rng: "data.csv",
    "a dict": lambda a, rng: {"x": a},
    "a generator": lambda a, rng: (row for row in a),
    "a function": lambda a, rng: np.array,
    "a set": lambda a, rng: {1, 2},
    "ragged": lambda a, rng: [list(a[0]), list(a[1])[:-1]],
    "masked": lambda a, rng: np.ma.masked_array(a, put(1, bool)(np.zeros(a.shape), rng)),
    "structured": lambda a, rng: np.zeros(5, dtype=[("a", float), ("b", float)]),
    "1e300": put(1e300),
}


UNCLEAR = (  # words of errors that come out of an array library, and name no input
    "cannot convert float",
    "has no attribute",
    "unsupported operand",
    "not subscriptable",
    "not iterable",
    "broadcast",
    "out of bounds",
    "array element",
    "unexpected keyword",
    "negative dimensions",
    "zero-size",
    "not aligned",
)


class Fault(Exception):
    """What a call must not do."""


def choose(rng, options):
    name = list(options)[rng.integers(len(options))]
    return name, options[name]


def contained(rng, a, containers):
    name, container = choose(rng, containers)
    return name, container(a)


def damaged(rng, a):
    name, damage = choose(rng, DAMAGES)
    return name, damage(a, rng)


# -- rows to models
RNG = np.random.default_rng(0)
BINARY = (RNG.random((30, 5)) < 0.4).astype(float)
REAL = RNG.laplace(size=(30, 3)) + 1
COUNTS = RNG.poisson(1.0, size=(20, 6)).astype(float)
MODELS = {
    "BernoulliRBM": (BernoulliRBM(3, n_iter=3, random_state=0), BINARY),
    "BoltzmannMachine": (BoltzmannMachine(alpha=0.1, max_iter=20, random_state=0), BINARY),
    "CategoricalRBM": (
        CategoricalRBM(2, n_iter=3, random_state=0),
        RNG.integers(3, size=(30, 4)).astype(float),
    ),
    "GaussianRBM": (GaussianRBM(2, n_iter=5, random_state=0), REAL),
    "FactorialMixture": (FactorialMixture(2, max_iter=10, random_state=0), REAL),
    "LatentDirichletAllocation": (
        LatentDirichletAllocation(2, max_iter=3, random_state=0, partition_estimator=Exact()),
        COUNTS,
    ),
    "LinearGenerativeModel": (LinearGenerativeModel(2, prior="gaussian", random_state=0), REAL),
    "ProductOfExperts": (
        ProductOfExperts(max_iter=2, tol=None, n_chains=20, random_state=0),
        REAL,
    ),
}
FITTED = {}


def fitted(name):
    if name not in FITTED:
        model, X = MODELS[name]
        X = X[:2] if name == "LatentDirichletAllocation" else X[:12]
        model = model.fit(MODELS[name][1])
        FITTED[name] = model, X, model.score_samples(X)
    return FITTED[name]


def rows(rng):
    """score_samples of a fitted model, or fit and score_samples."""
    name, (template, X_train) = choose(rng, MODELS)
    model, X, expected = fitted(name)
    refit = rng.random() < 0.3
    given = X_train if refit else X
    if rng.random() < 0.5:
        kind, given = contained(rng, given, CONTAINERS | FRAMES)
        loose = "32 bits" in kind
    else:
        whole = given
        kind, given = damaged(rng, whole)
        # where a missing value is no damage
        while kind in ("NaN", "None") and name.endswith(("RBM", "FactorialMixture")):
            kind, given = damaged(rng, whole)
        expected = loose = None

    def call():
        if refit:
            return clone(template).fit(given).score_samples(X)
        return model.score_samples(given)

    return f"{name}.{'fit' if refit else 'score_samples'}: {kind}", call, expected, loose


# -- densities, draws and runs
def log_density(x):
    return -0.5 * np.sum((x - 1) ** 2, axis=1)


TRUTH = np.log(2 * np.pi)
SAME_DRAWS = {"an axis less", "a dict"}  # a chain of them, and by name


def draws(rng):
    """BridgeSampling and check_draws."""
    points = np.random.default_rng(int(rng.integers(10**6))).standard_normal((4, 200, 2)) + 1
    expected = TRUTH
    if rng.random() < 0.5:
        ways = CONTAINERS | {
            "one chain": lambda a: a.reshape(-1, 2),
            "steps first": lambda a: a.swapaxes(0, 1),
            "dict": lambda a: {"x": a},
            "emcee": lambda a: SimpleNamespace(get_chain=lambda: a.swapaxes(0, 1)),
            "float32": lambda a: a.astype(np.float32),
        }
        if "xarray" in LIBRARIES:
            xarray = LIBRARIES["xarray"]
            ways["Dataset"] = lambda a: xarray.Dataset({"x": (("chain", "draw", "i"), a)})
        kind, given = contained(rng, points, ways)
    else:
        kind, given = damaged(rng, points)
        # fewer chains are still draws, and so are the chains of one dict
        of_any_dimension = {"a column less": 0.5 * TRUTH, "a column more": 1.5 * TRUTH}
        expected = of_any_dimension.get(kind, TRUTH if kind in SAME_DRAWS else None)
    name, fit = choose(
        rng,
        {
            "BridgeSampling": lambda: (
                BridgeSampling(checks=False, random_state=0).fit(log_density, draws=given).result_
            ),
            "check_draws": lambda: check_draws(log_density, given, random_state=0).result,
        },
    )
    return f"{name}: {kind}", fit, expected, None


def potentials(rng):
    """from_pymbar and from_tempering, read by an estimator."""
    seed = int(rng.integers(10**6))
    r = np.random.default_rng(seed)
    scales = np.array([1.0, 1.5, 2.2])
    x = (r.standard_normal((3, 150)) * scales[:, np.newaxis]).ravel()
    u = 0.5 * (x / scales[:, np.newaxis]) ** 2
    counts = np.full(3, 150)
    expected = np.log(scales[2] / scales[0])
    ways = CONTAINERS | {k: v for k, v in FRAMES.items() if "DataFrame" in k}
    if rng.random() < 0.5:
        kind, u = contained(rng, u, ways)
    else:
        kind, damage = choose(
            rng,
            DAMAGES
            | {
                "transposed": lambda a, rng: a.T,
                "wrong counts": lambda a, rng: a,
                "counts of floats": lambda a, rng: a,
                "negative counts": lambda a, rng: a,
            },
        )
        u = damage(u, rng)
        # states may exclude each other's draws
        expected = expected if kind in ("infinite", "1e300") else None
        counts = {
            "wrong counts": np.array([100, 150, 150]),
            "negative counts": np.array([-150, 300, 300]),
            "counts of floats": np.array([150.5, 149.5, 150]),
        }.get(kind, counts)
    name, reader = choose(rng, {"MBAR": MBAR, "BAR": BAR, "SteppingStone": SteppingStone})
    return (
        f"{name} of from_pymbar: {kind}",
        lambda: reader().fit(from_pymbar(u, counts)).result_,
        (expected),
        None,
    )


def tempered(rng):
    """from_tempering: a Gaussian likelihood and prior."""
    r = np.random.default_rng(int(rng.integers(10**6)))
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    x = r.standard_normal((4, 200, 4)) / np.sqrt(1 + betas)[:, np.newaxis, np.newaxis]
    log_likelihoods = -0.5 * x**2
    expected = -0.5 * np.log(2)
    if rng.random() < 0.5:
        kind, given = contained(rng, log_likelihoods, CONTAINERS)
    else:
        kind, given = damaged(rng, log_likelihoods)
        expected = expected if kind == "a column less" else None  # a walker less
        if kind in ("a column more",):
            expected = -0.5 * np.log(2)
    return (
        f"from_tempering: {kind}",
        lambda: MBAR().fit(from_tempering(given, betas)).result_,
        expected,
        None,
    )


OUTPUTS = {
    "array": lambda v: v,
    "list": lambda v: v.tolist(),
    "float32": lambda v: v.astype(np.float32),
    "column": lambda v: v[:, np.newaxis],
    "row": lambda v: v[np.newaxis],
    "sum": lambda v: v.sum(),
    "one less": lambda v: v[1:],
    "objects": lambda v: v.astype(object),
    "complex": lambda v: v + 0j,
    "complex part": lambda v: v + 1j,
    "text": lambda v: v.astype(str),
    "None": lambda v: None,
    "NaN somewhere": lambda v: np.where(v < -2, np.nan, v),
    "NaN everywhere": lambda v: v * np.nan,
    "+inf": lambda v: np.where(v > -2, np.inf, v),
    "booleans": lambda v: v > -1,
    "random": lambda v: v + np.random.default_rng().normal(size=v.shape),
    "minus": lambda v: -v,
    "masked": lambda v: np.ma.masked_array(v, v < -2),
}
if "torch" in LIBRARIES:
    OUTPUTS["torch"] = lambda v: LIBRARIES["torch"].tensor(v)
    OUTPUTS["torch with gradients"] = lambda v: LIBRARIES["torch"].tensor(v, requires_grad=True)
RIGHT_OUTPUTS = {"array", "list", "objects", "complex", "torch", "torch with gradients", "float32"}


def densities(rng):
    """Functions of users that give something else than they should."""
    kind, output = choose(rng, OUTPUTS)
    expected = TRUTH if kind in RIGHT_OUTPUTS else None

    def density(x):
        return output(log_density(x))

    def transformed():
        path = from_prior_transform(
            lambda theta: output(stats.norm.logpdf(theta, 1, 1).sum(axis=1)),
            lambda u: 20 * u - 10,
            2,
            vectorized=True,
        )
        return ImportanceSampling(2000, proposal=Gaussian(np.full(2, 0.13), 0.02)).fit(path).result_

    def sampled():
        path = GeometricPath(density, base=Gaussian(np.zeros(2), 4.0))
        return ImportanceSampling(2000, random_state=0).fit(path).result_

    if rng.random() < 0.5:
        return f"log_density gives {kind}", sampled, expected, None
    expected = expected if expected is None else -2 * np.log(20)
    return f"log_likelihood gives {kind}", transformed, expected, None


def decoders(rng):
    """Decoders that give something else than they should."""
    kind, output = choose(rng, {k: v for k, v in OUTPUTS.items() if k not in ("random",)})
    weights = np.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7]])

    def decoder(z):
        values = z @ weights
        return np.reshape(output(values), -1) if kind == "sum" else output(values)

    X = REAL[:2]
    covariance = weights.T @ weights + np.eye(3)
    expected = stats.multivariate_normal(np.zeros(3), covariance).logpdf(X)
    known = kind in RIGHT_OUTPUTS

    def call():
        model = from_decoder(
            decoder,
            2,
            pullback=lambda z, g: g @ weights.T,
            likelihood="gaussian",
            noise_std=1.0,
            random_state=0,
        )
        partition = model._row_partition(model.path(X)).result_
        return partition

    return f"decoder gives {kind}", call, expected if known else None, None


PARAMETERS = [
    None, -1, 0, 1, 2, 2.5, 1e9, np.nan, np.inf, "x", "auto", True, (), [], [1, 2], {}, np.int64(3),
    np.float32(0.5), np.array(2), np.array([1.0, 2.0]), 10**30, object, lambda: 1,
]  # fmt: skip


def parameters(rng):
    """Parameters of models and estimators."""
    chosen = {
        "BernoulliRBM": (BernoulliRBM(2, n_iter=2), lambda e: e.fit(BINARY).score(BINARY)),
        "FactorialMixture": (FactorialMixture(2, max_iter=3), lambda e: e.fit(REAL).score(REAL)),
        "BoltzmannMachine": (
            BoltzmannMachine(max_iter=3),
            lambda e: e.fit(BINARY).score(BINARY),
        ),
        "LatentDirichletAllocation": (
            LatentDirichletAllocation(2, max_iter=2, partition_estimator=Exact()),
            lambda e: e.fit(COUNTS).score(COUNTS[:2]),
        ),
        "ImportanceSampling": (
            ImportanceSampling(200),
            lambda e: e.fit(GeometricPath(log_density, base=Gaussian(np.zeros(2), 4.0))),
        ),
        "BridgeSampling": (
            BridgeSampling(checks=False),
            lambda e: e.fit(log_density, draws=np.random.default_rng(0).normal(1, 1, (4, 50, 2))),
        ),
    }
    name, (estimator, use) = choose(rng, chosen)
    known = sorted(estimator.get_params(deep=False))
    parameter = known[rng.integers(len(known))]
    value = PARAMETERS[rng.integers(len(PARAMETERS))]
    large = isinstance(value, (int, float)) and value > 1e6 and not isinstance(value, bool)
    if large and parameter.startswith(("n_", "max_", "batch")):
        value = -value  # it would be a long run, as was asked for

    def call():
        use(type(estimator)(**estimator.get_params(deep=False) | {parameter: value}))
        return Ellipsis  # a number that may be anything

    return f"{name}({parameter}={value!r:.30})", call, Ellipsis, None


WAYS = {
    "rows": (rows, 0.4),
    "draws": (draws, 0.15),
    "potentials": (potentials, 0.12),
    "tempered": (tempered, 0.05),
    "densities": (densities, 0.1),
    "decoders": (decoders, 0.03),
    "parameters": (parameters, 0.15),
}


def judge(found, expected, loose, was_said):
    """The outcome of a call that gave a number; Fault where it is another one without a word."""
    if found is Ellipsis:
        return "used"
    is_result = hasattr(found, "log_partition")
    values = np.asarray(found.log_partition if is_result else found, dtype=float)
    said = was_said or (is_result and not found.converged)
    if expected is None:
        if said or np.isnan(values).all():
            return "said"
        if not np.isfinite(values).all():
            return "said" if np.isneginf(values).any() else "unknown"
        raise Fault(f"gives {values.ravel()[:3]} of a damaged input without a word")
    expected = np.asarray(expected, dtype=float)
    if values.shape != expected.shape:
        raise Fault(f"gives the shape {values.shape}, not {expected.shape}")
    error = np.abs(values - expected)
    if is_result:
        allowed = STANDARD_ERRORS * np.maximum(np.asarray(found.std_error, dtype=float), 1e-9)
    else:
        allowed = (1e-3 if loose else 1e-6) * (1 + np.abs(expected))
    if np.all(error <= allowed):
        return "right"
    if said:
        return "said"
    raise Fault(f"gives {values.ravel()[:3]}, not {expected.ravel()[:3]}, without a word")


def run(seed):
    """What was called, and the outcome, or a Fault."""
    rng = np.random.default_rng(seed)
    shares = np.array([WAYS[way][1] for way in WAYS])
    way = list(WAYS)[rng.choice(len(WAYS), p=shares / shares.sum())]
    what, call, expected, loose = WAYS[way][0](rng)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call()
        except CLEAR as error:
            sentence = str(error)
            if not 15 <= len(sentence) <= LONGEST or any(words in sentence for words in UNCLEAR):
                return what, way, Fault(f"says unclearly {type(error).__name__}: {sentence:.300}")
            if expected is not None and expected is not Ellipsis:
                return what, way, f"refused, {sentence}"
            return what, way, "refused"
        except Exception as error:
            return what, way, Fault(f"raises {type(error).__name__}: {str(error):.300}")
    others = [w for w in caught if issubclass(w.category, (RuntimeWarning, DeprecationWarning))]
    if others:
        where = f"{others[0].filename.rpartition('/')[2]}:{others[0].lineno}"
        inside = "sklpf/" in others[0].filename
        if inside:
            return what, way, Fault(f"warns of {others[0].message} at {where}")
    if time.perf_counter() - began > SLOWEST:
        return what, way, Fault(f"takes {time.perf_counter() - began:.0f} s")
    try:
        return what, way, judge(found, expected, loose, bool(caught))
    except Fault as fault:
        return what, way, fault


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    faults = {}
    refused = {}
    for seed in range(options.seed, options.seed + options.calls):
        what, way, outcome = run(seed)
        if isinstance(outcome, Fault):
            faults.setdefault((what, str(outcome)[:80]), (seed, str(outcome)))
            outcome = "fault"
        elif outcome.startswith("refused, "):
            refused.setdefault(what, outcome)
            outcome = "refused, right"
        counts[way][outcome] += 1
    kinds = "right", "used", "said", "unknown", "refused", "refused, right", "fault"
    print("| way | calls |", " | ".join(kinds), "|")
    print("|---" * (len(kinds) + 2) + "|")
    for way, outcomes in counts.items():
        print(f"| {way} | {outcomes.total()} |", *(f"{outcomes[kind]} |" for kind in kinds))
    for what, outcome in sorted(refused.items()):
        print(f"\n- {what}: {outcome}")
    for (what, _), (seed, fault) in sorted(faults.items()):
        print(f"\n**{what}** (seed {seed}): {fault}")


if __name__ == "__main__":
    main()

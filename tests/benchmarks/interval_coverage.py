"""Do the 95 % intervals of converged runs cover log Z that is known?

    python tests/benchmarks/interval_coverage.py [--grid defaults] [--seeds 200]
        [--problems WORD ...] [--estimators WORD ...] [--results interval_coverage.jsonl]
        [--ledger FILE]

A grid has problems and estimators:

- defaults, ais, smc, adaptive, elementary, reweighting: RBMs that are enumerated, by those
  estimators; "reweighting" reads each run of two samplers by all methods.
- traps, smc traps, adaptive traps: the base or the ladder misses most of an RBM.
- large: RBMs whose log Z is a long run's, whose error widens the intervals.
- densities, compiled densities: on R^d, with levels and sweeps that stand below.
- images: products of experts and mean-covariance RBMs that are trained here on whitened patches of
  scikit-learn's photographs, on its digits and on generated sources.
- boltzmann: ten random machines a kind. lattices: Ising models beside Kaufman's log Z.
- gaussian, gaussian trained: Gaussian RBMs, a new one for each seed.

Every run is appended to the results as it ends: an interrupted benchmark goes on where it stopped.
Prints Markdown; s is the median CPU time of a run, and cost its lower quartile (since the first run
of a process compiles) times the squared median standard error. Problems on NLTCS and MNIST need the
reference data (see SKLPF_DATA) and are left out without it.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import sys
from pathlib import Path
from typing import NamedTuple

import calibration_page
import numpy as np
from measure import (
    binary,
    chosen,
    digits,
    groups,
    judged,
    measured,
    options,
    print_coverage,
    reference,
    row,
    table,
)
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits, load_iris, load_sample_images, load_wine
from sklearn.decomposition import PCA
from sklearn.neural_network import BernoulliRBM as ScikitRBM

from sklpf import (
    AIS,
    BDMC,
    HAIS,
    RTS,
    SMC,
    BernoulliRBM,
    BoltzmannMachine,
    Exact,
    GaussianRBM,
    MeanCovarianceRBM,
    ParallelTempering,
    ProductOfExperts,
)
from sklpf.datasets import make_patches
from sklpf.models.rbm._path import RBMPath
from sklpf.partition import (
    BAR,
    MBAR,
    SAMS,
    ImportanceSampling,
    LevelProcess,
    MarkovMixture,
    SteppingStone,
    ThermodynamicIntegration,
    WangLandau,
    default_estimator,
)
from sklpf.paths import has
from sklpf.transitions import HMC, RandomWalk

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from known_densities import DENSITY_PROBLEMS, make_density_problem
from known_problems import make_rbm_problem
from lattices import CRITICAL_COUPLING, kaufman, lattice


class Grid(NamedTuple):
    """Problems and estimators by name.

    A problem is a function of its number that returns a path, or a path, its log Z, and the
    standard error of that; an estimator may be a function of the problem's name and its path, and
    None where it is of no use.
    """

    kind: str  # of model in the ledger
    problems: dict
    estimators: dict
    n_models: int | None = 1  # of each problem; None: a new one for each seed


# ---- RBMs
def trained(data, n_components, n_iter, learning_rate, scale=1.0):
    """The path of an RBM that scikit-learn trained on binary data, all parameters times `scale`."""
    rbm = ScikitRBM(
        n_components, learning_rate=learning_rate, batch_size=100, n_iter=n_iter, random_state=0
    )
    rbm.fit(data.astype(float))
    mean = (data.sum(axis=0) + 1) / (len(data) + 2)
    parameters = (rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_)
    return RBMPath(*(scale * parameter for parameter in parameters), mean)


def stored(name):
    """A trained RBM of the reference data, with the MNIST marginals as base."""
    data = reference(f"rbm/{name}.npz")
    train = binary("mnist")
    mean = (train.sum(axis=0, dtype=float) + 1) / (len(train) + 2)
    return RBMPath(data["components"], data["intercept_visible"], data["intercept_hidden"], mean)


def mnist(n_components, seed):
    """An RBM of 10,000 rows of MNIST, trained here."""
    return BernoulliRBM(
        n_components, learning_rate=0.05, batch_size=50, n_iter=10, random_state=seed
    ).fit(binary("mnist")[:10_000])


def transposed(rbm):
    """The same model with the layers exchanged, and the base that it has then."""
    parameters = rbm.components_.T, rbm.intercept_hidden_, rbm.intercept_visible_
    return BernoulliRBM.from_parameters(*parameters).path()


def on_digits(n_components, n_iter, learning_rate, scale=1.0):
    return lambda _: trained(digits(), n_components, n_iter, learning_rate, scale)


def on_nltcs(scale):
    return lambda _: trained(binary("nltcs"), 40, 20, 0.1, scale)


def made_up(kind, seed=0):
    return lambda _: make_rbm_problem(kind, seed).path


RBMS = {
    "digits, 12 hidden": on_digits(12, 30, 0.05),
    "digits, 20 hidden": on_digits(20, 300, 0.1),
    "digits, 20 hidden, parameters x 1.5": on_digits(20, 300, 0.1, scale=1.5),
    "digits, 16 hidden, parameters x 3": on_digits(16, 100, 0.1, scale=3.0),
    "random, 16 hidden": made_up("medium"),
    "random, 16 hidden, hard": made_up("hard"),
    "NLTCS, 16 visible, 40 hidden": on_nltcs(1.0),
    "NLTCS, 16 visible, 40 hidden, parameters x 2": on_nltcs(2.0),
    "MNIST, 10 hidden (mnist_h10)": lambda _: stored("mnist_h10"),
    "MNIST, 15 hidden (mnist_toy15)": lambda _: stored("mnist_toy15"),
}
UNTRAINED = {
    "two modes": made_up("two modes"),
    "two modes, other patterns": made_up("two modes", 1),
    "far mode": made_up("far mode"),
    "sharp digits": made_up("sharp digits"),
    "digits, 20 hidden, uniform base": lambda _: (
        BernoulliRBM(20, learning_rate=0.05, n_iter=100, random_state=0)
        .fit(digits())
        .path(base="uniform")
    ),
}
TRAPS = UNTRAINED | {
    f"MNIST, 20 hidden, {kind}, training {seed}": functools.partial(make, seed)
    for seed in range(6)
    for kind, make in {
        "uniform base": lambda seed, _: mnist(20, seed).path(base="uniform"),
        "transposed": lambda seed, _: transposed(mnist(20, seed)),
        "data base": lambda seed, _: mnist(20, seed).path(),
    }.items()
}


def by_long_run(make):
    def problem(_):
        path = make()
        found = ParallelTempering(n_sweeps=65_536, random_state=1001).fit(path)
        return path, found.log_partition_, found.log_partition_std_error_

    return problem


LARGE = {
    "MNIST, 100 hidden": by_long_run(lambda: mnist(100, 0).path()),
    "MNIST, 500 hidden (mnist_cd25_500)": by_long_run(lambda: stored("mnist_cd25_500")),
    "MNIST, 500 hidden (mnist_h500)": by_long_run(lambda: stored("mnist_h500")),
}
SHORT = {
    "AIS": AIS(),
    "AIS, 200 levels": AIS(n_temperatures=200),
    "RTS, 1000 sweeps": RTS(n_sweeps=1000),
    "ParallelTempering, 1024 sweeps": ParallelTempering(n_sweeps=1024),
    "ParallelTempering, tol 0.1": ParallelTempering(tol=0.1),
    "BDMC, 300 levels": BDMC(n_temperatures=300),
}
OF_LARGE = {
    f"AIS, {n} x {k}": AIS(n, k)
    for n, k in [(10, 1000), (100, 1000), (400, 1000), (10, 10_000), (100, 10_000)]
}
OF_LARGE |= {f"RTS, {n} sweeps": RTS(n_sweeps=n) for n in (4000, 9000, 16_000, 32_000)}
ADAPTIVE = {
    "RTS": RTS(50, 30, 1000),
    "SAMS": SAMS(50, 30, 1000),
    "SAMS, binary": SAMS(50, 30, 1000, update="binary"),
    "WangLandau": WangLandau(50, 30, 1000),
}
SMCS = {
    **{f"SMC, 10 x {n} x {k}": SMC(n, k) for n, k in [(10, 10), (100, 10), (100, 30), (100, 100)]},
    "AIS, 100 x 1000": AIS(),
    "ParallelTempering, 1024 sweeps": ParallelTempering(n_sweeps=1024),
}
METHODS = {
    "BAR": BAR(),
    "MBAR": MBAR(),
    "SteppingStone": SteppingStone(),
    "SteppingStone, forward": SteppingStone(direction="forward"),
    "LevelProcess": LevelProcess(),
    "TI, trapezoid": ThermodynamicIntegration(rule="trapezoid"),
    "TI, corrected": ThermodynamicIntegration(),
    "TI, corrected, Rao-Blackwell": ThermodynamicIntegration(rao_blackwell=True),
}


# ---- densities on R^d
BLIND = "base on one"  # no chain meets the other mode
# levels of HAIS, HAIS with a metric, AIS with random walks, and BDMC; then sweeps of RTS and
# ParallelTempering
LENGTHS = {
    "gaussian 2-D, condition 10000": (3000, 1000, 3000, 3000, 4000, 4096),
    "gaussian 20-D, condition 100": (3000, 1000, 3000, 3000, 4000, 4096),
    "gaussian 20-D, condition 10000": (30_000, 3000, 3000, 10_000, 16_000, 16_384),
    "gaussian 100-D, condition 1": (1000, 1000, 3000, 1000, 4000, 4096),
    "gaussian 100-D, condition 100": (10_000, 10_000, 3000, 10_000, 16_000, 16_384),
    "gaussian 100-D, condition 10000": (3000, 3000, 1000, 3000, 4000, 4096),
    "laplace 36-D": (1000, 1000, 3000, 1000, 4000, 4096),
    "student-t 6-D": (3000, 1000, 1000, 1000, 4000, 4096),
    "student-t 36-D": (30_000, 3000, 3000, 3000, 4000, 4096),
    "student-t 36-D, gaussian base": (3000, 3000, 3000, 3000, 4000, 4096),
    "two gaussians 10-D": (1000, 1000, 3000, 1000, 4000, 4096),
    "box exponential": (1000, 1000, 3000, 1000, 4000, 4096),
    "linear regression": (10_000, 1000, 1000, 10_000, 16_000, 16_384),
}
OTHER_LENGTHS = (1000, 1000, 1000, 1000, 4000, 4096)


def hais(path, n):
    return HAIS(n_temperatures=n)


def dense_hais(path, n):
    metric = "dense" if path.bounds is None else "diag"
    return HAIS(n_temperatures=n, transition=HMC(metric=metric))


def walking_ais(path, n, metric=None):
    return AIS(n_temperatures=n, ladder="adaptive", transition=RandomWalk(metric=metric))


def bdmc(path, n):
    """None without exact draws."""
    exact = hasattr(path, "sample_target")
    return BDMC(n_temperatures=n, ladder="adaptive") if exact else None


def of_length(place, make):
    def estimator(problem, path):
        dense = make is walking_ais and ("condition 100" in problem or "regression" in problem)
        given = ("dense",) if dense else ()
        return make(path, LENGTHS.get(problem, OTHER_LENGTHS)[place], *given)

    return estimator


CONTINUOUS = RTS(50, 10, 240, continuous=True)
OF_DENSITIES = {
    "HAIS": of_length(0, hais),
    "HAIS, dense": of_length(1, dense_hais),
    "AIS, random walk": of_length(2, walking_ais),
    "BDMC": of_length(3, bdmc),
    "RTS": of_length(4, lambda path, n: RTS(n_sweeps=n)),
    "ParallelTempering": of_length(5, lambda path, n: ParallelTempering(n_sweeps=n)),
    "RTS, continuous": CONTINUOUS,
    "TI, continuous": ThermodynamicIntegration(CONTINUOUS, rule="continuous"),
}


def density(name, compiled, _):
    known = make_density_problem(name, compiled=compiled)
    return known.path, known.log_partition, known.std_error


# ---- models of images
def patches(d):
    grey = [image.mean(axis=2) for image in load_sample_images().images]
    return make_patches(grey, 12, 5000, d, random_state=1).X_train


def whitened_digits(d):
    return PCA(d, whiten=True, random_state=0).fit_transform(load_digits().data)


def sources(d):
    rng = np.random.default_rng(3)
    return rng.standard_t(3, size=(4000, 2 * d)) @ rng.normal(size=(2 * d, d)) / np.sqrt(6 * d)


def product(rows, d, n_components, expert):
    def problem(_):
        path = ProductOfExperts(n_components, expert, random_state=7).fit(rows(d)).path()
        if has(path, "closed_log_partition"):
            return path
        found = HAIS(4000, 10_000, random_state=12345).fit(path)
        return path, found.log_partition_, found.log_partition_std_error_

    return problem


def mean_covariance(rows, d, n):
    def problem(_):
        path = MeanCovarianceRBM(n, n, n, random_state=7).fit(rows(d)).path()
        found = HAIS(2000, 10_000, random_state=12345).fit(path)
        return path, found.log_partition_, found.log_partition_std_error_

    return problem


IMAGES = {
    "patches 36-D, Student-t 36": product(patches, 36, 36, "student_t"),
    "patches 36-D, Student-t 72": product(patches, 36, 72, "student_t"),
    "patches 36-D, Student-t 144": product(patches, 36, 144, "student_t"),
    "patches 36-D, Laplace 72": product(patches, 36, 72, "laplace"),
    "patches 36-D, Laplace 144": product(patches, 36, 144, "laplace"),
    "patches 10-D, Student-t 40": product(patches, 10, 40, "student_t"),
    "digits 15-D, Student-t 60": product(whitened_digits, 15, 60, "student_t"),
    "digits 15-D, Laplace 60": product(whitened_digits, 15, 60, "laplace"),
    "sources 5-D, Student-t 8": product(sources, 5, 8, "student_t"),
    "sources 20-D, Student-t 40": product(sources, 20, 40, "student_t"),
    "patches 36-D, mcRBM 36": mean_covariance(patches, 36, 36),
    "patches 36-D, mcRBM 72": mean_covariance(patches, 36, 72),
    "patches 10-D, mcRBM 20": mean_covariance(patches, 10, 20),
    "digits 15-D, mcRBM 30": mean_covariance(whitened_digits, 15, 30),
}
OF_IMAGES = {
    "HAIS": HAIS(),
    **{f"HAIS {n} x {k}": HAIS(n, k) for n, k in [(400, 100), (20, 300), (100, 30), (10, 1000)]},
    "as scored": lambda problem, path: default_estimator(path),
    "RTS": RTS(),
    "ParallelTempering": ParallelTempering(),
}


# ---- Boltzmann machines
N_UNITS = 18


def machine(couplings, intercept):
    couplings = np.triu(couplings, 1)
    return BoltzmannMachine.from_parameters(couplings + couplings.T, intercept)


def dense_machine(scale, number):
    rng = np.random.default_rng(number)
    return machine(rng.normal(scale=scale, size=(N_UNITS, N_UNITS)), rng.normal(size=N_UNITS))


def sparse_machine(number):
    rng = np.random.default_rng(number)
    couplings = np.triu(rng.normal(scale=3, size=(N_UNITS, N_UNITS)), 1)
    couplings *= rng.random(couplings.shape) < 3 / N_UNITS
    return machine(couplings, rng.normal(size=N_UNITS))


def attractive_machine(number):
    rng = np.random.default_rng(number)
    couplings = np.triu(rng.gamma(1.0, 0.5, size=(N_UNITS, N_UNITS)), 1)
    return machine(couplings, -(couplings + couplings.T).sum(axis=1) / 2)


BOLTZMANN = {
    "dense, sd 0.5": functools.partial(dense_machine, 0.5),
    "dense, sd 2": functools.partial(dense_machine, 2.0),
    "three neighbours, sd 3": sparse_machine,
    "attractive, two phases": attractive_machine,
}


def ising(n, coupling, _):
    model = BoltzmannMachine.from_spins(coupling * lattice(n, n))
    return model, kaufman(n, n, coupling), 0.0


LATTICES = {
    f"{n} x {n}, coupling {coupling:.4f}": functools.partial(ising, n, coupling)
    for n in (8, 16, 32)
    for coupling in (0.35, CRITICAL_COUPLING, 0.55)
}


# ---- Gaussian RBMs
def random_gaussian_rbm(n_components, n_features, scale, seed):
    """A model whose hidden units are on about half of the time."""
    rng = np.random.default_rng(seed)
    components = scale * rng.normal(size=(n_components, n_features))
    variances = rng.uniform(0.3, 2.0, n_features)
    products = (components / variances) @ components.T
    intercept_hidden = -0.5 * products.sum(axis=1) + 0.5 * rng.normal(size=n_components)
    return GaussianRBM.from_parameters(
        components, rng.normal(size=n_features), intercept_hidden, variances, random_state=seed
    )


def fit_to_half(load, seed):
    """A model of half of the rows, another half for each seed."""
    X = load().data
    order = np.random.default_rng(seed).permutation(len(X))
    return GaussianRBM(8, n_iter=40, random_state=seed).fit(X[order[: len(X) // 2]])


GAUSSIAN = {
    f"14 hidden, {n} visible, scale {scale:g}": functools.partial(random_gaussian_rbm, 14, n, scale)
    for n, scale in ((5, 0.5), (5, 2.0), (30, 0.5), (30, 2.0))
}
TRAINED = {
    f"{name}, 8 hidden": functools.partial(fit_to_half, load)
    for name, load in {"iris": load_iris, "wine": load_wine}.items()
}


# ---- grids
ENUMERATED = "RBM, enumerated"
MISLEADING = "RBM, base or ladder misses a mode"
DENSITY = "density on R^d"
TEMPERING = {"ParallelTempering": ParallelTempering()}
GRIDS = {
    "defaults": Grid(
        ENUMERATED,
        RBMS,
        {
            "AIS": AIS(),
            "RTS, 2000 sweeps": RTS(n_sweeps=2000),
            "ParallelTempering, 2048 sweeps": ParallelTempering(n_sweeps=2048),
        },
    ),
    "ais": Grid(
        ENUMERATED,
        RBMS,
        {
            f"AIS, {n} x {k}": AIS(n, k)
            for n, k in itertools.product((10, 30, 100, 400), (3, 10, 100, 1000))
        },
    ),
    "smc": Grid(ENUMERATED, RBMS, SMCS),
    "adaptive": Grid(ENUMERATED, RBMS, ADAPTIVE),
    "elementary": Grid(
        ENUMERATED,
        {"random, 12 hidden, easy": made_up("easy"), **RBMS, **UNTRAINED},
        {
            "ImportanceSampling, 1000": ImportanceSampling(1000),
            "ImportanceSampling": ImportanceSampling(),
            "MarkovMixture, 200 centres, 1024 sweeps": MarkovMixture(200, n_sweeps=1024),
            "MarkovMixture": MarkovMixture(),
        },
    ),
    "reweighting": Grid(
        ENUMERATED,
        RBMS,
        {
            "ParallelTempering, 1024 sweeps": ParallelTempering(n_sweeps=1024),
            "RTS, 30 levels, 1024 sweeps": RTS(n_temperatures=30, n_sweeps=1024),
        },
    ),
    "traps": Grid(MISLEADING, TRAPS, SHORT),
    "smc traps": Grid(MISLEADING, TRAPS, SMCS),
    "adaptive traps": Grid(MISLEADING, TRAPS, ADAPTIVE),
    "large": Grid("RBM, too large to enumerate", LARGE, OF_LARGE),
    **{
        f"{kind}densities": Grid(
            DENSITY,
            {name: functools.partial(density, name, bool(kind)) for name in DENSITY_PROBLEMS},
            OF_DENSITIES,
        )
        for kind in ("", "compiled ")
    },
    "images": Grid("density on R^d, trained on images or sources", IMAGES, OF_IMAGES),
    "boltzmann": Grid(
        "Boltzmann machine", BOLTZMANN, TEMPERING | {"AIS": AIS(), "SMC": SMC(), "RTS": RTS()}, 10
    ),
    "lattices": Grid("Boltzmann machine", LATTICES, TEMPERING),
    "gaussian": Grid("Gaussian RBM", GAUSSIAN, TEMPERING, None),
    "gaussian trained": Grid("Gaussian RBM", TRAINED, TEMPERING, None),
}


# ---- runs
@functools.lru_cache(maxsize=1)
def make(grid, problem, number):
    """A path, its log Z, and the standard error of that; None without the reference data."""
    try:
        found = GRIDS[grid].problems[problem](number)
    except FileNotFoundError:
        return None
    return found if isinstance(found, tuple) else (found, Exact().fit(found).log_partition_, 0.0)


def run(grid, problem, number, estimator, seed):
    known = make(grid, problem, number)
    if known is None:
        return []
    path = known[0]
    entry = GRIDS[grid].estimators[estimator]
    sampler = clone(entry) if isinstance(entry, BaseEstimator) else entry(problem, path)
    if sampler is None:
        return []
    records = judged(sampler.set_params(random_state=seed), *known)
    if grid == "reweighting":
        for name, method in METHODS.items():
            (record,) = judged(clone(method), sampler.run_, *known[1:])
            records.append(record | {"estimator": f"{name}, from {estimator}"})
    return records


def tasks(args):
    n_models = GRIDS[args.grid].n_models
    for problem in args.problems:
        numbers = args.seeds if n_models is None else range(n_models)
        for number, estimator in itertools.product(numbers, args.estimators):
            for seed in [number] if n_models is None else args.seeds:
                task = {"grid": args.grid, "problem": problem, "number": number}
                yield task | {"estimator": estimator, "seed": seed}


def print_costs(records):
    """1e-3 nats^2 s, where at least 3 runs were made and half of them converged."""
    names = list(dict.fromkeys(each["estimator"] for each in records))
    table("cost", *names)
    for (problem,), found in groups(records, "problem").items():
        cells = dict.fromkeys(names, "-")
        for (name,), runs in groups(found, "estimator").items():
            if len(runs) >= 3 and np.mean([each["converged"] for each in runs]) >= 0.5:
                seconds = np.quantile([each["seconds"] for each in runs], 0.25)
                error = np.median([each["error"] for each in runs])
                cells[name] = f"{1e3 * error**2 * seconds:.2g}"
        row(problem, *cells.values())


def append_to_ledger(records, args):
    """A row for each problem and estimator."""
    kind = GRIDS[args.grid].kind
    for (problem, estimator), runs in groups(records, "problem", "estimator").items():
        good = [each for each in runs if each["converged"]]
        line = {
            "estimator": estimator,
            "kind": ENUMERATED if kind == MISLEADING and "data base" in problem else kind,
            "model": problem,
            "runs": len(runs),
            "converged": len(good),
            "covers": sum(each["covers"] for each in good),
            "beyond_3_se": sum(abs(each["off"]) > 3 * each["error"] + 1e-6 for each in good),
            "seconds": round(float(np.median([each["seconds"] for each in runs])), 3),
            "date": datetime.date.today().isoformat(),
            "script": f"interval_coverage.py --grid {args.grid}",
        }
        calibration_page.append([line], args.ledger)


def main():
    others = {"grid": "defaults", "ledger": None}
    others |= {"problems": [""], "estimators": [""]}
    args = options(__doc__, "interval_coverage.jsonl", 200, others)
    args.problems = chosen(GRIDS[args.grid].problems, args.problems)
    args.estimators = chosen(GRIDS[args.grid].estimators, args.estimators)
    records = measured(args.results, tasks(args), run)
    records = [each for each in records if each["grid"] == args.grid]
    print_coverage(records, "problem", "estimator")
    print_coverage([each for each in records if BLIND not in each["problem"]], "estimator")
    print_costs(records)
    if args.ledger:
        append_to_ledger(records, args)


if __name__ == "__main__":
    main()

"""No two parts of a run draw from the same random stream.

Runs are made by the plain loops, in which every number is drawn through a `Stream` or a NumPy
generator. What is noted of each is what its bits depend on.
"""

import ast
import sys
from collections import Counter

import numpy as np
import pytest
from convergence import quietly
from estimators import DRAWS, ESTIMATORS, rbm
from library import trees
from sklearn.base import clone

from sklpf import (
    AIS,
    HAIS,
    RTS,
    SMC,
    AdaptiveSMC,
    Gaussian,
    GeometricPath,
    Mixture,
    ParallelTempering,
)
from sklpf._utils.random import Keys, Stream
from sklpf.partition import SAMS, ImportanceSampling, UntilTrusted, WangLandau
from sklpf.transitions import HMC, Gibbs, RandomWalk, Slice, _base, _pilot

TEMPERING = {"n_chains": 20, "n_temperatures": 6, "n_sweeps": 64, "random_state": 1}


def log_quartic(x):
    return -np.sum(x**4 / 10 + x**2 / 2, axis=1)


def grad_quartic(x):
    return -0.4 * x**3 - x


def log_half_space(x):
    return np.where(x[:, 0] > 0.5, -np.sum(x**2, axis=1) / 2, -np.inf)


def smooth():
    """A base with several parts: those of tempering renew the chains at level 0."""
    base = Mixture([Gaussian([-1.0, 0.0], 1.5), Gaussian([1.0, 0.0], 1.5)])
    return GeometricPath(log_quartic, grad=grad_quartic, base=base)


def half_space():
    """Most base draws lie where the target is 0, and are drawn anew."""
    return GeometricPath(log_half_space, base=Gaussian([-0.5, 0.0], 1.5))


OF_NO_STREAM = "Exact", "AdaptiveRejection"
RUNS = {
    **{name: each for name, each in ESTIMATORS.items() if name not in OF_NO_STREAM},
    "AIS of a density": (AIS(20, 20), smooth),
    "SMC that resamples": (SMC(20, 12, 3, resample_at=1.0), rbm),
    "SMC of a density": (SMC(20, 12, 3, resample_at=1.0), smooth),
    "ParallelTempering of a density": (ParallelTempering(3, 6, 64), smooth),
    "RTS of a density": (RTS(**TEMPERING), smooth),
    "RTS with a boundary": (RTS(**TEMPERING, transition=Slice()), half_space),
    "continuous RTS": (RTS(**TEMPERING, continuous=True), smooth),
    "SAMS of a density": (SAMS(**TEMPERING), smooth),
    "WangLandau of a density": (WangLandau(**TEMPERING), smooth),
    "ImportanceSampling": (ImportanceSampling(100), smooth),
    "AdaptiveSMC": (AdaptiveSMC(50, 2000), smooth),
    "HAIS to a tolerance": (HAIS(20, 20, tol=0.01), smooth),
    "UntilTrusted": (UntilTrusted([AIS(2, 5), AIS(2, 5), SMC(2, 5, 2), SMC(2, 5, 2)]), smooth),
}


@pytest.fixture
def opened(monkeypatch):
    """What the bits of every random number of a run depend on, in the order of their use."""
    noted = []
    philox_uniforms = _base.stream_uniforms
    philox_normals = _pilot.stream_normals
    default_rng = np.random.default_rng

    def stream_uniforms(stream, n, purpose):
        for own, chains in stream.rows():
            each = range(own.chain, own.chain + len(range(n)[chains]))
            noted.extend((own.key, chain, own.step, purpose) for chain in each)
        with monkeypatch.context() as inside:
            inside.setattr(Stream, "keys", property(plain_keys))
            return philox_uniforms(stream, n, purpose)

    def stream_normals(stream, out):
        for own, chains in stream.rows():
            each = range(own.chain, own.chain + len(out[chains]))
            noted.extend((own.key, chain, own.step, "move") for chain in each)
        with monkeypatch.context() as inside:
            inside.setattr(Stream, "keys", property(plain_keys))
            return philox_normals(stream, out)

    def keys(stream):  # of a kernel, which moves the chains from this one on
        noted.append((stream.key, stream.chain, stream.step, "move"))
        return plain_keys(stream)

    def plain_keys(stream):
        return Keys(*stream.key, stream.chain, stream.step)

    def noted_rng(seed=None):
        if isinstance(seed, (int, np.integer, tuple, list)):
            words = np.random.SeedSequence(seed).generate_state(4)
            noted.append(("generator", *words.tolist()))
        return default_rng(seed)

    monkeypatch.setattr(Stream, "keys", property(keys))
    monkeypatch.setattr(np.random, "default_rng", noted_rng)
    for module in [each for name, each in sys.modules.items() if name.startswith("sklpf.")]:
        for function in (stream_uniforms, stream_normals):
            if function.__name__ in vars(module):
                monkeypatch.setattr(module, function.__name__, function)
    for move in (Gibbs, HMC, RandomWalk):
        monkeypatch.setattr(move, "compiled", lambda self, path: None)
    return noted


@pytest.mark.parametrize("name", RUNS)
def test_a_run_opens_no_random_stream_twice(name, opened):
    estimator, path = RUNS[name]
    options = {"draws": DRAWS} if name == "BridgeSampling" else {}
    names = [each for each in estimator.get_params() if each.endswith("random_state")]
    quietly(clone(estimator).set_params(**dict.fromkeys(names, 1)), path(), **options)
    assert_used_once(opened, again=1 if name == "AdaptiveSMC" else 0)


def assert_used_once(opened, again=0):
    """But for the rays along which tails are looked at, the same from every base of a density."""
    assert len(opened) >= 3
    repeated = [use for use, count in Counter(opened).items() if count > 1]
    assert len(repeated) == again, f"{len(repeated)} of {len(opened)}: {repeated[:2]}"


def names_of_streams(tree):
    """First parts of the names that are given to streams in a file, of those that are literal."""
    for node in ast.walk(tree):
        called = getattr(node, "func", None)
        if isinstance(called, ast.Attribute) and called.attr == "of" and node.args:
            parts = [part.value for part in node.args if isinstance(part, ast.Constant)]
            if parts and len(parts) == len(node.args):
                yield ast.unparse(called.value), *parts


def test_a_file_gives_a_stream_no_name_twice():
    repeated = []
    for file, tree in trees().items():
        names = list(names_of_streams(tree))
        assert not any("/" in str(part) for name in names for part in name[1:]), file
        repeated += [(file, *name) for name, count in Counter(names).items() if count > 1]
    assert not repeated

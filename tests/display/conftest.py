import matplotlib
import numpy as np
import pytest
from convergence import quietly

from sklpf import AIS, RTS, BernoulliRBM, ParallelTempering

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _closes_figures():
    """No figure is left to the next test, and none of others is open."""
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def rbm():
    rng = np.random.default_rng(0)
    return BernoulliRBM.from_parameters(rng.normal(size=(4, 9)), np.zeros(9), np.zeros(4))


@pytest.fixture(scope="session")
def tempering(rbm):
    return quietly(ParallelTempering(4, 4, 128, random_state=0), rbm)


@pytest.fixture(scope="session")
def rts(rbm):
    return quietly(RTS(20, 6, 200, random_state=0), rbm)


@pytest.fixture(scope="session")
def ais(rbm):
    return quietly(AIS(100, 20, random_state=0), rbm)

"""Models of NumPyro and PyMC, where these are installed: evidence, names, and what has none."""

import numpy as np
import pytest
from scipy import integrate, stats

from sklpf import HAIS, HMC, BridgeSampling, Gaussian
from sklpf.interop import from_numpyro, from_pymc

Y = np.array([1.2, 0.4, 2.1, 1.5, 0.9, 3.0])


def evidence():
    """y ~ N(mu, sigma^2), mu ~ N(0, 2^2), sigma ~ half-normal(1.5): mu in closed form."""

    def given(sigma):
        covariance = sigma**2 * np.eye(len(Y)) + 4.0
        return np.exp(
            stats.multivariate_normal.logpdf(Y, cov=covariance)
            + stats.halfnorm.logpdf(sigma, scale=1.5)
        )

    return np.log(integrate.quad(given, 0, np.inf, epsabs=0, epsrel=1e-10)[0])


@pytest.fixture(scope="module")
def numpyro():
    """NumPyro with JAX in 64 bits."""
    package = pytest.importorskip("numpyro", reason="NumPyro is not installed")
    import jax

    jax.config.update("jax_enable_x64", True)
    return package


@pytest.fixture(scope="module")
def pymc():
    return pytest.importorskip("pymc", reason="PyMC is not installed")


def numpyro_path(numpyro):
    dist = numpyro.distributions

    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 2))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.5))
        numpyro.deterministic("twice", 2 * mu)
        numpyro.sample("y", dist.Normal(mu, sigma), obs=y)

    return from_numpyro(model, Y)


def pymc_path(pymc):
    with pymc.Model() as model:
        mu = pymc.Normal("mu", 0, 2)
        sigma = pymc.HalfNormal("sigma", 1.5)
        pymc.Deterministic("twice", 2 * mu)
        pymc.Normal("y", mu, sigma, observed=Y)
    return from_pymc(model)


@pytest.fixture(scope="module", params=["numpyro", "pymc"])
def path(request):
    package = request.getfixturevalue(request.param)
    return {"numpyro": numpyro_path, "pymc": pymc_path}[request.param](package)


def test_log_density_and_names(path):
    assert path.parameter_shapes == {"mu": (), "sigma": ()}
    mu, sigma = np.array([0.5, -1.0]), np.array([0.7, 2.0])
    points = path.unconstrain({"sigma": sigma, "mu": mu})
    back = path.constrain(points)
    np.testing.assert_allclose(back["mu"], mu, rtol=1e-12)
    np.testing.assert_allclose(back["sigma"], sigma, rtol=1e-12)
    log_posterior = (
        stats.norm.logpdf(Y, mu[:, np.newaxis], sigma[:, np.newaxis]).sum(axis=1)
        + stats.norm.logpdf(mu, 0, 2)
        + stats.halfnorm.logpdf(sigma, scale=1.5)
        + np.log(sigma)  # the Jacobian
    )
    # PyMC has the constant of its half-normal to nine digits.
    np.testing.assert_allclose(path.raw_log_density(points), log_posterior, rtol=2e-9)


def test_evidence(path):
    """4 standard errors."""
    hais = HAIS(100, 100, transition=HMC(metric="dense"), random_state=0).fit(path)
    assert hais.converged_
    assert abs(hais.log_partition_ - evidence()) < 4 * hais.log_partition_std_error_ < 0.2


def test_bridge_from_named_draws(path):
    """Draws of the run as a sampler would give them; 4 standard errors."""
    hais = HAIS(500, 100, transition=HMC(metric="dense"), random_state=1).fit(path)
    tree = hais.result_.draws.to_datatree(path)
    bridge = BridgeSampling("t", random_state=0).fit(path, draws=tree)
    assert abs(bridge.log_partition_ - evidence()) < 4 * bridge.log_partition_std_error_ < 0.3
    both = tree["posterior"].to_dataset()
    with pytest.raises(ValueError, match="missing sigma, surplus none"):
        BridgeSampling().fit(path, draws=both.drop_vars("sigma"))
    more = both.assign(twice=2 * both["mu"])
    with pytest.raises(ValueError, match="missing none, surplus twice"):
        BridgeSampling().fit(path, draws=more)


def test_shapes_of_parameters(numpyro):
    dist = numpyro.distributions

    def model():
        shares = numpyro.sample("shares", dist.Dirichlet(np.ones(3)))
        with numpyro.plate("rows", 2):
            numpyro.sample("rate", dist.Gamma(2.0, 1.0 + shares[0]))

    path = from_numpyro(model, base=Gaussian(np.zeros(4), 1.0))
    assert path.parameter_shapes == {"rate": (2,), "shares": (3,)}
    values = {"rate": np.array([[1.0, 2.0]]), "shares": np.array([[0.2, 0.3, 0.5]])}
    back = path.constrain(path.unconstrain(values))
    for name, value in values.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-10)
    assert path.with_base(Gaussian(np.ones(4), 1.0)).parameter_shapes == path.parameter_shapes


def test_transforms_that_depend_on_parameters(pymc):
    with pymc.Model() as model:
        top = pymc.HalfNormal("top", 1.0)
        pymc.Uniform("share", 0, top, shape=2)
    path = from_pymc(model, base=Gaussian(np.zeros(3), 1.0))
    values = {"top": np.array([2.0]), "share": np.array([[0.5, 1.5]])}
    back = path.constrain(path.unconstrain(values))
    for name, value in values.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-10)


def test_numpyro_models_without_an_evidence(numpyro):
    dist = numpyro.distributions

    def discrete():
        numpyro.sample("z", dist.Bernoulli(0.5))
        numpyro.sample("x", dist.Normal(0, 1))

    def improper():
        numpyro.sample("x", dist.ImproperUniform(dist.constraints.real, (), ()))

    def parameter():
        numpyro.sample("x", dist.Normal(numpyro.param("m", 0.0), 1))

    sentences = {discrete: "z is a discrete", improper: "x has an improper", parameter: "m is a"}
    for model, sentence in sentences.items():
        with pytest.raises(ValueError, match=sentence):
            from_numpyro(model)


def test_32_bits_of_jax(numpyro):
    import jax

    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match="jax_enable_x64"):
            numpyro_path(numpyro)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_pymc_models_without_an_evidence(pymc):
    with pymc.Model() as discrete:
        pymc.Poisson("n", 3.0)
    with pymc.Model() as improper:
        pymc.Flat("x")
    with pymc.Model() as potential:
        x = pymc.Normal("x")
        pymc.Potential("extra", -(x**2))
    with pytest.raises(ValueError, match="n are discrete"):
        from_pymc(discrete)
    with pytest.raises(ValueError, match="x have improper"):
        from_pymc(improper)
    with pytest.warns(UserWarning, match="extra are potentials"):
        from_pymc(potential)
    with pytest.raises(TypeError, match=r"takes a pymc\.Model"):
        from_pymc(lambda x: x)

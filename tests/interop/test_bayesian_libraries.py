"""Models of NumPyro, PyMC and PyStan, where these are installed: evidence, names, what has none.

The stand-ins for BridgeStan and PyStan have their methods and exceptions: BridgeStan needs
sources of Stan from the network, and PyStan a compiler.
"""

import logging
import warnings

import numpy as np
import pytest
from scipy import integrate, stats

from sklpf import HAIS, BridgeSampling, Gaussian, Mixture
from sklpf.interop import from_numpyro, from_pymc, from_stan
from sklpf.transitions import HMC

Y = np.array([1.2, 0.4, 2.1, 1.5, 0.9, 3.0])


def evidence():
    """y ~ N(mu, sigma^2), mu ~ N(0, 2^2), sigma ~ half-normal(1.5): mu in closed form."""

    def given(sigma):
        covariance = sigma**2 * np.eye(len(Y)) + 4.0
        log_likelihood = stats.multivariate_normal.logpdf(Y, cov=covariance)
        return np.exp(log_likelihood + stats.halfnorm.logpdf(sigma, scale=1.5))

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


PROGRAM = """
data { int n; vector[n] y; }
parameters { real mu; real<lower=0> sigma; }
transformed parameters { real twice = 2 * mu; }
model {
  target += normal_lpdf(mu | 0, 2);
  target += normal_lpdf(sigma | 0, 1.5) + log(2);
  target += normal_lpdf(y | mu, sigma);  // y ~ normal(mu, sigma) would drop constants
}
"""


@pytest.fixture(scope="module")
def stan():
    # PyStan needs a C++ compiler, and packages of it warn.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("stan", reason="PyStan is not installed")


def built(stan, program, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stan.build(program, data=data)


def stan_path(stan):
    return from_stan(built(stan, PROGRAM, {"n": len(Y), "y": Y.tolist()}))


class StandIn:
    """The model of `evidence` with a matrix beside it, in coordinates (mu, log sigma, matrix)."""

    names = ("mu", "sigma", "m.1.1", "m.2.1", "m.1.2", "m.2.2", "m.1.3", "m.2.3")

    def value(self, x):
        sigma = np.exp(x[1])
        if sigma > 1e6:
            raise RuntimeError("normal_lpdf: Scale parameter is too large")
        squares = np.sum((Y - x[0]) ** 2) / sigma**2 + x[0] ** 2 / 4 + (sigma / 1.5) ** 2
        # Of half-normal sigma the density is doubled; one log sigma is of the coordinate's.
        constant = np.log(2) - np.log(2 * 1.5) - (len(Y) + 8) / 2 * np.log(2 * np.pi)
        return float(constant - (len(Y) - 1) * x[1] - (squares + x[2:] @ x[2:]) / 2)

    def slope(self, x):
        sigma = np.exp(x[1])
        first = np.sum(Y - x[0]) / sigma**2 - x[0] / 4
        second = np.sum((Y - x[0]) ** 2) / sigma**2 - len(Y) - (sigma / 1.5) ** 2 + 1
        return np.array([first, second, *-x[2:]])

    def parameters(self, x):
        return np.array([x[0], np.exp(x[1]), *x[2:]])


class BridgeStanStandIn(StandIn):
    def param_names(self, *, include_tp=False, include_gq=False):
        return [*self.names, "twice"] if include_tp else list(self.names)

    def param_unc_num(self):
        return 8

    def log_density(self, theta_unc, *, propto=True, jacobian=True):
        assert jacobian
        assert not propto  # would drop constants
        return self.value(theta_unc)

    def log_density_gradient(self, theta_unc, *, propto=True, jacobian=True):
        return self.log_density(theta_unc, propto=propto, jacobian=jacobian), self.slope(theta_unc)

    def param_constrain(self, theta_unc, *, include_tp=False, include_gq=False):
        return self.parameters(theta_unc)

    def param_unconstrain(self, theta):
        return np.array([theta[0], np.log(theta[1]), *theta[2:]])


class PyStanStandIn(StandIn):
    program_code = "model {}"
    constrained_param_names = (*StandIn.names, "twice")

    def log_prob(self, unconstrained_parameters, adjust_transform=True):
        return self.value(self._checked(unconstrained_parameters))

    def grad_log_prob(self, unconstrained_parameters):
        return self.slope(self._checked(unconstrained_parameters)).tolist()

    def constrain_pars(self, unconstrained_parameters, include_tparams=True, include_gqs=True):
        x = self._checked(unconstrained_parameters)
        return [*self.parameters(x), *([2 * x[0]] if include_tparams else [])]

    def unconstrain_pars(self, constrained_parameters):
        mu, sigma, m = (constrained_parameters[name] for name in ("mu", "sigma", "m"))
        return [mu, np.log(sigma), *np.ravel(m, order="F")]

    def _checked(self, x):
        assert isinstance(x, list)  # it is sent as JSON
        if len(x) != 8:
            raise RuntimeError("The number of parameters does not match")
        return np.array(x)


@pytest.fixture(scope="module", params=["numpyro", "pymc", "stan"])
def path(request):
    package = request.getfixturevalue(request.param)
    makers = {"numpyro": numpyro_path, "pymc": pymc_path, "stan": stan_path}
    return makers[request.param](package)


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


def test_evidence_by_a_run_and_by_a_bridge_from_its_named_draws(path):
    """As a sampler would give them; 4 standard errors each."""
    hais = HAIS(500, 100, transition=HMC(metric="dense"), random_state=1).fit(path)
    assert hais.converged_
    assert abs(hais.log_partition_ - evidence()) < 4 * hais.log_partition_std_error_ < 0.2
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


class Strict(BridgeStanStandIn):
    def param_unconstrain(self, theta):
        if theta[1] <= 0:
            raise RuntimeError("lb_free: Lower bounded variable is -1, but must be >= 0")
        return super().param_unconstrain(theta)


@pytest.mark.parametrize("model", [Strict(), PyStanStandIn()])
def test_a_parameter_outside_of_its_support_is_named(model):
    path = from_stan(model, base=Gaussian(np.zeros(8), 1.0))
    values = {"mu": np.zeros(3), "sigma": np.array([1.0, -1.0, 2.0]), "m": np.zeros((3, 2, 3))}
    with pytest.raises(ValueError, match=r"sigma must lie inside its support, got -1.*1 of 3 draw"):
        path.unconstrain(values)


@pytest.mark.large
@pytest.mark.parametrize("model", [BridgeStanStandIn(), PyStanStandIn()])
def test_stan_by_its_methods(model):
    """4 standard errors."""
    path = from_stan(model)
    assert path.parameter_shapes == {"mu": (), "sigma": (), "m": (2, 3)}
    values = {"m": np.arange(6.0).reshape(1, 2, 3), "mu": np.array([0.3]), "sigma": np.array([2.0])}
    points = path.unconstrain(values)
    np.testing.assert_allclose(points, [[0.3, np.log(2), 0, 3, 1, 4, 2, 5]], rtol=1e-12)
    back = path.constrain(np.repeat(points, 3, axis=0))
    for name, value in values.items():
        np.testing.assert_allclose(back[name], np.repeat(value, 3, axis=0), rtol=1e-12)

    rejected = np.full((1, 8), 50.0)
    assert path.raw_log_density(rejected) == -np.inf
    hais = HAIS(50, 50, transition=HMC(metric="dense"), random_state=0).fit(path)
    assert abs(hais.log_partition_ - evidence()) < 4 * hais.log_partition_std_error_ < 0.4


@pytest.mark.parametrize(
    ("declared", "statements", "improper"),
    [
        ("real mu;", "y ~ normal(mu, 1);", True),
        ("real mu;", "target += normal_lpdf(y | mu, 1);", True),
        ("real mu;", "", True),
        ("real mu;", "target += normal_lpdf(y | mu, 1) - mu^2 / 2;", False),
        ("real mu;", "real tau = exp(mu); tau ~ gamma(1, 1);", False),
        ("real<lower=0, upper=1> mu;", "y ~ bernoulli(mu);", False),
    ],
)
def test_stan_parameters_without_a_prior(declared, statements, improper):
    model = PyStanStandIn()
    model.program_code = f"data {{ real y; }} parameters {{ {declared} }} model {{ {statements} }}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constants that are dropped
        if not improper:
            from_stan(model)
            return
        with pytest.raises(ValueError, match="mu have no priors"):
            from_stan(model)


def test_pystan_drops_constants(stan):
    """What its log density lacks is what the warning says that it lacks."""
    program = "parameters { real x; } model { x ~ normal(0, 3); }"
    with pytest.warns(UserWarning, match=r"lacks these: x ~ normal\(0, 3\)"):
        path = from_stan(built(stan, program, {}))
    constant = np.log(3 * np.sqrt(2 * np.pi))
    difference = path.raw_log_density(np.zeros((1, 1))) - stats.norm.logpdf(0, scale=3)
    np.testing.assert_allclose(difference, constant, rtol=1e-12)


@pytest.mark.parametrize("library", ["numpyro", "pymc"])
def test_base_of_the_prior(library, request, caplog):
    """Effects x around a scale of their own have no mode: their density is infinite at scale 0.

    The base is made of the 16, 50 and 84 percent points of log scale in 1000 draws, of which the
    standard errors are 0.074, 0.037 and 0.028, and 0.039 that of half the outer two's difference: 5
    of these.
    """
    without_mode = {"numpyro": numpyro_without_mode, "pymc": pymc_without_mode}[library]
    with caplog.at_level(logging.INFO, logger="sklpf"):
        path = without_mode(request.getfixturevalue(library))
    assert "as wide as the prior" in caplog.text
    assert path.base_is_ours
    low, middle, high = np.log(stats.halfnorm.ppf([0.16, 0.5, 0.84]))
    assert abs(path.base.mean[0] - middle) < 5 * 0.037
    assert abs(path.base.scale[0] / np.sqrt(1.5) - (high - low) / 2) < 5 * 0.039


def numpyro_without_mode(numpyro):
    dist = numpyro.distributions

    def model():
        scale = numpyro.sample("scale", dist.HalfNormal(1))
        with numpyro.plate("rows", 5):
            numpyro.sample("x", dist.Normal(0, scale))

    return from_numpyro(model)


def pymc_without_mode(pymc):
    with pymc.Model() as model:
        scale = pymc.HalfNormal("scale", 1)
        pymc.Normal("x", 0, scale, shape=5)
    return from_pymc(model)


class TwoModes(BridgeStanStandIn):
    """A light mode where the climb from 0 ends, and a heavy one."""

    both = Mixture([Gaussian([0.0, 0.0], 0.2**2), Gaussian([1.5, 1.5], 0.2**2)], [0.01, 0.99])

    def param_unc_num(self):
        return 2

    def param_names(self, *, include_tp=False, include_gq=False):
        return ["a", "b"]

    def value(self, x):
        return float(self.both.log_density(x[np.newaxis])[0])

    def slope(self, x):
        return self.both.grad_log_density(x[np.newaxis])[0]

    def parameters(self, x):
        return np.array(x)

    def param_unconstrain(self, theta):
        return np.array(theta)


def test_the_base_is_at_the_heaviest_of_several_modes():
    path = from_stan(TwoModes())
    np.testing.assert_allclose(path.base.mean, 1.5, atol=1e-3)
    hais = HAIS(50, 100, checks=False, random_state=0).fit(path)
    assert abs(hais.log_partition_) < 4 * hais.log_partition_std_error_ + 0.01  # the light mode

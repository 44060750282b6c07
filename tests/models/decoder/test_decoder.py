"""Likelihoods of rows under decoders: closed forms, grids, and rows that move side by side."""

import numpy as np
import pytest
from convergence import may_not_converge, quietly
from decoders import Blocks, Bump, Layers, Linear, Square
from marks import large
from scipy.special import expit, logsumexp
from scipy.stats import norm

from sklpf import HAIS, RTS, SMC, ParallelTempering
from sklpf.interop import from_decoder
from sklpf.models import LinearPath
from sklpf.models.decoder import _importance
from sklpf.paths import Evaluations
from sklpf.testing import check_path
from sklpf.transitions import HMC, RandomWalk

NETWORK = Layers([2, 20, 12], 2.0)
MODEL = NETWORK.model()
X = MODEL.sample(8, random_state=1)
SHORT = HAIS(12, 30, tol=0.4, random_state=3)


def assert_right(model, rows, exact):
    """z-scores of the rows: their mean and the mean of their squares, at a false-alarm rate of 1e-4
    each if the standard errors are right, and half as much again for errors that vary.
    """
    with may_not_converge():
        estimates = model.score_samples(rows)
    result = model.partition_estimator_.result_
    assert result.diagnostics["converged"].mean() > 0.9
    z = (estimates - exact) / result.std_error
    n = len(z)
    bound = norm.isf(0.5e-4)
    assert abs(z.mean()) < bound / np.sqrt(n) * 1.5
    assert np.mean(z**2) < (1 + bound * np.sqrt(2 / n)) * 1.5


# ---- right numbers
REAL = {"likelihood": "gaussian", "noise_std": 0.3}


@pytest.mark.parametrize(
    ("network", "options"),
    [(Linear(3, 8, 0.5), {}), (NETWORK, {}), large(Layers([1, 10, 6], 2.0), REAL)],
    ids=["closed form", "binary rows", "real rows"],
)
def test_densities_are_those_of_closed_forms_and_grids(network, options):
    model = network.model(**options)
    rows = model.sample(12, random_state=2)
    noise = [options["noise_std"]] if options else []
    assert_right(model, rows, network.log_likelihood(rows, *noise))


def assert_covers(models):
    """Models by network, with rows: 95 % intervals of trusted rows cover, at a false-alarm rate of
    1e-4 if 93 % do.
    """
    covered = []
    for network, options, rows in models:
        exact = network.log_likelihood(rows, *[options[k] for k in options if k == "noise_std"])
        path = network.model(**options).path(rows)
        result = path.default_estimator().set_params(random_state=1).fit(path).result_
        assert result.diagnostics["converged"].mean() > 0.95
        low, high = result.interval()
        covered += list(((low <= exact) & (exact <= high))[result.diagnostics["converged"]])
    n = len(covered)
    assert np.mean(covered) > 0.93 - norm.isf(1e-4) * np.sqrt(0.93 * 0.07 / n)


def test_intervals_of_the_default_cover_in_four_and_ten_dimensions():
    cases = []
    for n_blocks, scale, options in ((2, 1.5, {}), (5, 1.0, REAL | {"noise_std": 0.5})):
        network = Blocks(n_blocks, [20, 6], scale, seed=11, n_points=161)
        cases.append((network, options, network.model(**options).sample(25, random_state=11)))
    assert_covers(cases)


def test_the_default_finds_narrow_modes_by_their_sides():
    """Bumps at random places, most of which hold .63 of p(x) or more: a row is annealed, or its
    number is that of the grid. Of 10 at most one is missed; places and seeds are fixed.
    """
    rng = np.random.default_rng(5)
    n_missed = 0
    n_material = 0
    for seed in range(10):
        bump = Bump(rng.normal(size=2), 0.02, 4.0)
        exact, without = bump.log_likelihood()
        n_material += exact - without > 1
        path = bump.model().path(np.ones((1, 18)))
        estimator = path.default_estimator().set_params(random_state=seed, n_temperatures=50)
        result = quietly(estimator, path).result_
        is_wrong = abs(result.log_partition[0] - exact) > 5 * result.std_error[0]
        n_missed += bool(result.diagnostics["converged"][0] and is_wrong)
    assert n_material >= 6
    assert n_missed <= 1


@pytest.mark.large
def test_a_network_of_probabilities_agrees_with_a_grid():
    """Also where rounding makes many of them 0 or 1, which excludes a row that says the opposite,
    but for e^-100.
    """
    network = Layers([1, 20, 12], 4.0)

    def decoder(z):
        return np.clip(1.1 * expit(network.decoder(z)) - 0.05, 0, 1)

    def pullback(z, g):
        p = decoder(z)
        slope = 1.1 * expit(network.decoder(z)) * expit(-network.decoder(z))
        return network.pullback(z, g * (p > 0) * (p < 1) * slope)

    model = from_decoder(decoder, 1, pullback=pullback, outputs="probabilities", random_state=0)
    rows = model.sample(12, random_state=2)
    z = np.linspace(-8, 8, 20_001)[:, np.newaxis]
    p = decoder(z)
    log_p, log_q = (np.log(np.maximum(part, np.exp(-100))) for part in (p, 1 - p))
    given = rows @ log_p.T + (1 - rows) @ log_q.T
    log_prior = norm.logpdf(z).sum(axis=1)
    exact = logsumexp(given + log_prior, axis=1) + np.log(z[1] - z[0])
    assert_right(model, rows, exact)


def test_outputs_that_look_like_probabilities_are_logits_for_nobody():
    """Whoever means them has to say so."""
    narrow = Layers([2, 20, 1], 2.0)

    def sigmoid(z):
        return expit(narrow.decoder(z))

    def pullback(z, g):
        return narrow.pullback(z, g * sigmoid(z) * (1 - sigmoid(z)))

    with pytest.raises(ValueError, match=r"in \[0, 1\] alone.*give logits.*outputs=\"prob"):
        from_decoder(sigmoid, 2, pullback=pullback)
    for outputs in ("logits", "probabilities"):
        assert from_decoder(sigmoid, 2, pullback=pullback, outputs=outputs).outputs == outputs


# ---- decoders that do not keep still
@pytest.mark.parametrize("change", ["weights", "dropout", "dropout at first"])
def test_a_decoder_that_changes_while_it_is_used_is_found(change):
    network = Layers([2, 20, 12], 2.0)
    whole = network.decoder
    rng = np.random.default_rng(0)
    calls = []

    def decoder(z):
        calls.append(len(calls))
        n = len(calls) - begun[0]
        outputs = whole(z)
        if change == "weights" and n > 50:
            return outputs * 1.001
        if (change == "dropout" and n > 50) or (change == "dropout at first" and 0 < n < 50):
            return outputs * (rng.random(outputs.shape) < 0.9)
        return outputs

    begun = [np.inf]
    network.decoder = decoder
    model = network.model(partition_estimator=SHORT)
    begun[0] = len(calls)
    with pytest.raises(ValueError, match="decoder (has changed while it was used|is random)"):
        model.score_samples(X[:2])


def test_a_mode_that_the_encoder_does_not_know_raises_an_alarm():
    """Half of p(x) is missed: log 2. From the prior all is found."""
    square = Square()
    rows = square.model().sample(40, random_state=2)
    rows = rows[rows @ square.weights[0] > np.sum(square.weights**2)]  # z beyond 1: modes are apart
    assert len(rows) > 8
    rows = rows[:2]
    exact = square.log_likelihood(rows)
    path = square.model(encoder=square.encoder).path(rows)
    for estimator in (HAIS(random_state=0), SMC(random_state=0)):
        result = quietly(estimator, path).result_
        np.testing.assert_allclose(result.log_partition - exact, -np.log(2), atol=0.1)
        assert not result.diagnostics["converged"].any()
        assert "missed-region" in [alarm.kind for alarm in result.alarms]
        assert "score without the encoder" in " ".join(result.reasons)
    assert_right(square.model(), rows, exact)


def wrong_encoder(linear, off, factor):
    """The posterior's mean, off by so many standard deviations, and so many times its variance."""

    def encoder(rows):
        mean, log_variance = linear.encoder(rows)
        return mean + off * np.exp(log_variance / 2), log_variance + np.log(factor)

    return encoder


@pytest.mark.parametrize(("off", "factor"), [(0.0, 0.02), (3.0, 0.02), (8.0, 0.1), (0.0, 50.0)])
def test_importance_sampling_does_not_depend_on_the_encoder(off, factor):
    linear = Linear(5, 8, 0.5)
    rows = linear.model().sample(40, random_state=5)
    model = linear.model(encoder=wrong_encoder(linear, off, factor))
    assert_right(model, rows, linear.log_likelihood(rows))
    assert model.partition_estimator_.result_.n_sweeps < 3000 * len(rows)  # none was annealed


def test_a_mode_that_one_climb_alone_has_met_leaves_a_row_to_annealing():
    """A comb has many modes, of which no climb meets all."""
    weights = np.full((1, 6), 1.0)

    def decoder(z):
        return np.sin(40 * z) @ weights

    def pullback(z, g):
        return 40 * np.cos(40 * z) * (g @ weights.T)

    model = from_decoder(
        decoder, 1, pullback=pullback, likelihood="gaussian", noise_std=0.1, random_state=0
    )
    rows = model.sample(3, random_state=1)
    path = model.path(rows)
    posteriors = _importance.Posteriors(path.network, path.X, 1, Evaluations())
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    assert _importance._proposals(posteriors, rngs, None, True) == [None] * 3


@pytest.mark.parametrize("estimator", [None, large(SMC(random_state=0))])
def test_an_encoder_that_knows_the_only_mode_raises_no_alarm(estimator):
    """Each row has false alarms at a rate of at most .01; more than 3 of 40 at one of 1e-3."""
    linear = Linear(3, 8, 0.2)
    rows = linear.model().sample(40, random_state=4)
    model = linear.model(encoder=linear.encoder, partition_estimator=estimator)
    with may_not_converge():
        model.score_samples(rows)
    result = model.partition_estimator_.result_
    counts = [alarm.seen for alarm in result.alarms if alarm.kind == "missed-region"]
    assert sum(int(seen.split()[1]) for seen in counts) <= 3


def test_a_row_that_the_decoder_has_learned_by_heart_raises_an_alarm():
    """A bump makes one row of a narrow part of the latent plane, which holds .93 of p(x): log p(x)
    is -12.876. Chains from the prior miss it, and agree; climbs from the most likely of many draws
    find it. Seeds are fixed; of seeds 0 to 3 the alarm rang in three, and the fourth was flagged by
    its weights.
    """
    place = np.array([1.2, -1.0])
    width = 0.02

    def decoder(z):
        bump = np.exp(-0.5 * np.sum((z - place) ** 2, axis=1) / width**2)
        return np.repeat(bump[:, np.newaxis], 8, axis=1)

    def pullback(z, g):
        slope = np.sum(g * decoder(z), axis=1, keepdims=True)
        return -slope * (z - place) / width**2

    model = from_decoder(
        decoder, 2, pullback=pullback, likelihood="gaussian", noise_std=0.56, random_state=0
    )
    path = model.path(np.ones((1, 8)))
    for seed in (0, 1):
        found = path.default_estimator().set_params(random_state=seed).fit(path).result_
        assert found.diagnostics["converged"].all()
        assert abs(found.log_partition[0] + 12.876) < 4 * found.std_error[0]
        estimator = HAIS(n_temperatures=3000, tol=0.1, random_state=seed)
        blind = estimator.set_params(checks=False).fit(path)
        assert blind.result_.diagnostics["converged"].all()
        assert blind.log_partition_[0] < -15.4
        result = quietly(estimator.set_params(checks=True), path).result_
        assert not result.diagnostics["converged"].any()
        assert "missed-region" in [alarm.kind for alarm in result.alarms]
        assert "give an encoder whose density covers it" in " ".join(result.reasons)


def test_samples_have_the_moments_of_the_model():
    linear = Linear(2, 3, 0.5)
    rows = linear.model().sample(20_000, random_state=0)
    cov = linear.weights.T @ linear.weights + 0.25 * np.eye(3)
    scale = np.sqrt(np.diag(cov))
    assert np.all(np.abs(rows.mean(axis=0) - linear.bias) < 5 * scale / np.sqrt(20_000))
    largest = 5 * np.sqrt(2 / 20_000) * np.outer(scale, scale)  # false alarms: 1e-5
    assert np.all(np.abs(np.cov(rows.T) - cov) < largest)
    assert set(np.unique(MODEL.sample(50, random_state=0))) == {0.0, 1.0}


# ---- the gap on simulated rows
def test_rows_that_are_given_have_no_exact_draw():
    with pytest.raises(AttributeError, match="not known"):
        MODEL.path(X).row(0).exact_start  # noqa: B018
    simulated = MODEL.simulated_path(5, random_state=1)
    np.testing.assert_array_equal(simulated.X, MODEL.sample(5, random_state=1))
    start = simulated.row(2).exact_start()
    np.testing.assert_allclose(simulated.row(2).latents(start.position), simulated.drawn[2:3])


# ---- rows side by side
def numbers(rows, estimator=SHORT, **parameters):
    model = NETWORK.model(partition_estimator=estimator, **parameters)
    with may_not_converge():
        estimates = model.score_samples(rows)
    result = model.partition_estimator_.result_
    return np.array([*estimates, *result.std_error, result.n_sweeps])


@pytest.mark.parametrize(
    "estimator",
    [
        SHORT,
        SMC(10, 10, n_populations=3, random_state=3),
        large(HAIS(20, 60, transition=HMC(metric="dense"), random_state=3)),
        large(HAIS(20, 60, transition=RandomWalk(), random_state=3)),
        large(ParallelTempering(n_sweeps=128, random_state=3)),
        large(RTS(n_sweeps=200, random_state=3)),
    ],
    ids=["levels of their own", "populations", "dense", "random walk", "tempering", "levels"],
)
def test_a_row_alone_has_the_numbers_that_it_has_beside_others(estimator):
    class Alone(type(estimator)):
        def _estimate_rows(self, path, rows, seeds):
            return (self._estimate(path.row(row), seed) for row, seed in zip(rows, seeds))

    alone = Alone(**estimator.get_params(deep=False))
    np.testing.assert_array_equal(numbers(X[:4], alone), numbers(X[:4], estimator))


# ---- a model as others
def test_the_path_of_a_row_is_one_as_others_are():
    check_path(MODEL.path(X).row(0))


# ---- what can't be used
def test_rows_that_do_not_suit_are_refused():
    with pytest.raises(ValueError, match="must hold only 0 and 1"):
        MODEL.score_samples(X * 0.7)
    with pytest.raises(ValueError, match="has 3 features, but DecoderModel is expecting 12"):
        MODEL.score_samples(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        MODEL.path(np.full((1, 12), np.nan))
    with pytest.raises(ValueError, match="has 3 features, but the decoder gives 12"):
        MODEL.fit(X[:, :3])
    assert MODEL.path(X).n_rows == len(X)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (lambda X: (X[:, :2], X[:, :3]), "log variance of shape"),
        (lambda X: (X[:, :2],), "encoder must give mean and log variance"),
        (lambda X: (X[:, :2], X[:, :2] + 800), "encoder must give log variances within 461 of 0"),
        (lambda X: (X[:, :2] * np.nan, X[:, :2]), "NaN or infinity as mean"),
    ],
)
def test_encoders_that_can_not_be_used_are_refused(encoder, message):
    with pytest.raises(ValueError, match=message):
        NETWORK.model(encoder=encoder).path(X)


def test_a_network_that_turns_nan_far_out_says_where():
    broken = Layers([2, 20, 12], 2.0)
    whole = broken.decoder
    broken.decoder = lambda z: np.where(np.abs(z[:, :1]) > 1.5, np.nan, whole(z))
    model = broken.model(partition_estimator=SHORT)
    with pytest.raises(ValueError, match=r"row \d+: decoder is NaN or infinite at the latent"):
        model.score_samples(X)


def test_importance_sampling_names_paths_that_it_can_not_sample():
    path = LinearPath([[1.0]], [[1.0]], noise_std=0.5)
    with pytest.raises(TypeError, match="needs rows of a decoder .*take HAIS"):
        _importance.DecoderImportance().fit(path)

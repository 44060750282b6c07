"""DecoderModel: the log-likelihood of rows under a decoder, such as a variational autoencoder's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.random import draw_seed
from sklpf._utils.sklearn import BaseEstimator, DrawsInContainer, StrOptions, in_container
from sklpf._utils.validation import (
    LARGEST,
    POSITIVE,
    at_least,
    check_count,
    check_finite,
    check_scale,
)
from sklpf.models._enumerable_path import BinaryUnits
from sklpf.models._learning import all_or_nothing
from sklpf.models.decoder._network import (
    Bernoulli,
    BernoulliProbabilities,
    Forward,
    GaussianNoise,
    Likelihood,
    Network,
    check_logits,
    check_network,
)
from sklpf.models.decoder._path import DecoderPath
from sklpf.paths import values_of
from sklpf.scoring import SCORING, RowLikelihoodMixin

_LARGEST_LOG_VARIANCE = 2 * np.log(LARGEST)


@dataclass(eq=False, repr=False)
class DecoderModel(RowLikelihoodMixin, DrawsInContainer, BaseEstimator):
    """Rows x ~ p(x | decoder(z)) with latent variables z ~ N(0, I); `score` is a log-likelihood.

    `sklpf.interop.from_decoder` makes it, ready to score. The decoder is never changed: `fit` only
    looks whether rows suit it. log p(x) of a row is the log of an integral over z, estimated by
    importance sampling, or where that fails by annealing (Wu et al. 2017).

    Parameters
    ----------
    forward : callable
        Of latent variables (n, n_latents), float64: the decoder's outputs (n, n_features), logits
        or means, and a function that takes a gradient by the outputs to one by the latent
        variables.
    n_latents : int
        Number of latent variables.
    likelihood : {"bernoulli", "gaussian"}, default="bernoulli"
        Of a row given the outputs: binary features with these logits, or real ones with these means
        and noise of `noise_std`.
    noise_std : float or None, default=None
        Standard deviation of the noise, in the units of X; "gaussian" needs it.
    encode : callable or None, default=None
        Of rows (n, n_features): mean and log variance of the latent variables, both (n,
        n_latents). It is one of the densities that draws come from, and where chains start, with
        standard deviations 1.5 times as large.
    outputs : {"logits", "probabilities"} or None, default=None
        What a "bernoulli" decoder gives. None: logits, and a decoder whose outputs all lie in [0,
        1], as those of a last layer with a sigmoid, is refused.
    chunk_size : int, default=256
        Most points that go through the decoder in one call. Fewer are padded to a power of two, at
        least 16. On a GPU a larger number is faster.
    random_state : int, RandomState or None, default=None
        The estimates of `score` depend on it alone.
    partition_estimator : PartitionEstimator or None, default=None
        How log p(x) of a row is computed. None: `DecoderImportance`, with a standard error of at
        most 0.1 nats a row.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do with rows whose estimate can't be trusted.
    n_jobs : int or None, default=None
        For blocks of up to 64 rows of `score`, in threads unless ``joblib.parallel_config`` says
        otherwise. Never changes a number.
    verbose : int, default=0
        Whether scores report their progress, as in `AIS`. A score of more than ten seconds does so
        in any case in a terminal and in a notebook.

    Attributes
    ----------
    partition_estimator_ : PartitionEstimator
        Fitted to the rows that were scored last.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Wu, Y., Burda, Y., Salakhutdinov, R. & Grosse, R. (2017). On the quantitative analysis of
    decoder-based generative models. ICLR. arXiv:1611.04273.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_decoder
    >>> forward, pullback = lambda z: 2 * z, lambda z, g: 2 * g
    >>> settings = dict(likelihood="gaussian", noise_std=1.0, random_state=0)
    >>> model = from_decoder(forward, 1, pullback=pullback, **settings)
    >>> exact = -0.5 * np.log(2 * np.pi * 5) - 1 / 10  # x ~ N(0, 5)
    >>> bool(abs(model.score([[1.0]]) - exact) < 0.3)
    True
    """

    forward: Forward
    n_latents: int
    _: KW_ONLY
    likelihood: Literal["bernoulli", "gaussian"] = "bernoulli"
    noise_std: float | None = None
    encode: Callable[[NDArray], tuple[Any, Any]] | None = None
    outputs: Literal["logits", "probabilities"] | None = None
    chunk_size: int = 256
    verbose: int = 0

    _parameter_constraints = {
        **SCORING,
        "forward": [callable],
        "n_latents": [at_least(1)],
        "likelihood": [StrOptions({"bernoulli", "gaussian"})],
        "noise_std": [POSITIVE, None],
        "encode": [callable, None],
        "outputs": [StrOptions({"logits", "probabilities"}), None],
        "chunk_size": [at_least(1)],
    }

    @all_or_nothing
    def fit(self, X, y=None) -> Self:
        """Look whether the decoder can be used, and whether rows suit it; nothing is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used; there for scikit-learn's conventions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter can't be used, if the decoder gives NaN, other shapes than it should or
            random outputs, if the gradient disagrees with it, or if X does not suit it.
        """
        n_features = self._adopt().n_features_in_
        self._validate(X, reset=True)
        if self.n_features_in_ != n_features:
            raise ValueError(
                f"X has {self.n_features_in_} features, but the decoder gives {n_features} for a"
                " row"
            )
        return self

    def _adopt(self) -> Self:
        """Make the model ready to score, with nothing known of any rows."""
        self._validate_params()
        if (self.noise_std is None) != (self.likelihood == "bernoulli"):
            raise ValueError(
                'noise_std must be a number for likelihood="gaussian" and None for "bernoulli", got'
                f" {self.noise_std!r} for {self.likelihood!r}"
            )
        if self.outputs is not None and self.likelihood == "gaussian":
            raise ValueError(
                'outputs must be None for likelihood="gaussian", whose outputs are means, got'
                f" {self.outputs!r}"
            )
        network = self._network()
        self.n_features_in_ = check_network(network, self.n_latents)
        if self.likelihood == "bernoulli" and self.outputs is None:
            check_logits(network, self.n_latents)
        self._partition_seed = draw_seed(self.random_state)
        return self

    def _network(self) -> Network:
        return Network(self.forward, self._likelihood(), self.chunk_size)

    def _likelihood(self) -> Likelihood:
        if self.likelihood == "gaussian":
            return GaussianNoise(check_scale(self.noise_std, "noise_std"))
        return BernoulliProbabilities() if self.outputs == "probabilities" else Bernoulli()

    def _validate(self, X, reset=False):
        X = super()._validate(X, reset)
        self._likelihood().check(X)
        return X

    def path(self, X) -> DecoderPath:
        """Return the path with one target a row, whose normaliser is that row's likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        path : DecoderPath
        """
        check_is_fitted(self)
        return self._path(self._validate(X))

    def simulated_path(self, n_rows: int, random_state=None) -> DecoderPath:
        """Return the path of rows that are drawn from the model, of which `BDMC` knows exact draws.

        The gap that it finds on such rows says whether settings are good enough for real ones (Wu
        et al. 2017).

        Parameters
        ----------
        n_rows : int
            Number of rows.
        random_state : int, RandomState or None, default=None
            Of the latent variables and the rows.

        Returns
        -------
        path : DecoderPath
        """
        check_is_fitted(self)
        check_count(n_rows, "n_rows")
        latents, X = self._draw(n_rows, random_state)
        return self._path(X, latents)

    _visible_units = BinaryUnits()

    @property
    def _discrete(self) -> bool:  # type: ignore[override]  # by a parameter of the model
        return self.likelihood == "bernoulli"

    def _exclusive(self, path) -> Integers | None:
        """Binary rows exclude each other; real ones have densities."""
        return np.zeros(path.n_rows, dtype=np.int64) if self._discrete else None

    def _identity(self, path):
        """Rows, and what the decoder says of them: most decoders can't be pickled."""
        return path.X, path.probe()

    def _path(self, X, drawn=None):
        encode = None
        if self.encode is not None:
            encode = functools.partial(_widened, self.encode, self.n_latents)
        return DecoderPath(X, self._network(), self.n_latents, encode, drawn=drawn)

    def sample(self, n_samples=1, random_state=None) -> Array:
        """Draw independent rows from the model, exactly.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            A frame where `set_output` asks for one.
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        return in_container(self, self._draw(n_samples, random_state)[1])

    def _draw(self, n, random_state):
        """Latent variables (n, n_latents) and rows (n, n_features) drawn from the model."""
        rng = np.random.default_rng(draw_seed(random_state))
        latents = rng.standard_normal((n, self.n_latents))
        return latents, self._network().draw(latents, rng)


def _widened(encode, n_latents, X):
    """Mean and standard deviations of the base of each row: what the encoder says, widened."""
    widening = 1.5  # standard deviations, over those that an encoder says
    given = encode(X.copy())
    wanted = "encoder must give mean and log variance of the latent variables"
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(f"{wanted}, a pair of arrays, got {given!r:.80}")
    parts = [values_of("encoder", part) for part in given]
    for name, part in zip(("mean", "log variance"), parts):
        if part.shape != (len(X), n_latents):
            raise ValueError(
                f"{wanted}, of shape {(len(X), n_latents)} for {len(X)} rows, got a {name} of shape"
                f" {part.shape}"
            )
        if not np.isfinite(part).all():
            raise ValueError(f"encoder gave NaN or infinity as {name}")
    mean, log_variance = parts
    check_finite(mean, "the encoder's mean")
    if np.abs(log_variance).max() > _LARGEST_LOG_VARIANCE:
        raise ValueError(
            f"encoder must give log variances within {_LARGEST_LOG_VARIANCE:.0f} of 0, got"
            f" {log_variance.flat[np.abs(log_variance).argmax()]:g}: does it give variances?"
        )
    return mean, widening * np.exp(log_variance / 2)

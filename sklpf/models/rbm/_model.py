"""BernoulliRBM: scikit-learn's restricted Boltzmann machine with a log-likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import gen_batches

from sklpf._utils.numbers import Array
from sklpf._utils.validation import SparseInput, evenly_spaced
from sklpf._utils.warnings import warn
from sklpf.models._enumerable_path import NOT_BINARY, binary_rows
from sklpf.models.rbm._base import ROWS_AT_ONCE, DiscreteRBM
from sklpf.models.rbm._path import Parameters

_LARGEST_EXPONENT = 700.0  # of a product of exponentials that must stay finite


@dataclass(eq=False, repr=False)
class BernoulliRBM(SparseInput, DiscreteRBM):
    """Bernoulli restricted Boltzmann machine whose `score` is a log-likelihood.

    Replaces `sklearn.neural_network.BernoulliRBM`, with its parameters and attributes, and training
    by persistent contrastive divergence (Tieleman 2008); ``average=False, intercept_init="zeros"``
    make its updates, with lower likelihoods. Binary units v and h have the joint density exp(c @ v
    + b @ h + h @ W @ v) / Z with W = `components_`, c = `intercept_visible_`, b =
    `intercept_hidden_`.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units.
    learning_rate : float, default=0.1
        Length of a step along the gradient.
    batch_size : int, default=10
        Rows in a minibatch.
    n_iter : int, default=10
        Passes over the data.
    verbose : int, default=0
        Whether to report, after a pass but at most once a second, the mean `pseudo_log_likelihood`
        of some evenly spaced rows and the time left, and the progress of the estimation of log Z;
        see `AIS`.
    random_state : int, RandomState or None, default=None
        Seed of the weights, the chains and the estimate of log Z.
    partition_estimator : PartitionEstimator or None, default=None
        How log Z is estimated. None is `Exact` where the smaller layer has at most 20 units, else
        `ParallelTempering`. If its `random_state` or `n_jobs` is None, that of the model is used.
    on_nonconvergence : {"warn", "nan", "raise"}, default="warn"
        What `score` and `score_samples` do when log Z can't be trusted: return the number with a
        ConvergenceWarning, return NaN and log why (logger "sklpf"), or raise RuntimeError. Rows
        that hold other values than 0 and 1 give NaN, with a warning, a line in the log, or an
        error.
    n_jobs : int or None, default=None
        For the estimation of log Z, in threads unless ``joblib.parallel_config`` says otherwise,
        and for training, always in threads. Never changes a number.
    average : bool or int, default=True
        Whether `components_` and the intercepts are averages over the updates of training (Polyak &
        Juditsky 1992). Their log-likelihood varies far less between passes and between seeds than
        that of the last weights, and is mostly higher. False takes the last weights, as
        scikit-learn does. With True the k-th update has a weight proportional to k ** 2.
        With an int greater than 1 all updates have equal weights, once that many rows have been
        seen.
    learning_rate_schedule : {"constant", "linear"}, default="constant"
        "linear" lowers the learning rate with every update, to 0 after `n_iter` passes.
    n_chains : int or None, default=None
        Persistent chains. None takes `batch_size`.
    intercept_init : {"log-odds", "zeros"}, default="log-odds"
        What `intercept_visible_` starts from: the log odds of the data's means (of the first batch
        of `partial_fit`), so that training begins at independent units and need not learn their
        means, or 0, as in scikit-learn.
    weight_decay : float, default=0.0
        Strength of an L2 penalty, per row of data, on the weights but not on the biases: every
        update multiplies them by 1 - learning_rate * weight_decay.
    early_stopping : bool, default=False
        Whether to hold out rows, score them after every pass, end training when this score no
        longer improves, and keep the weights of the best pass. All rows must be of 0 and 1. Implies
        ``track_log_partition="particles"``.
    validation_fraction : float, default=0.1
        Share of the rows that `early_stopping` holds out.
    n_iter_no_change : int, default=5
        Passes in a row without an improvement after which `early_stopping` ends training.
    tol : float, default=1e-4
        Minimum improvement of the mean log-likelihood per pass, in nats. A pass improves it if its
        score, plus the standard error of the difference from the best score, exceeds the best score
        by `tol`.
    track_log_partition : {False, "particles", "rts"}, default=False
        Whether to estimate log Z after every pass of `fit` and after every `partial_fit`, which
        changes no other number. "particles" reweights and moves particles from pass to pass, with
        an error bar, and checks them by full estimates. "rts" continues tempered chains (Carlson et
        al. 2016, equation 24), without an error bar.
    track_trajectory : bool, default=False
        Whether to keep checkpoints of training, as levels along which log Z is estimated and rows
        are drawn instead of inverse temperatures (Béreux et al. 2024): for models of which the
        default stays flagged. It changes no other number. Take it with the default
        ``average=True``: the last weights wander, which makes the way longer. Neighbours would swap
        at least half of their states, unless training jumps. Usually 2 to 45 are kept, each with
        the size of the weights in float32.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights, in the dtype of the training data (float32 or float64); averages with `average`.
    intercept_visible_, intercept_hidden_ : ndarray of shape (n_features,) and (n_components,)
        Biases.
    h_samples_ : ndarray of shape (n_chains, n_components)
        Hidden units of the persistent chains.
    visible_mean_ : ndarray of shape (n_features,)
        Smoothed means (sum + 1) / (n + 2) of the training data: the base from which log Z is
        computed.
    log_partition_, log_partition_std_error_, log_partition_interval_ : float, float, tuple of float
        log Z in nats, its standard error and 95 % interval; exist once log Z has been estimated.
    partition_estimator_ : PartitionEstimator
        The fitted estimator of log Z, its ``result_`` without samples; exists once log Z has been
        estimated.
    log_partition_curve_, log_partition_std_errors_ : ndarray of shape (n_passes,)
        log Z in nats after every pass and its standard error (NaN with "rts", inf where the
        particles could not follow the weights); exist if log Z was tracked. `partial_fit` continues
        the curve, one entry a call. With `early_stopping` the curve extends beyond the pass whose
        weights were kept.
    validation_scores_, validation_score_std_errors_ : ndarray of shape (n_passes,)
        Mean log-likelihood in nats of the rows held out by `early_stopping`, after every pass, and
        its error due to log Z.
    n_iter_ : int
        Passes of the last `fit`, fewer than `n_iter` where `early_stopping` has ended it.
    best_iteration_ : int
        The pass (from 1) with the highest of these scores, whose weights were kept; the last one if
        log Z is not known after any.
    log_likelihood_scatter_ : float
        Standard deviation in nats of the log-likelihood per row around its trend over the last five
        passes of `fit`, estimated from some training rows and from the chains. NaN with fewer than
        three passes. If it is large, another number of passes, or another seed, would give another
        score: see `average`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Training computes in float32 and stores the weights in the dtype of the data. The numbers depend
    neither on the number of threads nor on `n_jobs`. `fit` and `transform` take values in [0, 1],
    as scikit-learn's do; the log-likelihood is one of binary rows. NaN, in dense rows, is a value
    that is not known: scores are those of the known values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> rbm = BernoulliRBM(n_components=2, random_state=0).fit(X)
    >>> round(rbm.score(X), 2)
    -1.97
    """

    n_components: int = 256

    @classmethod
    def from_parameters(
        cls, components, intercept_visible, intercept_hidden, visible_mean=None, **parameters
    ) -> Self:
        """Return a fitted model with known weights.

        Parameters
        ----------
        components : array-like of shape (n_components, n_features)
            Weights.
        intercept_visible, intercept_hidden : array-like of shape (n_features,) and (n_components,)
            Biases.
        visible_mean : array-like of shape (n_features,) or None, default=None
            Means of the data for the base of log Z, moved to at least 0.001 from 0 and 1. None: the
            mean of short Gibbs runs from random hidden units, pulled a tenth of the way to 1/2; on
            RBMs of MNIST it served nearly as well.
        **parameters
            Parameters of the constructor, such as `partition_estimator` or `random_state`.

        Returns
        -------
        model : BernoulliRBM

        Raises
        ------
        ValueError
            If a value is not finite or a shape does not fit.
        """
        return cls._with_weights(
            components, intercept_visible, intercept_hidden, visible_mean, parameters
        )

    def pseudo_log_likelihood(self, X) -> Array:
        """Log pseudo-likelihood of every row: the sum over visible units of log p(x_i | all other
        units of x).

        Needs no log Z and is deterministic. (scikit-learn's `score_samples` estimates it from one
        random unit a row.)

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        pseudo_log_likelihood : ndarray of shape (n_samples,)
            In nats.
        """
        X = self._scorable(X)
        if self._missing(X) is not None:
            raise ValueError(
                "X has missing values (NaN), of which there is no pseudo-likelihood: take"
                " score_samples, or fill them by impute"
            )
        if not binary_rows(X).all():
            warn(
                "X holds values other than 0 and 1, for which a model of binary units has no"
                " pseudo-likelihood"
            )
        return pseudo_log_likelihood(self, X)

    # -- what the likelihood asks for
    _fitted_shapes = {
        "components_": ("n_components", "n_features"),
        "intercept_visible_": ("n_features",),
        "intercept_hidden_": ("n_components",),
        "visible_mean_": ("n_features",),
    }
    _impossible = NOT_BINARY

    def _as_data(self, units) -> NDArray:
        return units.astype(self.components_.dtype)

    # -- steps of training
    def _training_rows(self, X, reset):
        """X validated, with a warning if values lie outside [0, 1] by more than rounding."""
        rounding = 1e-6  # of values scaled to [0, 1]
        X = self._validate(X, reset=reset)
        values = X.data if sp.issparse(X) else X
        if np.any((values < -rounding) | (values > 1 + rounding)):
            warn(
                "X holds values outside [0, 1], but the visible units are binary: binarise X, of"
                " spins -1 and 1 take (X + 1) / 2"
            )
        return X

    def _report(self, trainer, iteration) -> str:
        """The line that `verbose` prints after a pass: the pseudo-likelihood of some rows."""
        # units times weights of the pseudo-likelihood that verbose prints, about 0.1 s
        most_work = 1e8
        trainer.store(self)
        X = trainer.X
        n_rows = max(10, int(most_work / (self.components_.size * X.shape[1])))
        some = evenly_spaced(X, n_rows)
        return f"pseudo-likelihood = {pseudo_log_likelihood(self, some).mean():.2f}"


def pseudo_log_likelihood(model, X) -> Array:
    """The sum over visible units of log p(x_i | all other units of x) of every row, (n,)."""
    from sklpf.models.rbm import _free_energy_kernels as kernels

    parameters = Parameters.of(model).astype(np.float64)
    by_visible = np.ascontiguousarray(parameters.components.T)
    bias = parameters.intercept_visible
    out = np.empty(X.shape[0])
    most = int(_LARGEST_EXPONENT / max(np.abs(by_visible).max(), 1e-3))
    turned = (np.exp(by_visible), np.exp(-by_visible)) if most > 0 else None
    for rows in gen_batches(X.shape[0], ROWS_AT_ONCE):
        x = X[rows].toarray() if sp.issparse(X) else X[rows]
        x = np.array(x, dtype=np.float64, order="C")
        fields = parameters.hidden_fields(x)
        if turned and np.all((x == 0) | (x == 1)):
            kernels.pseudo_log_likelihood_binary(
                *turned, bias, x, expit(-fields), expit(fields), most, out[rows]
            )
        else:
            kernels.pseudo_log_likelihood(by_visible, bias, x, fields, out[rows])
    return out

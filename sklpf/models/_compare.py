"""compare: the paired difference of two models' held-out log-likelihoods."""

from __future__ import annotations

import numpy as np

from sklpf.models._scoring import ScoreInterval, score_interval


def compare(model_a, model_b, X, level: float = 0.95) -> ScoreInterval:
    """Mean over rows of log p_a(x) - log p_b(x), in nats; positive where `model_a` is better.

    Rows are paired: what makes a row hard for both models cancels, so the interval is narrower than two scores suggest.
    The errors of the two means that come from estimated log Z are added once, in quadrature.

    Parameters
    ----------
    model_a, model_b : fitted models
        With `score_samples` and `score_interval`, such as `BernoulliRBM` or `FactorialMixture`.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Held-out rows, at least 2, the same for both.
    level : float, default=0.95

    Returns
    -------
    interval : ScoreInterval

    Raises
    ------
    TypeError
        If a model has no log-likelihood with an error.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, compare
    >>> fair = BernoulliRBM.from_parameters(np.zeros((1, 2)), np.zeros(2), np.zeros(1))
    >>> skewed = BernoulliRBM.from_parameters(np.zeros((1, 2)), np.ones(2), np.zeros(1))
    >>> X = np.array([[1, 1], [1, 0], [1, 1]])
    >>> round(compare(skewed, fair, X).mean, 4)
    0.4264
    """
    for name, model in (("model_a", model_a), ("model_b", model_b)):
        if not hasattr(model, "_scored"):
            raise TypeError(
                f"{name} must be a model of sklpf with score_samples and score_interval (a pipeline's last step, say), "
                f"got {type(model).__module__}.{type(model).__name__}"
            )
    values_a, below_a, above_a = model_a._scored(X, level)
    values_b, below_b, above_b = model_b._scored(X, level)
    return score_interval(values_a - values_b, np.hypot(below_a, above_b), np.hypot(above_a, below_b), level)

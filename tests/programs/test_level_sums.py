"""Sums of derivatives at every level give the first two derivatives of log Z by beta.

    d log Z / d beta = E U,    d^2 log Z / d beta^2 = Var U + E dU / d beta,    U = d log f / d
    beta.

Compared with finite differences of enumerated log Z, step 1e-3: right to 1e-6 here. Errors come
from independent ladders or groups: 5.0 standard errors with 39 degrees of freedom, 6.6 with 9, are
false alarms in 1.3e-5 and 1e-4 of comparisons, of which there are 12 and 12: 1.4e-3 for all of
them. Seeds are fixed.
"""

import numpy as np
import pytest
from marks import large
from scipy.stats import t as student_t

from sklpf import RTS, Exact, ParallelTempering
from sklpf.models import RBMPath
from sklpf.uncertainty import jackknife

LADDER = np.array([0.0, 0.3, 0.6, 0.9, 1.0])


def small_rbm(weights):
    rng = np.random.default_rng(0)
    shapes = (4, 6), 6, 4
    return RBMPath(*(rng.normal(size=shape) for shape in shapes), np.full(6, 0.4), LADDER, weights)


def exact_derivatives(path, beta, step=1e-3):
    paths = (path.with_ladder([0, b]) for b in (beta - step, beta, beta + step))
    below, here, above = (Exact().fit(to_beta).log_partition_ for to_beta in paths)
    return (above - below) / (2 * step), (above - 2 * here + below) / step**2


def derivatives(sums):
    """Of pooled sums (4,): E U, and Var U + E dU / dbeta."""
    n, first, second, slope = sums
    mean = first / n
    return np.array([mean, second / n - mean**2 + slope / n])


def runs(path):
    tempering = ParallelTempering(40, ladder=LADDER, adapt=False, n_sweeps=4096, random_state=0)
    tempering.fit(path)
    rts = RTS(ladder=LADDER, n_sweeps=4000, random_state=0).fit(path)
    return tempering.run_.last.level_sums.sum(axis=0), rts.run_.rounds[-1].level_sums.sum(axis=0)


@pytest.mark.parametrize("weights", ["marginal", large("joint")])
def test_level_sums_give_the_curvature_of_log_z(weights):
    path = small_rbm(weights)
    for sums, bound in zip(runs(path), (5.0, 6.6), strict=True):
        n_groups = len(sums)
        assert student_t.sf(bound, n_groups - 1) < 1e-4
        for level in (1, 2, 3):

            def of_groups(keep, sums=sums[:, level]):
                return derivatives(sums[keep].sum(axis=0))

            value, error = jackknife(of_groups, n_groups)
            exact = exact_derivatives(path, LADDER[level])
            assert np.all(error < [0.05, 0.3])
            assert np.all(np.abs(value - exact) < bound * error + 1e-5)

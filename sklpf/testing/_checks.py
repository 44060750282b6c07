"""Contract checks for a user's own path, transition or estimator. They raise AssertionError with a
sentence.
"""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable
from itertools import permutations
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from sklearn.base import clone

from sklpf._utils.random import Stream, seeded
from sklpf._utils.validation import check_count, check_scale
from sklpf.partition import PartitionEstimator, PartitionResult
from sklpf.paths import Path, check_ladder, flat_rows, map_state, n_chains
from sklpf.programs import log_ratio
from sklpf.transitions import Transition
from sklpf.uncertainty import effective_sample_size


class Problem(NamedTuple):
    """A path and the log partition function of its target.

    Attributes
    ----------
    name : str
    path : Path
    log_partition : float
        In nats, the base's declared constant included; an array (n_rows,) for a path with rows.
    std_error : float
        Standard error of log_partition where it was measured; 0.0 where it is exact.
    """

    name: str
    path: Path
    log_partition: float
    std_error: float = 0.0


def check_path(path: Path, *, random_state: int = 0, rtol: float = 1e-5) -> None:
    """Check that a path keeps the contract of `sklpf.Path`: shapes, `take`, streams, ladder and
    pickling.

    Parameters
    ----------
    path : Path
        With `sample_base`.
    random_state : int, default=0
        Seed of the check.
    rtol : float, default=1e-5
        Allowed difference of `log_f` and `log_f_ladder`, relative to ``max(1, |log f|)``.

    Raises
    ------
    TypeError
        If it is no path.
    AssertionError
        With a sentence that says what is broken.
    """
    _require_path(path, "check_path")
    check_ladder(path.ladder)
    check_count(random_state, "random_state", 0)
    check_scale(rtol, "rtol")
    stream = seeded(random_state)
    n = 61  # of fewer draws of a coin, those of two blocks may be the same by chance
    state = path.sample_base(n, stream)
    _require(
        n_chains(state) == n,
        f"sample_base({n}, stream) must return {n} chains, got {n_chains(state)}",
    )
    _require(
        _equal(state, path.sample_base(n, stream)),
        "sample_base must give the same draws for the same stream",
    )
    other = path.sample_base(n, Stream(stream.key, chain=1000))
    _require(
        not _equal(state, other),
        "sample_base must draw from its stream: another block's draws were the same",
    )
    _check_densities(path, state, rtol)
    last = np.full(n, len(path.ladder) - 1)
    copied = pickle.loads(pickle.dumps(path))
    _require(
        np.array_equal(copied.log_f(state, last), path.log_f(state, last)),
        "a pickled path must give equal log_f",
    )


def _check_densities(path, state, rtol):
    n = n_chains(state)
    n_levels = len(path.ladder)
    before = map_state(np.copy, state)
    matrix = path.log_f_ladder(state)
    _require(
        np.shape(matrix) == (n, n_levels),
        f"log_f_ladder must have shape {(n, n_levels)}, got {np.shape(matrix)}",
    )
    finite = np.isfinite(matrix)
    if path.has_boundary:
        finite[:, 1:] |= matrix[:, 1:] == -np.inf
    _require(np.all(finite), "log_f must be finite for every base draw at every level")
    levels = np.arange(n) % n_levels
    values = path.log_f(state, levels)
    _require(np.shape(values) == (n,), f"log_f must have shape {(n,)}, got {np.shape(values)}")
    expected = matrix[np.arange(n), levels]
    with np.errstate(invalid="ignore"):
        close = np.abs(values - expected) <= rtol * np.maximum(1, np.abs(expected))
    close |= values == expected  # -inf
    _require(
        np.all(close), "log_f(state, levels) must agree with log_f_ladder(state) at the levels"
    )
    index = np.array([3, 0])
    last = np.full(n, n_levels - 1)
    taken = path.log_f(path.take(state, index), last[index])
    _require(
        np.array_equal(taken, path.log_f(state, last)[index]),
        "take(state, index) must give the chains `index`",
    )
    _require(_equal(state, before), "log_f and take must not change the state that they are given")


def check_transition(
    path: Path,
    transition: Transition,
    *,
    variables: Callable[[Any], NDArray] | None = None,
    n: int = 5000,
    random_state: int = 0,
    false_alarm: float = 1e-4,
) -> None:
    """Check that a transition leaves every level of a path invariant, and that `reverse` is its
    time reversal.

    Forward chains start at exact base draws, with importance weights w, so that for every
    bounded function g

        E[w (g(T x) - g(x))] = 0  and  E[w (g(x) h(T x) - h(x) g(R x))] = 0

    at every level if the transition T leaves it invariant and R is the reversal of T. Both are
    z-tested for ranks of log f and of random projections of the first, second, third and last
    quarter of the variables, and of the auxiliary variables: at each level, and summed over the
    levels so far. A wrong move soon brings the chains to its own distribution, which it leaves
    invariant, so that little is left to see at any one level; the sums see what it has done on all
    of the ladder.

    No alarm of a run can see a move that is wrong and irreducible, since all of its chains agree.
    Run this check before you estimate anything with a move or a `gibbs` of your own, on a system as
    small as it can be made and on the next size.

    Parameters
    ----------
    path : Path
        With `sample_base`, on a ladder of 10 to 30 levels whose neighbours overlap:
        ``path.with_ladder(np.linspace(0, 1, 21))``. Few variables that depend on each other
        strongly show a mistake best, most of all a wrong reversal.
    transition : Transition
        With its parameters as they are to be tested.
    variables : callable or None, default=None
        variables(state) -> array (n, ...): what f is a density of. None takes the state, which must
        then be one array or a tuple of arrays without auxiliary variables.
    n : int, default=5000
        Number of chains.
    random_state : int, default=0
        Seed of the check.
    false_alarm : float, default=1e-4
        Probability that a correct transition fails, all tests together (Bonferroni, normal
        quantiles).

    Raises
    ------
    TypeError
        If the path lacks a capability that the transition needs, or one is not what it should be.
    ValueError
        If the ladder is none, or if the weights degenerate, so that the test would have no power:
        add levels.
    AssertionError
        If the transition is wrong, never moves, changes its input or ignores its stream.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.testing import check_transition
    >>> from sklpf.transitions import Gibbs
    >>> rbm = BernoulliRBM.from_parameters(np.ones((2, 4)), np.zeros(4), np.zeros(2))
    >>> path = rbm.path().with_ladder(np.linspace(0, 1, 21))
    >>> check_transition(path, Gibbs(), variables=lambda state: state.v)
    """
    _require_path(path, "check_transition")
    if not isinstance(transition, Transition):
        raise TypeError(
            "check_transition(path, transition) needs a Transition with its parameters, such as"
            f" Gibbs() or HMC(0.5), got {transition!r}"
        )
    transition.check(path)
    check_ladder(path.ladder)
    stream = seeded(random_state)
    n_levels = len(path.ladder)
    state = path.sample_base(n, stream)
    log_weights = np.zeros(n)
    auxiliary = transition.start(path, state, stream)
    _check_purity(path, transition, state, auxiliary, stream.at(1))
    flat = functools.partial(_flat, variables, transition)
    n_all = flat(state, auxiliary).shape[1]
    n_auxiliary = sum(array.size for array in transition.random_auxiliary(auxiliary)) // n
    n_variables = n_all - n_auxiliary, n_auxiliary
    directions = _directions(*n_variables, np.random.default_rng(random_state))
    so_far: Any = 0.0  # sums over the levels, a row for each chain
    for level in range(n_levels):
        levels = np.full(n, level)
        if level > 0:
            old = path.log_f(state, levels - 1)
            log_weights = log_weights + log_ratio(old, path.log_f(state, levels))
        moved, new_auxiliary = transition.move(
            path, state, auxiliary, levels, stream.at(2 * level + 1)
        )
        back = transition.move(
            path, state, auxiliary, levels, stream.at(2 * level + 2), reverse=True
        )
        features = _features(
            path, flat, directions, (state, auxiliary), (moved, new_auxiliary), back
        )
        here = _weights(log_weights, level)[:, np.newaxis] * _differences(*features)
        so_far = so_far + here
        z = np.abs(_z_scores(np.column_stack([here, so_far])))
        bound = norm.isf(false_alarm / (2 * n_levels * len(z)))
        _require(
            z.max() < bound,
            f"{type(transition).__name__} does not leave level {level} of {type(path).__name__} (or"
            " one below) invariant, or its reversal is wrong:"
            f" |z| = {z.max():.1f} exceeds {bound:.1f}",
        )
        state = moved
        auxiliary = new_auxiliary


def _require_path(path, who):
    """Raise TypeError if the first argument is no path, perhaps since two were swapped."""
    missing = [name for name in ("ladder", "log_f", "sample_base") if not hasattr(path, name)]
    if isinstance(path, type) or missing:
        raise TypeError(
            f"{who} takes a path first, an object with ladder, log_f and sample_base, got {path!r}"
        )


def _check_purity(path, transition, state, auxiliary, stream):
    before = map_state(np.copy, state)
    remembered = map_state(np.copy, auxiliary)
    levels = np.zeros(n_chains(state), dtype=int)
    moved, new_auxiliary = transition.move(path, state, auxiliary, levels, stream)
    _require(_equal(state, before), "move must not change the state that it is given")
    _require(
        _equal(auxiliary, remembered),
        "move must not change the auxiliary variables that it is given",
    )
    _require(not _equal(state, moved), "move changed no chain at level 0")
    again, same_auxiliary = transition.move(path, state, auxiliary, levels, stream)
    _require(
        _equal(moved, again) and _equal(new_auxiliary, same_auxiliary),
        "move must depend on its stream alone",
    )


def _weights(
    log_weights: NDArray,
    level: int,
    *,
    fewest_effective: int = 50,  # chains at a level, for which z-scores are normal
) -> NDArray:
    effective = effective_sample_size(log_weights)
    if not effective >= fewest_effective:
        raise ValueError(
            f"at level {level} the effective sample size is {effective:.0f} (at least"
            f" {fewest_effective} needed): check a ladder with more levels, as"
            " path.with_ladder(np.linspace(0, 1, 21)) or a longer one, or a smaller system"
        )
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def _flat(variables, transition, state, auxiliary) -> NDArray:
    """The variables of every chain, and its auxiliary variables, as a row of float64."""
    values = variables(state) if variables is not None else state
    values = values if isinstance(values, tuple) else (values,)
    return flat_rows((*values, *transition.random_auxiliary(auxiliary)))


def _directions(n_variables: int, n_auxiliary: int, rng) -> NDArray:
    """One random direction (a column) for each of up to four groups of successive variables, and
    for the auxiliary variables.
    """
    groups = np.array_split(np.arange(n_variables), min(4, n_variables))
    if n_auxiliary > 0:
        groups.append(n_variables + np.arange(n_auxiliary))
    directions = np.zeros((n_variables + n_auxiliary, len(groups)))
    for column, group in enumerate(groups):
        directions[group, column] = rng.normal(size=len(group))
    return directions


def _features(
    path,
    flat,
    directions,
    *chains,
    digits: int = 5,  # of values in units of their standard deviation
) -> list[NDArray]:
    """Functions of (state, auxiliary) with values in (-1, 1), (n, at most 6): pooled ranks of log f
    and of projections.
    """
    last = np.full(n_chains(chains[0][0]), len(path.ladder) - 1)
    ratios = [path.log_f(state, last) - path.log_f(state, 0 * last) for state, _ in chains]
    rows = [
        np.column_stack([ratio, flat(*chain) @ directions]) for ratio, chain in zip(ratios, chains)
    ]
    values = np.concatenate(rows)
    # Of few discrete states many are the same, though not their rounding errors, which depend on
    # where a chain comes from.
    spread = np.nanstd(np.where(np.isfinite(values), values, np.nan), axis=0)
    values = np.round(values / np.where(spread > 0, spread, 1), digits)
    ranks = 2 * rankdata(values, axis=0) / (len(values) + 1) - 1
    return np.split(ranks, len(chains))


def _differences(here, moved, back) -> NDArray:
    """Terms with mean zero if the move is right, a row for each chain."""
    differences = list((moved - here).T)
    for a, b in permutations(range(here.shape[1]), 2):
        differences.append(here[:, a] * moved[:, b] - here[:, b] * back[:, a])
    return np.column_stack(differences)


def _z_scores(terms: NDArray) -> NDArray:
    """z of the sums over the chains (rows)."""
    spread = np.sqrt(np.sum(terms**2, axis=0))
    return np.divide(terms.sum(axis=0), spread, out=np.zeros(len(spread)), where=spread > 0)


def check_partition_estimator(
    estimator: PartitionEstimator,
    problem: Problem,
    *,
    random_state: int = 0,
    false_alarm: float = 2e-4,
) -> None:
    """Check an estimator on a problem with known log Z: the number, its error bar, and reproducible
    bits.

    Parameters
    ----------
    estimator : PartitionEstimator
        The estimator to check. It is cloned, and its `random_state` set where it has one.
    problem : Problem
        Or any (name, path, log_partition). With one log Z for each row all must lie in their
        intervals.
    random_state : int, default=0
        Seed of the check.
    false_alarm : float, default=2e-4
        Probability that an honest estimator fails: the problem's log Z must lie in the result's
        interval with the rest of the probability, for an estimate 3.7 standard errors to each side
        if it has many degrees of freedom. The interval is widened by `std_error` of the problem.

    Raises
    ------
    TypeError
        If it is no estimator.
    AssertionError
        With a sentence that says what is broken.
    """
    if not isinstance(estimator, PartitionEstimator):
        raise TypeError(
            f"check_partition_estimator takes an estimator first, then a problem, got {estimator!r}"
        )
    problem_name, path, truth, truth_error = (*problem, 0.0)[:4]
    name = f"{type(estimator).__name__} on {problem_name}"
    fitted = seeded_clone(estimator, random_state, n_jobs=1).fit(path)
    result = fitted.result_
    _require(isinstance(result, PartitionResult), f"{name}: result_ must be a PartitionResult")
    _require(fitted.converged_ == result.converged, f"{name}: converged_ must be result_.converged")
    _require(result.converged, f"{name} did not converge: {'; '.join(result.reasons)}")
    level = 1 - false_alarm
    inside = holds(result.interval(level), truth, truth_error, level)
    row = int(inside.argmin())
    error = np.ravel(fitted.log_partition_ - truth)[row]
    message = f"{name}: off by {error:.3g}, outside of its {result.statement}'s interval"
    _require(inside.all(), f"{message} of {100 * level:g} %")
    again = seeded_clone(fitted, random_state, n_jobs=2).fit(path).result_
    _require_same_bits(again, result, f"{name}: the same random_state on two jobs")


def check_parallel(estimator: PartitionEstimator, path: Path, *, random_state: int = 0) -> None:
    """Check that a run by joblib's current back end gives the bits of a run by a single job.

    Set the back end and its number of jobs around the call, ``with joblib.parallel_config(...)``,
    and take an estimator with few sweeps: it runs twice.

    Parameters
    ----------
    estimator : PartitionEstimator
        Its clones are run, with its own `n_jobs` by the back end.
    path : Path or fitted model
        What it is fitted on.
    random_state : int, default=0
        Seed of both runs.

    Raises
    ------
    TypeError
        If it is no estimator.
    AssertionError
        If log Z, its error, its curve over the levels, or a draw differ.

    Examples
    --------
    >>> import joblib
    >>> from sklpf import AIS, BernoulliRBM
    >>> from sklpf.testing import check_parallel
    >>> rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    >>> with joblib.parallel_config(backend="threading", n_jobs=2):
    ...     check_parallel(AIS(n_temperatures=50), rbm)
    """
    if not isinstance(estimator, PartitionEstimator):
        raise TypeError(
            f"check_parallel takes an estimator first, then a path, got {estimator!r:.80}"
        )
    found = seeded_clone(estimator, random_state).fit(path).result_
    with joblib.parallel_config(backend="sequential"):
        alone = seeded_clone(estimator, random_state, n_jobs=1).fit(path).result_
    _require_same_bits(found, alone, f"{type(estimator).__name__}: this back end")


def _require_same_bits(found: PartitionResult, alone: PartitionResult, what: str) -> None:
    for field in ("log_partition", "std_error", "log_partition_curve"):
        # None is NaN, and so is the standard error of a bound.
        first, second = (np.asarray(getattr(of, field), dtype=float) for of in (found, alone))
        same = np.array_equal(first, second, equal_nan=True)
        _require(same, f"{what} must give the same bits as one job, and {field} differs")
    if alone.draws is not None:
        same = found.draws is not None and _equal(found.draws, alone.draws)
        _require(same, f"{what} must give the same bits as one job, and draws differ")


def seeded_clone(
    estimator: PartitionEstimator, random_state: int, n_jobs: int | None = None
) -> Any:
    """Return a clone with all of its seeds, and its number of jobs, set."""
    estimator = clone(estimator)
    known = estimator.get_params()
    chosen = {k: random_state for k in known if k.endswith("random_state")}
    if n_jobs is not None and "n_jobs" in known:
        chosen["n_jobs"] = n_jobs
    return estimator.set_params(**chosen)


def holds(
    interval: Any,
    truth: Any,
    truth_error: float,
    level: float,
    *,
    rounding: float = 1e-9,  # of log Z
) -> NDArray[np.bool_]:
    """Return whether intervals, widened by the error of the truth and by rounding, hold it."""
    low, high = interval
    slack = truth_error * norm.ppf(0.5 + level / 2) + rounding * np.maximum(1, np.abs(truth))
    return np.atleast_1d((low - slack <= truth) & (truth <= high + slack))


def _equal(first, second) -> bool:
    pairs = zip(first, second) if isinstance(first, tuple) else [(first, second)]
    return all(np.array_equal(a, b) for a, b in pairs)


def _require(condition, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def find_shared_data(name: str) -> FilePath | None:
    """Return the path of a file of the reference data, or None where it is absent.

    Looked up in the folder that the environment variable ``SKLPF_DATA`` names and, in a checkout of
    the repository, in ``../shared/data`` beside it.

    Parameters
    ----------
    name : str
        Relative to the folder, such as "rbm/mnist_h10.npz".

    Returns
    -------
    pathlib.Path or None
    """
    return next((folder / name for folder in _folders() if (folder / name).is_file()), None)


def _folders() -> list[FilePath]:
    named = os.environ.get("SKLPF_DATA")
    folders = [FilePath(named)] if named else []
    # The working directory is the checkout where the package is installed elsewhere.
    for root in (FilePath(__file__).resolve().parents[2], FilePath.cwd()):
        if (root / "pyproject.toml").is_file():
            folders.append(root.parent / "shared" / "data")
    return folders

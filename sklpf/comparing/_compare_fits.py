"""compare_fits: procedures compared by many fits of each, on the same splits with the same seeds.

Fits run in parallel, each a task of its own that depends on its seed and split alone; the parent
keeps what they say as they finish, so that an interrupted comparison loses no finished fit.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples

from sklpf._utils import __version__
from sklpf._utils import context as _context
from sklpf._utils.numbers import Array
from sklpf._utils.parallel import (
    Checkpoint,
    fingerprint,
    one_blas_thread,
    parallel_map,
    running,
)
from sklpf._utils.random import draw_seed, seeded
from sklpf._utils.sklearn import safe_indexing
from sklpf._utils.validation import check_count, check_level
from sklpf.comparing._compare import (
    _model_and_rows,
    check_per,
    check_same_rows,
    rows_digest,
    scored_per,
)
from sklpf.comparing._fit_comparison import (
    FitComparison,
    Fits,
    HeldOutRows,
    compare_held_out,
)
from sklpf.models.decoder import DecoderModel
from sklpf.partition import EXECUTION_PARAMETERS
from sklpf.scoring import OtherDensity, check_same_kind, is_density, is_model, last_step

_QUANTILE = float(norm.ppf(0.975))


def compare_fits(
    candidates: Mapping[str, Any],
    X,
    y=None,
    *,
    groups=None,
    cv: Any = 5,
    n_seeds: int = 1,
    level: float = 0.95,
    per: str | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> FitComparison:
    """Compare procedures, not one fit of each, by their expected held-out log-likelihood per row.

    Every candidate is fitted to the training part of every split with several training seeds, and
    scored on the rows held out. Fits with the same split and seed make pairs. What is estimated is
    the expected difference between a fit of one and a fit of the other, for a new training set of
    the splits' size, new seeds and new rows. `compare` speaks of fitted models instead, whose order
    may change with the seed.

    Parameters
    ----------
    candidates : dict of str to estimator or pipeline
        At least 2, by name, the simplest first. They are models of sklpf, densities of scikit-learn
        (as in `compare`), or pipelines that end in one, and are cloned.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or list of n_samples
        Independent rows, or whatever the pipelines take.
    y : array-like of shape (n_samples,) or None, default=None
        Passed to `fit` and to the splitter.
    groups : array-like of shape (n_samples,) or None, default=None
        Group of every row, such as the person that it comes from: rows of one may depend on each
        other. Passed to the splitter; with an int as `cv` whole groups are held out. The error that
        comes from rows is then that between groups.
    cv : int, splitter or iterable of (train, test), default=5
        Splits as in scikit-learn; an int is the number of folds of shuffled rows. At least 2
        splits, all different, each with at least 2 rows held out (2 groups, where there are
        groups), none of which it trains on. With more folds the error is known better, and
        the difference is that at a larger training size.
    n_seeds : int, default=1
        Training seeds for every split, the same for all candidates. More seeds, or more splits,
        reduce the variance that comes from the randomness of training, in proportion to their time.
    level : float, default=0.95
        Probability with which each interval covers.
    per : {"document", "word"} or None, default=None
        For topic models only, as in `compare`. None is "document".
    random_state : int, RandomState or None, default=None
        Seed of the folds and of all fits: every parameter `random_state` of a clone, also of the
        steps of a pipeline, is set to a number that depends on this seed, the split and the
        training seed alone.
    n_jobs : int or None, default=None
        Number of fits that run in parallel, in threads unless ``joblib.parallel_config`` says
        otherwise. Never changes a number.
    checkpoint : str, path-like or None, default=None
        Directory that keeps finished fits. An interrupted comparison continues from there, with the
        same bits. Needs an int as `random_state`.
    verbose : int, default=0
        Whether to report a line after every fit, by the logger "sklpf" at level INFO, printed where
        logging would not show it.

    Returns
    -------
    comparison : FitComparison
        Prints as a table. ``difference(a, b)`` has the interval for any two, with separate parts
        from rows, from fits and from log Z; ``best`` and ``chosen`` are names; ``missing`` lists
        fits that raised an error or can't be trusted.

    Raises
    ------
    TypeError
        If a candidate has no log-likelihood with an error.
    ValueError
        If a parameter can't be used, if pipelines arrive at different rows, if candidates are of
        different kinds (as in `compare`), or if no fit at all can be scored.

    Notes
    -----
    The interval is the wider one of two. One adds the variances of held-out rows, training seeds
    and log Z, each estimated from repeats within splits. The other is that of the corrected
    resampled t-test (Nadeau & Bengio 2003), from the spread between splits: it includes the effect
    of training sets, and corrects for the rows that they share. Its coverage was measured: see the
    benchmarks. The interval is too narrow for procedures that stay far from the likelihood's
    maximum, such as an estimate shrunk by half, which depend more strongly on their training set.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, compare_fits
    >>> X = np.repeat([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]], 40, axis=0)
    >>> passes = {f"{n} passes": BernoulliRBM(2, n_iter=n) for n in (2, 50)}
    >>> comparison = compare_fits(passes, X, random_state=0)
    >>> comparison.best, comparison.chosen
    ('50 passes', '50 passes')
    >>> comparison.difference("50 passes", "2 passes").combined[0] > 0
    True
    """
    check_level(level)
    named = _check_candidates(candidates)
    check_count(n_seeds, "n_seeds")
    if not isinstance(verbose, Integral):
        raise TypeError(f"verbose must be a bool or an int, got {verbose!r:.80}")
    if checkpoint is not None and not isinstance(random_state, Integral):
        raise ValueError(
            "checkpoint needs random_state to be an int, else an interrupted comparison can't be"
            " resumed"
        )
    check_same_kind(named)
    for name, estimator in named.items():
        check_per(name, last_step(estimator), per)
    X, y, groups = _check_rows(X, y, groups)
    seed = _seed(random_state)
    splits = _check_splits(cv, X, y, groups, seed)

    tasks = [
        FitTask(
            name,
            estimator,
            split,
            number,
            seeded(seed).of("fit", split, number).seed >> 1,
            train,
            test,
            per,
        )
        for split, (train, test) in enumerate(splits)
        for number in range(n_seeds)
        for name, estimator in named.items()
    ]
    with running():
        kept = None if checkpoint is None else _open_checkpoint(checkpoint, tasks, X, y)
        outcomes = _run(tasks, X, y, kept, n_jobs, verbose)

    missing = [
        f"{task.label}: {outcome.reason}"
        for task, outcome in zip(tasks, outcomes)
        if outcome.reason
    ]
    if len(missing) == len(tasks):
        raise ValueError(f"no fit of any candidate can be scored; {missing[0]}")
    unit = "word" if per == "word" else getattr(last_step(tasks[0].estimator), "_unit", "row")
    return compare_held_out(_held_out(named, splits, groups, outcomes, unit), missing, level)


class FitTask(NamedTuple):
    """One fit of one candidate."""

    name: str
    estimator: Any
    split: int
    number: int  # of the training seed
    seed: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    per: str | None

    @property
    def label(self) -> str:
        return f"{self.name}, split {self.split}, seed {self.number}"

    def clone(self) -> Any:
        """Return a clone of the candidate with the task's seed."""
        return _clone_with(self.estimator, ("random_state",), self.seed)


class Outcome(NamedTuple):
    """Held-out log-likelihoods of one fit, NaN where it failed; kept in checkpoints."""

    values: Array  # (n_test,)
    partition: float  # standard error of log Z, nats
    bias: float  # how far log Z may be off to one side
    baseline: Array  # (n_test,) log-likelihoods by the baseline, NaN without one
    rows: str  # digest of what was scored
    reason: str  # why the values are missing, else empty
    baseline_name: str


# -- running
def fit_and_score(X, y, task: FitTask) -> Outcome:
    """Fit a clone with the task's seed and score the rows held out."""
    model = task.clone()
    digest = ""
    try:
        model.fit(safe_indexing(X, task.train), None if y is None else safe_indexing(y, task.train))
        model, rows = _model_and_rows(task.name, model, safe_indexing(X, task.test))
        digest = rows_digest(rows)
        if not isinstance(model, OtherDensity):
            model.set_params(on_nonconvergence="raise")
        scored = scored_per(model, rows, 0.95, task.per)
        reasons = scored.reasons
        if not reasons and not np.all(np.isfinite(scored.values)):
            reasons = ("some rows have no finite log-likelihood",)
    except Exception as error:  # a fit that fails is missing, and the others go on
        reasons = (str(error) or type(error).__name__,)
    missing = np.full(len(task.test), np.nan)
    if reasons:
        return Outcome(missing, 0.0, 0.0, missing, digest, "; ".join(reasons), "")
    below = float(scored.below)
    above = float(scored.above)
    # An interval that reaches further to one side says so of a bias, which all rows and fits share.
    against = scored.baseline
    return Outcome(
        scored.values,
        partition=min(below, above) / _QUANTILE,
        bias=abs(above - below),
        rows=digest,
        reason="",
        baseline=missing if against is None else against.values,
        baseline_name="" if against is None else against.name,
    )


def _run(tasks, X, y, kept: Checkpoint | None, n_jobs, verbose) -> list[Outcome]:
    """The outcomes of all tasks; finished ones are kept at once, and loaded where they were."""
    outcomes: list[Outcome | None] = [None if kept is None else _load(kept, task) for task in tasks]
    todo = [position for position, outcome in enumerate(outcomes) if outcome is None]
    first_rows: dict[tuple[int, int], tuple[str, str]] = {}
    for task, outcome in zip(tasks, outcomes):
        if outcome is not None:
            _check_rows_of_fits(first_rows, task, outcome)
    n_done = len(tasks) - len(todo)
    began = _context.clock()
    if verbose and n_done:
        _context.say(f"[compare_fits] {n_done} of {len(tasks)} fits are there from an earlier run")

    def arrived(place: int, outcome: Outcome) -> None:
        task = tasks[todo[place]]
        outcomes[todo[place]] = outcome
        if kept is not None:
            kept.save(_file(task), 1, outcome)
        _check_rows_of_fits(first_rows, task, outcome)
        if verbose:
            n_new = sum(outcomes[position] is not None for position in todo)
            text = f"{outcome.values.mean():.2f} nats"
            if outcome.reason:
                text = f"missing: {outcome.reason}"
            if n_new < len(todo):
                left = (_context.clock() - began) * (len(todo) / n_new - 1)
                text = f"{text}, about {_context.duration_text(left)} left"
            number = f"{n_done + n_new} of {len(tasks)} fits"
            _context.say(f"[compare_fits] {number} ({task.label}): {text}")

    parallel_map(
        functools.partial(fit_and_score, X, y),
        [tasks[i] for i in todo],
        n_jobs=n_jobs,
        on_result=arrived,
    )
    return outcomes  # type: ignore[return-value]


def _check_rows_of_fits(
    first: dict[tuple[int, int], tuple[str, str]], task: FitTask, outcome: Outcome
) -> None:
    """Raise ValueError if a candidate scores other rows than the first with this split and seed."""
    if not outcome.rows:
        return
    name, rows = first.setdefault((task.split, task.number), (task.name, outcome.rows))
    check_same_rows(name, task.name, rows == outcome.rows)


def _held_out(named, splits, groups, outcomes, unit: str) -> HeldOutRows:
    if groups is None:
        groups = np.arange(1 + max(test.max() for _, test in splits))
    fits: dict[str, list[Fits]] = {name: [] for name in named}
    n_fits = len(outcomes) // len(splits)
    for split, (_, test) in enumerate(splits):
        of_split = outcomes[split * n_fits : (split + 1) * n_fits]
        for place, name in enumerate(named):  # one after the other, for each seed
            own = of_split[place :: len(named)]
            seeds = [outcome[:4] for outcome in own]
            fits[name].append(Fits(groups[test], *map(np.array, zip(*seeds))))
    n_train = min(len(train) for train, _ in splits)
    test_over_train = float(np.mean([len(test) / len(train) for train, test in splits]))
    names = {
        name: max(outcome.baseline_name for outcome in outcomes[place :: len(named)])
        for place, name in enumerate(named)
    }
    return HeldOutRows(n_train, test_over_train, fits, unit, names)


# -- checkpoints
def _open_checkpoint(directory, tasks: list[FitTask], X, y) -> Checkpoint:
    """Files are named by all that the numbers depend on."""
    import numba

    versions = (__version__, np.__version__, numba.__version__, sklearn.__version__)
    candidates = {
        task.name: _clone_with(task.estimator, ("random_state", *EXECUTION_PARAMETERS))
        for task in tasks
    }
    plan = [(task.name, task.seed, task.train, task.test, task.per) for task in tasks]
    first = {task.name: task for task in reversed(tasks)}
    probes = {name: _probe(task, X, y) for name, task in first.items()}
    return Checkpoint(directory, fingerprint(candidates, probes, plan, X, y, versions))


def _probe(
    task: FitTask,
    X,
    y,
    *,
    n_probed: int = 1000,  # rows that tell functions apart
) -> str:
    """A digest of what a candidate's functions make of rows: a pickle holds their names alone."""
    reason = ""
    for most in (n_probed, len(task.train)):  # some steps need more rows
        train = task.train[:most]
        labels = None if y is None else safe_indexing(y, train)
        try:
            with one_blas_thread():
                return _made_of(task.clone(), safe_indexing(X, train), labels)
        except Exception as error:  # the fits will fail alike, and say why
            reason = str(error)
    return reason


def _made_of(estimator, rows, y) -> str:
    """A digest of what the steps before a model, fitted to rows, make of these, and of what its
    decoder says of them.
    """
    while isinstance(estimator, Pipeline):
        rows = estimator[:-1].fit_transform(rows, y) if len(estimator) > 1 else rows
        estimator = estimator[-1]
    if isinstance(estimator, DecoderModel):
        return fingerprint(rows_digest(rows), estimator.fit(rows).path(rows).probe())
    return rows_digest(rows)


def _file(task: FitTask) -> str:
    return f"{task.split}-{task.number}-{fingerprint(task.name)}"


def _load(kept: Checkpoint, task: FitTask) -> Outcome | None:
    nothing = Outcome(np.empty(0), 0.0, 0.0, np.empty(0), "", "", "")
    n_done, outcome = kept.load(_file(task), nothing)
    if not n_done:
        return None
    values, partition, bias, baseline, *texts = outcome
    return Outcome(values, float(partition), float(bias), baseline, *map(str, texts))


def _clone_with(estimator, names: tuple[str, ...], value: int | None = None):
    """A clone in which parameters of these names, also of what it holds, have this value."""
    model = clone(estimator)
    found = [name for name in model.get_params() if name.split("__")[-1] in names]
    return model.set_params(**dict.fromkeys(found, value))


# -- what is given
def _check_candidates(candidates) -> dict[str, Any]:
    if hasattr(candidates, "cv_results_"):
        raise TypeError(
            "candidates must be a dict of estimators by name, and not a finished search: fit its"
            " short list again, each as clone(search.estimator).set_params(**params), on X"
        )
    if not isinstance(candidates, Mapping):
        raise TypeError(
            f"candidates must be a dict of estimators by name, got {type(candidates).__name__}"
        )
    if len(candidates) < 2:
        raise ValueError(
            f"candidates must hold at least 2 procedures to be compared, got {len(candidates)}"
        )
    named = {str(name): estimator for name, estimator in candidates.items()}
    if len(named) < len(candidates):
        raise ValueError(f"candidates must have different names, got {list(candidates)}")
    for name, estimator in named.items():
        model = last_step(estimator)
        if isinstance(model, type) or not (is_model(model) or is_density(estimator)):
            got = f"a {type(model).__name__}"
            if isinstance(model, type):
                got = f"the class {model.__name__}: write {model.__name__}()"
            raise TypeError(
                "candidates must be models of sklpf, densities of scikit-learn such as"
                f" GaussianMixture, or pipelines that end in one: {name!r} is {got}"
            )
    return named


def _check_rows(X, y, groups):
    """X, y, and the group of every row as an integer (n_samples,), or None."""
    if X is None:
        raise ValueError(
            "X must be given: the rows that the candidates are fitted to and scored on"
        )
    try:
        if isinstance(X, str):
            raise TypeError("got text")
        X, y, groups = indexable(X, y, groups)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"X, and y and groups where they are given, must hold one entry for each row: {error}"
        ) from error
    if groups is not None:
        _, groups = np.unique(np.asarray(groups), return_inverse=True)
    return X, y, groups


def _seed(random_state) -> int:
    is_integer = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if is_integer and random_state >= 0:
        return int(random_state)
    return draw_seed(random_state)


def _check_splits(cv, X, y, groups, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(
                f"cv must be at least 2 folds, got {cv}: the spread between splits is part of the"
                " error"
            )
        folds = KFold if groups is None else GroupKFold
        cv = folds(int(cv), shuffle=True, random_state=seed % 2**32)
    n_rows = _num_samples(X)
    try:
        splits = [
            (_positions(train, n_rows), _positions(test, n_rows))
            for train, test in check_cv(cv).split(X, y, groups)
        ]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"cv must be a number of folds, a splitter, or pairs (train, test): {error}"
        ) from error
    if len(splits) < 2:
        raise ValueError(
            f"cv must give at least 2 splits, got {len(splits)}: take cv=5, or"
            " ShuffleSplit(n_splits=5)"
        )
    seen: dict[tuple[bytes, bytes], int] = {}
    for place, (train, test) in enumerate(splits):
        _check_held_out(place, train, test, groups)
        first = seen.setdefault((np.sort(train).tobytes(), np.sort(test).tobytes()), place)
        if first < place:
            raise ValueError(
                f"cv must give different splits, and split {place} is split {first} again: raise"
                " n_seeds to fit on the same split with other seeds"
            )
    return splits


def _check_held_out(place: int, train, test, groups) -> None:
    """Raise ValueError if a split says nothing of new rows, or nothing of the error."""
    n_held_out = len(test if groups is None else np.unique(groups[test]))
    if n_held_out < 2:
        unit = "rows" if groups is None else "groups"
        raise ValueError(
            f"cv must hold out at least 2 {unit} in every split, got {n_held_out}: take fewer folds"
        )
    if len(np.unique(test)) < len(test):
        raise ValueError(f"cv must hold out a row once, and split {place} holds one out twice")
    n_shared = len(np.intersect1d(train, test))
    if n_shared:
        raise ValueError(
            f"cv must hold out rows that are not trained on, and split {place} has {n_shared} rows"
            " in both parts"
        )


def _positions(rows, n_rows: int) -> NDArray[np.intp]:
    """Positions of the rows that a split gives as positions or as a mask."""
    rows = np.asarray(rows)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iub"):
        raise ValueError(
            f"rows must be given by integers or by a mask of bool, got {rows.dtype} of the shape"
            f" {rows.shape}"
        )
    return np.arange(n_rows)[rows if len(rows) else rows.astype(np.intp)]

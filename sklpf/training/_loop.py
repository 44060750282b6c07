"""The loop over passes that models train with: its reports, its callbacks, and when it ends."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from sklpf._utils.context import clock, passes
from sklpf._utils.numbers import Array32
from sklpf._utils.random import seeded
from sklpf._utils.tables import duration_text
from sklpf._utils.warnings import warn
from sklpf.paths import Path, has
from sklpf.training._particles import Estimate, Particles, TemperedChains
from sklpf.uncertainty import jackknife, log_mean_exp, t_bound

_SILENCE = 1.0  # seconds between two lines, but for the last
_LOWERED = 0.3  # what the learning rate is multiplied by
_FEWEST_TEMPERATURES = 100
_PATH_COST = 100  # of a step's path and its states, in moves of a particle


class RunningAverage:
    """Weight of each update in the average of the parameters (Polyak & Juditsky 1992).

    A trainer moves the average by a share of its distance to the parameters after each update. With
    `average=True` the k-th update counts in proportion to k ** 2 (polynomial decay, Shamir & Zhang
    2013), so that the average forgets where training began, and may end at any time. With a number
    of rows all updates after these count alike.

    Parameters
    ----------
    average : bool or int
        As of the model.
    n_rows : int, default=0
        Rows that training has seen.
    n_averaged : int, default=0
        Updates in the average.

    """

    def __init__(self, average: bool | int, n_rows: int = 0, n_averaged: int = 0):
        power = 2  # of an update's number that its share of the average is proportional to
        self.first_row = int(average)
        self.power = power if average is True else 0
        self.n_rows = n_rows
        self.n_averaged = n_averaged if average else 0

    def shares(self, batches: NDArray[np.integer]) -> Array32:
        """Shares of the next updates, which see batches of as many rows; 0 where none is averaged
        yet.

        Parameters
        ----------
        batches : ndarray of shape (n,)
            Rows of each batch.

        Returns
        -------
        ndarray of shape (n,)
            In float32.
        """
        n_rows = self.n_rows + np.cumsum(batches)
        averaged = (self.first_row > 0) & (n_rows >= self.first_row)
        number = self.n_averaged + np.cumsum(averaged)
        self.n_rows = int(n_rows[-1])
        self.n_averaged = int(number[-1])
        shares = (self.power + 1) / (self.power + np.maximum(number, 1))
        return np.where(averaged, shares, 0).astype(np.float32)


class Trainer(Protocol):
    """Whatever makes passes over the data."""

    def run(self) -> None:
        """Make one pass."""


def train(
    trainer: Trainer,
    n_passes: int,
    *,
    report: Callable[[Any, int], str] | None = None,
    callbacks: Iterable[Callable[[Any, int], bool | None]] = (),
    store: Callable[[Any], Any] | None = None,
) -> tuple[int, bool]:
    """Make passes over the data until one of the callbacks ends it.

    Within `fit` of a model every pass is a task of the callbacks of scikit-learn, which may end
    training as well.

    Parameters
    ----------
    trainer : object
        Its ``run()`` makes a pass.
    n_passes : int
        Most passes.
    report : callable or None, default=None
        Says in words what the trainer has arrived at after the pass (from 1). It is only called
        within `fit` of a model with `verbose`, after the first and the last pass and at most once a
        second between them. The line also says how long the pass took and how long all others may
        take.
    callbacks : iterable of callable, default=()
        All called with the trainer and the pass, after it and before the line. One that returns
        true ends training.
    store : callable or None, default=None
        ``store(model)`` writes to a model what the trainer has arrived at: callbacks of
        scikit-learn that want a fitted model after a pass are given a copy that was written to.

    Returns
    -------
    n_passes : int
        Passes made.
    ended : bool
        Whether one of `callbacks` ended it.
    """
    reported_at = -math.inf
    with passes(n_passes) as progress:
        for iteration in range(1, n_passes + 1):
            began = clock()
            if progress is not None:
                progress.begin("pass", 0)
            trainer.run()
            ended = stop = False
            for callback in callbacks:
                ended = bool(callback(trainer, iteration)) or ended
            if progress is not None:
                is_last = ended or iteration == n_passes
                if progress.verbose and (is_last or clock() - reported_at > _SILENCE):
                    reported_at = clock()
                    words = report(trainer, iteration) if report else None
                    progress.say(_line(iteration, n_passes, words, clock() - began))
                stop = progress.end(store)
            if ended or stop:
                return iteration, ended
    return n_passes, False


def check_not_diverged(*parameters: Any) -> None:
    """Check that training has not diverged.

    Parameters
    ----------
    *parameters : array-like or sparse matrix
        Learned parameters.

    Raises
    ------
    ValueError
        If a parameter is not finite.
    """
    numbers = (part.data if sp.issparse(part) else part for part in parameters)
    if not all(np.all(np.isfinite(part)) for part in numbers):
        raise ValueError(
            "training diverged: the parameters are no longer finite; lower learning_rate if there"
            " is one, or rescale X"
        )


def _line(iteration, n_passes, words, seconds) -> str:
    """A pass, what it has arrived at, its time, and how long all that are left may take."""
    parts = [f"pass {iteration} of {n_passes}", words, duration_text(seconds)]
    if iteration < n_passes:
        parts.append(f"at most {duration_text(seconds * (n_passes - iteration))} left")
    return ", ".join(part for part in parts if part)


def has_settled(losses: Sequence[float], tol: float, n_passes: int) -> bool:
    """True if the mean of the last losses is not below that of as many before by `tol`."""
    if len(losses) < 2 * n_passes:
        return False
    before, after = np.reshape(losses[-2 * n_passes :], (2, n_passes)).mean(axis=1)
    return bool(before - after <= tol)


def warn_unsettled(n_passes: int, what: str = "training", remedy: str = "max_iter or tol") -> None:
    """Warn that what is learned still changes after so many passes, and say what to raise."""
    warn(f"{what} has not settled after {n_passes} passes: raise {remedy}", ConvergenceWarning)


class Settled:
    """A callback of `train` that keeps the loss after every pass, lowers the learning rate, and
    ends training.

    A trainer with a `learning_rate` goes on with a lower one when its loss has settled, and ends
    when it has with the third too.

    Parameters
    ----------
    loss : callable
        Loss, a function of the trainer's parameters (P,).
    tol : float
        In the unit of the loss: it has settled when its mean is not lower by more than that.
    n_passes : int
        Number of passes that a mean is taken over.

    Examples
    --------
    >>> from sklpf.training import Settled, train
    >>> class Halving:
    ...     parameters = 1.0
    ...
    ...     def run(self):
    ...         self.parameters /= 2
    >>> train(Halving(), 100, callbacks=[Settled(float, tol=0.01, n_passes=2)])[1]
    True
    """

    def __init__(self, loss: Callable[[Any], float], tol: float, n_passes: int):
        self.loss = loss
        self.tol = tol
        self.n_passes = n_passes
        self.curve: list[float] = []
        self.n_rates = 1
        self.began = 0

    def __call__(self, trainer: Any, iteration: int) -> bool:
        fewest_rates = 3  # that are tried before training ends
        self.curve.append(self.loss(trainer.parameters))
        if not has_settled(self.curve[self.began :], self.tol, self.n_passes):
            return False
        if not hasattr(trainer, "learning_rate") or self.n_rates == fewest_rates:
            return True
        trainer.learning_rate *= _LOWERED
        self.n_rates += 1
        self.began = len(self.curve)
        return False


class Lowered:
    """A callback of `train` that lowers the learning rate after a half and three quarters of the
    passes, without a loss, and never ends training.

    Parameters
    ----------
    n_passes : int
        All passes that training makes.
    """

    def __init__(self, n_passes: int):
        self.at = {n_passes // 2, 3 * n_passes // 4}

    def __call__(self, trainer: Trainer, iteration: int) -> bool:
        if iteration in self.at and hasattr(trainer, "learning_rate"):
            trainer.learning_rate *= _LOWERED
        return False


class Anchor(NamedTuple):
    """A full estimate of log Z after a pass (from 1), beside what had been tracked until then (None
    at first).
    """

    iteration: int
    full: Estimate
    tracked: Estimate | None

    @property
    def disagrees(self) -> bool:
        """True if the two differ by more than chance, which happens in 0.1 % of the cases."""
        if self.tracked is None:
            return False
        error = np.hypot(self.full.std_error, self.tracked.std_error)
        apart = abs(self.full.log_partition - self.tracked.log_partition)
        return bool(apart > t_bound(len(self.full.groups)) * error)


class LogPartitionTracker:
    """A callback of `train` that follows log Z of a model from pass to pass.

    Particles that live at the model are taken along the straight line from its parameters after one
    pass to those after the next, in as many steps as their weights ask for. That is far shorter
    than the way that training takes, whose steps to and fro would add up. A full estimate from the
    base is made after passes 1, 2, 4, 8, … and whenever the standard error by all weights of the
    particles exceeds `max_std_error`. It takes the place of the particles if its own such error is
    smaller, or if the two differ by more than chance. The standard error that is reported comes
    from ten groups of particles, and does not fall between full estimates.

    Parameters
    ----------
    path_of : callable
        Gives the path of the model that a trainer has arrived at. One with a method
        ``between(other, share)``, the path of a model whose parameters are that share of the way to
        another's, is followed in several steps.
    seed : int
        Seed of the particles and the full estimates.
    method : {"particles", "rts"}, default="particles"
        "rts" carries tempered chains along (Carlson et al. 2016, equation 24), without an error bar
        and without further full estimates.
    max_std_error : float, default=0.05
        In nats.
    n_moves : float, default=inf
        Moves of a particle that a pass may cost on average. What is left over is spent on full
        estimates; the first one is always made.

    Attributes
    ----------
    estimates : list of Estimate
        After every pass.
    anchors : list of Anchor
    path : Path
        Path of the model after the last pass.

    Examples
    --------
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.training import LogPartitionTracker
    >>> rbm = BernoulliRBM.from_parameters([[1.0, -1.0]], [0.0, 0.0], [0.0])
    >>> tracker = LogPartitionTracker(lambda trainer: trainer.path(), seed=0)
    >>> _ = tracker(rbm, 1)  # after a pass
    >>> len(tracker.estimates)
    1
    """

    def __init__(
        self,
        path_of: Callable[[Any], Any],
        seed: int,
        method: str = "particles",
        max_std_error: float = 0.05,
        n_moves: float = np.inf,
    ):
        self.path_of = path_of
        self.seed = seed
        self.method = method
        self.max_std_error = max_std_error
        self.n_moves = n_moves
        self.estimates: list[Estimate] = []
        self.anchors: list[Anchor] = []
        self.n_temperatures = _FEWEST_TEMPERATURES
        self.allowed = 0.0
        self.spent = 0
        self.next_anchor = 1

    def __call__(self, trainer: Trainer, iteration: int) -> bool:
        """Estimate log Z after a pass; never ends training."""
        self.update(self.path_of(trainer))
        return False

    def update(self, path: Path) -> None:
        """Follow the model and estimate log Z there.

        Parameters
        ----------
        path : Path
            Path of the current model.
        """
        self.path = path
        estimate = None
        self.allowed += self.n_moves
        if self.estimates:
            self._follow()
            estimate = self.chains.estimate()
            # errors add up: a lower one is chance
            largest = max(estimate.std_error, self.estimates[-1].std_error)
            estimate = estimate._replace(std_error=largest)
        if estimate is None or self._anchor_is_due(estimate):
            estimate = self._anchor(estimate)
        self.estimates.append(estimate)

    def after(self, other: LogPartitionTracker) -> LogPartitionTracker:
        """Return one that goes on from where another stands, with this one's `path_of` and
        `n_moves`.

        Parameters
        ----------
        other : LogPartitionTracker
            It stays as it is.

        Returns
        -------
        LogPartitionTracker
        """
        tracker = copy.copy(other)
        tracker.path_of = self.path_of
        tracker.n_moves = self.n_moves
        tracker.estimates = list(other.estimates)
        tracker.anchors = list(other.anchors)
        tracker.chains = copy.deepcopy(other.chains)  # whose arrays moves write to
        return tracker

    def _follow(self) -> None:
        start = self.chains.path
        self.path = self.path.with_ladder(start.ladder)
        n_steps = self._n_steps()
        for step in range(1, n_steps):
            self.chains.update(start.between(self.path, step / n_steps))
        self.chains.update(self.path)
        self.spent += n_steps * (self.chains.n_chains + _PATH_COST)

    def _n_steps(self) -> int:
        # nats: of log f_new - log f_old over particles, that one step should have
        spread_of_step = 0.03
        most_steps = 100
        steps_of_pass = 25  # between two passes of chains that can't tell how many they need
        if not has(self.path, "between"):
            return 1
        if self.method == "rts":
            return steps_of_pass
        wanted = math.ceil(self.chains.spread(self.path) / spread_of_step)
        affordable = 0.7 * self.n_moves / (self.chains.n_chains + _PATH_COST)
        return int(max(1, min(wanted, most_steps, affordable)))

    def _anchor_is_due(self, tracked: Estimate) -> bool:
        iteration = len(self.estimates) + 1
        due = iteration >= self.next_anchor or not tracked.weights_error <= self.max_std_error
        return due and self.method != "rts" and self._affordable_levels() >= _FEWEST_TEMPERATURES

    def _affordable_levels(self) -> float:
        return (self.allowed - self.spent) / self.chains.n_chains

    def _anchor(self, tracked: Estimate | None) -> Estimate:
        most_temperatures = 1600
        iteration = len(self.estimates) + 1
        self.next_anchor = 2 * iteration
        seed = seeded(self.seed).of("iteration", iteration).seed
        n_levels = self.n_temperatures
        if tracked is not None:
            n_levels = int(min(n_levels, self._affordable_levels()))
        chains: Any = TemperedChains(seed) if self.method == "rts" else Particles(seed, n_levels)
        chains.start(self.path)
        self.spent += chains.n_moves
        full = chains.estimate()
        anchor = Anchor(iteration, full, tracked)
        self.anchors.append(anchor)
        if full.weights_error > self.max_std_error:
            self.n_temperatures = min(2 * self.n_temperatures, most_temperatures)
        if tracked is None or anchor.disagrees or not tracked.weights_error < full.weights_error:
            self.chains = chains
            return full
        return tracked


class EarlyStopping:
    """A callback of `train`, after a tracker, that keeps the pass with the best held-out likelihood
    and ends training.

    Training ends after `n_iter_no_change` passes that are not better than the best one by `tol`,
    even by one standard error of the difference, in which the errors that two passes share cancel.

    Parameters
    ----------
    tracker : LogPartitionTracker
        The tracker of log Z, which stands before this one among the callbacks.
    log_f : callable
        Mean log f of the held-out rows, in nats, given the path of the model.
    snapshot : callable
        Copies what of the trainer is kept.
    tol : float
        Nats by which a pass must be better.
    n_iter_no_change : int
        Passes without a better one that end training.

    Attributes
    ----------
    scores, std_errors : list of float
        Mean log-likelihood of the held-out rows after every pass, in nats, and its error from that
        of log Z.
    best_iteration : int
        The pass with the highest score, from 1; 0 while log Z is not known after any.
    best : object
        Its snapshot.

    Examples
    --------
    >>> from sklpf import BernoulliRBM
    >>> from sklpf.training import EarlyStopping, LogPartitionTracker, train
    >>> class Growing:
    ...     strength = 0.0
    ...
    ...     def run(self):
    ...         self.strength += 0.5
    ...
    ...     def path(self):
    ...         return BernoulliRBM.from_parameters(
    ...             [[self.strength, self.strength]], [0.0, 0.0], [0.0]
    ...         ).path()
    >>> tracker = LogPartitionTracker(Growing.path, seed=0)
    >>> stopping = EarlyStopping(
    ...     tracker,
    ...     lambda path: 0.0,
    ...     lambda trainer: trainer.strength,
    ...     1e-4,
    ...     n_iter_no_change=2,
    ... )
    >>> train(
    ...     Growing(), 10, callbacks=[tracker, stopping]
    ... )  # log Z grows: the first pass is the best
    (3, True)
    >>> stopping.best_iteration, stopping.best
    (1, 0.5)
    """

    def __init__(self, tracker, log_f, snapshot, tol: float, n_iter_no_change: int):
        self.tracker = tracker
        self.log_f = log_f
        self.snapshot = snapshot
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.scores: list[float] = []
        self.std_errors: list[float] = []
        self.best_iteration = 0
        self.n_without = 0

    def __call__(self, trainer: Trainer, iteration: int) -> bool:
        """Score the pass; true ends training."""
        now = self.tracker.estimates[-1]
        score = float(self.log_f(self.tracker.path)) - now.log_partition
        self.scores.append(score)
        self.std_errors.append(now.std_error)
        if not np.isfinite(now.std_error):
            return False
        if self.best_iteration == 0:
            self.best_score = -np.inf
            self.best_groups = now.groups
        rise = score - self.best_score
        better = rise + _difference_error(now.groups, self.best_groups) >= self.tol
        self.n_without = 0 if better else self.n_without + 1
        if rise > 0:
            self.best_score = score
            self.best_groups = now.groups
            self.best_iteration = iteration
            self.best = self.snapshot(trainer)
        return self.n_without >= self.n_iter_no_change


def _difference_error(groups, others) -> float:
    """Standard error of the difference of two estimates of log Z by groups that may be the same
    ones.
    """

    def difference(keep):
        return log_mean_exp(groups[keep]) - log_mean_exp(others[keep])

    return float(jackknife(difference, len(groups))[1])

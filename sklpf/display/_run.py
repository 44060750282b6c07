"""RunDisplay: what a run has done on its way from the base to the target. DrawsDisplay: what
`check_draws` has found.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import logsumexp, softmax

from sklpf._utils.numbers import as_float64
from sklpf.display._drawing import (
    Display,
    ResultDisplay,
    check_result,
    fitted_model,
    half_width_of,
    title_of,
)
from sklpf.partition import DrawsReport, PartitionResult, PopulationRun, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class RunDisplay(ResultDisplay):
    """Levels, acceptance, traffic, weights and regions of a run.

    A panel for each of these that there is: the inverse temperatures of the levels; the acceptance
    rate of moves and swaps, and the overlap of neighbouring levels; the time that tempered chains
    spend at each level, and how often they cross the ladder; weights (of populations the effective
    number of particles at every level, as a share; of annealed chains a histogram of the log
    weights at the target); and, for each region of the target whose mass is known, its mass beside
    its share of the run's draws. A region whose mass exceeds its share was missed.

    Parameters
    ----------
    ladder : ndarray of shape (K,)
        Inverse temperatures.
    acceptance : ndarray of shape (K,) or None, default=None
        Acceptance rate of the moves at every level, NaN where none was made.
    swaps : ndarray of shape (K - 1,) or None, default=None
        Acceptance rate of the swaps between neighbouring levels.
    overlap : ndarray of shape (K - 1,) or None, default=None
        Overlap of the distributions at two neighbouring levels: 1 if they are one, 0 if they are
        apart.
    shares : ndarray of shape (K,) or None, default=None
        Share of the chains' time at every level (`RTS`, `SAMS`, `WangLandau`).
    round_trips : ndarray of shape (G,) or None, default=None
        Between base and target, of every ladder (`ParallelTempering`).
    crossed : ndarray of shape (G,) or None, default=None
        Share of the chains of each group that visited both ends of the ladder (`RTS`, `SAMS`,
        `WangLandau`).
    effective_shares : ndarray of shape (G, K) or None, default=None
        Effective number of particles of every population, as a share of all of these.
    log_weights : ndarray of shape (n,) or None, default=None
        Log weights of the chains at the target, in nats.
    region_masses : ndarray of shape (R,) or None, default=None
        The part of Z in every region, known apart from the run.
    region_shares : ndarray of shape (R,) or None, default=None
        The weighted share of the run's draws in every region.
    name : str or None, default=None
        Name of the estimator, for the title.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, all of them, and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import SMC, Gaussian, GeometricPath
    >>> from sklpf.display import RunDisplay
    >>> path = GeometricPath(
    ...     lambda x: -np.sum(x**4, axis=1), base=Gaussian([0.0, 0.0], 1.0)
    ... )
    >>> display = RunDisplay.from_run(
    ...     SMC(n_temperatures=20, random_state=0).fit(path).run_
    ... )
    >>> len(display.region_masses)
    1
    """

    ladder: Any
    _: KW_ONLY
    acceptance: Any = None
    swaps: Any = None
    overlap: Any = None
    shares: Any = None
    round_trips: Any = None
    crossed: Any = None
    effective_shares: Any = None
    log_weights: Any = None
    region_masses: Any = None
    region_shares: Any = None
    name: str | None = None

    _shapes = {
        "ladder": "K",
        "acceptance": "K",
        "swaps": "K-1",
        "overlap": "K-1",
        "shares": "K",
        "round_trips": "G",
        "crossed": "G",
        "effective_shares": "G K",
        "region_masses": "R",
        "region_shares": "R",
    }

    @classmethod
    def from_run(cls, run, *, ax: Axes | None = None) -> Self:
        """Draw a run.

        Parameters
        ----------
        run : Run
            The `run_` of an estimator with levels, such as `AIS`, `SMC` or `ParallelTempering`. It
            shows more than its result: regions, and populations' particles.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : RunDisplay

        Raises
        ------
        TypeError
            If `run` is none.
        ValueError
            If it has no levels.
        """
        if not isinstance(run, Run):
            raise TypeError(
                f"run must be the run_ of a fitted partition estimator, got {type(run).__name__}"
            )
        if run.ladder is None:
            raise ValueError(
                f"RunDisplay draws runs with levels, and this run of {run.method} has none"
            )
        result = run.read()
        drawn = _of_result(result)
        if isinstance(run, PopulationRun):
            sizes = result.diagnostics["effective_sizes"]
            drawn["effective_shares"] = sizes / run.log_weights.shape[1]
            drawn["log_weights"] = None
        if run.draws is not None and run.regions is not None and len(run.regions.radii):
            log_masses = run.regions.log_masses
            n_estimates = log_masses.shape[1]
            log_means = logsumexp(log_masses, axis=1) - np.log(n_estimates)
            drawn["region_masses"] = np.exp(log_means - result.log_partition)
            inside = run.regions.contain(run.draws.points)
            drawn["region_shares"] = softmax(run.draws.log_weights) @ inside
        return cls(run.ladder, **drawn, name=title_of(result)).plot(ax)

    @classmethod
    def from_result(cls, result, *, ax: Axes | None = None) -> Self:
        """Draw what a result, such as that of a model's log Z, keeps of its run.

        Parameters
        ----------
        result : PartitionResult
            The result of an estimator with levels.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : RunDisplay

        Raises
        ------
        TypeError
            If `result` is none.
        ValueError
            If it has no levels.
        """
        there = check_result(result).ladder is not None
        traffic = {"round_trips", "crossed"}
        cls._require(result, there, "how chains travel between levels", traffic)
        return cls(result.ladder, **_of_result(result), name=title_of(result)).plot(ax)

    @classmethod
    def from_estimator(cls, estimator, *, ax: Axes | None = None, **options) -> Self:
        """Draw the run of a fitted partition estimator, or the result of a model's log Z.

        Parameters
        ----------
        estimator : PartitionEstimator or model
            A model after its log Z was estimated (by `score`, say), or a pipeline that ends in one.
            Models keep no run.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.
        **options
            As in `from_result`.

        Returns
        -------
        display : RunDisplay

        Raises
        ------
        TypeError
            If `estimator` is neither.
        ValueError
            If the run has no levels; NotFittedError, which is one, if there is no result yet.
        """
        run = getattr(fitted_model(estimator), "run_", None)
        if isinstance(run, Run):
            return cls.from_run(run, ax=ax, **options)
        return super().from_estimator(estimator, ax=ax, **options)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into panels, or as many as there are panels. None makes a figure.

        Returns
        -------
        self
        """
        self._check_arrays()
        draw = [self._draw_levels]
        if not (self.acceptance is None and self.swaps is None and self.overlap is None):
            draw.append(self._draw_acceptance)
        if self.shares is not None:
            draw.append(self._draw_shares)
        if self.round_trips is not None or self.crossed is not None:
            draw.append(self._draw_traffic)
        if self.effective_shares is not None or self.log_weights is not None:
            draw.append(self._draw_weights)
        if self.region_masses is not None and self.region_shares is not None:
            draw.append(self._draw_masses)
        return self._draw_in_a_row(ax, draw, 1 + 3.0 * len(draw))

    def _draw_levels(self, axes):
        marker = "." if len(self.ladder) <= 60 else None
        axes.plot(np.arange(len(self.ladder)), self.ladder, marker=marker)
        axes.set(xlabel="level", ylabel="inverse temperature")

    def _draw_acceptance(self, axes):
        if self.acceptance is not None:
            axes.plot(self.ladder, self.acceptance, label="moves")
        if self.swaps is not None:
            axes.stairs(self.swaps, self.ladder, baseline=None, color="C1", label="swaps")
        if self.overlap is not None:
            style = {"color": "C2", "linestyle": "--", "linewidth": 1.5}
            axes.stairs(self.overlap, self.ladder, baseline=None, label="overlap", **style)
        axes.set(xlabel="inverse temperature", ylabel="acceptance rate", ylim=(0, 1.05))
        axes.legend()

    def _draw_shares(self, axes):
        axes.plot(self.ladder, self.shares, marker="." if len(self.ladder) <= 30 else None)
        axes.set(xlabel="inverse temperature", ylabel="share of time")
        axes.set_ylim(0, 1.1 * np.max(self.shares))

    def _draw_traffic(self, axes):
        values = self.crossed if self.round_trips is None else self.round_trips
        axes.bar(np.arange(1, len(values) + 1), values)
        if self.round_trips is None:
            axes.set(xlabel="group of chains", ylabel="share crossed", ylim=(0, 1.05))
        else:
            axes.set(xlabel="ladder", ylabel="round trips")
        axes.xaxis.get_major_locator().set_params(integer=True)

    def _draw_weights(self, axes):
        if self.effective_shares is not None:
            axes.plot(self.ladder, self.effective_shares.T, color="C0", linewidth=0.8, alpha=0.6)
            axes.set(xlabel="inverse temperature", ylabel="effective share of particles")
            axes.set_ylim(0, 1.05)
            return
        log_weights = as_float64(self.log_weights, "log_weights").ravel()
        finite = log_weights[np.isfinite(log_weights)]
        axes.hist(finite - logsumexp(finite) + np.log(len(log_weights)), bins="auto")
        axes.set(xlabel="log weight over the mean weight (nats)", ylabel="chains")

    def _draw_masses(self, axes):
        _draw_regions(axes, self.region_masses, self.region_shares)
        axes.set_xlabel("region of the target")


def _of_result(result: PartitionResult) -> dict[str, Any]:
    """Parameters of the display from the diagnostics of a result."""
    found = result.diagnostics
    names = ("acceptance", "overlap", "shares", "round_trips", "crossed", "log_weights")
    drawn: dict[str, Any] = {name: found.get(name) for name in names}
    if np.ndim(drawn["overlap"]) == 0:  # of BDMC it is that of forward and reverse chains
        drawn["overlap"] = None
    if "rejection" in found:
        drawn["swaps"] = 1 - found["rejection"]
    return drawn


@dataclass(eq=False, repr=False)
class DrawsDisplay(Display):
    """Modes and log Z of draws that `check_draws` has checked.

    Two panels: the mass of each mode, with its standard error, beside its share of the draws (a
    mode whose mass exceeds its share was missed; no mode, no panel); and log Z by all draws with
    its 95 % interval, by each half of them, and by another kind of proposal, which should agree.

    Parameters
    ----------
    report : DrawsReport
        What `check_draws` returns.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, both of them, and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import check_draws
    >>> from sklpf.display import DrawsDisplay
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    >>> report = check_draws(lambda x: -np.sum(x**2, axis=1) / 2, draws, random_state=0)
    >>> len(DrawsDisplay.from_report(report).axes_)
    2
    """

    report: DrawsReport

    @classmethod
    def from_report(cls, report, *, ax: Axes | None = None) -> Self:
        """Draw a report.

        Parameters
        ----------
        report : DrawsReport
            What `check_draws` returns.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : DrawsDisplay

        Raises
        ------
        TypeError
            If `report` is none.
        """
        if not isinstance(report, DrawsReport):
            raise TypeError(f"report must be what check_draws returns, got {type(report).__name__}")
        return cls(report).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into panels, or as many as there are panels. None makes a figure.

        Returns
        -------
        self
        """
        self.name = title_of(self.report.result)
        draw = [self._draw_modes] if self.report.modes else []
        draw.append(self._draw_log_partition)
        return self._draw_in_a_row(ax, draw, 1 + 3.5 * len(draw))

    def _draw_modes(self, axes):
        modes = self.report.modes
        columns = ([getattr(m, name) for m in modes] for name in ("mass", "share", "mass_error"))
        _draw_regions(axes, *columns)
        axes.set_xlabel("mode, by its mass")

    def _draw_log_partition(self, axes):
        result = self.report.result
        first, second = result.diagnostics["half_log_partition"]
        values = {
            "all draws": result.log_partition,
            "first halves": first,
            "second halves": second,
            "other proposal": result.diagnostics["check_log_partition"],
        }
        axes.errorbar(result.log_partition, 0, xerr=half_width_of(result, 0.95), capsize=4)
        axes.plot(list(values.values()), range(len(values)), "o", color="k")
        axes.set_yticks(range(len(values)), list(values))
        axes.invert_yaxis()
        axes.set_xlabel("log Z (nats)")
        axes.locator_params(axis="x", nbins=4)


def _draw_regions(axes: Any, masses: Any, shares: Any, errors: Any = None) -> None:
    """Draw the mass of each region, with its standard error, beside its share of draws."""
    place = np.arange(1, len(masses) + 1)
    axes.bar(place - 0.2, masses, yerr=errors, width=0.4, label="mass")
    axes.bar(place + 0.2, shares, width=0.4, label="share of draws")
    axes.set_ylabel("share of Z")
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    axes.legend()

"""RunDisplay: what a run has done on its way from the base to the target, and what was read from
it. DrawsDisplay: what `check_draws` has found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import t as student_t

from sklpf._utils.validation import as_float64, check_level
from sklpf.display._drawing import (
    Display,
    ResultDisplay,
    check_result,
    fitted_model,
    half_width_of,
    label_decades,
    legend_above,
    result_of,
    title_of,
)
from sklpf.exploration import Cover
from sklpf.partition import DrawsReport, PartitionResult, PopulationRun, Run
from sklpf.partition.weights import ExploredRun
from sklpf.programs import Draws
from sklpf.uncertainty import effective_sample_size, log_mean_exp, pareto_tail

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_IN_A_ROW = 4  # panels of a figure
_MOST_MARKED = 60  # levels with a marker each
_LEAST_WEIGHT = 1e-12  # that is drawn, over the mean one
_MOST_NAMED = 5  # regions in a legend
_ELSEWHERE = (
    "; models keep neither draws nor weights, so fit the estimator on the model; of BDMC give"
    ' RunDisplay(log_weights=result.diagnostics["forward_log_weights"]), or the reverse ones'
)


@dataclass(eq=False, repr=False)
class RunDisplay(ResultDisplay):
    """log Z on the way to the target, and how the chains went there.

    A panel for each of these that there is:

    - "log Z" at every level of the ladder (without it the "levels" alone);
    - "band", the half-width of its interval, which is much narrower than the line of the curve;
    - "acceptance" rates of moves and swaps, and the overlap of neighbouring levels;
    - "shares" of the time that tempered chains spend at each level;
    - "traffic": round trips between base and target, or the share of chains that visited both;
    - "weights": of populations the effective number of particles at every level, as a share; else
      the weights at the target in order, with the generalised Pareto distribution of their tail: k
      under 0.5 is that of weights with a finite variance, and from 0.7 on their mean should not be
      relied on;
    - "rounds": log Z after every round with its interval, against the sweeps until then;
    - "regions" of the target whose mass is known, beside their share of the run's draws: a region
      whose mass exceeds its share was missed;
    - "cover": draws of a target that was explored, on the two columns that tell its regions apart,
      coloured by region.

    Parameters
    ----------
    ladder : ndarray of shape (K,) or None, default=None
        Inverse temperatures.
    log_partition_curve : ndarray of shape (K,) or None, default=None
        log Z at these, in nats.
    half_width : ndarray of shape (K,) or None, default=None
        How far its band reaches to either side, in nats.
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
    log_weights : array-like or None, default=None
        Logs of n weights, in any order and shape; -inf is a weight of 0, which is counted and not
        drawn.
    round_sweeps : ndarray of shape (R,) or None, default=None
        Sweeps of all chains together until the end of each round.
    round_log_partition, round_half_width : ndarray of shape (R,) or None, default=None
        log Z as each round says it, and how far its interval reaches to either side, in nats; where
        that is not finite no bar is drawn.
    region_masses : ndarray of shape (M,) or None, default=None
        The part of Z in every region, known apart from the run.
    region_shares : ndarray of shape (M,) or None, default=None
        The weighted share of the run's draws in every region.
    cover_draws : ndarray of shape (n, 2) or (n, 1) or None, default=None
        Two columns of draws of the target, or its only one.
    cover_regions : ndarray of int of shape (n,) or None, default=None
        The region that each is in.
    cover_columns : sequence of int, default=(0, 1)
        Which columns they are.
    level : float, default=0.95
        Probability with which an interval covers, and the band any one of the levels.
    name : str or None, default=None
        Name of the estimator, for the title.

    Attributes
    ----------
    panels_ : tuple of str
        Names of the panels, once drawn.
    ax_, axes_, figure_
        The first panel, all of them, and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import SMC, Gaussian, GeometricPath
    >>> from sklpf.display import RunDisplay
    >>> base = Gaussian([0.0, 0.0], 1.0)
    >>> path = GeometricPath(lambda x: -np.sum(x**4, axis=1), base=base)
    >>> smc = SMC(n_temperatures=20, random_state=0).fit(path)
    >>> RunDisplay.from_estimator(smc).panels_
    ('log Z', 'band', 'acceptance', 'weights', 'regions')
    >>> len(RunDisplay.from_estimator(smc, panels=["log Z", "band"]).axes_)
    2
    """

    ladder: Any = None
    _: KW_ONLY
    log_partition_curve: Any = None
    half_width: Any = None
    acceptance: Any = None
    swaps: Any = None
    overlap: Any = None
    shares: Any = None
    round_trips: Any = None
    crossed: Any = None
    effective_shares: Any = None
    log_weights: Any = None
    round_sweeps: Any = None
    round_log_partition: Any = None
    round_half_width: Any = None
    region_masses: Any = None
    region_shares: Any = None
    cover_draws: Any = None
    cover_regions: Any = None
    cover_columns: Any = (0, 1)
    level: float = 0.95
    name: str | None = None

    _shapes = {
        "ladder": "K",
        "log_partition_curve": "K",
        "half_width": "K",
        "acceptance": "K",
        "swaps": "K-1",
        "overlap": "K-1",
        "shares": "K",
        "round_trips": "G",
        "crossed": "G",
        "effective_shares": "G K",
        "round_sweeps": "R",
        "round_log_partition": "R",
        "round_half_width": "R",
        "region_masses": "M",
        "region_shares": "M",
        "cover_draws": "n p",
        "cover_regions": "n",
    }

    @classmethod
    def from_run(
        cls,
        run,
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        panels: Iterable[str] | None = None,
    ) -> Self:
        """Draw a run.

        Parameters
        ----------
        run : Run
            The `run_` of an estimator. It shows more than its result: regions, and populations'
            particles.
        level : float, default=0.95
            As in `from_result`.
        ax, panels
            As in `plot`.

        Returns
        -------
        display : RunDisplay

        Raises
        ------
        TypeError
            If `run` is none.
        ValueError
            If nothing of it can be drawn.
        """
        if not isinstance(run, Run):
            raise TypeError(
                f"run must be the run_ of a fitted partition estimator, got {type(run).__name__}"
            )
        return cls._of(run.read(), run, level).plot(ax, panels=panels)

    @classmethod
    def from_result(
        cls,
        result,
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        panels: Iterable[str] | None = None,
    ) -> Self:
        """Draw what a result, such as that of a model's log Z, keeps of its run.

        The band at the target is the result's interval. At other levels its width is in proportion
        to the jackknife's standard error there (independent groups of chains), so that it covers
        each level with the probability `level`, not all of them at once. It is that of the noise: a
        bias, such as the ``diagnostics["bias"]`` of `RTS`, has no part in it.

        Parameters
        ----------
        result : PartitionResult
            The result of an estimator with levels, rounds or weights.
        level : float, default=0.95
            Probability with which the band and the intervals of the rounds cover.
        ax, panels
            As in `plot`.

        Returns
        -------
        display : RunDisplay

        Raises
        ------
        TypeError
            If `result` is none.
        ValueError
            If nothing of it can be drawn.
        """
        return cls._of(check_result(result), None, level).plot(ax, panels=panels)

    @classmethod
    def from_estimator(  # type: ignore[override]  # without other options
        cls,
        estimator,
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        panels: Iterable[str] | None = None,
    ) -> Self:
        """Draw the result and the run of a fitted partition estimator, or of a model's log Z.

        Parameters
        ----------
        estimator : PartitionEstimator or model
            A model after its log Z was estimated (by `score`, say), or a pipeline that ends in one.
            Models keep no run.
        level : float, default=0.95
            As in `from_result`.
        ax, panels
            As in `plot`.

        Returns
        -------
        display : RunDisplay

        Raises
        ------
        TypeError
            If `estimator` is neither.
        ValueError
            If nothing of it can be drawn; NotFittedError, which is one, if there is no result yet.
        """
        result = result_of(estimator)
        run = getattr(fitted_model(estimator), "run_", None)
        run = run if isinstance(run, Run) else None
        return cls._of(result, run, level).plot(ax, panels=panels)

    @classmethod
    def _of(cls, result: PartitionResult, run: Run | None, level: float) -> Self:
        """The display of a result, and of its run where that is known."""
        check_level(level)
        drawn = {}
        if np.ndim(result.log_partition) == 0:
            drawn = {**_of_result(result, level), **_of_run(run, result)}
        display = cls(**drawn, level=level, name=title_of(result))
        if display._there():
            return display
        if np.ndim(result.log_partition):
            raise ValueError(
                "RunDisplay draws levels, rounds or weights of one log Z, and this result has"
                f" {len(result.log_partition)}, one for each row, which keep nothing else: fit the"
                " estimator on path.row(t) for that of row t"
            )
        raise ValueError(
            f"RunDisplay draws levels, rounds or weights, and this result of {result.method} has"
            " none: those of AIS, SMC, ParallelTempering, RTS and of what reads their runs"
            f" do{_ELSEWHERE}"
        )

    def plot(
        self, ax: Axes | NDArray | None = None, *, panels: Iterable[str] | None = None
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into panels, or as many as there are panels: ``axes_`` of another
            display, to draw "log Z" and "band" of two estimates into the same. None makes a figure.
        panels : iterable of str or None, default=None
            Names of those to draw, in this order, as in the class's docstring. None draws all that
            there are.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a panel is not there.
        """
        self._check_arrays()
        there = self._there()
        self.panels_ = tuple(there) if panels is None else tuple(panels)
        missing = [name for name in self.panels_ if name not in there]
        if missing or not self.panels_:
            raise ValueError(
                f"panels must be some of {', '.join(map(repr, there))}, which can be drawn here,"
                f" got {panels!r}"
            )
        n = len(self.panels_)
        if ax is None and n > _MOST_IN_A_ROW:
            n_columns = -(-n // 2)
            cells = self._panels(None, 2, n_columns, (1 + 3.0 * n_columns, 6.5))
            for empty in cells[n:]:
                empty.remove()
            ax = cells[:n]
        return self._draw_in_a_row(ax, [there[name] for name in self.panels_], 1 + 3.0 * n)

    def _there(self) -> dict[str, Any]:
        """Functions of Axes that draw the panels, by their names."""
        rates = (self.acceptance, self.swaps, self.overlap)
        has_weights = self.effective_shares is not None or self.log_weights is not None
        has_masses = self.region_masses is not None and self.region_shares is not None
        curve = self.log_partition_curve
        panels = [
            ("levels", self._draw_levels, self.ladder is not None and curve is None),
            ("log Z", self._draw_curve, curve is not None),
            ("band", self._draw_band, self.half_width is not None),
            ("acceptance", self._draw_acceptance, any(each is not None for each in rates)),
            ("shares", self._draw_shares, self.shares is not None),
            ("traffic", self._draw_traffic, not (self.round_trips is self.crossed is None)),
            ("weights", self._draw_weights, has_weights),
            ("rounds", self._draw_rounds, self.round_sweeps is not None),
            ("regions", self._draw_masses, has_masses),
            ("cover", self._draw_cover, self.cover_draws is not None),
        ]
        return {name: draw for name, draw, is_there in panels if is_there}

    def _draw_levels(self, axes):
        marker = "." if len(self.ladder) <= _MOST_MARKED else None
        axes.plot(np.arange(len(self.ladder)), self.ladder, marker=marker)
        axes.set(xlabel="level", ylabel="inverse temperature")

    def _draw_curve(self, axes):
        marker = "." if len(self.ladder) <= _MOST_MARKED else None
        axes.plot(self.ladder, self.log_partition_curve, marker=marker, label=self.name)
        axes.set(xlabel="inverse temperature", ylabel="log Z (nats)")
        if len(axes.lines) > 1:
            axes.legend()

    def _draw_band(self, axes):
        axes.fill_between(self.ladder, -self.half_width, self.half_width, alpha=0.4)
        axes.set(xlabel="inverse temperature", ylabel=f"{100 * self.level:.3g} % band (nats)")

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
        log_weights = np.sort(as_float64(self.log_weights, "log_weights").ravel())[::-1]
        if not len(log_weights) or not np.isfinite(log_weights[0]) or np.isnan(log_weights).any():
            raise ValueError(
                "log_weights must hold at least one finite number, and neither NaN nor +inf"
            )
        mean = log_mean_exp(log_weights)
        positive = log_weights[log_weights > -np.inf]
        effective = effective_sample_size(log_weights)
        label = f"{len(log_weights)} weights, {effective:.1f} effective"
        if len(positive) < len(log_weights):
            label += f", {len(log_weights) - len(positive)} of 0"
        weights = np.exp(positive - mean)
        weights = weights[weights > _LEAST_WEIGHT]
        axes.loglog(np.arange(1, len(weights) + 1), weights, ".", markersize=4, label=label)
        tail = pareto_tail(log_weights)
        if np.isfinite(tail.shape):
            fitted = tail.weights(tail.n) * np.exp(log_weights[0] - mean)
            label = f"Pareto tail, k = {tail.shape:.2f}"
            axes.loglog(1 + np.arange(len(fitted)), fitted, color="C1", label=label)
        axes.axhline(1, color="0.4", linestyle=":", label="equal weights")
        axes.set(xlabel="rank of the weight", ylabel="weight / mean weight")
        for axis in ("x", "y"):
            label_decades(axes, axis)
        axes.legend(fontsize="small")

    def _draw_rounds(self, axes):
        half = np.where(np.isfinite(self.round_half_width), self.round_half_width, np.nan)
        style = {"fmt": "o-", "markersize": 4, "capsize": 3}
        bars = axes.errorbar(self.round_sweeps, self.round_log_partition, half, **style)
        last = self.round_log_partition[-1]
        axes.axhline(last, color=bars[0].get_color(), linestyle=":", linewidth=1)
        label = f"log Z, {100 * self.level:.3g} % interval (nats)"
        axes.set(xlabel="sweeps of all chains", ylabel=label)
        label_decades(axes, "x")

    def _draw_masses(self, axes):
        _draw_regions(axes, self.region_masses, self.region_shares)
        axes.set_xlabel("region of the target")

    def _draw_cover(self, axes):
        draws = np.asarray(self.cover_draws)
        regions = np.asarray(self.cover_regions)
        numbers, sizes = np.unique(regions, return_counts=True)
        largest = numbers[np.argsort(-sizes, kind="stable")]
        of_region = [draws[regions == number] for number in largest]
        labels = [f"{len(each) / len(draws):.2g} of Z" for each in of_region]
        labels[_MOST_NAMED:] = [f"_{label}" for label in labels[_MOST_NAMED:]]  # not in the legend
        if draws.shape[1] == 1:
            axes.hist([each[:, 0] for each in of_region], bins=40, stacked=True, label=labels)
            axes.set(xlabel=f"column {self.cover_columns[0]}", ylabel="draws of the target")
        else:
            for each, label in zip(of_region, labels):
                axes.plot(*each.T, ".", markersize=3, alpha=0.6, label=label)
            first, second = self.cover_columns
            axes.set(xlabel=f"column {first}", ylabel=f"column {second}")
        legend_above(axes)


def _of_result(result: PartitionResult, level: float) -> dict[str, Any]:
    """Parameters of the display from a result."""
    found = result.diagnostics
    names = ("acceptance", "overlap", "shares", "round_trips", "crossed", "log_weights")
    drawn: dict[str, Any] = {name: found.get(name) for name in names}
    if np.ndim(drawn["overlap"]) == 0:  # of BDMC it is that of forward and reverse chains
        drawn["overlap"] = None
    if "rejection" in found:
        drawn["swaps"] = 1 - found["rejection"]
    if result.ladder is not None and len(result.ladder) > 2:  # of two there is nothing to see
        drawn["ladder"] = result.ladder
        drawn["log_partition_curve"] = result.log_partition_curve
        errors = found.get("curve_std_error")
        half = half_width_of(result, level)
        if half is not None and errors is not None and errors[-1] > 0 and np.isfinite(errors).all():
            drawn["half_width"] = half * (errors / errors[-1])
    if "round_log_partition" in found:
        quantile = student_t.ppf(0.5 + level / 2, result.degrees_of_freedom)
        drawn["round_sweeps"] = found["round_sweeps"]
        drawn["round_log_partition"] = found["round_log_partition"]
        drawn["round_half_width"] = quantile * np.asarray(found["round_std_error"])
    return drawn


def _of_run(run: Run | None, result: PartitionResult) -> dict[str, Any]:
    """Parameters of the display that a run has and its result has not."""
    drawn: dict[str, Any] = {}
    if run is None:
        return drawn
    if isinstance(run, PopulationRun):
        drawn["effective_shares"] = run.effective_sizes / run.log_weights.shape[1]
    draws, regions = run.draws, run.regions
    if draws is not None and regions is not None and len(regions.radii):
        log_means = log_mean_exp(regions.log_masses, axis=1)
        drawn["region_masses"] = np.exp(log_means - result.log_partition)
        inside = regions.contain(draws.points)
        drawn["region_shares"] = softmax(draws.log_weights) @ inside
    if isinstance(run, ExploredRun) and draws is not None:
        drawn |= _of_cover(run.cover, draws)
    return drawn


def _of_cover(cover: Cover, draws: Draws, n: int = 500) -> dict[str, Any]:
    """n draws by their weights, on the columns in which the centres of their regions differ most in
    units of the spread within.
    """
    ranks = np.cumsum(softmax(draws.log_weights))
    points = draws.points[np.searchsorted(ranks, (np.arange(n) + 0.5) / n * ranks[-1])]
    regions = cover.region_of(points)
    centres = points.copy()
    for region in np.unique(regions):
        centres[regions == region] = points[regions == region].mean(axis=0)
    within = np.maximum((points - centres).std(axis=0), np.finfo(float).tiny)
    apart = np.argsort(-centres.std(axis=0) / within, kind="stable")
    columns = np.sort(apart[:2])
    return {
        "cover_draws": points[:, columns],
        "cover_regions": regions,
        "cover_columns": tuple(columns.tolist()),
    }


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


def _draw_regions(
    axes: Any, masses: Sequence, shares: Sequence, errors: Sequence | None = None
) -> None:
    """Draw the mass of each region, with its standard error, beside its share of draws."""
    place = np.arange(1, len(masses) + 1)
    axes.bar(place - 0.2, masses, yerr=errors, width=0.4, label="mass")
    axes.bar(place + 0.2, shares, width=0.4, label="share of draws")
    axes.set_ylabel("share of the estimated Z")
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    legend_above(axes)

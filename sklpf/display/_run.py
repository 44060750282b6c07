"""RunDisplay: what a run has done on its way from the base to the target, and what was read from
it. DrawsDisplay: what `check_draws` has found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from scipy.stats import t as student_t

from sklpf._utils.validation import check_level
from sklpf.display._drawing import (
    Display,
    fitted_model,
    half_width_of,
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

_MOST_MARKED = 60  # levels with a marker each
_LEAST_WEIGHT = 1e-12  # that is drawn, over the mean one
_MOST_NAMED = 5  # regions in a legend


@dataclass(eq=False, repr=False)
class RunDisplay(Display):
    """log Z on the way to the target, and how the chains went there.

    A panel for each of these that there is:

    - "log Z" at every level of the ladder;
    - "band", the half-width of its interval, which is much narrower than the line of the curve;
    - "acceptance" rates of moves and swaps, and the overlap of neighbouring levels;
    - "shares" of the time that tempered chains spend at each level;
    - "traffic": round trips between base and target, or the share of chains that visited both;
    - "weights": of populations the effective number of particles at every level, as a share; else
      the weights at the target in order (of `BDMC` those of forward chains), with the generalised
      Pareto distribution of their tail: k under 0.5 is that of weights with a finite variance, and
      from 0.7 on their mean should not be relied on;
    - "rounds": log Z after every round with its interval, against the sweeps until then;
    - "regions" of the target whose mass is known, beside their share of the run's draws: a region
      whose mass exceeds its share was missed;
    - "cover": draws of a target that was explored, on the two columns that tell its regions apart,
      coloured by region.

    Parameters
    ----------
    result : PartitionResult
        The result of an estimator with levels, rounds or weights.
    run : Run or None, default=None
        The `run_` of the estimator, which has more to show: regions, and populations' particles.
    level : float, default=0.95
        Probability with which an interval covers, and the band any one of the levels.

    Attributes
    ----------
    arrays : dict of str to ndarray
        What panels show, by name.
    name : str
        Name of the estimator, for the title.
    panels_ : tuple of str
        Names of the panels, once drawn.
    ax_, axes_, figure_
        The first panel, all of them, and their figure, once drawn.

    Raises
    ------
    TypeError
        If `result` is none.
    ValueError
        If nothing of it can be drawn.

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

    result: PartitionResult
    run: Run | None = None
    _: KW_ONLY
    level: float = 0.95

    def __post_init__(self):
        result = self.result
        if not isinstance(result, PartitionResult):  # type: ignore[redundant-expr]
            raise TypeError(
                f"result must be a PartitionResult, such as result_, got {type(result).__name__}"
            )
        check_level(self.level)
        if np.ndim(result.log_partition):
            raise ValueError(
                "RunDisplay draws levels, rounds or weights of one log Z, and this result has"
                f" {len(result.log_partition)}, one for each row, which keep nothing else: fit the"
                " estimator on path.row(t) for that of row t"
            )
        self.arrays = {**_of_result(result, self.level), **_of_run(self.run, result)}
        self.name = title_of(result)
        if not self._there():
            raise ValueError(
                "RunDisplay draws levels, rounds or weights, and this result of"
                f" {result.method} has none: those of AIS, SMC, ParallelTempering, RTS and of what"
                " reads their runs do; models keep neither draws nor weights, so fit the estimator"
                " on the model"
            )

    @classmethod
    def from_result(
        cls,
        result,
        run=None,
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
        result, run, level
            As of the class.
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
        return cls(result, run, level=level).plot(ax, panels=panels)

    @classmethod
    def from_estimator(cls, estimator, **options) -> Self:
        """Draw the result and the run of a fitted partition estimator, or of a model's log Z.

        Parameters
        ----------
        estimator : PartitionEstimator or model
            A model after its log Z was estimated (by `score`, say), or a pipeline that ends in one.
            Models keep no run.
        **options
            ``level``, ``ax`` and ``panels``, as in `from_result`.

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
        return cls.from_result(result, getattr(fitted_model(estimator), "run_", None), **options)

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
        there = self._there()
        self.panels_ = tuple(there) if panels is None else tuple(panels)
        missing = [name for name in self.panels_ if name not in there]
        if missing or not self.panels_:
            raise ValueError(
                f"panels must be some of {', '.join(map(repr, there))}, which can be drawn here,"
                f" got {panels!r}"
            )
        return self._draw_panels(ax, [there[name] for name in self.panels_], 3.3)

    def _there(self) -> dict[str, Any]:
        """Functions of Axes that draw the panels, by their names."""
        panels = [  # and the arrays of which they show what there is
            ("log Z", self._draw_curve, ["log_partition_curve"]),
            ("band", self._draw_band, ["half_width"]),
            ("acceptance", self._draw_acceptance, ["acceptance", "swaps", "overlap"]),
            ("shares", self._draw_shares, ["shares"]),
            ("traffic", self._draw_traffic, ["round_trips", "crossed"]),
            ("weights", self._draw_weights, ["effective_shares", "log_weights"]),
            ("rounds", self._draw_rounds, ["round_log_partition"]),
            ("regions", self._draw_masses, ["region_masses"]),
            ("cover", self._draw_cover, ["cover_draws"]),
        ]
        return {name: draw for name, draw, shown in panels if self.arrays.keys() & shown}

    def _draw_curve(self, axes):
        ladder = self.arrays["ladder"]
        marker = "." if len(ladder) <= _MOST_MARKED else None
        axes.plot(ladder, self.arrays["log_partition_curve"], marker=marker, label=self.name)
        axes.set(xlabel="inverse temperature", ylabel="log Z (nats)")
        if len(axes.lines) > 1:
            axes.legend()

    def _draw_band(self, axes):
        half = self.arrays["half_width"]
        axes.fill_between(self.arrays["ladder"], -half, half, alpha=0.4)
        axes.set(xlabel="inverse temperature", ylabel=f"{100 * self.level:.3g} % band (nats)")

    def _draw_acceptance(self, axes):
        ladder = self.arrays["ladder"]
        if "acceptance" in self.arrays:
            axes.plot(ladder, self.arrays["acceptance"], label="moves")
        if "swaps" in self.arrays:
            axes.stairs(self.arrays["swaps"], ladder, baseline=None, color="C1", label="swaps")
        if "overlap" in self.arrays:
            style = {"color": "C2", "linestyle": "--", "linewidth": 1.5}
            axes.stairs(self.arrays["overlap"], ladder, baseline=None, label="overlap", **style)
        axes.set(xlabel="inverse temperature", ylabel="acceptance rate", ylim=(0, 1.05))
        axes.legend()

    def _draw_shares(self, axes):
        ladder = self.arrays["ladder"]
        shares = self.arrays["shares"]
        axes.plot(ladder, shares, marker="." if len(ladder) <= _MOST_MARKED else None)
        axes.set(xlabel="inverse temperature", ylabel="share of time")
        axes.set_ylim(0, 1.1 * np.max(shares))

    def _draw_traffic(self, axes):
        if "round_trips" in self.arrays:
            values = self.arrays["round_trips"]
            axes.set(xlabel="ladder", ylabel="round trips")
        else:
            values = self.arrays["crossed"]
            axes.set(xlabel="group of chains", ylabel="share crossed", ylim=(0, 1.05))
        axes.bar(np.arange(1, len(values) + 1), values)
        axes.xaxis.get_major_locator().set_params(integer=True)

    def _draw_weights(self, axes):
        if "effective_shares" in self.arrays:
            style = {"color": "C0", "linewidth": 0.8, "alpha": 0.6}
            axes.plot(self.arrays["ladder"], self.arrays["effective_shares"].T, **style)
            axes.set(xlabel="inverse temperature", ylabel="effective share of particles")
            axes.set_ylim(0, 1.05)
            return
        log_weights = np.sort(self.arrays["log_weights"].ravel())[::-1]
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
        axes.legend(fontsize="small")

    def _draw_rounds(self, axes):
        values = self.arrays["round_log_partition"]
        half = self.arrays["round_half_width"]
        half = np.where(np.isfinite(half), half, np.nan)
        style = {"fmt": "o-", "markersize": 4, "capsize": 3}
        bars = axes.errorbar(self.arrays["round_sweeps"], values, half, **style)
        axes.axhline(values[-1], color=bars[0].get_color(), linestyle=":", linewidth=1)
        label = f"log Z, {100 * self.level:.3g} % interval (nats)"
        axes.set(xlabel="sweeps of all chains", ylabel=label)
        axes.set_xscale("log", base=2)

    def _draw_masses(self, axes):
        _draw_regions(axes, self.arrays["region_masses"], self.arrays["region_shares"])
        axes.set_xlabel("region of the target")

    def _draw_cover(self, axes):
        draws = self.arrays["cover_draws"]
        regions = self.arrays["cover_regions"]
        columns = self.arrays["cover_columns"]
        numbers, sizes = np.unique(regions, return_counts=True)
        largest = numbers[np.argsort(-sizes, kind="stable")]
        of_region = [draws[regions == number] for number in largest]
        labels = [f"{len(each) / len(draws):.2g} of Z" for each in of_region]
        labels[_MOST_NAMED:] = [f"_{label}" for label in labels[_MOST_NAMED:]]  # not in the legend
        if draws.shape[1] == 1:
            axes.hist([each[:, 0] for each in of_region], bins=40, stacked=True, label=labels)
            axes.set(xlabel=f"column {columns[0]}", ylabel="draws of the target")
        else:
            for each, label in zip(of_region, labels):
                axes.plot(*each.T, ".", markersize=3, alpha=0.6, label=label)
            axes.set(xlabel=f"column {columns[0]}", ylabel=f"column {columns[1]}")
        legend_above(axes)


def _of_result(result: PartitionResult, level: float) -> dict[str, NDArray]:
    """Arrays that a result has of its run."""
    found = result.diagnostics
    names = ["round_trips", "crossed", "log_weights"]
    arrays: dict[str, Any] = {}
    if "forward_log_weights" in found:
        arrays["log_weights"] = found["forward_log_weights"]
    if result.ladder is not None and len(result.ladder) > 2:  # of two there is nothing to see
        names += ["acceptance", "shares"]
        arrays["ladder"] = result.ladder
        # One number is that of BDMC's forward and reverse chains.
        if np.ndim(found.get("overlap", 0.0)) == 1:
            arrays["overlap"] = found["overlap"]
        if "rejection" in found:
            arrays["swaps"] = 1 - found["rejection"]
    arrays |= {name: found[name] for name in names if name in found}
    if "ladder" in arrays and result.log_partition_curve is not None:
        arrays["log_partition_curve"] = result.log_partition_curve
        errors = found.get("curve_std_error")
        half = half_width_of(result, level)
        if half is not None and errors is not None and errors[-1] > 0 and np.isfinite(errors).all():
            arrays["half_width"] = half * (errors / errors[-1])
    if "round_log_partition" in found:
        quantile = student_t.ppf(0.5 + level / 2, result.degrees_of_freedom)
        arrays["round_sweeps"] = found["round_sweeps"]
        arrays["round_log_partition"] = found["round_log_partition"]
        arrays["round_half_width"] = quantile * np.asarray(found["round_std_error"])
    return arrays


def _of_run(run: object, result: PartitionResult) -> dict[str, NDArray]:
    """Arrays that a run has and its result has not."""
    arrays: dict[str, NDArray] = {}
    if not isinstance(run, Run):
        return arrays
    if isinstance(run, PopulationRun):
        arrays["ladder"] = run.ladder
        arrays["effective_shares"] = run.effective_sizes / run.log_weights.shape[1]
    draws, regions = run.draws, run.regions
    if draws is not None and regions is not None and len(regions.radii):
        log_means = log_mean_exp(regions.log_masses, axis=1)
        arrays["region_masses"] = np.exp(log_means - result.log_partition)
        inside = regions.contain(draws.points)
        arrays["region_shares"] = softmax(draws.log_weights) @ inside
    if isinstance(run, ExploredRun) and draws is not None:
        arrays |= _of_cover(run.cover, draws)
    return arrays


def _of_cover(cover: Cover, draws: Draws, n: int = 500) -> dict[str, NDArray]:
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
        "cover_columns": columns,
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
        return self._draw_panels(ax, draw, 4.0)

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
    axes: Any, masses: ArrayLike, shares: ArrayLike, errors: ArrayLike | None = None
) -> None:
    """Draw the mass of each region, with its standard error, beside its share of draws."""
    place = np.arange(1, np.size(masses) + 1)
    axes.bar(place - 0.2, masses, yerr=errors, width=0.4, label="mass")
    axes.bar(place + 0.2, shares, width=0.4, label="share of draws")
    axes.set_ylabel("share of the estimated Z")
    axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    legend_above(axes)

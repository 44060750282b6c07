"""TemperingDisplay: how well tempered chains travel along their ladder."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from sklpf.display._drawing import ResultDisplay, check_has, check_result, title_of


class TemperingDisplay(ResultDisplay):
    """Rejections and overlap between neighbouring levels, and how often chains cross the ladder.

    A panel for each of: rejection and overlap of neighbouring levels; the chains' share of time at
    every level; round trips, or chains that crossed, by independent group.

    Parameters
    ----------
    ladder : ndarray of shape (K,)
        Inverse temperatures.
    rejection : ndarray of shape (K - 1,) or None, default=None
        Mean probability with which a swap of two neighbouring levels is rejected
        (`ParallelTempering`).
    overlap : ndarray of shape (K - 1,) or None, default=None
        Of the distributions at two neighbouring levels: 1 if they are one, 0 if they are apart.
    shares : ndarray of shape (K,) or None, default=None
        Of the chains' time at every level (`RTS`, `SAMS`, `WangLandau`).
    round_trips : ndarray of shape (G,) or None, default=None
        Between base and target, of every ladder (`ParallelTempering`).
    crossed : ndarray of shape (G,) or None, default=None
        Share of the chains of each group that visited both ends of the ladder (`RTS`, `SAMS`,
        `WangLandau`).
    name : str or None, default=None
        Of the estimator, for the title.

    Attributes
    ----------
    ax_, axes_, figure_
        The first panel, all of them, and their figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import BernoulliRBM, ParallelTempering
    >>> from sklpf.display import TemperingDisplay
    >>> rng = np.random.default_rng(0)
    >>> rbm = BernoulliRBM.from_parameters(
    ...     rng.normal(size=(4, 6)), np.zeros(6), np.zeros(4)
    ... )
    >>> display = TemperingDisplay.from_estimator(
    ...     ParallelTempering(random_state=0).fit(rbm)
    ... )
    >>> len(display.round_trips)
    10
    """

    def __init__(
        self,
        ladder,
        *,
        rejection=None,
        overlap=None,
        shares=None,
        round_trips=None,
        crossed=None,
        name: str | None = None,
    ):
        self.ladder = ladder
        self.rejection = rejection
        self.overlap = overlap
        self.shares = shares
        self.round_trips = round_trips
        self.crossed = crossed
        self.name = name

    @classmethod
    def from_result(cls, result, *, ax: Any = None) -> Self:
        """Draw a result.

        Parameters
        ----------
        result : PartitionResult
            Of `ParallelTempering`, `RTS`, `SAMS` or `WangLandau`.
        ax : Axes, array-like of Axes or None, default=None
            As in `plot`.

        Returns
        -------
        display : TemperingDisplay

        Raises
        ------
        TypeError
            If `result` is none.
        ValueError
            If it is not one of tempered chains.
        """
        traffic = {"round_trips", "crossed"}
        there = bool(traffic & check_result(result).diagnostics.keys())
        check_has(result, there, cls.__name__, "how tempered chains travel", traffic)
        names = ("rejection", "overlap", "shares", "round_trips", "crossed")
        found = {name: result.diagnostics.get(name) for name in names}
        return cls(result.ladder, **found, name=title_of(result)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, array-like of Axes or None, default=None
            One, which is divided into panels, or as many as there are panels. None makes a figure.

        Returns
        -------
        self
        """
        drawn = {
            self._draw_neighbours: self.rejection is not None or self.overlap is not None,
            self._draw_shares: self.shares is not None,
            self._draw_traffic: self.round_trips is not None or self.crossed is not None,
        }
        draw = [method for method, there in drawn.items() if there]
        return self._draw_in_a_row(ax, draw, 1 + 3.5 * len(draw))

    def _draw_neighbours(self, axes):
        curves = {"rejection": (self.rejection, "C0", "-"), "overlap": (self.overlap, "C1", "--")}
        for name, (values, color, style) in curves.items():
            if values is None:
                continue
            axes.stairs(
                values,
                self.ladder,
                baseline=None,
                color=color,
                linestyle=style,
                linewidth=1.5,
                label=name,
            )
        axes.set(xlabel="inverse temperature", ylabel="neighbouring levels", ylim=(0, 1.05))
        axes.legend()

    def _draw_shares(self, axes):
        axes.plot(self.ladder, self.shares, marker="." if len(self.ladder) <= 30 else None)
        axes.set(xlabel="inverse temperature", ylabel="share of time")
        axes.set_ylim(0, 1.1 * np.max(self.shares))

    def _draw_traffic(self, axes):
        values = self.crossed if self.round_trips is None else self.round_trips
        axes.bar(np.arange(1, len(values) + 1), values)
        if self.round_trips is None:
            axes.set(xlabel="group of chains", ylabel="crossed the ladder", ylim=(0, 1.05))
        else:
            axes.set(xlabel="ladder", ylabel="round trips")
        axes.xaxis.get_major_locator().set_params(integer=True)

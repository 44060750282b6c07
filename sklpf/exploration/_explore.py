"""explore: particles that rise from the base, climbs, and two explorers that must agree."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from sklpf._utils.context import BudgetSpent, report
from sklpf._utils.random import Stream
from sklpf.exploration._climbing import new_parts
from sklpf.exploration._cover import Cover, Proposal, regions_of_parts
from sklpf.exploration._explorer import Explorer, size
from sklpf.exploration._joint import JointDraws
from sklpf.exploration._target import Target
from sklpf.paths import GeometricPath

_SHARE_OF_RISE = 0.3  # of what is left of the budget, for each explorer
LARGEST_T = 3.0  # standard errors between explorers, or by which walks lead out of the cover
EFFICIENT = 0.2  # effective share of draws, from which a cover is a proposal


def explore(
    path: GeometricPath, budget: int, stream: Stream, target: Target | None = None
) -> Cover:
    """Look for the mass of a density on R^d.

    Two explorers start at draws of the base, independent of each other. Each weights all points
    that it has evaluated by the mixture of all that proposed them (adaptive multiple
    importance sampling: Cornuet et al. 2012; for evidences Kilbinger et al. 2010), raises beta as
    far as the effective sample size allows, fits a mixture of t distributions to the weighted
    points, and draws from it. Where the first has met several regions, two others take its place,
    with larger populations. At the target fresh draws of both must say the same of log Z, walks
    from them must not lead to where the mixture is thin, and climbs must find no mode that it
    lacks. Else what was found joins the points of both, and they go on.

    Parameters
    ----------
    path : GeometricPath
        With a normalised base.
    budget : int
        Evaluations of the density, at most but for the last batch. Where there are several regions
        the effective sample size that particles keep is in proportion to it, so that a larger
        budget finds smaller parts.
    stream : Stream
        Of all random numbers.
    target : Target or None, default=None
        The path's, which counts evaluations; None makes one.

    Returns
    -------
    Cover

    Raises
    ------
    ValueError
        If no draw of the base lies where the target has mass.

    References
    ----------
    Cornuet, J.-M., Marin, J.-M., Mira, A. & Robert, C. P. (2012). Adaptive multiple importance
    sampling. Scandinavian Journal of Statistics 39.
    Kilbinger, M. et al. (2010). Bayesian model comparison in cosmology with population Monte Carlo.
    Monthly Notices of the Royal Astronomical Society 405.
    """
    return _explored(target or Target(path), budget, stream)


def _explored(
    target: Target,
    budget: int,
    stream: Stream,
    *,
    most_stages: int = 6,
    n_fresh: tuple[int, int] = (200, 30),  # draws from each half, and for each dimension
    most_fresh: float = 0.1,  # of the budget
    better: float = 1.2,  # times as efficient, for which the search goes on
    growth: float = 1.5,  # of the effective sample size, where the search goes on
) -> Cover:
    """The cover of a target."""
    scout, explorers = _first_explorers(target, budget, stream)
    all_explorers = list(dict.fromkeys([scout, *explorers]))
    n_climbs = 0
    n_searched = 0.0
    efficiency = nan_share = 0.0
    joint: Any = None
    spent: BudgetSpent | None = None
    try:
        for stage in range(most_stages):
            rng = stream.of("stage", stage).generator()
            for explorer in explorers:
                if stage > 0 or explorer is not scout:
                    explorer.rise(_SHARE_OF_RISE * (budget - target.spent))
            proposals = [each.proposal for each in explorers]
            most = most_fresh * target.in_time(budget)
            n = int(max(2, min(size(n_fresh, target.n_dimensions), most)))
            joint = JointDraws(target, proposals, n, rng)
            before = target.spent
            most = _most_of_search(before, n_searched, budget, _are_several(proposals))
            parts, n_tried = new_parts(target, joint, all_explorers, most, rng)
            n_climbs += n_tried
            n_searched += target.spent - before
            reached = min(explorer.beta for explorer in explorers)
            moved, outside = joint.u[:0], 0.0
            if reached == 1:
                moved, outside, nan_share = joint.walk(target, rng)
            not_over = _why_not_over(reached, joint.disagreement, outside, parts)
            is_enough = joint.efficiency >= EFFICIENT or joint.efficiency <= better * efficiency
            if not not_over and is_enough or target.spent > budget:
                break
            efficiency = joint.efficiency
            line = "exploring: {} evaluations, log Z about {:.2f}".format
            report(functools.partial(line, target.n_evaluations, joint.log_z))
            for explorer in explorers:
                explorer.n_effective *= growth if reached == 1 else 1.0
                explorer.take(joint, moved, parts)
    except BudgetSpent as error:
        spent = error
        if joint is None:
            raise
        not_over = "the budget was spent before explorers had agreed"
    cover = Cover(
        base=target.base,
        coordinates=target.coordinates,
        proposals=joint.proposals,
        fresh=joint.fresh(target),
        not_over=not_over,
        efficiency=joint.efficiency,
        n_evaluations=target.n_evaluations,
        n_climbs=n_climbs,
        nan_share=nan_share,
    )
    if spent is not None:
        spent.best = cover
        raise spent
    return cover


def _first_explorers(
    target: Target,
    budget: float,
    stream: Stream,
    *,
    fewest: tuple[int, int] = (30, 8),  # effective points, and as many more for each dimension
    most_first: float = 1 / 50,  # of the budget
    more: tuple[float, float] = (1.0, 3.0),  # times as many of the second: d / 2 - 1 within these
    most_second: float = 1 / 130,  # of the budget
    share: float = 1 / 220,  # of the budget that are effective of the first
) -> tuple[Explorer, list[Explorer]]:
    """The first explorer, and the two that go on, of which it is one unless there are several
    regions.
    """
    n_effective = min(size(fewest, target.n_dimensions), most_first * budget)
    scout = Explorer(target, n_effective, stream.of("scout"))
    scout.rise(_SHARE_OF_RISE * budget)
    budget = target.in_time(budget)
    n_effective = min(n_effective, most_first * budget)
    if not _are_several([scout.proposal]):
        return scout, [scout, Explorer(target, n_effective, stream.of("explorer", 1))]
    # Where there are two regions there may be smaller ones, and basins of attraction get smaller
    # with every dimension.
    n_effective = max(share * budget, n_effective)
    times = np.clip(target.n_dimensions / 2 - 1, *more)
    n_second = float(np.clip(most_second * budget, n_effective, times * n_effective))
    explorers = [
        Explorer(target, n, stream.of("explorer", k)) for k, n in enumerate([n_effective, n_second])
    ]
    return scout, explorers


def _most_of_search(
    spent: float,
    n_searched: float,
    budget: int,
    are_several: bool,
    *,
    share: float = 0.33,  # of what has been evaluated
    least: tuple[float, float] = (0.08, 0.15),  # of the budget, with one region and with several
) -> float:
    """Evaluations that climbs and draws far and wide may take in this stage: what is left of their
    share, or after parts were found half as much again, within the budget.
    """
    fewest = least[are_several] * budget
    most = max(max(share * spent, fewest) - n_searched, 0.5 * fewest)
    return max(min(most, budget - spent), 0.0)


def _why_not_over(reached: float, disagreement: float, outside: float, parts: list) -> str:
    """Why the search is not over, a sentence; empty if it is."""
    if reached < 1:
        return f"the particles stopped at inverse temperature {reached:.2g}"
    if disagreement > LARGEST_T:
        return f"two explorers differ by {disagreement:.1f} standard errors"
    if outside > LARGEST_T:
        return "walks from its points lead to where the cover is thin"
    return "climbs still found parts of the target that the cover lacks" if parts else ""


def _are_several(proposals: list[Proposal]) -> bool:
    """True if parts of mixtures lie in several regions."""
    parts = [part for each in proposals for part in each.fitted.components]
    return bool(np.any(regions_of_parts(parts)))

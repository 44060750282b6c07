"""explore: particles that rise from the base, climbs, and two explorers that must agree."""

from __future__ import annotations

import functools

import numpy as np

from sklpf._utils.progress import report
from sklpf._utils.random import Stream
from sklpf.exploration._climbing import Search, new_parts
from sklpf.exploration._cover import Cover, Proposal, regions_of_parts
from sklpf.exploration._explorer import Explorer, size
from sklpf.exploration._joint import JointDraws
from sklpf.exploration._target import Evaluator, Target
from sklpf.paths import GeometricPath

_N_EXPLORERS = 2
# effective sample size after a step of beta
_FEWEST_EFFECTIVE = (30, 8)  # a number, and as many more for each dimension
_SHARE_EFFECTIVE = 1 / 220  # of the budget, where there are several regions
_FRESH = (200, 30)  # draws from each half of the cover, and for each dimension
_GROWTH = 1.5  # of the effective sample size, where the search goes on
_MOST_STAGES = 6
_SHARE_OF_RISE = 0.3  # of what is left of the budget, for each explorer
_SHARE_OF_SEARCH = 0.33  # of what has been evaluated, by climbs and draws far and wide
_LEAST_SEARCH = 0.08  # of the budget, for these ...
_LEAST_SEARCH_OF_SEVERAL = 0.15  # ... and where there are several regions
LARGEST_T = 3.0  # standard errors between explorers, or by which walks lead out of the cover
_BETTER = 1.2  # times as efficient, for which the search goes on
EFFICIENT = 0.2  # effective share of draws, from which a cover is a proposal


def explore(
    path: GeometricPath, budget: int, stream: Stream, evaluator: Evaluator | None = None
) -> Cover:
    """Look for the mass of a density on R^d.

    Two explorers start at draws of the base, independent of each other. Each weights all points
    that it has evaluated by the mixture of everything that proposed them (adaptive multiple
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
    evaluator : Evaluator or None, default=None
        Of the path's density, which counts; None is one of its own.

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
    target = Target(evaluator or Evaluator(path))
    d = target.n_dimensions
    n_effective: float = size(_FEWEST_EFFECTIVE, d)
    scout = Explorer(target, n_effective, stream.of("scout"))
    scout.rise(n_effective, _SHARE_OF_RISE * budget)
    explorers = [scout]
    if _are_several([scout.proposal]):
        # Where there are two regions there may be smaller ones.
        n_effective = max(_SHARE_EFFECTIVE * budget, n_effective)
        explorers = []
    explorers += [
        Explorer(target, n_effective, stream.of("explorer", k))
        for k in range(len(explorers), _N_EXPLORERS)
    ]
    all_explorers = list(dict.fromkeys([scout, *explorers]))
    search = Search()
    efficiency = 0.0
    for stage in range(_MOST_STAGES):
        rng = stream.of("stage", stage).generator()
        for explorer in explorers:
            left = budget - target.n_evaluations
            if stage > 0 or explorer is not scout:
                explorer.rise(n_effective, _SHARE_OF_RISE * left)
        joint = JointDraws(target, [each.proposal for each in explorers], size(_FRESH, d), rng)
        reached = min(explorer.beta for explorer in explorers)
        least = _LEAST_SEARCH_OF_SEVERAL if _are_several(joint.proposals) else _LEAST_SEARCH
        most = max(_SHARE_OF_SEARCH * target.n_evaluations, least * budget)
        # What is left of it, or after parts were found half as much again, within the budget.
        most = max(most - search.n_evaluations, 0.5 * least * budget)
        most = max(min(most, budget - target.n_evaluations), 0.0)
        parts = new_parts(target, joint, all_explorers, most, search, rng)
        moved, nan_share = joint.u[:0], 0.0
        not_over = ""
        if reached < 1:
            not_over = f"the particles stopped at inverse temperature {reached:.2g}"
        else:
            moved, outside, nan_share = joint.walk(target, rng)
            if joint.disagreement > LARGEST_T:
                not_over = f"two explorers differ by {joint.disagreement:.1f} standard errors"
            elif outside > LARGEST_T:
                not_over = "walks from its points lead to where the cover is thin"
            elif parts:
                not_over = "climbs still found parts of the target that the cover lacks"
        improves = joint.efficiency > _BETTER * efficiency
        efficiency = joint.efficiency
        is_enough = efficiency >= EFFICIENT or not improves
        if not not_over and is_enough or target.n_evaluations > budget:
            break
        line = "exploring: {} evaluations, log Z about {:.2f}".format
        report(functools.partial(line, target.n_evaluations, joint.log_z))
        if reached == 1:
            n_effective *= _GROWTH
        for explorer in explorers:
            explorer.take(joint, moved, parts)
    return Cover(
        base=path.base,
        coordinates=target.coordinates,
        proposals=joint.proposals,
        fresh=joint.fresh(target),
        not_over=not_over,
        efficiency=joint.efficiency,
        n_evaluations=target.n_evaluations,
        n_climbs=search.n_climbs,
        nan_share=nan_share,
    )


def _are_several(proposals: list[Proposal]) -> bool:
    """True if parts of mixtures lie in several regions."""
    parts = [part for each in proposals for part in each.fitted.components]
    return bool(np.any(regions_of_parts(parts)))

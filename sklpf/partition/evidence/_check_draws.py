"""check_draws: can the draws that somebody has of a density be trusted?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sklpf._utils.random import draw_seed
from sklpf._utils.tables import Readable, Rows, imported
from sklpf.partition._result import PartitionResult
from sklpf.partition.alarms import subject_of, threshold
from sklpf.partition.checks.missed_mass import CheckedMode, checked_modes
from sklpf.partition.weights import BridgeRun, BridgeSampling, posterior_draws
from sklpf.paths import GeometricPath, Path
from sklpf.sampling import RandomState

_PROPOSALS = ("warp3", "mixture", "t")


class DrawsFinding(NamedTuple):
    """Finding of one check.

    Attributes
    ----------
    check : str
        "modes", "chains", "number", "halves", "tails" or "density".
    passed : bool
        Whether nothing speaks against the draws.
    seen : str
        A sentence with the numbers.
    """

    check: str
    passed: bool
    seen: str


@dataclass(frozen=True, repr=False)
class DrawsReport(Readable):
    """Findings of `check_draws`; printed it is a line.

    Attributes
    ----------
    findings : tuple of DrawsFinding
        One for each check.
    modes : tuple of CheckedMode
        All that were found, those with most mass first.
    result : PartitionResult
        log Z from the draws, by `BridgeSampling`.
    proposal : str
        The proposal that the bridge was made with.
    n_evaluations : int
        Points at which the log density, or its gradient, was computed: by the bridges and by the
        search for modes.
    """

    findings: tuple[DrawsFinding, ...]
    modes: tuple[CheckedMode, ...]
    result: PartitionResult
    proposal: str
    n_evaluations: int

    @property
    def converged(self) -> bool:
        """True if nothing speaks against the draws."""
        return self.result.converged

    @property
    def reasons(self) -> tuple[str, ...]:
        """Objections to the draws, one sentence each."""
        return self.result.reasons

    def to_frame(self) -> Any:
        """Return a row for each mode.

        Returns
        -------
        pandas.DataFrame
            Columns mass, mass_error and share, and x0, x1, ... of the centre.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = imported("pandas", "to_frame")

        rows = [
            {"mass": mode.mass, "mass_error": mode.mass_error, "share": mode.share}
            | {f"x{i}": x for i, x in enumerate(mode.centre)}
            for mode in self.modes
        ]
        return pd.DataFrame(rows).rename_axis("mode")

    def _table(self) -> Rows:
        table = [
            (each.check, "passed" if each.passed else "failed", each.seen) for each in self.findings
        ]
        return [*table, ("log Z", "", repr(self.result)), ("cost", "", self._cost())]

    def _cost(self) -> str:
        return f"{self.n_evaluations:,} evaluations of the density, {self.result.seconds:.1f} s"

    def _line(self) -> str:
        if self.converged:
            return f"nothing speaks against them ({self._cost()})"
        return f"not to be trusted: {'; '.join(self.reasons)} ({self._cost()})"

    def _title(self) -> str:
        return "draws"


def check_draws(path: Path, draws: object, *, random_state: RandomState = None) -> DrawsReport:
    """Check draws of a density that any sampler has made.

    An optimiser looks for modes from many starts, and those that it finds should have as many draws
    as they have mass. Chains, and halves of them, should agree (R-hat, effective numbers). Draws
    should be of this density: bridges between them and proposals fitted to them, by several bridge
    functions and two kinds of proposals, should give one log Z, and their terms no heavy tails.

    Parameters
    ----------
    path : GeometricPath or callable
        The density, in the coordinates of the draws, as for `BridgeSampling`. A function is the log
        density of points (n, d), giving (n,) in nats, up to a constant; with a path the search has
        a gradient, and starts at its base, such as a prior, and not around the draws alone.
    draws : object
        As for `BridgeSampling`: points (n_chains, n_draws, d) or (n, d), emcee's sampler, ArviZ's
        ``InferenceData``, a dict of arrays, dynesty's ``results``, a run of this library.
    random_state : int, RandomState or None, default=None
        Seed of the search and of the proposals' draws.

    Returns
    -------
    DrawsReport
        ``converged`` is True if nothing speaks against the draws, ``reasons`` says what does, and
        ``summary()`` is a table of all checks with their numbers and the cost.

    Raises
    ------
    TypeError, ValueError
        As `BridgeSampling.fit`.

    Notes
    -----
    Proposals are tried in turn, "warp3", "mixture" and "t", where alarms may be the proposal's
    fault, so that draws of several modes or with heavy tails pass.

    A report without reasons is no proof. A mode with a narrow basin that no start of a climb meets
    is not found: the farther out and the more dimensions, the more often.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf import check_draws
    >>> def log_density(x):  # two modes
    ...     return np.logaddexp(*(-np.sum((x - m) ** 2, axis=1) / 2 for m in (0, 9)))
    >>> draws = np.random.default_rng(0).normal(size=(4, 500, 2))  # around the first
    >>> report = check_draws(log_density, draws, random_state=0)
    >>> report.converged
    False
    >>> report.findings[0].check, report.findings[0].passed
    ('modes', False)
    """
    seed = draw_seed(random_state)
    if draws is not None:
        draws = posterior_draws(draws, path if isinstance(path, GeometricPath) else None, seed)
    tried: dict[str, tuple[BridgeRun, PartitionResult]] = {}
    seconds = 0.0
    n_evaluations = 0
    for proposal in _PROPOSALS:
        bridge = BridgeSampling(proposal, checks=not tried, random_state=seed)
        bridge._searches_fully = True
        bridge._fit(path, draws)
        run: Any = bridge.run_
        if tried:
            run = replace(run, findings=tried[_PROPOSALS[0]][0].findings)
        else:
            n_evaluations += bridge.result_.check_evaluations or 0
        n_evaluations += run.n_evaluations
        seconds += bridge.result_.seconds
        tried[proposal] = (run, run.read())
        if not _n_against(tried[proposal][1]):
            break
    proposal = min(tried, key=lambda name: _n_against(tried[name][1]))
    run, result = tried[proposal]
    found = checked_modes(run, result.log_partition)
    modes = tuple(sorted(found, key=lambda mode: -mode.mass))
    if _are_of_another_density(result, modes):
        alarms = tuple(alarm for alarm in result.alarms if subject_of(alarm) != "modes")
        result = replace(result, alarms=alarms)
    findings = tuple(_findings(run, result, modes))
    return DrawsReport(findings, modes, replace(result, seconds=seconds), proposal, n_evaluations)


def _n_against(result: PartitionResult) -> int:
    """Count alarms that may be the proposal's fault, so that the next one is tried."""
    return sum(subject_of(alarm) in ("tails", "density") for alarm in result.alarms)


def _are_of_another_density(
    result: PartitionResult,
    modes: tuple[CheckedMode, ...],
    *,
    small_mode: float = 0.02,  # of the mass of all modes
) -> bool:
    """True if draws are in all modes as often as their masses ask, by each other, so that modes
    above the estimate of Z say that this is wrong, and no mode is missed.
    """
    if all(subject_of(alarm) != "density" for alarm in result.alarms):
        return False
    total = sum(mode.mass for mode in modes)
    shares = [(mode.share, mode.mass / total) for mode in modes if mode.mass > small_mode * total]
    least = threshold("missed-region", "hardly_seen")
    return total > 1 and all(share > least * expected for share, expected in shares)


def _findings(run: BridgeRun, result: PartitionResult, modes) -> Iterator[DrawsFinding]:
    """Findings of each check: its alarms, or the numbers that raised none."""
    known = result.diagnostics
    n_chains = sum(len(bridge.at_target) for bridge in run.bridges)
    of_chains = f"of {n_chains} chains"
    if run.draws is not None and len(np.unique(run.draws.groups)) == 1:
        of_chains = "of the halves of a single chain"
    of_modes = f"{len(modes)} regions with mass were found, and draws have all of them"
    if not modes:
        of_modes = "no mode was found at which a Gaussian has the density's shape"
    shapes = known["target_pareto_shape"], known["proposal_pareto_shape"]
    apart = abs(known["check_log_partition"] - result.log_partition)
    passed = {
        "modes": of_modes,
        "chains": f"R-hat is at most {known['r_hat']:.3f}, {of_chains}",
        "number": f"{known['effective_draws']:.0f} draws are effective, in the worst coordinate",
        "halves": f"by halves log Z differs by {np.ptp(known['half_log_partition']):.3f} nats",
        "tails": f"terms of the bridge have Pareto shapes of at most {max(shapes):.2f}",
        "density": f"by two kinds of proposals log Z differs by {apart:.3f} nats",
    }
    for check, numbers in passed.items():
        against = [str(alarm) for alarm in result.alarms if subject_of(alarm) == check]
        yield DrawsFinding(check, not against, "; ".join(against) or numbers)

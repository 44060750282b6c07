"""What SAMS and WangLandau share: simulated tempering whose weights adapt, then are frozen."""

from __future__ import annotations

import numpy as np

from sklpf.partition._simulated_tempering import SimulatedTempering, Start
from sklpf.partition._tempering_run import (
    ALL,
    N_GROUPS,
    Adaptation,
    AdaptedRun,
    pool_rounds,
    value_and_error,
)
from sklpf.programs._adaptive import GainRule, adapt
from sklpf.programs._plan import NO_ROUNDS
from sklpf.uncertainty import jackknife


class AdaptiveTempering(SimulatedTempering):
    """Simulated tempering whose weights follow the visits of the chains until they are frozen.

    A subclass says how far (`_rule`), and whether visits are probabilities or drawn levels
    (`_visits_are_probabilities`).
    """

    _run_class = AdaptedRun

    @property
    def _visits_are_probabilities(self) -> bool:
        return False

    def _rule(self, log_prior, pilot_error: float) -> GainRule:
        """The rule for a ladder, and for estimates of which the worst has this standard error."""
        raise NotImplementedError

    def _initialise(self, setup, log_prior) -> Start:
        chains, pilot, used = self._first_pass(setup, log_prior)
        n_redraws = max(1, self.n_sweeps // 4 // setup.sweeps_per_redraw)
        _, errors = jackknife(pilot, N_GROUPS)
        rule = self._rule(log_prior, float(errors.max()))
        adapted = adapt(
            setup, chains, log_prior, pilot(ALL), n_redraws, rule, self._visits_are_probabilities
        )
        sizes = np.array([float(r.n_redraws) for r in adapted.recent])
        estimate = pool_rounds(adapted.recent, True, sizes, first_ratio=setup.first_ratio)
        history = self._with_round(NO_ROUNDS, setup, "pilot", value_and_error(pilot), used)
        used += n_redraws * setup.sweeps_per_redraw
        return Start(
            chains=adapted.chains,
            curve=adapted.curve,
            estimate=estimate,
            used=used,
            history=self._with_round(history, setup, "adaptation", value_and_error(estimate), used),
            adaptation=Adaptation(adapted.curve, **adapted.history, settled=rule.settled),
        )

    @classmethod
    def _reads(cls, run) -> bool:
        """Only runs whose weights this rule has found can be read."""
        return super()._reads(run) and run.method == cls.__name__

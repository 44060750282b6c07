"""What SAMS and WangLandau share: simulated tempering whose weights adapt, then are frozen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sklpf._utils.alarm import Alarm
from sklpf.partition._simulated_tempering import SimulatedTempering, Start
from sklpf.readings import Reading
from sklpf.readings._diagnostics import Diagnostic
from sklpf.readings._rounds import ALL, at_target, pool_rounds
from sklpf.runs._adaptive import GainRule, adapt
from sklpf.runs._run import NO_ROUNDS
from sklpf.runs._tempering import Adaptation

# nats by which a frozen log Z_k may differ from the result: levels are then visited unevenly
_LARGEST_ERROR = 1.0


class AdaptiveTempering(SimulatedTempering):
    """Simulated tempering whose weights follow the visits of the chains until they are frozen.

    A subclass says how far (`_rule`), whether visits are probabilities or drawn levels
    (`_visits_are_probabilities`), and what it means where the gain has not settled (`_unsettled`).
    """

    _diagnostics = SimulatedTempering._diagnostics | {
        f"adaptive_{name}": Diagnostic(dimensions=("update",))
        for name in ("n_draws", "gain", "evenness", "log_partition")
    }
    _unsettled: str

    @property
    def _visits_are_probabilities(self) -> bool:
        return False

    def _rule(self, log_prior) -> GainRule:
        raise NotImplementedError

    def _initialise(self, setup, log_prior) -> Start:
        chains, pilot, used = self._pilot(setup, log_prior)
        n_redraws = max(1, self.n_sweeps // 4 // setup.sweeps_per_redraw)
        rule = self._rule(log_prior)
        adapted = adapt(
            setup, chains, log_prior, pilot(ALL), n_redraws, rule, self._visits_are_probabilities
        )
        sizes = np.array([float(r.n_redraws) for r in adapted.recent])
        estimate = pool_rounds(
            setup.first, adapted.recent, True, sizes, first_ratio=setup.first_ratio
        )
        history = self._with_round(NO_ROUNDS, setup, "pilot", at_target(pilot), used)
        used += n_redraws * setup.sweeps_per_redraw
        return Start(
            chains=adapted.chains,
            curve=adapted.curve,
            estimate=estimate,
            used=used,
            history=self._with_round(history, setup, "adaptation", at_target(estimate), used),
            adaptation=Adaptation(adapted.curve, **adapted.history, settled=rule.settled),
        )

    @classmethod
    def _reads(cls, run) -> bool:
        """Those alone whose weights this rule has found."""
        return super()._reads(run) and run.sampler == cls._sampler

    @classmethod
    def _reading(cls, run) -> Reading:
        reading = super()._reading(run)
        result = reading.result
        adaptation = run.adaptation
        alarms = []
        if not adaptation.settled:
            seen = f"{cls._unsettled} (evenness {adaptation.evenness[-1]:.2f})"
            alarms.append(Alarm("weights-unsettled", seen, "raise n_sweeps"))
        off = float(
            np.abs(result.log_partition_curve - run.base_log_partition - adaptation.curve).max()
        )
        if off > _LARGEST_ERROR:
            alarms.append(
                Alarm(
                    "weights-off",
                    f"the frozen weights were off by {off:.1f} nats",
                    "raise n_sweeps",
                )
            )
        adapted = {
            f"adaptive_{field}": getattr(adaptation, field)
            for field in ("n_draws", "gain", "evenness")
        }
        adapted["adaptive_log_partition"] = run.base_log_partition + adaptation.log_partition
        result = replace(result, method=cls.__name__, diagnostics={**result.diagnostics, **adapted})
        return reading._replace(result=result).with_alarms(*alarms)

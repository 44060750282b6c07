"""Balls of rows of units around the modes of a model, with their masses."""

from __future__ import annotations

from typing import Any

import numpy as np

from sklpf._utils.random import Stream
from sklpf.models._enumerable_path import BOUND_GROUPS, CENTRE_SWEEPS, N_CENTRES, UnitsPath
from sklpf.paths import Regions
from sklpf.paths._regions import drawn_by_weight
from sklpf.uncertainty import log_mean_exp

_STATES_OF_A_REGION = 16
_SCREENING_DRAWS = 40
_FEWEST_REGIONS = 20
_REGION_WORK = int(2e9)  # multiplications, about 0.1 s
_FEWEST_REGION_DRAWS = 10  # of each region, in each group
_MOST_REGION_DRAWS = 400
_RADIUS_DRAWS = 50
_SHARE_OF_A_REGION = 0.98


class PathWithRegions(UnitsPath):
    """A `UnitsPath` whose draws are rows of units, with regions.

    A subclass also defines

    - ``_inputs(state)``: inputs of the units of every chain, (n, n_visible), which are also the
      `_centres` of the bound;
    - ``_work_of_f``: multiplications that log f of one row takes.

    Modes are looked for by chains at the target that begin at ``_region_starts(rng)``,
    ``_n_region_starts`` of them: random ones unless a subclass says otherwise.
    """

    _inputs: Any
    _work_of_f: int
    _n_region_starts = N_CENTRES

    def _region_starts(self, rng: np.random.Generator) -> Any:
        return self._random_chains(rng)

    def _centres(self, state, rng):
        return self._inputs(state)

    @property
    def regions_cost(self) -> int:  # type: ignore[override]  # derived from the model's size
        """Sweeps of all chains that `regions` makes."""
        return self._n_region_starts * (CENTRE_SWEEPS + _STATES_OF_A_REGION - 1)

    def regions(self, stream: Stream) -> Regions:
        """Return balls around the modes of units with the inputs that chains at the target have.

        Each ball holds 98 % of the draws from a mixture of independent units, with the inputs at a
        few states of one chain. The draws of all mixtures are weighted by importance sampling,
        which gives the mass of the rows in a ball that are nearer to its centre than to any other.
        Where two balls surround nearly the same mode only one is returned, and of a large model
        those with the most mass.
        """
        rng = stream.generator()
        state = self._region_starts(rng)
        self.move_at_target(state, CENTRE_SWEEPS, stream.at(1))
        inputs = [self._inputs(state)]
        for i in range(_STATES_OF_A_REGION - 1):
            self.move_at_target(state, 1, stream.at(2 + i))
            inputs.append(self._inputs(state))
        modes = self.visible_units.modes(inputs[0])
        distinct = np.sort(np.unique(modes, axis=0, return_index=True)[1])
        modes = modes[distinct]
        fields = np.stack(inputs, axis=1)[distinct]  # (n_modes, n_states, n_visible)

        radii = np.array([self._squared_radius(own, rng) for own in fields])
        masses = [self._mass_of_ball(*ball, rng) for ball in zip(fields, radii)]
        most = max(_FEWEST_REGIONS, _REGION_WORK // (self._work_of_f * _MOST_REGION_DRAWS))
        chosen: list[int] = []
        for r in np.argsort(masses)[::-1]:
            apart = (np.sum(modes[r] != modes[k]) > min(radii[r], radii[k]) for k in chosen)
            if all(apart):
                chosen.append(r)
        chosen = chosen[:most]

        centres = modes[chosen].astype(np.uint8)
        regions = Regions(centres, np.sqrt(radii[chosen]), np.empty((len(chosen), BOUND_GROUPS)))
        weighed = []
        # Where many states remain, each chain has seen few of them, but all together have seen
        # more: every draw is weighted by the mixture of all.
        all_fields = fields[chosen]
        work = all_fields.size * len(chosen) * BOUND_GROUPS
        n_draws = int(np.clip(_REGION_WORK // work, _FEWEST_REGION_DRAWS, _MOST_REGION_DRAWS))
        for group in range(BOUND_GROUPS):
            v = np.concatenate([self._drawn(own, n_draws, rng) for own in all_fields])
            log_weights = self._log_weights(v, np.concatenate(all_fields))
            inside = np.where(regions.contain(v), log_weights[:, np.newaxis], -np.inf)
            regions.log_masses[:, group] = log_mean_exp(inside, axis=0)
            weighed.append((v, inside))
        v, inside = map(np.concatenate, zip(*weighed))
        draws = np.array([drawn_by_weight(v, own, rng) for own in inside.T], dtype=np.uint8)
        return regions._replace(draws=draws.reshape(len(chosen), -1, self.n_visible))

    def _mass_of_ball(self, fields, squared_radius, rng) -> float:
        """Log of a first estimate of the mass of a ball."""
        v = self._drawn(fields, _SCREENING_DRAWS, rng)
        inside = np.sum(v != self.visible_units.modes(fields[0]), axis=1) <= squared_radius
        log_weights = self._log_weights(v[inside], fields)
        return float(np.logaddexp.reduce(log_weights, initial=-np.inf))

    def _squared_radius(self, fields, rng) -> float:
        """The number of units that differ at most from the mode at the first state, in most draws.

        They are draws of their own: by those that are weighted masses would be too large.
        """
        v = self._drawn(fields, _RADIUS_DRAWS, rng)
        away = np.sum(v != self.visible_units.modes(fields[0]), axis=1)
        return float(np.quantile(away, _SHARE_OF_A_REGION))

    def _drawn(self, fields, n, rng):
        """Rows (n, n_visible) of bool from a mixture of units with these inputs."""
        return self.visible_units.draw(fields[rng.integers(len(fields), size=n)], rng)

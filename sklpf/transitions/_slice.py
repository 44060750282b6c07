"""Slice sampling, one coordinate after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklpf._utils.sklearn import StrOptions
from sklpf._utils.validation import POSITIVE, at_least
from sklpf.paths import put
from sklpf.transitions._pilot import TunedTransition


@dataclass(eq=False, repr=False)
class Slice(TunedTransition):
    """Slice sampling by coordinates, stepping out and shrinking (Neal 2003; Bishop 2006, sect.
    11.4).

    A level is drawn under the density; an interval of the `width` around the point is stepped out
    until both ends lie outside of the slice, and shrunk towards the point until a uniform draw lies
    within. Nothing is rejected.

    Parameters
    ----------
    width : float or "auto", default="auto"
        Width of the first interval. "auto" takes twice the standard deviation of each coordinate,
        which a pilot estimates as a function of beta.
    max_steps : int, default=50
        Most widths that an interval may grow to; they are shared out at random between its sides,
        so that the limit keeps the density invariant.

    Notes
    -----
    Needs `position` (see `OptionalMethods`), no gradient. A sweep takes about 5 evaluations of the
    density for each dimension. Coordinates go in order, backwards in the time reversal.

    Examples
    --------
    >>> from sklpf import AIS, Gaussian, GeometricPath
    >>> from sklpf.transitions import Slice
    >>> base = Gaussian([0.0, 0.0], 1.0)
    >>> path = GeometricPath(lambda x: -(x**4).sum(axis=1), base=base)
    >>> ais = AIS(n_temperatures=30, transition=Slice(), random_state=0).fit(path)
    >>> ais.converged_
    True
    """

    width: float | str = "auto"
    max_steps: int = 50

    requires = ("position",)
    # what the pilot finds
    metric = "diag"
    step_size = "auto"
    _parameter_constraints = {
        "width": [POSITIVE, StrOptions({"auto"})],
        "max_steps": [at_least(1)],
    }

    def first_step(self, n_dimensions: int) -> float:
        """The width in scales of the density."""
        return 2.0

    def tune(self, path, key):
        """Return the move with widths from a pilot, frozen as functions of beta."""
        return super().tune(path, key) if self.width == "auto" else self

    def move(self, path, state, auxiliary, levels, stream, reverse=False):
        order = range(path.n_dimensions)
        rng = stream.generator()
        for j in reversed(order) if reverse else order:
            state = self._coordinate(path, state, levels, j, rng)
        return state, auxiliary

    def _coordinate(self, path, state, levels, j, rng, *, most_shrinks=200):
        position = path.position(state)
        here = position[:, j]
        with np.errstate(divide="ignore"):
            log_uniforms = np.log(rng.random(len(here)))
        threshold = path.log_f(state, levels) + log_uniforms

        def moved(chains, values):
            """Some chains with another coordinate j, and which of them lie in their slices."""
            points = position[chains]
            points[:, j] = values
            new = path.at(points)
            return new, path.log_f(new, levels[chains]) >= threshold[chains]

        width = self._widths(path.ladder[levels], j)
        low, high = (side[j] for side in path.bounds)
        left, right = self._interval(here, width, low, high, threshold, moved, rng)
        todo = np.flatnonzero(threshold > -np.inf)  # a point of density 0 stays
        for _ in range(most_shrinks):
            if not len(todo):
                break
            drawn = left[todo] + rng.random(len(todo)) * (right[todo] - left[todo])
            new, inside = moved(todo, drawn)
            state = put(state, todo[inside], path.take(new, inside))
            todo = todo[~inside]
            drawn = drawn[~inside]
            below = drawn < here[todo]
            left[todo[below]] = drawn[below]
            right[todo[~below]] = drawn[~below]
        return state

    def _interval(self, here, width, low, high, threshold, moved, rng):
        """Ends (n,) of the interval of every chain, stepped out within the path's bounds."""
        n = len(here)
        left = here - width * rng.random(n)
        right = left + width
        share = np.floor(self.max_steps * rng.random(n))
        for ends, step, allowed in (
            (left, -width, share),
            (right, width, self.max_steps - 1 - share),
        ):
            todo = np.flatnonzero((allowed > 0) & (threshold > -np.inf))
            while len(todo):
                todo = todo[(low < ends[todo]) & (ends[todo] < high)]
                todo = todo[moved(todo, ends[todo])[1]]
                ends[todo] += step[todo]
                allowed[todo] -= 1
                todo = todo[allowed[todo] > 0]
        return np.maximum(left, low), np.minimum(right, high)

    def _widths(self, betas, j):
        if self.width != "auto":
            return np.full(len(betas), float(self.width))
        return self.frozen.step(betas) * self.frozen.scales(betas)[:, j]

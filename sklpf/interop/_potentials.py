"""Draws of several states: with their reduced potentials, as pymbar and alchemlyb hold them, or
with their log-likelihoods, as tempered ensemble samplers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sklpf._utils.numbers import Array, Integers
from sklpf._utils.validation import LARGEST, as_float64
from sklpf._utils.warnings import warn
from sklpf.partition import PotentialRun
from sklpf.uncertainty import count_interleaved, first_axis_is_time, rank_normalised


def from_pymbar(
    u_kn: Any,
    N_k: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    dudl: ArrayLike | None = None,
    lambdas: ArrayLike | None = None,
) -> PotentialRun:
    """Return draws of K states in pymbar's convention as a run, which `MBAR`, `BAR`,
    `SteppingStone`, `LevelProcess` and `ThermodynamicIntegration` read.

    Their log Z is that of the last state less that of the first, the negative of pymbar's reduced
    free energy difference; ``result_.log_partition_curve`` has all states.

    Draws that are not from the densities that they are said to be from raise an alarm where they
    show it. Often they can't: a factor near 1 that all potentials lack, such as a temperature 20 %
    off, stays unseen in four of ten sets, and none shows what lies beyond all draws, as in a
    larger box.

    Parameters
    ----------
    u_kn : array-like of shape (K, N), or pymbar.MBAR
        Reduced potentials u_k(x_n) = -log f_k(x_n) in nats, +inf where the density is 0: first
        those of the draws at state 0, then those at state 1, and so on, of each state in the order
        of their time and after equilibration. They need not be decorrelated. Where several walkers
        take turns at a state, as its draws show, they are read as such, with a warning.
    N_k : array-like of shape (K,)
        Draws at each state; 0 is allowed. Not given with a pymbar.MBAR, which has them.
    groups : array-like of shape (N,) or None, default=None
        Which independent group, such as a repetition of all simulations, each draw belongs to; each
        group must have draws at every state that has any. None cuts each state's draws into blocks
        by their statistical inefficiency.
    dudl : array-like of shape (N,) or None, default=None
        d u / d lambda of each draw at its own state, for `ThermodynamicIntegration`.
    lambdas : array-like of shape (K,) or None, default=None
        Coordinate of the states, over which `ThermodynamicIntegration` integrates; None: 0 to
        K - 1.

    Returns
    -------
    PotentialRun
        With a copy of the potentials.

    Raises
    ------
    TypeError
        If an array does not hold numbers.
    ValueError
        If shapes or numbers don't fit together, a potential is NaN or -inf, a draw has density 0 at
        its own state, or walkers take turns and have not the same number of draws.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_pymbar
    >>> from sklpf.partition import MBAR
    >>> scales, N_k = np.array([1.0, 1.5, 2.0]), [500, 500, 500]
    >>> x = np.random.default_rng(0).normal(scale=np.repeat(scales, N_k))
    >>> u_kn = 0.5 * (x / scales[:, np.newaxis]) ** 2
    >>> mbar = MBAR().fit(from_pymbar(u_kn, N_k))
    >>> bool(abs(mbar.log_partition_ - np.log(2.0)) < 0.1)
    True
    """
    if hasattr(u_kn, "u_kn") and hasattr(u_kn, "N_k"):
        state_of_column = getattr(u_kn, "x_kindices", None)  # what pymbar was told
        if state_of_column is not None and np.any(np.diff(state_of_column) < 0):
            raise ValueError(
                "u_kn must have its columns ordered by state, and x_kindices of this MBAR has"
                " another order: give its u_kn[:, np.argsort(x_kindices, kind='stable')] and N_k"
            )
        u_kn, N_k = u_kn.u_kn, u_kn.N_k
    if N_k is None:
        raise TypeError("from_pymbar needs N_k, the number of draws at each state")
    potentials = as_float64(u_kn, "u_kn")
    potentials = np.where(potentials > LARGEST, np.inf, potentials)  # of atoms that overlap
    if potentials.ndim != 2 or len(potentials) < 2:
        raise ValueError(
            f"u_kn must have shape (K, N) with at least 2 states, got {potentials.shape}; of shape"
            " (K, K, N) pymbar.utils.kln_to_kn makes it"
        )
    n_levels, n = potentials.shape
    counts = as_float64(N_k, "N_k")
    are_counts = np.all((counts >= 0) & (counts == np.floor(counts)))
    if counts.shape != (n_levels,) or not are_counts or counts.sum() != n:
        raise ValueError(
            f"N_k must be {n_levels} whole numbers of draws, one for each row of u_kn, whose sum is"
            f" that of its {n} columns, got {N_k!r:.80}: leave out columns that are no draws"
        )
    if counts.max() < 2:
        raise ValueError("N_k must have at least 2 draws of a state, got at most 1 of each")
    vectors = np.negative(potentials.T)
    if not vectors.max() < np.inf:  # NaN is not
        raise ValueError("u_kn must not hold NaN or -inf: leave out draws that failed")
    levels = np.repeat(np.arange(n_levels), counts.astype(np.int64))
    impossible = np.flatnonzero(vectors[np.arange(n), levels] == -np.inf)
    if len(impossible):
        raise ValueError(
            f"u_kn is +inf for draw {impossible[0]} at state {levels[impossible[0]]}, at which it"
            " was drawn: order the columns by state, as N_k has them"
        )
    slopes = np.empty((n, 0))
    if dudl is not None:
        slopes = -_one_for_each(dudl, n, "dudl")[:, np.newaxis]
    ladder = np.arange(n_levels, dtype=float)
    if lambdas is not None:
        ladder = _one_for_each(lambdas, n_levels, "lambdas")
    return PotentialRun(
        method="MBAR",
        ladder=ladder,
        vectors=vectors,
        levels=levels,
        given_groups=None if groups is None else _groups(groups, levels),
        slopes=slopes,
        walkers=_walkers(vectors, counts.astype(np.int64)) if groups is None else None,
    )


def _walkers(vectors: Array, counts: Integers) -> Integers | None:
    """Walkers that take turns in the draws of every state; None where none do."""
    n_states = len(counts)
    found = []
    for k, rows in enumerate(np.split(vectors, np.cumsum(counts)[:-1])):
        if len(rows):
            far = n_states - 1 if 2 * k < n_states else 0
            differences = (rows[:, far] - rows[:, k]).reshape(1, -1, 1)
            n_walkers = count_interleaved(rank_normalised(differences))  # without outliers
            found += [n_walkers] if n_walkers > 1 else []
    if not found:
        return None
    n_walkers = int(np.bincount(found).argmax())
    if np.any(counts % n_walkers):
        k = int(np.argmax(counts % n_walkers > 0))
        raise ValueError(
            f"u_kn must have as many draws of every walker, and {n_walkers} that take turns can't"
            f" have made {counts[k]} draws at state {k}: leave out draws of times that some lack"
        )
    warn(
        f"draws of each state are read as those of {n_walkers} walkers that take turns, as each is"
        f" like the one {n_walkers} later: only times are taken for independent"
    )
    return np.full(n_states, n_walkers)


def from_tempering(
    log_likelihoods: ArrayLike, betas: ArrayLike, *, prior_log_likelihoods: ArrayLike | None = None
) -> PotentialRun:
    """Return the draws of a tempered ensemble sampler, such as ptemcee, Eryn, reddemcee and
    pyPESTO, as a run, which `MBAR`, `BAR`, `SteppingStone` and `ThermodynamicIntegration` read.

    At inverse temperature beta the density is prior times likelihood to the power of beta, and log
    Z at beta = 1, less that of the prior, is the log evidence. Walkers share moves and swaps, so
    that the error comes from blocks of times, each with all walkers. Runs of few autocorrelation
    times of the whole ensemble are flagged; of ptemcee's runs of 250 to 1500 steps in eight
    dimensions that are not, 91 % of the intervals cover.

    Parameters
    ----------
    log_likelihoods : array-like of shape (K, n_steps, n_walkers) or (K, n_steps)
        Log-likelihood of every draw without the prior, in nats, after burn-in. Of an array (K,
        n_walkers, n_steps), such as ptemcee's ``loglikelihood``, the axes are exchanged, with a
        warning, where neighbours along the last are alike. Of Eryn
        ``np.moveaxis(backend.get_log_like(), 1, 0)``.
    betas : array-like of shape (K,)
        Inverse temperatures, in any order, fixed while these draws were made; one is 1.
    prior_log_likelihoods : array-like of shape (n,) or None, default=None
        Log-likelihoods of independent draws from the prior, -inf allowed, where `betas` have no 0:
        without them the part from the prior to the smallest beta is extrapolated by `MBAR`, with an
        alarm where that can't be trusted.

    Returns
    -------
    PotentialRun
        Its ``ladder`` is in ascending order, from 0 to 1.

    Raises
    ------
    TypeError
        If an array does not hold numbers.
    ValueError
        If shapes don't fit together, betas are not distinct numbers from 0 to 1, or a
        log-likelihood is NaN, +inf, or -inf at a beta above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sklpf.interop import from_tempering
    >>> from sklpf.partition import BAR
    >>> betas = np.linspace(0, 1, 6)
    >>> scales = 1 / np.sqrt(1 + 4 * betas)  # prior N(0, 1), likelihood exp(-2 x**2)
    >>> x = np.random.default_rng(0).normal(size=(6, 500, 4)) * scales[:, None, None]
    >>> bar = BAR().fit(from_tempering(-2 * x**2, betas))
    >>> bool(abs(bar.log_partition_ + 0.5 * np.log(5)) < 0.1)
    True
    """
    values = as_float64(log_likelihoods, "log_likelihoods")
    values = np.where(np.abs(values) > LARGEST, np.copysign(np.inf, values), values)
    betas = as_float64(betas, "betas")
    if values.ndim not in (2, 3) or betas.shape != values.shape[:1] or 0 in values.shape:
        raise ValueError(
            "log_likelihoods must have shape (levels, steps, walkers) or (levels, steps) and betas"
            f" (levels,), got {values.shape} and {betas.shape}: np.moveaxis brings the levels first"
        )
    if not (np.all((betas >= 0) & (betas <= 1)) and 1.0 in betas and len(set(betas)) == len(betas)):
        raise ValueError(f"betas must be distinct numbers from 0 to 1, and one be 1, got {betas}")
    if not values.max() < np.inf or np.any(values[betas > 0] == -np.inf):
        raise ValueError(
            "log_likelihoods must not hold NaN or +inf, nor -inf at a beta above 0: leave out"
            " steps that failed"
        )
    values, n_walkers = _by_time(values)

    order = np.argsort(betas)
    parts = [values[k].ravel() for k in order]
    walkers = np.full(len(betas), n_walkers)
    ladder = betas[order]
    if ladder[0] > 0:
        first = np.empty(0)
        if prior_log_likelihoods is not None:
            first = as_float64(prior_log_likelihoods, "prior_log_likelihoods")
            if first.ndim != 1 or not first.max(initial=-np.inf) < np.inf:
                raise ValueError(
                    "prior_log_likelihoods must have shape (n,), without NaN or +inf, got shape"
                    f" {first.shape}"
                )
        parts = [first, *parts]
        ladder = np.r_[0.0, ladder]
        walkers = np.r_[1, walkers]
    elif prior_log_likelihoods is not None:
        raise ValueError("prior_log_likelihoods must be None where betas have 0")
    each = np.concatenate(parts)
    with np.errstate(invalid="ignore"):
        vectors = np.where(ladder == 0, 0.0, ladder * each[:, np.newaxis])
    return PotentialRun(
        method="MBAR",
        ladder=ladder,
        vectors=vectors,
        levels=np.repeat(np.arange(len(ladder)), [len(part) for part in parts]),
        slopes=each[:, np.newaxis],
        walkers=walkers,
        to_draw="give prior_log_likelihoods, those of independent draws from the prior",
    )


def _by_time(values: Array) -> tuple[Array, int]:
    """Log-likelihoods (K, n_steps, n_walkers), or (K, n_steps * n_walkers) with those of a step one
    after another, and the number of walkers.
    """
    if values.ndim == 2:
        n_walkers = count_interleaved(rank_normalised(values.T[np.newaxis]))
        if n_walkers > 1:
            warn(
                f"log_likelihoods are read as those of {n_walkers} walkers that take turns, as each"
                f" is like the one {n_walkers} later: give them as (levels, steps, walkers)"
            )
        return values[:, : values.shape[1] // n_walkers * n_walkers], n_walkers
    if first_axis_is_time(values.transpose(2, 1, 0)):
        warn(
            "log_likelihoods are read as (levels, walkers, steps), as neighbours along their last"
            " axis are alike: give log_likelihoods.swapaxes(1, 2)"
        )
        values = values.swapaxes(1, 2)
    return values, values.shape[2]


def from_alchemlyb(u_nk: Any, dHdl: Any = None) -> PotentialRun:
    """Return alchemlyb's reduced potentials as a run, as `from_pymbar` does.

    Parameters
    ----------
    u_nk : pandas.DataFrame or list of pandas.DataFrame
        As alchemlyb's parsers and ``alchemlyb.concat`` give it: a column for every state, an index
        of the time and of the state's coordinates, in units of kT. Of a list each frame is an
        independent repetition, a group of the error.
    dHdl : pandas.DataFrame or list of pandas.DataFrame or None, default=None
        The gradients of the same draws, in one column, for `ThermodynamicIntegration`.

    Returns
    -------
    PotentialRun

    Raises
    ------
    TypeError
        If something is no DataFrame.
    ValueError
        If frames have other states or units, or rows of a state that has no column.

    Examples
    --------
    >>> from alchemlyb.parsing.gmx import extract_u_nk  # doctest: +SKIP
    >>> frames = [extract_u_nk(file, T=300) for file in files]  # doctest: +SKIP
    >>> run = from_alchemlyb(alchemlyb.concat(frames))  # doctest: +SKIP
    """
    frames = _frames(u_nk, "u_nk")
    if any(frame.index.nlevels < 2 for frame in frames):
        raise ValueError(
            "u_nk must have an index of the time and of the state, as alchemlyb's parsers give it"
        )
    states = list(frames[0].columns)
    if any(list(frame.columns) != states for frame in frames):
        raise ValueError("u_nk must have the same columns in all frames: the states in one order")
    places = {state: k for k, state in enumerate(states)}
    levels = []
    for frame in frames:
        rows = [key[1] if len(key) == 2 else tuple(key[1:]) for key in frame.index]
        unknown = next((row for row in rows if row not in places), None)
        if unknown is not None:
            raise ValueError(f"u_nk has draws at the state {unknown!r}, and no column of this name")
        levels.append(np.array([places[row] for row in rows], dtype=np.int64))
    level = np.concatenate(levels)
    for i, own in enumerate(levels):
        missing = np.setdiff1d(level, own)
        if len(missing):
            raise ValueError(
                f"u_nk[{i}] has no draws of the state {states[missing[0]]!r}, which others have: a"
                " list is of repetitions, so join frames of several states by alchemlyb.concat"
            )
    group = np.repeat(np.arange(len(frames)), [len(frame) for frame in frames])
    order = np.argsort(level, kind="stable")
    dudl = lambdas = None
    if dHdl is not None:
        gradients = _frames(dHdl, "dHdl")
        if any(each.shape[1] != 1 for each in gradients) or any(map(np.iterable, states)):
            raise ValueError("dHdl must have one column, for a single lambda")
        keys = [[key for frame in each for key in frame.index] for each in (frames, gradients)]
        if keys[0] != keys[1]:
            raise ValueError(
                "dHdl must have the rows of u_nk in the same order, by their index: take those of"
                " both with dHdl.loc[u_nk.index]"
            )
        flat = np.concatenate([frame.to_numpy(dtype=float) for frame in gradients])[:, 0]
        dudl = flat[order]
        lambdas = np.array(states, dtype=float)
    return from_pymbar(
        np.concatenate([frame.to_numpy(dtype=float) for frame in frames])[order].T,
        np.bincount(level, minlength=len(states)),
        groups=group[order] if len(frames) > 1 else None,
        dudl=dudl,
        lambdas=lambdas,
    )


def _frames(given: Any, name: str) -> Sequence[Any]:
    """The frames of a list, or of one; of energies in units of kT."""
    frames = given if isinstance(given, (list, tuple)) else [given]
    if not frames or not all(hasattr(frame, "columns") for frame in frames):
        raise TypeError(f"{name} must be a DataFrame of alchemlyb or a list of these")
    for frame in frames:
        unit = frame.attrs.get("energy_unit", "kT")
        if unit != "kT":
            raise ValueError(
                f"{name} must be in units of kT, got {unit}: take"
                " alchemlyb.postprocessors.units.to_kT"
            )
    return frames


def _one_for_each(values: ArrayLike, n: int, name: str) -> Array:
    values = as_float64(values, name)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(f"{name} must be {n} finite numbers, got shape {values.shape}")
    return values


def _groups(groups: ArrayLike, levels: Integers) -> Integers:
    """Groups as 0 to G - 1."""
    given = np.asarray(groups)
    if given.shape != levels.shape:
        raise ValueError(
            f"groups must name the group of each of {len(levels)} draws, got shape {given.shape}"
        )
    names, index = np.unique(given, return_inverse=True)
    if len(names) < 2:
        raise ValueError("groups must be at least 2, which are independent")
    states, place = np.unique(levels, return_inverse=True)
    seen = np.bincount(index * len(states) + place, minlength=len(names) * len(states))
    missing = np.argwhere(seen.reshape(len(names), len(states)) == 0)
    if len(missing):
        group, state = missing[0]
        raise ValueError(
            f"groups must each have draws of every state that was sampled, and group {names[group]}"
            f" has none of state {states[state]}: number the repetitions of each state alike"
        )
    return index.astype(np.int64)

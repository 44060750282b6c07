"""Programs that move chains, and what they leave: arrays, never states."""

from sklpf.programs._draws import Draws
from sklpf.programs._rounds import ExchangeRound, LevelRound
from sklpf.programs._tempering import TemperingRound

__all__ = ["Draws", "ExchangeRound", "LevelRound", "TemperingRound"]

# Shared with other folders.
# isort: split
from sklpf.programs._annealing import (  # noqa: F401
    ADAPTIVE_LADDERS,
    FEWEST_REVERSE,
    PILOT_NOISE_FACTOR,
    SETTLING,
    Arrivals,
    Plan,
    ancestor_weights_of,
    anneal_forward,
    anneal_populations,
    anneal_reverse,
    check_ends,
    enough_levels,
    n_settling,
    n_tuning_moves,
    plan_runs,
    settle,
    target_summaries,
    thinned,
)
from sklpf.programs._draws import MOST_DRAWS, draws_of, has_points, points_of  # noqa: F401
from sklpf.programs._exchange import move_ladders, run_scans, start_ladders  # noqa: F401
from sklpf.programs._learning import Learned, drift_between, learn  # noqa: F401
from sklpf.programs._programs import (  # noqa: F401
    Chains,
    anneal,
    check_alive,
    check_finite,
    log_q_sums,
    log_ratio,
    segments,
    temper,
    weighted_sums,
)
from sklpf.programs._rounds import NO_ROUNDS, Samples, doubling, with_round  # noqa: F401
from sklpf.programs._tempering import (  # noqa: F401
    END_SHARE,
    Setup,
    first_pass,
    pool_groups,
    run_round,
)

"""Programs that move chains, and what they leave: arrays, never states."""

from sklpf.programs._draws import Draws
from sklpf.programs._rounds import ExchangeRound, LevelRound
from sklpf.programs._tempering import TemperingRound

__all__ = ["Draws", "ExchangeRound", "LevelRound", "TemperingRound"]

# Shared with other folders.
# isort: split
from sklpf.programs._annealing import (  # noqa: F401
    FEWEST_REVERSE,
    PILOT_NOISE_FACTOR,
    SETTLING,
    Arrivals,
    ancestor_weights_of,
    anneal_forward,
    anneal_populations,
    anneal_reverse,
    enough_levels,
    n_settling,
    plan_runs,
    settle,
    target_summaries,
    thinned,
)
from sklpf.programs._draws import MOST_DRAWS, draws_of, has_points, points_of  # noqa: F401
from sklpf.programs._exchange import move_ladders, run_scans, start_ladders  # noqa: F401
from sklpf.programs._learning import Learned, drift_between, learn  # noqa: F401
from sklpf.programs._plan import (  # noqa: F401
    ADAPTIVE_LADDERS,
    NO_ROUNDS,
    Plan,
    check_alive,
    check_ends,
    check_finite,
    doubling,
    n_tuning_moves,
    segments,
    with_round,
)
from sklpf.programs._programs import (  # noqa: F401
    Chains,
    anneal,
    log_q_sums,
    log_ratio,
    temper,
    weighted_sums,
)
from sklpf.programs._rounds import Samples  # noqa: F401
from sklpf.programs._tempering import (  # noqa: F401
    END_SHARE,
    Setup,
    first_pass,
    pool_groups,
    run_round,
)

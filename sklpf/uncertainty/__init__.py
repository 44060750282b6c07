"""Monte Carlo error: jackknife over independent groups, and the Pareto shape of importance weights."""

from sklpf.uncertainty._jackknife import jackknife, log_mean_exp
from sklpf.uncertainty._pareto import pareto_shape

__all__ = ["jackknife", "log_mean_exp", "pareto_shape"]

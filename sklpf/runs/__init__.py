"""Programs that move chains, and the runs that they leave."""

from sklpf.runs._annealing import AnnealingRun
from sklpf.runs._continuous import ContinuousRun
from sklpf.runs._draws import Draws
from sklpf.runs._exchange import ExchangeRun
from sklpf.runs._populations import PopulationRun
from sklpf.runs._run import Run
from sklpf.runs._samples import LevelRun
from sklpf.runs._tempering import Round, TemperingRun

__all__ = [
    "AnnealingRun",
    "ContinuousRun",
    "Draws",
    "ExchangeRun",
    "LevelRun",
    "PopulationRun",
    "Round",
    "Run",
    "TemperingRun",
]

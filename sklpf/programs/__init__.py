"""Programs that move chains, and what they leave: arrays, never states."""

from sklpf.programs._draws import Draws
from sklpf.programs._exchange import ExchangeRound
from sklpf.programs._rounds import LevelRound
from sklpf.programs._tempering import TemperingRound

__all__ = ["Draws", "ExchangeRound", "LevelRound", "TemperingRound"]

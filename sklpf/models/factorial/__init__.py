"""The factorial mixture.

Training reads in three files: `fit` in `_model`, the starts, sweeps and moves that it makes in
`learning/_coordinate_ascent`, the objective (`elbo`) and the updates (`update`,
`update_hyperparameters`) in `learning/_posterior`. The likelihood of rows is in `_path`.
"""

from sklpf.models.factorial._model import FactorialMixture
from sklpf.models.factorial._path import FactorialPath

__all__ = [
    "FactorialMixture",
    "FactorialPath",
]

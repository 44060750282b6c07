"""The Bernoulli restricted Boltzmann machine, and what RBMs of other discrete units share with it.

Training reads in three files: `fit` in `_base`, the passes over the data (`Trainer.run`) in
`_learning`, the updates in `_learning_kernels`. The objective, log f of rows and log Z, is in
`_base` and `_path`; `_monitor` follows it during training.
"""

from sklpf.models.rbm._base import RBM, DiscreteRBM
from sklpf.models.rbm._checkpoints_path import RBMTrajectoryPath
from sklpf.models.rbm._model import BernoulliRBM, pseudo_log_likelihood
from sklpf.models.rbm._path import RBMPath

__all__ = [
    "BernoulliRBM",
    "DiscreteRBM",
    "RBM",
    "RBMPath",
    "RBMTrajectoryPath",
    "pseudo_log_likelihood",
]

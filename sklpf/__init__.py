"""sklpf: held-out log-likelihoods with error bars for models whose normalising constant is intractable."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `__getattr__` gives, for type checkers
    from sklpf.models import BernoulliRBM as BernoulliRBM
    from sklpf.models import BilinearGenerativeModel as BilinearGenerativeModel
    from sklpf.models import FactorialMixture as FactorialMixture
    from sklpf.models import LatentDirichletAllocation as LatentDirichletAllocation
    from sklpf.models import LinearGenerativeModel as LinearGenerativeModel
    from sklpf.models import MeanCovarianceRBM as MeanCovarianceRBM
    from sklpf.models import ProductOfExperts as ProductOfExperts
    from sklpf.models import compare as compare
    from sklpf.models._warm_up import warm_up as warm_up
    from sklpf.partition import AIS as AIS
    from sklpf.partition import BDMC as BDMC
    from sklpf.partition import HAIS as HAIS
    from sklpf.partition import RAISE as RAISE
    from sklpf.partition import RTS as RTS
    from sklpf.partition import SMC as SMC
    from sklpf.partition import Exact as Exact
    from sklpf.partition import LeftToRight as LeftToRight
    from sklpf.partition import ParallelTempering as ParallelTempering
    from sklpf.partition import PartitionEstimator as PartitionEstimator
    from sklpf.partition import PartitionResult as PartitionResult
    from sklpf.paths import Gaussian as Gaussian
    from sklpf.paths import GeometricPath as GeometricPath
    from sklpf.paths import Path as Path
    from sklpf.paths import StudentT as StudentT
    from sklpf.paths import Uniform as Uniform
    from sklpf.transitions import HMC as HMC
    from sklpf.transitions import RandomWalk as RandomWalk
    from sklpf.transitions import Slice as Slice

__version__ = "0.1.0"

# name -> module; imported at first use, so that `import sklpf` costs nothing
_PUBLIC = {
    "AIS": "sklpf.partition",
    "BDMC": "sklpf.partition",
    "BernoulliRBM": "sklpf.models",
    "Exact": "sklpf.partition",
    "BilinearGenerativeModel": "sklpf.models",
    "FactorialMixture": "sklpf.models",
    "Gaussian": "sklpf.paths",
    "GeometricPath": "sklpf.paths",
    "HAIS": "sklpf.partition",
    "HMC": "sklpf.transitions",
    "LeftToRight": "sklpf.partition",
    "LatentDirichletAllocation": "sklpf.models",
    "MeanCovarianceRBM": "sklpf.models",
    "LinearGenerativeModel": "sklpf.models",
    "ParallelTempering": "sklpf.partition",
    "PartitionEstimator": "sklpf.partition",
    "PartitionResult": "sklpf.partition",
    "Path": "sklpf.paths",
    "ProductOfExperts": "sklpf.models",
    "RAISE": "sklpf.partition",
    "RTS": "sklpf.partition",
    "SMC": "sklpf.partition",
    "RandomWalk": "sklpf.transitions",
    "Slice": "sklpf.transitions",
    "StudentT": "sklpf.paths",
    "Uniform": "sklpf.paths",
    "compare": "sklpf.models",
    "warm_up": "sklpf.models._warm_up",
}

__all__ = [*sorted(_PUBLIC), "__version__"]


if not TYPE_CHECKING:  # else every name would be known, misspelt ones too

    def __getattr__(name):
        if name in _PUBLIC:
            return getattr(importlib.import_module(_PUBLIC[name]), name)
        raise AttributeError(f"module 'sklpf' has no attribute {name!r}")


def __dir__():
    return __all__

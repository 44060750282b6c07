"""sklpf: held-out log-likelihoods with error bars for models whose normalising constant is
intractable.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `__getattr__` gives, for type checkers
    from sklpf.models import BernoulliRBM as BernoulliRBM
    from sklpf.models import BilinearGenerativeModel as BilinearGenerativeModel
    from sklpf.models import BoltzmannMachine as BoltzmannMachine
    from sklpf.models import CategoricalRBM as CategoricalRBM
    from sklpf.models import FactorialMixture as FactorialMixture
    from sklpf.models import GaussianRBM as GaussianRBM
    from sklpf.models import LatentDirichletAllocation as LatentDirichletAllocation
    from sklpf.models import LinearGenerativeModel as LinearGenerativeModel
    from sklpf.models import MeanCovarianceRBM as MeanCovarianceRBM
    from sklpf.models import ProductOfExperts as ProductOfExperts
    from sklpf.models import compare as compare
    from sklpf.models import compare_fits as compare_fits
    from sklpf.models import log_likelihood as log_likelihood
    from sklpf.models import score_interval as score_interval
    from sklpf.models._warm_up import warm_up as warm_up
    from sklpf.partition import AIS as AIS
    from sklpf.partition import BDMC as BDMC
    from sklpf.partition import HAIS as HAIS
    from sklpf.partition import RTS as RTS
    from sklpf.partition import SMC as SMC
    from sklpf.partition import AdaptiveSMC as AdaptiveSMC
    from sklpf.partition import BridgeSampling as BridgeSampling
    from sklpf.partition import Exact as Exact
    from sklpf.partition import LeftToRight as LeftToRight
    from sklpf.partition import ParallelTempering as ParallelTempering
    from sklpf.partition import PartitionEstimator as PartitionEstimator
    from sklpf.partition import PartitionResult as PartitionResult
    from sklpf.partition import UntilTrusted as UntilTrusted
    from sklpf.partition import check_draws as check_draws
    from sklpf.partition import compare_evidence as compare_evidence
    from sklpf.paths import Gaussian as Gaussian
    from sklpf.paths import GeometricPath as GeometricPath
    from sklpf.paths import Mixture as Mixture
    from sklpf.paths import Path as Path
    from sklpf.paths import StudentT as StudentT
    from sklpf.paths import Uniform as Uniform

__version__ = "0.1.0"

# names by their module; imported at first use, so that `import sklpf` costs nothing
_NAMES = {
    "sklpf.models": """
        BernoulliRBM BilinearGenerativeModel BoltzmannMachine CategoricalRBM FactorialMixture
        GaussianRBM LatentDirichletAllocation LinearGenerativeModel MeanCovarianceRBM
        ProductOfExperts compare compare_fits log_likelihood score_interval
    """,
    "sklpf.partition": """
        AIS AdaptiveSMC BDMC BridgeSampling Exact HAIS LeftToRight ParallelTempering
        PartitionEstimator PartitionResult RTS SMC UntilTrusted check_draws compare_evidence
    """,
    "sklpf.paths": """
        Gaussian GeometricPath Mixture Path StudentT Uniform
    """,
    "sklpf.models._warm_up": "warm_up",
}
_PACKAGES = [each.name for each in pkgutil.iter_modules(__path__) if not each.name.startswith("_")]
_PUBLIC = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*sorted(_PUBLIC), "__version__"]


if not TYPE_CHECKING:  # else every name would be known, misspelt ones too

    def __getattr__(name):
        if name in _PUBLIC:
            return getattr(importlib.import_module(_PUBLIC[name]), name)
        if name in _PACKAGES:
            return importlib.import_module(f"sklpf.{name}")
        raise AttributeError(f"module 'sklpf' has no attribute {name!r}")


def __dir__():
    return [*__all__, *_PACKAGES]

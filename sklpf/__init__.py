"""sklpf: held-out log-likelihoods with error bars for models whose normalising constant is
intractable.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `__getattr__` gives, for type checkers
    from sklpf._utils.sampling import importance_resample as importance_resample
    from sklpf._utils.sampling import inverse_cdf_sample as inverse_cdf_sample
    from sklpf.models import BernoulliRBM as BernoulliRBM
    from sklpf.models import BilinearGenerativeModel as BilinearGenerativeModel
    from sklpf.models import BoltzmannMachine as BoltzmannMachine
    from sklpf.models import FactorialMixture as FactorialMixture
    from sklpf.models import GaussianRBM as GaussianRBM
    from sklpf.models import LatentDirichletAllocation as LatentDirichletAllocation
    from sklpf.models import LinearGenerativeModel as LinearGenerativeModel
    from sklpf.models import MeanCovarianceRBM as MeanCovarianceRBM
    from sklpf.models import ProductOfExperts as ProductOfExperts
    from sklpf.models import compare as compare
    from sklpf.models import compare_fits as compare_fits
    from sklpf.models import log_likelihood as log_likelihood
    from sklpf.models import log_likelihood_with_error as log_likelihood_with_error
    from sklpf.models import score_interval as score_interval
    from sklpf.models._warm_up import warm_up as warm_up
    from sklpf.partition import AIS as AIS
    from sklpf.partition import BAR as BAR
    from sklpf.partition import BDMC as BDMC
    from sklpf.partition import HAIS as HAIS
    from sklpf.partition import MBAR as MBAR
    from sklpf.partition import RAISE as RAISE
    from sklpf.partition import RTS as RTS
    from sklpf.partition import SAMS as SAMS
    from sklpf.partition import SMC as SMC
    from sklpf.partition import AdaptiveRejection as AdaptiveRejection
    from sklpf.partition import BridgeSampling as BridgeSampling
    from sklpf.partition import Exact as Exact
    from sklpf.partition import ImportanceSampling as ImportanceSampling
    from sklpf.partition import LeftToRight as LeftToRight
    from sklpf.partition import LevelProcess as LevelProcess
    from sklpf.partition import MarkovMixture as MarkovMixture
    from sklpf.partition import ParallelTempering as ParallelTempering
    from sklpf.partition import PartitionEstimator as PartitionEstimator
    from sklpf.partition import PartitionResult as PartitionResult
    from sklpf.partition import RejectionSampling as RejectionSampling
    from sklpf.partition import SteppingStone as SteppingStone
    from sklpf.partition import ThermodynamicIntegration as ThermodynamicIntegration
    from sklpf.partition import WangLandau as WangLandau
    from sklpf.partition import compare_estimates as compare_estimates
    from sklpf.partition import compare_evidence as compare_evidence
    from sklpf.paths import Gaussian as Gaussian
    from sklpf.paths import GeometricPath as GeometricPath
    from sklpf.paths import Mixture as Mixture
    from sklpf.paths import Path as Path
    from sklpf.paths import StudentT as StudentT
    from sklpf.paths import Uniform as Uniform
    from sklpf.paths import iterated_conditional_modes as iterated_conditional_modes
    from sklpf.transitions import HMC as HMC
    from sklpf.transitions import RandomWalk as RandomWalk
    from sklpf.transitions import Slice as Slice

__version__ = "0.1.0"

# name -> module; imported at first use, so that `import sklpf` costs nothing
_PUBLIC = {
    "AIS": "sklpf.partition",
    "AdaptiveRejection": "sklpf.partition",
    "BAR": "sklpf.partition",
    "BDMC": "sklpf.partition",
    "BernoulliRBM": "sklpf.models",
    "BilinearGenerativeModel": "sklpf.models",
    "BoltzmannMachine": "sklpf.models",
    "BridgeSampling": "sklpf.partition",
    "Exact": "sklpf.partition",
    "FactorialMixture": "sklpf.models",
    "Gaussian": "sklpf.paths",
    "GaussianRBM": "sklpf.models",
    "GeometricPath": "sklpf.paths",
    "HAIS": "sklpf.partition",
    "HMC": "sklpf.transitions",
    "ImportanceSampling": "sklpf.partition",
    "LatentDirichletAllocation": "sklpf.models",
    "LeftToRight": "sklpf.partition",
    "LevelProcess": "sklpf.partition",
    "LinearGenerativeModel": "sklpf.models",
    "MBAR": "sklpf.partition",
    "MarkovMixture": "sklpf.partition",
    "MeanCovarianceRBM": "sklpf.models",
    "Mixture": "sklpf.paths",
    "ParallelTempering": "sklpf.partition",
    "PartitionEstimator": "sklpf.partition",
    "PartitionResult": "sklpf.partition",
    "Path": "sklpf.paths",
    "ProductOfExperts": "sklpf.models",
    "RAISE": "sklpf.partition",
    "RTS": "sklpf.partition",
    "RandomWalk": "sklpf.transitions",
    "RejectionSampling": "sklpf.partition",
    "SAMS": "sklpf.partition",
    "SMC": "sklpf.partition",
    "Slice": "sklpf.transitions",
    "SteppingStone": "sklpf.partition",
    "StudentT": "sklpf.paths",
    "ThermodynamicIntegration": "sklpf.partition",
    "Uniform": "sklpf.paths",
    "WangLandau": "sklpf.partition",
    "compare": "sklpf.models",
    "compare_estimates": "sklpf.partition",
    "compare_evidence": "sklpf.partition",
    "compare_fits": "sklpf.models",
    "importance_resample": "sklpf._utils.sampling",
    "inverse_cdf_sample": "sklpf._utils.sampling",
    "iterated_conditional_modes": "sklpf.paths",
    "log_likelihood": "sklpf.models",
    "log_likelihood_with_error": "sklpf.models",
    "score_interval": "sklpf.models",
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

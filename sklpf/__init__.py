"""sklpf: held-out log-likelihoods with error bars for models whose normalising constant is
intractable.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

from sklpf._utils import __version__

# ruff: noqa: I001  # isort would write an import for each name

if TYPE_CHECKING:  # what `__getattr__` gives, for type checkers
    from sklpf.comparing import (
        compare as compare,
        compare_fits as compare_fits,
    )
    from sklpf.models import (
        BernoulliRBM as BernoulliRBM,
        BilinearGenerativeModel as BilinearGenerativeModel,
        BoltzmannMachine as BoltzmannMachine,
        CategoricalRBM as CategoricalRBM,
        FactorialMixture as FactorialMixture,
        GaussianRBM as GaussianRBM,
        LatentDirichletAllocation as LatentDirichletAllocation,
        LinearGenerativeModel as LinearGenerativeModel,
        MeanCovarianceRBM as MeanCovarianceRBM,
        ProductOfExperts as ProductOfExperts,
    )
    from sklpf.models._warm_up import (
        warm_up as warm_up,
    )
    from sklpf.partition import (
        AIS as AIS,
        BDMC as BDMC,
        HAIS as HAIS,
        RTS as RTS,
        SMC as SMC,
        AdaptiveSMC as AdaptiveSMC,
        BridgeSampling as BridgeSampling,
        Exact as Exact,
        LeftToRight as LeftToRight,
        ParallelTempering as ParallelTempering,
        PartitionEstimator as PartitionEstimator,
        PartitionResult as PartitionResult,
        UntilTrusted as UntilTrusted,
        check_draws as check_draws,
        compare_evidence as compare_evidence,
    )
    from sklpf.scoring import (
        LikelihoodOutliers as LikelihoodOutliers,
        log_likelihood as log_likelihood,
    )
    from sklpf.paths import (
        Gaussian as Gaussian,
        GeometricPath as GeometricPath,
        Mixture as Mixture,
        Path as Path,
        StudentT as StudentT,
        Uniform as Uniform,
    )
    from sklpf.variational import (
        Tempering as Tempering,
    )

# names by their module; imported at first use, so that `import sklpf` costs nothing
_NAMES = {
    "sklpf.comparing": "compare compare_fits",
    "sklpf.scoring": "LikelihoodOutliers log_likelihood",
    "sklpf.models": """
        BernoulliRBM BilinearGenerativeModel BoltzmannMachine CategoricalRBM FactorialMixture
        GaussianRBM LatentDirichletAllocation LinearGenerativeModel MeanCovarianceRBM
        ProductOfExperts
    """,
    "sklpf.partition": """
        AIS AdaptiveSMC BDMC BridgeSampling Exact HAIS LeftToRight ParallelTempering
        PartitionEstimator PartitionResult RTS SMC UntilTrusted check_draws compare_evidence
    """,
    "sklpf.paths": """
        Gaussian GeometricPath Mixture Path StudentT Uniform
    """,
    "sklpf.models._warm_up": "warm_up",
    "sklpf.variational": "Tempering",
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

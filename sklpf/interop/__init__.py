"""Score what other libraries hold: their RBMs, topic models, spin models and decoders as models of
this library, and Bayesian models as paths.

Models are recognised by their class's name and read by their attributes, so that nothing is
imported. From then on they are like any other: `score`, `score_interval`, `compare` with models of
any origin.
"""

from sklpf.interop._decoder import from_decoder
from sklpf.interop._dimod import from_dimod
from sklpf.interop._fitted_models import from_gensim, from_sklearn, from_tomotopy
from sklpf.interop._numpyro import from_numpyro
from sklpf.interop._parameter_path import ParameterPath
from sklpf.interop._potentials import from_alchemlyb, from_pymbar, from_tempering
from sklpf.interop._prior_transform import PriorTransformPath, from_prior_transform
from sklpf.interop._pymc import from_pymc
from sklpf.interop._stan import from_stan
from sklpf.interop._torch import from_torch

__all__ = [
    "ParameterPath",
    "PriorTransformPath",
    "from_alchemlyb",
    "from_decoder",
    "from_dimod",
    "from_gensim",
    "from_numpyro",
    "from_prior_transform",
    "from_pymbar",
    "from_pymc",
    "from_sklearn",
    "from_stan",
    "from_tempering",
    "from_tomotopy",
    "from_torch",
]

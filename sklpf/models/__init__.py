"""Models with a log-likelihood, in the conventions of the scikit-learn classes that they replace."""

from sklpf.models._compare import compare
from sklpf.models._factorial import FactorialMixture
from sklpf.models._factorial_path import FactorialPath
from sklpf.models._factorial_posterior import FactorialPosterior
from sklpf.models._lda import LatentDirichletAllocation
from sklpf.models._lda_path import LDAPath
from sklpf.models._likelihood import ScoreInterval
from sklpf.models._rbm import BernoulliRBM
from sklpf.models._rbm_path import RBMPath

__all__ = [
    "BernoulliRBM",
    "FactorialMixture",
    "FactorialPath",
    "FactorialPosterior",
    "LDAPath",
    "LatentDirichletAllocation",
    "RBMPath",
    "ScoreInterval",
    "compare",
]

"""Models with a log-likelihood, in the conventions of the scikit-learn classes that they
replace.
"""

from sklpf.models._enumerable_path import CategoricalUnits
from sklpf.models.bilinear._model import BilinearGenerativeModel
from sklpf.models.bilinear._path import BilinearPath
from sklpf.models.boltzmann._model import BoltzmannMachine
from sklpf.models.boltzmann._path import BoltzmannPath
from sklpf.models.categorical_rbm._model import CategoricalRBM
from sklpf.models.comparing._compare import ModelComparison, compare, score_interval
from sklpf.models.comparing._compare_fits import compare_fits
from sklpf.models.comparing._fit_comparison import FitComparison, FitInterval
from sklpf.models.decoder._importance import DecoderImportance
from sklpf.models.decoder._model import DecoderModel
from sklpf.models.decoder._path import DecoderPath
from sklpf.models.factorial._model import FactorialMixture
from sklpf.models.factorial._path import FactorialPath
from sklpf.models.factorial.learning._posterior import FactorialPosterior
from sklpf.models.gaussian_rbm._model import GaussianRBM
from sklpf.models.gaussian_rbm._path import GaussianRBMDensityPath, GaussianRBMPath
from sklpf.models.lda._model import LatentDirichletAllocation
from sklpf.models.lda._path import LDAPath
from sklpf.models.linear._model import LinearGenerativeModel
from sklpf.models.linear._path import LinearPath
from sklpf.models.mcrbm._model import MeanCovarianceRBM
from sklpf.models.mcrbm._path import MeanCovariancePath
from sklpf.models.products._model import ProductOfExperts
from sklpf.models.products._path import ProductPath
from sklpf.models.rbm._checkpoints_path import RBMTrajectoryPath
from sklpf.models.rbm._model import BernoulliRBM
from sklpf.models.rbm._path import RBMPath
from sklpf.models.scoring._scored import ScoreInterval
from sklpf.models.scoring._searches import log_likelihood, log_likelihood_with_error

__all__ = [
    "BernoulliRBM",
    "BilinearGenerativeModel",
    "BilinearPath",
    "BoltzmannMachine",
    "BoltzmannPath",
    "CategoricalRBM",
    "CategoricalUnits",
    "DecoderImportance",
    "DecoderModel",
    "DecoderPath",
    "FactorialMixture",
    "FactorialPath",
    "FactorialPosterior",
    "FitComparison",
    "FitInterval",
    "GaussianRBM",
    "GaussianRBMDensityPath",
    "GaussianRBMPath",
    "LDAPath",
    "LatentDirichletAllocation",
    "MeanCovariancePath",
    "MeanCovarianceRBM",
    "ModelComparison",
    "ProductOfExperts",
    "ProductPath",
    "LinearGenerativeModel",
    "LinearPath",
    "RBMPath",
    "RBMTrajectoryPath",
    "ScoreInterval",
    "compare",
    "compare_fits",
    "log_likelihood",
    "log_likelihood_with_error",
    "score_interval",
]

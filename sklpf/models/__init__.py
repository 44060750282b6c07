"""Models with a log-likelihood, in the conventions of the scikit-learn classes that they
replace.
"""

from sklpf.models._enumerable_path import CategoricalUnits
from sklpf.models.bilinear import BilinearGenerativeModel, BilinearPath
from sklpf.models.boltzmann import BoltzmannMachine, BoltzmannPath
from sklpf.models.categorical_rbm import CategoricalRBM
from sklpf.models.decoder import DecoderImportance, DecoderModel, DecoderPath
from sklpf.models.factorial import FactorialMixture, FactorialPath
from sklpf.models.factorial.learning import FactorialPosterior
from sklpf.models.gaussian_rbm import GaussianRBM, GaussianRBMDensityPath, GaussianRBMPath
from sklpf.models.lda import LatentDirichletAllocation, LDAPath
from sklpf.models.linear import LinearGenerativeModel, LinearPath
from sklpf.models.mcrbm import MeanCovariancePath, MeanCovarianceRBM
from sklpf.models.products import ProductOfExperts, ProductPath
from sklpf.models.rbm import BernoulliRBM, RBMPath, RBMTrajectoryPath

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
    "GaussianRBM",
    "GaussianRBMDensityPath",
    "GaussianRBMPath",
    "LDAPath",
    "LatentDirichletAllocation",
    "MeanCovariancePath",
    "MeanCovarianceRBM",
    "ProductOfExperts",
    "ProductPath",
    "LinearGenerativeModel",
    "LinearPath",
    "RBMPath",
    "RBMTrajectoryPath",
]

"""Latent Dirichlet allocation.

Training reads in three files: `fit` in `_model`, the passes that it makes in
`learning/_variational_bayes`, the objective (`bound`) and the updates (`infer`, `update`) in
`learning/_posterior`. Gibbs sampling is in `learning/_gibbs`, the likelihood of documents in
`_path`.
"""

from sklpf.models.lda._model import LatentDirichletAllocation
from sklpf.models.lda._path import LDAPath

__all__ = [
    "LDAPath",
    "LatentDirichletAllocation",
]

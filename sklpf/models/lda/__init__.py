"""Latent Dirichlet allocation.

Training reads in three files: `fit` in `_model`, which calls `learning/_variational_bayes` (passes
over the documents), and the objective and the updates in `learning/_posterior`. Gibbs sampling is
all in `learning/_gibbs`, and the likelihood of documents in `_path`.
"""

from sklpf.models.lda._model import LatentDirichletAllocation
from sklpf.models.lda._path import LDAPath

__all__ = ["LDAPath", "LatentDirichletAllocation"]

"""Latent Dirichlet allocation."""

from sklpf.models.lda._model import LatentDirichletAllocation
from sklpf.models.lda._path import LDAPath

__all__ = ["LDAPath", "LatentDirichletAllocation"]

"""Learning topics: variational Bayes, tempered or not, and collapsed Gibbs sampling."""

# ruff: noqa: F401

from sklpf.models.lda.learning._gibbs import fit_gibbs
from sklpf.models.lda.learning._posterior import Topics, posterior_of
from sklpf.models.lda.learning._variational_bayes import (
    Training,
    fit_variational,
    update_variational,
)

"""Topics that another library has learned, as the Dirichlet parameters of a model of this one."""

from __future__ import annotations

from typing import Any

from sklpf.models import LatentDirichletAllocation


def learned_topics(components: Any, parameters: dict[str, Any]) -> LatentDirichletAllocation:
    """Return a model with these Dirichlet parameters, whatever their sums are: they are no
    probabilities.
    """
    model = LatentDirichletAllocation.from_topics(components, **parameters)
    model.components_ = (
        components  # which `from_topics` takes for probabilities where rows sum to 1
    )
    return model

"""sklpf: held-out log-likelihoods with error bars for models whose normalising constant is intractable."""

import importlib

__version__ = "0.1.0"

# name -> module; imported at first use, so that `import sklpf` costs nothing
_PUBLIC = {
    "AIS": "sklpf.partition",
    "BDMC": "sklpf.partition",
    "BernoulliRBM": "sklpf.models",
    "Exact": "sklpf.partition",
    "FactorialMixture": "sklpf.models",
    "LeftToRight": "sklpf.partition",
    "LatentDirichletAllocation": "sklpf.models",
    "ParallelTempering": "sklpf.partition",
    "PartitionEstimator": "sklpf.partition",
    "PartitionResult": "sklpf.partition",
    "Path": "sklpf.paths",
    "RAISE": "sklpf.partition",
    "RTS": "sklpf.partition",
    "compare": "sklpf.models",
}

__all__ = [*sorted(_PUBLIC), "__version__"]


def __getattr__(name):
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'sklpf' has no attribute {name!r}")


def __dir__():
    return __all__

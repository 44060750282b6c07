"""Elementary sampling: by the inverse of a distribution function, and by resampling."""

from sklpf.sampling._elementary import importance_resample, inverse_cdf_sample

__all__ = ["importance_resample", "inverse_cdf_sample"]

"""The linear generative model."""

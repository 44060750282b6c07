"""The bilinear generative model."""

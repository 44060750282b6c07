"""Comparing models that are fitted, and fits of models and pipelines."""

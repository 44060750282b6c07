"""Helpers that know no partition function: parallel runs, progress, tables, scikit-learn."""

__version__ = "0.1.0"

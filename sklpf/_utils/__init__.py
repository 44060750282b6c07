"""Helpers that know no partition function: parallel runs, progress, tables, scikit-learn."""

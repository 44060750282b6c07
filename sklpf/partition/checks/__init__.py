"""Checks: what speaks against a path, a run or a number."""

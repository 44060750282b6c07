"""Products of experts."""

"""The log ratio of two models' Z by a run along a path from one to the other."""

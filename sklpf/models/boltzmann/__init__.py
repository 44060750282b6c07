"""The Boltzmann machine without hidden units: pairwise models of binary variables."""

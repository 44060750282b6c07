"""How a Gaussian RBM learns."""

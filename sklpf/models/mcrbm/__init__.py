"""Mean-covariance restricted Boltzmann machine."""

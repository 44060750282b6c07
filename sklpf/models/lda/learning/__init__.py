"""Learning topics: variational Bayes, tempered or not, and collapsed Gibbs sampling."""

"""Likelihoods of models with one log Z and with one a row, and what makes a score of them."""

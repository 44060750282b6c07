"""Learning weights by persistent contrastive divergence."""

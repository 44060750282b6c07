"""The Gaussian RBM: real visible units with learned variances, binary hidden units."""

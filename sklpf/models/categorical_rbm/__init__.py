"""The categorical RBM: visible units of several categories, binary hidden units."""

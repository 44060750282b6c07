"""A numba kernel of the training of Gaussian RBMs."""

import numpy as np

from sklpf.kernels import exp32, njit


@njit
def draw_in_turn(inputs, couplings, uniforms, h, change):
    """Draw k hidden units of n chains in turn, each given all others.

    inputs (n, k) are those by all units, with the units' own couplings (k, k), and are overwritten;
    h (n, k) holds 0 or 1; change (n, k) becomes the difference to what it was. All are float32.
    """
    n, k = change.shape
    one = np.float32(1.0)
    for c in range(n):
        for j in range(k):
            given_others = inputs[c, j] - h[c, j] * couplings[j, j]
            drawn = np.float32(uniforms[c, j] * (one + exp32(-given_others)) < one)
            difference = drawn - h[c, j]
            change[c, j] = difference
            h[c, j] = drawn
            if difference != 0:
                for other in range(j + 1, k):
                    inputs[c, other] += difference * couplings[j, other]

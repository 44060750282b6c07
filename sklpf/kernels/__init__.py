"""Numba code that several models share. Only kernel modules import this package, and they are
imported lazily.
"""

# ruff: noqa: F401

from sklpf.kernels._compile import BORROWS, OPTIONS, SUMS, WIDE, borrowing, inlined, njit, summing
from sklpf.kernels._exponentials import (
    exp32,
    exp64,
    log64,
    softplus_sum,
    softplus_sum_and_sigmoids,
)
from sklpf.kernels._layers import (
    Layer,
    add_layer,
    add_rows,
    change_units,
    layer,
    list_units,
    transpose,
)
from sklpf.kernels._programs import compiled, implements, program, tempered
from sklpf.kernels._random import (
    ACCEPT,
    FIRST,
    SECOND,
    SWAP,
    bits_of_one_chain,
    draw_categories,
    draw_units,
    random_bits,
    uniform,
)

"""Numba code that several models share. Only kernel modules import this package, and they are
imported lazily.
"""

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

__all__ = [
    "ACCEPT",
    "BORROWS",
    "FIRST",
    "Layer",
    "OPTIONS",
    "SECOND",
    "SUMS",
    "SWAP",
    "WIDE",
    "add_layer",
    "add_rows",
    "bits_of_one_chain",
    "borrowing",
    "change_units",
    "compiled",
    "draw_categories",
    "draw_units",
    "exp32",
    "exp64",
    "implements",
    "inlined",
    "layer",
    "list_units",
    "log64",
    "njit",
    "program",
    "random_bits",
    "softplus_sum",
    "softplus_sum_and_sigmoids",
    "summing",
    "tempered",
    "transpose",
    "uniform",
]

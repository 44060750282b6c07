"""Numbers that compiled programs, plain loops and those who read their sums must agree on, and an
error.
"""

import math

LOG_2 = math.log(2.0)
MAX_EXPONENT = 600.0  # larger log ratios are counted as this in sums of exp, which so stay finite
# sweeps of replica exchange, after which derivatives are added up, and states kept at the most
RECORD_EVERY = 4
Q_OFFSET = 600.0  # q(level | x) is summed as exp(log q + 600), which keeps terms down to e^-1300
LARGEST_KICK = 5.0  # of a velocity N(0, 1) in half a step of HMC


class BadValue(ValueError):
    """A density can't be used at some point; compiled programs can't say where."""

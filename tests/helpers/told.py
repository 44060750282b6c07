"""Estimators that say what they are told."""

from sklpf import Exact, PartitionEstimator, PartitionResult
from sklpf.partition import Alarm


class Says(PartitionEstimator):
    """A number, and whether it is to be trusted; counts its runs."""

    runs = 0

    def __init__(self, log_partition=0.0, std_error=0.01, trusted=True, random_state=None):
        self.log_partition = log_partition
        self.std_error = std_error
        self.trusted = trusted
        self.random_state = random_state

    def _estimate(self, path, seed):
        Says.runs += 1
        alarms = () if self.trusted else (Alarm("told", "it was told so", "raise n_chains"),)
        return PartitionResult("Says", self.log_partition, self.std_error, alarms=alarms)


class Shifted(PartitionEstimator):
    """The exact number moved by some nats, as if it were an estimate."""

    def __init__(self, shift, std_error=0.01, random_state=None):
        self.shift = shift
        self.std_error = std_error
        self.random_state = random_state

    def _estimate(self, path, seed):
        value = Exact().fit(path).log_partition_ + self.shift
        return PartitionResult("Shifted", value, self.std_error)

"""Readings: what a run says of log Z, with its alarms, and the one way to a result."""

from sklpf._utils.alarm import Alarm
from sklpf.readings._diagnostics import Diagnostic
from sklpf.readings._reading import Reading, conclude, read
from sklpf.readings._result import PartitionResult

__all__ = ["Alarm", "Diagnostic", "PartitionResult", "Reading", "conclude", "read"]

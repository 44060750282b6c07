"""Runs that are interrupted, and what they save."""

import contextlib
import functools
import inspect
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import sklpf
from sklpf._utils.parallel import Checkpoint


@contextlib.contextmanager
def saves(interrupt_at=None):
    """Give the list of (part of a run, segment) that are saved within; interrupt what runs there
    once so many are.
    """
    save, saved = Checkpoint.save, []

    def watched(self, *arguments):
        if len(saved) == interrupt_at:
            raise KeyboardInterrupt
        save(self, *arguments)
        saved.append(arguments[:2])

    expected = (
        contextlib.nullcontext() if interrupt_at is None else pytest.raises(KeyboardInterrupt)
    )
    with mock.patch.object(Checkpoint, "save", watched), expected:
        yield saved


def kept_files():
    """Within, runs that end keep their files, as if interrupted at the very end."""
    return mock.patch.object(Checkpoint, "remove", return_value=None)


@contextlib.contextmanager
def interrupted(at_line):
    """Interrupt what runs within before so many lines of models and of their training have run;
    gives a list that holds how many there were.
    """
    package = str(Path(sklpf.__file__).parent)
    counted = [0]

    def trace(frame, event, argument):
        file = frame.f_code.co_filename
        if not file.startswith(package) or file.endswith(("_learning.py", "parallel.py")):
            return None
        if event == "line":
            counted[0] += 1
            if counted[0] == at_line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            yield counted
    finally:
        sys.settrace(before)


def bits(thing):
    """All that an object holds, nested: equal for equal bits, whatever is shared within."""
    if isinstance(thing, np.ndarray):
        return str(thing.dtype), thing.shape, thing.tobytes()
    if isinstance(thing, np.random.RandomState):
        return bits(thing.get_state())
    if isinstance(thing, np.random.Generator):
        return bits(thing.bit_generator.state)
    if isinstance(thing, dict):
        return tuple((name, bits(value)) for name, value in sorted(thing.items()))
    if isinstance(thing, (tuple, list)):
        return tuple(bits(each) for each in thing)
    if isinstance(thing, functools.partial):
        return bits((thing.func, thing.args, thing.keywords))
    if inspect.isroutine(thing):
        return thing.__qualname__
    if hasattr(thing, "__dict__"):
        return type(thing).__name__, bits(vars(thing))
    return type(thing).__name__, str(thing)

"""Runs that are interrupted, and what they save."""

import contextlib
from unittest import mock

import pytest

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

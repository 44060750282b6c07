"""Alarms: why a number should not be trusted, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Alarm:
    """One reason not to trust a number.

    Attributes
    ----------
    kind : str
        Its name, by which alarms are grouped: the key of its paragraph in the guide's pages of
        alarms.
    seen : str
        The finding, with its numbers.
    remedy : str
        What the user can do.
    """

    kind: str
    seen: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.seen}: {self.remedy}" if self.remedy else self.seen

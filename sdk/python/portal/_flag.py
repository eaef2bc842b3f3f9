"""The 64 bytes that job and agent share: one byte that asks, and the job's counters (little endian)."""

from __future__ import annotations

import mmap
import os
from typing import Any

SIZE = 64


ALWAYS = b"\1"


class Flag:
    """`asked[0]` is true when the job has to go to its socket; `turns[0]` and `progress[0:2]` are the job's to write.

    Loops keep this object for as long as they run, so it is changed in place where the job asks itself, and in a child.
    """

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._map: Any = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)
        self._show(memoryview(self._map))
        self.progress[0] = self.progress[1] = float("nan")

    def _show(self, view: memoryview) -> None:
        self._by_agent = view[0:1]
        self.asked: Any = self._by_agent
        self.turns: Any = view[8:16].cast("Q")
        self.progress: Any = view[16:32].cast("d")

    def ask(self) -> None:
        """The job itself asks, until `answered`."""
        self.asked = ALWAYS

    def answered(self) -> None:
        self.asked = self._by_agent

    def detach(self) -> None:
        """In a child of the job: nobody asks, nobody looks."""
        self._show(memoryview(bytearray(SIZE)))


class NoFlag(Flag):
    """Outside Portal."""

    def __init__(self) -> None:
        self.detach()

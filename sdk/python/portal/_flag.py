"""The 64 bytes that job and agent share: one byte that asks, and the job's counters (little endian)."""

from __future__ import annotations

import mmap
import os
from typing import Any

SIZE = 64


class Flag:
    """`asked[0]` is 1 when the agent wants the job at its socket; `turns[0]` and `progress[0:2]` are the job's."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._map = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)
        view = memoryview(self._map)
        self.asked: Any = view[0:1]
        self.turns: Any = view[8:16].cast("Q")
        self.progress: Any = view[16:32].cast("d")
        self.progress[0] = self.progress[1] = float("nan")


class NoFlag:
    """Outside Portal, and in a child of the job: nobody asks, nobody looks."""

    def __init__(self) -> None:
        view = memoryview(bytearray(SIZE))
        self.asked: Any = view[0:1]
        self.turns: Any = view[8:16].cast("Q")
        self.progress: Any = view[16:32].cast("d")

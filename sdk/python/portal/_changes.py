"""Classes and functions are carried by name; what the job changed on them since `job.state()` would be lost."""

from __future__ import annotations

from typing import Any, List

from ._refusal import Refusal
from ._walk import Walk


class Snapshot:
    def __init__(self, state: Any) -> None:
        pass

    def changed(self, walk: Walk) -> List[Refusal]:
        return []

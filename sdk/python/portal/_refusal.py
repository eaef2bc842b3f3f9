"""What a checkpoint cannot carry, by name (K-STRICT-1)."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

LIMIT = 1000
TEXT = 1000


class Refusal(NamedTuple):
    """One value that cannot be carried: where it is, what it is, why not, and what to do."""

    path: str
    type: str
    reason: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}: {self.type}: {self.reason}; {self.advice}"


class CannotRestore(Exception):
    """A restore is refused; the attempt must not run on what is there now."""

    def __init__(self, refusals: List[Refusal], why: str) -> None:
        super().__init__(why)
        self.refusals = refusals
        self.why = why


def to_wire(refusals: List[Refusal], more: int = 0) -> List[Dict[str, Any]]:
    """All of them, at most 1,000 and a last one that counts the rest; `more` were found that have no refusal here."""
    shown = [{name: short(text) for name, text in refusal._asdict().items()} for refusal in refusals[:LIMIT]]
    rest = len(refusals) - len(shown) + more
    if rest > 0:
        shown.append({
            "path": "…",
            "type": "",
            "reason": f"and {rest} more values",
            "advice": "the ones named here come first",
        })
    return shown


def short(text: str) -> str:
    """A text that fits the wire, its middle left out where it is too long."""
    return text if len(text) <= TEXT else f"{text[: TEXT // 2]} … {text[-TEXT // 2 :]}"


def type_name(kind: type) -> str:
    """`socket.socket`, `list`: as a person would write it."""
    module = getattr(kind, "__module__", "")
    name = getattr(kind, "__qualname__", getattr(kind, "__name__", "?"))
    return name if module in ("builtins", "", None) else f"{module}.{name}"

"""Where a value lies in the state. Paths are built only for values that are named to somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from . import _globals

if TYPE_CHECKING:
    from ._graph import Graph

# A longer path shows its two ends.
STEPS = 200
KEY = 80
# The parts of a reduce that have names.
KNOWN_PARTS = {"partial": ("func", "args", "keywords"), "defaultdict": ("default_factory",)}


class Paths:
    """Finds the steps from the state to a node of a walk, looking for each child in its parent by identity."""

    def __init__(self, walk: "Graph") -> None:
        self._walk = walk
        self._labels: Dict[int, Tuple[str, Tuple[str, ...]]] = {}

    def label(self, value: Any, step: str, items: Tuple[str, ...] = ()) -> None:
        """How the step to an object is called that the walk made itself, and the steps to its items."""
        if value is not None and value != ():
            self._labels[id(value)] = (step, items)

    def of_node(self, node: int) -> List[str]:
        """The path of a node, one for each key that leads to it from its parent."""
        parent = self._walk.parents[node]
        if parent < 0:
            return [self._base(node)]
        return self.of_child(parent, self._walk.nodes[node])

    def of_child(self, node: int, child: Any) -> List[str]:
        nodes, parents = self._walk.nodes, self._walk.parents
        steps: List[str] = []
        at = node
        while parents[at] >= 0:
            steps.append(self._steps(parents[at], nodes[at])[0])
            at = parents[at]
        steps.append(self._base(at))
        steps.reverse()
        if len(steps) > STEPS:
            half = STEPS // 2
            steps = [*steps[:half], f"…({len(steps) - STEPS} steps)…", *steps[-half:]]
        known = self._known_part(node, child)
        if known is not None:
            return ["".join(steps[:-1]) + known]
        prefix = "".join(steps)
        return [prefix + step for step in self._steps(node, child)]

    def _known_part(self, node: int, child: Any) -> Optional[str]:
        """The attribute by which a person knows a part of a reduce."""
        if id(self._walk.nodes[node]) not in self._labels or self._walk.parents[node] < 0:
            return None
        owner = self._walk.nodes[self._walk.parents[node]]
        for name in KNOWN_PARTS.get(type(owner).__name__, ()):
            if getattr(owner, name, None) is child:
                return f".{name}"
        return None

    def _base(self, node: int) -> str:
        return "state" if node == 0 else ""

    def _steps(self, node: int, child: Any) -> List[str]:
        made = self._labels.get(id(child))
        if made is not None:
            return [made[0]]
        return list(self._search(node, child)) or [".…"]

    def _search(self, node: int, child: Any) -> Iterator[str]:
        parent = self._walk.nodes[node]
        made = self._labels.get(id(parent))
        if made is not None and made[1]:
            yield from (step for step, item in zip(made[1], parent) if item is child)
            return
        if node and self._walk.parents[node] < 0:
            yield from (name for name, value in parent.items() if value is child)
            return
        if isinstance(parent, dict):
            yield from self._in_dict(parent, child, self._walk.is_fields(parent) or made is not None)
        elif isinstance(parent, (list, tuple)) or type(parent).__name__ == "deque":
            yield from (f"[{index}]" for index, value in enumerate(parent) if value is child)
        elif isinstance(parent, (set, frozenset)):
            yield from (f"{{{key_text(value)}}}" for value in parent if value is child)
        elif type(parent).__name__ == "ndarray" and parent.dtype.hasobject:
            yield from (f"[{index}]" for index, value in enumerate(parent.reshape(-1).tolist()) if value is child)
        yield from self._in_fields(parent, child)

    def _in_dict(self, parent: Dict[Any, Any], child: Any, fields: bool) -> Iterator[str]:
        for index, (key, value) in enumerate(dict.items(parent)):
            if value is child:
                yield f".{key}" if fields and isinstance(key, str) else f"[{key_text(key)}]"
            if key is child:
                yield f".keys()[{index}]"

    def _in_fields(self, parent: Any, child: Any) -> Iterator[str]:
        try:
            fields = object.__getattribute__(parent, "__dict__")
        except Exception:
            fields = {}
        if isinstance(fields, dict):
            yield from (f".{name}" for name, value in fields.items() if value is child)
        for base in type(parent).__mro__[:-1]:
            for name in _globals.slot_names(base):
                if any(value is child for value in _globals.slot(parent, name)):
                    yield f".{name}"
        for name in ("__self__", "__func__", "base"):
            try:
                if getattr(parent, name, None) is child and not fields:
                    yield f".{name}"
            except Exception:
                continue


def key_text(key: Any) -> str:
    """A key as it would be written; of what would run code of the job's own, only the type."""
    plain = (str, int, float, bool, bytes, complex, type(None))
    if type(key) in plain or (type(key) in (tuple, frozenset) and all(type(part) in plain for part in key)):
        text = repr(key)
        return text if len(text) <= KEY else text[:KEY] + "…"
    return f"<{type(key).__qualname__}>"

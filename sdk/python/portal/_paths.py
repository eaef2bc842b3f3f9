"""Where a value lies in the state. Paths are built only for values that are named to somebody."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from . import _globals

if TYPE_CHECKING:
    from ._graph import Graph

# A longer path shows its two ends.
STEPS = 200
KEY = 80
# After so many questions about one parent, all that it holds is listed once.
ASKED = 8
PLAIN = {int, float, bool, str, bytes, type(None)}
# The parts of a reduce that have names.
KNOWN_PARTS = {"partial": ("func", "args", "keywords"), "defaultdict": ("default_factory",)}


class Paths:
    """Finds the steps from the state to a node of a walk, looking for each child in its parent by identity."""

    def __init__(self, walk: "Graph") -> None:
        self._walk = walk
        self._labels: Dict[int, Tuple[str, Tuple[str, ...]]] = {}
        self._fixed: Dict[int, str] = {}
        self._asked: Dict[int, int] = {}
        self._children: Dict[int, Dict[int, List[str]]] = {}

    def label(self, value: Any, step: str, items: Tuple[str, ...] = ()) -> None:
        """How the step to an object is called that the walk made itself, and the steps to its items."""
        if value is not None and not (type(value) is tuple and not value):
            self._labels[id(value)] = (step, items)

    def is_labelled(self, value: Any) -> bool:
        return id(value) in self._labels

    def fix(self, node: int) -> None:
        """Keeps the path of a node, whose parent will be gone when somebody asks for it."""
        self._fixed[node] = self.of_node(node)[0]

    def of_node(self, node: int) -> List[str]:
        """The path of a node, one for each key that leads to it from its parent."""
        if node in self._fixed:
            return [self._fixed[node]]
        parent = self._walk.parents[node]
        if parent < 0:
            return [self._base(node)]
        return self.of_child(parent, self._walk.nodes[node])

    def of_child(self, node: int, child: Any) -> List[str]:
        nodes, parents = self._walk.nodes, self._walk.parents
        steps: List[str] = []
        at = node
        while parents[at] >= 0 and at not in self._fixed:
            steps.append(self._steps(parents[at], nodes[at])[0])
            at = parents[at]
        steps.append(self._base(at))
        steps.reverse()
        known = self._known_part(node, child)
        last = self._steps(node, child) if known is None else [known]
        if known is not None:
            del steps[-1]
        if len(steps) > STEPS:
            half = STEPS // 2
            steps = [*steps[:half], f"…({len(steps) - STEPS} steps)…", *steps[-half:]]
        prefix = "".join(steps)
        return [prefix + step for step in last]

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
        return self._fixed.get(node, "state" if node == 0 else "")

    def _steps(self, node: int, child: Any) -> List[str]:
        made = self._labels.get(id(child))
        if made is not None:
            return [made[0]]
        known = self._children.get(node)
        if known is not None:
            return known.get(id(child)) or ["…"]
        asked = self._asked.get(node, 0) + 1
        self._asked[node] = asked
        if asked > ASKED:
            self._children[node] = known = {}
            for each, step in self.children(node):
                if type(each) not in PLAIN:
                    known.setdefault(id(each), []).append(step)
            return known.get(id(child)) or ["…"]
        return [step for each, step in self.children(node) if each is child] or ["…"]

    def children(self, node: int) -> Iterator[Tuple[Any, str]]:
        """What a node holds, with the step to each."""
        parent = self._walk.nodes[node]
        made = self._labels.get(id(parent))
        if made is not None and made[1]:
            yield from zip(parent, made[1])
        elif node and self._walk.parents[node] < 0:
            yield from ((value, name) for name, value in parent.items())
        else:
            kind = type(parent)
            if issubclass(kind, dict):
                yield from self._of_dict(parent, self._walk.is_fields(parent) or made is not None)
            elif issubclass(kind, (list, tuple, collections.deque)):
                base = next(base for base in (list, tuple, collections.deque) if issubclass(kind, base))
                yield from ((value, f"[{index}]") for index, value in enumerate(base.__iter__(parent)))
            elif issubclass(kind, (set, frozenset)):
                held = set.copy(parent) if issubclass(kind, set) else frozenset.copy(parent)
                yield from ((value, f"{{{key_text(value)}}}") for value in held)
            elif type(parent).__name__ == "ndarray" and parent.dtype.hasobject:
                yield from ((value, f"[{index}]") for index, value in enumerate(parent.reshape(-1).tolist()))
            yield from _of_fields(parent)

    def _of_dict(self, parent: Dict[Any, Any], fields: bool) -> Iterator[Tuple[Any, str]]:
        for index, (key, value) in enumerate(dict.items(parent)):
            if type(value) not in PLAIN:
                yield value, f".{key}" if fields and isinstance(key, str) else f"[{key_text(key)}]"
            if type(key) not in PLAIN:
                yield key, f".keys()[{index}]"


def _of_fields(parent: Any) -> Iterator[Tuple[Any, str]]:
    try:
        fields = object.__getattribute__(parent, "__dict__")
    except Exception:
        fields = {}
    if isinstance(fields, dict):
        yield from ((value, f".{name}") for name, value in fields.items())
    for base in type(parent).__mro__[:-1]:
        for name in _globals.slot_names(base):
            yield from ((value, f".{name}") for value in _globals.slot(parent, name))
    if not fields:
        for name in ("__self__", "__func__", "base"):
            try:
                yield getattr(parent, name), f".{name}"
            except Exception:
                continue


def key_text(key: Any) -> str:
    """A key as it would be written; of what would run code of the job's own, only the type."""
    plain = (str, int, float, bool, bytes, complex, type(None))
    if type(key) in plain or (type(key) in (tuple, frozenset) and all(type(part) in plain for part in key)):
        text = repr(key)
        return text if len(text) <= KEY else text[:KEY] + "…"
    return f"<{type(key).__qualname__}>"

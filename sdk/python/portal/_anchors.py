"""Which objects of the state a script holds by names of its own (K-PY-1).

A restore fills those in place, so that no name of the script points to an unrestored copy. They are found when
`job.state()` is called: every mutable value that it is given, and what lies deeper but is held from outside the state too
(`weights = []; model = Model(weights)`). Identity decides at a save: an object that the job has replaced since is not
filled, because in the script that saved it those names did not change either.
"""

from __future__ import annotations

import array
import collections
import random
import sys
from typing import Any, Dict, List

from ._walk import Walk

EXACT = (list, dict, set, bytearray)
# Immutable: a restore gives the name another value; nothing of the script's could hold a stale one.
IMMUTABLE_BASES = (int, float, complex, str, bytes, tuple, frozenset)
KNOWN = (collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter, random.Random)


class Anchors:
    """`held`: path → object, filled in place by a restore and remembered by saves; `all`: every mutable one by path."""

    def __init__(self, state: Any) -> None:
        values = state.__dict__
        self.held: Dict[str, Any] = {}
        for name, value in values.items():
            if is_mutable(value, top=True):
                self.held[f"state.{name}"] = value
        walk = Walk({id(value): path for path, value in self.held.items()}, only_look=True)
        walk.run(state, {})
        self.refusals = walk.refusals
        self.all = dict(self.held)
        self._find_held(walk)

    def _find_held(self, walk: Walk) -> None:
        nodes = walk.nodes
        paths: Dict[int, str] = {}
        for index, node in enumerate(nodes):
            if index and walk.parents[index] >= 0 and is_mutable(node, top=False):
                paths[index] = walk.paths.of_node(index)[0]
        walk.forget()
        # What the walk itself made is held by nobody else; it goes before references are counted.
        probe: List[Any] = [object()]
        alone = max(sys.getrefcount(node) for node in probe) if hasattr(sys, "getrefcount") else 0
        for index in range(len(nodes)):
            if alone and index and sys.getrefcount(nodes[index]) <= alone - 1:
                nodes[index] = None
        bases: Dict[int, int] = {}
        for node in nodes:
            base = getattr(node, "base", None) if is_ndarray(node) else None
            if base is not None:
                bases[id(base)] = bases.get(id(base), 0) + 1
        outside: Dict[int, bool] = {}
        for index, node in enumerate(nodes):
            if node is None or index == 0:
                continue
            counted = alone + 1 + walk.hits.get(id(node), 0) + bases.get(id(node), 0)
            above = nodes[walk.parents[index]] if walk.parents[index] >= 0 else None
            through = type(above) in (tuple, frozenset) and outside.get(walk.parents[index], False)
            outside[index] = through or not alone or sys.getrefcount(node) > counted
            path = paths.get(index)
            if path is not None and path not in self.all:
                self.all[path] = node
                if outside[index] or is_carrier(node):
                    self.held[path] = node


def is_ndarray(value: Any) -> bool:
    np = sys.modules.get("numpy")
    return np is not None and type(value) is np.ndarray


def is_carrier(value: Any) -> bool:
    """Its class says itself what its state is, as torch's modules and optimizers do."""
    kind = type(value)
    return callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None))


def is_mutable(value: Any, top: bool) -> bool:
    """Whether a name for it could hold content that a restore must change. `top`: given to job.state() itself."""
    kind = type(value)
    if kind in EXACT or kind in KNOWN or kind is array.array or is_ndarray(value) or is_carrier(value):
        return True
    if kind.__module__.startswith("numpy.random"):
        return True
    if kind.__module__ == "builtins" or isinstance(value, (type, *IMMUTABLE_BASES)):
        return False
    how = Walk.verdict_of(kind).how
    if how in ("plain", "exception"):
        return True
    return how == "reduce" and (kind.__dictoffset__ != 0 or isinstance(value, (list, dict, set)))

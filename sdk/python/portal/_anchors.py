"""Which objects of the state a script holds by names of its own (K-PY-1).

A restore fills those in place, so that no name of the script points to an unrestored copy. They are found when
`job.state()` is called: every mutable value that it is given, and what lies deeper but is held from outside the state too
(`weights = []; model = Model(weights)`). Identity decides at a save: an object that the job has replaced since is not
filled, because in the script that saved it those names did not change either.
"""

from __future__ import annotations

import array
import collections
import functools
import io
import random
import sys
from typing import Any, Dict, List, Optional

from ._walk import Walk

EXACT = (list, dict, set, bytearray)
# Immutable: a restore gives the name another value; nothing of the script's could hold a stale one.
IMMUTABLE_BASES = (int, float, complex, str, bytes, tuple, frozenset)
TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter", "torch._C.Generator")
KNOWN = (collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter, random.Random, io.StringIO, io.BytesIO)


class Anchors:
    """`held`: path → object, filled in place by a restore and remembered by saves. `find` looks deeper, for a path that
    the saved job held and this one does not."""

    def __init__(self, state: Any) -> None:
        self.held: Dict[str, Any] = {}
        for name, value in state.__dict__.items():
            if is_mutable(value):
                self.held[f"state.{name}"] = value
        walk = Walk({id(value): path for path, value in self.held.items()}, only_look=True)
        walk.run(state, {})
        self._walk: Optional[Walk] = walk
        self._all: Optional[Dict[str, Any]] = None
        self._find_held(walk)

    def find(self, path: str) -> Any:
        if path in self.held:
            return self.held[path]
        if self._all is None:
            self._all = {}
            walk = self._walk
            paths: Dict[int, str] = {}
            for index in range(1, len(walk.nodes) if walk is not None else 0):
                if walk is not None and walk.nodes[index] is not None and is_mutable(walk.nodes[index]):
                    paths[index] = walk.paths.of_node(index)[0]
                    self._all.setdefault(paths[index], walk.nodes[index])
        return self._all.get(path)

    def settle(self) -> None:
        """Once the attempt may run: only what is held is remembered, so that the job's own objects can end."""
        self._walk = self._all = None

    def _find_held(self, walk: Walk) -> None:
        nodes, parents, paths = walk.nodes, walk.parents, walk.paths
        # What the walk made for itself is gone when references are counted: its children belong to what it was made for.
        above = list(parents)
        for index in range(1, len(nodes)):
            while above[index] >= 0 and paths.is_labelled(nodes[above[index]]):
                above[index] = parents[above[index]]
            if above[index] != parents[index]:
                paths.fix(index)
        walk.forget()
        # What the walk itself made is held by nobody else; it goes before references are counted.
        probe: List[Any] = [object()]
        count = getattr(sys, "getrefcount", None)
        alone = count(probe[0]) if count else 0
        for index in range(1, len(nodes)):
            if count and count(nodes[index]) <= alone:
                nodes[index] = None
        bases: Dict[int, int] = {}
        for index in range(1, len(nodes)):
            if is_ndarray(nodes[index]) and nodes[index].base is not None:
                owner = id(nodes[index].base)
                bases[owner] = bases.get(owner, 0) + 1
        outside: Dict[int, bool] = {}
        for index in range(1, len(nodes)):
            if nodes[index] is None:
                continue
            ident, parent = id(nodes[index]), above[index]
            # From the walk's own list, from the place where it was first met, from each other place in the state.
            counted = alone + 1 + walk.hits.get(ident, 0) + bases.get(ident, 0)
            # Who holds something that never changes holds what is in it.
            through = parent > 0 and outside.get(parent, False) and not is_mutable(nodes[parent])
            outside[index] = through or count is None or count(nodes[index]) > counted
        for index in range(1, len(nodes)):
            if nodes[index] is None or parents[index] < 0 or not is_mutable(nodes[index]):
                continue
            if outside[index] or is_carrier(nodes[index]) or _is_inner(nodes[index]):
                self.held.setdefault(paths.of_node(index)[0], nodes[index])


def is_ndarray(value: Any) -> bool:
    np = sys.modules.get("numpy")
    return np is not None and type(value) is np.ndarray


def is_carrier(value: Any) -> bool:
    """Its class says itself what its state is, as torch's modules and optimizers do."""
    kind = type(value)
    return callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None))


def is_mutable(value: Any) -> bool:
    """Whether a name for it could hold content that a restore must change."""
    kind: Any = type(value)
    return _is_mutable_kind(kind)


@functools.lru_cache(maxsize=4096)
def _is_mutable_kind(kind: type) -> bool:
    if kind in EXACT or kind in KNOWN or kind is array.array:
        return True
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray" or kind.__module__.startswith("numpy.random"):
        return True
    if f"{kind.__module__}.{kind.__qualname__}" in TENSORS:
        return True
    if callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None)):
        return True
    if kind.__module__ == "builtins" or issubclass(kind, (type, *IMMUTABLE_BASES)):
        return False
    how = Walk.verdict_of(kind).how
    if how in ("plain", "exception", "set_like"):
        return True
    return how == "reduce" and (kind.__dictoffset__ != 0 or kind.__hash__ is None)


def _is_inner(value: Any) -> bool:
    """Part of an object that fills it by filling this: the bit generator of one of numpy's generators."""
    return type(value).__module__.startswith("numpy.random") and hasattr(value, "random_raw")

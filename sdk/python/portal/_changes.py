"""Classes and functions are carried by name; what the job has changed on them since `job.state()` would be lost."""

from __future__ import annotations

import enum
import os
import site
import sys
import sysconfig
import types
from typing import Any, Dict, Iterator, List, Tuple

from ._digest import digest_of
from ._refusal import Refusal, type_name
from ._state import State
from ._walk import FLAT_FIXED, Walk

# Kept by Python itself, or with no say in what an instance is.
MACHINERY = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__slotnames__", "__abstractmethods__", "_abc_impl",
    "__annotations__", "__annotations_cache__", "__annotate_func__", "__annotate__", "__static_attributes__",
    "__firstlineno__", "__parameters__", "__orig_bases__", "__qualname__", "__signature__", "__subclasshook__",
}  # fmt: skip
ADVICE = "keep it in the state, or on an object of the state"


class Snapshot:
    """What the job's own classes and functions looked like when `job.state()` was called."""

    def __init__(self) -> None:
        self._seen: Dict[int, Tuple[Any, Dict[str, Any]]] = {}
        for name in _own_modules():
            for value in list(vars(sys.modules[name]).values()):
                if getattr(value, "__module__", None) == name:
                    self._take(value)

    def _take(self, value: Any) -> None:
        if id(value) in self._seen:
            return
        if isinstance(value, type):
            self._seen[id(value)] = (value, {})
            self._seen[id(value)] = (value, _of_class(value))
            for part in list(vars(value).values()):
                if isinstance(part, type) and part.__module__ == value.__module__:
                    self._take(part)
        elif isinstance(value, types.FunctionType):
            self._seen[id(value)] = (value, _of_function(value))

    def changed(self, walk: Walk) -> List[Refusal]:
        """What has changed on the classes and functions that a walk has met."""
        met: List[Any] = []
        for kind in walk.classes.values():
            met.extend(base for base in kind.__mro__ if base not in met)
        met.extend(walk.functions.values())
        found: List[Refusal] = []
        for value in met:
            known = self._seen.get(id(value))
            if known is None:
                continue
            now = _of_class(value) if isinstance(value, type) else _of_function(value)
            found.extend(_differences(value, known[1], now))
        return found


def _differences(value: Any, before: Dict[str, Any], now: Dict[str, Any]) -> Iterator[Refusal]:
    what = "class" if isinstance(value, type) else "function"
    base = f"{value.__module__}.{value.__qualname__}"
    for name in {**before, **now}:
        if name not in now:
            change = "removed from"
        elif name not in before:
            change = "set on"
        elif before[name] == now[name]:
            continue
        else:
            change = "changed on"
        kind = type_name(type(vars(value).get(name))) if name in vars(value) else what
        reason = f"it was {change} the {what} since job.state(); a {what} is carried by its name alone"
        yield Refusal(f"{base}.{name}", kind, reason, ADVICE)


def _of_class(kind: type) -> Dict[str, Any]:
    seen: Dict[str, Any] = {}
    for name, value in list(vars(kind).items()):
        if name in MACHINERY or (issubclass(kind, enum.Enum) and name.startswith("_")):
            continue
        function = getattr(value, "__func__", value)
        if name.startswith("__") and name.endswith("__") and not isinstance(function, types.FunctionType):
            continue
        if isinstance(function, types.FunctionType):
            seen[name] = (id(value), id(function))
            seen.update({f"{name}.{part}": mark for part, mark in _of_function(function).items()})
        else:
            seen[name] = _mark(value)
    if issubclass(kind, enum.Enum):
        for name, member in kind.__members__.items():
            fields = {field: part for field, part in vars(member).items() if not field.startswith("_")}
            seen.update({f"{name}.{field}": _mark(part) for field, part in fields.items()})
    return seen


def _of_function(function: types.FunctionType) -> Dict[str, Any]:
    seen = {name: _mark(value) for name, value in vars(function).items() if name != "__wrapped__"}
    seen["__code__"] = id(function.__code__)
    if function.__defaults__:
        seen["__defaults__"] = _mark(function.__defaults__)
    if function.__kwdefaults__:
        seen["__kwdefaults__"] = _mark(function.__kwdefaults__)
    return seen


# Marks hold the values they stand for, so that an id is never that of another object later.
_held: Dict[int, Any] = {}


def _mark(value: Any) -> Any:
    """Equal for equal content where the content can be walked, else for the same object."""
    if type(value) in FLAT_FIXED or type(value) in (str, bytes):
        return (type(value), repr(value))
    if isinstance(value, (list, dict, set, frozenset, tuple, bytearray)) or Walk.verdict_of(type(value)).how == "plain":
        walk = Walk()
        try:
            walk.run(State(value=value), {})
            if not walk.refusals:
                walk.finish()
                pieces = [view for view in walk.graph() if view.nbytes]
                buffers = [(offset, view) for offset, view, _, _ in walk.memory.buffers()]
                sums = [digest_of([("graph", [(0, view)])]) for view in pieces]
                return (*sums, digest_of([("buffers", buffers)]))
        except Exception:
            pass
    _held[id(value)] = value
    return id(value)


def _own_modules() -> List[str]:
    """The modules that are the job's own: not the standard library's, not installed, not this package."""
    paths = sysconfig.get_paths()
    others = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib") if name in paths]
    others += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    others += [site.getusersitepackages()] if hasattr(site, "getusersitepackages") else []
    roots = tuple(os.path.join(os.path.realpath(path), "") for path in others)
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(module, types.ModuleType) or name.partition(".")[0] == "portal":
            continue
        if name == "__main__" or (isinstance(file, str) and not os.path.realpath(file).startswith(roots)):
            found.append(name)
    return found

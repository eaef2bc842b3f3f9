"""Whether two values are equal in all that a job could see, shared parts and cycles included. Knows nothing of the SDK."""

from __future__ import annotations

import collections
import struct
from typing import Any, List, Tuple


def difference(first: Any, second: Any) -> str:
    """Where two values differ; empty if nowhere."""
    there: dict = {}
    back: dict = {}
    # Paths are chains of steps: as text they would grow with the square of the depth.
    left: List[Tuple[Any, Any, Any]] = [(first, second, None)]
    kept = []
    while left:
        a, b, chain = left.pop()
        path = _Path(chain)
        if type(a) is not type(b):
            return f"{path}: {type(a)} and {type(b)}"
        if isinstance(a, (int, str, bytes, type(None))) and not hasattr(a, "__dict__"):
            if a != b:
                return f"{path}: {a!r:.60} and {b!r:.60}"
            continue
        if type(a) in (float, complex):
            # The bits; which numbers are one object is nobody's business.
            first_bits = struct.pack("<dd", a.real, a.imag)
            if first_bits != struct.pack("<dd", b.real, b.imag):
                return f"{path}: {a!r} and {b!r}"
            continue
        if there.get(id(a), id(b)) != id(b) or back.get(id(b), id(a)) != id(a):
            if not isinstance(a, frozenset) and a != ():
                return f"{path}: shared in one, not in the other"
        if id(a) in there:
            continue
        kept.append((a, b))
        there[id(a)], back[id(b)] = id(b), id(a)
        parts = [(x, y, (chain, step)) for x, y, step in _parts(a, b)]
        if any(x is None and y is ... for x, y, _ in parts):
            return f"{path}: of different size or order"
        if not parts and not _plain_equal(a, b):
            return f"{path}: {a!r:.60} and {b!r:.60}"
        left.extend(parts)
    return ""


class _Path:
    def __init__(self, chain: Any) -> None:
        self._chain = chain

    def __format__(self, how: str) -> str:
        steps = []
        chain = self._chain
        while chain is not None and len(steps) < 1000:
            chain, step = chain
            steps.append(step)
        return "".join(reversed(steps))


_BAD = (None, ..., "")


def _parts(a: Any, b: Any) -> List[Tuple[Any, Any, str]]:
    found: List[Tuple[Any, Any, str]] = []
    if isinstance(a, dict):
        if len(a) != len(b):
            return [_BAD]
        for index, ((p, x), (q, y)) in enumerate(zip(a.items(), b.items())):
            found += [(p, q, f".keys()[{index}]"), (x, y, f"[{p!r:.20}]")]
    elif isinstance(a, (list, tuple, collections.deque)):
        if len(a) != len(b):
            return [_BAD]
        found += [(x, y, f"[{index}]") for index, (x, y) in enumerate(zip(a, b))]
    elif isinstance(a, (set, frozenset)):
        if len(a) != len(b):
            return [_BAD]
        if all(type(item).__hash__ is object.__hash__ for item in a) and len(a) == 1:
            found += [(next(iter(a)), next(iter(b)), "{}")]
        elif {repr(item) for item in a} != {repr(item) for item in b} and a != b:
            return [_BAD]
    elif isinstance(a, BaseException):
        found += [(a.args, b.args, ".args"), (a.__cause__, b.__cause__, ".__cause__")]
        found += [(a.__context__, b.__context__, ".__context__"), (str(a), str(b), "str")]
    if not isinstance(a, type) and hasattr(a, "__dict__") and type(a).__name__ not in ("module", "function"):
        found += [(dict(vars(a)), dict(vars(b)), "")] if _comparable(a) else []
    for kind in type(a).__mro__ if _comparable(a) else ():
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            name = f"_{kind.__name__}{name}" if name.startswith("__") and not name.endswith("__") else name
            if hasattr(a, name) or hasattr(b, name):
                found += [(getattr(a, name, None), getattr(b, name, None), f".{name}")]
    if isinstance(a, (list, dict, set, tuple)) and not found and len(a) == 0:
        return []
    return found


def _comparable(a: Any) -> bool:
    module = type(a).__module__
    return module.endswith(("tests.kinds", "tests.corpus", "types", "string", "__main__", "builtins", "collections"))


def _plain_equal(a: Any, b: Any) -> bool:
    kind = type(a).__name__
    if kind == "lock":
        return a is not b
    if kind == "Random":
        return a.getstate() == b.getstate()
    if kind in ("StringIO", "BytesIO"):
        return a.getvalue() == b.getvalue() and a.tell() == b.tell()
    if kind in ("partial",):
        return (a.func, a.args, a.keywords) == (b.func, b.args, b.keywords)
    if kind in ("itemgetter", "attrgetter", "methodcaller", "Decimal"):
        return repr(a) == repr(b)
    if kind in ("method", "builtin_function_or_method") and getattr(a, "__self__", None) is not None:
        return a.__name__ == b.__name__ and type(a.__self__) is type(b.__self__)
    if type(a) is object or type(a).__module__.endswith("kinds"):
        return a is b or not vars(a) and not vars(b)
    return bool(a == b)

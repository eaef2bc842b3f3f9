"""Memory that stays outside the graph: large bytes, text and arrays, sent from where it lies.

Arrays are grouped by overlapping memory: a group is one run of bytes, and each array a window on it, so that what was
shared stays shared.
"""

from __future__ import annotations

import array
import ast
import sys
from typing import Any, Dict, List, Optional, Tuple

ALIGN = 64
SMALL_ALIGN = 16
# Memory that C code or torch made for arrays; what shares it is seen by its address.
LIKE_ITS_OWN = ("PyCapsule", "Tensor", "Parameter")

Reason = Tuple[str, str]


def numpy() -> Any:
    """numpy if the job has loaded it; it is never loaded for its own sake."""
    return sys.modules["numpy"]


def aligned(offset: int, to: int) -> int:
    return -(-offset // to) * to


class Groups:
    """What one walk found; `lay_out` decides where each piece goes."""

    def __init__(self) -> None:
        self.bytes = 0
        #: each group: its bytes, then `-1` and an offset into the small ones, or a buffer's number and 0
        self.table: List[List[int]] = []
        self._buffers: List[Tuple[memoryview, str, Optional[str]]] = []
        self._arrays: List[Tuple[Any, int, Optional[str]]] = []
        self._small = bytearray()
        self._described: Dict[Any, Optional[str]] = {}

    def add(self, view: memoryview, entry: List[Any]) -> None:
        """A buffer of one object; its number goes into the entry of the table."""
        entry[2] = len(self._buffers)
        self._buffers.append((view, entry[1], entry[3]))
        self.bytes += view.nbytes

    def add_text(self, value: str, entry: List[Any]) -> None:
        self.add(memoryview(value.encode("utf-8", "surrogatepass")), entry)

    def add_array(self, value: Any, index: int, specials: List[Any], live: Optional[str]) -> None:
        self._arrays.append((value, index, live))
        self.bytes += value.nbytes
        specials[index] = ["array"]

    def look_at_array(self, value: Any) -> Optional[Reason]:
        """Why an array cannot be carried, if so."""
        kind = value.dtype
        root = _root(value)
        if kind.hasobject:
            if kind.kind != "O" or root is not None or value.base is not None or not value.flags.c_contiguous:
                return ("an array of objects that shares memory or has fields", "keep a copy of it, or a list")
            return None
        if kind.metadata:
            return ("the metadata of its dtype are not carried", "keep an array without them")
        if self._describe(kind) is None:
            return (f"its dtype {kind} is not one that is carried", "keep it as another dtype")
        if root is None or type(root) in (bytes, bytearray, array.array) or type(root).__name__ in LIKE_ITS_OWN:
            return None
        what = type(root).__name__
        return (f"its memory belongs to a {what}, not to an array", "keep numpy.array(it), a copy of its own")

    def foreign_owner(self, value: Any) -> Any:
        """The bytes, bytearray or array.array that the array is a view of; that is then carried itself."""
        root = _root(value)
        return root if type(root) in (bytes, bytearray, array.array) else None

    def describe_view(self, value: Any, owner: Any) -> str:
        start = numpy().frombuffer(owner, "u1").__array_interface__["data"][0] if len(owner) else 0
        offset = value.__array_interface__["data"][0] - start if value.nbytes else 0
        return repr((self._describe(value.dtype), value.shape, value.strides, offset, bool(value.flags.writeable)))

    def _describe(self, kind: Any) -> Optional[str]:
        if kind.metadata:
            return None
        if kind not in self._described:
            self._described[kind] = describe_dtype(kind)
        return self._described[kind]

    # ---- the lay-out

    def lay_out(self, specials: List[Any], small_below: int) -> None:
        spans = [(*_bounds(value), position) for position, (value, _, _) in enumerate(self._arrays)]
        run_of: Dict[int, int] = {}
        runs: List[List[int]] = []
        # An empty array overlaps nothing; those come last, so that they part no run.
        for low, high, position in sorted(spans, key=lambda span: (span[0] == span[1], span)):
            if runs and low < runs[-1][1] and high > low:
                runs[-1][1] = max(runs[-1][1], high)
                runs[-1][2] = min(runs[-1][2], position)
            else:
                runs.append([low, high, position])
            run_of[position] = len(runs) - 1
        # Numbered by first visit, so that addresses do not show.
        order = sorted(range(len(runs)), key=lambda run: runs[run][2])
        number = {run: index for index, run in enumerate(order)}
        members: Dict[int, List[int]] = {}
        for position, run in run_of.items():
            members.setdefault(run, []).append(position)
        for each in order:
            self._place(runs[each], [self._arrays[position] for position in sorted(members[each])], small_below)
        for position, (value, index, live) in enumerate(self._arrays):
            run = run_of[position]
            start = _start(value) - runs[run][0] if value.nbytes else 0
            window = [self._describe(value.dtype), list(value.shape), list(value.strides)]
            specials[index] = ["array", number[run], start, *window, int(value.flags.writeable), live]

    def _place(self, run: List[int], arrays: List[Tuple[Any, int, Optional[str]]], small_below: int) -> None:
        low, size = run[0], run[1] - run[0]
        view = _raw(low, size, [value for value, _, _ in arrays]) if size else memoryview(b"")
        if size < small_below:
            self._small.extend(bytes(aligned(len(self._small), SMALL_ALIGN) - len(self._small)))
            self.table.append([size, -1, len(self._small)])
            self._small += view
            return
        self.table.append([size, len(self._buffers), 0])
        whole = [live for value, _, live in arrays if live is not None and value.nbytes == size and _start(value) == low]
        self._buffers.append((view, "memory", whole[0] if whole else None))

    def kinds(self) -> List[str]:
        return [kind for _, kind, _ in self._buffers]

    def small(self) -> bytearray:
        return self._small

    def buffers(self) -> List[Tuple[int, memoryview, str, Optional[str]]]:
        """Where each buffer lies in the `buffers` stream, its memory, its kind, and the live object that it fills."""
        placed = []
        offset = 0
        for view, kind, live in self._buffers:
            offset = aligned(offset, ALIGN)
            placed.append((offset, view, kind, live))
            offset += view.nbytes
        return placed


def describe_dtype(kind: Any) -> Optional[str]:
    """A dtype as text that gives it back, or nothing if none does."""
    lib = numpy().lib.format
    try:
        text = repr(lib.dtype_to_descr(kind))
        return text if parse_dtype(text) == kind and not kind.metadata else None
    except Exception:
        return None


def parse_dtype(text: str) -> Any:
    return numpy().lib.format.descr_to_dtype(ast.literal_eval(text))


def _root(value: Any) -> Any:
    """Whose memory it is: nothing if an array's own."""
    np = numpy()
    base = value.base
    while True:
        if isinstance(base, np.memmap):
            return base
        if isinstance(base, np.ndarray):
            base = base.base
        elif isinstance(base, memoryview):
            base = base.obj
        elif isinstance(base, _Run):
            base = base.keep[0]
        else:
            return base


def _start(value: Any) -> int:
    return int(value.__array_interface__["data"][0])


def _bounds(value: Any) -> Tuple[int, int]:
    """The addresses between which an array's elements lie."""
    low = _start(value)
    if value.size == 0:
        return low, low
    high = low
    for length, stride in zip(value.shape, value.strides):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high + value.itemsize


class _Run:
    def __init__(self, low: int, size: int, keep: List[Any]) -> None:
        self.keep = keep
        self.__array_interface__ = {"data": (low, True), "shape": (size,), "typestr": "|u1", "version": 3}


def _raw(low: int, size: int, keep: List[Any]) -> memoryview:
    return memoryview(numpy().asarray(_Run(low, size, keep)))


def bytes_of(value: Any) -> Any:
    """The memory of a contiguous array as an array of bytes, to be filled."""
    run = _Run(_start(value), value.nbytes, [value])
    run.__array_interface__["data"] = (_start(value), False)
    return numpy().asarray(run)

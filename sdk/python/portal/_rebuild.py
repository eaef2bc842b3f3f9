"""The other way: the graph made again, into the objects that the script holds.

The functions here are named in every graph; a name in it that is not there on the target refuses the restore.
"""

from __future__ import annotations

import array
import ast
import collections
import importlib
import io
import json
import pickle
import random
import struct
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _globals, _memory
from ._refusal import CannotRestore, Refusal, type_name

NONE_TYPE = type(None)
ELLIPSIS_TYPE = type(Ellipsis)
NOT_IMPLEMENTED_TYPE = type(NotImplemented)
EMPTY_FROZENSET: Any = frozenset()

# The order in which each set was filled, by id, with the set to keep it alive; for the walk after a restore.
orders: Dict[int, Tuple[Any, List[Any]]] = {}


def forget_orders() -> None:
    orders.clear()


# ---- called from a graph


def fill_set(target: Any, items: List[Any]) -> None:
    orders[id(target)] = (target, items)
    set.update(target, items)


def make_frozenset(items: List[Any]) -> Any:
    made = frozenset(items)
    orders[id(made)] = (made, items)
    return made


def make_frozenset_of(kind: Any, items: List[Any]) -> Any:
    made = frozenset.__new__(kind, items)
    orders[id(made)] = (made, items)
    return made


def keeps_order(value: Any, order: List[Any]) -> bool:
    """Whether a set filled anew in this order gives it back. Only what hashes by value can tell; no code of a class runs."""
    plain = (int, str, float, bytes, bool, type(None), complex)
    if any(type(item) not in plain for item in order):
        return False
    return all(a is b for a, b in zip(set(order), order))


def fill_bytes(target: Any, content: bytes) -> None:
    if isinstance(target, bytearray):
        target[:] = content
    else:
        del target[:]
        target.frombytes(content)


def make_array(typecode: str, content: bytes) -> Any:
    return array.array(typecode, content)


def make_view(owner: Any, described: str) -> Any:
    dtype, shape, strides, offset, writeable = ast.literal_eval(described)
    np = _memory.numpy()
    buffer = owner if 0 not in shape else None
    strides = strides if 0 not in shape else None
    made = np.ndarray(shape, _memory.parse_dtype(dtype), buffer, offset if buffer is not None else 0, strides)
    if made.flags.writeable and not writeable:
        made.flags.writeable = False
    return made


def make_dtype(text: str) -> Any:
    importlib.import_module("numpy")
    return _memory.parse_dtype(text)


def make_object_array(shape: Tuple[int, ...]) -> Any:
    return _memory.numpy().empty(shape, object)


def fill_object_array(target: Any, items: List[Any]) -> None:
    flat = target.reshape(-1)
    for index, item in enumerate(items):
        flat[index] = item


def put_fields(target: Any, fields: Dict[str, Any]) -> None:
    held = object.__getattribute__(target, "__dict__")
    for name, value in fields.items():
        held[sys.intern(name) if type(name) is str else name] = value


def put_slots(target: Any, fields: Dict[str, Any]) -> None:
    for name, value in fields.items():
        _globals.put_slot(target, name, value)


def put_exception(target: BaseException, parts: Tuple[Any, Any, Any, bool]) -> None:
    target.args, target.__cause__, target.__context__, target.__suppress_context__ = parts


def load_state(target: Any, content: Any) -> None:
    target.load_state_dict(content)


def builtin_method(owner: Any, name: str) -> Any:
    return getattr(owner, name)


def make_method(function: Callable[..., Any], owner: Any) -> Any:
    return types.MethodType(function, owner)


def member(kind: Any, name: str) -> Any:
    return kind.__members__[name]


def module(name: str) -> Any:
    return importlib.import_module(name)


def ready(live: Any, args: Tuple[Any, ...]) -> Any:
    """The live object as `function(*args)` would have made it."""
    if isinstance(live, collections.defaultdict):
        live.clear()
        live.default_factory = args[0] if args else None
    elif isinstance(live, collections.deque):
        bound = args[1] if len(args) > 1 else None
        if live.maxlen != bound:
            raise Unfit(live, f"its maxlen is {live.maxlen}, the saved one's {bound}")
        live.clear()
    elif isinstance(live, dict):
        dict.clear(live)
        if isinstance(live, collections.Counter) and args:
            dict.update(live, args[0])
    elif isinstance(live, list):
        list.clear(live)
    elif isinstance(live, set):
        set.clear(live)
        if args:
            set.update(live, args[0])
    elif type(live).__module__.startswith("numpy.random") or isinstance(live, (io.StringIO, io.BytesIO)):
        return live
    fields = getattr(live, "__dict__", None)
    if isinstance(fields, dict):
        fields.clear()
    _globals.clear_slots(live)
    return live


def fills_in_place(value: Any, function: Any, args: Tuple[Any, ...]) -> bool:
    """Whether `ready` can stand for the making of this object."""
    kind = type(value)
    if getattr(function, "__name__", "") == "__newobj__":
        return len(args) == 1
    known = (collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter, random.Random)
    if kind in known or (issubclass(kind, (set, *known)) and function is kind):
        return True
    return kind.__module__.startswith("numpy.random") and hasattr(kind, "__setstate__")


class Unfit(Exception):
    """What the script holds cannot become what was saved."""

    def __init__(self, live: Any, reason: str) -> None:
        super().__init__(reason)
        self.live = live


# ---- a restore


def reset(live: Any) -> None:
    """Empties a live object so that it is filled as a new one would be."""
    kind = type(live)
    if issubclass(kind, list):
        list.clear(live)
    elif issubclass(kind, dict):
        dict.clear(live)
    elif issubclass(kind, set):
        set.clear(live)
    if kind.__dictoffset__ and not issubclass(kind, type):
        object.__getattribute__(live, "__dict__").clear()
    _globals.clear_slots(live)


class _Reader(io.RawIOBase):
    """A run of memory as a file, so that the unpickler reads from it without a copy of the whole."""

    def __init__(self, view: memoryview) -> None:
        self._view = view

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = min(len(target), len(self._view))
        target[:count] = self._view[:count]
        self._view = self._view[count:]
        return count


class _Unpickler(pickle.Unpickler):
    def __init__(self, view: memoryview, special: Callable[[int], Any]) -> None:
        super().__init__(io.BufferedReader(_Reader(view), 1 << 20))
        self._special = special

    def persistent_load(self, pid: Any) -> Any:
        return self._special(pid)

    def find_class(self, module_name: str, name: str) -> Any:
        if module_name not in sys.modules:
            importlib.import_module(module_name)
        return _globals.resolve(module_name, name)


class Restorer:
    """Receives the streams of one checkpoint into memory made ready for them, then makes the graph.

    Nothing is interpreted before `finish`: until then bytes are only placed, by `take`. `live` finds the script's own
    objects by path, `held` those of them that names of the script point to.
    """

    def __init__(
        self,
        sizes: Dict[str, int],
        buffers: List[List[Any]],
        live: Callable[[str], Any],
        held: Dict[str, Any],
        opaque: Optional[Dict[int, Any]] = None,
    ) -> None:
        self._opaque = opaque or {}
        self._live = live
        self._script_holds = held
        self._sizes = sizes
        self._graph = bytearray(sizes.get("graph", 0))
        self._held: List[Any] = []
        self._filled: Dict[int, Any] = {}
        self._specials: List[Any] = []
        self._made: Dict[int, Any] = {}
        self._small = memoryview(b"")
        self._groups: List[Any] = []
        self._table: Dict[str, Any] = {}
        self._state: Any = None
        #: the objects that stand for the live ones, by path
        self.used: Dict[str, Any] = {}
        self.pickle = memoryview(b"")
        windows: List[Tuple[int, memoryview]] = []
        for number, (offset, size, kind, path) in enumerate(buffers):
            view = self._allocate(number, kind, size, path)
            if size:
                windows.append((offset, view))
        self._windows = {"graph": [(0, memoryview(self._graph))], "buffers": windows}
        self._placed = {"graph": 0, "buffers": 0}
        self._next = {"graph": 0, "buffers": 0}

    def take(self, stream: str, offset: int, length: int) -> List[memoryview]:
        """Where the bytes from `offset` on go, one piece after the other; offsets rise, what is skipped is zeros."""
        at = self._placed.get(stream, -1)
        if not 0 <= at <= offset or offset + length > self._sizes.get(stream, 0):
            raise CannotRestore([], f"the stream {stream} has no place for {length} bytes at {offset}")
        for skipped in self._pieces(stream, at, offset):
            skipped[:] = bytes(len(skipped))
        self._placed[stream] = offset + length
        return self._pieces(stream, offset, offset + length)

    def _pieces(self, stream: str, begin: int, end: int) -> List[memoryview]:
        windows = self._windows[stream]
        pieces = []
        while begin < end:
            index = self._next[stream]
            if index == len(windows):
                pieces.append(memoryview(bytearray(end - begin)))
                break
            offset, memory = windows[index]
            if begin < offset:
                stop = min(offset, end)
                pieces.append(memoryview(bytearray(stop - begin)))
            else:
                stop = min(offset + len(memory), end)
                pieces.append(memory[begin - offset : stop - offset])
                if stop == offset + len(memory):
                    self._next[stream] = index + 1
            begin = stop
        return pieces

    def _allocate(self, number: int, kind: str, size: int, path: Optional[str]) -> memoryview:
        live: Any = self._live(path) if path is not None else None
        made: Any
        if kind == "bytes":
            # A BytesIO that is exactly full gives its bytes without a copy.
            holder = io.BytesIO()
            holder.seek(size - 1)
            holder.write(b"\0")
            self._held.append(holder)
            return holder.getbuffer()
        if kind == "bytearray" and type(live) is bytearray:
            _resize(live, size, path)
            self._filled[number] = live
            self._held.append(live)
            return memoryview(live)
        if kind.startswith("array:"):
            made = live if type(live) is array.array and live.typecode == kind[6:] else array.array(kind[6:])
            count = size // made.itemsize
            if len(made) != count:
                try:
                    del made[:]
                    made.extend(array.array(kind[6:], bytes(made.itemsize)) * count)
                except BufferError as error:
                    raise _unfit(path, made, f"its memory is in use: {error}") from error
            self._held.append(made)
            return memoryview(made).cast("B")
        if kind == "memory":
            np = importlib.import_module("numpy")
            if type(live) is np.ndarray and live.nbytes == size and live.flags.writeable and live.flags.forc:
                self._filled[number] = live
                self._held.append(live)
                return memoryview(_memory.bytes_of(live))
            made = np.empty(size, "u1")
            self._held.append(made)
            return memoryview(made)
        if kind not in ("bytearray", "str"):
            raise CannotRestore([], f"the checkpoint holds a buffer of a kind unknown here: {kind}")
        made = bytearray(size)
        self._held.append(made)
        return memoryview(made)

    def finish(self, state: Any) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Makes the graph, after everything was verified; gives the state's values and what goes along with them."""
        for stream, size in self._sizes.items():
            self.take(stream, size, 0)
        for _, view in self._windows["buffers"]:
            view.release()
        graph = memoryview(self._graph)
        table_size, small_size = struct.unpack_from("<QQ", graph)
        begin = 16 + table_size
        self._table = json.loads(bytes(graph[16:begin]))
        self._specials = self._table["specials"]
        self._small = graph[begin : begin + small_size]
        self._state = state
        forget_orders()
        if self._table["groups"] or any(entry[0] == "array" for entry in self._specials):
            importlib.import_module("numpy")
        self._groups = [None] * len(self._table["groups"])
        self.pickle = graph[begin + small_size :]
        reader = _Unpickler(self.pickle, self._special)
        try:
            values, extras = reader.load()
        except Unfit as fault:
            paths = [path for path, held in self.used.items() if held is fault.live]
            raise _unfit(paths[0] if paths else None, fault.live, str(fault)) from fault
        return values, extras

    def _special(self, pid: int) -> Any:
        if pid not in self._made:
            entry = self._specials[pid]
            if entry[0] == "itself":
                return self._opaque[pid]
            make: Dict[str, Callable[..., Any]]
            make = {"live": self._live_object, "buffer": self._buffer, "array": self._array, "state": self._root}
            made = make[entry[0]](*entry[1:])
            self._made[pid] = made
            path = {"live": 1, "buffer": 3, "array": 7}.get(entry[0])
            if path is not None and entry[path] is not None:
                self.used[entry[path]] = made
        return self._made[pid]

    def _root(self) -> Any:
        return self._state

    def _live_object(self, path: str, kind_name: str) -> Any:
        module_name, _, name = kind_name.partition(":")
        live = self._live(path)
        if live is None:
            if path.count(".") == 1 and "[" not in path:
                kind_text = kind_name.replace(":", ".")
                missing = Refusal(path, kind_text, "job.state() is given no such value here", "give it as before")
                raise CannotRestore([missing], f"{path} is not there")
            # A name that only the script that saved it had.
            if module_name not in sys.modules:
                importlib.import_module(module_name)
            kind = _globals.resolve(module_name, name)
            return kind.__new__(kind)
        found = _globals.name_of_type(type(live))
        if found != kind_name:
            if path not in self._script_holds:
                return _globals.resolve(module_name, name).__new__(_globals.resolve(module_name, name))
            raise _unfit(path, live, f"the saved one is a {kind_name.replace(':', '.')}")
        if not _is_array(live) and not _by_state(live):
            reset(live)
        return live

    def _buffer(self, kind: str, number: int, path: Optional[str]) -> Any:
        held = self._held[number]
        if kind == "bytes":
            return held.getvalue()
        if kind == "str":
            return str(held, "utf-8", "surrogatepass")
        live = self._live(path) if path is not None else None
        if live is not None and live is not held:
            raise _unfit(path, live, f"the saved one is a {kind.partition(':')[0]}")
        return held

    def _array(
        self,
        group: int,
        start: int,
        described: str,
        shape: List[int],
        strides: List[int],
        flags: int,
        path: Optional[str],
    ) -> Any:
        np = _memory.numpy()
        dtype = _memory.parse_dtype(described)
        live = self._live(path) if path is not None else None
        if 0 in shape:
            made = np.ndarray(tuple(shape), dtype)
        else:
            made = np.ndarray(tuple(shape), dtype, self._memory_of(group), start, tuple(strides))
        if live is None:
            made.flags.writeable = bool(flags & 1)
            return made
        if not _is_array(live) or live.dtype != dtype or live.shape != made.shape:
            raise _unfit(path, live, f"the saved one is an array of {dtype}, shape {tuple(shape)}")
        if made.size and live.strides != made.strides:
            raise _unfit(path, live, f"the saved one lies in memory with strides {made.strides}, not {live.strides}")
        if made.size and made.__array_interface__["data"] != live.__array_interface__["data"]:
            if not live.flags.writeable:
                raise _unfit(path, live, "it cannot be written to")
            live[...] = made
        return live

    def _memory_of(self, group: int) -> Any:
        np = _memory.numpy()
        if self._groups[group] is None:
            size, number, at = self._table["groups"][group]
            live = self._filled.get(number)
            if number < 0:
                live = self._whole(group, size)
                memory = np.empty(size, "u1") if live is None else _memory.bytes_of(live)
                memory[:] = np.frombuffer(self._small[at : at + size], "u1")
            else:
                memory = self._held[number] if live is None else _memory.bytes_of(live)
            self._groups[group] = memory
        return self._groups[group]

    def _whole(self, group: int, size: int) -> Any:
        """The live array that is all of a small group."""
        for entry in self._specials:
            if entry[0] == "array" and entry[1] == group and entry[7] is not None and entry[2] == 0:
                live: Any = self._live(entry[7])
                if _is_array(live) and live.nbytes == size and live.flags.writeable and live.flags.forc:
                    return live
        return None


def _is_array(value: Any) -> bool:
    np = sys.modules.get("numpy")
    return np is not None and type(value) is np.ndarray


def _by_state(live: Any) -> bool:
    kind = type(live)
    if kind.__module__.partition(".")[0] in ("torch", "_io"):
        return True
    return (hasattr(kind, "load_state_dict") and hasattr(kind, "state_dict")) or isinstance(live, random.Random)


def _resize(live: bytearray, size: int, path: Optional[str]) -> None:
    if len(live) != size:
        try:
            live.__init__(size)  # type: ignore[misc]
        except BufferError as error:
            raise _unfit(path, live, f"its memory is in use: {error}") from error


def _unfit(path: Optional[str], live: Any, reason: str) -> CannotRestore:
    advice = "give job.state() the same kind of value in every attempt"
    return CannotRestore([Refusal(path or "state", type_name(type(live)), reason, advice)], f"{path}: {reason}")


"""The walk over a state: every value looked at, the bad ones named, the good ones written as one graph (K-PY-1).

What is written is a pickle of protocol 5 that the C unpickler reads, but made here, for three reasons: it never
recurses (a list nested 100,000 deep), it knows where each value lies (`state.loader.workers[2].sock`), and it is
canonical: what is shared is numbered by first visit, and the identity of strings and numbers never shows, so that equal
values give equal bytes (K-WHOLE-3). Large memory is not in it: that stays where it is and is sent from there.
"""

from __future__ import annotations

import copyreg
import io
import json
import pickle
import struct
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _globals, _memory, _rebuild
from ._kinds import LEAVE_OUT, Verdict, judge
from ._paths import Paths
from ._refusal import Refusal, type_name

# What is as large as this is sent from where it lies. A group of arrays smaller than the second goes with the graph.
LARGE = 64 << 10
SMALL_GROUP = 4 << 10
TEXT_CACHE = 4096

FLAT = {int, float, bool, type(None), str, bytes}
FLAT_FIXED = {int, float, bool, type(None)}
# Immutable: a restore gives the name another value; nothing of the script's could hold a stale one.
IMMUTABLE_BASES = (int, float, complex, str, bytes, tuple, frozenset)


class End:
    """What is written once a container's contents are; `outer` is the node that the walk then goes on in."""

    __slots__ = ("code", "outer")

    def __init__(self, code: bytes, outer: int) -> None:
        self.code = code
        self.outer = outer


class Then:
    """What is done at that point of the walk."""

    __slots__ = ("act",)

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act


class ValueIndex(NamedTuple):
    path: str
    kind: str
    bytes: int


class Walk:
    """One walk. `live` are objects that a restore fills in place, by id: their paths in the script's own state.

    `orders` gives the order in which a restore filled each set, by id, so that a walk over what was restored numbers
    its elements as the walk that saved them did. `opaque` objects are not looked into: each stands for itself.
    """

    def __init__(
        self,
        live: Optional[Dict[int, str]] = None,
        orders: Optional[Dict[int, List[Any]]] = None,
        only_look: bool = False,
        opaque: Optional[Dict[int, str]] = None,
    ) -> None:
        self._only_look = only_look
        self._outside = opaque or {}
        #: the objects that stood for themselves, by their number among the specials
        self.opaque: Dict[int, Any] = {}
        self.out = bytearray()
        self.refusals: List[Refusal] = []
        self.set_orders: List[Refusal] = []
        self.values: List[ValueIndex] = []
        #: where the part of each value ends in the graph
        self.ends: List[List[Any]] = []
        self.specials: List[List[Any]] = []
        self.nodes: List[Any] = []
        self.parents: List[int] = []
        self.hits: Dict[int, int] = {}
        self.unproven: List[Any] = []
        self.classes: Dict[int, type] = {}
        self.functions: Dict[int, types.FunctionType] = {}
        self.keep: List[Any] = []
        self.memory = _memory.Groups()
        self.paths = Paths(self)
        self._live = live or {}
        self._orders = orders or {}
        self._memo: Dict[int, int] = {}
        self._count = 0
        self._field_dicts: Dict[int, int] = {}
        self._here = -1
        self._stack: List[Any] = []
        self._texts: Dict[str, bytes] = {}
        self._codes: Dict[Tuple[str, str], bytes] = {}
        self._verdicts: Dict[type, Verdict] = {}
        self._refused_at: set = set()
        self._refused_paths: set = set()
        self._scratch = io.BytesIO()
        self._fast = pickle.Pickler(self._scratch, 3)
        self._fast.fast = True
        self._handlers: Dict[type, Callable[[Any], None]] = {
            End: self._end,
            Then: self._then,
            type(None): lambda value: self.out.extend(pickle.NONE),
            bool: lambda value: self.out.extend(pickle.NEWTRUE if value else pickle.NEWFALSE),
            int: self._int,
            float: self._float,
            str: self._str,
            bytes: self._bytes,
            type(Ellipsis): lambda value: self._named("builtins", "Ellipsis"),
            type(NotImplemented): lambda value: self._named("builtins", "NotImplemented"),
            list: self._list,
            dict: self._dict,
            tuple: self._tuple,
            set: self._set,
            frozenset: self._frozenset,
            bytearray: self._bytearray,
            types.ModuleType: self._module,
        }

    @staticmethod
    def verdict_of(kind: type) -> Verdict:
        return judge(kind)

    def is_fields(self, value: Any) -> bool:
        """Whether a dict holds the fields of an object of the state, or of the state itself."""
        return id(value) in self._field_dicts

    def forget(self) -> None:
        """Lets go of all that the walk made for itself, but for its nodes."""
        self.keep.clear()
        self.memory = _memory.Groups()
        self.unproven.clear()

    # ---- the walk itself

    def run(self, state: Any, extras: Dict[str, Any]) -> None:
        """Walks the state's values, then what goes along with them (random states)."""
        values = object.__getattribute__(state, "__dict__")
        self._handlers[type(state)] = self._root
        self.nodes.append(values)
        self.parents.append(-1)
        self._field_dicts[id(values)] = 0
        out = self.out
        out += pickle.EMPTY_DICT
        for name in list(values):
            begin, large = len(out), self.memory.bytes
            out += self._text(name) if isinstance(name, str) else b""
            self._here = 0
            self._stack.append(values[name])
            self._drain()
            out += pickle.SETITEM
            kind = type_name(type(values[name]))
            self.ends.append([f"state.{name}", len(out)])
            self.values.append(ValueIndex(f"state.{name}", kind, len(out) - begin + self.memory.bytes - large))
        out += pickle.EMPTY_DICT
        for name, value in extras.items():
            out += self._text(name)
            self.nodes.append({name: value})
            self.parents.append(-1)
            self._here = len(self.nodes) - 1
            self._stack.append(value)
            self._drain()
            out += pickle.SETITEM
        out += pickle.TUPLE2 + pickle.STOP

    def _drain(self) -> None:
        stack, handlers = self._stack, self._handlers
        pop = stack.pop
        while stack:
            value = pop()
            handler = handlers.get(type(value))
            if handler is None:
                handler = self._learn(type(value))
            handler(value)

    def _learn(self, kind: type) -> Callable[[Any], None]:
        verdict = judge(kind)
        self._verdicts[kind] = verdict
        handler: Callable[[Any], None] = getattr(self, f"_{verdict.how}")
        self._handlers[kind] = handler
        return handler

    def _end(self, end: End) -> None:
        self.out += end.code
        self._here = end.outer

    def _then(self, then: Then) -> None:
        then.act()

    def _enter(self, value: Any) -> int:
        """A new node, in which the walk now is; returns the one it was in."""
        outer = self._here
        self.nodes.append(value)
        self.parents.append(outer)
        self._here = len(self.nodes) - 1
        return outer

    def _remember(self, value: Any) -> None:
        self._memo[id(value)] = self._count
        self._count += 1
        self.out += pickle.MEMOIZE

    def _again(self, value: Any) -> bool:
        """Writes a reference if the value is there already."""
        index = self._memo.get(id(value))
        if index is None:
            if id(value) in self._outside:
                place = self._special(["itself", self._outside[id(value)]])
                self.opaque[place] = value
                self._push_special(place)
                self._remember(value)
                return True
            return False
        self.hits[id(value)] = self.hits.get(id(value), 0) + 1
        self.out += self._get(index)
        return True

    def _get(self, index: int) -> bytes:
        return b"h%c" % index if index < 256 else b"j" + struct.pack("<I", index)

    def refuse(self, value: Any, reason: str, advice: str) -> None:
        """Names the value, by every key that it has in the container where the walk is, and goes on."""
        self.out += pickle.NONE
        at = (self._here, id(value))
        if at in self._refused_at:
            return
        self._refused_at.add(at)
        self.keep.append(value)
        for path in self.paths.of_child(self._here, value):
            if path in self._refused_paths:
                continue
            self._refused_paths.add(path)
            self.refusals.append(Refusal(path, type_name(type(value)), reason, advice))

    # ---- numbers and text

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self.out += b"K%c" % value
        elif -0x80000000 <= value < 0x80000000:
            self.out += b"J" + struct.pack("<i", value)
        else:
            self.out += self._flat(value)

    def _float(self, value: float) -> None:
        self.out += b"G" + struct.pack(">d", value)

    def _text(self, value: str) -> bytes:
        code = self._texts.get(value)
        if code is None:
            raw = value.encode("utf-8", "surrogatepass")
            if len(raw) < 256:
                code = b"\x8c%c%b" % (len(raw), raw)
                if len(self._texts) < TEXT_CACHE:
                    self._texts[value] = code
            elif len(raw) < 1 << 32:
                code = b"X" + struct.pack("<I", len(raw)) + raw
            else:
                code = b"\x8d" + struct.pack("<Q", len(raw)) + raw
        return code

    def _str(self, value: str) -> None:
        if len(value) >= LARGE:
            if not self._again(value):
                entry = self._special_buffer("str")
                if not self._only_look:
                    self.memory.add_text(value, entry)
                self._push_special()
                self._remember(value)
                self.keep.append(value)
        else:
            self.out += self._text(value)

    def _bytes(self, value: bytes) -> None:
        size = len(value)
        if size >= LARGE:
            if not self._again(value):
                self.memory.add(memoryview(value), self._special_buffer("bytes"))
                self._push_special()
                self._remember(value)
        elif size < 256:
            self.out += b"C%c%b" % (size, value)
        else:
            self.out += b"B" + struct.pack("<I", size) + value

    def _flat(self, value: Any) -> bytes:
        """What holds only numbers and text, written at the speed of C; no memo, hence no identities."""
        scratch = self._scratch
        scratch.seek(0)
        scratch.truncate()
        self._fast.dump(value)
        return scratch.getvalue()[2:-1]

    @staticmethod
    def _is_flat(values: Any) -> bool:
        kinds = set(map(type, values))
        if kinds <= FLAT_FIXED:
            return True
        if not kinds <= FLAT:
            return False
        if len(kinds) == 1:
            return max(map(len, values)) < LARGE
        return all(len(value) < LARGE for value in values if type(value) in (str, bytes))

    # ---- what stands outside the pickle: a live object, a buffer, an array

    def _special(self, entry: List[Any]) -> int:
        self.specials.append(entry)
        return len(self.specials) - 1

    def _special_buffer(self, kind: str, live: Optional[str] = None) -> List[Any]:
        entry = ["buffer", kind, -1, live]
        self._special(entry)
        return entry

    def _push_special(self, index: Optional[int] = None) -> None:
        self._int(len(self.specials) - 1 if index is None else index)
        self.out += pickle.BINPERSID

    def _begin(self, value: Any, fresh: bytes) -> None:
        """Makes the empty object, or takes the one that the script holds, and remembers it."""
        path = self._live.get(id(value))
        if path is None:
            self.out += fresh
        else:
            self.classes[id(type(value))] = type(value)
            self._push_special(self._special(["live", path, _globals.name_of_type(type(value))]))
        self._remember(value)

    def live_path(self, value: Any) -> Optional[str]:
        return self._live.get(id(value))

    def _root(self, value: Any) -> None:
        """The state itself, held by something in it."""
        if not self._again(value):
            self._push_special(self._special(["state"]))
            self._remember(value)
            self.keep.append(value)

    # ---- exact containers

    def _list(self, value: List[Any]) -> None:
        if self._again(value):
            return
        outer = self._enter(value)
        self._begin(value, pickle.EMPTY_LIST)
        if self._is_flat(value):
            self.out += self._flat(value)[1:]
            self._here = outer
            return
        self.out += pickle.MARK
        self._stack.append(End(pickle.APPENDS, outer))
        self._stack.extend(reversed(value))

    def _dict(self, value: Dict[Any, Any]) -> None:
        if self._again(value):
            return
        if id(value) in self._field_dicts:
            self.refuse(value, "it is the __dict__ of another object of the state", "keep a copy of it instead")
            return
        outer = self._enter(value)
        self._begin(value, pickle.EMPTY_DICT)
        self._pairs(value, b"", outer)

    def _pairs(self, value: Dict[Any, Any], then: bytes, outer: int) -> None:
        if self._is_flat(value.values()) and self._is_flat(value):
            self.out += self._flat(value)[1:] + then
            self._here = outer
            return
        self.out += pickle.MARK
        pairs = [part for pair in value.items() for part in pair]
        pairs.reverse()
        self._stack.append(End(pickle.SETITEMS + then, outer))
        self._stack.extend(pairs)

    def _tuple(self, value: Tuple[Any, ...]) -> None:
        if not value:
            self.out += pickle.EMPTY_TUPLE
            return
        if self._again(value):
            return
        outer = self._enter(value)
        if self._is_flat(value):
            self.out += self._flat(value)
            self._remember(value)
            self._here = outer
            return
        self.out += pickle.MARK
        self._stack.append(Then(lambda: self._close_tuple(value, outer)))
        self._stack.extend(reversed(value))

    def _close_tuple(self, value: Tuple[Any, ...], outer: int) -> None:
        self._here = outer
        index = self._memo.get(id(value))
        if index is None:
            self.out += pickle.TUPLE
            self._remember(value)
        else:
            # Its contents led back to it, and the inner visit has made it.
            self.out += pickle.POP_MARK + self._get(index)

    def _order(self, value: Any) -> List[Any]:
        order = self._orders.get(id(value))
        if order is not None and len(order) == len(value):
            return order
        order = list(value)
        self.keep.append(order)
        if len(order) > 1 and not _rebuild.keeps_order(value, order):
            reason = "the order in which a set gives its elements is not carried"
            for path in self.paths.of_node(self._here):
                self.set_orders.append(Refusal(path, type_name(type(value)), reason, "sort it where order matters"))
        return order

    def _set(self, value: Any) -> None:
        if self._again(value):
            return
        outer = self._enter(value)
        self._begin(value, pickle.EMPTY_SET)
        if not value:
            self._here = outer
            return
        index = self._memo[id(value)]
        self._named("portal._rebuild", "fill_set")
        self.out += self._get(index)
        self._items(self._order(value), pickle.TUPLE2 + pickle.REDUCE + pickle.POP, outer)

    def _frozenset(self, value: Any) -> None:
        if not value:
            self._named("portal._rebuild", "EMPTY_FROZENSET")
            return
        if self._again(value):
            return
        outer = self._enter(value)
        self._named("portal._rebuild", "make_frozenset")
        self._stack.append(Then(lambda: self._close_call(value, 1, outer)))
        self._items(self._order(value), b"", self._here)

    def _items(self, items: List[Any], then: bytes, outer: int) -> None:
        if self._is_flat(items):
            self.out += self._flat(items) + then
            self._here = outer
            return
        self.out += pickle.EMPTY_LIST + pickle.MARK
        self._stack.append(End(pickle.APPENDS + then, outer))
        self._stack.extend(reversed(items))

    def _close_call(self, value: Any, arguments: int, outer: int) -> None:
        self._here = outer
        index = self._memo.get(id(value))
        if index is None:
            self.out += (pickle.TUPLE1 if arguments == 1 else pickle.TUPLE2) + pickle.REDUCE
            self._remember(value)
        else:
            self.out += pickle.POP * (arguments + 1) + self._get(index)

    def _bytearray(self, value: bytearray) -> None:
        if self._again(value):
            return
        outer = self._enter(value)
        if len(value) >= LARGE:
            self.memory.add(memoryview(value), self._special_buffer("bytearray", self._live.get(id(value))))
            self._push_special()
            self._remember(value)
        elif id(value) in self._live:
            self._begin(value, b"")
            self._call_on(value, "fill_bytes", bytes(value))
        else:
            self.out += b"\x96" + struct.pack("<Q", len(value)) + value
            self._remember(value)
        self._here = outer

    def _array(self, value: Any) -> None:
        if self._again(value):
            return
        outer = self._enter(value)
        size = len(value) * value.itemsize
        path = self._live.get(id(value))
        if size >= LARGE:
            self.memory.add(memoryview(value).cast("B"), self._special_buffer("array:" + value.typecode, path))
            self._push_special()
            self._remember(value)
        elif path is not None:
            self._begin(value, b"")
            self._call_on(value, "fill_bytes", value.tobytes())
        else:
            self._named("portal._rebuild", "make_array")
            self._str(value.typecode)
            self._bytes(value.tobytes())
            self.out += pickle.TUPLE2 + pickle.REDUCE
            self._remember(value)
        self._here = outer

    def _call_on(self, value: Any, function: str, argument: bytes) -> None:
        self._named("portal._rebuild", function)
        self.out += self._get(self._memo[id(value)])
        self._bytes(argument)
        self.out += pickle.TUPLE2 + pickle.REDUCE + pickle.POP

    def _ndarray(self, value: Any) -> None:
        if self._again(value):
            return
        outer = self._enter(value)
        reason = self.memory.look_at_array(value)
        if reason is not None:
            self._here = outer
            self.refuse(value, reason[0], reason[1])
            return
        self.keep.append(value)
        owner = self.memory.foreign_owner(value)
        if value.dtype.hasobject:
            self._object_array(value, outer)
        elif owner is not None and id(value) in self._live:
            self._here = outer
            reason = f"a view of a {type(owner).__name__} that the script holds cannot be filled in place"
            self.refuse(value, reason, "keep what it is a view of in the state, and make the view above job.state()")
        elif owner is not None:
            self._named("portal._rebuild", "make_view")
            entry = self.memory.describe_view(value, owner)
            self._stack.append(Then(lambda: self._close_call(value, 2, outer)))
            self._stack.append(entry)
            self._stack.append(owner)
        else:
            self.memory.add_array(value, self._special(["array"]), self.specials, self._live.get(id(value)))
            self._push_special()
            self._remember(value)
            self._here = outer

    def _dtype(self, value: Any) -> None:
        text = _memory.describe_dtype(value)
        if text is None:
            self.refuse(value, "no description gives this dtype back", "keep one without metadata")
            return
        self._named("portal._rebuild", "make_dtype")
        self._str(text)
        self.out += pickle.TUPLE1 + pickle.REDUCE

    def _object_array(self, value: Any, outer: int) -> None:
        if id(value) in self._live:
            self._begin(value, b"")
        else:
            self._named("portal._rebuild", "make_object_array")
            self.out += self._flat(tuple(map(int, value.shape))) + pickle.TUPLE1 + pickle.REDUCE
            self._remember(value)
        self._named("portal._rebuild", "fill_object_array")
        self.out += self._get(self._memo[id(value)])
        items = value.reshape(-1).tolist()
        self.keep.append(items)
        self._items(items, pickle.TUPLE2 + pickle.REDUCE + pickle.POP, outer)

    # ---- instances

    def _class(self, kind: type) -> bool:
        """Writes the class by its name; false: it has none that leads to it."""
        if self._again(kind):
            return True
        name = _globals.find(kind)
        if name is None:
            return False
        self.classes[id(kind)] = kind
        self._named(*name, value=kind)
        return True

    def _named(self, module: str, name: str, value: Any = None) -> None:
        code = self._codes.get((module, name))
        if code is None:
            self.out += self._text(module) + self._text(name) + pickle.STACK_GLOBAL + pickle.MEMOIZE
            self._codes[(module, name)] = self._get(self._count)
            if value is not None:
                self._memo[id(value)] = self._count
                self.keep.append(value)
            self._count += 1
        else:
            self.out += code

    def _plain(self, value: Any) -> None:
        if self._again(value):
            return
        kind = type(value)
        verdict = self._verdicts[kind]
        if hasattr(kind, "load_state_dict") and hasattr(kind, "state_dict") and id(value) in self._live:
            self._carrier(value)
            return
        fields = object.__getattribute__(value, "__dict__") if verdict.has_dict else None
        if not fields and not verdict.slots:
            name = _globals.find_sentinel(value)
            if name is not None and id(value) not in self._live:
                self._named(*name, value=value)
                return
        if fields is not None and (id(fields) in self._memo or id(fields) in self._field_dicts):
            self.refuse(value, "its __dict__ is also a value of its own in the state", "keep a copy of it there")
            return
        outer = self._enter(value)
        if id(value) in self._live:
            self._begin(value, b"")
        elif self._class(kind):
            self.out += pickle.EMPTY_TUPLE + pickle.NEWOBJ
            self._remember(value)
        else:
            self._here = outer
            self._refuse_local(value, kind)
            return
        self._fields(value, fields, verdict, outer)

    def _fields(self, value: Any, fields: Optional[Dict[str, Any]], verdict: Verdict, outer: int) -> None:
        if verdict.slots:
            held = {name: part for name in verdict.slots for part in _globals.slot(value, name)}
            self.keep.append(held)
            self._field_dicts[id(held)] = self._here
            node = self._here
            self._stack.append(Then(lambda: self._put("put_slots", value, held, node, outer)))
        if fields:
            self._field_dicts[id(fields)] = self._here
            back = self._here if verdict.slots else outer
            if verdict.guarded:
                self._put("put_fields", value, fields, self._here, back)
            else:
                self.out += pickle.EMPTY_DICT
                self._pairs(fields, pickle.BUILD, back)
        elif not verdict.slots:
            self._here = outer

    def _put(self, function: str, value: Any, fields: Dict[str, Any], node: int, outer: int) -> None:
        self._here = node
        self._named("portal._rebuild", function)
        self.out += self._get(self._memo[id(value)]) + pickle.EMPTY_DICT
        self._pairs(fields, pickle.TUPLE2 + pickle.REDUCE + pickle.POP, outer)

    def _refuse_local(self, value: Any, kind: type) -> None:
        reason = f"no module names its class {type_name(kind)}"
        self.refuse(value, reason, "define the class at the top of a module")

    def _carrier(self, value: Any) -> None:
        """Carried by its own `state_dict`, into the object that the script holds."""
        outer = self._enter(value)
        try:
            content = value.state_dict()
        except Exception as error:
            self._here = outer
            self.refuse(value, f"its state_dict raised {type_name(type(error))}: {error}", LEAVE_OUT)
            return
        self.keep.append(content)
        self.paths.label(content, ".state_dict()")
        self._begin(value, b"")
        self._named("portal._rebuild", "load_state")
        self.out += self._get(self._memo[id(value)])
        self._stack.append(End(pickle.TUPLE2 + pickle.REDUCE + pickle.POP, outer))
        self._stack.append(content)

    def _exception(self, value: BaseException) -> None:
        """Without its `__init__`: `args`, the fields and what chains it. A traceback cannot be carried and is dropped."""
        if self._again(value):
            return
        outer = self._enter(value)
        if id(value) in self._live:
            self._begin(value, b"")
        elif self._class(type(value)):
            self.out += pickle.EMPTY_TUPLE + pickle.NEWOBJ
            self._remember(value)
        else:
            self._here = outer
            self._refuse_local(value, type(value))
            return
        parts = (value.args, value.__cause__, value.__context__, value.__suppress_context__)
        self.keep.append(parts)
        self.paths.label(parts, "", (".args", ".__cause__", ".__context__", ""))
        fields = object.__getattribute__(value, "__dict__")
        node = self._here
        self._stack.append(Then(lambda: self._fields(value, fields, Verdict("", has_dict=True, guarded=True), outer)))
        self._stack.append(End(pickle.TUPLE2 + pickle.REDUCE + pickle.POP, node))
        self._named("portal._rebuild", "put_exception")
        self.out += self._get(self._memo[id(value)])
        self._stack.append(parts)

    # ---- by name

    def _global(self, value: type) -> None:
        if not self._class(value):
            self.refuse(value, "no module names this class", "define it at the top of a module")

    def _function(self, value: Any) -> None:
        if self._again(value):
            return
        name = _globals.find(value)
        if name is None:
            what = "a lambda" if value.__name__ == "<lambda>" else "a function inside a function"
            if "<locals>" not in value.__qualname__ and value.__name__ != "<lambda>":
                what = "a function that its module does not name"
            self.refuse(value, f"{what} cannot be carried", "define a function at the top of a module")
            return
        self.functions[id(value)] = value
        self._named(*name, value=value)

    def _builtin(self, value: Any) -> None:
        if self._again(value):
            return
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            name = _globals.find(value)
            if name is None:
                self.refuse(value, "no module names this function", LEAVE_OUT)
            else:
                self._named(*name, value=value)
            return
        outer = self._enter(value)
        self._named("portal._rebuild", "builtin_method")
        self._stack.append(Then(lambda: self._close_call(value, 2, outer)))
        self._stack.append(value.__name__)
        self._stack.append(owner)

    def _method(self, value: Any) -> None:
        if self._again(value):
            return
        outer = self._enter(value)
        self._named("portal._rebuild", "make_method")
        self._stack.append(Then(lambda: self._close_call(value, 2, outer)))
        self._stack.append(value.__self__)
        self._stack.append(value.__func__)

    def _member(self, value: Any) -> None:
        """A member of an enumeration, by its name; a combination of flags, by its value."""
        kind = type(value)
        found = _globals.find(kind)
        if found is None:
            self.refuse(value, "no module names its class", "define the class at the top of a module")
        elif value.name is not None and kind.__members__.get(value.name) is value:
            self._named("portal._rebuild", "member")
            self._class(kind)
            self.out += self._text(value.name) + pickle.TUPLE2 + pickle.REDUCE
        else:
            self._class(kind)
            self.out += self._flat(value.value) + pickle.TUPLE1 + pickle.REDUCE

    def _module(self, value: types.ModuleType) -> None:
        name = getattr(value, "__name__", None)
        if not isinstance(name, str) or sys.modules.get(name) is not value or getattr(value, "__spec__", None) is None:
            self.refuse(value, "it is not one of the modules that are imported by name", "import it in the script")
            return
        self._named("portal._rebuild", "module")
        self.out += self._text(name) + pickle.TUPLE1 + pickle.REDUCE

    def _sentinel(self, value: object) -> None:
        name = _globals.find_sentinel(value)
        if name is None:
            self.refuse(value, "only its identity makes it what it is", "give it a name at the top of a module")
        else:
            self._named(*name, value=value)

    def _refuse(self, value: Any) -> None:
        verdict = self._verdicts[type(value)]
        self.refuse(value, verdict.reason, verdict.advice)

    # ---- by a reduce

    def _value(self, value: Any) -> None:
        outer = self._enter(value)
        parts = self._reduced(value, outer)
        if parts is None:
            return
        function, args = parts[0], parts[1]
        self._stack.append(End(pickle.REDUCE, outer))
        self._stack.append(args)
        self._stack.append(function)

    def _trusted(self, value: Any) -> None:
        self._reduce_of(value)

    def _reduce(self, value: Any) -> None:
        self._reduce_of(value, proven=False)

    def _reduced(self, value: Any, outer: int) -> Optional[Tuple[Any, ...]]:
        kind = type(value)
        try:
            reducer = copyreg.dispatch_table.get(kind)
            parts = reducer(value) if reducer is not None else value.__reduce_ex__(4)
        except Exception as error:
            self._here = outer
            self.refuse(value, f"it cannot be taken apart: {type_name(type(error))}: {error}", LEAVE_OUT)
            return None
        if isinstance(parts, str):
            return (parts,)
        if not isinstance(parts, tuple) or not 2 <= len(parts) <= 6 or not isinstance(parts[1], tuple):
            self._here = outer
            self.refuse(value, "what its __reduce_ex__ gives is not what one gives", LEAVE_OUT)
            return None
        self.keep.append(parts)
        self.paths.label(parts[1], ".__reduce__()")
        if len(parts) > 2 and parts[2] is not value:
            self.paths.label(parts[2], "")
        return parts

    def _reduce_of(self, value: Any, proven: bool = True) -> None:
        if self._again(value):
            return
        kind = type(value)
        if id(value) in self._live and hasattr(kind, "load_state_dict") and hasattr(kind, "state_dict"):
            self._carrier(value)
            return
        outer = self._enter(value)
        parts = self._reduced(value, outer)
        if parts is None:
            return
        if len(parts) == 1:
            self._here = outer
            name = _globals.find_named(value, parts[0])
            if name is None:
                self.refuse(value, f"no module names it {parts[0]}", LEAVE_OUT)
            else:
                self._named(*name, value=value)
            return
        if not proven:
            self.unproven.append((value, len(self.nodes) - 1))
        function, args, state, items, pairs, setter = (*parts, None, None, None, None)[:6]
        self._stack.append(Then(lambda: self._made(value, state, items, pairs, setter, outer)))
        path = self._live.get(id(value))
        if path is not None:
            if not _rebuild.fills_in_place(value, function, args):
                self._stack.pop()
                self._here = outer
                reason = "the one that the script holds cannot be filled in place"
                self.refuse(value, reason, "keep what it is made of in the state instead")
                return
            self.classes[id(kind)] = kind
            self._named("portal._rebuild", "ready")
            self._push_special(self._special(["live", path, _globals.name_of_type(kind)]))
            self._stack.append(Then(lambda: self._close_make(value, pickle.TUPLE2 + pickle.REDUCE)))
            self._stack.append(args)
            return
        name = getattr(function, "__name__", "")
        if name == "__newobj__" and args:
            rest = args[1:]
            self.keep.append(rest)
            self.paths.label(rest, ".__reduce__()")
            self._stack.append(Then(lambda: self._close_make(value, pickle.NEWOBJ)))
            self._stack.append(rest)
            self._stack.append(args[0])
        elif name == "__newobj_ex__" and len(args) == 3:
            self._stack.append(Then(lambda: self._close_make(value, pickle.NEWOBJ_EX)))
            self._stack.extend(reversed(args))
        else:
            self._stack.append(Then(lambda: self._close_make(value, pickle.REDUCE)))
            self._stack.append(args)
            self._stack.append(function)

    def _close_make(self, value: Any, call: bytes) -> None:
        index = self._memo.get(id(value))
        if index is None:
            self.out += call
            self._remember(value)
        else:
            # Its parts led back to it: the inner visit has made it; what was pushed for this one goes.
            self.out += call + pickle.POP + self._get(index)

    def _made(self, value: Any, state: Any, items: Any, pairs: Any, setter: Any, outer: int) -> None:
        end: List[Any] = []
        if items is not None:
            held = list(items)
            self.keep.append(held)
            end.append(Then(lambda: self.out.extend(pickle.MARK)))
            end.extend(held)
            end.append(End(pickle.APPENDS, self._here))
        if pairs is not None:
            flat = [part for pair in pairs for part in pair]
            self.keep.append(flat)
            end.append(Then(lambda: self.out.extend(pickle.MARK)))
            end.extend(flat)
            end.append(End(pickle.SETITEMS, self._here))
        if state is not None:
            if setter is None:
                end.extend((state, End(pickle.BUILD, self._here)))
            else:
                index = self._memo[id(value)]
                end.append(setter)
                end.append(Then(lambda: self.out.extend(self._get(index))))
                end.extend((state, End(pickle.TUPLE2 + pickle.REDUCE + pickle.POP, self._here)))
        end.append(End(b"", outer))
        self._stack.extend(reversed(end))

    # ---- what came of it

    def finish(self) -> None:
        """Lays out the memory that stays outside the graph; after this, `streams` gives all of it."""
        self.memory.lay_out(self.specials, SMALL_GROUP)

    def graph(self) -> List[memoryview]:
        """The `graph` stream in its pieces: two lengths, the table of what stands outside, small arrays, the pickle."""
        table = {"specials": self.specials, "groups": self.memory.table, "buffers": self.memory.kinds()}
        encoded = json.dumps(table, separators=(",", ":")).encode()
        small = self.memory.small()
        head = struct.pack("<QQ", len(encoded), len(small)) + encoded
        return [memoryview(head), memoryview(small), memoryview(self.out)]

"""What every part of a walk stands on: the graph being written, what was seen, where the walk is."""

from __future__ import annotations

import pickle
import struct
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import _globals, _memory, _rebuild
from ._kinds import Verdict, judge
from ._paths import Paths
from ._refusal import LIMIT, Refusal, type_name

# What is as large as this is sent from where it lies. A group of arrays smaller than the second goes with the graph.
LARGE = 64 << 10
SMALL_GROUP = 4 << 10
TEXT_CACHE = 4096

FLAT = {int, float, bool, type(None), str, bytes}
FLAT_FIXED = {int, float, bool, type(None)}
CALL_AND_DROP = pickle.TUPLE2 + pickle.REDUCE + pickle.POP


class Code:
    """What is written at that point of the walk."""

    __slots__ = ("code",)

    def __init__(self, code: bytes) -> None:
        self.code = code


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


class _Sink:
    """Where the C pickler writes: the graph itself."""

    def __init__(self, out: bytearray) -> None:
        self.write = out.extend


class Graph:
    """The state of a walk, and the small acts that its parts share."""

    def __init__(
        self,
        live: Optional[Dict[int, str]] = None,
        orders: Optional[Dict[int, List[Any]]] = None,
        only_look: bool = False,
        opaque: Optional[Dict[int, str]] = None,
    ) -> None:
        self.only_look = only_look
        self.live = live or {}
        self.orders = orders or {}
        self.outside = opaque or {}
        #: objects that are not simply made anew: live ones, and those that stand for themselves
        self.apart = {**self.live, **self.outside}
        #: the objects that stood for themselves, by their number among the specials
        self.opaque: Dict[int, Any] = {}
        self.out = bytearray()
        self.refusals: List[Refusal] = []
        #: how many more there are than are named
        self.more = 0
        self.set_orders: List[Refusal] = []
        self.values: List[ValueIndex] = []
        #: where the part of each value ends in the graph
        self.ends: List[List[Any]] = []
        self.specials: List[List[Any]] = []
        self.nodes: List[Any] = []
        self.parents: List[int] = []
        #: how often each object was met again, by id
        self.hits: Dict[int, int] = {}
        #: objects whose class has a reduce of its own, with their nodes
        self.unproven: List[Tuple[Any, int]] = []
        #: dicts whose keys could be addresses, with the nodes that hold them
        self.addressed: List[Tuple[Dict[int, Any], int]] = []
        self.classes: Dict[int, type] = {}
        self.functions: Dict[int, types.FunctionType] = {}
        self.keep: List[Any] = []
        self.memory = _memory.Groups()
        self.paths = Paths(self)
        #: by id, the number under which the unpickler remembers the object
        self.memo: Dict[int, int] = {}
        #: dicts that hold an object's fields, by id, with the object's node
        self.field_dicts: Dict[int, int] = {}
        self.here = -1
        self.stack: List[Any] = []
        self.texts: Dict[str, bytes] = {}
        self.verdicts: Dict[type, Verdict] = {}
        #: how many visits of an object that is being taken apart are under way, by id, and the first one's node
        self.under_way: Dict[int, Tuple[int, int]] = {}
        self._codes: Dict[Tuple[str, str], bytes] = {}
        self._refused_at: Set[Tuple[int, int]] = set()
        self._refused_paths: Set[str] = set()
        self.fast = pickle.Pickler(_Sink(self.out), 3)
        self.fast.fast = True

    @staticmethod
    def verdict_of(kind: type) -> Verdict:
        return judge(kind)

    def is_fields(self, value: Any) -> bool:
        """Whether a dict holds the fields of an object of the state, or of the state itself."""
        return id(value) in self.field_dicts

    def forget(self) -> None:
        """Lets go of all that the walk made for itself, but for its nodes."""
        self.keep.clear()
        self.memory = _memory.Groups()
        self.unproven.clear()

    def enter(self, value: Any) -> int:
        """A new node, in which the walk now is; returns the one it was in."""
        outer = self.here
        self.nodes.append(value)
        self.parents.append(outer)
        self.here = len(self.nodes) - 1
        return outer

    def remember(self, value: Any) -> None:
        self.memo[id(value)] = len(self.memo)
        self.out += pickle.MEMOIZE

    def again(self, value: Any) -> bool:
        """Writes a reference if the value is there already, or stands for itself."""
        index = self.memo.get(id(value))
        if index is not None:
            self.hits[id(value)] = self.hits.get(id(value), 0) + 1
            self.out += self.reference(index)
            return True
        if id(value) not in self.outside:
            return False
        place = self.special(["itself", self.outside[id(value)]])
        self.opaque[place] = value
        self.push_special(place)
        self.remember(value)
        return True

    def reference(self, index: int) -> bytes:
        return b"h%c" % index if index < 256 else b"j" + struct.pack("<I", index)

    def refuse(self, value: Any, reason: str, advice: str) -> None:
        """Names the value, by every key that it has in the container where the walk is, and goes on."""
        self.out += pickle.NONE
        if len(self.refusals) >= LIMIT:
            self.more += 1
            return
        at = (self.here, id(value))
        if at in self._refused_at:
            return
        self._refused_at.add(at)
        self.keep.append(value)
        for path in self.paths.of_child(self.here, value):
            if path not in self._refused_paths:
                self._refused_paths.add(path)
                self.refusals.append(Refusal(path, type_name(type(value)), reason, advice))

    def refuse_node(self, node: int, reason: str, advice: str) -> None:
        """Names an object in which the walk is still under way."""
        self.out += pickle.NONE
        path = self.paths.of_node(node)[0]
        if path not in self._refused_paths:
            self._refused_paths.add(path)
            self.refusals.append(Refusal(path, type_name(type(self.nodes[node])), reason, advice))

    def refuse_addresses(self) -> None:
        """Names the dicts keyed by the id() of objects of the state: those ids mean nothing after a move."""
        for value, here in self.addressed:
            if all(key in self.memo or key == id(part) for key, part in value.items()):
                self.here = here
                advice = "key it by something that is part of the object"
                self.refuse(value, "its keys are id()s of objects, which are others after a move", advice)

    # ---- numbers and text

    def write_int(self, value: int) -> None:
        self.out += self.int_code(value)

    def int_code(self, value: int) -> bytes:
        if 0 <= value < 256:
            return b"K%c" % value
        if -0x80000000 <= value < 0x80000000:
            return b"J" + struct.pack("<i", value)
        return pickle.dumps(value, 3)[2:-1]

    def float_code(self, value: float) -> bytes:
        return b"G" + struct.pack(">d", value)

    def text_code(self, value: str) -> bytes:
        code = self.texts.get(value)
        if code is None:
            raw = value.encode("utf-8", "surrogatepass")
            if len(raw) < 256:
                code = b"\x8c%c%b" % (len(raw), raw)
                if len(self.texts) < TEXT_CACHE:
                    self.texts[value] = code
            elif len(raw) < 1 << 32:
                code = b"X" + struct.pack("<I", len(raw)) + raw
            else:
                code = b"\x8d" + struct.pack("<Q", len(raw)) + raw
        return code

    def bytes_code(self, value: bytes) -> bytes:
        size = len(value)
        return b"C%c%b" % (size, value) if size < 256 else b"B" + struct.pack("<I", size) + value

    def write_str(self, value: str) -> None:
        if len(value) < LARGE:
            self.out += self.text_code(value)
        elif not self.again(value):
            entry = self.special_buffer("str")
            if not self.only_look:
                self.memory.add_text(value, entry)
            self.push_special()
            self.remember(value)
            self.keep.append(value)

    def write_bytes(self, value: bytes) -> None:
        if len(value) < LARGE:
            self.out += self.bytes_code(value)
        elif not self.again(value):
            self.memory.add(memoryview(value), self.special_buffer("bytes"))
            self.push_special()
            self.remember(value)
            self.keep.append(value)

    def flat(self, value: Any, then: bytes = b"", skip: int = 0) -> bool:
        """Writes what holds only numbers and short text, at the speed of C; false: it holds more.

        No memo is kept for it, hence no identities of numbers and text show. `skip`: how many bytes to leave out, for a
        container whose beginning is there already.
        """
        kinds = set(map(type, value.values() if type(value) is dict else value))
        if not kinds <= FLAT or (type(value) is dict and not set(map(type, value)) <= FLAT):
            return False
        out = self.out
        begin = len(out)
        self.fast.dump(value)
        if len(out) - begin > LARGE and not kinds <= FLAT_FIXED and holds_large(value):
            del out[begin:]
            return False
        out[-1:] = then
        # The pickler begins with two bytes that name the protocol.
        del out[begin : begin + 2 + skip]
        return True

    # ---- what stands outside the pickle: a live object, a buffer, an array

    def special(self, entry: List[Any]) -> int:
        self.specials.append(entry)
        return len(self.specials) - 1

    def special_buffer(self, kind: str, live: Optional[str] = None) -> List[Any]:
        entry = ["buffer", kind, -1, live]
        self.special(entry)
        return entry

    def push_special(self, index: Optional[int] = None) -> None:
        self.write_int(len(self.specials) - 1 if index is None else index)
        self.out += pickle.BINPERSID

    def begin(self, value: Any, fresh: bytes) -> None:
        """Makes the empty object, or takes the one that the script holds, and remembers it."""
        path = self.live.get(id(value))
        if path is None:
            self.out += fresh
        else:
            self.classes[id(type(value))] = type(value)
            self.push_special(self.special(["live", path, _globals.name_of_type(type(value))]))
        self.remember(value)

    # ---- names

    def named(self, module: str, name: str, value: Any = None) -> None:
        """Writes what a name leads to."""
        code = self._codes.get((module, name))
        if code is None:
            self.out += self.text_code(module) + self.text_code(name) + pickle.STACK_GLOBAL + pickle.MEMOIZE
            index = len(self.memo)
            held = object() if value is None else value
            self.keep.append(held)
            self.memo[id(held)] = index
            self._codes[(module, name)] = self.reference(index)
        else:
            self.out += code

    def write_class(self, kind: type) -> bool:
        """Writes a class by its name; false: it has none that leads to it."""
        if self.again(kind):
            return True
        name = _globals.find(kind)
        if name is None:
            return False
        self.classes[id(kind)] = kind
        self.named(*name, value=kind)
        return True

    # ---- calls

    def close_call(self, value: Any, arguments: int, outer: int) -> None:
        """Ends a call whose function and arguments are written, unless these led back to the value and made it."""
        self.here = outer
        index = self.memo.get(id(value))
        if index is None:
            self.out += (pickle.TUPLE1 if arguments == 1 else pickle.TUPLE2) + pickle.REDUCE
            self.remember(value)
        else:
            self.out += pickle.POP * (arguments + 1) + self.reference(index)

    def call_on(self, value: Any, function: str, argument: bytes) -> None:
        self.named("portal._rebuild", function)
        self.out += self.reference(self.memo[id(value)])
        self.write_bytes(argument)
        self.out += CALL_AND_DROP

    def pairs(self, value: Dict[Any, Any], then: bytes, outer: int) -> None:
        """The contents of a dict that is begun already; numbers and text are written in runs."""
        if self.flat(value, then, skip=1):
            self.here = outer
            return
        out = self.out
        out += pickle.MARK
        pieces: List[Any] = []
        run = bytearray()
        for pair in value.items():
            for part in pair:
                kind = type(part)
                if kind is str and len(part) < LARGE:
                    run += self.texts.get(part) or self.text_code(part)
                elif kind is int:
                    run += self.int_code(part)
                elif kind is float:
                    run += self.float_code(part)
                elif part is None:
                    run += pickle.NONE
                else:
                    if run:
                        pieces.append(Code(bytes(run)))
                        run.clear()
                    pieces.append(part)
        pieces.append(End(bytes(run) + pickle.SETITEMS + then, outer))
        pieces.reverse()
        self.stack += pieces

    def order(self, value: Any) -> List[Any]:
        order = self.orders.get(id(value))
        if order is not None and len(order) == len(value):
            return order
        order = list(value)
        self.keep.append(order)
        if len(order) > 1 and not _rebuild.keeps_order(value, order):
            reason = "the order in which a set gives its elements is not carried"
            for path in self.paths.of_node(self.here):
                self.set_orders.append(Refusal(path, type_name(type(value)), reason, "sort it where order matters"))
        return order

    def items(self, items: List[Any], then: bytes, outer: int) -> None:
        """A list that stands for a container's contents."""
        if self.flat(items, then):
            self.here = outer
            return
        self.out += pickle.EMPTY_LIST + pickle.MARK
        self.stack.append(End(pickle.APPENDS + then, outer))
        self.stack.extend(reversed(items))


def holds_large(value: Any) -> bool:
    """Whether there is text or are bytes in it that are to be sent from where they lie."""
    parts = [*value, *value.values()] if type(value) is dict else value
    return any(len(part) >= LARGE for part in parts if type(part) in (str, bytes))

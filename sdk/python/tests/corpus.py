"""Kinds of values: each is carried and comes back equal, or is refused by its path (K-STRICT-5)."""

from __future__ import annotations

import array
import asyncio
import collections
import concurrent.futures
import contextvars
import csv
import ctypes
import datetime
import decimal
import fractions
import functools
import gzip
import hashlib
import io
import ipaddress
import itertools
import logging
import mmap
import multiprocessing
import multiprocessing.shared_memory
import operator
import os
import pathlib
import queue
import random
import re
import select
import selectors
import socket
import sqlite3
import ssl
import string
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
import unittest.mock
import uuid
import weakref
import zlib
from typing import Any, Callable, Dict, List

from . import kinds as k

CARRIED: Dict[str, Callable[[], Any]] = {}
#: the value and, from the value's own path on, every path that is to be named
REFUSED: Dict[str, Any] = {}
# What must live as long as the job: a weak reference's referent, a file's folder.
KEPT: List[Any] = []


def carried(name: str, make: Callable[[], Any]) -> None:
    assert name not in CARRIED
    CARRIED[name] = make


def refused(name: str, make: Callable[[], Any], *steps: str) -> None:
    assert name not in REFUSED
    REFUSED[name] = (make, steps or ("",))


def keep(value: Any) -> Any:
    KEPT.append(value)
    return value


def _shared() -> Any:
    inner: List[int] = [1, 2]
    return {"a": inner, "b": (inner, inner), "c": k.Plain(held=inner)}


def _cycle() -> Any:
    node = k.Node()
    child = k.Node()
    child.parent = node
    node.children.append(child)
    node.parent = node
    return node


def _list_cycle() -> Any:
    made: List[Any] = [1]
    made.append(made)
    return made


def _tuple_cycle() -> Any:
    inner: List[Any] = []
    made = (inner, 1)
    inner.append(made)
    return made


def _set_cycle() -> Any:
    node = k.Plain()
    node.group = {node}
    return node


def _dict_cycle() -> Any:
    made: Dict[Any, Any] = {}
    made["self"] = made
    made["values"] = [made]
    return made


def _deep(depth: int) -> Any:
    made: Any = []
    for _ in range(depth):
        made = [made]
    return made


def _deep_tuple(depth: int) -> Any:
    made: Any = ()
    for _ in range(depth):
        made = (made,)
    return made


def _deep_objects(depth: int) -> Any:
    made: Any = None
    for _ in range(depth):
        made = k.Plain(next=made)
    return made


def _with(value: Any, **fields: Any) -> Any:
    for name, field in fields.items():
        setattr(value, name, field)
    return value


def _slotted_with_dict() -> Any:
    made = k.SlottedWithDict(3)
    made.__dict__["extra"] = {"x": 1}
    return made


def _chained() -> Any:
    try:
        try:
            raise ValueError("first")
        except ValueError as error:
            raise k.CodeError(7) from error
    except k.CodeError as error:
        return error


def _random(seed: int) -> Any:
    made = random.Random(seed)
    made.random()
    made.gauss(0, 1)
    return made


def _float(bits: int) -> float:
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def _shrunk_dict() -> Any:
    made = {number: str(number) for number in range(100)}
    for number in range(0, 100, 3):
        del made[number]
    made["last"] = 1
    return made


def _bound() -> Any:
    holder = k.Concrete()
    return {"holder": holder, "bound": holder.act, "list": [holder.act]}


# ---- carried
for number, value in enumerate([None, True, False, 0, -1, 255, 256, 2**31, -(2**31), 2**63, -(2**200), 10**400]):
    carried(f"number_{number}", lambda value=value: value)
carried("float_nan", lambda: _float(0x7FF8000000000123))
carried("float_negative_zero", lambda: -0.0)
carried("float_tiny", lambda: 5e-324)
carried("float_inf", lambda: [float("inf"), -float("inf")])
carried("complex", lambda: complex(-0.0, float("inf")))
carried("ellipsis", lambda: [..., NotImplemented])
carried("str_empty", lambda: "")
carried("str_unicode", lambda: "snow \u2603 \U0001f600 nul \0")
carried("str_surrogate", lambda: "\ud800 alone \udfff")
carried("str_long", lambda: "é" * 3000)
carried("str_large", lambda: "ab\u2603" * 50_000)
carried("bytes", lambda: bytes(range(256)) * 3)
carried("bytes_large", lambda: bytes(range(256)) * 1000)
carried("bytes_zero", lambda: bytes(300_000))
carried("bytearray", lambda: bytearray(b"abc"))
carried("bytearray_empty", lambda: bytearray())
carried("bytearray_large", lambda: bytearray(range(256)) * 700)
carried("list_empty", list)
carried("list_flat", lambda: list(range(2500)))
carried("list_mixed", lambda: [1, "a", 2.5, None, True, b"x", [1, [2, [3]]], {}])
carried("list_of_large", lambda: [bytes(100_000), "x" * 100_000, 1])
carried("list_cycle", _list_cycle)
carried("list_deep", lambda: _deep(100_000))
carried("tuple_empty", tuple)
carried("tuple_flat", lambda: (1, 2.0, "three"))
carried("tuple_nested", lambda: ((1, [2]), ((3,),), ()))
carried("tuple_cycle", _tuple_cycle)
carried("tuple_deep", lambda: _deep_tuple(5_000))
carried("dict_empty", dict)
carried("dict_order", lambda: {"z": 1, "a": 2, 3: 4, None: 5, (1, 2): 6, 2.5: 7, b"k": 8})
carried("dict_shrunk", _shrunk_dict)
carried("dict_of_objects", lambda: {k.HashedByContent(1): k.HashedByContent(2)})
carried("dict_cycle", _dict_cycle)
carried("set", lambda: {3, 1, 2})
carried("set_empty", set)
carried("set_text", lambda: {"a", "bb", "ccc"})
carried("set_mixed", lambda: {1, "a", (1, "b"), frozenset({2}), None})
carried("set_of_objects", lambda: {k.HashedByContent(3)})
carried("set_cycle", _set_cycle)
carried("frozenset", lambda: frozenset({1, ("a", frozenset())}))
carried("frozenset_empty", frozenset)
carried("shared", _shared)
carried("cycle", _cycle)
carried("objects_deep", lambda: _deep_objects(20_000))
carried("plain", lambda: k.Plain(a=1, b=[2], c={"d": (3,)}))
carried("plain_empty", k.Plain)
carried("plain_odd_names", lambda: k.Plain(**{"not an identifier": 1, "": 2}))
carried("slots", lambda: k.Slotted(5))
carried("slots_child", lambda: k.SlottedChild([1], {"x": 2}))
carried("slots_with_dict", _slotted_with_dict)
carried("guarded", k.Guarded)
carried("dataclass", lambda: k.Data(1, [2, 3]))
carried("dataclass_frozen", lambda: k.Frozen(1, (2,)))
carried("abstract", k.Concrete)
carried("generic", lambda: k.Box([1]))
carried("generic_made", lambda: k.Box[int](4))
carried("named_tuple", lambda: k.Point(1, [2]))
carried("namedtuple", lambda: k.Pair(1, k.Plain(a=1)))
carried("enum", lambda: [k.Color.RED, k.Color.GREEN, k.Number.ONE])
carried("flag", lambda: [k.Rights.READ, k.Rights.READ | k.Rights.WRITE, k.Rights(0)])
carried("list_subclass", lambda: _with(k.MyList([1, [2]]), tag={"x": 1}))
carried("dict_subclass", lambda: _with(k.MyDict(a=1, b=[2]), tag="t"))
carried("set_subclass", lambda: _with(k.MySet([1, 2]), tag="t"))
carried("set_subclass_order", lambda: _with(k.MySet([f"text {n}" for n in range(50)]), tag="t"))
carried("frozenset_subclass", lambda: _with(k.MyFrozenSet([f"text {n}" for n in range(50)]), tag=[1]))
carried("dict_of_numbers", lambda: {n * 2**40: n for n in range(1, 5)})
carried("int_subclass", lambda: _with(k.MyInt(7), tag=[1]))
carried("str_subclass", lambda: _with(k.MyStr("text"), tag=[1]))
carried("float_subclass", lambda: k.MyFloat(-0.0))
carried("tuple_subclass", lambda: k.MyTuple([1, [2]]))
carried("bytes_subclass", lambda: k.MyBytes(b"bytes"))
carried("ordered_dict", lambda: collections.OrderedDict([("z", 1), ("a", [2])]))
carried("default_dict", lambda: collections.defaultdict(list, a=[1]))
carried("counter", lambda: collections.Counter("abracadabra"))
carried("deque", lambda: collections.deque([1, [2], 3], maxlen=5))
carried("deque_cycle", lambda: (lambda made: (made.append(made), made)[1])(collections.deque([1])))
carried("chain_map", lambda: collections.ChainMap({"a": 1}, {"b": [2]}))
carried("user_dict", lambda: collections.UserDict(a=1))
carried("user_list", lambda: collections.UserList([1, 2]))
carried("array", lambda: array.array("d", [1.0, -0.0, 2.5]))
carried("array_large", lambda: array.array("i", range(50_000)))
carried("range", lambda: range(1, 10**20, 3))
carried("slice", lambda: slice(1, None, 2))
carried("date", lambda: datetime.date(2024, 2, 29))
carried("time", lambda: datetime.time(1, 2, 3, 4, fold=1))
carried("datetime", lambda: datetime.datetime(2024, 1, 2, 3, 4, 5, 6))
carried("datetime_zone", lambda: datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=5))))
carried("timedelta", lambda: datetime.timedelta(days=-1, microseconds=3))
carried("timezone", lambda: [datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1), "X")])
carried("decimal", lambda: [decimal.Decimal("-0.10"), decimal.Decimal("sNaN12"), decimal.Decimal("Infinity")])
carried("decimal_context", lambda: k.Plain(prec=decimal.getcontext().prec))
carried("fraction", lambda: fractions.Fraction(-3, 7))
carried("uuid", lambda: uuid.UUID(int=2**100))
carried("path", lambda: [pathlib.Path("/a/b"), pathlib.PurePosixPath("c"), pathlib.PureWindowsPath("C:/d")])
carried("pattern", lambda: [re.compile("a+", re.I), re.compile(b"b")])
carried("address", lambda: [ipaddress.ip_address("::1"), ipaddress.ip_address("10.0.0.1")])
carried("network", lambda: ipaddress.ip_network("10.0.0.0/8"))
carried("partial", lambda: functools.partial(k.function, 1, b=[2]))
carried("getters", lambda: [operator.itemgetter(1, 2), operator.attrgetter("a.b"), operator.methodcaller("x", 1)])
carried("namespace", lambda: types.SimpleNamespace(a=1, b=[2]))
carried("struct_time", lambda: time.gmtime(0))
carried("template", lambda: string.Template("$a"))
carried("random", lambda: _random(3))
carried("function", lambda: [k.function, len, os.path.join, str.upper, "a".upper])
carried("class", lambda: [int, k.Plain, type(None), typing.List, collections.abc.Sized])
carried("bound_method", _bound)
carried("class_method", lambda: [k.Maker.by_class])
carried("factory_of_its_own", k.Maker)
carried("module", lambda: [os.path, k])
carried("sentinel", lambda: [k.MISSING, k.NOTHING, k.Scoped.NONE])
carried("exception", lambda: [ValueError("a", [1]), KeyError("k"), Exception()])
carried("exception_own_init", lambda: k.CodeError(7))
carried("exception_chained", _chained)
carried("exception_os", lambda: OSError(2, "no", "file"))
carried("exception_group_of_fields", lambda: _with(ValueError("x"), extra={"y": [1]}))
carried("own_state", lambda: k.WithState(4))
carried("own_state_drops_lock", k.DropsLock)
carried("own_reduce", lambda: k.Reduced([1, {"a": 2}]))
carried("own_new_arguments", lambda: k.GivesArguments([1]))
carried("own_new_named_arguments", lambda: k.GivesNamedArguments(a=[1]))
carried("closes_at_its_end", lambda: k.Closes("copy"))
carried("logger", lambda: logging.getLogger("portal.tests"))
carried("own_iterator", lambda: (lambda made: (next(made), made)[1])(k.Iterates([1, 2, 3])))
carried("generic_alias", lambda: [typing.List[int], typing.Dict[str, typing.Any], typing.Optional[int]])
carried("keyed_by_content", lambda: {(1, "a"): {"b": (2,)}, frozenset({1}): 3})
carried("string_io", lambda: (lambda made: (made.write("text"), made.seek(2), made)[2])(io.StringIO()))
carried("bytes_io", lambda: (lambda made: (made.write(b"text"), made.seek(2), made)[2])(io.BytesIO()))


# ---- refused
def _folder() -> str:
    made = tempfile.TemporaryDirectory(prefix="portal-corpus-")
    return keep(made).name


def _file(mode: str = "w") -> Any:
    path = os.path.join(_folder(), "file")
    with open(path, "wb") as file:
        file.write(b"some bytes")
    return keep(open(path, mode))


def _generator() -> Any:
    yield from range(3)


async def _coroutine() -> int:
    return 1


async def _async_generator() -> Any:
    yield 1


def _local_function() -> Any:
    inside = [1]

    def local() -> Any:
        return inside

    return local


def _local_object() -> Any:
    class Local:
        pass

    return Local()


def _local_class() -> Any:
    class Local:
        pass

    return Local


def _weak(make: Callable[[Any], Any]) -> Any:
    return make(keep(k.Plain(a=1)))


def _named_wrongly() -> Any:
    def function() -> None:
        pass

    function.__qualname__ = "function"
    function.__module__ = k.__name__
    return function


def _new_module() -> Any:
    return types.ModuleType("made_up")


def _traceback() -> Any:
    try:
        raise ValueError
    except ValueError as error:
        return error.__traceback__


def _fields_as_value() -> Any:
    holder = k.Plain(a=1)
    return [holder, holder.__dict__]


def _tagged(value: Any) -> Any:
    value.tag = "lost by the base class's reduce"
    return value


def _mapped() -> Any:
    return keep(mmap.mmap(-1, 4096))


refused("socket", lambda: keep(socket.socket()))
refused("socket_pair", lambda: list(map(keep, socket.socketpair())), "[0]", "[1]")
refused("ssl_context", ssl.create_default_context)
refused("file_text", _file)
refused("file_binary", lambda: _file("rb"))
refused("file_raw", lambda: keep(open(_file().name, "rb", buffering=0)))
refused("gzip_file", lambda: keep(gzip.open(_file().name, "rb")))
refused("stdout", lambda: sys.stdout)
refused("lock", threading.Lock)
refused("rlock", threading.RLock)
refused("event", threading.Event)
refused("condition", threading.Condition)
refused("semaphore", threading.Semaphore)
refused("barrier", lambda: threading.Barrier(2))
refused("thread", lambda: threading.Thread(target=print))
refused("current_thread", threading.current_thread)
refused("thread_local", threading.local)
refused("queue", queue.Queue)
refused("simple_queue", queue.SimpleQueue)
refused("generator", _generator)
refused("coroutine", lambda: keep(_coroutine()))
refused("async_generator", _async_generator)
refused("list_iterator", lambda: iter([1, 2]))
refused("dict_iterator", lambda: iter({1: 2}))
refused("set_iterator", lambda: iter({1, 2}))
refused("reversed", lambda: reversed([1, 2]))
refused("enumerate", lambda: enumerate([1]))
refused("map", lambda: map(str, [1]))
refused("zip", lambda: zip([1], [2]))
refused("filter", lambda: filter(None, [1]))
refused("itertools_count", lambda: itertools.count(3))
refused("itertools_chain", lambda: itertools.chain([1], [2]))
refused("dict_keys", lambda: {1: 2}.keys())
refused("dict_values", lambda: {1: 2}.values())
refused("dict_items", lambda: {1: 2}.items())
refused("mapping_proxy", lambda: types.MappingProxyType({1: 2}))
refused("memoryview", lambda: memoryview(bytearray(3)))
refused("mmap", _mapped)
refused("lambda", lambda: lambda: 1)
refused("local_function", _local_function)
refused("local_object", _local_object)
refused("local_class", _local_class)
refused("partial_of_lambda", lambda: functools.partial(lambda: 1), ".func")
refused("named_wrongly", _named_wrongly)
refused("weakref", lambda: _weak(weakref.ref))
refused("weak_proxy", lambda: _weak(weakref.proxy))
refused("weak_method", lambda: weakref.WeakMethod(keep(k.Concrete()).act))
refused("weak_set", weakref.WeakSet)
refused("weak_key_dict", weakref.WeakKeyDictionary)
refused("weak_value_dict", weakref.WeakValueDictionary)
refused("finalize", lambda: _weak(lambda value: weakref.finalize(value, str)))
refused("process", lambda: keep(subprocess.Popen(["true"], stdin=subprocess.DEVNULL)))
refused("ctypes_int", lambda: ctypes.c_int(3))
refused("ctypes_array", lambda: (ctypes.c_int * 3)())
refused("ctypes_pointer", lambda: ctypes.pointer(ctypes.c_int(3)))
refused("ctypes_library", lambda: ctypes.CDLL(None))
refused("ctypes_function", lambda: ctypes.CDLL(None).getpid)
refused("module_unknown", _new_module)
refused("object", object)
refused("frame", sys._getframe)
refused("traceback", _traceback)
refused("code", lambda: k.function.__code__)
refused("property", lambda: property(len))
refused("cell", lambda: _local_function().__closure__[0])
refused("temporary_directory", lambda: keep(tempfile.TemporaryDirectory(prefix="portal-corpus-")))
refused("temporary_file", lambda: keep(tempfile.NamedTemporaryFile(prefix="portal-corpus-")))
refused("dir_entry", lambda: keep(next(os.scandir("/"))))
refused("selector", lambda: keep(selectors.DefaultSelector()))
refused("epoll", lambda: keep(select.poll()))
refused("sqlite", lambda: keep(sqlite3.connect(":memory:")))
refused("sqlite_cursor", lambda: keep(sqlite3.connect(":memory:")).cursor())
refused("hash", lambda: hashlib.sha256(b"half"))
refused("zlib_stream", zlib.compressobj)
refused("csv_writer", lambda: csv.writer(io.StringIO()))
refused("executor", lambda: keep(concurrent.futures.ThreadPoolExecutor(1)))
refused("future", concurrent.futures.Future)
refused("event_loop", lambda: keep(asyncio.new_event_loop()))
refused("context_var", lambda: keep(contextvars.ContextVar("portal")))
refused("context", contextvars.copy_context)
refused("mp_connection", lambda: list(map(keep, multiprocessing.Pipe())), "[0]", "[1]")
refused("mp_process", lambda: multiprocessing.Process(target=print))
refused("mp_lock", lambda: keep(multiprocessing.get_context("spawn").Lock()))
refused("mp_value", lambda: keep(multiprocessing.get_context("spawn").Value("i", 3)))
def _shared_memory() -> Any:
    memory = keep(multiprocessing.shared_memory.SharedMemory(create=True, size=16))
    memory.unlink()
    return memory


refused("shared_memory", _shared_memory)
refused("made_from_itself", k.MadeFromItself)
refused("mock", lambda: unittest.mock.Mock(spec=dict))
refused("match", lambda: re.match("a", "a"))
refused("system_random", random.SystemRandom)
refused("reduce_raises", k.BadReduce)
refused("reduce_odd", k.OddReduce)
refused("reduce_lies", lambda: k.Liar([1]), ".a")
refused("reduce_impostor", k.Impostor)
refused("drops_field", k.DropsField, ".lost")
refused("new_needs_argument", lambda: k.NeedsArgument(1))
refused("datetime_fields", lambda: _tagged(k.TaggedDate(2024, 1, 1)), ".tag")
refused("decimal_fields", lambda: _tagged(k.TaggedDecimal("1.5")), ".tag")
refused("random_fields", lambda: _tagged(k.TaggedRandom(3)), ".tag")
refused("fields_as_value", _fields_as_value, "[1]")
refused("attr_dict", lambda: k.AttrDict(a=1))
def _keyed_by_id() -> Any:
    parts = [k.Plain(a=1), k.Plain(a=2)]
    return [parts, {id(part): part for part in parts}, {id(part): number for number, part in enumerate(parts)}]


refused("keyed_by_id", _keyed_by_id, "[1]", "[2]")
refused("slot_with_lock", lambda: k.SlottedChild(1, threading.Lock()), ".b")
refused("field_with_socket", lambda: k.Plain(a=[k.Plain(sock=keep(socket.socket()))]), ".a[0].sock")
refused("key", lambda: {keep(socket.socket()): 1}, ".keys()[0]")
refused("default_factory", lambda: collections.defaultdict(lambda: 0), ".default_factory")
refused("cached_function", lambda: functools.lru_cache(maxsize=None)(lambda: 1))
refused("job", lambda: __import__("portal").job())


# ---- how deep
class Holder:
    def __init__(self, inside: Any) -> None:
        self.inside = inside


NESTS: Dict[str, Any] = {
    "": (lambda value: value, lambda held: held),
    ".layers[0]['x']": (lambda value: k.Plain(layers=[{"x": value}]), lambda held: held.layers[0]["x"]),
    "[1].inside[2]": (lambda value: (0, Holder([0, 1, value])), lambda held: held[1].inside[2]),
}


def nests_of(name: str) -> List[Any]:
    """The nests for a kind that is carried; what is deep in itself is so once."""
    return list(enumerate(NESTS.values()))[: 1 if name.endswith("_deep") else None]

"""One verdict a type: how it is carried, or why not and what to do (K-STRICT-2: an allow-list).

Exact built-ins, plain classes and the kinds named here are carried. Every other type offers a reduce of its own and has
to prove, by a rebuilding that is compared, that nothing is lost.
"""

from __future__ import annotations

import copyreg
import enum
import sys
import types
from typing import Any, Dict, List, NamedTuple, Optional, Tuple



class Verdict(NamedTuple):
    """`how` is the walker's method for the type; the rest says why not, or what the type is made of."""

    how: str
    reason: str = ""
    advice: str = ""
    has_dict: bool = False
    slots: Tuple[str, ...] = ()
    #: the class has a say in attribute look-up, so that fields are put without asking it
    guarded: bool = False


LEAVE_OUT = "leave it out of the state, or make it again in the lines above job.state()"
CLOSE = "close it in job.on_suspend or leave it out of the state"

# Immutable and without identity worth keeping: written out in full each time, never shared.
VALUES = {
    "datetime.date", "datetime.time", "datetime.datetime", "datetime.timedelta", "datetime.timezone",
    "decimal.Decimal", "_pydecimal.Decimal", "fractions.Fraction", "re.Pattern",
    "pathlib.PurePath", "pathlib.PurePosixPath", "pathlib.PureWindowsPath", "pathlib.Path", "pathlib.PosixPath",
    "pathlib.WindowsPath", "pathlib._local.PurePath", "pathlib._local.PurePosixPath", "pathlib._local.PosixPath",
    "pathlib._local.PureWindowsPath", "pathlib._local.WindowsPath", "pathlib._local.Path",
    "ipaddress.IPv4Address", "ipaddress.IPv6Address", "zoneinfo.ZoneInfo",
    "builtins.complex", "builtins.range", "torch.device", "types.GenericAlias", "types.UnionType", "typing.Union",
}  # fmt: skip

# Their own reduce is known to be whole.
TRUSTED = {
    "collections.deque", "collections.OrderedDict", "collections.defaultdict", "collections.Counter",
    "random.Random", "functools.partial", "operator.itemgetter", "operator.attrgetter", "operator.methodcaller",
    "_io.StringIO", "_io.BytesIO", "time.struct_time", "os.stat_result", "os.terminal_size", "builtins.slice", "datetime.tzinfo",
    "builtins.method_descriptor", "builtins.wrapper_descriptor", "builtins.classmethod_descriptor",
    "logging.Logger", "logging.RootLogger", "uuid.UUID",
    "torch.Size", "numpy.random._generator.Generator", "numpy.random.mtrand.RandomState",
    "numpy.random._pcg64.PCG64", "numpy.random._pcg64.PCG64DXSM", "numpy.random._mt19937.MT19937",
    "numpy.random._philox.Philox", "numpy.random._sfc64.SFC64", "numpy.random.bit_generator.SeedSequence",
    "numpy.random._generator.default_rng",
}  # fmt: skip

# By any class of the type's ancestry: the reason and the advice.
REFUSED: Dict[str, Tuple[str, str]] = {
    "socket.socket": ("an open connection belongs to this machine", CLOSE),
    "_socket.socket": ("an open connection belongs to this machine", CLOSE),
    "ssl.SSLContext": ("it holds keys and callbacks of this process", LEAVE_OUT),
    "_io._IOBase": ("an open file belongs to this machine", "keep its path and its position instead, and open it again"),
    "_thread.lock": ("a lock belongs to the threads of this process", LEAVE_OUT),
    "_thread.RLock": ("a lock belongs to the threads of this process", LEAVE_OUT),
    "_thread._local": ("values of threads belong to this process", LEAVE_OUT),
    "_threading_local.local": ("values of threads belong to this process", LEAVE_OUT),
    "threading.Thread": ("a thread runs in this process", "stop it in job.on_suspend and leave it out of the state"),
    "threading.Event": ("it wakes threads of this process", "keep a bool instead"),
    "threading.Condition": ("a lock belongs to the threads of this process", LEAVE_OUT),
    "threading.Semaphore": ("a lock belongs to the threads of this process", LEAVE_OUT),
    "threading.Barrier": ("a lock belongs to the threads of this process", LEAVE_OUT),
    "queue.Queue": ("it holds locks of this process", "keep a list or a collections.deque instead"),
    "_queue.SimpleQueue": ("it wakes threads of this process", "keep a list or a collections.deque instead"),
    "builtins.generator": ("a running generator cannot be carried", "keep what it needs to go on: a position, a step"),
    "builtins.async_generator": ("a running generator cannot be carried", "keep what it needs to go on"),
    "builtins.coroutine": ("a running coroutine cannot be carried", LEAVE_OUT),
    "builtins.frame": ("a frame of this process", LEAVE_OUT),
    "builtins.traceback": ("a traceback holds frames of this process", "keep the exception's text instead"),
    "builtins.code": ("code is not carried, only named", "keep a function that its module names"),
    "builtins.memoryview": ("a view of memory", "keep the bytearray itself"),
    "builtins.mappingproxy": ("a view of another dict", "keep a dict instead"),
    "builtins.dict_keys": ("a view of another dict", "keep a list instead"),
    "builtins.dict_values": ("a view of another dict", "keep a list instead"),
    "builtins.dict_items": ("a view of another dict", "keep a list instead"),
    "collections.OrderedDict.odict_keys": ("a view of another dict", "keep a list instead"),
    "builtins.weakref": ("what a weak reference points to is not held by it", LEAVE_OUT),
    "weakref.ReferenceType": ("what a weak reference points to is not held by it", LEAVE_OUT),
    "builtins.weakproxy": ("what a weak proxy points to is not held by it", LEAVE_OUT),
    "builtins.weakcallableproxy": ("what a weak proxy points to is not held by it", LEAVE_OUT),
    "weakref.ProxyType": ("what a weak proxy points to is not held by it", LEAVE_OUT),
    "weakref.CallableProxyType": ("what a weak proxy points to is not held by it", LEAVE_OUT),
    "weakref.WeakKeyDictionary": ("what weak references point to is not held by them", LEAVE_OUT),
    "weakref.WeakValueDictionary": ("what weak references point to is not held by them", LEAVE_OUT),
    "weakref.finalize": ("it acts when an object of this process ends", LEAVE_OUT),
    "_weakrefset.WeakSet": ("what weak references point to is not held by them", LEAVE_OUT),
    "subprocess.Popen": ("a process of this machine", CLOSE),
    "_ctypes._SimpleCData": ("memory outside Python's objects", "keep its value instead"),
    "_ctypes._Pointer": ("an address means nothing on another machine", "keep what it points to instead"),
    "_ctypes.Structure": ("memory outside Python's objects", "keep its fields or bytes(it) instead"),
    "_ctypes.Union": ("memory outside Python's objects", "keep bytes(it) instead"),
    "_ctypes.Array": ("memory outside Python's objects", "keep an array.array or a bytearray instead"),
    "_ctypes.CFuncPtr": ("an address means nothing on another machine", LEAVE_OUT),
    "ctypes.CDLL": ("a library loaded into this process", LEAVE_OUT),
    "mmap.mmap": ("mapped memory belongs to this machine", "keep a bytearray instead"),
    "numpy.memmap": ("a mapped file belongs to this machine", "keep its path, or numpy.array(it) instead"),
    "multiprocessing.shared_memory.SharedMemory": ("shared memory belongs to this machine", "keep bytes(it.buf) instead"),
    "multiprocessing.shared_memory.ShareableList": ("shared memory belongs to this machine", "keep a list instead"),
    "multiprocessing.connection._ConnectionBase": ("an open connection belongs to this machine", CLOSE),
    "multiprocessing.process.BaseProcess": ("a process of this machine", CLOSE),
    "multiprocessing.queues.Queue": ("a pipe between processes of this machine", CLOSE),
    "multiprocessing.queues.SimpleQueue": ("a pipe between processes of this machine", CLOSE),
    "multiprocessing.synchronize.SemLock": ("a lock between processes of this machine", LEAVE_OUT),
    "multiprocessing.synchronize.Event": ("a lock between processes of this machine", LEAVE_OUT),
    "multiprocessing.synchronize.Condition": ("a lock between processes of this machine", LEAVE_OUT),
    "multiprocessing.pool.Pool": ("processes of this machine", CLOSE),
    "multiprocessing.managers.BaseManager": ("a process of this machine", CLOSE),
    "multiprocessing.managers.BaseProxy": ("it points to a process of this machine", CLOSE),
    "multiprocessing.heap.BufferWrapper": ("shared memory belongs to this machine", "keep an array.array instead"),
    "multiprocessing.sharedctypes.SynchronizedBase": ("shared memory belongs to this machine", "keep its value instead"),
    "concurrent.futures._base.Executor": ("threads or processes of this machine", CLOSE),
    "concurrent.futures._base.Future": ("a result that is still awaited in this process", "keep its result instead"),
    "_asyncio.Future": ("a result that is still awaited in this process", "keep its result instead"),
    "_asyncio.Task": ("a task that runs in this process", LEAVE_OUT),
    "asyncio.futures.Future": ("a result that is still awaited in this process", "keep its result instead"),
    "asyncio.events.AbstractEventLoop": ("a loop that runs in this process", LEAVE_OUT),
    "asyncio.mixins._LoopBoundMixin": ("it belongs to a loop of this process", LEAVE_OUT),
    "_contextvars.Context": ("a context of this process", LEAVE_OUT),
    "builtins.Context": ("a context of this process", LEAVE_OUT),
    "builtins.ContextVar": ("a context of this process", LEAVE_OUT),
    "builtins.Token": ("a context of this process", LEAVE_OUT),
    "tempfile.TemporaryDirectory": ("a directory of this machine that is removed with it", "keep the files' contents"),
    "tempfile._TemporaryFileWrapper": ("an open file belongs to this machine", "keep its contents instead"),
    "tempfile.SpooledTemporaryFile": ("an open file belongs to this machine", "keep its contents instead"),
    "os.DirEntry": ("an entry of a directory of this machine", "keep its path instead"),
    "posix.DirEntry": ("an entry of a directory of this machine", "keep its path instead"),
    "posix.ScandirIterator": ("an open directory of this machine", LEAVE_OUT),
    "select.poll": ("descriptors of this process", LEAVE_OUT),
    "select.epoll": ("descriptors of this process", LEAVE_OUT),
    "selectors.BaseSelector": ("descriptors of this process", LEAVE_OUT),
    "sqlite3.Connection": ("an open database belongs to this machine", CLOSE),
    "sqlite3.Cursor": ("an open database belongs to this machine", CLOSE),
    "_hashlib.HASH": ("a half-made hash cannot be carried", "keep the bytes, or the finished digest"),
    "_csv.reader": ("it reads from an open file", LEAVE_OUT),
    "_csv.writer": ("it writes to an open file", LEAVE_OUT),
    "zlib.Compress": ("a half-made stream cannot be carried", LEAVE_OUT),
    "zlib.Decompress": ("a half-read stream cannot be carried", LEAVE_OUT),
    "builtins.PyCapsule": ("an address means nothing on another machine", LEAVE_OUT),
    "builtins.module": ("it is not one of the modules that are imported by name", "import it in the script"),
    "builtins.cell": ("the inside of a closure cannot be carried", "keep its value in the state instead"),
    "builtins.property": ("part of a class, not a value", LEAVE_OUT),
    "builtins.staticmethod": ("part of a class, not a value", LEAVE_OUT),
    "builtins.classmethod": ("part of a class, not a value", LEAVE_OUT),
    "builtins.super": ("a view of another object", "keep that object instead"),
    "torch.storage._TypedStorage": ("memory of tensors", "keep a tensor instead"),
    "torch.storage.TypedStorage": ("memory of tensors", "keep a tensor instead"),
    "torch.storage.UntypedStorage": ("memory of tensors", "keep a tensor instead"),
    "torch.storage._UntypedStorage": ("memory of tensors", "keep a tensor instead"),
    "portal._job.Job": ("the job itself is made anew by portal.job()", LEAVE_OUT),
}

ITERATOR_ADVICE = "keep what it goes through and a position, and make it again"


def _names(kind: type) -> List[str]:
    return [f"{getattr(base, '__module__', '')}.{getattr(base, '__qualname__', '')}" for base in kind.__mro__]


def judge(kind: type) -> Verdict:
    """The verdict on a type that is not one of the exact built-ins. Never runs code of the type's own."""
    names = _names(kind)
    own = names[0]
    if own in VALUES:
        return Verdict("value")
    if own in TRUSTED:
        return Verdict("trusted")
    for name in names:
        if name in REFUSED:
            return Verdict("refuse", *REFUSED[name])
    if issubclass(kind, type):
        return Verdict("global")
    if kind is types.FunctionType:
        return Verdict("function")
    if kind is types.BuiltinFunctionType or own == "builtins.builtin_function_or_method":
        return Verdict("builtin")
    if kind is types.MethodType:
        return Verdict("method")
    if issubclass(kind, enum.Enum):
        return Verdict("member")
    if own == "numpy.ndarray":
        return Verdict("ndarray")
    if own == "array.array":
        return Verdict("array")
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, getattr(numpy, "generic", ())) and kind.__module__ == "numpy":
        return Verdict("value")
    if numpy is not None and issubclass(kind, getattr(numpy, "dtype", ())):
        return Verdict("dtype")
    if own in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        return Verdict("tensor")
    if own in ("torch._C.Generator", "torch.Generator"):
        return Verdict("torch_generator")
    if kind is object:
        return Verdict("sentinel")
    if own == "builtins.dict_reversekeyiterator" or _is_iterator(kind):
        return Verdict("refuse", "an iterator's position cannot be carried", ITERATOR_ADVICE)
    if issubclass(kind, BaseException) and _plain_exception(kind):
        return Verdict("exception", has_dict=True)
    return _set_like(kind) or _plain(kind) or Verdict("reduce")


def _is_iterator(kind: type) -> bool:
    # An iterator of the job's own, written as a plain class, carries its position in its fields.
    return hasattr(kind, "__next__") and not _is_python_class(kind)


def _is_python_class(kind: type) -> bool:
    """Made by a class statement, on `object` alone: no hidden field of a C type."""
    fields = 0
    for base in kind.__mro__[:-1]:
        if not base.__flags__ & (1 << 9) or "__module__" not in base.__dict__:
            return False
        fields += len(own_slots(base))
    words = fields + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ == 0 and kind.__basicsize__ <= object.__basicsize__ + 8 * words


def own_slots(kind: type) -> List[str]:
    """The fields that a class's own `__slots__` names, as they are called in its instances."""
    slots = kind.__dict__.get("__slots__", ())
    if isinstance(slots, str):
        slots = (slots,)
    found = []
    for name in slots:
        if name in ("__dict__", "__weakref__"):
            continue
        if name.startswith("__") and not name.endswith("__"):
            stripped = kind.__name__.lstrip("_")
            name = f"_{stripped}{name}" if stripped else name
        found.append(name)
    return found


def _set_like(kind: type) -> Optional[Verdict]:
    """A subclass of set or frozenset that leaves their making and their reduce as they are."""
    for base in (set, frozenset):
        if not issubclass(kind, base) or kind in copyreg.dispatch_table:
            continue
        same = all(getattr(kind, name) is getattr(base, name) for name in ("__reduce__", "__reduce_ex__", "__new__"))
        states = ("__getstate__", "__setstate__")
        if same and all(getattr(kind, name, None) is getattr(object, name, None) for name in states):
            slots = [name for each in kind.__mro__[:-2] for name in own_slots(each)]
            return Verdict("set_like", has_dict=kind.__dictoffset__ != 0, slots=tuple(slots), guarded=True)
    return None


def _plain(kind: type) -> Optional[Verdict]:
    """Object's own reduce, and no say in how an instance is made or filled."""
    if not _is_python_class(kind) or kind in copyreg.dispatch_table:
        return None
    for name in ("__reduce_ex__", "__reduce__", "__new__"):
        if getattr(kind, name) is not getattr(object, name):
            return None
    for name in ("__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__"):
        if getattr(kind, name, None) is not getattr(object, name, None):
            return None
    slots: List[str] = []
    for base in kind.__mro__[:-1]:
        for name in own_slots(base):
            if not isinstance(base.__dict__.get(name), types.MemberDescriptorType) or name in slots:
                return None
            slots.append(name)
    guarded = any(name in base.__dict__ for base in kind.__mro__[:-1] for name in ("__getattr__", "__getattribute__"))
    has_dict = kind.__dictoffset__ != 0
    if has_dict and any("__dict__" in base.__dict__ and _overrides_dict(base) for base in kind.__mro__[:-1]):
        return None
    return Verdict("plain", has_dict=has_dict, slots=tuple(slots), guarded=guarded)


def _overrides_dict(kind: type) -> bool:
    return not isinstance(kind.__dict__["__dict__"], types.GetSetDescriptorType)


def _plain_exception(kind: type) -> bool:
    """An exception all of whose fields lie in `args`, its `__dict__` and what chains it to others."""
    names = ("__reduce_ex__", "__reduce__", "__setstate__", "__new__", "__getstate__", "__getattribute__")
    for base in kind.__mro__:
        if base is BaseException or base is object:
            continue
        if base.__basicsize__ > BaseException.__basicsize__ + 8 * (base.__weakrefoffset__ > 0) or own_slots(base):
            return False
        if base.__flags__ & (1 << 9) and any(name in base.__dict__ for name in names):
            return False
    return kind not in copyreg.dispatch_table

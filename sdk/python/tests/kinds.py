"""Classes and functions of the corpus, as jobs write them."""

from __future__ import annotations

import abc
import collections
import dataclasses
import datetime
import decimal
import enum
import random
import threading
import typing


class Plain:
    def __init__(self, **fields: typing.Any) -> None:
        self.__dict__.update(fields)


class Slotted:
    __slots__ = ("a", "_Slotted__hidden", "empty")

    def __init__(self, a: typing.Any) -> None:
        self.a = a
        self.__hidden = [a]


class SlottedChild(Slotted):
    __slots__ = ("b",)

    def __init__(self, a: typing.Any, b: typing.Any) -> None:
        super().__init__(a)
        self.b = b


class SlottedWithDict(Slotted):
    pass


class Guarded:
    """Look-up of its own, as proxies and lazy attributes have."""

    def __init__(self) -> None:
        object.__setattr__(self, "content", {"x": 1})

    def __getattr__(self, name: str) -> typing.Any:
        return self.content[name]

    def __setattr__(self, name: str, value: typing.Any) -> None:
        raise AttributeError("read only")


@dataclasses.dataclass
class Data:
    a: int
    b: typing.List[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int
    b: typing.Tuple[int, ...] = ()


class Abstract(abc.ABC):
    @abc.abstractmethod
    def act(self) -> int: ...


class Concrete(Abstract):
    def __init__(self) -> None:
        self.a = 1

    def act(self) -> int:
        return self.a


Generic = typing.TypeVar("Generic")


class Box(typing.Generic[Generic]):
    def __init__(self, inside: Generic) -> None:
        self.inside = inside


class Point(typing.NamedTuple):
    x: int
    y: typing.Any


Pair = collections.namedtuple("Pair", "left right")


class Color(enum.Enum):
    RED = 1
    GREEN = "g"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Number(enum.IntEnum):
    ONE = 1


class MyList(list):
    pass


class MyDict(dict):
    pass


class MySet(set):
    pass


class MyFrozenSet(frozenset):
    pass


class MyInt(int):
    pass


class MyStr(str):
    pass


class MyFloat(float):
    pass


class MyTuple(tuple):
    pass


class MyBytes(bytes):
    pass


class AttrDict(dict):
    def __init__(self, **fields: typing.Any) -> None:
        super().__init__(**fields)
        self.__dict__ = self


class HashedByContent:
    def __init__(self, key: typing.Any) -> None:
        self.key = key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashedByContent) and self.key == other.key


class Node:
    def __init__(self) -> None:
        self.children: list = []
        self.parent: typing.Any = None


class WithState:
    """A getstate and a setstate that give all of it."""

    def __init__(self, a: typing.Any) -> None:
        self.a = a
        self.twice = [a, a]

    def __getstate__(self) -> typing.Any:
        return {"a": self.a}

    def __setstate__(self, state: typing.Any) -> None:
        self.a = state["a"]
        self.twice = [self.a, self.a]


class DropsLock:
    """Drops what cannot be carried, and makes it anew."""

    def __init__(self) -> None:
        self.a = [1]
        self.lock = threading.Lock()

    def __getstate__(self) -> typing.Any:
        return {"a": self.a}

    def __setstate__(self, state: typing.Any) -> None:
        self.a = state["a"]
        self.lock = threading.Lock()


class DropsField:
    """Loses what it could have carried."""

    def __init__(self) -> None:
        self.a = 1
        self.lost = [1, 2, 3]

    def __getstate__(self) -> typing.Any:
        return {"a": self.a}


class Reduced:
    def __init__(self, a: typing.Any) -> None:
        self.a = a

    def __reduce__(self) -> typing.Any:
        return Reduced, (self.a,)


class Liar:
    def __init__(self, a: typing.Any) -> None:
        self.a = a

    def __reduce__(self) -> typing.Any:
        return Liar, ("something else",)


class Impostor:
    def __reduce__(self) -> typing.Any:
        return dict, ()


class MadeFromItself:
    def __reduce__(self) -> typing.Any:
        return Reduced, (self,)


class Maker:
    """Its default factory is a method of its own."""

    def __init__(self) -> None:
        self.made = collections.defaultdict(self.make, a=1)

    def make(self) -> int:
        return 7

    @classmethod
    def by_class(cls) -> str:
        return cls.__name__


class BadReduce:
    def __reduce__(self) -> typing.Any:
        raise RuntimeError("not today")


class OddReduce:
    def __reduce__(self) -> typing.Any:
        return 7


class NeedsArgument:
    def __new__(cls, a: typing.Any) -> "NeedsArgument":
        made = super().__new__(cls)
        made.a = a
        return made

    a: typing.Any


class GivesArguments:
    a: typing.Any

    def __new__(cls, a: typing.Any) -> "GivesArguments":
        made = super().__new__(cls)
        made.a = a
        return made

    def __getnewargs__(self) -> typing.Any:
        return (self.a,)


class GivesNamedArguments:
    a: typing.Any

    def __new__(cls, *, a: typing.Any) -> "GivesNamedArguments":
        made = super().__new__(cls)
        made.a = a
        return made

    def __getnewargs_ex__(self) -> typing.Any:
        return (), {"a": self.a}


class TaggedDate(datetime.datetime):
    """A subclass whose own fields datetime's reduce does not know."""

    tag: str


class TaggedDecimal(decimal.Decimal):
    tag: str


class TaggedRandom(random.Random):
    tag: str


class CodeError(Exception):
    """An `__init__` of its own, which pickle would call with the wrong argument."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class FileMissing(OSError):
    def __init__(self, name: str) -> None:
        super().__init__(2, "not found", name)
        self.kept = name


class Closes:
    """Its end acts on the world: a copy that ends inside the job would be seen."""

    ended: typing.List[str] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> typing.Any:
        return Closes, (self.name,)

    def __del__(self) -> None:
        Closes.ended.append(self.name)


class Carrier:
    """Says itself what its state is."""

    def __init__(self) -> None:
        self.weights = [0.0]
        self.hook = lambda: None

    def state_dict(self) -> typing.Any:
        return {"weights": self.weights}

    def load_state_dict(self, content: typing.Any) -> None:
        self.weights[:] = content["weights"]


class Sentinel:
    pass


MISSING = Sentinel()
NOTHING = object()


class Scoped:
    NONE = object()


def function(a: int, b: int = 2) -> int:
    return a + b


def counts(calls: typing.List[int] = []) -> int:  # noqa: B006
    calls.append(1)
    return len(calls)


class Counted:
    made = 0
    names: typing.List[str] = []

    def __init__(self) -> None:
        self.a = 1


class Iterates:
    """An iterator as a plain class: its position is a field."""

    def __init__(self, items: typing.Any) -> None:
        self.items = items
        self.at = 0

    def __iter__(self) -> "Iterates":
        return self

    def __next__(self) -> typing.Any:
        if self.at == len(self.items):
            raise StopIteration
        self.at += 1
        return self.items[self.at - 1]

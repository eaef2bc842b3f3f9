"""The walk over a state: every value looked at, the bad ones named, the good ones written as one graph (K-PY-1).

What is written is a pickle of protocol 5 that the C unpickler reads, but made here, for three reasons: it never
recurses (a list nested 100,000 deep), it knows where each value lies (`state.loader.workers[2].sock`), and it is
canonical: what is shared is numbered by first visit, and the identity of strings and numbers never shows, so that equal
values give equal bytes (K-WHOLE-3). Large memory is not in it: that stays where it is and is sent from there.
"""

from __future__ import annotations

import json
import pickle
import struct
import types
from typing import Any, Callable, Dict, List, Optional

from ._containers import Containers
from ._graph import FLAT_FIXED, SMALL_GROUP, Code, End, Then, ValueIndex
from ._kinds import judge
from ._reduced import Reduced
from ._refusal import type_name
from ._runs import Runs
from ._tensors import Tensors

__all__ = ["FLAT_FIXED", "Walk"]


class Walk(Containers, Runs, Tensors, Reduced):
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
        super().__init__(live, orders, only_look, opaque)
        out = self.out
        self._handlers: Dict[type, Callable[[Any], None]] = {
            Code: lambda code: out.extend(code.code),
            End: self._end,
            Then: lambda then: then.act(),
            type(None): lambda value: out.extend(pickle.NONE),
            bool: lambda value: out.extend(pickle.NEWTRUE if value else pickle.NEWFALSE),
            int: lambda value: out.extend(self.int_code(value)),
            float: lambda value: out.extend(self.float_code(value)),
            str: self.write_str,
            bytes: self.write_bytes,
            type(Ellipsis): lambda value: self.named("builtins", "Ellipsis"),
            type(NotImplemented): lambda value: self.named("builtins", "NotImplemented"),
            **self.container_handlers(),
            bytearray: self._bytearray,
            types.ModuleType: self._module,
        }

    def run(self, state: Any, extras: Dict[str, Any]) -> None:
        """Walks the state's values, then what goes along with them (random states)."""
        values = object.__getattribute__(state, "__dict__")
        self._handlers[type(state)] = self._root
        self.nodes.append(values)
        self.parents.append(-1)
        self.field_dicts[id(values)] = 0
        out = self.out
        out += pickle.EMPTY_DICT
        for name in list(values):
            begin, large = len(out), self.memory.bytes
            out += self.text_code(name)
            self.here = 0
            self._drain(values[name])
            out += pickle.SETITEM
            kind = type_name(type(values[name]))
            self.ends.append([f"state.{name}", len(out)])
            self.values.append(ValueIndex(f"state.{name}", kind, len(out) - begin + self.memory.bytes - large))
        out += pickle.EMPTY_DICT
        for name, value in extras.items():
            out += self.text_code(name)
            self.here = len(self.nodes)
            self.nodes.append({name: value})
            self.parents.append(-1)
            self._drain(value)
            out += pickle.SETITEM
        out += pickle.TUPLE2 + pickle.STOP
        self.refuse_addresses()

    def _drain(self, value: Any) -> None:
        stack, handlers = self.stack, self._handlers
        stack.append(value)
        pop = stack.pop
        while stack:
            value = pop()
            handler = handlers.get(type(value))
            if handler is None:
                handler = self._learn(type(value))
            handler(value)

    def _learn(self, kind: type) -> Callable[[Any], None]:
        verdict = judge(kind)
        self.verdicts[kind] = verdict
        handler: Callable[[Any], None]
        handler = self.plain_handler(kind, verdict) if verdict.how == "plain" else getattr(self, f"_{verdict.how}")
        self._handlers[kind] = handler
        return handler

    def _end(self, end: End) -> None:
        self.out += end.code
        self.here = end.outer

    def _root(self, value: Any) -> None:
        """The state itself, held by something in it."""
        if not self.again(value):
            self.push_special(self.special(["state"]))
            self.remember(value)
            self.keep.append(value)

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

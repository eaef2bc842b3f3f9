"""Runs of memory: bytearrays, arrays, numpy's arrays and their dtypes."""

from __future__ import annotations

import pickle
import struct
from typing import Any

from . import _memory
from ._graph import CALL_AND_DROP, LARGE, Graph, Then


class Runs(Graph):
    def _bytearray(self, value: bytearray) -> None:
        if self.again(value):
            return
        outer = self.enter(value)
        if len(value) >= LARGE:
            self.memory.add(memoryview(value), self.special_buffer("bytearray", self.live.get(id(value))))
            self.push_special()
            self.remember(value)
        elif id(value) in self.live:
            self.begin(value, b"")
            self.call_on(value, "fill_bytes", bytes(value))
        else:
            self.out += b"\x96" + struct.pack("<Q", len(value)) + value
            self.remember(value)
        self.here = outer

    def _array(self, value: Any) -> None:
        if self.again(value):
            return
        outer = self.enter(value)
        size = len(value) * value.itemsize
        path = self.live.get(id(value))
        if size >= LARGE:
            self.memory.add(memoryview(value).cast("B"), self.special_buffer("array:" + value.typecode, path))
            self.push_special()
            self.remember(value)
        elif path is not None:
            self.begin(value, b"")
            self.call_on(value, "fill_bytes", value.tobytes())
        else:
            self.named("portal._rebuild", "make_array")
            self.write_str(value.typecode)
            self.write_bytes(value.tobytes())
            self.out += pickle.TUPLE2 + pickle.REDUCE
            self.remember(value)
        self.here = outer

    def _ndarray(self, value: Any) -> None:
        if self.again(value):
            return
        outer = self.enter(value)
        fault = self.memory.look_at_array(value)
        if fault is not None:
            self.here = outer
            self.refuse(value, *fault)
            return
        self.keep.append(value)
        owner = self.memory.foreign_owner(value)
        if value.dtype.hasobject:
            self._object_array(value, outer)
        elif owner is not None and id(value) in self.live:
            self.here = outer
            reason = f"a view of a {type(owner).__name__} that the script holds cannot be filled in place"
            self.refuse(value, reason, "keep what it is a view of in the state, and make the view above job.state()")
        elif owner is not None:
            self.named("portal._rebuild", "make_view")
            entry = self.memory.describe_view(value, owner)
            self.stack.append(Then(lambda: self.close_call(value, 2, outer)))
            self.stack.append(entry)
            self.stack.append(owner)
        else:
            self.memory.add_array(value, self.special(["array"]), self.specials, self.live.get(id(value)))
            self.push_special()
            self.remember(value)
            self.here = outer

    def _dtype(self, value: Any) -> None:
        text = _memory.describe_dtype(value)
        if text is None:
            self.refuse(value, "no description gives this dtype back", "keep one without metadata")
            return
        self.named("portal._rebuild", "make_dtype")
        self.write_str(text)
        self.out += pickle.TUPLE1 + pickle.REDUCE

    def _object_array(self, value: Any, outer: int) -> None:
        if id(value) in self.live:
            self.begin(value, b"")
        else:
            self.named("portal._rebuild", "make_object_array")
            self.out += pickle.dumps(tuple(map(int, value.shape)), 3)[2:-1] + pickle.TUPLE1 + pickle.REDUCE
            self.remember(value)
        self.named("portal._rebuild", "fill_object_array")
        self.out += self.reference(self.memo[id(value)])
        items = value.reshape(-1).tolist()
        self.keep.append(items)
        self.items(items, CALL_AND_DROP, outer)

"""Objects taken apart by a reduce: named kinds whose own is known to be whole, and all others, which have to prove it."""

from __future__ import annotations

import copyreg
import pickle
from typing import Any, List, Optional, Tuple

from . import _globals, _rebuild
from ._graph import CALL_AND_DROP, End, Then
from ._kinds import LEAVE_OUT
from ._objects import Objects
from ._refusal import type_name


class Reduced(Objects):
    def _value(self, value: Any) -> None:
        outer = self.enter(value)
        parts = self._reduced(value, outer)
        if parts is None:
            return
        function, args = parts[0], parts[1]
        self.stack.append(End(pickle.REDUCE, outer))
        self.stack.append(args)
        self.stack.append(function)

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
            self.here = outer
            self.refuse(value, f"it cannot be taken apart: {type_name(type(error))}: {error}", LEAVE_OUT)
            return None
        if isinstance(parts, str):
            return (parts,)
        if not isinstance(parts, tuple) or not 2 <= len(parts) <= 6 or not isinstance(parts[1], tuple):
            self.here = outer
            self.refuse(value, "what its __reduce_ex__ gives is not what one gives", LEAVE_OUT)
            return None
        self.keep.append(parts)
        self.paths.label(parts[1], ".__reduce__()")
        if len(parts) > 2 and parts[2] is not value:
            self.paths.label(parts[2], "")
        return parts

    def _reduce_of(self, value: Any, proven: bool = True) -> None:
        if self.again(value):
            return
        kind = type(value)
        if id(value) in self.live and hasattr(kind, "load_state_dict") and hasattr(kind, "state_dict"):
            self._carrier(value)
            return
        visits, first = self.under_way.get(id(value), (0, len(self.nodes)))
        if visits > 1:
            self.refuse_node(first, "what it is made from holds it itself", LEAVE_OUT)
            return
        outer = self.enter(value)
        parts = self._reduced(value, outer)
        if parts is None:
            return
        made_by_class = len(parts) > 1 and (parts[0] is kind or (parts[1] and parts[1][0] is kind))
        if made_by_class and id(value) not in self.live and _globals.find(kind) is None:
            self.here = outer
            self._refuse_local(value, kind)
            return
        self.under_way[id(value)] = (visits + 1, first)
        if len(parts) == 1:
            self.here = outer
            name = _globals.find_named(value, parts[0])
            if name is None:
                self.refuse(value, f"no module names it {parts[0]}", LEAVE_OUT)
            else:
                self.named(*name, value=value)
            return
        if not proven:
            self.unproven.append((value, len(self.nodes) - 1))
        function, args, state, items, pairs, setter = (*parts, None, None, None, None)[:6]
        self.stack.append(Then(lambda: self._made(value, state, items, pairs, setter, outer)))
        path = self.live.get(id(value))
        if path is not None:
            if not _rebuild.fills_in_place(value, function, args):
                self.stack.pop()
                self.here = outer
                reason = "the one that the script holds cannot be filled in place"
                self.refuse(value, reason, "keep what it is made of in the state instead")
                return
            self.classes[id(kind)] = kind
            self.named("portal._rebuild", "ready")
            self.push_special(self.special(["live", path, _globals.name_of_type(kind)]))
            self.stack.append(Then(lambda: self._close_make(value, pickle.TUPLE2 + pickle.REDUCE)))
            self.stack.append(args)
            return
        maker = getattr(function, "__name__", "")
        if maker == "__newobj__" and args:
            rest = args[1:]
            self.keep.append(rest)
            if issubclass(kind, tuple) and rest and type(rest[0]) is tuple and rest[0] is not value:
                self.paths.label(rest, "")
                self.paths.label(rest[0], "")
            else:
                self.paths.label(rest, ".__reduce__()")
            self.stack.append(Then(lambda: self._close_make(value, pickle.NEWOBJ)))
            self.stack.append(rest)
            self.stack.append(args[0])
        elif maker == "__newobj_ex__" and len(args) == 3:
            self.stack.append(Then(lambda: self._close_make(value, pickle.NEWOBJ_EX)))
            self.stack.extend(reversed(args))
        else:
            self.stack.append(Then(lambda: self._close_make(value, pickle.REDUCE)))
            self.stack.append(args)
            self.stack.append(function)

    def _close_make(self, value: Any, call: bytes) -> None:
        visits, first = self.under_way[id(value)]
        self.under_way[id(value)] = (visits - 1, first)
        index = self.memo.get(id(value))
        if index is None:
            self.out += call
            self.remember(value)
        else:
            # Its parts led back to it: the inner visit has made it; what was pushed for this one goes.
            self.out += call + pickle.POP + self.reference(index)

    def _made(self, value: Any, state: Any, items: Any, pairs: Any, setter: Any, outer: int) -> None:
        end: List[Any] = []
        if items is not None:
            held = list(items)
            self.keep.append(held)
            end.append(Then(lambda: self.out.extend(pickle.MARK)))
            end.extend(held)
            end.append(End(pickle.APPENDS, self.here))
        if pairs is not None:
            flat = [part for pair in pairs for part in pair]
            self.keep.append(flat)
            end.append(Then(lambda: self.out.extend(pickle.MARK)))
            end.extend(flat)
            end.append(End(pickle.SETITEMS, self.here))
        if state is not None:
            if setter is None:
                end.extend((state, End(pickle.BUILD, self.here)))
            else:
                index = self.memo[id(value)]
                end.append(setter)
                end.append(Then(lambda: self.out.extend(self.reference(index))))
                end.extend((state, End(CALL_AND_DROP, self.here)))
        end.append(End(b"", outer))
        self.stack.extend(reversed(end))

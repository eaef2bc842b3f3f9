"""The exact built-in containers: where most of a walk's time goes, so they are written as closures over its parts."""

from __future__ import annotations

import pickle
from typing import Any, Callable, Dict, List, Tuple

from ._graph import CALL_AND_DROP, FLAT, FLAT_FIXED, LARGE, End, Graph, Then, holds_large

MEMOIZE = pickle.MEMOIZE[0]
# What id() gives is larger on every machine of today.
ADDRESS = 1 << 32


class Containers(Graph):
    def container_handlers(self) -> Dict[type, Callable[[Any], None]]:
        return {
            list: self._list_handler(),
            dict: self._dict_handler(),
            tuple: self._tuple_handler(),
            set: self._set,
            frozenset: self._frozenset,
        }

    def _list_handler(self) -> Callable[[List[Any]], None]:
        memo, apart, out, nodes, parents = self.memo, self.apart, self.out, self.nodes, self.parents
        stack, dump = self.stack, self.fast.dump

        def handle(value: List[Any]) -> None:
            ident = id(value)
            if ident in memo or ident in apart:
                if self.again(value):
                    return
                outer = self.enter(value)
                self.begin(value, pickle.EMPTY_LIST)
                if self.flat(value, skip=1):
                    self.here = outer
                    return
            else:
                kinds = set(map(type, value))
                if kinds <= FLAT:
                    begin = len(out)
                    dump(value)
                    if len(out) - begin < LARGE or kinds <= FLAT_FIXED or not holds_large(value):
                        out[-1] = MEMOIZE
                        nodes.append(value)
                        parents.append(self.here)
                        memo[ident] = len(memo)
                        return
                    del out[begin:]
                outer = self.here
                self.here = len(nodes)
                nodes.append(value)
                parents.append(outer)
                out.extend(b"]\x94")
                memo[ident] = len(memo)
            out.extend(pickle.MARK)
            stack.append(End(pickle.APPENDS, outer))
            stack.extend(reversed(value))

        return handle

    def _dict_handler(self) -> Callable[[Dict[Any, Any]], None]:
        memo, apart, out, nodes, parents = self.memo, self.apart, self.out, self.nodes, self.parents
        field_dicts, dump = self.field_dicts, self.fast.dump

        def handle(value: Dict[Any, Any]) -> None:
            ident = id(value)
            if ident in memo or ident in apart or ident in field_dicts:
                if self.again(value):
                    return
                if ident in field_dicts:
                    reason = "it is the __dict__ of another object of the state"
                    self.refuse(value, reason, "keep a copy of it instead")
                    return
                outer = self.enter(value)
                self.begin(value, pickle.EMPTY_DICT)
                self.pairs(value, b"", outer)
                return
            keys = set(map(type, value))
            if keys == {int} and next(iter(value)) > ADDRESS:
                self.addressed.append((value, self.here))
            if keys <= FLAT and set(map(type, value.values())) <= FLAT:
                begin = len(out)
                dump(value)
                if len(out) - begin < LARGE or not holds_large(value):
                    out[-1] = MEMOIZE
                    nodes.append(value)
                    parents.append(self.here)
                    memo[ident] = len(memo)
                    return
                del out[begin:]
            outer = self.here
            self.here = len(nodes)
            nodes.append(value)
            parents.append(outer)
            out.extend(b"}\x94")
            memo[ident] = len(memo)
            self.pairs(value, b"", outer)

        return handle

    def _tuple_handler(self) -> Callable[[Tuple[Any, ...]], None]:
        memo, outside, out, nodes, parents = self.memo, self.outside, self.out, self.nodes, self.parents
        stack, dump = self.stack, self.fast.dump

        def handle(value: Tuple[Any, ...]) -> None:
            if not value:
                out.extend(pickle.EMPTY_TUPLE)
                return
            ident = id(value)
            if (ident in memo or ident in outside) and self.again(value):
                return
            if set(map(type, value)) <= FLAT:
                begin = len(out)
                dump(value)
                if len(out) - begin < LARGE or not holds_large(value):
                    out[-1] = MEMOIZE
                    nodes.append(value)
                    parents.append(self.here)
                    memo[ident] = len(memo)
                    return
                del out[begin:]
            outer = self.enter(value)
            out.extend(pickle.MARK)
            stack.append(Then(lambda: self._close_tuple(value, outer)))
            stack.extend(reversed(value))

        return handle

    def _close_tuple(self, value: Tuple[Any, ...], outer: int) -> None:
        self.here = outer
        index = self.memo.get(id(value))
        if index is None:
            self.out += pickle.TUPLE
            self.remember(value)
        else:
            # Its contents led back to it, and the inner visit has made it.
            self.out += pickle.POP_MARK + self.reference(index)

    def _set(self, value: Any) -> None:
        if self.again(value):
            return
        outer = self.enter(value)
        self.begin(value, pickle.EMPTY_SET)
        if not value:
            self.here = outer
            return
        index = self.memo[id(value)]
        self.named("portal._rebuild", "fill_set")
        self.out += self.reference(index)
        self.items(self.order(value), CALL_AND_DROP, outer)

    def _frozenset(self, value: Any) -> None:
        if not value:
            self.named("portal._rebuild", "EMPTY_FROZENSET")
            return
        if self.again(value):
            return
        outer = self.enter(value)
        self.named("portal._rebuild", "make_frozenset")
        self.stack.append(Then(lambda: self.close_call(value, 1, outer)))
        self.items(self.order(value), b"", self.here)

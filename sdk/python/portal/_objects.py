"""Instances of plain classes and exceptions, and what is carried by its name."""

from __future__ import annotations

import pickle
import sys
import types
from typing import Any, Callable, Dict, Optional

from . import _globals
from ._graph import CALL_AND_DROP, FLAT, LARGE, End, Graph, Then, holds_large
from ._kinds import LEAVE_OUT, Verdict
from ._refusal import type_name


class Objects(Graph):
    def plain_handler(self, kind: type, verdict: Verdict) -> Callable[[Any], None]:
        """For the simplest of a class: fields that are numbers alone; all else goes the long way."""
        memo, apart, out, nodes, parents = self.memo, self.apart, self.out, self.nodes, self.parents
        field_dicts, dump = self.field_dicts, self.fast.dump
        simple = verdict.has_dict and not verdict.slots and not verdict.guarded
        head = b""

        def handle(value: Any) -> None:
            nonlocal head
            ident = id(value)
            if not head or ident in memo or ident in apart:
                self._plain(value)
                if simple and not head and id(kind) in memo and "__dict__" not in kind.__dict__.get("__slots__", ()):
                    head = self.reference(memo[id(kind)]) + pickle.EMPTY_TUPLE + pickle.NEWOBJ + pickle.MEMOIZE
                return
            fields = value.__dict__
            fields_ident = id(fields)
            if not fields or fields_ident in memo or fields_ident in field_dicts:
                self._plain(value)
                return
            out.extend(head)
            memo[ident] = len(memo)
            outer = self.here
            field_dicts[fields_ident] = here = len(nodes)
            nodes.append(value)
            parents.append(outer)
            if set(map(type, fields.values())) <= FLAT and set(map(type, fields)) <= FLAT:
                begin = len(out)
                dump(fields)
                if len(out) - begin < LARGE or not holds_large(fields):
                    out[-1:] = pickle.BUILD
                    return
                del out[begin:]
            self.here = here
            out.extend(pickle.EMPTY_DICT)
            self.pairs(fields, pickle.BUILD, outer)

        return handle

    def _plain(self, value: Any) -> None:
        if self.again(value):
            return
        kind = type(value)
        verdict = self.verdicts[kind]
        if hasattr(kind, "load_state_dict") and hasattr(kind, "state_dict") and id(value) in self.live:
            self._carrier(value)
            return
        fields = object.__getattribute__(value, "__dict__") if verdict.has_dict else None
        if not fields and not verdict.slots:
            name = _globals.find_sentinel(value)
            if name is not None and id(value) not in self.live:
                self.named(*name, value=value)
                return
        if fields is not None and (id(fields) in self.memo or id(fields) in self.field_dicts):
            self.refuse(value, "its __dict__ is also a value of its own in the state", "keep a copy of it there")
            return
        outer = self.enter(value)
        if id(value) in self.live:
            self.begin(value, b"")
        elif self.write_class(kind):
            self.out += pickle.EMPTY_TUPLE + pickle.NEWOBJ
            self.remember(value)
        else:
            self.here = outer
            self._refuse_local(value, kind)
            return
        self._fields(value, fields, verdict, outer)

    def _set_like(self, value: Any) -> None:
        """A subclass of set or frozenset: filled in its own order, as those are, then its fields."""
        if self.again(value):
            return
        kind = type(value)
        if id(value) not in self.live and _globals.find(kind) is None:
            self._refuse_local(value, kind)
            return
        outer = self.enter(value)
        node, verdict = self.here, self.verdicts[kind]
        fields = object.__getattribute__(value, "__dict__") if verdict.has_dict else None
        if isinstance(value, frozenset):
            self.stack.append(Then(lambda: self._fields(value, fields, verdict, outer)))
            self.named("portal._rebuild", "make_frozenset_of")
            self.stack.append(Then(lambda: self.close_call(value, 2, node)))
            self.write_class(kind)
            self.items(self.order(value), b"", node)
            return
        if id(value) in self.live:
            self.begin(value, b"")
        else:
            self.write_class(kind)
            self.out += pickle.EMPTY_TUPLE + pickle.NEWOBJ
            self.remember(value)
        self.stack.append(Then(lambda: self._fields(value, fields, verdict, outer)))
        self.named("portal._rebuild", "fill_set")
        self.out += self.reference(self.memo[id(value)])
        self.items(self.order(value), CALL_AND_DROP, node)

    def _fields(self, value: Any, fields: Optional[Dict[str, Any]], verdict: Verdict, outer: int) -> None:
        if verdict.slots:
            held = {name: part for name in verdict.slots for part in _globals.slot(value, name)}
            self.keep.append(held)
            self.field_dicts[id(held)] = self.here
            node = self.here
            self.stack.append(Then(lambda: self._put("put_slots", value, held, node, outer)))
        if fields:
            self.field_dicts[id(fields)] = self.here
            back = self.here if verdict.slots else outer
            if verdict.guarded:
                self._put("put_fields", value, fields, self.here, back)
            else:
                self.out += pickle.EMPTY_DICT
                self.pairs(fields, pickle.BUILD, back)
        elif not verdict.slots:
            self.here = outer

    def _put(self, function: str, value: Any, fields: Dict[str, Any], node: int, outer: int) -> None:
        self.here = node
        self.named("portal._rebuild", function)
        self.out += self.reference(self.memo[id(value)]) + pickle.EMPTY_DICT
        self.pairs(fields, CALL_AND_DROP, outer)

    def _refuse_local(self, value: Any, kind: type) -> None:
        reason = f"no module names its class {type_name(kind)}, or only since job.state()"
        self.refuse(value, reason, "define the class at the top of a module, above job.state()")

    def _carrier(self, value: Any) -> None:
        """Carried by its own `state_dict`, into the object that the script holds."""
        outer = self.enter(value)
        try:
            content = value.state_dict()
        except Exception as error:
            self.here = outer
            self.refuse(value, f"its state_dict raised {type_name(type(error))}: {error}", LEAVE_OUT)
            return
        self.keep.append(content)
        self.paths.label(content, ".state_dict()")
        self.begin(value, b"")
        self.named("portal._rebuild", "load_state")
        self.out += self.reference(self.memo[id(value)])
        self.stack.append(End(CALL_AND_DROP, outer))
        self.stack.append(content)

    def _exception(self, value: BaseException) -> None:
        """Without its `__init__`: `args`, the fields and what chains it. A traceback cannot be carried and is dropped."""
        if self.again(value):
            return
        outer = self.enter(value)
        if id(value) in self.live:
            self.begin(value, b"")
        elif self.write_class(type(value)):
            self.out += pickle.EMPTY_TUPLE + pickle.NEWOBJ
            self.remember(value)
        else:
            self.here = outer
            self._refuse_local(value, type(value))
            return
        parts = (value.args, value.__cause__, value.__context__, value.__suppress_context__)
        self.keep.append(parts)
        self.paths.label(parts, "", (".args", ".__cause__", ".__context__", ""))
        fields = object.__getattribute__(value, "__dict__")
        node = self.here
        self.stack.append(Then(lambda: self._fields(value, fields, Verdict("", has_dict=True, guarded=True), outer)))
        self.stack.append(End(CALL_AND_DROP, node))
        self.named("portal._rebuild", "put_exception")
        self.out += self.reference(self.memo[id(value)])
        self.stack.append(parts)

    # ---- by name

    def _global(self, value: type) -> None:
        if not self.write_class(value):
            self.refuse(value, "no module names this class", "define it at the top of a module")

    def _function(self, value: Any) -> None:
        if self.again(value):
            return
        name = _globals.find(value)
        if name is None:
            what = "a lambda" if value.__name__ == "<lambda>" else "a function inside a function"
            if "<locals>" not in value.__qualname__ and value.__name__ != "<lambda>":
                what = "a function that its module does not name, or only since job.state(),"
            advice = "define a function at the top of a module, above job.state()"
            self.refuse(value, f"{what} cannot be carried", advice)
            return
        self.functions[id(value)] = value
        self.named(*name, value=value)

    def _builtin(self, value: Any) -> None:
        if self.again(value):
            return
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            name = _globals.find(value)
            if name is None:
                self.refuse(value, "no module names this function", LEAVE_OUT)
            else:
                self.named(*name, value=value)
            return
        outer = self.enter(value)
        self.named("portal._rebuild", "builtin_method")
        self.stack.append(Then(lambda: self.close_call(value, 2, outer)))
        self.stack.append(value.__name__)
        self.stack.append(owner)

    def _method(self, value: Any) -> None:
        if self.again(value):
            return
        outer = self.enter(value)
        owner, function = value.__self__, value.__func__
        self.stack.append(Then(lambda: self.close_call(value, 2, outer)))
        if isinstance(function, types.FunctionType) and _globals.find(function) is None and _offers(owner, function):
            # A class method: the name leads to what is bound, not to the function.
            self.named("portal._rebuild", "builtin_method")
            self.stack.append(function.__name__)
            self.stack.append(owner)
            return
        self.named("portal._rebuild", "make_method")
        self.stack.append(owner)
        self.stack.append(function)

    def _member(self, value: Any) -> None:
        """A member of an enumeration, by its name; a combination of flags, by its value."""
        kind = type(value)
        found = _globals.find(kind)
        if found is None:
            self.refuse(value, "no module names its class", "define the class at the top of a module")
        elif value.name is not None and kind.__members__.get(value.name) is value:
            self.named("portal._rebuild", "member")
            self.write_class(kind)
            self.out += self.text_code(value.name) + pickle.TUPLE2 + pickle.REDUCE
        else:
            self.write_class(kind)
            self.out += pickle.dumps(value.value, 3)[2:-1] + pickle.TUPLE1 + pickle.REDUCE

    def _module(self, value: types.ModuleType) -> None:
        name = getattr(value, "__name__", None)
        if not isinstance(name, str) or sys.modules.get(name) is not value or getattr(value, "__spec__", None) is None:
            self.refuse(value, "it is not one of the modules that are imported by name", "import it in the script")
            return
        self.named("portal._rebuild", "module")
        self.out += self.text_code(name) + pickle.TUPLE1 + pickle.REDUCE

    def _sentinel(self, value: object) -> None:
        name = _globals.find_sentinel(value)
        if name is None:
            self.refuse(value, "only its identity makes it what it is", "give it a name at the top of a module")
        else:
            self.named(*name, value=value)

    def _refuse(self, value: Any) -> None:
        verdict = self.verdicts[type(value)]
        self.refuse(value, verdict.reason, verdict.advice)


def _offers(owner: Any, function: types.FunctionType) -> bool:
    """Whether a function is what the owner's class, or the owner if it is one, has under the function's name."""
    kind = owner if isinstance(owner, type) else type(owner)
    for base in kind.__mro__:
        held = base.__dict__.get(function.__name__)
        if held is not None:
            return held is function or getattr(held, "__func__", None) is function
    return False

"""What is carried by name: classes, functions, sentinels. A name counts only if it leads back to the very object."""

from __future__ import annotations

import sys
import types
from typing import Any, Dict, List, Optional, Tuple

from ._kinds import own_slots

Name = Tuple[str, str]

# Built-in types that their module does not name.
UNNAMED: Dict[type, Name] = {
    type(None): ("portal._rebuild", "NONE_TYPE"),
    type(Ellipsis): ("portal._rebuild", "ELLIPSIS_TYPE"),
    type(NotImplemented): ("portal._rebuild", "NOT_IMPLEMENTED_TYPE"),
    types.FunctionType: ("types", "FunctionType"),
    types.BuiltinFunctionType: ("types", "BuiltinFunctionType"),
    types.MethodType: ("types", "MethodType"),
    types.ModuleType: ("types", "ModuleType"),
    types.GeneratorType: ("types", "GeneratorType"),
    types.MappingProxyType: ("types", "MappingProxyType"),
    types.CodeType: ("types", "CodeType"),
}


# The names that the script had when job.state() was called; those of later lines are not there yet when it resumes.
_script_names: Dict[str, int] = {}


def note_script_names() -> None:
    _script_names.clear()
    _script_names.update((name, id(value)) for name, value in vars(sys.modules["__main__"]).items())


def _there_in_time(module: str, name: str) -> bool:
    if module != "__main__" or not _script_names:
        return True
    first = name.partition(".")[0]
    return _script_names.get(first) == id(vars(sys.modules[module]).get(first))


def resolve(module: str, name: str) -> Any:
    """The object that a name leads to among the loaded modules; raises if there is none."""
    value: Any = sys.modules[module]
    for part in name.split("."):
        value = getattr(value, part)
    return value


def leads_to(module: str, name: str, value: Any) -> bool:
    try:
        return "<" not in name and _there_in_time(module, name) and resolve(module, name) is value
    except Exception:
        return False


def find(value: Any) -> Optional[Name]:
    """The name of a class or a function, or nothing if that name leads elsewhere."""
    if isinstance(value, type) and value in UNNAMED:
        return UNNAMED[value]
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and leads_to(module, name, value):
        return (module, name)
    return None


def find_named(value: Any, name: str) -> Optional[Name]:
    """The module in which this name leads to the value: its own, else any that is loaded."""
    module = getattr(value, "__module__", None)
    if isinstance(module, str) and leads_to(module, name, value):
        return (module, name)
    for other in list(sys.modules):
        if leads_to(other, name, value):
            return (other, name)
    return None


_sentinels: Dict[int, Tuple[Any, Name]] = {}
_missed: Dict[type, int] = {}


def find_sentinel(value: Any) -> Optional[Name]:
    """The global name of an object without content, which is known by its identity alone."""
    known = _sentinels.get(id(value))
    if known is not None and known[0] is value and leads_to(*known[1], value):
        return known[1]
    kind = type(value)
    # Most objects without content have no name: each module is searched again only when it has grown.
    modules = list(sys.modules) if kind is object else [kind.__module__, "__main__"]
    size = sum(len(vars(sys.modules[name])) for name in modules if isinstance(sys.modules.get(name), types.ModuleType))
    if kind is not object and _missed.get(kind) == size:
        return None
    for name in modules:
        found = _search(name, value)
        if found is not None:
            _sentinels[id(value)] = (value, found)
            return found
    if kind is not object and not _any_instance(modules, kind):
        _missed[kind] = size
    return None


def _any_instance(modules: List[str], kind: type) -> bool:
    return any(type(held) is kind for name in modules for held in list(vars(sys.modules.get(name, types)).values()))


def _search(module: str, value: Any) -> Optional[Name]:
    loaded = sys.modules.get(module)
    if not isinstance(loaded, types.ModuleType):
        return None
    for name, held in list(vars(loaded).items()):
        if held is value and leads_to(module, name, value):
            return (module, name)
        if isinstance(held, type) and getattr(held, "__module__", None) == module:
            for inner, part in list(vars(held).items()):
                if part is value and leads_to(module, f"{held.__qualname__}.{inner}", value):
                    return (module, f"{held.__qualname__}.{inner}")
    return None


def name_of_type(kind: type) -> str:
    name = UNNAMED.get(kind) or (kind.__module__, kind.__qualname__)
    return ":".join(name)


def slot_names(kind: type) -> List[str]:
    return own_slots(kind)


def slot(value: Any, name: str) -> Tuple[Any, ...]:
    """The content of a slot: one value, or none if it is empty. Asks the slot itself, not the class's look-up."""
    for base in type(value).__mro__:
        member = base.__dict__.get(name)
        if isinstance(member, types.MemberDescriptorType):
            try:
                return (member.__get__(value, type(value)),)
            except AttributeError:
                return ()
    return ()


def put_slot(value: Any, name: str, content: Any) -> None:
    for base in type(value).__mro__:
        member = base.__dict__.get(name)
        if isinstance(member, types.MemberDescriptorType):
            member.__set__(value, content)
            return
    raise AttributeError(f"{type(value).__qualname__} has no slot {name}")


def clear_slots(value: Any) -> None:
    for base in type(value).__mro__[:-1]:
        for name in own_slots(base):
            member = base.__dict__.get(name)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    member.__delete__(value)
                except AttributeError:
                    pass

"""Proof by rebuilding, for types that offer a reduce of their own (K-STRICT-2).

The rebuilding happens in a forked process that has none of the job's descriptors: making a copy runs code of the job's
classes, and the end of a copy too (a copy's `__del__` once closed a live connection). What is made there is kept until
that process ends at once.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import time
import warnings
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from . import _globals, _rebuild
from ._digest import digest_of
from ._refusal import LIMIT, Refusal, type_name
from ._state import State
from ._walk import FLAT_FIXED, Walk

LIMIT_S = 30.0
BYTES_A_S = 50e6
#: of one type, so many are rebuilt; the others are compared by the digest after a restore
EACH = 20
#: after so long only the first of each type is still looked at
ENOUGH_S = 1.0
ADVICE = "let its class give all of it, or leave it out of the state"
BASES = (list, dict, set, frozenset, tuple, str, bytes, bytearray, int, float, complex)


def prove(walk: Walk, live: Dict[int, str]) -> List[Refusal]:
    """What does not come back as it was, of the objects whose class has a reduce of its own."""
    chosen: List[Tuple[Any, int]] = []
    count: Dict[type, int] = {}
    for value, node in walk.unproven:
        count[type(value)] = count.get(type(value), 0) + 1
        if count[type(value)] <= EACH:
            chosen.append((value, node))
    if not chosen or not hasattr(os, "fork"):
        return []
    limit_s = LIMIT_S + walk.memory.bytes / BYTES_A_S
    answer: Any = _in_helper(lambda: _compare(walk, chosen, live), limit_s)
    if isinstance(answer, str):
        return [Refusal(walk.paths.of_node(node)[0], type_name(type(value)), answer, ADVICE) for value, node in chosen]
    return list(answer)


def _in_helper(work: Any, limit_s: float) -> Any:
    """The refusals that `work` gives in a forked process, or why it gave none."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # The helper never takes a lock that another thread of the job may have held; at worst it runs into its limit.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        _helper(work, writer)
    os.close(writer)
    said = bytearray()
    end = time.monotonic() + limit_s
    try:
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([reader], [], [], left)[0]:
                return f"rebuilding it took more than {limit_s:.0f} s"
            part = os.read(reader, 1 << 16)
            if not part:
                break
            said += part
    finally:
        os.close(reader)
        _end(child)
    try:
        return [Refusal(*entry) for entry in json.loads(said.decode())]
    except ValueError:
        return "rebuilding it ended the process in which it was tried"


def _end(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        # The job's own handling of children was faster.
        pass


def _helper(work: Any, writer: int) -> None:
    try:
        gc.disable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        _close_all_but(writer)
        said = json.dumps([list(refusal) for refusal in work()[:LIMIT]]).encode()
        while said:
            said = said[os.write(writer, said) :]
    except BaseException:
        pass
    finally:
        os._exit(0)


def _close_all_but(kept: int) -> None:
    try:
        open_ones = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        open_ones = list(range(min(os.sysconf("SC_OPEN_MAX"), 65536)))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in open_ones:
        if number not in (kept, nothing) and number > 2:
            try:
                os.close(number)
            except OSError:
                pass
    for number in (0, 1, 2):
        os.dup2(nothing, number)


# ---- in the helper


def _can_be_carried(value: Any, live: Dict[int, str]) -> bool:
    walk = Walk(opaque=live)
    walk.run(State(value=value), {})
    _kept.append(walk)
    return not walk.refusals


# Kept until the helper ends, so that nothing made there is ever taken down.
_kept: List[Any] = []


def _compare(walk: Walk, chosen: List[Tuple[Any, int]], live: Dict[int, str]) -> List[Refusal]:
    found: List[Refusal] = []
    # The objects of the script stand for themselves, but for those that are to be proven.
    chosen_ids = {id(value) for value, _ in chosen}
    live = {ident: path for ident, path in live.items() if ident not in chosen_ids}
    chosen = _firsts_first(chosen)
    # What holds a value that cannot be carried is named by that already.
    chosen = [each for each in chosen if _can_be_carried(each[0], live)]
    begun = time.monotonic()
    proven: Set[type] = set()
    groups = [chosen]
    made = _rebuilt([value for value, _ in chosen], live)
    if made is None and len(chosen) > 1:
        # One that cannot be rebuilt hides the others: each by itself then.
        groups = [[each] for each in chosen]
    for group in groups:
        copies = made if len(groups) == 1 else _rebuilt([value for value, _ in group], live)
        for position, (value, node) in enumerate(group):
            if type(value) in proven and time.monotonic() - begun > ENOUGH_S:
                continue
            proven.add(type(value))
            path = walk.paths.of_node(node)[0]
            if copies is None:
                reason = f"it cannot be rebuilt: {_last_fault[0]}"
                found.append(Refusal(path, type_name(type(value)), reason, ADVICE))
                continue
            for step, kind, reason in _unequal(value, copies[position], live):
                found.append(Refusal(path + step, kind, reason, ADVICE))
    return found


def _firsts_first(chosen: List[Tuple[Any, int]]) -> List[Tuple[Any, int]]:
    first: Dict[type, Tuple[Any, int]] = {}
    for each in chosen:
        first.setdefault(type(each[0]), each)
    return [*first.values(), *(each for each in chosen if first[type(each[0])] is not each)]


_last_fault = [""]


def _rebuilt(values: List[Any], live: Dict[int, str]) -> Optional[List[Any]]:
    """Copies, made the way a restore makes them; live objects stand for themselves."""
    sub = Walk(opaque=live)
    sub.run(State(**{f"v{index}": value for index, value in enumerate(values)}), {})
    _kept.append(sub)
    if sub.refusals:
        _last_fault[0] = str(sub.refusals[0])
        return None
    sub.finish()
    graph = sub.graph()
    buffers = sub.memory.buffers()
    sizes = {"graph": sum(view.nbytes for view in graph), "buffers": sum(view.nbytes for _, view, _, _ in buffers)}
    if buffers:
        sizes["buffers"] = buffers[-1][0] + buffers[-1][1].nbytes
    try:
        restorer = _rebuild.Restorer(sizes, [[o, v.nbytes, k, None] for o, v, k, _ in buffers], _nothing, {}, sub.opaque)
        _kept.append(restorer)
        at = 0
        for view in graph:
            _place(restorer, "graph", at, view)
            at += view.nbytes
        for offset, view, _, _ in buffers:
            _place(restorer, "buffers", offset, view)
        made, _ = restorer.finish(None)
    except Exception as error:
        _last_fault[0] = f"{type_name(type(error))}: {error}"
        return None
    _kept.append(made)
    return [made[f"v{index}"] for index in range(len(values))]


def _nothing(path: str) -> None:
    """No object of the script's is filled here."""


def _place(restorer: Any, stream: str, offset: int, view: memoryview) -> None:
    at = 0
    for window in restorer.take(stream, offset, view.nbytes):
        window[:] = view[at : at + len(window)]
        at += len(window)


def _unequal(value: Any, copy: Any, live: Dict[int, str]) -> Iterator[Tuple[str, str, str]]:
    """Where a rebuilt object differs: steps below it, types, reasons."""
    kind = type_name(type(value))
    if type(copy) is not type(value):
        yield "", kind, f"it comes back as a {type_name(type(copy))}"
        return
    there, here = _fields(value), _fields(copy)
    for name, part in there.items():
        mark = _mark(part, live)
        if mark is None:
            # What could not be carried anyway may be dropped, or made anew.
            continue
        if name not in here:
            yield f".{name}", type_name(type(part)), "its class drops it, though it could be carried"
        elif _mark(here[name], live) != mark:
            yield f".{name}", type_name(type(part)), "its class gives it back changed"
    for base in BASES:
        if issubclass(type(value), base):
            content = [value, copy]
            plain = [base.copy(each) if base in (set, dict) else _content(base, each) for each in content]
            first = _mark(plain[0], live)
            if first is not None and first != _mark(plain[1], live):
                yield "", kind, "its content comes back changed"
            break
    first = _mark(value, live)
    if first is not None and first != _mark(copy, live):
        yield "", kind, "it does not come back equal"


def _content(base: type, value: Any) -> Any:
    if base is list:
        return list(list.__iter__(value))
    if base in (tuple, frozenset):
        return list(base.__iter__(value))
    if base is str:
        return str.__str__(value)[:]
    if base in (bytes, bytearray):
        return bytes(memoryview(value))
    if base is int:
        return int.__int__(value)
    if base is float:
        return float.__float__(value)
    return complex.__repr__(value)


def _fields(value: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    try:
        found.update(object.__getattribute__(value, "__dict__"))
    except Exception:
        pass
    for base in type(value).__mro__[:-1]:
        for name in _globals.slot_names(base):
            for part in _globals.slot(value, name):
                found[name] = part
    return found


def _mark(value: Any, live: Dict[int, str]) -> Any:
    """Equal for equal values; nothing for one that cannot be carried."""
    if type(value) in FLAT_FIXED:
        return (type(value), repr(value))
    walk = Walk(opaque=live, orders={ident: items for ident, (_, items) in _rebuild.orders.items()})
    walk.run(State(value=value), {})
    _kept.append(walk)
    if walk.refusals:
        return None
    walk.finish()
    graph = [digest_of([("graph", [(0, view)])]) for view in walk.graph() if view.nbytes]
    return (*graph, digest_of([("buffers", [(offset, view) for offset, view, _, _ in walk.memory.buffers()])]))

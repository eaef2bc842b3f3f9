"""A state carried within this process, without an agent: for looking at one kind of value."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from portal import _rebuild
from portal._carry import Carried
from portal._state import State
from portal._walk import Walk


def walk(values: Dict[str, Any], orders: Optional[Dict[int, List[Any]]] = None) -> Carried:
    made = Walk(orders=orders)
    made.run(State(**values), {})
    if not made.refusals:
        made.finish()
    return Carried(made, list(made.refusals))


def round_trip(values: Dict[str, Any]) -> Tuple[Dict[str, Any], Carried, Carried]:
    """The values made anew, the walk over the first ones and the walk over the second."""
    there = walk(values)
    assert not there.refusals, there.refusals
    streams = there.streams()
    sizes = {name: pieces[-1][0] + pieces[-1][1].nbytes for name, pieces in streams}
    restorer = _rebuild.Restorer(sizes, there.meta()["buffers"], lambda path: None, {})
    for name, pieces in streams:
        for offset, view in pieces:
            at = 0
            for window in restorer.take(name, offset, view.nbytes):
                window[:] = view[at : at + len(window)]
                at += len(window)
    made, _ = restorer.finish(State())
    return made, there, walk(made, {ident: items for ident, (_, items) in _rebuild.orders.items()})

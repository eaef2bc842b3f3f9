"""One look at a whole state, for a probe, a save, or the check after a restore."""

from __future__ import annotations

import gc
import sys
from typing import Any, Dict, List, Optional, Tuple

from . import _changes, _environment, _prove, _rebuild, _tensors
from ._anchors import Anchors
from ._digest import Piece, digest_of
from ._refusal import CannotRestore, Refusal, type_name
from ._state import State
from ._walk import Walk

FORMAT = 1


class Carried:
    """What a walk over the state found: the refusals, or all that is to be sent."""

    def __init__(self, walk: Walk, refusals: List[Refusal]) -> None:
        self.walk = walk
        self.refusals = refusals
        self.warnings = walk.set_orders
        self.buffers = walk.memory.buffers() if not refusals else []

    def streams(self) -> List[Tuple[str, List[Piece]]]:
        pieces: List[Piece] = []
        offset = 0
        for view in self.walk.graph():
            if view.nbytes:
                pieces.append((offset, view))
                offset += view.nbytes
        streams = [("graph", pieces)]
        if self.buffers:
            streams.append(("buffers", [(offset, view) for offset, view, _, _ in self.buffers]))
        return streams

    def meta(self) -> Dict[str, Any]:
        return {
            "format": FORMAT,
            "buffers": [[offset, view.nbytes, kind, live] for offset, view, kind, live in self.buffers],
            "ends": self.walk.ends,
        }

    @property
    def bytes(self) -> int:
        return sum(view.nbytes for view in self.walk.graph()) + sum(view.nbytes for _, view, _, _ in self.buffers)

    def digest(self) -> str:
        return digest_of(self.streams())


def look(state: State, anchors: Anchors, snapshot: "_changes.Snapshot", bit_exact: bool) -> Carried:
    """Looks at every value; writes and changes nothing."""
    live = {id(value): path for path, value in anchors.held.items()}
    walk = _walked(state, live)
    refusals = list(walk.refusals)
    refusals += snapshot.changed(walk)
    refusals += _prove.prove(walk, live)
    if bit_exact:
        refusals += walk.set_orders
    if not refusals:
        walk.finish()
    return Carried(walk, refusals)


def _walked(
    state: State,
    live: Dict[int, str],
    orders: Optional[Dict[int, List[Any]]] = None,
    extras: Optional[Dict[str, Any]] = None,
) -> Walk:
    walk = Walk(live, orders)
    collecting = gc.isenabled()
    # A collection in the middle finds nothing to free among a walk's many new objects, and costs as much as the walk.
    gc.disable()
    try:
        walk.run(state, random_states() if extras is None else extras)
    finally:
        if collecting:
            gc.enable()
    return walk


def random_states() -> Dict[str, Any]:
    """The states of the module-level random generators that the job has loaded."""
    found: Dict[str, Any] = {}
    module = sys.modules.get("random")
    if module is not None:
        found["random"] = module.getstate()
    module = sys.modules.get("numpy.random")
    if module is not None:
        found["numpy.random"] = module.get_state(legacy=False)
    if "torch" in sys.modules:
        found["torch.random"] = _tensors.random_states()
    return found


def put_random_states(found: Dict[str, Any]) -> None:
    import random

    if "random" in found:
        random.setstate(found["random"])
    if "numpy.random" in found:
        import numpy.random

        numpy.random.set_state(found["numpy.random"])
    if "torch.random" in found:
        _tensors.put_random_states(found["torch.random"])


class Restore:
    """A checkpoint on its way into the state."""

    def __init__(self, state: State, anchors: Anchors, welcome: Dict[str, Any], bit_exact: bool) -> None:
        self._state = state
        self._bit_exact = bit_exact
        self._manifest = welcome
        meta = welcome.get("meta")
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            raise CannotRestore([], "the checkpoint was not made by this SDK, or by a newer one")
        self._meta = meta
        self._sizes = {stream["name"]: stream["bytes"] for stream in welcome["streams"]}
        self._restorer = _rebuild.Restorer(self._sizes, meta["buffers"], anchors.find, anchors.held)

    def windows(self, stream: str, offset: int, length: int) -> List[memoryview]:
        """The memory for the next bytes of a stream, one piece after the other."""
        return self._restorer.take(stream, offset, length)

    def finish(self) -> str:
        """After `verified`: makes the values, in place; returns the digest of what is there then."""
        unfit = _environment.unfit(self._manifest.get("environment", {}), self._bit_exact)
        if unfit:
            raise CannotRestore(unfit, "this environment cannot take the state")
        try:
            values, extras = self._restorer.finish(self._state)
        except CannotRestore:
            raise
        except Exception as error:
            raise CannotRestore([], f"the values could not be made again: {type_name(type(error))}: {error}") from error
        fields = self._state.__dict__
        fields.clear()
        fields.update(values)
        put_random_states(extras)
        return self._check(extras)

    def _check(self, extras: Dict[str, Any]) -> str:
        live = {id(value): path for path, value in self._restorer.used.items()}
        orders = {ident: items for ident, (_, items) in _rebuild.orders.items()}
        # Only of what was saved: making the values may have loaded more.
        now = {name: value for name, value in random_states().items() if name in extras}
        walk = _walked(self._state, live, orders, now)
        if walk.refusals:
            raise CannotRestore(walk.refusals, "what was restored cannot be carried on")
        walk.finish()
        carried = Carried(walk, [])
        digest = carried.digest()
        if digest != self._manifest["digest"]:
            raise CannotRestore(self._unequal(carried), "what was restored is not equal to what was saved")
        _rebuild.forget_orders()
        return digest

    def _unequal(self, carried: Carried) -> List[Refusal]:
        """The top-level values whose part of the graph differs from the saved one."""
        there, here = self._restorer.pickle, memoryview(carried.walk.out)
        found = []
        begin_there = begin_here = 0
        for index, (path, end_there) in enumerate(self._meta["ends"]):
            if index >= len(carried.walk.ends):
                break
            end_here = carried.walk.ends[index][1]
            if there[begin_there:end_there] != here[begin_here:end_here]:
                kind = type_name(type(self._state.__dict__.get(path.partition(".")[2])))
                found.append(Refusal(path, kind, "it does not come back equal", "see that its class gives all of itself"))
            begin_there, begin_here = end_there, end_here
        return found

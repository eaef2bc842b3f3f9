"""The job's talk with its agent: once at the start, then at safe points where something is asked."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable, Dict, List, NoReturn, Optional, Set

from . import _carry, _environment, _globals
from ._anchors import Anchors
from ._changes import Snapshot
from ._refusal import CannotRestore, Refusal, to_wire, type_name
from ._send import send_streams
from ._state import State
from ._version import VERSION
from ._wire import Broken, Connection, Message

PROTOCOL = 1
EXIT_CODE = 75
CONNECT_S = 2.0
RETRY_S = 5.0
PAUSE_S = 0.05


class Session:
    """`clock` reads the job's clock; `set_clock` puts it where the restored attempt left it."""

    def __init__(self, path: str, clock: Callable[[], float], set_clock: Callable[[float], None]) -> None:
        self._path = path
        self._clock = clock
        self._set_clock = set_clock
        self._connection: Optional[Connection] = None
        self._retry_at = 0.0
        self._bit_exact = False
        self._warned: Set[str] = set()
        self.restored = False
        self.state: Any = None
        self.before_look: Callable[[], List[Refusal]] = list
        self.after_look: Callable[[], None] = lambda: None

    def forget(self) -> None:
        """In a child of the job: lets go of the connection without a word on it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # ---- the start

    def start(self, state: State) -> None:
        """Blocks until the attempt may run, with the state restored if there is something to restore."""
        self.state = state
        _globals.note_script_names()
        self._anchors = Anchors(state)
        self._snapshot = Snapshot()
        self._waiting: Dict[str, Any] = {}
        while True:
            try:
                self._connection = self._connect(None)
                self._greet(self._waiting)
                self._anchors.settle()
                return
            except Broken:
                self.forget()
                time.sleep(PAUSE_S)
            except BaseException:
                self.forget()
                raise

    def _connect(self, limit_s: Optional[float]) -> Connection:
        deadline = None if limit_s is None else time.monotonic() + limit_s
        while True:
            try:
                return Connection(self._path, CONNECT_S)
            except OSError as error:
                if deadline is not None and time.monotonic() + PAUSE_S >= deadline:
                    raise Broken(f"no agent at {self._path}: {error}") from error
                time.sleep(PAUSE_S)

    def _hello(self, more: Dict[str, Any]) -> None:
        environment = _environment.record(type(value).__module__ for value in self.state.__dict__.values())
        hello = {"t": "hello", "protocol": PROTOCOL, "sdk": "python", "version": VERSION, "pid": os.getpid()}
        self._link.send({**hello, "environment": environment, **more})

    @property
    def _link(self) -> Connection:
        if self._connection is None:
            raise Broken("there is no connection")
        return self._connection

    def _greet(self, more: Dict[str, Any]) -> None:
        self._hello(more)
        while True:
            message, payload = self._receive()
            kind = message["t"]
            if kind == "welcome":
                self._bit_exact = message.get("bitExact") is True
                digest = None if message.get("restore") is None else self._restore(message["restore"])
                if not self._waiting:
                    # Should the agent be lost from here on, the values are in place and need not come again.
                    self._waiting = {"again": True, "waiting": True, "digest": digest}
            elif kind == "run":
                return
            else:
                raise self._unexpected(kind)

    def _receive(self) -> Any:
        message, payload = self._link.receive()
        if message["t"] == "exit":
            leave(str(message.get("why", "the agent asks for it")))
        if payload and message["t"] != "data":
            raise self._unexpected(f"{message['t']} with a payload")
        return message, payload

    def _unexpected(self, what: str) -> Broken:
        self.forget()
        return Broken(f"the agent sent {what} where the protocol has no place for it")

    def _restore(self, manifest: Message) -> str:
        try:
            try:
                restore = _carry.Restore(self.state, self._anchors, manifest, self._bit_exact)
            except (KeyError, TypeError, ValueError, IndexError, MemoryError, OverflowError) as error:
                raise CannotRestore([], f"the checkpoint is not as it should be: {error!r}") from error
            while True:
                message, payload = self._receive()
                if message["t"] == "data":
                    for window in restore.windows(str(message["stream"]), int(message["offset"]), payload):
                        self._link.receive_into(window)
                elif message["t"] == "verified":
                    break
                elif message["t"] == "damaged":
                    leave(f"the checkpoint is damaged: {message.get('what')}")
                else:
                    raise self._unexpected(message["t"])
            try:
                digest = restore.finish()
            except (KeyError, TypeError, ValueError, IndexError, MemoryError, OverflowError) as error:
                raise CannotRestore([], f"the checkpoint is not as it should be: {error!r}") from error
        except CannotRestore as refused:
            for refusal in refused.refusals[:20]:
                print(f"portal: {refusal}", file=sys.stderr)
            self._link.send({"t": "restore-refused", "values": to_wire(refused.refusals), "why": refused.why})
            self._await_end(refused.why)
        self.restored = True
        self._set_clock(float(manifest["meta"].get("clock", 0.0)))
        self._waiting = {"again": True, "waiting": True, "digest": digest}
        self._link.send({"t": "restored", "digest": digest})
        return digest

    def _await_end(self, why: str) -> NoReturn:
        """The attempt must not go on; the agent says when it may end, and it ends too if nobody says so."""
        try:
            while True:
                self._receive_any()
        except Broken:
            leave(why)

    def _receive_any(self) -> None:
        _, payload = self._receive_raw()
        scratch = memoryview(bytearray(min(payload, 1 << 20)))
        while payload:
            part = scratch[: min(payload, len(scratch))]
            self._link.receive_into(part)
            payload -= len(part)

    def _receive_raw(self) -> Any:
        message, payload = self._link.receive()
        if message["t"] == "exit":
            leave(str(message.get("why", "the agent asks for it")))
        return message, payload

    # ---- a safe point

    def safe_point(self, turn: int, asks: Optional[str]) -> bool:
        """Tells the agent that the job is at a safe point and does what it asks until it says go. False: it was not
        reached, or was lost on the way; what was asked for counts as not done, and the job runs on."""
        if self._connection is None:
            if time.monotonic() < self._retry_at:
                return False
            try:
                self._connection = self._connect(CONNECT_S)
                self._hello({"again": True, "turn": turn})
            except Broken:
                self.forget()
                self._retry_at = time.monotonic() + RETRY_S
                return False
        looked = False
        try:
            # Whoever is saved here and ends has said all that it printed.
            flush_output()
            self._link.send({"t": "safe-point", "turn": turn, "asks": asks})
            while True:
                message, _ = self._receive()
                kind = message["t"]
                if kind == "go":
                    return True
                if kind in ("probe", "save"):
                    refusals = [] if looked else self.before_look()
                    looked = True
                    if kind == "probe":
                        self._probe(message.get("id"), refusals)
                    else:
                        self._save(message.get("id"), refusals, turn)
                elif kind == "welcome":
                    self._bit_exact = message.get("bitExact") is True
                elif kind not in ("run", "committed", "save-failed"):
                    raise self._unexpected(kind)
                elif kind == "save-failed":
                    print(f"portal: the save failed: {message.get('why')}; the job goes on", file=sys.stderr)
        except Broken:
            self.forget()
            return False
        except BaseException:
            # An interrupt in the middle of a talk: what is half said cannot be taken up again.
            self.forget()
            raise
        finally:
            if looked:
                self.after_look()

    def _look(self, refusals: List[Refusal]) -> Any:
        carried = None
        if not refusals:
            try:
                carried = _carry.look(self.state, self._anchors, self._snapshot, self._bit_exact)
                refusals = carried.refusals
            except Exception as error:
                reason = f"looking at it failed: {type_name(type(error))}: {error}"
                refusals = [Refusal("state", "portal.State", reason, "see that its values can be looked at")]
        return carried, refusals

    def _probe(self, ident: Any, refusals: List[Refusal]) -> None:
        begin = time.monotonic()
        carried, refusals = self._look(refusals)
        if refusals:
            self._refuse(ident, refusals, carried)
            return
        self._warn(carried)
        ms = (time.monotonic() - begin) * 1000
        objects = len(carried.walk.nodes)
        self._link.send({"t": "probed", "id": ident, "bytes": carried.bytes, "objects": objects, "ms": round(ms, 3)})

    def _save(self, ident: Any, refusals: List[Refusal], turn: int) -> None:
        carried, refusals = self._look(refusals)
        if refusals:
            self._refuse(ident, refusals, carried)
            return
        self._warn(carried)
        streams = carried.streams()
        modules = [kind.__module__ for kind in carried.walk.classes.values()]
        head = {
            "t": "save",
            "id": ident,
            "values": [value._asdict() for value in carried.walk.values],
            "environment": _environment.record(modules),
            "meta": {**carried.meta(), "clock": self._clock(), "turn": turn},
            "streams": [{"name": name, "bytes": _size(pieces)} for name, pieces in streams],
        }
        try:
            self._link.send(head)
        except ValueError as error:
            self._refuse(ident, [Refusal("state", "portal.State", str(error), "keep fewer, larger values")], None)
            return
        digest = send_streams(self._link, ident, streams)
        self._link.send({"t": "saved", "id": ident, "digest": digest})

    def _refuse(self, ident: Any, refusals: List[Refusal], carried: Any) -> None:
        more = 0 if carried is None else carried.walk.more
        self._link.send({"t": "refused", "id": ident, "values": to_wire(refusals, more)})

    def _warn(self, carried: Any) -> None:
        for warning in carried.warnings:
            if warning.path not in self._warned and len(self._warned) < 100:
                self._warned.add(warning.path)
                print(f"portal: {warning}", file=sys.stderr)


def _size(pieces: Any) -> int:
    return pieces[-1][0] + pieces[-1][1].nbytes if pieces else 0


def leave(why: str) -> NoReturn:
    """Ends the process at once: no handler of the job's own may act in an attempt that is over."""
    try:
        print(f"portal: this attempt ends here: {why}", file=sys.stderr)
    except Exception:
        pass
    flush_output()
    os._exit(EXIT_CODE)


def flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            # Closed, or taken away by the job.
            continue

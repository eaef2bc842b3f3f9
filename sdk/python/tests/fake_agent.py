"""An agent's side of the protocol, written from the document alone: one job, its saves kept in memory."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Dict, List, Optional

SDK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHUNK = 64 << 10


class Checkpoint:
    def __init__(self, head: Dict[str, Any]) -> None:
        self.head = head
        self.streams: Dict[str, bytearray] = {stream["name"]: bytearray() for stream in head["streams"]}
        self.digest = ""

    @property
    def bytes(self) -> int:
        return sum(map(len, self.streams.values()))

    def manifest(self) -> Dict[str, Any]:
        keys = ("environment", "values", "streams", "meta")
        return {"slot": 1, "digest": self.digest, **{key: self.head[key] for key in keys}}


class Lost(Exception):
    pass


class Peer:
    """One connection, framed as the document says."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def send(self, message: Dict[str, Any], payload: bytes = b"") -> None:
        meta = json.dumps(message).encode()
        self.link.sendall(struct.pack("<II", len(meta), len(payload)) + meta + payload)

    def receive(self, limit_s: float = 60) -> Any:
        self.link.settimeout(limit_s)
        meta, payload = struct.unpack("<II", self.take(8))
        message = json.loads(self.take(meta))
        assert meta <= (64 << 20 if message["t"] == "save" else 1 << 20), "meta over the limit"
        assert payload <= 8 << 20, "payload over the limit"
        return message, self.take(payload)

    def take(self, count: int) -> bytes:
        parts = []
        while count:
            try:
                part = self.link.recv(min(count, 1 << 20))
            except ConnectionError as error:
                raise Lost(str(error)) from error
            if not part:
                raise Lost("closed")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def receive_save(self, head: Dict[str, Any]) -> Checkpoint:
        saved = Checkpoint(head)
        sizes = {stream["name"]: stream["bytes"] for stream in head["streams"]}
        order = [stream["name"] for stream in head["streams"]]
        done: List[str] = []
        while True:
            message, payload = self.receive()
            assert message["id"] == head["id"]
            if message["t"] == "saved":
                saved.digest = message["digest"]
                break
            assert message["t"] == "chunks", message
            name = message["stream"]
            stream = saved.streams[name]
            assert name == next(each for each in order if len(saved.streams[each]) < sizes[each]), "streams in order"
            assert message["first"] * CHUNK == len(stream), "chunks in order"
            assert 1 <= len(message["bytes"]) <= 64
            at = 0
            for size, sha256 in zip(message["bytes"], message["sha256"]):
                assert size == min(CHUNK, sizes[name] - len(stream)), "64 KiB, the last one shorter"
                if sha256 is None:
                    stream += bytes(size)
                    continue
                part = payload[at : at + size]
                assert hashlib.sha256(part).hexdigest() == sha256
                assert part.strip(b"\0"), "zeros have no bytes"
                stream += part
                at += size
            assert at == len(payload)
            done.append(name)
        assert {name: len(stream) for name, stream in saved.streams.items()} == sizes
        return saved

    def send_restore(self, saved: Checkpoint, frame: int = 1 << 20, spoil: Optional[str] = None) -> None:
        for stream in saved.head["streams"]:
            content = saved.streams[stream["name"]]
            for offset in range(0, len(content), frame):
                part = bytes(content[offset : offset + frame])
                self.send({"t": "data", "stream": stream["name"], "offset": offset}, part)
        self.send({"t": "damaged", "what": spoil} if spoil else {"t": "verified"})


class Attempt:
    """Runs one script as one attempt of a job and plays the agent to it."""

    def __init__(
        self,
        script: str,
        number: int = 1,
        restore: Optional[Checkpoint] = None,
        bit_exact: bool = False,
        python: str = sys.executable,
        env: Optional[Dict[str, str]] = None,
    ) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="portal-sdk-")
        self.socket_path = os.path.join(self.folder.name, "s")
        self.flag_path = os.path.join(self.folder.name, "flag")
        self.script_path = os.path.join(self.folder.name, "script.py")
        with open(self.script_path, "w", encoding="utf-8") as file:
            file.write(script)
        with open(self.flag_path, "wb") as file:
            file.write(bytes(64))
        self.restore = restore
        self.bit_exact = bit_exact
        self.hello: Dict[str, Any] = {}
        self.restored: Dict[str, Any] = {}
        self.listener = self._listen()
        settings = {
            **{key: value for key, value in os.environ.items() if not key.startswith("PORTAL_")},
            "PYTHONPATH": SDK,
            "PYTHONHASHSEED": "7",
            "PORTAL_SOCKET": self.socket_path,
            "PORTAL_FLAG": self.flag_path,
            "PORTAL_JOB": "nightly",
            "PORTAL_ATTEMPT": str(number),
            **(env or {}),
        }
        self.process = subprocess.Popen(
            [python, "-X", "faulthandler", self.script_path],
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.folder.name,
        )
        self.peer: Any = None

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.socket_path)
        listener.listen(4)
        return listener

    def __enter__(self) -> "Attempt":
        return self

    def __exit__(self, *fault: Any) -> None:
        self.kill()
        if self.peer is not None:
            self.peer.link.close()
        self.listener.close()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.folder.cleanup()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    # ---- the shared file

    def ask(self, value: int = 1) -> None:
        with open(self.flag_path, "r+b") as file:
            file.write(bytes([value]))

    def counters(self) -> Any:
        with open(self.flag_path, "rb") as file:
            return struct.unpack_from("<Qdd", file.read(), 8)

    # ---- the talk

    def accept(self, limit_s: float = 60) -> Peer:
        self.listener.settimeout(0.2)
        end = time.monotonic() + limit_s
        while True:
            try:
                link, _ = self.listener.accept()
                break
            except socket.timeout:
                ended = self.process.poll() is not None
                assert not ended, f"the job ended: {self.process.communicate()[1].decode()[-3000:]}"
                assert time.monotonic() < end, "the job does not connect"
        self.peer = Peer(link)
        return self.peer

    def greet(self) -> Dict[str, Any]:
        """hello, welcome, and the restore if there is one; ends before `run`. Returns what the SDK answered."""
        peer = self.accept()
        self.hello, _ = peer.receive()
        assert self.hello["t"] == "hello" and self.hello["protocol"] == 1, self.hello
        manifest = self.restore.manifest() if self.restore else None
        peer.send({"t": "welcome", "bitExact": self.bit_exact, "restore": manifest})
        if self.restore:
            peer.send_restore(self.restore)
            self.restored, _ = peer.receive()
        return self.restored

    def start(self, asked: bool = False) -> "Attempt":
        answer = self.greet()
        if self.restore:
            assert answer["t"] == "restored", answer
            assert answer["digest"] == self.restore.digest
        if asked:
            self.ask()
        self.peer.send({"t": "run"})
        return self

    def at_safe_point(self) -> Dict[str, Any]:
        message, _ = self.peer.receive()
        assert message["t"] == "safe-point", message
        return message

    def go(self, keep_asking: bool = False) -> None:
        if not keep_asking:
            self.ask(0)
        self.peer.send({"t": "go"})

    def save(self, ident: int = 1) -> Any:
        """At a safe point: the checkpoint, or the refusal's message."""
        self.peer.send({"t": "save", "id": ident})
        message, _ = self.peer.receive()
        if message["t"] == "refused":
            return message
        assert message["t"] == "save", message
        saved = self.peer.receive_save(message)
        self.peer.send({"t": "committed", "id": ident, "slot": 1})
        return saved

    def probe(self, ident: int = 1) -> Dict[str, Any]:
        self.peer.send({"t": "probe", "id": ident})
        message, _ = self.peer.receive()
        return message

    def finish(self, limit_s: float = 60) -> Any:
        """Waits for the process; returns (exit code, stdout, stderr)."""
        out, err = self.process.communicate(timeout=limit_s)
        return self.process.returncode, out.decode(), err.decode()


def run_outside(script: str, python: str = sys.executable) -> str:
    """The script's output without Portal."""
    with tempfile.TemporaryDirectory(prefix="portal-sdk-") as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        env = {key: value for key, value in os.environ.items() if not key.startswith("PORTAL_")}
        env.update(PYTHONPATH=SDK, PYTHONHASHSEED="7")
        done = subprocess.run([python, path], env=env, capture_output=True, timeout=60, check=False, cwd=folder)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


def wait_for(condition: Callable[[], bool], limit_s: float = 20) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


__all__ = ["Attempt", "Checkpoint", "Lost", "Peer", "run_outside", "threading", "wait_for"]

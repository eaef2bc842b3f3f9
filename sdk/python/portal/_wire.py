"""Frames between the job and its agent: two lengths, meta as JSON, payload. Neither trusts the other's lengths."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any, Dict, List, Optional, Tuple, Union

META_LIMIT = 1 << 20
SAVE_META_LIMIT = 64 << 20
PAYLOAD_LIMIT = 8 << 20
# The kernel takes at most IOV_MAX (1024) pieces a call.
PIECES = 512

Piece = Union[bytes, bytearray, memoryview]
Message = Dict[str, Any]


class Broken(Exception):
    """The connection is of no use any more: closed, or the other side does not follow the protocol."""


class Connection:
    """One Unix stream socket to the agent. Every fault closes it and raises `Broken`."""

    def __init__(self, path: str, timeout_s: Optional[float]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout_s)
            self._socket.connect(path)
            self._socket.settimeout(None)
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def send(self, message: Message, pieces: Tuple[Piece, ...] = ()) -> None:
        """Sends one frame; the payload is the pieces one after the other, straight from their memory."""
        meta = json.dumps(message, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        encoded = meta.encode("utf-8", "backslashreplace")
        limit = SAVE_META_LIMIT if message.get("t") == "save" else META_LIMIT
        if len(encoded) > limit:
            raise ValueError(f"a message of {len(encoded)} bytes is over the limit of {limit}")
        payload = sum(len(piece) for piece in pieces)
        header = struct.pack("<II", len(encoded), payload) + encoded
        try:
            self._send_all([memoryview(header), *(memoryview(piece) for piece in pieces)])
        except OSError as error:
            self.close()
            raise Broken(f"sending to the agent: {error}") from error
        except BaseException:
            # Half a frame may be out: nothing more can be said on this connection.
            self.close()
            raise

    def _send_all(self, pieces: List[memoryview]) -> None:
        first = 0
        while first < len(pieces):
            sent = self._socket.sendmsg(pieces[first : first + PIECES])
            while first < len(pieces) and sent >= len(pieces[first]):
                sent -= len(pieces[first])
                first += 1
            if sent:
                pieces[first] = pieces[first][sent:]

    def receive(self, timeout_s: Optional[float] = None) -> Tuple[Message, int]:
        """The next frame's meta and how many bytes of payload follow; those must be taken by `receive_into`."""
        try:
            header = bytearray(8)
            self._fill(memoryview(header), timeout_s)
            meta_length, payload = struct.unpack("<II", header)
            if meta_length > SAVE_META_LIMIT or payload > PAYLOAD_LIMIT:
                raise Broken(f"a frame of {meta_length} + {payload} bytes is over the limit")
            meta = bytearray(meta_length)
            self._fill(memoryview(meta), None)
            message = json.loads(meta.decode("utf-8"))
            if not isinstance(message, dict) or not isinstance(message.get("t"), str):
                raise Broken("a frame without a type")
            if meta_length > META_LIMIT and message["t"] not in ("save", "welcome"):
                raise Broken(f"a {message['t']} of {meta_length} bytes is over the limit")
            return message, payload
        except (OSError, ValueError) as error:
            self.close()
            raise Broken(f"hearing from the agent: {error}") from error
        except BaseException:
            self.close()
            raise

    def receive_into(self, view: memoryview) -> None:
        """Fills the view with the next bytes of the payload."""
        try:
            self._fill(view, None)
        except OSError as error:
            self.close()
            raise Broken(f"hearing from the agent: {error}") from error
        except BaseException:
            self.close()
            raise

    def _fill(self, view: memoryview, timeout_s: Optional[float]) -> None:
        # A limit is for the first byte: whoever has begun a frame finishes it or is gone.
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while len(view):
            if deadline is not None:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            count = self._socket.recv_into(view)
            if count == 0:
                raise Broken("the agent closed the connection")
            view = view[count:]
        if deadline is not None:
            self._socket.settimeout(None)

"""Streams a save: chunks hashed here, sent by a thread beside; both without the interpreter's lock for the heavy part."""

from __future__ import annotations

import hashlib
import queue
import threading
from typing import Any, Dict, List, Optional, Tuple

from ._digest import Digest, Piece, chunks_of, is_zero, size_of
from ._wire import Connection

CHUNKS_A_FRAME = 64
# Frames that wait hold no copy but for chunks that cross pieces: 4 × 4 MiB at the most.
FRAMES_AHEAD = 4

Frame = Tuple[Dict[str, Any], Tuple[memoryview, ...]]


class _Sender:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._frames: "queue.Queue[Optional[Frame]]" = queue.Queue(FRAMES_AHEAD)
        self._fault: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, name="portal-sender", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            frame = self._frames.get()
            if frame is None:
                return
            if self._fault is None:
                try:
                    self._connection.send(*frame)
                except BaseException as fault:
                    self._fault = fault

    def put(self, frame: Frame) -> None:
        if self._fault is not None:
            raise self._fault
        self._frames.put(frame)

    def finish(self) -> None:
        self._frames.put(None)
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def abandon(self) -> None:
        """After a fault on this side: the connection is closed first, which ends a send that hangs."""
        self._connection.close()
        while self._thread.is_alive():
            try:
                self._frames.put_nowait(None)
            except queue.Full:
                pass
            self._thread.join(0.05)


def send_streams(connection: Connection, ident: Any, streams: List[Tuple[str, List[Piece]]]) -> str:
    """Sends every chunk of every stream in order, straight from where it lies; returns the digest."""
    digest = Digest()
    sender = _Sender(connection)
    try:
        for name, pieces in streams:
            digest.stream(name, size_of(pieces))
            first = 0
            sizes: List[int] = []
            sums: List[Optional[str]] = []
            payload: List[memoryview] = []

            def flush() -> None:
                message = {"t": "chunks", "id": ident, "stream": name, "first": first, "bytes": sizes, "sha256": sums}
                sender.put((message, tuple(payload)))

            for chunk in chunks_of(pieces):
                sizes.append(len(chunk))
                if is_zero(chunk):
                    sums.append(None)
                    digest.chunk(None)
                else:
                    sha256 = hashlib.sha256(chunk)
                    sums.append(sha256.hexdigest())
                    digest.chunk(sha256.digest())
                    payload.append(chunk)
                if len(sizes) == CHUNKS_A_FRAME:
                    flush()
                    first += len(sizes)
                    sizes, sums, payload = [], [], []
            if sizes:
                flush()
        sender.finish()
    except BaseException:
        sender.abandon()
        raise
    return digest.hex()

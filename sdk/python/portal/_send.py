"""Streams a save: chunks hashed by a few threads, sent by another, all without the interpreter's lock for the heavy part."""

from __future__ import annotations

import collections
import hashlib
import os
import queue
import threading
from typing import Any, Deque, Dict, Iterator, List, Optional, Set, Tuple

from ._digest import Digest, Piece, chunks_of, is_zero, size_of
from ._wire import Connection

CHUNKS_A_FRAME = 64
# Frames that wait hold no copy but for chunks that cross pieces: 4 × 4 MiB at the most.
FRAMES_AHEAD = 4
HASHERS = max(1, min(4, os.cpu_count() or 1))

Streams = List[Tuple[str, List[Piece]]]
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


def _batches(streams: Streams) -> Iterator[Tuple[str, int, List[memoryview]]]:
    for name, pieces in streams:
        first = 0
        batch: List[memoryview] = []
        for chunk in chunks_of(pieces):
            batch.append(chunk)
            if len(batch) == CHUNKS_A_FRAME:
                yield name, first, batch
                first += len(batch)
                batch = []
        if batch:
            yield name, first, batch


def _hashes(chunks: List[memoryview]) -> List[Optional[bytes]]:
    return [None if is_zero(chunk) else hashlib.sha256(chunk).digest() for chunk in chunks]


def send_streams(connection: Connection, ident: Any, streams: Streams) -> str:
    """Sends every chunk of every stream in order, straight from where it lies; returns the digest."""
    # Only a save needs it, and what it imports takes time.
    from concurrent.futures import Future, ThreadPoolExecutor

    digest = Digest()
    sizes = {name: size_of(pieces) for name, pieces in streams}
    begun: Set[str] = set()
    waiting: Deque[Tuple[str, int, List[memoryview], "Future[List[Optional[bytes]]]"]] = collections.deque()
    sender = _Sender(connection)

    def put_oldest() -> None:
        name, first, chunks, hashes = waiting.popleft()
        if name not in begun:
            begun.add(name)
            digest.stream(name, sizes[name])
        sums = hashes.result()
        for sha256 in sums:
            digest.chunk(sha256)
        message = {"t": "chunks", "id": ident, "stream": name, "first": first, "bytes": [len(chunk) for chunk in chunks]}
        message["sha256"] = [None if sha256 is None else sha256.hex() for sha256 in sums]
        sender.put((message, tuple(chunk for chunk, sha256 in zip(chunks, sums) if sha256 is not None)))

    try:
        with ThreadPoolExecutor(HASHERS, "portal-hash") as pool:
            for name, first, chunks in _batches(streams):
                waiting.append((name, first, chunks, pool.submit(_hashes, chunks)))
                if len(waiting) > HASHERS:
                    put_oldest()
            while waiting:
                put_oldest()
        sender.finish()
    except BaseException:
        sender.abandon()
        raise
    return digest.hex()

"""Chunks of 64 KiB, their hashes, and the digest over all of them (K-WHOLE-3).

The digest is over the walk's own encoding and the memory beside it, both canonical, so it says that two states hold equal
values. It is made of the chunks' hashes, so that a save reads every byte once.
"""

from __future__ import annotations

import hashlib
from typing import Iterator, List, Optional, Tuple

CHUNK = 64 << 10
_ZERO = bytes(CHUNK)

Piece = Tuple[int, memoryview]


def size_of(pieces: List[Piece]) -> int:
    return pieces[-1][0] + pieces[-1][1].nbytes if pieces else 0


def chunks_of(pieces: List[Piece]) -> Iterator[memoryview]:
    """The stream in chunks of 64 KiB, the last one shorter. `pieces` are (offset, memory), rising; gaps are zeros.

    A chunk that lies in one piece is a view on that memory; only one that crosses pieces is put together.
    """
    at = 0
    size = size_of(pieces)
    first = 0
    while at < size:
        end = min(at + CHUNK, size)
        while pieces[first][0] + pieces[first][1].nbytes <= at:
            first += 1
        offset, memory = pieces[first]
        if offset <= at and end <= offset + memory.nbytes:
            yield memory[at - offset : end - offset]
        else:
            whole = bytearray(end - at)
            for offset, memory in pieces[first:]:
                if offset >= end:
                    break
                low, high = max(at, offset), min(end, offset + memory.nbytes)
                if low < high:
                    whole[low - at : high - at] = memory[low - offset : high - offset]
            yield memoryview(whole)
        at = end


def is_zero(chunk: memoryview) -> bool:
    # Two bytes settle it for almost every chunk that is not; comparing bytes is a memcmp.
    if chunk[0] or chunk[-1]:
        return False
    size = len(chunk)
    return bytes(chunk) == (_ZERO if size == CHUNK else _ZERO[:size])


class Digest:
    """Takes every stream's size and chunk hashes in order."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256(b"portal python state 1\n")

    def stream(self, name: str, size: int) -> None:
        self._sum.update(f"\n{name} {size}\n".encode())

    def chunk(self, sha256: Optional[bytes]) -> None:
        self._sum.update(b"0" if sha256 is None else b"1" + sha256)

    def hex(self) -> str:
        return self._sum.hexdigest()


def digest_of(streams: List[Tuple[str, List[Piece]]]) -> str:
    """The digest of what a walk found, without sending it."""
    digest = Digest()
    for name, pieces in streams:
        digest.stream(name, size_of(pieces))
        for chunk in chunks_of(pieces):
            digest.chunk(None if is_zero(chunk) else hashlib.sha256(chunk).digest())
    return digest.hex()

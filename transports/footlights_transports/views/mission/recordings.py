"""Recordings: the sound of spoken callouts, as files that only their owner can fetch, for a limited time.

Each owner has a folder of its own. A name is random, so it tells nothing about the words. When there are too many
files or bytes, the owner with the most loses the oldest.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING

import trio

from footlights.fair_share import eviction_candidate
from footlights.private_files import create_for_owner_only

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_FILES = 500
MAX_BYTES = 256_000_000
"""Of all recordings together."""
_NAME = re.compile(r"[0-9a-f]{32}\.wav")
"""Other files are not ours to delete."""
_ANONYMOUS = "@"
"""The folder of the anonymous user: no user has such a name."""


class Recordings:
    """The recordings in a folder. Needs the task `run`, which deletes what has expired."""

    def __init__(self, folder: Path, seconds: float, clock_ms: Callable[[], int]) -> None:
        self._folder = folder
        self._keep_ms = round(seconds * 1_000)
        self._clock_ms = clock_ms
        self._sizes: dict[tuple[str, str], int] = {}
        """The bytes of each file, by owner and name, the oldest first."""
        self._ends_ms: dict[tuple[str, str], int] = {}
        self._grown = trio.Event()
        found = [(file.stat(), file) for file in folder.glob("*/*.wav") if _NAME.fullmatch(file.name)]
        for status, file in sorted(found, key=lambda each: each[0].st_mtime_ns):
            self._note((file.parent.name, file.name), status.st_size, status.st_mtime_ns // 1_000_000)

    async def keep(self, owner: str | None, wav: bytes) -> str:
        """Write a recording, and return its name. Raises `OSError`."""
        key = (owner or _ANONYMOUS, f"{secrets.token_hex(16)}.wav")
        await trio.to_thread.run_sync(_write, self._file(key), wav)  # a cancel waits for it
        self._note(key, len(wav), self._clock_ms())
        while len(self._sizes) > MAX_FILES or sum(self._sizes.values()) > MAX_BYTES:
            await self._delete(eviction_candidate(self._sizes, itemgetter(0)))
        return key[1]

    async def read(self, owner: str | None, name: str) -> bytes | None:
        """A recording of this owner; None if there is none, or no more."""
        key = (owner or _ANONYMOUS, name)
        if self._ends_ms.get(key, 0) <= self._clock_ms():
            await trio.lowlevel.checkpoint()
            return None
        try:
            return await trio.Path(self._file(key)).read_bytes()
        except OSError:  # somebody else has deleted it
            return None

    async def run(self) -> None:
        """Delete recordings when they expire, until cancelled."""
        while True:
            self._grown = trio.Event()
            for key, end_ms in [*self._ends_ms.items()]:
                if end_ms > self._clock_ms():
                    await trio.sleep((end_ms - self._clock_ms()) / 1_000)
                await self._delete(key)
            await self._grown.wait()

    def _note(self, key: tuple[str, str], size: int, at_ms: int) -> None:
        self._sizes[key] = size
        self._ends_ms[key] = min(at_ms, self._clock_ms()) + self._keep_ms
        self._grown.set()

    async def _delete(self, key: tuple[str, str]) -> None:
        self._sizes.pop(key, None)
        self._ends_ms.pop(key, None)
        with suppress(OSError):  # somebody else has changed the folder
            await trio.Path(self._file(key)).unlink()

    def _file(self, key: tuple[str, str]) -> Path:
        return self._folder.joinpath(*key)


def _write(file: Path, wav: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    create_for_owner_only(file)
    try:
        file.write_bytes(wav)
    except OSError:
        file.unlink(missing_ok=True)
        raise

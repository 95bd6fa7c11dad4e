"""Content store: dialogues kept beyond their session, with consent; encrypted and erasable.

    store = ContentStore("kept", keys_from_file("content.keys"))
    await store.keep(session_id, turn_id, said, answered)
    await store.erase(session_id)

One file for each session, one encrypted line for each dialogue, which has the time of its encryption in the clear.
Without a key nothing is written, and nothing can be read. Erasing a session unlinks its file; destroying the keys
erases everything, in copies and backups too. Several processes may use one folder: a process that changes something
locks the folder, and the others wait for the lock.

It needs the extra `content`.
"""

from __future__ import annotations

import os
import time
from base64 import urlsafe_b64decode
from copy import copy
from functools import partial
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
import trio
from attrs import asdict, frozen
from cryptography.fernet import InvalidToken

from footlights.notebooks.store import ContentUnavailable
from footlights_actors.sealed.folder import FRESH, PRIVATE, in_thread, locked, replace_file
from footlights_actors.sealed.keys import ContentKeyError, seals_of
from footlights_transports.worlds.names import folder_of_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import BinaryIO

_T = TypeVar("_T")

_SUFFIX = ".sealed"
_DAY = 86_400.0


@frozen
class Kept:
    """One completed dialogue."""

    session_id: str
    turn_id: str
    said: str
    """The user's message."""
    answered: str
    """The answer."""


class ContentStore:
    """A folder of encrypted files, created if it does not exist. Raises `ContentKeyError` for invalid keys.

    A dialogue that is older than `days` is not read any more, and `expire` deletes it. The methods raise
    `ContentUnavailable` if the folder cannot be used.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        keys: Sequence[str],
        *,
        days: float = inf,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._seals = seals_of(keys)
        self._folder = Path(folder)
        self._seconds = days * _DAY
        self._wall_clock = wall_clock
        self._limiter = trio.CapacityLimiter(1)

    def in_world(self, name: str) -> ContentStore:
        """The store of a world beside the main one, whose sessions may have the same names: a folder of its own."""
        its = copy(self)
        its._folder = folder_of_world(self._folder, name)
        its._limiter = trio.CapacityLimiter(1)
        return its

    async def keep(self, session_id: str, turn_id: str, said: str, answered: str) -> None:
        """Store a dialogue. It is on the disk when this returns.

        If this is canceled while a disk hangs, the dialogue may or may not be stored.
        """
        kept = Kept(session_id, turn_id, said, answered)
        await self._in_thread(
            lambda: self._append(session_id, self._sealed(orjson.dumps(asdict(kept)))), may_leave=True
        )

    async def sessions(self) -> list[str]:
        """The ids of the stored sessions. Raises `ContentKeyError` if no key decrypts one of them."""
        return await self._in_thread(self._sessions)

    async def read(self, session_id: str) -> list[Kept]:
        """The dialogues of a session, the oldest first. Raises `ContentKeyError` if no key decrypts them."""
        return await self._in_thread(lambda: [self._opened(line) for line in self._lines(self._file(session_id))])

    async def erase(self, session_id: str) -> bool:
        """Erase a session; returns whether anything was stored."""
        return await self._in_thread(lambda: self._erase([self._file(session_id)]) > 0)

    async def erase_all(self) -> int:
        """Erase everything; returns how many sessions there were."""
        return await self._in_thread(lambda: self._erase(self._files(_SUFFIX)) + self._erase(self._files(FRESH)))

    async def expire(self) -> None:
        """Delete the dialogues that are too old. It needs no key that fits, and waits for no disk if it is canceled."""
        await self._in_thread(self._expire, may_leave=True)

    async def rotate(self) -> int:
        """Encrypt everything with the newest key, so that older keys can be destroyed; returns how many sessions.

        A session that fails stays as it was, and the rest is encrypted. Then this raises `ContentKeyError` if no key
        decrypts one of them, otherwise `ContentUnavailable`: the older keys are still needed.
        """
        sealed, misfits, failure = 0, 0, None
        for path in await self._in_thread(lambda: self._files(_SUFFIX)):
            try:
                sealed += await self._in_thread(partial(self._reseal, path))
            except InvalidToken:
                misfits += 1
            except ContentUnavailable as error:
                failure = error
        if misfits:
            raise ContentKeyError(f"No key decrypts the content of {misfits} sessions; {sealed} are re-encrypted.")
        if failure is not None:
            raise failure
        return sealed

    async def _in_thread(self, work: Callable[[], _T], *, may_leave: bool = False) -> _T:
        return await in_thread(work, self._limiter, may_leave=may_leave)

    # -- inside, in threads

    def _file(self, session_id: str) -> Path:
        # Not the id itself: users choose it, and it may be anything.
        return self._folder / f"{sha256(session_id.encode()).hexdigest()}{_SUFFIX}"

    def _files(self, suffix: str) -> list[Path]:
        return sorted(self._folder.glob(f"*{suffix}"))

    def _sessions(self) -> list[str]:
        found, misfits = set[str](), 0
        for path in self._files(_SUFFIX):
            try:
                found.update(self._opened(line).session_id for line in self._lines(path)[:1])
            except ContentKeyError:
                misfits += 1
        if misfits:
            raise ContentKeyError(f"No key decrypts the content of {misfits} sessions.")
        return sorted(found)

    def _append(self, session_id: str, sealed: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            locked(self._folder),
            os.fdopen(os.open(self._file(session_id), os.O_RDWR | os.O_CREAT, PRIVATE), "r+b") as file,
        ):
            start = _start_of_rest(file)
            file.seek(start)
            rest = file.read()
            # A line that lacks only its line break gets it; one that a crash cut short is removed.
            line_break = b"\n" if rest and self._opens(rest) else b""
            if not line_break:
                file.truncate(start)
            file.seek(0, os.SEEK_END)
            file.write(line_break + sealed + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _sealed(self, data: bytes) -> bytes:
        return self._seals.encrypt_at_time(data, int(self._wall_clock()))

    def _opens(self, line: bytes) -> bool:
        try:
            return bool(self._seals.decrypt(line))
        except InvalidToken:
            return False

    def _opened(self, line: bytes) -> Kept:
        try:
            return Kept(**orjson.loads(self._seals.decrypt(line)))
        except InvalidToken:
            raise ContentKeyError("No key decrypts the content.") from None

    def _lines(self, path: Path) -> list[bytes]:
        """The complete lines of a file that are not too old. A crash may have cut short what follows the last break."""
        *lines, rest = _lines_of(path) or [b""]
        if rest and self._opens(rest):
            lines.append(rest)
        return [each for each in lines if not self._is_old(each)]

    def _expire(self) -> None:
        if left := self._files(FRESH):  # by a process that ended amid a change
            self._erase(left)
        for path in self._files(_SUFFIX):
            if any(each and self._is_old(each) for each in _lines_of(path)):
                self._rewrite(path, list[bytes])

    def _is_old(self, line: bytes) -> bool:
        return _sealed_at(line) < self._wall_clock() - self._seconds

    def _erase(self, paths: Iterable[Path]) -> int:
        if not self._folder.exists():
            return 0
        with locked(self._folder):
            # First the unfinished re-encryption: nothing may bring back what is erased.
            return sum([_unlink(path.with_suffix(FRESH)) | _unlink(path) for path in paths])

    def _reseal(self, path: Path) -> bool:
        return self._rewrite(path, lambda lines: [self._seals.rotate(line) for line in lines])

    def _rewrite(self, path: Path, change: Callable[[list[bytes]], list[bytes]]) -> bool:
        """Change the lines of a file that are not too old, and drop the others; returns whether there is a file."""
        with locked(self._folder):
            if not path.exists():
                return False  # erased meanwhile
            lines = change(self._lines(path))
            if not lines:
                return not _unlink(path)
            replace_file(path, b"".join(line + b"\n" for line in lines))
        return True


def _lines_of(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []


def _sealed_at(line: bytes) -> int:
    """When a line was encrypted, in seconds since the epoch: a Fernet token begins with a version and that time."""
    try:
        return int.from_bytes(urlsafe_b64decode(line[:12])[1:])
    except ValueError:
        return 0


def _start_of_rest(file: BinaryIO) -> int:
    """Where a last line without a line break begins; the end of the file if there is none."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    if file.read(1) in (b"", b"\n"):
        return size
    file.seek(0)
    return sum(len(line) for line in file if line.endswith(b"\n"))


def _unlink(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True

"""Sealed notes: a note store in a folder. Each owner has two files, named by a digest of the owner.

    NAME.key       the owner and a key, sealed by the keys of the server
    NAME.notes     one line for each note: its id, and its words sealed by the key of the owner

A note is durable when `seal` returns. Erasing deletes the key and then the notes. Several processes may use one folder;
the folder of a world that moves between machines has to be shared by them. It needs the extra `content`.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
import trio
from cryptography.fernet import Fernet, InvalidToken

from footlights_actors.sealed.folder import FRESH, PRIVATE, in_thread, locked, replace_file
from footlights_actors.sealed.keys import ContentKeyError, seals_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

_T = TypeVar("_T")

_KEY, _NOTES = ".key", ".notes"


class SealedNotes:
    """A folder of sealed notes, created if it does not exist. `keys`: the first one seals, all of them open.

    Raises `ContentKeyError` for invalid keys; its methods raise it for an owner whose key none of them opens.
    """

    def __init__(self, folder: str | os.PathLike[str], keys: Sequence[str]) -> None:
        self._keys = keys
        self._seals = seals_of(keys)
        self._folder = Path(folder).absolute()
        self._worlds = self._folder.with_name(f"{self._folder.name}.worlds")
        self._limiter = trio.CapacityLimiter(1)

    def in_world(self, name: str) -> Self:
        return type(self)(self._worlds / name, self._keys)

    async def seal(self, owner: str, note_id: str, words: str) -> None:
        await self._in_thread(lambda: self._seal(owner, note_id, words))

    async def read(self, owner: str) -> dict[str, str]:
        return await self._in_thread(lambda: self._read(owner))

    async def stamp(self, owner: str) -> object:
        return await self._in_thread(lambda: self._stamp(owner))

    async def sweep(self, owner: str, keep: Callable[[str], bool]) -> None:
        await self._in_thread(lambda: self._sweep(owner, keep))

    async def erase(self, owner: str) -> bool:
        return await self._in_thread(lambda: self._erase(owner))

    async def owners(self) -> list[str]:
        return await self._in_thread(lambda: [self._opened(path)[0] for path in sorted(self._folder.glob(f"*{_KEY}"))])

    async def rotate(self) -> int:
        """Seal the key of each owner, in all worlds, with the newest key, so that older ones can be destroyed.

        Returns how many there are.
        """
        return await self._in_thread(self._rotate)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        return await in_thread(work, self._limiter, may_leave=True)

    # -- inside, in threads

    def _path(self, owner: str, suffix: str) -> Path:
        return self._folder / f"{sha256(owner.encode()).hexdigest()}{suffix}"

    def _seal(self, owner: str, note_id: str, words: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._folder):
            path = self._path(owner, _KEY)
            if not path.exists():
                told = {"owner": owner, "key": Fernet.generate_key().decode()}
                replace_file(path, self._seals.encrypt(orjson.dumps(told)))
            line = note_id.encode() + b" " + self._opened(path)[1].encrypt(words.encode()) + b"\n"
            with os.fdopen(os.open(self._path(owner, _NOTES), os.O_RDWR | os.O_CREAT, PRIVATE), "r+b") as file:
                # A crash may have cut the last line short. Its note was never promised.
                file.truncate(file.read().rfind(b"\n") + 1)
                file.seek(0, os.SEEK_END)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def _read(self, owner: str) -> dict[str, str]:
        lines = self._lines(owner)
        if not lines:
            return {}
        try:
            _, key = self._opened(self._path(owner, _KEY))
            return {id_: key.decrypt(sealed).decode() for id_, sealed in lines}
        except FileNotFoundError:  # erased meanwhile, and the process that did it died before it deleted the notes
            return {}
        except InvalidToken:
            raise ContentKeyError("Sealed notes do not fit the key of their owner.") from None

    def _lines(self, owner: str) -> list[tuple[str, bytes]]:
        try:
            *lines, _ = self._path(owner, _NOTES).read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        parts = (line.partition(b" ") for line in lines)
        return [(id_.decode(errors="replace"), sealed) for id_, _, sealed in parts]

    def _opened(self, path: Path) -> tuple[str, Fernet]:
        """The owner and the key in a key file."""
        try:
            told = orjson.loads(self._seals.decrypt(path.read_bytes()))
        except InvalidToken:
            raise ContentKeyError("No key opens the key of an owner of notes.") from None
        return told["owner"], Fernet(told["key"])

    def _stamp(self, owner: str) -> object:
        try:
            found = self._path(owner, _NOTES).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, self._path(owner, _KEY).exists()

    def _sweep(self, owner: str, keep: Callable[[str], bool]) -> None:
        if not self._folder.exists():
            return
        with locked(self._folder):
            lines = self._lines(owner)
            kept = [(id_, sealed) for id_, sealed in lines if keep(id_)]
            if lines and not kept:
                self._delete(owner)
            elif len(kept) < len(lines):
                data = b"".join(id_.encode() + b" " + sealed + b"\n" for id_, sealed in kept)
                replace_file(self._path(owner, _NOTES), data)

    def _erase(self, owner: str) -> bool:
        if not self._folder.exists():
            return False
        with locked(self._folder):
            return self._delete(owner)

    def _delete(self, owner: str) -> bool:
        # First the key: without it the rest is noise, whatever happens before the rest is deleted.
        paths = [self._path(owner, suffix) for suffix in (_KEY, FRESH, _NOTES)]
        found = any(path.exists() for path in paths)
        for path in paths:
            path.unlink(missing_ok=True)
        return found

    def _rotate(self) -> int:
        count = 0
        for path in sorted([*self._folder.glob(f"*{_KEY}"), *self._worlds.glob(f"*/*{_KEY}")]):
            with locked(path.parent):
                if path.exists():
                    self._opened(path)
                    replace_file(path, self._seals.rotate(path.read_bytes()))
                    count += 1
        return count

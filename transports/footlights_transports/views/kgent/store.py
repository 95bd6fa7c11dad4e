"""What was said, kept beyond the session for those who agreed to it: encrypted, erasable, and nowhere else.

    store = ContentStore("kept", keys_from_file("content.keys"))
    await store.keep(session_id, turn_id, said, answered)
    await store.erase(session_id)

One file for each session, one sealed line for each dialogue. Without a key nothing is written, and nothing can be read.
Erasing a session unlinks its file; throwing away the keys erases everything at once, in copies and backups too. Several
processes may use one folder: who changes something holds a lock on the folder, and the others wait for it until they
are canceled.

It needs an extra: pip install 'footlights[content]'
"""

from __future__ import annotations

import os
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orjson
import trio
from attrs import asdict, frozen
from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from footlights.errors import FootlightsError
from footlights.private_files import exposure
from footlights_transports.views.kgent.folder import alone_in
from footlights_transports.views.kgent.pure.settings import CONTENT_KEYS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import BinaryIO

_T = TypeVar("_T")

_SUFFIX = ".sealed"
_FRESH = ".fresh"
"""A file that is being sealed anew."""
_FOR_US_ALONE = 0o600
_AGAIN = 0.02
"""After so many seconds a folder that somebody else is changing is tried again."""


class ContentKeyError(FootlightsError):
    """There is no key, or none that fits. The message quotes none."""

    code = "content_key"


class ContentUnavailable(FootlightsError):
    """What is kept cannot be read or written."""

    code = "content_unavailable"


@frozen
class Kept:
    """One completed dialogue."""

    session_id: str
    turn_id: str
    said: str
    """By the user."""
    answered: str
    """To the user."""


def new_key() -> str:
    """A key that nobody else has."""
    return Fernet.generate_key().decode()


def keys_from_file(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """One key a line, the newest first: that one seals, and all of them open. Raises `ContentKeyError`."""
    file = Path(path)
    try:
        exposed = exposure(file)
        lines = file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise ContentKeyError(f"The keys of kept content cannot be read from {os.fspath(path)}: {why}.") from None
    if exposed is not None:
        raise ContentKeyError(f"The keys of kept content are in {os.fspath(path)}, {exposed}.")
    return _at_least_one((line.strip() for line in lines if not line.startswith("#")), f"The file {os.fspath(path)}")


def keys_from_environment(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The same from the variable `FOOTLIGHTS_CONTENT_KEYS`, with commas between them. Raises `ContentKeyError`."""
    return _at_least_one(
        map(str.strip, environ.get(CONTENT_KEYS_VARIABLE, "").split(",")), f"The variable {CONTENT_KEYS_VARIABLE}"
    )


class ContentStore:
    """A folder of sealed files, made if it is not there. Raises `ContentKeyError` for keys that cannot be ones.

    Its methods raise `ContentUnavailable` if the folder cannot be used.
    """

    def __init__(self, folder: str | os.PathLike[str], keys: Sequence[str]) -> None:
        if not keys:
            raise ContentKeyError("Content is kept only encrypted, and there is no key.")
        try:
            self._seals = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise ContentKeyError("A key of kept content is none: a key is 32 bytes in URL-safe base64.") from None
        self._folder = Path(folder)
        self._limiter = trio.CapacityLimiter(1)

    async def keep(self, session_id: str, turn_id: str, said: str, answered: str) -> None:
        """Add a dialogue to what is kept of its session. It is on the disk when this returns.

        If it is canceled while a disk hangs, nobody knows whether it will be kept.
        """
        kept = Kept(session_id, turn_id, said, answered)
        await self._in_thread(
            lambda: self._append(session_id, self._seals.encrypt(orjson.dumps(asdict(kept)))), may_leave=True
        )

    async def sessions(self) -> list[str]:
        """The ids of the sessions of which something is kept. Raises `ContentKeyError` if no key fits some of it."""
        return await self._in_thread(self._sessions)

    async def read(self, session_id: str) -> list[Kept]:
        """What is kept of a session, the oldest first. Raises `ContentKeyError` if no key fits."""
        return await self._in_thread(lambda: [self._opened(line) for line in self._lines(self._file(session_id))])

    async def erase(self, session_id: str) -> bool:
        """Forget a session; whether there was anything to forget."""
        return await self._in_thread(lambda: self._erase([self._file(session_id)]) > 0)

    async def erase_all(self) -> int:
        """Forget everything; how many sessions that were."""
        return await self._in_thread(lambda: self._erase(self._files(_SUFFIX)) + self._erase(self._files(_FRESH)))

    async def rotate(self) -> int:
        """Seal everything with the newest key, so that the older ones may go; how many sessions that were.

        What cannot be sealed anew stays as it was, and all the rest is. Then it raises `ContentKeyError` if no key fits
        some of it, otherwise `ContentUnavailable`: the older keys are still needed.
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
            raise ContentKeyError(f"No key opens what is kept of {misfits} sessions; {sealed} are sealed anew.")
        if failure is not None:
            raise failure
        return sealed

    async def _in_thread(self, work: Callable[[], _T], *, may_leave: bool = False) -> _T:
        """Do it as soon as nobody else changes the folder."""
        while True:
            try:
                return await trio.to_thread.run_sync(work, abandon_on_cancel=may_leave, limiter=self._limiter)
            except BlockingIOError:
                # Out here, where it can be canceled, and not in the thread.
                await trio.sleep(_AGAIN)
            except OSError as error:
                raise ContentUnavailable(f"Kept content cannot be reached: {error.strerror}.") from None

    # -- inside, in a thread

    def _file(self, session_id: str) -> Path:
        # Not its name: that is the user's, and may be anything.
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
            raise ContentKeyError(f"No key opens what is kept of {misfits} sessions.")
        return sorted(found)

    def _append(self, session_id: str, sealed: bytes) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            alone_in(self._folder),
            os.fdopen(os.open(self._file(session_id), os.O_RDWR | os.O_CREAT, _FOR_US_ALONE), "r+b") as file,
        ):
            start = _start_of_rest(file)
            file.seek(start)
            rest = file.read()
            # What lacks only its line break gets it, and what a crash cut short goes.
            line_break = b"\n" if rest and self._opens(rest) else b""
            if not line_break:
                file.truncate(start)
            file.seek(0, os.SEEK_END)
            file.write(line_break + sealed + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _opens(self, line: bytes) -> bool:
        try:
            self._seals.decrypt(line)
        except InvalidToken:
            return False
        return True

    def _opened(self, line: bytes) -> Kept:
        try:
            return Kept(**orjson.loads(self._seals.decrypt(line)))
        except InvalidToken:
            raise ContentKeyError("None of the keys opens what is kept.") from None

    def _lines(self, path: Path) -> list[bytes]:
        """The whole lines of a file. What follows the last line break may have been cut short by a crash."""
        try:
            *lines, rest = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return [*lines, rest] if rest and self._opens(rest) else lines

    def _erase(self, paths: Iterable[Path]) -> int:
        if not self._folder.exists():
            return 0
        with alone_in(self._folder):
            # First what is being sealed anew: nothing may bring back what is erased.
            return sum([_unlink(path.with_suffix(_FRESH)) | _unlink(path) for path in paths])

    def _reseal(self, path: Path) -> bool:
        with alone_in(self._folder):
            if not path.exists():
                return False  # it was erased meanwhile
            lines = [self._seals.rotate(line) for line in self._lines(path)]
            fresh = path.with_suffix(_FRESH)
            try:
                with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FOR_US_ALONE), "wb") as file:
                    file.writelines(line + b"\n" for line in lines)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(path)
            except OSError:
                _unlink(fresh)
                raise
        return True


def _start_of_rest(file: BinaryIO) -> int:
    """Where the last line begins that has no line break; the end of the file if there is none."""
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


def _at_least_one(found: Iterable[str], where: str) -> tuple[str, ...]:
    keys = tuple(key for key in found if key)
    if not keys:
        raise ContentKeyError(f"{where} has no key, and content is kept only encrypted.")
    return keys

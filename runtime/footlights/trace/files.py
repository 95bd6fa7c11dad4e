"""Trace files: the current file and a few rotated ones.

The file is opened for each batch, so that a file which was deleted, truncated or moved in between is simply started
again. A turn is never split between files.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.errors import RegistrationError
from footlights.private_files import create_for_owner_only

if TYPE_CHECKING:
    from collections import deque
    from io import FileIO

_STEM = "interaction_trace"


def _directory(given: str | os.PathLike[str]) -> Path:
    try:
        path = Path(given)
    except TypeError:
        raise RegistrationError(f"The trace directory is a {type(given).__name__}; it must be a path.") from None
    if "\0" in str(path):
        raise RegistrationError("The trace directory has a null character in its name.")
    return path


@frozen
class TraceFiles:
    """Directory and retention of a stage's traces. One directory serves one stage at a time.

    Raises `RegistrationError` for an invalid value.
    """

    directory: Path = field(converter=_directory)
    """Created if it does not exist."""
    max_bytes: int = field(default=16 * 1024 * 1024, kw_only=True)
    """Size at which `interaction_trace.jsonl` is rotated. Only a file with a single turn may be larger."""
    keep: int = field(default=4, kw_only=True)
    """Number of rotated files to keep: `interaction_trace.1.jsonl` is the newest, and so on."""

    def __attrs_post_init__(self) -> None:
        for name, minimum in (("max_bytes", 1), ("keep", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < minimum:
                raise RegistrationError(f"{name} is {value!r}; it must be a whole number of at least {minimum}.")

    @property
    def path(self) -> Path:
        """The current file."""
        return self.directory / f"{_STEM}.jsonl"

    def append(self, turns: deque[bytes]) -> None:
        """Write each turn, and remove it from `turns` once it is written.

        Raises `OSError`; then the remaining turns were not written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        while turns:
            create_for_owner_only(self.path)
            with self.path.open("a+b", buffering=0) as file:
                self._fill(file, turns)
            if turns:
                self.put_aside()

    def _fill(self, file: FileIO, turns: deque[bytes]) -> None:
        end = file.seek(0, os.SEEK_END)
        lead = b"" if not end or _last_byte(file, end) == b"\n" else b"\n"
        size, fitting = end + len(lead), 0
        for turn in turns:
            size += len(turn)
            if size > self.max_bytes and (end or fitting):
                break
            fitting += 1
        if fitting:
            _write(file, end, lead + b"".join(islice(turns, fitting)))
            for _ in range(fitting):
                turns.popleft()

    def put_aside(self) -> None:
        """Rotate the current file, unless it is empty. Raises `OSError`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self.path.is_file() or not self.path.stat().st_size:
            return
        if self.keep:
            # Shift only up to the first gap: a gap that a failed rotation left must not cost a file.
            free = next((number for number in range(1, self.keep) if not self._old(number).exists()), self.keep)
            for number in range(free - 1, 0, -1):
                _rename(self._old(number), self._old(number + 1))
            _rename(self.path, self._old(1))
        else:
            self.path.unlink(missing_ok=True)

    def _old(self, number: int) -> Path:
        return self.directory / f"{_STEM}.{number}.jsonl"


def _rename(source: Path, target: Path) -> None:
    if source.is_file():  # anything else is not a trace, and stays
        with suppress(FileNotFoundError):
            source.replace(target)


def _last_byte(file: FileIO, end: int) -> bytes:
    file.seek(end - 1)
    return file.read(1)


def _write(file: FileIO, end: int, data: bytes) -> None:
    """Write everything; on an error, try to truncate the file to its previous end."""
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        with suppress(OSError):
            file.truncate(end)
        raise

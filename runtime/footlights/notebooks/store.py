"""Note store: the words of notes, by owner. It does not know which of them exist: the world does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Self


class ContentUnavailable(FootlightsError):
    """The place where words are kept cannot be read or written."""

    code = "content_unavailable"


class NoteStore(Protocol):
    """Where the words of notes are. Every method raises `ContentUnavailable` if it cannot be reached."""

    async def seal(self, owner: str, note_id: str, words: str) -> None:
        """Store the words of a note. They are durable when this returns; a call that is cancelled may have stored
        them."""
        ...

    async def read(self, owner: str) -> Mapping[str, str]:
        """The words of all notes of this owner, by id."""
        ...

    async def stamp(self, owner: str) -> object:
        """A value that differs whenever what is stored for this owner differs. Cheap."""
        ...

    async def sweep(self, owner: str, keep: Callable[[str], bool]) -> None:
        """Delete the notes whose ids are not to be kept."""
        ...

    async def erase(self, owner: str) -> bool:
        """Delete everything of this owner, with the key; returns whether there was anything."""
        ...

    async def owners(self) -> Collection[str]:
        """Every owner of whom something is stored."""
        ...

    def in_world(self, name: str) -> Self:
        """The store of another world of the same server, which has nothing in common with this one."""
        ...


class MemoryNotes:
    """Notes in memory, until the process ends: for tests, and for `footlights play`."""

    def __init__(self) -> None:
        self._notes: dict[str, dict[str, str]] = {}
        self._changes = 0

    async def seal(self, owner: str, note_id: str, words: str) -> None:
        self._notes.setdefault(owner, {})[note_id] = words
        self._changes += 1

    async def read(self, owner: str) -> dict[str, str]:
        return dict(self._notes.get(owner, {}))

    async def stamp(self, owner: str) -> object:
        return self._changes

    async def sweep(self, owner: str, keep: Callable[[str], bool]) -> None:
        self._notes[owner] = {id_: words for id_, words in self._notes.get(owner, {}).items() if keep(id_)}
        self._changes += 1

    async def erase(self, owner: str) -> bool:
        self._changes += 1
        return bool(self._notes.pop(owner, None))

    async def owners(self) -> list[str]:
        return list(self._notes)

    def in_world(self, name: str) -> Self:
        return type(self)()

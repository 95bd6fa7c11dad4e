"""What is true: the world that turns commit to.

A world is a value. `changed` gives the next one and leaves this one as it was, so a turn that is refused,
or a ledger that cannot write, has nothing to undo. The default world is a JSON document; a host may bring
its own.

A document is held as its canonical bytes and nothing else. Whoever looks at it sees what a ledger would give back, so
rules see the same before and after a restart: keys in the same order, and 2 where somebody wrote 2.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import orjson

from footlights.authority.digest import canonical, digest_bytes, is_digest
from footlights.authority.patch import apply_patch
from footlights.authority.values import MAX_DEPTH
from footlights.errors import RegistrationError

if TYPE_CHECKING:
    from footlights.authority.patch import PatchOp
    from footlights.events import JsonValue


class World(Protocol):
    """What is true, as a value: nothing ever changes it in place."""

    def view(self) -> object:
        """What rules, tools and hosts see of the world. It is theirs: changing it changes nothing."""
        ...

    def changed(self, changes: tuple[PatchOp, ...]) -> World:
        """The world after all of `changes`. Raises `PatchFailed` or `TooLarge`."""
        ...

    def digest(self) -> str:
        """64 lower-case hex digits that stand for everything that is true: equal for equal worlds, in any process."""
        ...


def checked_digest(world: World) -> str:
    """The digest of a world of anybody's kind. Raises `RegistrationError` if no record could hold it."""
    found = world.digest()
    if not is_digest(found):
        raise RegistrationError("The digest of a world is a string of 64 lower-case hex digits.")
    return found


class JsonWorld:
    """A JSON document with a limit on how large and how deep it may become.

    Its view is a copy of the document. Raises `NotCanonical` or `TooLarge` for a document that cannot be a
    world.
    """

    __slots__ = ("_digest", "_max_bytes", "_max_depth", "_written")

    def __init__(self, document: JsonValue, *, max_bytes: int = 1_000_000, max_depth: int = 64) -> None:
        self._max_bytes = max_bytes
        self._max_depth = min(max_depth, MAX_DEPTH)
        self._written = canonical(document, max_depth=self._max_depth, max_bytes=max_bytes)
        self._digest = digest_bytes(self._written)

    @property
    def written(self) -> bytes:
        """The document in canonical JSON."""
        return self._written

    def view(self) -> JsonValue:
        document: JsonValue = orjson.loads(self._written)
        return document

    def changed(self, changes: tuple[PatchOp, ...]) -> JsonWorld:
        document = apply_patch(self.view(), changes)
        return JsonWorld(document, max_bytes=self._max_bytes, max_depth=self._max_depth)

    def digest(self) -> str:
        return self._digest

"""World: the authoritative state that turns change by their commits.

A world is an immutable value. `changed` returns the next one, so nothing has to be undone when a turn is refused or the
ledger cannot write. The default world is a JSON document; a host may provide its own kind.

A JSON world stores only its canonical bytes, and every view is parsed from them. So rules see the same before and after
a restart: keys in the same order, and 2 even if a host wrote 2.0.
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
    """The authoritative state as an immutable value."""

    def view(self) -> object:
        """A view for rules, tools and hosts. It is a copy: changing it does not change the world."""
        ...

    def changed(self, changes: tuple[PatchOp, ...]) -> World:
        """The world after `changes`. Raises `PatchFailed` or `TooLarge`."""
        ...

    def digest(self) -> str:
        """A digest of 64 lower-case hex digits, equal for equal worlds in any process."""
        ...


def checked_digest(world: World) -> str:
    """The digest of a world of any kind. Raises `RegistrationError` if it is malformed."""
    found = world.digest()
    if not is_digest(found):
        raise RegistrationError("The digest of a world is a string of 64 lower-case hex digits.")
    return found


class JsonWorld:
    """A JSON document with limits on its size and depth.

    Its view is a copy of the document. Raises `NotCanonical` or `TooLarge` for an invalid document.
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

"""What is true: the world that turns commit to.

A world is a value. `changed` gives the next one and leaves this one as it was, so a turn that is refused,
or a ledger that cannot write, has nothing to undo. The default world is a JSON document; a host may bring
its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from footlights.authority.digest import canonical, digest_bytes
from footlights.authority.patch import apply_patch
from footlights.authority.values import MAX_DEPTH, snapshot

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
        """Stands for everything that is true: equal for equal worlds, in any process."""
        ...


class JsonWorld:
    """A JSON document with a limit on how large and how deep it may become.

    Its view is a copy of the document. Raises `NotCanonical` or `TooLarge` for a document that cannot be a
    world.
    """

    __slots__ = ("_digest", "_document", "_max_bytes", "_max_depth")

    def __init__(self, document: JsonValue, *, max_bytes: int = 1_000_000, max_depth: int = 64) -> None:
        self._max_bytes = max_bytes
        self._max_depth = min(max_depth, MAX_DEPTH)
        self._hold(snapshot(document))

    def _hold(self, document: JsonValue) -> None:
        data = canonical(document, max_depth=self._max_depth, max_bytes=self._max_bytes)
        self._document = document
        self._digest = digest_bytes(data)

    def view(self) -> JsonValue:
        return snapshot(self._document)

    def changed(self, changes: tuple[PatchOp, ...]) -> JsonWorld:
        after = JsonWorld.__new__(JsonWorld)  # not by calling it: a patched document needs no second copy
        after._max_bytes = self._max_bytes
        after._max_depth = self._max_depth
        after._hold(apply_patch(self._document, changes))
        return after

    def digest(self) -> str:
        return self._digest

"""World: the authoritative state that turns change by their commits.

A world is an immutable value. `changed` returns the next one, so nothing has to be undone when a turn is refused or the
ledger cannot write. The default world is a JSON document; a host may provide its own kind.

A JSON world is a tree of nodes, so a change and its digest cost as much in a world of 100 MB as in a small one. It
holds what canonical JSON would read back. So rules see the same before and after a restart: keys in the same order, and
2 even if a host wrote 2.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from footlights.authority.digest import canonical, is_digest
from footlights.authority.patch import Misfit, tokens_of
from footlights.authority.values import MAX_DEPTH, View
from footlights.authority.world.edit import WorldLimits, changed, checked, child_of, root_in, root_of, small_if_small
from footlights.authority.world.views import WorldReadOnly, digest_of, plain, plain_view, shown, size_of_part, value_of
from footlights.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.authority.patch import PatchOp
    from footlights.authority.world.nodes import Ref, Value
    from footlights.events import JsonValue

__all__ = [
    "JsonWorld",
    "World",
    "WorldReadOnly",
    "amended",
    "apply_patch",
    "checked_digest",
    "digest_of",
    "find_in",
    "plain_view",
    "size_of_part",
]

MAX_WORLD_BYTES = 256_000_000
NO_LIMITS = WorldLimits(2**63, MAX_DEPTH)


class World(Protocol):
    """The authoritative state as an immutable value."""

    def view(self) -> Any:
        """A view for rules, tools and hosts. Whatever they do to it must not change the world."""
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
    if type(world) is not JsonWorld and not is_digest(found):
        raise RegistrationError("The digest of a world is a string of 64 lower-case hex digits.")
    return found


class JsonWorld:
    """A JSON document, or the part of a world that a view shows, with limits on its size and depth.

    Its view is read-only, and both share everything. Raises `NotCanonical` or `TooLarge` for an invalid document.
    """

    __slots__ = ("_digest", "_document", "_limits", "_view", "root")

    def __init__(self, document: JsonValue | View, *, max_bytes: int = MAX_WORLD_BYTES, max_depth: int = 64) -> None:
        limits = WorldLimits(max_bytes, min(max_depth, MAX_DEPTH))
        self._become(root_of(document, limits), limits)

    def _become(self, document: Value, limits: WorldLimits) -> None:
        self.root: Ref = checked(root_in(document), limits)
        self._document = small_if_small(document)
        self._limits = limits
        self._view: Any = None
        self._digest = self.root.digest.hex()

    @classmethod
    def without_limits(cls, root: Ref) -> JsonWorld:
        """A world of nodes, for ledgers and audits."""
        return cls._of(root, NO_LIMITS)

    @classmethod
    def _of(cls, document: Value, limits: WorldLimits) -> JsonWorld:
        world = cls.__new__(cls)
        world._become(document, limits)
        return world

    def limited_as(self, other: JsonWorld) -> JsonWorld:
        """The same document with the limits of another world. Raises `TooLarge`."""
        return self._of(self._document, other._limits)

    @property
    def written(self) -> bytes:
        """The document in canonical JSON. It takes as long as the world is large."""
        return canonical(plain(self.root))

    def view(self) -> Any:
        if self._view is None:
            self._view = shown(self._document)
        return self._view

    def changed(self, changes: tuple[PatchOp, ...]) -> JsonWorld:
        return self._of(changed(self._document, changes, self._limits), self._limits)

    def digest(self) -> str:
        return self._digest


def apply_patch(document: JsonValue, ops: Iterable[PatchOp]) -> JsonValue:
    """A new plain document: this one after `ops`, in order. Raises `PatchFailed` at the first that does not fit."""
    after: JsonValue = plain(changed(root_of(document, NO_LIMITS), ops, NO_LIMITS))
    return after


def find_in(view: Any, pointer: str) -> tuple[Any, ...]:
    """What is at this place in a view, or in plain data with views in it, as the only item; empty if nothing is."""
    try:
        for token in tokens_of(pointer):
            child = child_of(value_of(view), token)
            view = shown(child) if isinstance(view, View) else child
    except Misfit:
        return ()
    return (view,)


def amended(view: View, *ops: PatchOp) -> Any:
    """A view of what this one would show after `ops`, which share all else with it."""
    return shown(changed(value_of(view), ops, NO_LIMITS))

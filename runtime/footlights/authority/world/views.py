"""Views: a world as rules, tools and hosts read it, as read-only mappings and sequences.

A view copies nothing. Each step into it visits only the nodes on the way, so a world of 100 MB is read as fast as a
small one. Members come in the order of canonical JSON. Two views are equal if their digests are, and a view equals
plain data that has the same canonical JSON.
"""

# JSON values are Any here: a narrowed one would be partially unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, Final, NoReturn, overload

import orjson

from footlights.authority.digest import NotCanonical, canonical, canonical_again
from footlights.authority.values import SCALARS, View, snapshot
from footlights.authority.world.nodes import Ref, Value, hashed, parsed
from footlights.authority.world.tree import ABSENT, count_of, entries_of, found, sealed
from footlights.errors import FootlightsError, TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

_MANY_BYTES = 10_000
"""A larger view does not show its content in its `repr`."""


class WorldReadOnly(FootlightsError, TypeError):
    """A view of a world was written to."""

    code = "world_read_only"

    def __init__(self) -> None:
        super().__init__(
            "A view of the world is read-only. Only a commit changes the world: a rule returns "
            "accept(patch.replace(...)). For data of your own to change, take view.copy()."
        )


def _refuse(*_: object, **__: object) -> NoReturn:
    raise WorldReadOnly


class _Part(View):
    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value: Final = value

    def copy(self) -> Any:
        return plain(self.value)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, _: object) -> Any:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Part):
            return self.value is other.value or digest_of(self) == digest_of(other)
        if not isinstance(other, (dict, list)):
            return NotImplemented
        try:
            # Written and read again, as the world would: 2.0 becomes 2.
            return digest_of(self) == digest_of_value(sealed(orjson.loads(canonical(snapshot(other)))))
        except (NotCanonical, TooLarge):
            return False

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType] - compared, not hashed

    def __repr__(self) -> str:
        size = size_of_part(self)
        return repr(self.copy()) if size <= _MANY_BYTES else f"<{len(self):,} entries of a world, {size:,} bytes>"  # type: ignore[arg-type]

    __setitem__ = __delitem__ = __iadd__ = __ior__ = _refuse
    append = extend = insert = remove = reverse = sort = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class ObjectView(_Part, Mapping[str, Any]):
    """A read-only object of a world."""

    __slots__ = ("_members",)

    def __init__(self, value: Value) -> None:
        super().__init__(value)
        self._members: Final[dict[str, Any] | None] = (
            value if type(value) is dict else parsed(value.node) if type(value.node) is bytes else None
        )
        """All members of an object that is not divided: what most rules read costs no search."""

    def __getitem__(self, key: str) -> Any:
        if self._members is not None:
            value = self._members[key]
            return value if type(value) in SCALARS else shown(value)  # the most frequent call of all
        value = self._found(key)
        if value is ABSENT:
            raise KeyError(key)
        return shown(value)

    def __contains__(self, key: object) -> bool:
        return self._found(key) is not ABSENT

    def get(self, key: object, default: Any = None) -> Any:
        value = self._found(key)
        return default if value is ABSENT else shown(value)

    def _found(self, key: object) -> Value:
        if not isinstance(key, str):
            return ABSENT
        return found(self.value.node, key) if self._members is None else self._members.get(key, ABSENT)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._entries()) if self._members is None else iter(self._members)

    def keys(self) -> KeysView[str]:
        return super().keys() if self._members is None else self._members.keys()

    def items(self) -> ItemsView[str, Any]:
        return _Items(self, self._entries)

    def values(self) -> ValuesView[Any]:
        return _Values(self, self._entries)

    def _entries(self) -> Iterator[tuple[Any, Value]]:
        return entries_of(self.value.node) if self._members is None else iter(self._members.items())

    def __len__(self) -> int:
        return _count(self.value)


class _Items(ItemsView[str, Any]):
    def __init__(self, view: ObjectView, entries: Callable[[], Iterator[tuple[Any, Value]]]) -> None:
        super().__init__(view)
        self._entries = entries

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((key, shown(value)) for key, value in self._entries())


class _Values(ValuesView[Any]):
    def __init__(self, view: ObjectView, entries: Callable[[], Iterator[tuple[Any, Value]]]) -> None:
        super().__init__(view)
        self._entries = entries

    def __iter__(self) -> Iterator[Any]:
        return (shown(value) for _, value in self._entries())


class ArrayView(_Part, Sequence[Any]):
    """A read-only array of a world."""

    __slots__ = ()

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        places = range(len(self))[at]
        return self._item(places) if isinstance(places, int) else [self._item(place) for place in places]

    def _item(self, place: int) -> Any:
        held = self.value
        return shown(found(held.node, place) if isinstance(held, Ref) else held[place])

    def __iter__(self) -> Iterator[Any]:
        held = self.value
        if isinstance(held, Ref):
            return (shown(value) for _, value in entries_of(held.node))
        return map(shown, held)

    def __len__(self) -> int:
        return _count(self.value)


def _count(value: Value) -> int:
    return count_of(value.node) if isinstance(value, Ref) else len(value)


def shown(value: Value) -> Any:
    """A value as views show it: objects and arrays as views, everything else plain."""
    if type(value) in SCALARS:
        return value
    if isinstance(value, dict):
        return ObjectView(value)
    if isinstance(value, list):
        return ArrayView(value)
    if not isinstance(value, Ref):
        return value
    if isinstance(value.node, bytes) and value.node[:1] not in (b"{", b"["):
        return orjson.loads(value.node)
    return ArrayView(value) if value.is_array else ObjectView(value)


def plain(value: Value) -> Any:
    """A copy of a value as plain data."""
    if isinstance(value, (dict, list)):
        return orjson.loads(orjson.dumps(value))
    if not isinstance(value, Ref):
        return value
    if isinstance(value.node, bytes):
        return orjson.loads(value.node)
    if value.is_array:
        return [plain(child) for _, child in entries_of(value.node)]
    return {key: plain(child) for key, child in entries_of(value.node)}


def plain_view(value: object) -> JsonValue:
    """For `orjson.dumps(default=...)`: a view as plain data. Raises `TypeError` for anything else."""
    if isinstance(value, View):
        return value.copy()
    raise TypeError


def value_of(view: object) -> Value:
    """The value that a view shows, or a scalar."""
    return view.value if isinstance(view, _Part) else view


def digest_of(view: object) -> str:
    """The digest of a view, or of a scalar that one showed."""
    return digest_of_value(value_of(view))


def digest_of_value(value: Value) -> str:
    if not isinstance(value, Ref):
        value = sealed(value)  # a long text
    return (value.digest if isinstance(value, Ref) else hashed(canonical_again(value))).hex()


def size_of_part(view: object) -> int:
    """Bytes of a view, or of a scalar, as canonical JSON."""
    value = value_of(view)
    return value.size if isinstance(value, Ref) else len(canonical_again(value))

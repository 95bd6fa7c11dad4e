"""A session's stream as Server-Sent Events: what is written, and the cursor that a client comes back with.

    id: WzEseyJ0MS0wMDAwMDEiOjR9LFtdLFtdXQ
    data: {"schema_v":"1.0","session_id":"s1-000001",...}

The `id` of an event says exactly what was sent up to it and with it, of every turn. So a client that was cut off
anywhere goes on from the last event that it has whole: nothing is missing, and nothing comes twice. Events have no
`event` field; the two notices, `detached` and `ended`, have one and no `id`. Pure: no trio, no sockets.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, cast

import orjson
from attrs import field, frozen

from footlights import wire
from footlights.errors import InvalidCommand
from footlights.events import EventType
from footlights.recall import ALL_SEEN
from footlights_transports.dialects.native import MAX_CURSORS, write_notice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from footlights.events import StreamEvent

KEEP_ALIVE = b":\n\n"
"""A comment: it means nothing, and shows that the connection lives."""
MAX_CURSOR_CHARS = 8_192
"""More than any cursor that is given out, and little enough for the header of a request."""

_FORMAT = 1
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_MAX_TURN_ID_CHARS = 64
_TERMINAL = frozenset({EventType.TURN_FINAL, EventType.TURN_INTERRUPTED})


@frozen
class Cursor:
    """What a client has got of a session: what `subscribe` takes."""

    after: Mapping[str, int] = field(factory=dict[str, int])
    """The last seq of each turn; of a turn that it has whole, 1,000,000,001."""
    terminal_seen: frozenset[str] = frozenset()
    """Turns of which it has the terminal event and not the commit_final."""


def write_cursor(after: Mapping[str, int], terminal_seen: Iterable[str]) -> str:
    """The cursor as an opaque word of letters, digits, - and _."""
    parts = {turn_id: seq for turn_id, seq in after.items() if seq < ALL_SEEN}
    whole = [turn_id for turn_id, seq in after.items() if seq >= ALL_SEEN]
    written = orjson.dumps([_FORMAT, parts, whole, sorted(terminal_seen)])
    return urlsafe_b64encode(written).rstrip(b"=").decode()


def read_cursor(word: str) -> Cursor:
    """What `write_cursor` wrote. Raises `InvalidCommand` for anything that it cannot have written."""
    if len(word) > MAX_CURSOR_CHARS or not _BASE64URL.fullmatch(word):
        raise _not_ours()
    try:
        read: object = orjson.loads(urlsafe_b64decode(word + "=" * (-len(word) % 4)))
    except ValueError:
        raise _not_ours() from None
    if not isinstance(read, list) or len(members := cast("list[object]", read)) != 4:
        raise _not_ours()
    version, parts, whole, ended = members
    if type(version) is not int or version != _FORMAT:
        raise _not_ours()
    after = {**_parts(parts), **dict.fromkeys(_turn_ids(whole), ALL_SEEN)}
    if len(after) > MAX_CURSORS:
        raise _not_ours()
    return Cursor(after, frozenset(_turn_ids(ended)))


def _parts(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise _not_ours()
    parts = cast("dict[str, object]", value)
    return dict(zip(_turn_ids(list(parts)), map(_seq, parts.values()), strict=True))


def _turn_ids(value: object) -> list[str]:
    if not isinstance(value, list) or not all(map(_is_turn_id, cast("list[object]", value))):
        raise _not_ours()
    return cast("list[str]", value)


def _is_turn_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_TURN_ID_CHARS


def _seq(value: object) -> int:
    if type(value) is not int or not -1 <= value < ALL_SEEN:
        raise _not_ours()
    return value


def _not_ours() -> InvalidCommand:
    return InvalidCommand("Last-Event-ID: is not an id that this server gave out.")


class SseWriter:
    """Turns what a subscription yields into bytes, and keeps account of what was written."""

    def __init__(self, cursor: Cursor) -> None:
        self._after = dict(cursor.after)
        self._terminal_seen = set(cursor.terminal_seen)

    @property
    def cursor(self) -> Cursor:
        """What was written so far."""
        return Cursor(dict(self._after), frozenset(self._terminal_seen))

    def opening(self) -> bytes:
        """An id and nothing else: whoever is cut off before the first event can come back too."""
        return b"id: %b\n\n" % self._id()

    def events(self, batch: Iterable[StreamEvent]) -> bytes:
        """These events, each with its own id."""
        return b"".join(map(self._event, batch))

    def forget_all_but(self, turn_ids: Collection[str]) -> None:
        """These are the turns that still matter; the ids need not name others."""
        self._after = {turn_id: seq for turn_id, seq in self._after.items() if turn_id in turn_ids}
        self._terminal_seen.intersection_update(turn_ids)

    def _event(self, event: StreamEvent) -> bytes:
        turn_id = event.turn_id
        if event.event_type is EventType.COMMIT_FINAL:
            self._after[turn_id] = ALL_SEEN
            self._terminal_seen.discard(turn_id)
        else:
            self._after[turn_id] = event.seq
            if event.event_type in _TERMINAL:
                self._terminal_seen.add(turn_id)
        return b"id: %b\ndata: %b\n\n" % (self._id(), wire.encode(event))

    def _id(self) -> bytes:
        return write_cursor(self._after, self._terminal_seen).encode()


def notice(name: str, session_id: str, reason: str | None = None) -> bytes:
    """`detached` or `ended`: the last that is written to a stream."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), write_notice(name, session_id, reason))

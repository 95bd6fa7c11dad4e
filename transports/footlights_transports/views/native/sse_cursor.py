"""Cursors as opaque words, for the `id` of Server-Sent Events.

A word has to fit into a header of a request. Turns are numbered one after the other, so a word names the first of each
run of them: a thousand turns that a client has whole take no more room than one. Pure.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import TYPE_CHECKING, cast

import orjson

from footlights.errors import InvalidCommand
from footlights.ids import epoch_and_number, in_order, turn_id
from footlights.stream.cursor import ALL_SEEN, Cursor
from footlights_transports.views.native.protocol import MAX_CURSORS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

MAX_CURSOR_CHARS = 8_192
"""Longer than any word that the server writes, and short enough for the header of a request."""

_FORMAT = 2
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_MAX_TURN_ID_CHARS = 64

_place = lru_cache(8_192)(in_order)
"""Cached, because every event names the same few turns."""


def write_cursor(cursor: Cursor, whole: Mapping[str, int] | None = None, in_part: Collection[str] | None = None) -> str:
    """The cursor as a word of letters, digits, - and _.

    `whole` is what `whole_turns` made of it, and `in_part` are the other turns, if they are known.
    """
    after = cursor.after
    if in_part is None:
        in_part = [each for each, seq in after.items() if seq < ALL_SEEN]
    seqs = {run[0]: [after[each] for each in run] for run in _runs(in_part)}
    runs = whole_turns(cursor) if whole is None else whole
    written = orjson.dumps([_FORMAT, seqs, runs, _counted(cursor.terminal_seen)])
    return urlsafe_b64encode(written).rstrip(b"=").decode()


def whole_turns(cursor: Cursor) -> dict[str, int]:
    """The runs of turns that were taken whole."""
    return _counted(each for each, seq in cursor.after.items() if seq >= ALL_SEEN)


def _counted(turn_ids: Iterable[str]) -> dict[str, int]:
    """The first turn of each run, and how many there are in it."""
    return {run[0]: len(run) for run in _runs(turn_ids)}


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
    after = {**_parts(parts), **dict.fromkeys(_all_of(whole), ALL_SEEN)}
    if len(after) > MAX_CURSORS:
        raise _not_ours()
    return Cursor(after, set(_all_of(ended)))


def _runs(turn_ids: Iterable[str]) -> Iterator[list[str]]:
    run: list[str] = []
    before = (0, 0)
    for place, each in sorted((_place(each), each) for each in turn_ids):
        if run and place != (before[0], before[1] + 1):
            yield run
            run = []
        run.append(each)
        before = place
    if run:
        yield run


def _run(first: str, length: int) -> list[str]:
    """The run that begins there. Raises `InvalidCommand`."""
    place = epoch_and_number(first)
    if not 0 < len(first) <= _MAX_TURN_ID_CHARS or not 0 < length <= MAX_CURSORS or (place is None and length > 1):
        raise _not_ours()
    return [first] if place is None else [turn_id(place[0], place[1] + by) for by in range(length)]


def _parts(value: object) -> dict[str, int]:
    parts: dict[str, int] = {}
    for first, seqs in _members(value):
        if not isinstance(seqs, list):
            raise _not_ours()
        given = [_seq(each) for each in cast("list[object]", seqs)]
        parts.update(zip(_run(first, len(given)), given, strict=True))
    return parts


def _all_of(value: object) -> list[str]:
    named: list[str] = []
    for first, count in _members(value):
        if type(count) is not int or len(named) > MAX_CURSORS:
            raise _not_ours()
        named += _run(first, count)
    return named


def _members(value: object) -> Iterable[tuple[str, object]]:
    if not isinstance(value, dict):
        raise _not_ours()
    return cast("dict[str, object]", value).items()


def _seq(value: object) -> int:
    if type(value) is not int or not -1 <= value < ALL_SEEN:
        raise _not_ours()
    return value


def _not_ours() -> InvalidCommand:
    return InvalidCommand("Last-Event-ID: is not an id that this server gave out.")

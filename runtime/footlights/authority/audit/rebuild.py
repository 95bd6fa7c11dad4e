"""Rebuild of the world from the genesis and the recorded changes, without trust in the stored world.

A commit records the patch operations that it made and the digest of the world after them, so applying all patches in
order must give a world with the last recorded digest. Computing the digest of a large world costs more than patching
it, so a JSON world is advanced by batches of commits: a document is the same whether its patches come one commit at a
time or many. A batch that fails is applied again commit by commit, which finds the first commit that does not fit. A
world of the host's own kind may count its calls, so it always gets one commit at a time. The chains are checked by
`footlights.authority.audit.audit`, not here.
"""

from __future__ import annotations

import sys
from functools import reduce
from itertools import islice, takewhile
from typing import TYPE_CHECKING

import orjson
from attrs import frozen

from footlights.authority.audit.reader import Altered, LedgerUnreadable
from footlights.authority.patch import PatchFailed
from footlights.authority.record import record_from_json
from footlights.authority.values import MAX_DEPTH
from footlights.authority.world import JsonWorld
from footlights.errors import FootlightsError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from footlights.authority.audit.reader import Entry, GenesisRow, LedgerReader
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

_JSON_BATCH = 256


@frozen
class Replay:
    """A rebuilt world, and the digest that the ledger states for it."""

    commits: int
    world: World
    expected: str
    """The digest of the world by the last of these commits."""
    kept: JsonWorld | None
    """The stored world; None if none is stored for this commit."""

    @property
    def identical(self) -> bool:
        return all(each == self.expected for each in (self.world.digest(), (self.kept or self.world).digest()))


def replay(reader: LedgerReader, *, at: int | None = None, genesis: World | None = None) -> Replay:
    """Rebuild the world up to the commit at position `at`, or to the end.

    `genesis` is the first world, for a ledger with a world of the host's own kind. Raises `Altered`, and
    `LedgerUnreadable` if such a genesis is missing.
    """
    row = reader.genesis()
    world = genesis_world(row) or genesis
    if world is None:
        raise LedgerUnreadable("The world of this ledger is of the host's own kind: only its host can rebuild it.")
    commits = 0
    last: Entry | None = None

    def counted() -> Iterator[Entry]:
        nonlocal commits, last
        for last in takewhile(lambda entry: at is None or entry.position <= at, reader.entries()):
            commits += 1
            yield last

    world = rebuild(world, counted())
    expected = row.digest if last is None else read_record(last).world_after
    document = reader.world().document if at is None else None
    kept = None if document is None else read_world(document, "world")
    return Replay(commits, world, expected, kept)


def rebuild(world: World, entries: Iterable[Entry]) -> World:
    """`world` after all of `entries`. Raises `Altered` at the first that cannot be read or does not fit."""
    size = _JSON_BATCH if isinstance(world, JsonWorld) else 1
    remaining = iter(entries)
    while batch := list(islice(remaining, size)):
        world = _advanced(world, [(entry, read_record(entry)) for entry in batch])
    return world


def _advanced(world: World, batch: Sequence[tuple[Entry, CommitRecord]]) -> World:
    changes = tuple(change for _, record in batch for change in record.changes)
    if not changes:
        return world
    try:
        return world.changed(changes)
    except (PatchFailed, TooLarge):
        # Again, one commit at a time, to find the one that does not fit.
        return reduce(lambda before, pair: apply(before, *pair), batch, world)


def apply(world: World, entry: Entry, record: CommitRecord) -> World:
    """`world` after one commit. Raises `Altered` if its changes do not fit."""
    if not record.changes:
        return world
    try:
        return world.changed(record.changes)
    except (PatchFailed, TooLarge) as error:
        raise altered(entry, f"Its changes do not fit the world before it ({error.code}).") from error


def genesis_world(row: GenesisRow) -> JsonWorld | None:
    """The genesis world; None if it is of the host's own kind. Raises `Altered`."""
    if row.document is None:
        return None
    world = read_world(row.document, "genesis")
    if world.digest() != row.digest:
        raise Altered("genesis", "The world that the ledger began from does not have the digest that is kept of it.")
    return world


def read_world(document: bytes, place: str) -> JsonWorld:
    """A stored world, without limits on its size. Raises `Altered` if it is malformed."""
    try:
        world = JsonWorld(orjson.loads(document), max_bytes=sys.maxsize, max_depth=MAX_DEPTH)
    except (orjson.JSONDecodeError, FootlightsError):
        raise Altered(place, "The document cannot be read.") from None
    if world.written != document:
        raise Altered(place, "The document is not written in canonical form.")
    return world


def read_record(entry: Entry) -> CommitRecord:
    """The record of a row. Raises `Altered` if it is malformed."""
    try:
        return record_from_json(orjson.loads(entry.record_json))
    except (orjson.JSONDecodeError, FootlightsError):
        raise altered(entry, "Its record cannot be read.") from None


def altered(entry: Entry, what: str) -> Altered:
    """The error that names this row."""
    name = f"commit {entry.position} (c-{entry.commit_digest[:16]}, {entry.turn_id} of {entry.session_id})"
    return Altered(name, what, entry.position)

"""Rebuild of the world from the genesis or a checkpoint, and the recorded changes.

A commit records the patch operations that it made and the digest of the world after them, so applying all patches in
order must give a world with the last recorded digest. The chains are checked by `footlights.authority.audit.audit`, not
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from attrs import frozen

from footlights.authority.audit.reader import Altered, LedgerUnreadable
from footlights.authority.patch import PatchFailed
from footlights.authority.record import record_from_json
from footlights.authority.world.checkpoint import Nodes, RowSpace
from footlights.errors import FootlightsError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from footlights.authority.audit.reader import Entry, LedgerReader, WorldRow
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import JsonWorld, World
    from footlights.authority.world.checkpoint import NodeRow


@frozen
class Replay:
    """A rebuilt world, and the digest that the ledger states for it."""

    commits: int
    """The commits that were made again."""
    world: World
    expected: str
    """The digest of the world by the last of these commits."""

    @property
    def identical(self) -> bool:
        return self.world.digest() == self.expected


def replay(reader: LedgerReader, *, at: int | None = None, genesis: World | None = None) -> Replay:
    """Rebuild the world up to the commit at position `at`, from the nearest checkpoint; or from the genesis to the end.

    `genesis` is the first world, for a ledger with a world of the host's own kind. Raises `Altered`, and
    `LedgerUnreadable` if such a genesis is missing.
    """
    row, kept = reader.genesis(), reader.worlds()
    check_kept(kept, is_json=row.is_json)
    begun = [each for each in kept if at is None or each.position <= at]
    nearest = begun if at is None else begun[-1:]
    worlds = kept_worlds(nearest, reader)
    digests = {each.position: each.digest for each in nearest}
    world, after = (worlds[0], nearest[0].position) if worlds else (genesis, 0)
    expected = digests[after] if after else row.digest
    if world is None:
        raise LedgerUnreadable("The world of this ledger is of the host's own kind: only its host can rebuild it.")
    commits = 0
    for entry in reader.entries(after):
        if at is not None and entry.position > at:
            break
        record = read_record(entry)
        world, expected = apply(world, entry, record), record.world_after
        commits += 1
        if digests.get(entry.position, expected) != expected:
            raise Altered(f"world after commit {entry.position}", "It is not the one that the commits made.")
    return Replay(commits, world, expected)


def kept_worlds(kept: Sequence[WorldRow], reader: LedgerReader) -> list[JsonWorld]:
    """The worlds of these checkpoints. Raises `Altered`."""
    worlds: list[JsonWorld] = []
    while kept:
        generation = generation_of(kept)
        rows = reader.nodes(generation[0].first, max(row.root for row in generation))
        worlds = [*worlds_of(generation, rows, RowSpace()), *worlds]
        kept = kept[: -len(generation)]
    return worlds


def generation_of(kept: Sequence[WorldRow]) -> list[WorldRow]:
    """The last of these checkpoints with those before it that share its rows."""
    return [each for each in kept if each.first == kept[-1].first]


def check_kept(kept: Sequence[WorldRow], *, is_json: bool) -> None:
    """Raises `Altered` unless they are the genesis and those of one generation; or none, if the world is not JSON."""
    if [0] * is_json != [each.position for each in kept[:1]]:
        raise Altered("world", "It is missing, or not of the kind that the ledger began from.")
    for each in kept[1:]:
        if each.first != kept[-1].first or kept[0].first < each.first <= kept[0].root:
            raise Altered(f"world after commit {each.position}", "It is not what was written.")


def worlds_of(kept: Sequence[WorldRow], rows: Iterable[NodeRow], space: RowSpace) -> list[JsonWorld]:
    """The worlds of these checkpoints, which are one or more. `rows` are the nodes from the first on.

    Raises `Altered` if anything in a row is not what was written.
    """
    nodes = Nodes(space)
    first = None
    for row in rows:
        first = row[0] if first is None else first
        try:
            nodes.take(row)
        except ValueError:
            raise Altered(f"node {row[0]}", "It is not what was written, or those below it are not.") from None
    worlds: list[JsonWorld] = []
    for mark in kept:
        place = f"world after commit {mark.position}"
        try:
            worlds.append(nodes.world(mark.root))
        except (LookupError, ValueError):
            raise Altered(place, "Its root is missing.") from None
        if worlds[-1].digest() != mark.digest or mark.first != first:
            raise Altered(place, "It is not what was written.")
    return worlds


def apply(world: World, entry: Entry, record: CommitRecord) -> World:
    """`world` after one commit. Raises `Altered` if its changes do not fit."""
    if not record.changes:
        return world
    try:
        return world.changed(record.changes)
    except (PatchFailed, TooLarge) as error:
        raise altered(entry, f"Its changes do not fit the world before it ({error.code}).") from error


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

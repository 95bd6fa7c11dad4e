"""World patch: a commit by an operator, on a ledger that no stage has open.

The game is not loaded, so none of its rules judges the patch. The record says so: its session is `@operator`, and its
only verdict is that of `world_patch`. It is chained and written like any commit. A patch that does not fit is refused,
and nothing is committed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import orjson
import trio

from footlights.authority import (
    Intent,
    IntentType,
    JsonWorld,
    JudgeRequest,
    RuleBook,
    SqliteLedger,
    accept,
    judge,
    patch,
)
from footlights.authority.audit.reader import LedgerUnreadable
from footlights.authority.audit.rebuild import replay
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.authority.patch import from_json, to_json
from footlights.authority.values import MAX_DEPTH
from footlights.authority.world import find_in
from footlights.errors import InvalidCommand
from footlights.ids import OPERATOR, turn_id
from footlights.stage.host_commits import check_why
from footlights_transports.cli.ledger.diff import same_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from footlights.authority import CommitRecord, World
    from footlights.authority.patch import PatchOp
    from footlights.events import JsonValue

_NAME = "world_patch"


def patch_world(ledger: Path, file: Path, why: str) -> CommitRecord:
    """Commit the JSON Patch in a file. Raises `FootlightsError`; then nothing was committed."""
    check_why(why)
    changes = _read(file)
    with SqliteReader(ledger) as reader:
        if not reader.genesis().is_json:
            raise LedgerUnreadable("The world of this ledger is of the host's own kind: only its host can change it.")
    return trio.run(_commit, ledger, changes, why)


def offered_patch(ledger: Path, world: World) -> list[JsonValue]:
    """What changed between the genesis of the ledger and this world, as operations on the ledger's world of now.

    What the ledger's world has already is left out. Raises `FootlightsError`, also for worlds of a host's own kind.
    """
    with SqliteReader(ledger) as reader:
        if not (reader.genesis().is_json and isinstance(world, JsonWorld)):
            raise LedgerUnreadable("A world of the host's own kind has no patch: only its host can change it.")
        genesis = replay(reader, at=0).world
        now = replay(reader, at=reader.count()).world.view()
    edits = _edits(genesis.view(), world.view(), "")
    return [to_json(op) for op in edits if op.op == "remove" or find_in(now, op.path) != (op.value,)]


def _edits(before: Any, after: Any, path: str) -> Iterator[PatchOp]:
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        yield patch.replace(path, cast("JsonValue", after))
        return
    old, new = cast("Mapping[str, Any]", before), cast("Mapping[str, Any]", after)
    for key in sorted({*old, *new}):
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in new:
            yield patch.remove(place)
        elif key not in old:
            yield patch.add(place, new[key])
        elif not same_value(old[key], new[key]):
            yield from _edits(old[key], new[key], place)


async def _commit(path: Path, changes: tuple[PatchOp, ...], why: str) -> CommitRecord:
    any_world = JsonWorld({}, max_bytes=sys.maxsize, max_depth=MAX_DEPTH)
    intent = Intent(IntentType.DECISION, _NAME)
    async with SqliteLedger(path) as ledger:
        opening = await ledger.begin_epoch(any_world)
        previous = (await ledger.last_digests([OPERATOR])).get(OPERATOR)
        request = JudgeRequest(OPERATOR, turn_id(opening.epoch, 1), None, (intent,), why=why)
        rules = RuleBook({_NAME: lambda _world, _intents: accept(*changes)})
        judgement = judge(request, opening.world, rules, previous)
        for issue in judgement.record.issues:
            raise InvalidCommand(issue.message)
        await ledger.append([judgement.record], judgement.world)
    return judgement.record


def _read(file: Path) -> tuple[PatchOp, ...]:
    try:
        operations = orjson.loads(file.read_bytes())
    except OSError as error:
        raise InvalidCommand(f"The file cannot be read: {error.strerror}.") from None
    except orjson.JSONDecodeError:
        raise InvalidCommand("The file is not JSON.") from None
    if not isinstance(operations, list) or not operations:
        raise InvalidCommand("The file must be a JSON Patch: a list of at least one operation.")
    return tuple(map(from_json, cast("list[JsonValue]", operations)))

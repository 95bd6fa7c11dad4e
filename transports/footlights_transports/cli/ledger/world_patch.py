"""World patch: a commit by an operator, on a ledger that no stage has open.

The game is not loaded, so none of its rules judges the patch. The record says so: its session is `@operator`, and its
only verdict is that of `world_patch`. It is chained and written like any commit. A patch that does not fit is refused,
and nothing is committed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import orjson
import trio

from footlights.authority import Intent, IntentType, JsonWorld, JudgeRequest, RuleBook, SqliteLedger, accept, judge
from footlights.authority.audit.reader import LedgerUnreadable
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.authority.patch import from_json
from footlights.authority.values import MAX_DEPTH
from footlights.errors import InvalidCommand
from footlights.ids import OPERATOR, turn_id
from footlights.stage.host_commits import check_why

if TYPE_CHECKING:
    from pathlib import Path

    from footlights.authority import CommitRecord
    from footlights.authority.patch import PatchOp
    from footlights.events import JsonValue

_NAME = "world_patch"


def patch_world(ledger: Path, file: Path, why: str) -> CommitRecord:
    """Commit the JSON Patch in a file. Raises `FootlightsError`; then nothing was committed."""
    check_why(why)
    changes = _read(file)
    with SqliteReader(ledger) as reader:
        if reader.genesis().document is None:
            raise LedgerUnreadable("The world of this ledger is of the host's own kind: only its host can change it.")
    return trio.run(_commit, ledger, changes, why)


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

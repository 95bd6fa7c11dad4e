"""World patch: a commit by an operator, on a ledger that no stage has open.

It is a JSON Patch from a file, or the edit of the initial world in the settings. The game's rules judge neither. The
record says so: its session is `@operator`, and its only verdict is that of `world_patch`. It is chained and written
like any commit. A patch that does not fit is refused, and nothing is committed.

An edit leads from the initial world that the ledger took in last to the one of the settings, and is merged into the
world of now. What was committed since stays. Where both changed one place, nothing is committed until the operator
says which of them counts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import orjson
import trio
from attrs import frozen

from footlights.authority import (
    Intent,
    IntentType,
    JsonWorld,
    JudgeRequest,
    RuleBook,
    accept,
    judge,
    patch,
    refuse,
)
from footlights.authority.audit.reader import LedgerUnreadable
from footlights.authority.audit.rebuild import read_record, replay
from footlights.authority.initial_world import InitialEdit, taken_in
from footlights.authority.ledger.names import ledger_at, reader_at
from footlights.authority.patch import from_json, to_json
from footlights.authority.values import MAX_DEPTH
from footlights.errors import InvalidCommand
from footlights.ids import OPERATOR, turn_id
from footlights.stage.host_commits import check_why
from footlights_transports.cli.ledger.diff import same_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from footlights.authority import CommitRecord, Ruling, World
    from footlights.authority.ledger.names import LedgerName
    from footlights.authority.ledger.sql.reader import SqlReader
    from footlights.authority.patch import PatchOp
    from footlights.events import JsonValue
    from footlights_transports.cli.ledger.commands import Conflicts

_NAME = "world_patch"
_NOTHING = object()


def patch_world(ledger: LedgerName | str, file: Path, why: str) -> CommitRecord:
    """Commit the JSON Patch in a file. Raises `FootlightsError`; then nothing was committed."""
    check_why(why)
    ruling = accept(*_read(file))
    with reader_at(ledger) as reader:
        _check_kind(reader)

    def decide(_: object) -> Ruling:
        return ruling

    return trio.run(_commit, ledger, decide, why)


def is_taken_in(ledger: LedgerName | str, world: World) -> bool:
    """Whether this is the initial world that the ledger took in last. Raises `FootlightsError`."""
    with reader_at(ledger) as reader:
        edits = _edits(reader)
        return world.digest() == (edits[-1].digest if edits else reader.genesis().digest)


def world_in(ledger: LedgerName) -> World:
    """The world that the ledger has now. Raises `FootlightsError`."""
    with reader_at(ledger) as reader:
        return replay(reader, at=reader.count()).world


@frozen
class Edit:
    """The edit of an initial world."""

    ledger: LedgerName | str
    before: JsonWorld
    """The one that the ledger took in last."""
    after: JsonWorld
    """The one of the settings."""
    now: JsonWorld
    """The world of the ledger."""

    @classmethod
    def read(cls, ledger: LedgerName | str, world: World) -> Edit:
        """Raises `FootlightsError`, also for worlds of a host's own kind."""
        with reader_at(ledger) as reader:
            _check_kind(reader)
            before, now = (replay(reader, at=at).world for at in (0, reader.count()))
            for edit in _edits(reader):
                before = before.changed(tuple(map(from_json, edit.changes)))
        if not (isinstance(before, JsonWorld) and isinstance(world, JsonWorld) and isinstance(now, JsonWorld)):
            raise LedgerUnreadable(_OWN_KIND)
        return cls(ledger, before, world, now)

    def changes(self) -> list[JsonValue]:
        """What would be committed, as a JSON Patch, with the places of the settings where there is a conflict."""
        return [to_json(op) for op, _ in self._merged()]

    def conflicts(self) -> str | None:
        """The places that both changed, as a sentence."""
        places = ", ".join(op.path or "the whole world" for op, is_conflict in self._merged() if is_conflict)
        return f"What was edited in the settings was changed since in the ledger too: {places}." if places else None

    def commit(self, why: str, conflicts: Conflicts | None) -> CommitRecord:
        """Raises `FootlightsError`; then nothing was committed."""
        check_why(why)
        if self.before.digest() == self.after.digest():
            raise InvalidCommand("The ledger took in this world already: there is no edit to commit.")
        if (clash := self.conflicts()) is not None and conflicts is None:
            raise InvalidCommand(f"{clash} {_CHOICE}")
        edit = [to_json(op) for op, _ in merged(self.before.view(), self.after.view(), self.before.view())]
        artifact = InitialEdit(edit, self.after.digest()).artifact

        def decide(now: object) -> Ruling:
            if now != self.now.view():
                return refuse("busy", "The ledger was written meanwhile. Look at the edit again.")
            ops = [op for op, is_conflict in self._merged() if conflicts == "settings" or not is_conflict]
            return accept(*ops, artifacts=[artifact])

        return trio.run(_commit, self.ledger, decide, why)

    def _merged(self) -> Iterator[tuple[PatchOp, bool]]:
        return merged(self.before.view(), self.after.view(), self.now.view())


_OWN_KIND = "The world of this ledger is of the host's own kind: only its host can change it."
_CHOICE = (
    "Nothing was committed. Say which counts there: --conflicts ledger leaves these places as they are, and "
    "--conflicts settings makes them as they are in the settings."
)


def merged(before: Any, after: Any, now: Any, path: str = "") -> Iterator[tuple[PatchOp, bool]]:
    """The operations that bring the changes from `before` to `after` into `now`, each with whether it is a conflict.

    It is one if `now` is neither as before nor as after. Arrays are compared as a whole.
    """
    if same_value(before, after) or same_value(after, now):
        return
    old, new, here = _members({} if before is _NOTHING else before), _members(after), _members(now)
    if old is not None and new is not None and here is not None:
        for key in sorted({*old, *new}):
            place = f"{path}{patch.path_to(key)}"
            yield from merged(old.get(key, _NOTHING), new.get(key, _NOTHING), here.get(key, _NOTHING), place)
    else:
        make = patch.add if now is _NOTHING else patch.replace
        yield patch.remove(path) if after is _NOTHING else make(path, after), not same_value(before, now)


def _members(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _check_kind(reader: SqlReader) -> None:
    if not reader.genesis().is_json:
        raise LedgerUnreadable(_OWN_KIND)


def _edits(reader: SqlReader) -> list[InitialEdit]:
    return taken_in(map(read_record, reader.of_session(OPERATOR)))


async def _commit(path: LedgerName | str, decide: Callable[[object], Ruling], why: str) -> CommitRecord:
    any_world = JsonWorld({}, max_bytes=sys.maxsize, max_depth=MAX_DEPTH)
    intent = Intent(IntentType.DECISION, _NAME)
    async with ledger_at(path) as ledger:
        opening = await ledger.begin_epoch(any_world)
        previous = (await ledger.last_digests([OPERATOR])).get(OPERATOR)
        request = JudgeRequest(OPERATOR, turn_id(opening.epoch, 1), None, (intent,), why=why)
        judgement = judge(request, opening.world, RuleBook({_NAME: lambda world, _: decide(world)}), previous)
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

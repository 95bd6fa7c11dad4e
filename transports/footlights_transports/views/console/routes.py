"""Routes that the console's page asks, for operators. What a page asks again and again costs little, and nobody else's
words are in any answer.

    GET  /console/state                            what is open, what was settled, models, memory
    GET  /console/turns/{session_id}/{turn_id}     one turn: its events, its parts, its record
    GET  /console/commits                          the chain
    GET  /console/world                            a part of the world after a commit
    GET  /console/difference                       what changed between two commits
    POST /console/audits, GET /console/audits      begin an audit, and see how far it is
"""

from __future__ import annotations

import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import attrs

from footlights import wire
from footlights.authority.difference import difference
from footlights.authority.patch import to_json
from footlights.authority.record import record_to_json
from footlights.authority.world import find_in
from footlights.errors import Busy, InvalidCommand, LedgerUnavailable, TooLarge, UnknownSession, UnknownTurn
from footlights.events import ModelSelected, TokenDelta, ToolCallResult, TurnFinal, TurnInterrupted
from footlights.turn.summary_json import summary_to_json
from footlights_transports.http.errors import json_response
from footlights_transports.http.openapi import answer, query
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import path_of
from footlights_transports.views.console.recorder import subscriber_json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from footlights import StreamEvent
    from footlights.events import ErrorInfo
    from footlights.models.pool import ModelStatus
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.http.openapi import Json
    from footlights_transports.views.console.audits import Audits
    from footlights_transports.views.console.recorder import Recorder

MAX_TURNS = 200
"""Open turns in one answer."""
MAX_BEHIND = 50
"""Subscribers in one answer."""
PAGE = 100
"""Commits in one answer."""
MAX_CHANGES = 1_000

_OBJECT: Json = {"type": "object"}
_IT = {200: answer("It.", _OBJECT)}
_COUNT: Json = {"type": "integer", "minimum": 0, "maximum": 10**15, "default": 0}
_COMMIT: Json = {"type": "string"}


class ConsoleRoutes:
    """The routes of one server."""

    def __init__(self, access: SessionAccess, recorder: Recorder, audits: Audits) -> None:
        self._access = access
        self._stage = access.stage
        self._recorder = recorder
        self._audits = audits

    @Operation("GET", "/console/state", _IT, parameters=[query("after", _COUNT, "Turns that were settled before.")])
    async def console_state(self, request: Request, user: User) -> Response:
        """What is open now, and the turns that were settled since: how they ended, and where their time went."""
        self._access.check_operator(user)
        stage, now = self._stage, self._stage.statistics()
        state = {
            "epoch": stage.epoch,
            "personas": list(stage.personas),
            "rules": list(stage.rules),
            "models": [_model_json(each) for each in stage.models],
            "turns": [attrs.asdict(each) for each in stage.watch_turns(MAX_TURNS)],
            "open_turns": now.open_turns,
            "settled": self._recorder.after(_count(request, "after")),
            "count": self._recorder.count,
            "behind": self._behind(),
            "memory_bytes": _memory(),
            "limits": {
                name: getattr(now, name)
                for name in ("max_sessions", "max_open_turns", "max_running_tools", "replay_bytes")
            },
        }
        return json_response(state, headers=_FRESH)

    def _behind(self) -> list[dict[str, Any]]:
        """The subscribers that have most events waiting, or missed some."""
        found: list[dict[str, Any]] = [
            {"session_id": session.session_id, "subscriber": number, **subscriber_json(each)}
            for _, session in self._access.open_sessions()
            for number, each in enumerate(session.statistics().subscribers, 1)
        ]
        behind = [each for each in found if each["waiting"] or each["dropped"] or each["bounded_dropped"]]
        return sorted(behind, key=itemgetter("waiting"), reverse=True)[:MAX_BEHIND]

    @Operation("GET", "/console/turns/{session_id}/{turn_id}", _IT, (404, 409))
    async def console_turn(self, request: Request, user: User) -> Response:
        """One turn: its events, while it is retained, its parts, and its record. Words of others are left out."""
        self._access.check_operator(user)
        path = path_of(request)
        session_id, turn_id = path["session_id"], path["turn_id"]
        try:
            self._access.policy.check_owner(user, session_id)
            is_own = True
        except UnknownSession:
            is_own = False
        try:
            session = self._access.as_seen(session_id)
            events, summary = session.events(turn_id), session.summary(turn_id)
        except (UnknownSession, UnknownTurn):
            events, summary = (), None
        record = await self._stage.ledger.find(session_id, turn_id)
        if not events and record is None:
            raise UnknownTurn("That turn is not known here.")
        turn = {
            "own": is_own,
            "events": [wire.to_wire(each if is_own else _without_words(each)) for each in events],
            "summary": None if summary is None else summary_to_json(summary),
            "record": None if record is None else record_to_json(record),
        }
        return json_response(turn, headers=_FRESH)

    @Operation("GET", "/console/commits", _IT, (409,), parameters=[query("before", _COUNT, "A position; 0: the end.")])
    async def console_commits(self, request: Request, user: User) -> Response:
        """The chain: records in their order, with the position of the first, and how many there are."""
        self._access.check_operator(user)
        try:
            total = await self._stage.ledger.position_of(None) or 0
            end = min(_count(request, "before") or total, total)
            first = max(0, end - PAGE)
            records = await self._stage.ledger.commits_from(first, end - first) if end else ()
        except LedgerUnavailable as error:
            raise Busy("The ledger cannot be read now. Ask again.") from error
        commits = [record_to_json(each) for each in records]
        return json_response({"first": first + 1, "total": total, "commits": commits}, headers=_FRESH)

    @Operation(
        "GET",
        "/console/world",
        _IT,
        (409, 413),
        parameters=[query("at", _COMMIT, "A commit."), query("path", {"type": "string"}, "A JSON pointer.")],
    )
    async def console_world(self, request: Request, user: User) -> Response:
        """A part of the world as it was after a commit."""
        self._access.check_operator(user)
        asked = request.query_params
        part = await self._stage.world_after(asked.get("at", ""), asked.get("path", ""), user)
        return json_response({"world": part.value}, headers=_FRESH)

    @Operation(
        "GET",
        "/console/difference",
        _IT,
        (409, 413),
        parameters=[query("from", _COMMIT, "A commit."), query("to", _COMMIT, "Another; without it, now.")],
    )
    async def console_difference(self, request: Request, user: User) -> Response:
        """What changed in the world between two commits."""
        self._access.check_operator(user)
        asked = request.query_params
        before = (await self._stage.world_after(asked.get("from", ""), "", user)).value
        to = asked.get("to")
        after = (await self._stage.world_after(to, "", user)).value if to else self._stage.world_for(user)
        changes: list[dict[str, Any]] = []
        for change in difference(before, after, ""):
            if len(changes) == MAX_CHANGES:
                raise TooLarge(f"More than {MAX_CHANGES} places differ. Compare commits that are nearer.")
            was = find_in(before, change.path) if change.op in ("replace", "remove") else ()
            changes.append({**to_json(change), **({"was": was[0]} if was else {})})
        return json_response({"changes": changes}, headers=_FRESH)

    @Operation("POST", "/console/audits", {202: answer("It has begun.", _OBJECT)}, (409,))
    async def begin_audit(self, request: Request, user: User) -> Response:
        """Begin an audit of the ledger, if it is a file."""
        self._access.check_operator(user)
        self._audits.begin()
        return json_response(self._audits.progress(), 202, _FRESH)

    @Operation("GET", "/console/audits", _IT)
    async def show_audit(self, request: Request, user: User) -> Response:
        """How far the audit is, and what it found."""
        self._access.check_operator(user)
        return json_response(self._audits.progress(), headers=_FRESH)


_FRESH = {"cache-control": "no-store"}


def _count(request: Request, name: str) -> int:
    given = request.query_params.get(name, "0")
    if not given.isascii() or not given.isdigit() or len(given) > 15:
        raise InvalidCommand(f"{name}: must be a number from 0")
    return int(given)


def _model_json(model: ModelStatus) -> dict[str, Any]:
    return {
        "model_id": model.model_id,
        "remote": model.traits.remote,
        "slots": model.traits.slots,
        "memory_bytes": model.traits.memory_bytes,
        "warm_state": model.warm_state.value,
        "loading": model.loading,
        "turns": model.turns,
        "rounds_running": model.rounds_running,
        "rounds_waiting": model.rounds_waiting,
    }


def _without_words(event: StreamEvent) -> StreamEvent:
    """The event, with a dot for each character that somebody said."""
    payload = event.payload
    match payload:
        case TokenDelta(delta=text):
            payload = attrs.evolve(payload, delta="·" * len(text), ext=None)
        case TurnFinal(text=text):
            payload = attrs.evolve(payload, text="·" * len(text), ext=None)
        case ModelSelected(error=error):
            payload = attrs.evolve(payload, error=_without_message(error), ext=None)
        case TurnInterrupted(heard=heard, error=error):
            heard = None if heard is None else attrs.evolve(heard, text="·" * len(heard.text))
            payload = attrs.evolve(payload, heard=heard, error=_without_message(error), ext=None)
        case ToolCallResult(error=error):
            payload = attrs.evolve(payload, summary=None, error=_without_message(error), ext=None)
        case _:
            payload = attrs.evolve(payload, ext=None)
    return attrs.evolve(event, payload=payload)


def _without_message(error: ErrorInfo | None) -> ErrorInfo | None:
    """The code alone: a tool, or a server of models, may quote a player in its message."""
    return None if error is None else attrs.evolve(error, message="·" * len(error.message))


def _memory() -> int | None:
    """Bytes of the process in memory; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no disk is read
        return int(file.read().split()[1]) * 4096

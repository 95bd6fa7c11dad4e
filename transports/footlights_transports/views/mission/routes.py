"""Routes for callouts: speak one, and read, write and close the events of a mission's board.

    POST /api/voice/speak                                       decide about a callout, and speak it
    GET  /api/voice/audio/{recording}                           the recording of a callout
    GET  /api/mission-board/{mission_id}/events                 the events of a board, as a list or as a stream
    POST /api/mission-board/{mission_id}/events                 put an event on the board, and call it out
    POST /api/mission-board/{mission_id}/events/{event_id}/ack  close an event
    POST /api/mission-board/{mission_id}/approvals              answer what waits for an approval in a session

Missions belong to their user, and their full names begin with the user's; a user may leave that out. Every answer has
the text of the callout, whatever happens to its voice.
"""

from __future__ import annotations

import re
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

import orjson
from starlette.responses import Response

from footlights.errors import InvalidCommand
from footlights.params import TurnParams
from footlights_transports.http.errors import Refused, json_response
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import body_of, json_body_of, path_of
from footlights_transports.http.sse import KEEP_ALIVE, SseResponse
from footlights_transports.views.mission.announcer import AUDIO_PATH
from footlights_transports.views.mission.board import MAX_EVENTS, EventExists
from footlights_transports.views.mission.openapi import (
    ADDED,
    ANSWERED,
    BOARD,
    CLOSED,
    DECIDED,
    HEARD,
    NAMES,
    READING,
    REFUSALS,
)
from footlights_transports.views.mission.pure.payload import own_name
from footlights_transports.views.mission.pure.requests import (
    LISTENER_FIELDS,
    read_answers,
    read_callout,
    read_closing,
    read_id,
    read_listener,
)
from footlights_transports.views.mission.pure.terms import LimitScope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from footlights.events import JsonValue
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.mission.announcer import Announcement
    from footlights_transports.views.mission.board import BoardEvent, MissionBoard
    from footlights_transports.views.mission.missions import Missions
    from footlights_transports.views.mission.pure.payload import Context

_EVENTS = "/api/mission-board/{mission_id}/events"
_APPROVALS = "/api/mission-board/{mission_id}/approvals"
_HEADERS = {"cache-control": "no-store"}
_MAX_DIGITS = 15
_LAST_PLACE = 10**_MAX_DIGITS - 1
_LAST_ID = re.compile(r"([0-9]{1,9})\.([0-9]{1,15})")

_SENTENCES: Mapping[LimitScope | None, str] = {
    LimitScope.MISSION: "The mission has spoken enough for a minute.",
    LimitScope.MISSIONS: "The tenant speaks in too many missions at once.",
    LimitScope.TENANT: "The tenant has spoken enough for a day.",
    LimitScope.USER: "You speak for too many tenants today.",
    LimitScope.SERVER: "There is no room for another tenant today.",
    None: "The voice cannot speak now.",
}


class MissionRoutes:
    """The six routes of one server."""

    def __init__(self, access: SessionAccess, missions: Missions) -> None:
        self._access = access
        self._missions = missions

    @Operation("POST", "/api/voice/speak", DECIDED, (409, 415), body="Callout")
    async def speak(self, request: Request, user: User) -> Response:
        """Decide about a callout, and speak it if it may be. The answer holds its text in any case."""
        fields = json_body_of(request)
        if "text_payload" in fields:
            raise InvalidCommand("The callout has a field that is not known.")
        wanted = read_callout(fields, self._missions.new_id("speak"))
        announcement = await self._missions.speak(user, wanted)
        return _answer(announcement, wanted.dry_run)

    @Operation("GET", f"{AUDIO_PATH}/{{recording}}", HEARD, names=NAMES)
    async def fetch_audio(self, request: Request, user: User) -> Response:
        """The recording of a callout of yours, until it expires."""
        sound = await self._missions.recording(user, path_of(request)["recording"])
        if sound is None:
            return _unknown("unknown_recording", "You have no such recording, or it has expired.")
        return Response(sound, headers=_HEADERS, media_type="audio/wav")

    @Operation("GET", _EVENTS, BOARD, (409,), parameters=READING, names=NAMES)
    async def read_board(self, request: Request, user: User) -> Response:
        """What was called out in a mission: a list, or Server-Sent Events if you accept them. If the mission is one of
        your open sessions, its turns are called out from now on.
        """
        mission_id = _mission_id(request, user)
        context = _listener(request)
        epoch = self._access.stage.epoch
        after = _number("after", request.query_params.get("after"), 0, _LAST_PLACE, 0)
        after = _place(request.headers.get("last-event-id"), epoch, after)
        limit = _number("limit", request.query_params.get("limit"), 1, MAX_EVENTS, MAX_EVENTS)
        if "text/event-stream" in request.headers.get("accept", ""):
            board = self._missions.read(user, mission_id, context)
            attend = partial(self._missions.attend, user, mission_id, context)
            return BoardStream(board, after, epoch, self._access.policy.limits.keep_alive, attend)
        found = self._missions.look(user, mission_id, context)
        shown = [] if found is None else found.after(after)[-limit:]
        listed: list[JsonValue] = [event.document for event in shown]
        return json_response({"mission_id": mission_id, "events": listed}, headers=_HEADERS)

    @Operation("POST", _EVENTS, ADDED, (409, 415), body="BoardCallout", names=NAMES)
    async def add_event(self, request: Request, user: User) -> Response:
        """Call an event out, and put it on the board."""
        mission_id = _mission_id(request, user)
        fields = json_body_of(request)
        for name in ("mission_id", "dry_run"):
            if name in fields:
                raise InvalidCommand(f"{name}: does not belong here")
        new_id = self._missions.new_id("event", self._missions.find(user, mission_id))
        wanted = read_callout({**fields, "mission_id": mission_id}, new_id)
        try:
            event = await self._missions.add(user, wanted)
        except EventExists as error:
            raise Refused(409, error) from None
        return json_response({"event": event.document, **_decided(event.announcement)}, 201, _HEADERS)

    @Operation("POST", _APPROVALS, ANSWERED, (404, 409, 415, 422), body="BoardAnswer", names=NAMES)
    async def answer_approvals(self, request: Request, user: User) -> Response:
        """Answer what waits for an approval in a mission's session, by a new turn. Its callouts tell the outcome."""
        mission_id = _mission_id(request, user)
        answers = read_answers(json_body_of(request))
        said = "Yes." if all(answers.values()) else "No."
        turn_id = self._access.begin_turn(user, mission_id, said, TurnParams(approvals=answers))
        return json_response({"mission_id": mission_id, "turn_id": turn_id}, 202, _HEADERS)

    @Operation(
        "POST", f"{_EVENTS}/{{event_id}}/ack", CLOSED, (409, 415), body="CloseEvent", body_required=False, names=NAMES
    )
    async def close_event(self, request: Request, user: User) -> Response:
        """Close an event: its debrief is called out and put on the board. Again changes nothing."""
        mission_id, event_id = _mission_id(request, user), read_id("event_id", path_of(request)["event_id"])
        closing = read_closing(json_body_of(request) if body_of(request) else {})
        board = self._missions.find(user, mission_id)
        trigger = None if board is None else board.find(event_id)
        if board is None or trigger is None:
            return _unknown("unknown_event", "There is no such event on the board, or it is forgotten.")
        debrief = await self._missions.acknowledge(user, board, trigger, closing)
        answer = {**(trigger.acknowledgement or {}), **_decided(debrief.announcement)}
        return json_response({"mission_id": mission_id, "event_id": event_id, **answer}, headers=_HEADERS)


class BoardStream(SseResponse):
    """The events of a board after a place, until the server shuts down or the client disconnects.

        id: 1.4
        event: mission_event
        data: {"seq":4,...}

    The `id` is the epoch of the ledger and the place of the event: places begin anew with each start of a server.
    """

    def __init__(
        self, board: MissionBoard, after: int, epoch: int, keep_alive: float, attend: Callable[[], None]
    ) -> None:
        super().__init__(keep_alive)
        self._board = board
        self._after = after if after <= board.last_seq else 0  # a place of an earlier board
        self._epoch = epoch
        self._attend = attend

    def opening(self) -> bytes:
        return KEEP_ALIVE

    async def next_text(self) -> bytes | None:
        if not self._board.is_over:  # a new board of that name has other readers
            self._attend()
        fresh = self._board.after(self._after)
        if fresh:
            self._after = fresh[-1].seq
        elif self._board.is_over:
            return None
        else:
            await self._board.wait_beyond(self._after)
        return b"".join(self._sse(event) for event in fresh)

    def _sse(self, event: BoardEvent) -> bytes:
        place = (self._epoch, event.seq, orjson.dumps(event.document))
        return b"id: %d.%d\nevent: mission_event\ndata: %b\n\n" % place


# -- answers


def _unknown(code: str, message: str) -> Response:
    return json_response({"error": {"code": code, "message": message}}, 404)


def _decided(announcement: Announcement) -> dict[str, JsonValue]:
    payload = announcement.payload
    return {
        "speak": payload.voice is not None,
        "suppression": payload.suppression.document,
        "payload": payload.document,
        "policy_ts_ms": announcement.at_ms,
        "policy_seq": announcement.policy_seq,
        "voice_failed_ms": announcement.voice_failed_ms,
        "voice_dropped_ms": announcement.voice_dropped_ms,
        "ended_seq": announcement.ended_seq,
        "audio_url": announcement.audio_url,
    }


def _answer(announcement: Announcement, dry_run: bool) -> Response:
    """The decision, with an error status if a limit or the voice suppressed the callout."""
    body, suppression = _decided(announcement), announcement.payload.suppression
    reason = suppression.reason
    if dry_run or reason is None or reason not in REFUSALS:
        return json_response(body, headers=_HEADERS)
    error: dict[str, JsonValue] = {"code": reason.value, "message": _SENTENCES[suppression.scope]}
    if suppression.scope is not None:
        status = 429
        error["scope"] = suppression.scope.value
    else:
        status = 502 if announcement.voice_failed else 503
    headers = {"retry-after": str(max(1, ceil(suppression.cooldown_ms / 1_000)))}
    return json_response({**body, "error": error}, status, {**_HEADERS, **headers})


# -- reading requests


def _mission_id(request: Request, user: User) -> str:
    return own_name(user.name, read_id("mission_id", path_of(request)["mission_id"]))


def _listener(request: Request) -> Context | None:
    """The listener, if the query describes one."""
    query = request.query_params
    given: dict[str, object] = {name: query[name] for name in LISTENER_FIELDS if name in query}
    if given.get("context_tier") in ("0", "1"):
        given["context_tier"] = int(query["context_tier"])
    return read_listener(given) if given else None


def _place(last_id: str | None, epoch: int, default: int) -> int:
    """The place after which to go on; the beginning, if the id is of another epoch."""
    if last_id is None:
        return default
    found = _LAST_ID.fullmatch(last_id)
    if found is None:
        raise InvalidCommand("Last-Event-ID: is not the id of an event")
    return int(found[2]) if int(found[1]) == epoch else 0


def _number(name: str, given: str | None, minimum: int, maximum: int, default: int) -> int:
    if given is None:
        return default
    if given.isascii() and given.isdigit() and len(given) <= _MAX_DIGITS and minimum <= int(given) <= maximum:
        return int(given)
    raise InvalidCommand(f"{name}: must be a number from {minimum} to {maximum}")

"""An entry of a recording: what was asked for, when it was decided, and how its voice ended.

It is a request as others make it (`read_callout`), or with `closes` the closing of an event that stands before it, on
the same board (`read_closing`). Besides it may have:

- `user`: whose it was, if users were told apart.
- `board`: the mission on whose board it is. Only that can be closed: another request may have the same id.
- `policy_seq`: its place among all that was decided and all that ended.
- `voice_failed_ms` or `voice_dropped_ms`: when its voice failed, or was dropped untried.
- `ended_seq`: the place of that, in the same order.
- `voice_fails`: its voice failed at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import evolve, frozen

from footlights.errors import InvalidCommand
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.views.mission.pure.closing import debrief_of, read_closing
from footlights_transports.views.mission.pure.policy import voice_dropped, voice_failed
from footlights_transports.views.mission.pure.requests import CalloutRequest, read_callout, read_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights_transports.views.mission.pure.history import History
    from footlights_transports.views.mission.pure.payload import MissionEvent
    from footlights_transports.views.mission.pure.policy import Decision

    Ending: TypeAlias = Callable[[Decision, History, int], Decision]

_ENDINGS: Mapping[str, Ending] = {"voice_failed_ms": voice_failed, "voice_dropped_ms": voice_dropped}


@frozen(kw_only=True)
class Entry:
    """What an entry says."""

    request: CalloutRequest
    seq: int | None
    """Its place, if it has one."""
    ending: Ending | None
    """How its voice ended silently, if it was spoken."""
    ended_ms: int | None
    """When that was; None is at once."""
    ended_seq: int | None


class Reader:
    """Reads the entries of one recording, one after another."""

    def __init__(self) -> None:
        self._number = 0
        self._events: dict[tuple[str | None, str, str], MissionEvent] = {}
        """What is on a board, by user, mission and id: the last of each."""

    def read(self, fields: Mapping[str, object]) -> Entry:
        """Raises `InvalidCommand`."""
        asked = dict(fields)
        user = asked.pop("user", None)
        user_id = None if user is None else read_id("user", user)
        seq, ended_seq = (_natural(name, asked.pop(name, None)) for name in ("policy_seq", "ended_seq"))
        fails = asked.pop("voice_fails", None)
        is_failing = fails is not None and cast("bool", _read("voice_fails", fails, values.flag))
        ends = [(_natural(name, asked.pop(name, None)), ending) for name, ending in _ENDINGS.items()]
        if all(at is not None for at, _ in ends):
            raise InvalidCommand("voice_dropped_ms: a voice that failed was not dropped")
        ended_ms, ending = next(((at, ending) for at, ending in ends if at is not None), (None, None))
        if (ended_seq is None) is not (seq is None or ended_ms is None):
            raise InvalidCommand("ended_seq: is there if and only if there is a policy_seq and the voice ended")
        if seq is not None and ended_seq is not None and ended_seq <= seq:
            raise InvalidCommand("ended_seq: must be greater than policy_seq")
        request = self._request(asked, user_id)
        return Entry(
            request=evolve(request, context=request.context.of_user(user_id)),
            seq=seq,
            ending=voice_failed if ending is None and is_failing else ending,
            ended_ms=ended_ms,
            ended_seq=ended_seq,
        )

    def _request(self, asked: dict[str, object], user_id: str | None) -> CalloutRequest:
        event_id = f"event-{self._number + 1:06d}"
        board, closes = asked.pop("board", None), asked.pop("closes", None)
        if closes is not None:
            request = self._closing(asked, closes, user_id, read_id("board", board), event_id)
        elif board is None:
            request = read_callout(asked, event_id)
        elif "mission_id" in asked:
            raise InvalidCommand("mission_id: is there beside board")
        else:
            request = read_callout({**asked, "mission_id": read_id("board", board)}, event_id)
        self._number += 1
        if board is not None and not request.dry_run:
            self._events[user_id, request.event.mission_id, request.event.event_id] = request.event
        return request

    def _closing(
        self, asked: dict[str, object], closes: object, user_id: str | None, mission_id: str, default_id: str
    ) -> CalloutRequest:
        event_id = read_id("event_id", asked.pop("event_id", None) or default_id)
        closing = read_closing(asked)
        trigger = self._events.get((user_id, mission_id, read_id("closes", closes)))
        if trigger is None:
            raise InvalidCommand("closes: no such event of that board stands before it")
        debrief = debrief_of(trigger, closing, event_id)
        return CalloutRequest(event=debrief, context=closing.context, policy_ts_ms=closing.policy_ts_ms)


def _natural(name: str, value: object) -> int | None:
    return None if value is None else cast("int", _read(name, value, values.natural))


def _read(name: str, value: object, reader: values.Reader) -> object:
    try:
        return reader(value, None)
    except Unfit as error:
        raise InvalidCommand(f"{name}: {error}") from None

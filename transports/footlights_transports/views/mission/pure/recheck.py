"""Recheck of recorded callouts: applies the policy again. The same recording gives the same decisions in any process.

An entry of a recording is a request (`read_callout`) or, with `closes`, the closing of an earlier event on the same
board (`read_closing`). It may also have:

- `user`: the user who sent it, if the server has users.
- `board`: the mission to whose board it was sent. Only events of a board can be closed.
- `policy_seq`: its place among all decisions and all silent ends of voices; by default the next.
- `voice_failed_ms` or `voice_dropped_ms`: the time when its voice failed, or was dropped, and
  `ended_seq`: the place of that end in the same order.
- `voice_fails`: its voice failed at once.

`policy_ts_ms` is the time of the decision; the default is that of the entry before.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from attrs import define, frozen

from footlights.errors import InvalidCommand
from footlights.wire import values
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.payload import own_name
from footlights_transports.views.mission.pure.policy import decide, voice_dropped, voice_failed
from footlights_transports.views.mission.pure.requests import (
    CalloutRequest,
    debrief_of,
    read_callout,
    read_closing,
    read_id,
    read_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from footlights_transports.views.mission.pure.payload import MissionEvent
    from footlights_transports.views.mission.pure.policy import Decision

    End: TypeAlias = Callable[[Decision, History, int], Decision]


def replay(entries: Iterable[Mapping[str, object]], history: History | None = None) -> Iterator[Decision]:
    """The decisions, one for each entry. Raises `InvalidCommand` at an entry that is invalid."""
    recording = _Recording(history or History())
    refusal: InvalidCommand | None = None
    try:
        for fields in entries:
            recording.take(fields)
            yield from recording.settled()
    except InvalidCommand as error:  # after the decisions before it
        refusal = error
    recording.end_voices()
    yield from recording.settled()
    if refusal is not None:
        raise refusal


@frozen
class _Places:
    """Where an entry was decided, and how, when and where its voice ended silently."""

    seq: int | None
    end: End | None
    ended_ms: int | None
    """None is at once."""
    ended_seq: int | None


@define
class _Decided:
    """An entry after its decision."""

    decision: Decision
    end: End | None
    """The end of its voice that is still to come."""
    end_ms: int
    end_place: int


class _Recording:
    """The part of a recording that was replayed so far."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._count = 0
        self._time_ms = 0
        self._place = -1
        self._decided: deque[_Decided] = deque()
        """The entries that `settled` has not returned yet."""
        self._events: dict[tuple[str, str], MissionEvent] = {}
        """The events of all boards by mission and id."""

    def take(self, fields: Mapping[str, object]) -> None:
        """Decide about an entry, after the ends that came before it. Raises `InvalidCommand`."""
        asked = dict(fields)
        user = asked.pop("user", None)
        user_id = None if user is None else read_id("user", user)
        places = _read_places(asked)
        request = self._request(asked, user_id)
        place = self._move_on(places)
        if request.policy_ts_ms is not None:
            self._time_ms = request.policy_ts_ms
        self.end_voices(place)
        decision = decide(request.event, request.context, self._history, self._time_ms)
        if not request.dry_run:
            self._history = decision.history
        end = places.end if decision.speak and not request.dry_run else None
        end_ms = self._time_ms if places.ended_ms is None else max(places.ended_ms, self._time_ms)
        end_place = place if places.ended_seq is None else places.ended_seq
        self._decided.append(_Decided(decision, end, end_ms, end_place))
        self.end_voices(place)

    def settled(self) -> Iterator[Decision]:
        """The next decisions that no later end can change."""
        while self._decided and self._decided[0].end is None:
            yield self._decided.popleft().decision

    def end_voices(self, place: int | None = None) -> None:
        """End the voices whose end stands up to this place, or all, in their order."""
        due = [each for each in self._decided if each.end and (place is None or each.end_place <= place)]
        for each in sorted(due, key=lambda decided: decided.end_place):
            assert each.end is not None, "only voices with an end are due"
            each.decision = each.end(each.decision, self._history, each.end_ms)
            self._history = each.decision.history
            each.end = None

    def _move_on(self, places: _Places) -> int:
        """The place of an entry."""
        place = self._place + 1 if places.seq is None else places.seq
        if place <= self._place:
            raise InvalidCommand("policy_seq: must be greater than that of the entry before")
        if places.ended_seq is not None and places.ended_seq <= place:
            raise InvalidCommand("ended_seq: must be greater than policy_seq")
        self._place = place
        return place

    def _request(self, asked: dict[str, object], user_id: str | None) -> CalloutRequest:
        self._count += 1
        event_id = f"event-{self._count:06d}"
        board, closes = asked.pop("board", None), asked.pop("closes", None)
        if closes is not None:
            mission_id = own_name(user_id, read_id("board", board))
            request = self._closing(asked, closes, mission_id, event_id)
        elif board is None:
            request = read_callout(asked, event_id)
        elif "mission_id" in asked:
            raise InvalidCommand("mission_id: is there beside board")
        else:
            request = read_callout({**asked, "mission_id": read_id("board", board)}, event_id)
        request = request.of_user(user_id)
        if board is not None and not request.dry_run:
            self._events[request.event.mission_id, request.event.event_id] = request.event
        return request

    def _closing(self, asked: dict[str, object], closes: object, mission_id: str, default_id: str) -> CalloutRequest:
        event_id = read_id("event_id", asked.pop("event_id", None) or default_id)
        closing = read_closing(asked)
        trigger = self._events.get((mission_id, read_id("closes", closes)))
        if trigger is None:
            raise InvalidCommand("closes: no such event of that board stands before it")
        debrief = debrief_of(trigger, closing, event_id)
        return CalloutRequest(event=debrief, context=closing.context, policy_ts_ms=closing.policy_ts_ms)


def _read_places(asked: dict[str, object]) -> _Places:
    """Take the fields of a recording out of an entry. Raises `InvalidCommand`."""
    seq, ended_seq = _natural(asked, "policy_seq"), _natural(asked, "ended_seq")
    fails = asked.pop("voice_fails", None)
    end: End | None = voice_failed if fails is not None and read_value("voice_fails", fails, values.flag) else None
    failed_ms, dropped_ms = _natural(asked, "voice_failed_ms"), _natural(asked, "voice_dropped_ms")
    if failed_ms is not None and dropped_ms is not None:
        raise InvalidCommand("voice_dropped_ms: a voice that failed was not dropped")
    ended_ms = dropped_ms if failed_ms is None else failed_ms
    if (ended_seq is None) is not (ended_ms is None):
        raise InvalidCommand("ended_seq: is there if and only if the voice ended")
    if ended_ms is not None:
        end = voice_dropped if failed_ms is None else voice_failed
    return _Places(seq, end, ended_ms, ended_seq)


def _natural(asked: dict[str, object], name: str) -> int | None:
    value = asked.pop(name, None)
    return None if value is None else read_value(name, value, values.natural)

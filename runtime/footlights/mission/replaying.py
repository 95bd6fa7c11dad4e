"""A recorded sequence of callouts, decided again. The same sequence gives the same decisions, in any process.

Each entry is a request as others make it (`read_callout`), with these differences:

- `policy_ts_ms` is the time it is decided at; without it, that of the entry before. Entries stand in the order of it.
- `voice_failed_ms` is when its voice failed, `voice_dropped_ms` when it was dropped untried, if it had one. What ended
  at the time of a decision ended before it.
- `voice_fails` says that its voice failed at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast

from footlights.errors import InvalidCommand
from footlights.mission.history import History
from footlights.mission.policy import decide, voice_dropped, voice_failed
from footlights.mission.requests import read_callout
from footlights.wire import values
from footlights.wire.values import Unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from footlights.mission.policy import Decision

    Ending: TypeAlias = Callable[[Decision, History, int], Decision]

_ENDINGS: Mapping[str, Ending] = {"voice_failed_ms": voice_failed, "voice_dropped_ms": voice_dropped}


def replay(entries: Iterable[Mapping[str, object]], history: History | None = None) -> Iterator[Decision]:
    """The decisions, one for each entry. Raises `InvalidCommand` at an entry that makes no sense."""
    replaying = _Replaying(history or History())
    try:
        for entry in entries:
            replaying.take(entry)
            yield from replaying.ended()
    except InvalidCommand:
        replaying.end_all()
        yield from replaying.ended()
        raise
    replaying.end_all()
    yield from replaying.ended()


class _Entry:
    """An entry that is decided, and how its voice will end."""

    def __init__(self, decision: Decision, ending: Ending | None, end_ms: int) -> None:
        self.decision = decision
        self.ending = ending
        self.end_ms = end_ms


class _Replaying:
    """The sequence so far."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._time_ms = 0
        self._number = 0
        self._entries: deque[_Entry] = deque()
        """Those that were not handed out."""

    def take(self, fields: Mapping[str, object]) -> None:
        """Decide about an entry, after what ended before it."""
        recorded = dict(fields)
        fails = _flag("voice_fails", recorded.pop("voice_fails", None))
        ends = [(_time(name, recorded.pop(name, None)), ending) for name, ending in _ENDINGS.items()]
        request = read_callout(recorded, f"event-{self._number + 1:06d}")
        self._number += 1
        self._time_ms = self._time_ms if request.policy_ts_ms is None else request.policy_ts_ms
        self._end_until(self._time_ms)
        decision = decide(request.event, request.context, self._history, self._time_ms)
        end_ms, ending = next(((at, ending) for at, ending in ends if at is not None), (0, None))
        if fails and ending is None:
            end_ms, ending = self._time_ms, voice_failed
        if request.dry_run or not decision.speak:
            ending = None
        if not request.dry_run:
            self._history = decision.history
        self._entries.append(_Entry(decision, ending, max(end_ms, self._time_ms)))
        if fails:
            self._end_until(self._time_ms)

    def ended(self) -> Iterator[Decision]:
        """The decisions that nothing will change any more, as far as none before them is missing."""
        while self._entries and self._entries[0].ending is None:
            yield self._entries.popleft().decision

    def end_all(self) -> None:
        self._end_until(None)

    def _end_until(self, time_ms: int | None) -> None:
        """End the voices whose time has come, in the order of their times."""
        due = [each for each in self._entries if each.ending and (time_ms is None or each.end_ms <= time_ms)]
        for each in sorted(due, key=lambda entry: entry.end_ms):
            assert each.ending is not None, "it was due"
            each.decision = each.ending(each.decision, self._history, each.end_ms)
            self._history = each.decision.history
            each.ending = None


def _flag(name: str, value: object) -> bool:
    return value is not None and cast("bool", _read(name, value, values.flag))


def _time(name: str, value: object) -> int | None:
    return None if value is None else cast("int", _read(name, value, values.natural))


def _read(name: str, value: object, reader: values.Reader) -> object:
    try:
        return reader(value, None)
    except Unfit as error:
        raise InvalidCommand(f"{name}: {error}") from None

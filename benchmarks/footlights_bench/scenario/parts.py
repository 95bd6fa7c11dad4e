"""Parts of a turn's wait, from the stamps of the server's events.

Between two events of a turn the server does what the first of them began: after `turn_accepted` the turn waits in a
queue, after `model_ready` the model thinks, while a tool is open the tool runs, after a piece of text the next is
spoken, after the end the commit is judged and written. So the time from `turn_accepted` to `commit_final` falls into
parts without a gap. What comes before and after that is not stamped: the network and the loop of the server are
measured by probes, and the delivery by how much later than the quickest an event comes. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from footlights.events import EventType
from footlights_bench.scenario.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights.events import StreamEvent

FROM_LEDGER = 9_007_199_254_740_991
"""The stamp of an event whose own clock is gone."""
_SHARE_OF_LOOP = 0.5
"""A loop that is blocked makes every other part longer: it is named first if it grew by this share of the most."""
_AROUND = 25
"""Probes before and after one among which the quickest stands for the network."""
_TAIL = 95
_LEAST_GROWTH_MS = 2.0
"""Stamps are whole milliseconds, so less than this is no growth."""


class Part(StrEnum):
    """Where the time of a turn goes."""

    NETWORK = "network"
    """To the server and back: the quickest of the probes around it."""
    LOOP = "loop"
    """The server's event loop, which makes everything wait: how much longer a probe took than the quickest."""
    QUEUE = "queue"
    """From the acceptance until a model is selected: earlier turns of the session, a full pool."""
    MODEL = "model"
    """Loading, and until the first piece of text or tool call of each round."""
    TOOL = "tool"
    """While at least one tool runs."""
    SPEECH = "speech"
    """From the first piece of text of a round to its end."""
    COMMIT = "commit"
    """From the end of the turn until its commit: rules, and the ledger."""
    DELIVERY = "delivery"
    """From the stamp of an event until the player has it, less the quickest: server, network and harness."""


_AFTER = {
    EventType.TURN_ACCEPTED: Part.QUEUE,
    EventType.MODEL_SELECTED: Part.MODEL,
    EventType.MODEL_LOADING: Part.MODEL,
    EventType.MODEL_READY: Part.MODEL,
    EventType.TOKEN_DELTA: Part.SPEECH,
    EventType.TOOL_CALL_STARTED: Part.TOOL,
    EventType.TOOL_CALL_RESULT: Part.MODEL,
    EventType.TURN_FINAL: Part.COMMIT,
    EventType.TURN_INTERRUPTED: Part.COMMIT,
}
STAMPED = tuple(dict.fromkeys(_AFTER.values()))


class Timeline:
    """The parts of one turn, in milliseconds of the server's clock."""

    __slots__ = ("_at", "_open_tools", "_part", "ms")

    def __init__(self) -> None:
        self.ms: dict[Part, int] = {}
        self._part: Part | None = None
        self._at = 0
        self._open_tools = 0

    def see(self, event: StreamEvent) -> None:
        if event.mono_ts_ms == FROM_LEDGER:
            self._part = None
            return
        if self._part is not None:
            self.ms[self._part] = self.ms.get(self._part, 0) + event.mono_ts_ms - self._at
        self._at = event.mono_ts_ms
        if event.event_type is EventType.TOOL_CALL_STARTED:
            self._open_tools += 1
        elif event.event_type is EventType.TOOL_CALL_RESULT:
            self._open_tools -= 1
        self._part = Part.TOOL if self._open_tools else _AFTER.get(event.event_type)


class Delays:
    """How much later than the quickest events come, by the minute: clocks of two machines differ, and drift."""

    def __init__(self) -> None:
        self._counts: dict[int, dict[int, int]] = {}

    def note(self, arrived: float, stamp_ms: int) -> None:
        if stamp_ms != FROM_LEDGER:
            late = int(arrived * 1e3) - stamp_ms
            minute = self._counts.setdefault(int(arrived) // 60, {})
            minute[late] = minute.get(late, 0) + 1

    def histogram(self) -> Histogram:
        found = Histogram()
        for minute in self._counts.values():
            quickest = min(minute)
            for late, number in minute.items():
                found.record((late - quickest) / 1e3, number)
        return found


def of_probes(round_trips: Sequence[float]) -> dict[Part, Histogram]:
    """The network and the loop, from round trips that only these two can delay, in order."""
    found = {Part.NETWORK: Histogram(), Part.LOOP: Histogram()}
    for place, seconds in enumerate(round_trips):
        quickest = min(round_trips[max(0, place - _AROUND) : place + _AROUND + 1])
        found[Part.NETWORK].record(quickest)
        found[Part.LOOP].record(seconds - quickest)
    return found


def grown(before: Mapping[Part, Histogram], after: Mapping[Part, Histogram]) -> tuple[Part, float] | None:
    """The part whose median grew the most, or else whose p95 did, and by how many milliseconds; None if none did."""

    def growth(part: Part, percent: float) -> float:
        if part not in before or part not in after:
            return 0.0
        return (after[part].percentile(percent) - before[part].percentile(percent)) * 1e3

    for percent in (50, _TAIL):
        most = max(Part, key=lambda part: growth(part, percent))
        by = growth(most, percent)
        if by >= _LEAST_GROWTH_MS:
            # The loop is blocked only at times, so it shows in the tail; it makes everything longer but the network.
            blocked = growth(Part.LOOP, _TAIL)
            is_loop = most is not Part.NETWORK and blocked >= _SHARE_OF_LOOP * by
            return (Part.LOOP, blocked) if is_loop else (most, by)
    return None

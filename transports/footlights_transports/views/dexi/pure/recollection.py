"""Recollection: the log of a run that only the ledger remembers. It has the mode, what became of the run, and no words.

The id of a run is made from its session and turn, so the ledger can find it after a restart. The events of a
recollection have ids of their own, greater than any of the run itself: a client that has a part of the run gets only
the end, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from footlights.authority.record import commit_final
from footlights.modes import ExecutionPolicy, Intent, IntentKind, conclude
from footlights.params import Mode
from footlights.stream.catch_up import rebuilt_events
from footlights_transports.views.dexi.pure import templates as say
from footlights_transports.views.dexi.pure.events import Done, OutputDelta, PlanNarrative, Summary
from footlights_transports.views.dexi.pure.narration import Narrator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.authority import CommitRecord
    from footlights.redaction.redactor import Redactor
    from footlights_transports.views.dexi.pure.events import DexiEvent

FIRST_RECALLED = 999_999_000
"""The id of the first event of a recollection."""
END_EVENTS = 2
"""What a client gets that has a part of the run: the summary, or the last output of a chat, and the end."""


def run_id_of(session_id: str, turn_id: str) -> str:
    """The id of the run that narrates this turn: `t1-000001.tavern`."""
    return f"{turn_id}.{session_id}"


def parts_of(run_id: str) -> tuple[str, str]:
    """The ids of the session and of the turn in the id of a run."""
    turn_id, _, session_id = run_id.partition(".")
    return session_id, turn_id


class Recollection(Narrator):
    """The narration of a turn from its record, which must have a mode decision."""

    def __init__(self, run_id: str, record: CommitRecord, redactor: Redactor | None = None) -> None:
        assert record.mode_decision is not None
        is_execution = record.mode_decision.get("mode") == Mode.EXECUTION
        policy = ExecutionPolicy.FORCE if is_execution else ExecutionPolicy.DENY
        decision = conclude(Intent(kind=IntentKind.CONVERSATIONAL), policy)  # only the mode of it is told
        super().__init__(run_id, decision, redactor=redactor, tools={})
        self._record = record

    def begin(self, now: float) -> list[DexiEvent]:
        """The whole log."""
        return [each for event in self._recalled(now) for each in self._worded(event)]

    def _recalled(self, now: float) -> Iterator[DexiEvent]:
        record = self._record
        yield from super().begin(now)
        commit = commit_final(record)
        for event in rebuilt_events(record.session_id, record.turn_id, commit, after=-1, terminal_seen=False):
            yield from super().take(event, now)

    def _worded(self, event: DexiEvent) -> Iterator[DexiEvent]:
        what = say.recorded(len(self._record.intents), len(self._record.changes), len(self._record.artifacts))
        if isinstance(event, PlanNarrative):
            event = evolve(event, content=say.RECALLED)
        elif isinstance(event, Summary):
            event = evolve(event, content=f"{event.content} {what}")
        elif isinstance(event, Done) and not self.is_execution:
            yield OutputDelta(f"({say.verdict(event.outcome)} {what})", event.timestamp)
        yield event

    @staticmethod
    def write(place: int, event: DexiEvent) -> bytes:
        return Narrator.write(FIRST_RECALLED + place, event)

"""The laws of a Dexi stream, and a checker for any recording of one.

A recording is what one client got, in the order it got it: one run after another. The checker is a second opinion about
the dialect, so it knows nothing of how its streams are made. It never raises because of what it is given to judge.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.errors import InvalidEvent
from footlights.laws.recording import parse_fault, parse_line
from footlights_transports.views.dexi.pure.events import ModeEvent
from footlights_transports.views.dexi.pure.law_run import Run
from footlights_transports.views.dexi.pure.schema import check_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEXI_LAWS: Mapping[str, str] = MappingProxyType(
    {
        "json": "Each line of a recording is one JSON value in which no object names a field twice.",
        "schema": "Every event has every field of its type, each of its kind, and no other.",
        "mode_first": "The first event of a run is mode.",
        "mode_once": "A run has one mode, which never changes.",
        "run_id": "Every event that names a run names the one that its mode named.",
        "time_order": "Timestamps never go back.",
        "chat_only": "A run in chat mode has only output_delta between mode and done.",
        "plan_once": "A run in execution mode has exactly one plan_narrative.",
        "plan_first": "plan_narrative comes before any step, tool or output.",
        "step_unique": "A step_id is used for one step in a run.",
        "step_known": "Only a step that is open ends.",
        "step_closed": "Every step that began has ended before the summary and before done.",
        "step_some": "A run in execution mode has at least one step.",
        "in_step": "Every narration, tool and artifact event and every heartbeat names an open step.",
        "tool_alone": "A step has at most one tool call.",
        "tool_partner": "Each tool_result belongs to a tool_start of the same step and the same tool.",
        "tool_result": "Each tool_start has its tool_result before its step ends.",
        "narration_action": "Each narration_delta comes right after what it tells of, in the same step.",
        "output_outside": "output_delta never comes while a step is open.",
        "heartbeat_quiet": "A heartbeat comes only after 2 seconds in which nothing was sent.",
        "heartbeat_pace": "While a step is open, something is sent at least every 5 seconds.",
        "heartbeat_step": "A heartbeat names the step that began last of those that are open.",
        "summary_last": "There is at most one summary, and only done follows it.",
        "done_last": "done comes once, and nothing of the run follows it.",
    }
)
"""The name of each law, and the law."""


@frozen
class DexiViolation:
    """One broken law. `event` counts the events of the recording from 1; None if it is about what never came."""

    law: str
    run_id: str | None
    event: int | None
    sentence: str

    def __str__(self) -> str:
        run = self.run_id if self.run_id is None or self.run_id.isprintable() else ascii(self.run_id)
        parts = (None if run is None else f"run {run}", None if self.event is None else f"event {self.event}")
        where = " ".join(part for part in parts if part is not None)
        return f"{self.law}: {where}: {self.sentence}" if where else f"{self.law}: {self.sentence}"


def check_dexi(events: Iterable[object], *, complete: bool = True, replayed: bool = False) -> list[DexiViolation]:
    """Every violation in what one client got, in the order it got it. An empty list is a lawful recording.

    With `complete=False` the recording was cut short: its last run may be unfinished. With `replayed=True` some of it
    was sent later than it was made, without its heartbeats: `heartbeat_pace` is not judged.
    """
    checker = _Checker(replayed=replayed)
    for event in events:
        checker.see(event)
    if complete:
        checker.close()
    return checker.violations


def check_dexi_jsonl(
    lines: Iterable[str | bytes], *, complete: bool = True, replayed: bool = False
) -> list[DexiViolation]:
    """`check_dexi`, for a recording that has one event a line. A line that cannot be read is a violation too."""
    checker = _Checker(replayed=replayed)
    for line in lines:
        checker.see_line(line)
    if complete:
        checker.close()
    return checker.violations


class _Checker:
    def __init__(self, *, replayed: bool) -> None:
        self.violations: list[DexiViolation] = []
        self._replayed = replayed
        self._number = 0
        self._run = Run(self._report)

    def see_line(self, line: str | bytes) -> None:
        try:
            document = parse_line(line)
        except (ValueError, RecursionError) as error:
            self._number += 1
            self._report("json", parse_fault(error))
        else:
            self.see(document)

    def see(self, document: object) -> None:
        self._number += 1
        try:
            event = check_event(document)
        except InvalidEvent as error:
            self._report("schema", str(error))
            return
        if isinstance(event, ModeEvent) and self._run.is_done:
            self._run = Run(self._report)
        self._run.see(event)

    def close(self) -> None:
        if self._number and not self._run.is_done:
            self.violations.append(DexiViolation("done_last", self._run.run_id, None, "the run never ends"))

    def _report(self, law: str, sentence: str) -> None:
        if self._replayed and law == "heartbeat_pace":
            return
        self.violations.append(DexiViolation(law, self._run.run_id, self._number, sentence))

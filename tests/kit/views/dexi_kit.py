"""Narrated runs without a server: decisions, events of a turn with a clock, and the narration as plain JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import jsonschema_rs

from footlights.events import (
    EVENT_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    Ext,
    Issue,
    ModelReady,
    ModelSelected,
    Payload,
    StreamEvent,
    ToolCallResult,
    ToolCallStarted,
    WarmState,
)
from footlights.modes import Candidate, Condition, ExecutionPolicy, Intent, IntentKind, ModeDecision
from footlights.params import Mode
from footlights_transports.views.dexi.pure.events import to_json
from footlights_transports.views.dexi.pure.laws import check_dexi
from footlights_transports.views.dexi.pure.narration import Narrator
from footlights_transports.views.dexi.pure.schema import dexi_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from footlights.events import JsonValue
    from footlights.modes import Confirmation
    from footlights.redaction.redactor import Redactor

Raw: TypeAlias = dict[str, Any]

RUN = "r1-000001"
VALIDATOR = jsonschema_rs.validator_for(dexi_schema(), validate_formats=True)

OK = CommitFinal("0" * 64, CommitOutcome.OK)
REFUSED = CommitFinal("0" * 64, CommitOutcome.FAIL_CLOSED, (Issue("turn_interrupted", "It was."),))
HOT = (ModelSelected("odo", "default"), ModelReady("odo", WarmState.HOT, 0))
STARTED = ToolCallStarted("call-1", "search_documents")
FOUND = ToolCallResult("call-1", "search_documents", canceled=False, summary="Two documents were found.")
TOOLS = {
    "search_documents": "Search the documents. Returns the best.",
    "simulate_cohort": "Simulate how many people keep to a habit.",
}
PREPARED = [
    ("step_start", "step-1", "Ask a model"),
    ("narration_delta", "step-1", "The model odo was selected."),
    ("step_end", "step-1", "completed"),
]


def decided(
    policy: ExecutionPolicy = ExecutionPolicy.AUTO,
    activities: Sequence[str] = ("search",),
    confirmation: Confirmation | None = None,
) -> ModeDecision:
    """The decision about a request for these activities; without any, about small talk."""
    wanted = bool(activities)
    runs = policy is ExecutionPolicy.FORCE or (policy is ExecutionPolicy.AUTO and wanted)
    conditions = (Condition.WORK_REQUESTED,) if wanted else ()
    return ModeDecision(
        intent=Intent(kind=IntentKind.EXECUTION if wanted else IntentKind.CONVERSATIONAL, activities=tuple(activities)),
        candidate=Candidate.EXECUTION if wanted else Candidate.CHAT,
        conditions=conditions,
        policy=policy,
        mode=Mode.EXECUTION if runs else Mode.CHAT,
        confirmation=confirmation,
    )


EXECUTION = decided()
CHAT = decided(activities=())


def artifacts(read: Iterable[JsonValue] = (), generated: Iterable[JsonValue] = ()) -> Ext:
    return Ext("ext.footlights.artifacts", {"read": list(read), "generated": list(generated)})


def core_events(payloads: Iterable[Payload]) -> list[StreamEvent]:
    return [
        StreamEvent(SCHEMA_V, "s1", "t1", seq, 0, EVENT_TYPES[type(payload)], payload)
        for seq, payload in enumerate(payloads)
    ]


def project(
    events: Iterable[StreamEvent],
    decision: ModeDecision = EXECUTION,
    *,
    pauses: Sequence[float] = (),
    agent: str | None = None,
    redactor: Redactor | None = None,
    tools: Mapping[str, str] = TOOLS,
) -> list[Raw]:
    """The whole run, checked against schema and laws. Before event n there is a pause of `pauses[n]` seconds."""
    run = Narrator(RUN, decision, agent=agent, redactor=redactor, tools=tools)
    now = 0.0
    sent = list(run.begin(now))
    for at, event in enumerate(events):
        until = now + (pauses[at] if at < len(pauses) else 0.0)
        while (due := run.heartbeat_at) is not None and due < until:
            sent += run.silence(due)
        now = until
        sent += run.take(event, now)
    return lawful([to_json(event) for event in sent])


def run_of(*payloads: Payload, decision: ModeDecision = EXECUTION, **more: Any) -> list[Raw]:
    return project(core_events(payloads), decision, **more)


def lawful(events: list[Raw], *, complete: bool = True, replayed: bool = False) -> list[Raw]:
    """The same events, checked against schema and laws."""
    for event in events:
        VALIDATOR.validate(event)
    assert [str(violation) for violation in check_dexi(events, complete=complete, replayed=replayed)] == []
    return events


def told(events: Iterable[Raw]) -> list[tuple[Any, ...]]:
    """Each event as a tuple: its type and its fields, without timestamps and the name of the run."""
    return [tuple(value for name, value in event.items() if name not in ("timestamp", "run_id")) for event in events]


def output(events: Iterable[Raw]) -> str:
    return "".join(event["content"] for event in events if event["type"] == "output_delta")


def types(events: Iterable[Raw]) -> list[str]:
    return [event["type"] for event in events]

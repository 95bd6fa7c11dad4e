"""Laws of AG-UI streams: each finds what breaks it."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, TypeAlias

import pytest

from footlights import Intent, IntentType
from footlights.authority import PendingApproval
from footlights.events import InterruptReason, TokenDelta, ToolCallResult, ToolCallStarted, TurnFinal, TurnInterrupted
from footlights_transports.views.ag_ui.pure.laws import AG_UI_LAWS, check_ag_ui
from tests.kit.views.ag_ui_kit import Raw, bodies, project
from tests.kit.views.dexi_kit import HOT, OK, REFUSED, core_events

if TYPE_CHECKING:
    from collections.abc import Callable

    Breach: TypeAlias = Callable[[list[Raw]], None]

LOOK = (ToolCallStarted("call-1", "look"), ToolCallResult("call-1", "look", canceled=False, summary="Seen."))
ASKED = PendingApproval("a-000001", "Buy it?", Intent(IntentType.DECISION, "buy", {}), "s1")


def finished() -> list[Raw]:
    payloads = (*HOT, TokenDelta("Well.", 0), *LOOK, TokenDelta(" So.", 5), TurnFinal("Well. So."), OK)
    return bodies(project(core_events(payloads), pending=[ASKED]))


def canceled() -> list[Raw]:
    cut = TurnInterrupted(InterruptReason.CANCELED)
    return bodies(project(core_events((*HOT, TokenDelta("Well.", 0), cut, REFUSED))))


def at(events: list[Raw], kind: str, number: int = 0) -> int:
    return [place for place, each in enumerate(events) if kind in (each["type"], each.get("name"))][number]


def removed(kind: str, number: int = 0) -> Breach:
    return lambda events: events.__delitem__(at(events, kind, number))


def repeated(kind: str) -> Breach:
    return lambda events: events.insert(at(events, kind), deepcopy(events[at(events, kind)]))


def altered(kind: str, **fields: object) -> Breach:
    return lambda events: events[at(events, kind)].update(fields)


def moved(kind: str, before: str) -> Breach:
    def breach(events: list[Raw]) -> None:
        event = events.pop(at(events, kind))
        events.insert(at(events, before), event)

    return breach


BREACHES: list[tuple[str, Callable[[], list[Raw]], Breach]] = [
    ("object", finished, altered("TEXT_MESSAGE_CONTENT", delta=7)),
    ("object", finished, altered("RUN_FINISHED", type="RUN_OVER")),
    ("object", finished, altered("TOOL_CALL_END", type=None)),
    ("started_first", finished, removed("RUN_STARTED")),
    ("started_first", finished, repeated("RUN_STARTED")),
    ("one_end", finished, removed("RUN_FINISHED")),
    ("one_end", finished, repeated("RUN_FINISHED")),
    ("one_end", finished, moved("RUN_FINISHED", "footlights.commit")),
    ("run", finished, altered("RUN_FINISHED", runId="another")),
    ("run", canceled, altered("RUN_FINISHED", threadId="another")),
    ("one_turn", finished, altered("RUN_FINISHED", metadata={"turn_id": "t2", "seq": 99})),
    ("one_turn", finished, altered("TEXT_MESSAGE_END", metadata={})),
    ("seq_order", finished, altered("footlights.commit", metadata={"turn_id": "t1", "seq": 0})),
    ("message_pairs", finished, removed("TEXT_MESSAGE_START")),
    ("message_pairs", finished, repeated("TEXT_MESSAGE_START")),
    ("message_pairs", finished, repeated("TEXT_MESSAGE_END")),
    ("message_pairs", finished, altered("TEXT_MESSAGE_CONTENT", delta="")),
    ("message_closed", finished, removed("TEXT_MESSAGE_END")),
    ("message_closed", canceled, removed("TEXT_MESSAGE_END")),
    ("tool_pairs", finished, removed("TOOL_CALL_START")),
    ("tool_pairs", finished, removed("TOOL_CALL_END")),
    ("tool_pairs", finished, repeated("TOOL_CALL_RESULT")),
    ("tool_closed", finished, removed("TOOL_CALL_RESULT")),
    ("one_commit", finished, removed("footlights.commit")),
    ("one_commit", finished, repeated("footlights.commit")),
    ("one_commit", canceled, moved("footlights.commit", "TEXT_MESSAGE_START")),
    ("commit_agrees", finished, altered("footlights.commit", value={"commit_outcome": "fail_closed"})),
    ("commit_agrees", canceled, altered("footlights.commit", value={"commit_outcome": "ok"})),
    ("interrupts", finished, altered("RUN_FINISHED", outcome={"type": "interrupt", "interrupts": []})),
    ("interrupts", finished, altered("RUN_FINISHED", outcome={"type": "interrupt", "interrupts": [{}]})),
]


@pytest.mark.parametrize("make", [finished, canceled])
def test_what_the_projection_makes_is_lawful(make: Callable[[], list[Raw]]) -> None:
    assert check_ag_ui(make()) == []


@pytest.mark.parametrize(("law", "make", "breach"), BREACHES)
def test_each_law_finds_what_breaks_it(law: str, make: Callable[[], list[Raw]], breach: Breach) -> None:
    events = make()
    breach(events)
    found = {each.law for each in check_ag_ui(events)}
    assert law in found
    assert found <= set(AG_UI_LAWS)


def test_every_law_has_a_breach() -> None:
    assert {law for law, _, _ in BREACHES} == set(AG_UI_LAWS)


@pytest.mark.parametrize("junk", [None, [], "words", {"type": []}, {"type": "CUSTOM", "name": "x", "metadata": []}])
def test_nothing_that_is_judged_makes_the_checker_fail(junk: object) -> None:
    assert check_ag_ui([junk, *finished(), junk])


def test_a_recording_that_was_cut_short_need_not_have_an_end() -> None:
    whole = finished()
    for place in range(len(whole) + 1):
        assert check_ag_ui(whole[:place], complete=False) == []

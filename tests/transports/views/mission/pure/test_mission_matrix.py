"""The prompt-style matrix, over every combination there is, and the table in the documentation."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import pytest

from footlights_transports.views.mission.pure.history import (
    MAX_MISSIONS_PER_TENANT,
    MAX_TENANTS,
    MAX_TENANTS_PER_USER,
    History,
)
from footlights_transports.views.mission.pure.matrix import MATRIX, Row, Speak, row_of
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.policy import Decision, decide
from footlights_transports.views.mission.pure.requests import DEFAULTS
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    SpeechMode,
    SuppressionReason,
    Tier,
    VoiceMode,
)
from footlights_transports.views.mission.pure.text import compose
from tests.kit.callouts import mission_event
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import StrEnum

PAGE = ROOT / "docs" / "how-to" / "clients" / "callouts.md"

EVERYTHING = list(product(Tier, SessionState, VoiceMode, MissionEventType, Classification, Certainty))


Combination: TypeAlias = tuple[Tier, SessionState, VoiceMode, MissionEventType, Classification, Certainty]


def asked(combination: Combination) -> tuple[MissionEvent, Context]:
    """An event with a text that is longer than any voice, and its listener."""
    tier, state, voice_mode, event_type, classification, certainty = combination
    text = compose(
        event_type, classification, change=f"{'run ' * 25}now.", impact="Run! " * 40, next_action="Run! " * 28
    )
    event = mission_event("", event_type, classification, certainty=certainty, text=text, operator_ref="op-1")
    return event, Context(tier=tier, session_state=state, voice_mode=voice_mode)


def decided(combination: Combination) -> Decision:
    return decide(*asked(combination), History(), 0)


def expected(combination: Combination) -> tuple[SpeechMode, int] | None:
    """The matrix again, as plain rules; None is silence."""
    tier, state, voice_mode, event_type, classification, certainty = combination
    if tier == 0 or state != "active" or voice_mode in ("off", "dnd"):
        return None
    sure = certainty in ("confirmed", "reasoned")
    if voice_mode == "normal" and event_type == "action_required" and sure:
        return SpeechMode.BRIEFING, 420
    if voice_mode == "normal" and event_type == "debrief":
        return SpeechMode.DEBRIEF, 420
    if classification in ("critical", "action"):
        return SpeechMode.CALLOUT, 220
    if voice_mode == "normal" and classification == "warn" and certainty != "unknown":
        return SpeechMode.CALLOUT, 160
    if voice_mode == "normal" and classification == "info" and sure:
        return SpeechMode.CALLOUT, 140
    return None


@pytest.mark.shows("callouts-67")
def test_there_are_3200_combinations() -> None:
    assert len(EVERYTHING) == 2 * 5 * 4 * 5 * 4 * 4


@pytest.mark.shows("callouts-7", "callouts-9", "callouts-29", "callouts-34", "callouts-35", "callouts-36")
@pytest.mark.shows("callouts-37", "callouts-38", "callouts-39", "callouts-40", "callouts-41", "callouts-67")
def test_every_combination_is_spoken_as_the_contract_says_or_is_context_ineligible() -> None:
    for given in EVERYTHING:
        decision, wanted = decided(given), expected(given)
        voice = decision.payload.voice
        if wanted is None:
            assert voice is None, given
            assert decision.payload.suppression.reason is SuppressionReason.CONTEXT_INELIGIBLE, given
        else:
            assert voice is not None, given
            assert voice.mode is wanted[0], given
            assert wanted[1] - 5 < len(voice.text) <= wanted[1], given
            assert decision.payload.suppression.reason is None, given


def test_every_row_decides_some_combination() -> None:
    assert {MATRIX.index(row_of(*asked(given))) for given in EVERYTHING} == set(range(len(MATRIX)))


def test_exactly_the_rows_that_say_no_have_no_format() -> None:
    assert all((row.speech is None) == (row.speak is Speak.NO) for row in MATRIX)


# -- the documentation


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, their code marks taken off."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert lines is not None
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines[0].splitlines()]


def cells_of(row: Row) -> tuple[str, ...]:
    """The row as the documentation shows it."""

    def cell(values: Iterable[StrEnum] | None) -> str:
        return "any" if values is None else "/".join(value.value for value in values)

    kinds = map(cell, (row.states, row.voice_modes, row.classes, row.certainties))
    speech = "utility text block" if row.speech is None else row.speech.value
    tier = "any" if row.tier is None else str(row.tier.value)
    return (tier, *kinds, speech, str(row.max_chars), row.speak.value, cell(row.suppression))


def test_the_table_in_the_docs_is_the_table_in_the_code_cell_by_cell() -> None:
    header, _, *rows = table("What may be spoken")
    assert header[0] == "Tier"
    assert len(rows) == len(MATRIX)
    for row, cells in zip(MATRIX, rows, strict=True):
        assert tuple(cells) == cells_of(row)


def test_the_reasons_in_the_docs_are_in_the_order_of_the_checks() -> None:
    _, _, *rows = table("Why something is not spoken")
    assert [(cells[0], cells[1]) for cells in rows] == [
        (str(number), reason.value) for number, reason in enumerate(SuppressionReason, start=1)
    ]


@pytest.mark.shows("callouts-56")
@pytest.mark.parametrize("cells", table("What is missing")[2:], ids=lambda cells: cells[0])
def test_the_docs_have_the_default_of_every_field(cells: list[str]) -> None:
    name, told = cells
    words = {"mode": None, "event_id": None, "voice_certainty": None, "operator_ref": None, "policy_ts_ms": None}
    default = DEFAULTS[name]
    if name in words:
        assert default is None
    elif name == "evidence_refs":
        assert default == ()
    else:
        assert told == (str(default).lower() if isinstance(default, bool) else str(default))


def test_the_docs_list_all_fields() -> None:
    assert [cells[0] for cells in table("What is missing")[2:]] == list(DEFAULTS)


def test_the_docs_have_the_limits() -> None:
    page = " ".join(PAGE.read_text().split())
    assert f"`missions` of the tenant this minute ({MAX_MISSIONS_PER_TENANT})" in page
    assert f"tenant of the `user` ({MAX_TENANTS_PER_USER}) or on the `server` ({MAX_TENANTS:,})" in page

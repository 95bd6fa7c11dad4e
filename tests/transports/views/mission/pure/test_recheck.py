"""Replay: a recording of callouts is decided again as it was."""

from __future__ import annotations

from typing import Any

import pytest

from footlights.errors import InvalidCommand
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.recheck import replay

HEARD = {"context_tier": 1, "session_state": "active", "classification": "critical"}

SEQUENCE: list[dict[str, Any]] = [
    {"text": "Fire.", **HEARD, "policy_ts_ms": 1_000},
    {"text": "FIRE!", **HEARD},
    {"text": "Fire.", **HEARD, "policy_ts_ms": 11_000, "dry_run": True},
    {"text": "Fire.", **HEARD, "policy_ts_ms": 11_000, "voice_fails": True},
    {"text": "Flood.", **HEARD, "voice_fails": True},
    {"text": "Lit.", "voice_fails": True},
    {"text": "Flood.", **HEARD, "voice_fails": True, "policy_ts_ms": 12_000},
    {"text": "Flood.", **HEARD, "policy_ts_ms": 41_999, "event_id": "last"},
    {"text": "Flood.", **HEARD, "policy_ts_ms": 42_000},
]
OUTCOMES = [
    ("event-000001", None, 0),
    ("event-000002", "dedupe_cooldown", 10_000),
    ("event-000003", None, 0),
    ("event-000004", "voice_backend_error", 0),
    ("event-000005", "voice_backend_error", 0),
    ("event-000006", "context_ineligible", 0),
    ("event-000007", "voice_backend_error", 30_000),
    ("last", "voice_backend_error", 1),
    ("event-000009", None, 0),
]


def test_a_recording_is_replayed_exactly() -> None:
    outcomes = [
        (each.payload.event_id, each.payload.suppression.reason, each.payload.suppression.cooldown_ms)
        for each in replay(SEQUENCE)
    ]
    assert outcomes == OUTCOMES


def test_the_voice_of_a_dry_run_cannot_fail() -> None:
    dry = {"text": "Fire.", **HEARD, "policy_ts_ms": 1_000, "dry_run": True, "voice_fails": True}
    assert [each.payload.suppression.reason for each in replay([dry] * 4)] == [None] * 4


def test_a_replay_can_continue_from_a_history() -> None:
    *_, before = replay(SEQUENCE[:4])
    assert list(replay(SEQUENCE, History())) == list(replay(SEQUENCE))
    assert [each.payload.suppression.reason for each in replay(SEQUENCE[4:7], before.history)] == [
        "voice_backend_error",
        "context_ineligible",
        "voice_backend_error",
    ]


def test_voices_end_at_their_recorded_times() -> None:
    """A live sequence: each voice about a fire hung for ten seconds, and one callout was cancelled."""
    sequence: list[dict[str, Any]] = [
        {"text": "Fire.", **HEARD, "mission_id": "a", "policy_ts_ms": 0, "voice_failed_ms": 10_000, "ended_seq": 6},
        {"text": "Fire.", **HEARD, "mission_id": "a", "policy_ts_ms": 5_000},
        {"text": "Hail.", **HEARD, "mission_id": "a", "policy_ts_ms": 6_000, "voice_dropped_ms": 7_000, "ended_seq": 4},
        {"text": "Hail.", **HEARD, "mission_id": "a", "policy_ts_ms": 6_999},
        {"text": "Hail.", **HEARD, "mission_id": "a", "policy_ts_ms": 7_000, "policy_seq": 5},
        {"text": "Fire b.", **HEARD, "mission_id": "b", "policy_ts_ms": 11_000, "policy_seq": 7},
        {"text": "Fire c.", **HEARD, "mission_id": "c", "policy_ts_ms": 12_000},
        {"text": "Flood.", **HEARD, "mission_id": "d", "policy_ts_ms": 51_999, "policy_seq": 12},
        {"text": "Flood.", **HEARD, "mission_id": "d", "policy_ts_ms": 52_000},
    ]
    sequence[5] |= {"voice_failed_ms": 22_000, "ended_seq": 10}
    sequence[6] |= {"voice_failed_ms": 21_000, "ended_seq": 9}
    assert [(each.payload.suppression.reason, each.payload.suppression.cooldown_ms) for each in replay(sequence)] == [
        ("voice_backend_error", 0),
        ("dedupe_cooldown", 5_000),
        ("voice_backend_error", 0),
        ("dedupe_cooldown", 9_001),
        (None, 0),
        ("voice_backend_error", 30_000),
        ("voice_backend_error", 0),
        ("voice_backend_error", 1),
        (None, 0),
    ]


def test_entries_before_an_invalid_one_are_decided_first() -> None:
    told: list[str] = []
    failing: dict[str, Any] = {"text": "Fire.", **HEARD, "policy_ts_ms": 0, "voice_failed_ms": 10_000, "ended_seq": 2}
    with pytest.raises(InvalidCommand):
        told.extend(str(each.payload.suppression.reason) for each in replay([failing, {"text": ""}]))
    assert told == ["voice_backend_error"]


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ({"voice_fails": 1}, "voice_fails: must be true or false"),
        ({"voice_failed_ms": "now"}, "voice_failed_ms: must be an integer"),
        ({"voice_dropped_ms": True}, "voice_dropped_ms: must be an integer"),
        ({"policy_seq": -1}, "policy_seq: must be between"),
        ({"voice_failed_ms": 1}, "ended_seq: is there if and only if"),
        ({"policy_seq": 1, "ended_seq": 2}, "ended_seq: is there if and only if"),
        ({"policy_seq": 1, "voice_dropped_ms": 1}, "ended_seq: is there if and only if"),
        ({"policy_seq": 1, "ended_seq": 1, "voice_dropped_ms": 1}, "ended_seq: must be greater than policy_seq"),
        ({"user": ""}, "user: must be 1 to 128"),
        ({"board": 1}, "board: must be a string"),
        ({"board": "m", "mission_id": "m"}, "mission_id: is there beside board"),
        ({"closes": "e1"}, "board: must be a string"),
        ({"closes": 1, "board": "m"}, "closes: must be a string"),
        ({"closes": "e1", "board": "m"}, "closes: no such event of that board stands before it"),
        ({"closes": "e1", "board": "m", "mode": "callout"}, "The request has a field that is not known"),
    ],
)
def test_an_invalid_entry_is_refused(field: dict[str, object], sentence: str) -> None:
    with pytest.raises(InvalidCommand, match=sentence):
        list(replay([{"text": "Lit.", **field}]))


NUMBERED: list[dict[str, Any]] = [
    {"text": "Fire.", **HEARD, "policy_ts_ms": 5, "policy_seq": 1, "voice_failed_ms": 5, "ended_seq": 5},
    {"text": "Fire.", **HEARD, "policy_ts_ms": 5, "policy_seq": 2, "voice_failed_ms": None, "ended_seq": None},
    {"text": "Flood.", **HEARD, "policy_ts_ms": 5, "policy_seq": 3, "voice_dropped_ms": 5, "ended_seq": 4},
    {"text": "Flood.", **HEARD, "policy_ts_ms": 5, "policy_seq": 6, "voice_fails": True},
    {"text": "Fire.", **HEARD, "policy_ts_ms": 5, "policy_seq": 7},
    {"text": "Flood.", **HEARD, "policy_ts_ms": 5, "policy_seq": 9},
]


def test_policy_seq_orders_decisions_and_ends_within_a_millisecond() -> None:
    assert [each.payload.suppression.reason for each in replay(NUMBERED)] == [
        "voice_backend_error",
        "dedupe_cooldown",
        "voice_backend_error",
        "voice_backend_error",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("seqs", "sentence"),
    [
        ((None, 0), "policy_seq: must be greater than that of the entry before"),
        ((1, 1), "policy_seq: must be greater than that of the entry before"),
        ((2, 1), "policy_seq: must be greater than that of the entry before"),
    ],
)
def test_invalid_policy_seqs_are_refused(seqs: tuple[int | None, ...], sentence: str) -> None:
    with pytest.raises(InvalidCommand, match=sentence):
        list(replay([{"text": "Lit.", "policy_seq": seq} for seq in seqs]))


def test_a_closing_is_replayed_as_the_debrief_of_an_earlier_event() -> None:
    mission = {"board": "m", "user": "ann"}
    door: dict[str, Any] = {"text": "The door is open.", "event_id": "e1", **mission}
    heard = {"context_tier": 1, "session_state": "active"}
    _, debrief = replay([door, {"closes": "e1", "text": "It is shut.", "event_id": "d1", **mission, **heard}])
    assert (debrief.payload.event_id, debrief.payload.event_type) == ("d1", "debrief")
    assert debrief.payload.voice is not None
    assert debrief.payload.voice.text == "Not confirmed: An operator has closed this. It is shut."
    spoken = {"board": None, "mission_id": "m"}
    others: tuple[dict[str, Any], ...] = ({"user": "bob"}, {"board": "n"}, {"dry_run": True}, spoken)
    for other in others:
        with pytest.raises(InvalidCommand, match="closes: no such event"):
            list(replay([door | other, {"closes": "e1", **mission}]))

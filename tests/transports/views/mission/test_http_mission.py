"""Callouts and mission boards over HTTP."""

from __future__ import annotations

import io
import json
import logging
import wave
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import jsonschema_rs
import pytest
import trio

from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.config.views import VIEWS
from footlights_transports.http.app import document_of_routes
from footlights_transports.http.sse import STREAMS, OpenStreams
from footlights_transports.views.mission import announcer
from footlights_transports.views.mission.board import MissionBoard
from footlights_transports.views.mission.missions import MissionSettings
from footlights_transports.views.mission.pure import history
from footlights_transports.views.mission.pure.recheck import replay
from footlights_transports.views.mission.routes import BoardStream
from tests.kit.callouts import TONE, ToneVoice
from tests.kit.peers.http_peer import Answer, Follower, open_house, refused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from footlights_transports.views.mission.pure.payload import UtilityPayload
    from tests.kit.peers.http_peer import House

SPEAK = "/api/voice/speak"
BOARD = "/api/mission-board/heist/events"
HEARD: dict[str, Any] = {"context_tier": 1, "session_state": "active"}
FIRE: dict[str, Any] = {"text": "Fire.", "classification": "critical", "mission_id": "heist", **HEARD}
REPLAY = MissionSettings(replay=True)


class Speaker:
    """A voice that records its words, or fails."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.fails = False
        self.asked = trio.Event()
        self.let_go: trio.Event | None = None

    async def speak(self, payload: UtilityPayload) -> None:
        await trio.lowlevel.checkpoint()
        self.asked.set()
        if self.let_go is not None:
            await self.let_go.wait()
        if self.fails:
            raise RuntimeError("secret words")
        assert payload.voice is not None
        self.said.append(payload.voice.text)


def outcome(answer: httpx2.Response) -> tuple[int, str | None, int]:
    """The status, the reason and the cooldown."""
    body = answer.json()
    assert body["speak"] is (body["suppression"]["reason"] is None)
    assert body["suppression"] == body["payload"]["suppression"]
    assert body["payload"]["text_payload"]["what_changed"]
    return answer.status_code, body["suppression"]["reason"], body["suppression"]["cooldown_ms"]


# -- POST /api/voice/speak


@pytest.mark.shows("callouts-1", "callouts-3")
async def test_a_callout_is_decided_and_spoken_and_the_answer_is_complete() -> None:
    speaker = Speaker()
    async with open_house(mission=MissionSettings(voice=speaker)) as house:
        answer = await house.client.post(SPEAK, json=FIRE | {"event_id": "e1"})
        key = answer.json()["suppression"]["dedupe_key"]
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-store"
        assert answer.json() == {
            "speak": True,
            "suppression": {"suppressed": False, "reason": None, "cooldown_ms": 0, "dedupe_key": key},
            "payload": {
                "contract_version": "dottie.utility.v1",
                "mission_id": "heist",
                "event_id": "e1",
                "event_type": "state_change",
                "classification": "critical",
                "certainty_class": "unknown",
                "evidence_refs": [],
                "text_payload": {
                    "what_changed": "CHANGE: state_change/critical -- Fire.",
                    "why_it_matters": "IMPACT: not stated.",
                    "next_action": "NEXT: not stated.",
                    "evidence_anchor": "EVIDENCE: none.",
                },
                "voice_payload": {"mode": "callout", "text": "Not confirmed: Fire.", "certainty_class": "unknown"},
                "suppression": {"suppressed": False, "reason": None, "cooldown_ms": 0, "dedupe_key": key},
            },
            "policy_ts_ms": answer.json()["policy_ts_ms"],
            "policy_seq": 1,
            "voice_failed_ms": None,
            "voice_dropped_ms": None,
            "ended_seq": None,
            "audio_url": None,
        }
        assert answer.json()["policy_ts_ms"] > 10**12
        again = await house.client.post(SPEAK, json=FIRE)
        assert again.status_code == 200
        assert again.json()["suppression"]["reason"] == "dedupe_cooldown"
        assert again.json()["suppression"]["dedupe_key"] == key
    assert speaker.said == ["Not confirmed: Fire."]


async def test_a_text_alone_is_answered_and_not_spoken() -> None:
    async with open_house() as house:
        answer = await house.client.post(SPEAK, json={"text": "Hello."})
        assert outcome(answer) == (200, "context_ineligible", 0)
        assert answer.json()["payload"]["event_id"] == "speak-000001"


@pytest.mark.shows("callouts-3")
@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"text_certainty": "reasoned", "voice_certainty": "confirmed"}, "contract_violation"),
        ({"classification": "info", "text_certainty": "confirmed", "repo_attributed": True}, "missing_evidence"),
        ({"event_type": "debrief"}, "context_ineligible"),
        ({"event_type": "debrief", "operator_ref": "op-1"}, None),
    ],
)
async def test_a_broken_rule_is_answered_with_its_reason(wish: dict[str, Any], reason: str | None) -> None:
    async with open_house() as house:
        assert outcome(await house.client.post(SPEAK, json=FIRE | wish)) == (200, reason, 0)


async def test_a_dry_run_speaks_nothing_and_uses_up_no_limit() -> None:
    speaker = Speaker()
    async with open_house(mission=MissionSettings(voice=speaker, replay=True)) as house:
        for ts in ({}, {"policy_ts_ms": 5}):
            dry = await house.client.post(SPEAK, json=FIRE | {"dry_run": True} | ts)
            assert outcome(dry) == (200, None, 0)
        assert speaker.said == []
        assert outcome(await house.client.post(SPEAK, json=FIRE)) == (200, None, 0)


async def test_a_used_up_limit_is_429_with_its_scope_and_the_complete_answer() -> None:
    async with open_house(mission=REPLAY) as house:
        for number in range(12):
            said = FIRE | {"text": f"Fire {number}.", "policy_ts_ms": 1_000}
            assert outcome(await house.client.post(SPEAK, json=said)) == (200, None, 0)
        limited = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 11_500})
        assert outcome(limited) == (429, "voice_rate_limited", 49_500)
        assert limited.json()["error"] == {
            "code": "voice_rate_limited",
            "message": "The mission has spoken enough for a minute.",
            "scope": "mission",
        }
        assert limited.headers["retry-after"] == "50"
        dry = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 11_500, "dry_run": True})
        assert outcome(dry) == (200, "voice_rate_limited", 49_500)


@pytest.mark.parametrize(
    ("limit", "second", "reason", "wait", "scope"),
    [
        ("DAY_BUDGET", {"mission_id": "other"}, "voice_budget_exceeded", 86_399_000, "tenant"),
        ("MAX_MISSIONS_PER_TENANT", {"mission_id": "other"}, "voice_rate_limited", 60_000, "missions"),
        ("MAX_TENANTS", {"tenant_id": "other"}, "voice_budget_exceeded", 86_399_000, "server"),
    ],
)
async def test_every_limit_has_a_scope_of_its_own(
    monkeypatch: pytest.MonkeyPatch, limit: str, second: dict[str, str], reason: str, wait: int, scope: str
) -> None:
    monkeypatch.setattr(history, limit, 1)
    async with open_house(mission=REPLAY) as house:
        first = FIRE | {"policy_ts_ms": 1_000}
        assert outcome(await house.client.post(SPEAK, json=first)) == (200, None, 0)
        limited = await house.client.post(SPEAK, json=first | second)
        assert outcome(limited) == (429, reason, wait)
        assert limited.json()["error"]["scope"] == scope


async def test_a_busy_voice_is_503_and_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcer, "VOICES_AT_ONCE", 1)
    speaker = Speaker()
    speaker.let_go = trio.Event()
    async with open_house(mission=MissionSettings(voice=speaker)) as house, trio.open_nursery() as nursery:
        nursery.start_soon(partial(house.client.post, SPEAK, json=FIRE))
        await speaker.asked.wait()
        monkeypatch.setattr(announcer, "PLACE_SECONDS", 0)
        busy = await house.client.post(SPEAK, json=FIRE | {"text": "Flood."})
        speaker.let_go.set()
    assert outcome(busy) == (503, "voice_backend_error", 0)
    assert busy.headers["retry-after"] == "1"
    assert busy.json()["voice_failed_ms"] is None
    assert busy.json()["voice_dropped_ms"] >= busy.json()["policy_ts_ms"]
    assert speaker.said == ["Not confirmed: Fire."]


async def test_a_callout_that_is_being_spoken_at_shutdown_is_answered() -> None:
    speaker = Speaker()
    speaker.let_go = trio.Event()
    answers: list[httpx2.Response] = []
    async with open_house(mission=MissionSettings(voice=speaker)) as house, trio.open_nursery() as nursery:

        async def speak() -> None:
            answers.append(await house.client.post(SPEAK, json=FIRE))

        nursery.start_soon(speak)
        await speaker.asked.wait()
        house.stop()
        await trio.testing.wait_all_tasks_blocked()
        speaker.let_go.set()
    assert [outcome(each) for each in answers] == [(200, None, 0)]


@pytest.mark.shows("callouts-52")
async def test_a_failed_voice_is_502_and_an_open_breaker_503(caplog: pytest.LogCaptureFixture) -> None:
    speaker = Speaker()
    speaker.fails = True
    with caplog.at_level(logging.DEBUG):
        async with open_house(mission=MissionSettings(voice=speaker, replay=True)) as house:
            for _ in range(2):
                failed = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 1_000})
                assert outcome(failed) == (502, "voice_backend_error", 0)
                assert (failed.json()["policy_ts_ms"], failed.json()["voice_failed_ms"]) == (1_000, 1_000)
                assert failed.json()["error"] == {
                    "code": "voice_backend_error",
                    "message": "The voice cannot speak now.",
                }
            failed = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 1_000})
            assert outcome(failed) == (502, "voice_backend_error", 30_000)
            resting = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 11_000})
            assert outcome(resting) == (503, "voice_backend_error", 20_000)
            assert resting.headers["retry-after"] == "20"
    assert "secret" not in caplog.text
    assert "Fire" not in caplog.text


async def test_policy_ts_ms_counts_only_in_a_replay() -> None:
    async with open_house() as house:
        await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 0})
        again = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 10**12 * 5})
        assert again.json()["suppression"]["reason"] == "dedupe_cooldown"
    async with open_house(mission=REPLAY) as house:
        await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 0})
        again = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 10_000})
        assert again.json()["suppression"]["reason"] is None


async def test_policy_ts_ms_of_a_board_event_counts_only_in_a_replay() -> None:
    async with open_house() as house:
        added = await house.client.post(BOARD, json={"text": "Fire.", "event_id": "e1", "policy_ts_ms": 5})
        closed = await house.client.post(f"{BOARD}/e1/ack", json={"policy_ts_ms": 10**15})
        trigger, debrief = (await house.client.get(BOARD)).json()["events"]
    assert 10**12 < added.json()["policy_ts_ms"] == trigger["ts_ms"]
    assert trigger["ts_ms"] <= closed.json()["closed_ms"] == debrief["ts_ms"] < 10**14
    assert closed.json()["trigger_to_debrief_closed_ms"] == debrief["ts_ms"] - trigger["ts_ms"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"text": ""}, 400),
        ({"text": "x", "colour": "red"}, 400),
        ({"text": "x", "context_tier": 2}, 400),
        ({"text_payload": {"what_changed": "x"}}, 400),
        ([], 400),
    ],
)
async def test_an_invalid_callout_is_refused(body: object, status: int) -> None:
    async with open_house() as house:
        assert refused(await house.client.post(SPEAK, json=body)) == (status, "invalid_command")


async def test_a_body_that_is_not_json_is_refused() -> None:
    async with open_house() as house:
        answer = await house.client.post(SPEAK, content=b"text=x", headers={"content-type": "text/plain"})
        assert refused(answer) == (415, "invalid_command")


# -- the board


@pytest.mark.shows("callouts-1", "callouts-4", "callouts-55")
async def test_an_event_is_added_listed_and_numbered() -> None:
    async with open_house(mission=REPLAY) as house:
        lines = {"what_changed": "The guard woke.", "next_action": "Run now."}
        first = await house.client.post(BOARD, json={"text_payload": lines, "policy_ts_ms": 7, **HEARD})
        second = await house.client.post(BOARD, json={"text": "Fire.", "event_id": "e2", "policy_ts_ms": 9})
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json()["event"]["payload"] == first.json()["payload"]
        assert first.json()["speak"] is False
        listed = (await house.client.get(BOARD)).json()
        assert listed == {"mission_id": "heist", "events": [first.json()["event"], second.json()["event"]]}
        assert [(each["seq"], each["event_id"], each["ts_ms"], each["ack"]) for each in listed["events"]] == [
            (1, "event-000001", 7, None),
            (2, "e2", 9, None),
        ]
        assert listed["events"][0]["payload"]["text_payload"]["what_changed"] == "The guard woke."
        for query, ids in (
            ("?after=1", ["e2"]),
            ("?limit=1", ["e2"]),
            ("?after=2", []),
            ("?after=3", None),
            ("?limit=2&after=0", None),
        ):
            shown = [each["event_id"] for each in (await house.client.get(BOARD + query)).json()["events"]]
            assert shown == (["event-000001", "e2"] if ids is None else ids)


async def test_a_board_event_stays_on_the_board_if_its_voice_fails() -> None:
    speaker = Speaker()
    speaker.fails = True
    async with open_house(mission=MissionSettings(voice=speaker)) as house:
        body = {name: value for name, value in FIRE.items() if name != "mission_id"}
        added = await house.client.post(BOARD, json=body)
        assert outcome(added) == (201, "voice_backend_error", 0)
        (event,) = (await house.client.get(BOARD)).json()["events"]
        assert event["payload"]["text_payload"]["what_changed"].endswith("Fire.")


async def test_an_id_is_used_once_on_a_board() -> None:
    async with open_house() as house:
        body = {"text": "Fire.", "event_id": "event-000003"}
        assert (await house.client.post(BOARD, json=body)).status_code == 201
        assert refused(await house.client.post(BOARD, json=body)) == (409, "invalid_command")
        unnamed = await house.client.post(BOARD, json={"text": "Fire."})
        assert unnamed.json()["event"]["event_id"] == "event-000004"
        other = await house.client.post("/api/mission-board/other/events", json=body)
        assert other.status_code == 201


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("?after=x", "after"),
        ("?limit=0", "limit"),
        ("?limit=501", "limit"),
        ("?context_tier=2", "context_tier"),
        ("?voice_mode=loud", "voice_mode"),
    ],
)
async def test_an_invalid_query_is_refused(query: str, word: str) -> None:
    async with open_house() as house:
        answer = await house.client.get(BOARD + query)
        assert refused(answer) == (400, "invalid_command")
        assert answer.json()["error"]["message"].startswith(f"{word}: ")


@pytest.mark.parametrize("body", [{"text": "x", "mission_id": "m"}, {"text": "x", "dry_run": True}, {}])
async def test_an_invalid_board_event_is_refused(body: dict[str, object]) -> None:
    async with open_house() as house:
        assert refused(await house.client.post(BOARD, json=body)) == (400, "invalid_command")
        assert refused(await house.client.post("/api/mission-board/a b/events", json={"text": "x"}))[0] == 400


async def test_a_board_refuses_head_requests() -> None:
    async with open_house() as house:
        assert (await house.client.head(BOARD)).status_code == 405


# -- ack


def answered_debrief(board: httpx2.Response) -> dict[str, Any]:
    """The payload of the newest event."""
    payload: dict[str, Any] = board.json()["events"][-1]["payload"]
    return payload


@pytest.mark.shows("callouts-4")
async def test_closing_an_event_debriefs_it_and_reports_the_time_it_took() -> None:
    async with open_house(mission=REPLAY) as house:
        await house.client.post(
            BOARD, json={"text": "Fire.", "event_id": "e1", "policy_ts_ms": 1_000, "text_certainty": "reasoned"}
        )
        body = {"operator_ref": "op-7", "text": "The fire is out.", "policy_ts_ms": 16_000, **HEARD}
        body["text_certainty"] = "confirmed"
        closed = await house.client.post(f"{BOARD}/e1/ack", json=body)
        assert closed.status_code == 200
        answered = closed.json()
        assert {name: answered.pop(name) for name in ("speak", "suppression", "payload")} == {
            "speak": True,
            "suppression": answered_debrief(await house.client.get(BOARD))["suppression"],
            "payload": answered_debrief(await house.client.get(BOARD)),
        }
        assert answered == {
            "mission_id": "heist",
            "event_id": "e1",
            "operator_ref": "op-7",
            "debrief_event_id": closed.json()["debrief_event_id"],
            "closed_ms": 16_000,
            "trigger_to_debrief_closed_ms": 15_000,
            "policy_ts_ms": 16_000,
            "policy_seq": 2,
            "voice_failed_ms": None,
            "voice_dropped_ms": None,
            "ended_seq": None,
            "audio_url": None,
        }
        trigger, debrief = (await house.client.get(BOARD)).json()["events"]
        assert trigger["ack"]["trigger_to_debrief_closed_ms"] == 15_000
        assert debrief["event_id"] == closed.json()["debrief_event_id"]
        assert debrief["trigger_event_id"] == "e1"
        assert debrief["payload"]["event_type"] == "debrief"
        assert debrief["payload"]["certainty_class"] == "reasoned"
        assert debrief["payload"]["voice_payload"]["text"] == "Probably: An operator has closed this. The fire is out."


async def test_any_event_can_be_closed_and_an_operators_words_are_kept_whole_or_refused() -> None:
    async with open_house() as house:
        lines = {"what_changed": "a " * 2_000, "why_it_matters": "b " * 2_000}
        await house.client.post(BOARD, json={"text_payload": lines, "event_id": "big"})
        too_long = await house.client.post(f"{BOARD}/big/ack", json={"text": "word " * 100})
        assert refused(too_long) == (400, "invalid_command")
        assert (await house.client.post(f"{BOARD}/big/ack")).status_code == 200
        debrief = (await house.client.get(BOARD)).json()["events"][1]
        assert debrief["payload"]["text_payload"]["why_it_matters"] == "IMPACT: not stated."


async def test_closing_an_event_again_changes_nothing() -> None:
    async with open_house() as house:
        await house.client.post(BOARD, json={"text": "Fire.", "event_id": "e1"})
        first = await house.client.post(f"{BOARD}/e1/ack")
        again = await house.client.post(f"{BOARD}/e1/ack", json={"operator_ref": "another"})
        assert first.json() == again.json()
        assert first.json()["operator_ref"] == "ack:e1"
        assert len((await house.client.get(BOARD)).json()["events"]) == 2


async def test_the_time_to_a_debrief_is_never_negative() -> None:
    async with open_house(mission=REPLAY) as house:
        await house.client.post(BOARD, json={"text": "Fire.", "event_id": "e1", "policy_ts_ms": 9_000})
        closed = await house.client.post(f"{BOARD}/e1/ack", json={"policy_ts_ms": 1_000, "text": None})
        assert closed.json()["trigger_to_debrief_closed_ms"] == 0


async def test_an_unknown_event_cannot_be_closed() -> None:
    async with open_house() as house:
        assert (await house.client.get(BOARD)).json() == {"mission_id": "heist", "events": []}
        assert refused(await house.client.post(f"{BOARD}/e1/ack")) == (404, "unknown_event")
        await house.client.post(BOARD, json={"text": "Fire.", "event_id": "e1"})
        assert refused(await house.client.post(f"{BOARD}/e1/ack", json={"mode": "callout"})) == (
            400,
            "invalid_command",
        )


# -- recordings of voices


TOKENS = {"ann": "a" * 16, "bob": "b" * 16}
ANN, BOB = ({"authorization": f"Bearer {TOKENS[user]}"} for user in ("ann", "bob"))


def with_tone(folder: Path, seconds: float = 3_600) -> MissionSettings:
    return MissionSettings(voice=ToneVoice(), folder=folder, audio_seconds=seconds)


@pytest.mark.shows("callouts-60")
async def test_the_answer_names_the_sound_of_a_callout_and_only_its_owner_gets_it(tmp_path: Path) -> None:
    async with open_house(policy=AccessPolicy(TOKENS), mission=with_tone(tmp_path)) as house:
        spoken = await house.client.post(SPEAK, json=FIRE, headers=ANN)
        assert outcome(spoken) == (200, None, 0)
        url = spoken.json()["audio_url"]
        sound = await house.client.get(url, headers=ANN)
        assert (sound.status_code, sound.headers["content-type"]) == (200, "audio/wav")
        with wave.open(io.BytesIO(sound.content), "rb") as played:
            assert played.getnframes() > 0
        assert refused(await house.client.get(url, headers=BOB)) == (404, "unknown_recording")
        assert refused(await house.client.get(url)) == (401, "unauthorized")
        for name in ("x.wav", "%2e%2e%2fann%2fx.wav"):
            assert (await house.client.get(f"/api/voice/audio/{name}", headers=ANN)).status_code == 404
        for silent in ({}, {"dry_run": True, "text": "Flood."}):
            unspoken = await house.client.post(SPEAK, json=FIRE | silent, headers=ANN)
            assert unspoken.json()["audio_url"] is None


async def test_a_board_names_the_sound_of_its_events_and_tells_it_when_it_is_there(tmp_path: Path) -> None:
    async with open_house(mission=with_tone(tmp_path)) as house:
        guest = await house.start()
        path = f"/api/mission-board/{guest.session_id}/events"
        async with following(house, f"{path}?context_tier=1&session_state=active") as follower:
            await guest.finalize(await guest.begin_turn("Hello"))
            first, second = [await told(follower) for _ in range(2)]
        assert (first["event_id"], first["audio_url"]) == (second["event_id"], None)
        assert (await house.client.get(second["audio_url"])).content == TONE
        added = await house.client.post(path, json={"text": "Fire.", "classification": "critical", **HEARD})
        assert added.json()["audio_url"] == added.json()["event"]["audio_url"]
        closed = await house.client.post(f"{path}/{added.json()['event']['event_id']}/ack", json=HEARD)
        for url in (added.json()["audio_url"], closed.json()["audio_url"]):
            assert (await house.client.get(url)).content == TONE
        assert len({each["audio_url"] for each in (await house.client.get(path)).json()["events"]}) == 3


@pytest.mark.shows("callouts-60")
async def test_a_sound_that_has_expired_is_gone(tmp_path: Path) -> None:
    async with open_house(mission=with_tone(tmp_path, seconds=0)) as house:
        url = (await house.client.post(SPEAK, json=FIRE)).json()["audio_url"]
        assert refused(await house.client.get(url)) == (404, "unknown_recording")


async def test_a_sound_that_cannot_be_kept_is_a_failure_of_the_voice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with open_house(mission=with_tone(tmp_path / "file")) as house:
        assert outcome(await house.client.post(SPEAK, json=FIRE)) == (502, "voice_backend_error", 0)


# -- restarts


@pytest.mark.shows("callouts-61")
async def test_limits_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    for first in (0, 6):
        async with open_house(mission=MissionSettings(folder=tmp_path)) as house:
            for number in range(first, first + 6):
                assert outcome(await house.client.post(SPEAK, json=FIRE | {"text": f"Fire {number}."})) == (
                    200,
                    None,
                    0,
                )
    async with open_house(mission=MissionSettings(folder=tmp_path)) as house:
        assert outcome(await house.client.post(SPEAK, json=FIRE))[:2] == (429, "voice_rate_limited")


async def test_a_voice_that_a_shutdown_cuts_off_takes_no_place_in_the_limits_of_the_next_start(tmp_path: Path) -> None:
    speaker = Speaker()
    speaker.let_go = trio.Event()
    settings = MissionSettings(voice=speaker, folder=tmp_path)
    async with open_house(mission=settings, goodbye=0.01) as house, trio.open_nursery() as nursery:
        nursery.start_soon(_ask_in_vain, house)
        await speaker.asked.wait()
        house.stop()
        await house.stopped.wait()
    assert json.loads(_text_of(tmp_path / "limits.json"))["tenants"] == {}


async def _ask_in_vain(house: House) -> None:
    with suppress(httpx2.HTTPError):
        await house.client.post(SPEAK, json=FIRE)


def _text_of(file: Path) -> str:
    return file.read_text()


async def test_a_server_for_replays_neither_reads_nor_writes_limits(tmp_path: Path) -> None:
    async with open_house(mission=MissionSettings(folder=tmp_path, replay=True)) as house:
        assert outcome(await house.client.post(SPEAK, json=FIRE)) == (200, None, 0)
    assert not (tmp_path / "limits.json").exists()


# -- users


async def test_each_user_has_missions_and_budgets_of_their_own() -> None:
    tokens = {"ann": "a" * 16, "bob": "b" * 16}
    async with open_house(policy=AccessPolicy(tokens)) as house:
        ann = {"authorization": f"Bearer {tokens['ann']}"}
        bob = {"authorization": f"Bearer {tokens['bob']}"}
        assert refused(await house.client.post(SPEAK, json=FIRE)) == (401, "unauthorized")
        assert refused(await house.client.get(BOARD)) == (401, "unauthorized")
        await house.client.post(BOARD, json={"text": "Fire.", "event_id": "e1"}, headers=ann)
        assert (await house.client.get(BOARD, headers=bob)).json()["events"] == []
        assert refused(await house.client.post(f"{BOARD}/e1/ack", headers=bob)) == (404, "unknown_event")
        assert outcome(await house.client.post(SPEAK, json=FIRE, headers=ann)) == (200, None, 0)
        assert outcome(await house.client.post(SPEAK, json=FIRE, headers=bob)) == (200, None, 0)


@pytest.mark.shows("callouts-62")
@pytest.mark.parametrize("name", ["heist", "{user}:heist"])
async def test_two_users_call_a_session_the_same_and_each_board_shows_its_own(name: str) -> None:
    tokens = {"ann": "a" * 16, "bob": "b" * 16}
    async with open_house(policy=AccessPolicy(tokens)) as house:
        told: dict[str, list[dict[str, Any]]] = {}
        for user, turns in (("ann", 1), ("bob", 2)):
            headers = {"authorization": f"Bearer {tokens[user]}"}
            made = await house.client.post("/v1/sessions", json={"params": {"session_id": "heist"}}, headers=headers)
            session_id = made.json()["session_id"]
            board = f"/api/mission-board/{name.format(user=user)}"
            assert (await house.client.get(f"{board}/events", headers=headers)).json()["mission_id"] == session_id
            for _ in range(turns):
                session = f"/v1/sessions/{session_id}/turns"
                turn = (await house.client.post(session, json={"input": "Hello"}, headers=headers)).json()["turn_id"]
                await house.client.post(f"{session}/{turn}/finalize", headers=headers)
                await trio.testing.wait_all_tasks_blocked()
            told[user] = (await house.client.get(f"{board}/events", headers=headers)).json()["events"]
            yes = {"approvals": {"a-000001": True}}
            assert (await house.client.post(f"{board}/approvals", json=yes, headers=headers)).status_code == 202
    assert [len(told[user]) for user in ("ann", "bob")] == [1, 2]
    assert {each["payload"]["mission_id"] for each in told["ann"]} == {"ann:heist"}


async def test_a_mission_has_one_rate_whatever_its_user_calls_it() -> None:
    tokens = {"ann": "a" * 16}
    async with open_house(policy=AccessPolicy(tokens), headers={"authorization": f"Bearer {'a' * 16}"}) as house:
        assert outcome(await house.client.post(SPEAK, json=FIRE)) == (200, None, 0)
        again = await house.client.post(SPEAK, json=FIRE | {"mission_id": "ann:heist"})
        assert outcome(again)[1] == "dedupe_cooldown"


async def test_the_number_of_tenants_per_user_and_day_is_limited() -> None:
    policy = AccessPolicy({"ann": "a" * 16})
    async with open_house(policy=policy, mission=REPLAY, headers={"authorization": f"Bearer {'a' * 16}"}) as house:
        for number in range(history.MAX_TENANTS_PER_USER):
            answer = await house.client.post(SPEAK, json=FIRE | {"tenant_id": f"t{number}", "policy_ts_ms": 0})
            assert outcome(answer) == (200, None, 0)
        limited = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 0})
        assert outcome(limited) == (429, "voice_budget_exceeded", 86_400_000)
        assert limited.json()["error"]["scope"] == "user"
        assert limited.headers["retry-after"] == "86400"
        known = await house.client.post(SPEAK, json=FIRE | {"tenant_id": "t0", "policy_ts_ms": 60_000})
        assert outcome(known) == (200, None, 0)
        body = {name: value for name, value in FIRE.items() if name != "mission_id"}
        added = await house.client.post(BOARD, json=body | {"event_id": "e1", "policy_ts_ms": 0})
        assert outcome(added)[:2] == (201, "voice_budget_exceeded")
        closed = await house.client.post(f"{BOARD}/e1/ack", json={"policy_ts_ms": 0, **HEARD})
        assert outcome(closed)[:2] == (200, "voice_budget_exceeded")


@pytest.mark.parametrize("silent", [{"context_tier": 0}, {"dry_run": True}])
async def test_a_suppressed_callout_uses_up_no_tenant(silent: dict[str, Any]) -> None:
    policy = AccessPolicy({"ann": "a" * 16})
    async with open_house(policy=policy, headers={"authorization": f"Bearer {'a' * 16}"}) as house:
        for number in range(history.MAX_TENANTS_PER_USER + 1):
            answer = await house.client.post(SPEAK, json=FIRE | silent | {"tenant_id": f"t{number}"})
            assert answer.status_code == 200
            assert (await house.client.get(f"{BOARD}?tenant_id=s{number}")).status_code == 200
        assert outcome(await house.client.post(SPEAK, json=FIRE)) == (200, None, 0)


# -- recordings

_ANSWERED = ("policy_ts_ms", "policy_seq", "voice_failed_ms", "voice_dropped_ms", "ended_seq")


class Recording:
    """The requests and answers of a server, kept as the documentation describes."""

    def __init__(self) -> None:
        self._kept: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def keep(self, answer: httpx2.Response, body: dict[str, Any], **more: str) -> dict[str, Any]:
        answered: dict[str, Any] = answer.json()
        self._kept.append((body | more | {name: answered[name] for name in _ANSWERED}, answered))
        return answered

    def check(self) -> list[str | None]:
        """Check that a replay gives the same decisions. Returns the reasons."""
        self._kept.sort(key=lambda each: each[0]["policy_seq"])
        live = [answered["suppression"] for _, answered in self._kept]
        assert [each.payload.suppression.document for each in replay([line for line, _ in self._kept])] == live
        return [each["reason"] for each in live]


@pytest.mark.shows("callouts-66")
async def test_a_recording_of_a_server_with_mission_replay_is_replayed_exactly() -> None:
    speaker = Speaker()
    speaker.fails = True
    speaker.let_go = trio.Event()
    recording = Recording()
    async with open_house(mission=MissionSettings(voice=speaker, replay=True)) as house, trio.open_nursery() as nursery:

        async def speak(policy_ts_ms: int) -> None:
            body = FIRE | {"policy_ts_ms": policy_ts_ms}
            recording.keep(await house.client.post(SPEAK, json=body), body)

        nursery.start_soon(speak, 1_000)
        await speaker.asked.wait()
        await speak(2_000)
        speaker.let_go.set()
    assert recording.check() == ["voice_backend_error", "dedupe_cooldown"]


async def test_a_recording_with_closings_is_replayed_exactly() -> None:
    recording = Recording()
    async with open_house() as house:
        door = {"text": "Door.", "text_certainty": "confirmed", "system_state_claim": True, **HEARD}
        door |= {"event_id": "e1", "evidence_refs": ["door#1"]}
        recording.keep(await house.client.post(BOARD, json=door), door, board="heist")
        body = {"text": "It is shut.", "operator_ref": "op-7", **HEARD}
        closed = await house.client.post(f"{BOARD}/e1/ack", json=body)
        debrief_id = closed.json()["debrief_event_id"]
        recording.keep(closed, body, board="heist", closes="e1", event_id=debrief_id)
        again = await house.client.post(f"{BOARD}/{debrief_id}/ack", json=HEARD)
        recording.keep(again, HEARD, board="heist", closes=debrief_id)
        window = {"text": "Window.", "text_certainty": "confirmed", "mission_id": "heist", **HEARD}
        recording.keep(await house.client.post(SPEAK, json=window), window)
    assert recording.check() == [None, None, "mission_rate_limited", "mission_rate_limited"]


async def test_a_replayed_closing_finds_the_event_of_the_board_and_not_a_spoken_one_with_its_id() -> None:
    recording = Recording()
    async with open_house() as house:
        door = {"text": "The door is open.", "event_id": "e1", **HEARD}
        recording.keep(await house.client.post(BOARD, json=door), door, board="heist")
        mind = FIRE | {"text": "Mind the door.", "event_id": "e1"}
        recording.keep(await house.client.post(SPEAK, json=mind), mind)
        closed = await house.client.post(f"{BOARD}/e1/ack", json=HEARD)
        recording.keep(closed, HEARD, board="heist", closes="e1")
    assert "The door is open." in closed.json()["payload"]["text_payload"]["why_it_matters"]
    recording.check()


async def test_a_recording_of_several_users_is_replayed_exactly() -> None:
    tokens = {"ann": "a" * 16, "bob": "b" * 16}
    recording = Recording()
    async with open_house(policy=AccessPolicy(tokens)) as house:
        for user in ("ann", "bob", "ann"):
            answer = await house.client.post(SPEAK, json=FIRE, headers={"authorization": f"Bearer {tokens[user]}"})
            recording.keep(answer, FIRE, user=user)
    assert recording.check() == [None, None, "dedupe_cooldown"]


# -- the document


async def test_a_refusal_fits_the_openapi_document() -> None:
    document: dict[str, Any] = document_of_routes(VIEWS, wants_tokens=False)
    schema = {"$ref": "#/components/schemas/NotSpoken", "components": document["components"]}
    error = document["components"]["schemas"]["NotSpoken"]["properties"]["error"]
    assert error["properties"]["code"]["enum"] == [
        "voice_rate_limited",
        "voice_budget_exceeded",
        "voice_backend_error",
    ]
    validator = jsonschema_rs.validator_for(schema)
    async with open_house(mission=REPLAY) as house:
        for number in range(12):
            await house.client.post(SPEAK, json=FIRE | {"text": f"Fire {number}.", "policy_ts_ms": 1_000})
        answer = await house.client.post(SPEAK, json=FIRE | {"policy_ts_ms": 1_000})
        refusal = answer.json()
    assert answer.status_code == 429
    assert validator.is_valid(refusal)
    assert not validator.is_valid(refusal | {"error": refusal["error"] | {"scope": "nobody"}})


async def test_mission_routes_are_rate_limited() -> None:
    limits = WireLimits(user_commands_per_second=0.001, user_command_burst=1)
    async with open_house(wire_limits=limits) as house:
        assert (await house.client.get(BOARD)).status_code == 200
        assert refused(await house.client.post(SPEAK, json=FIRE)) == (429, "rate_limited")


# -- streams


@asynccontextmanager
async def following(house: House, path: str = BOARD, last_event_id: str | None = None) -> AsyncGenerator[Follower]:
    """A stream of a board, over a connection of its own."""
    headers = {"host": house.client.base_url.netloc.decode(), "accept": "text/event-stream"}
    if last_event_id is not None:
        headers["last-event-id"] = last_event_id
    async with await trio.open_tcp_stream("localhost", house.client.base_url.port or 0) as stream:
        answer = Answer(stream)
        await answer.ask("GET", path, headers)
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        follower = Follower(answer)
        assert await follower.read_block() == {}
        yield follower


async def told(follower: Follower) -> dict[str, Any]:
    """The next event of a stream."""
    while True:
        block = await follower.read_block()
        assert block is not None
        if block:
            assert block["event"] == "mission_event"
            event: dict[str, Any] = json.loads(block["data"])
            assert block["id"] == f"1.{event['seq']}"
            return event


async def test_a_stream_begins_at_the_beginning_or_after_the_last_event_id() -> None:
    async with open_house() as house:
        await house.client.post(BOARD, json={"text": "One.", "event_id": "e1"})
        async with following(house) as everything, following(house, last_event_id="1.1") as rest:
            await house.client.post(BOARD, json={"text": "Two.", "event_id": "e2"})
            await house.client.post(f"{BOARD}/e2/ack")
            assert [(await told(everything))["event_id"] for _ in range(2)] == ["e1", "e2"]
            assert (await told(rest))["event_id"] == "e2"
            assert (await told(rest))["trigger_event_id"] == "e2"


@pytest.mark.parametrize("last_id", ["2.1", "0.9", "1.7"])
async def test_a_stream_begins_at_the_beginning_after_an_id_of_another_board(last_id: str) -> None:
    async with open_house() as house:
        await house.client.post(BOARD, json={"text": "One.", "event_id": "e1"})
        async with following(house, last_event_id=last_id) as follower:
            assert (await told(follower))["event_id"] == "e1"


async def test_an_empty_board_sends_its_first_event_after_any_last_event_id() -> None:
    limits = WireLimits(keep_alive=9_999)
    async with open_house(wire_limits=limits) as house, following(house, last_event_id="1.7") as follower:
        await house.client.post(BOARD, json={"text": "One.", "event_id": "e1"})
        assert (await told(follower))["event_id"] == "e1"


@pytest.mark.parametrize("last_id", ["1", "x", "1.-1", "1.1.1"])
async def test_an_invalid_last_event_id_is_refused(last_id: str) -> None:
    async with open_house() as house:
        assert refused(await house.client.get(BOARD, headers={"last-event-id": last_id})) == (400, "invalid_command")


async def test_a_silent_board_is_kept_alive_and_ends_with_the_server() -> None:
    async with open_house(wire_limits=WireLimits(keep_alive=0.02)) as house, following(house) as follower:
        assert await follower.read_block() == {}
        house.stop()
        while (block := await follower.read_block()) is not None:
            assert block == {}


async def test_the_stream_of_a_board_that_is_over_ends_and_does_not_attend() -> None:
    attended = 0
    sent: list[object] = []

    def attend() -> None:
        nonlocal attended
        attended += 1

    async def send(message: object) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    async def receive() -> dict[str, str]:
        await trio.sleep_forever()
        raise AssertionError

    board = MissionBoard()
    board.end()
    await BoardStream(board, 0, 1, 15, attend)({"state": {STREAMS: OpenStreams()}}, receive, send)
    assert (attended, len(sent)) == (0, 3)


@pytest.mark.shows("callouts-55")
async def test_the_turns_of_a_session_appear_on_the_board_of_its_id() -> None:
    speaker = Speaker()
    async with open_house(mission=MissionSettings(voice=speaker)) as house:
        guest = await house.start()
        path = f"/api/mission-board/{guest.session_id}/events"
        async with following(house, f"{path}?context_tier=1&session_state=active&voice_mode=normal") as follower:
            turn_id = await guest.begin_turn("Hello")
            commit = await guest.finalize(turn_id)
            event = await told(follower)
    assert event["payload"]["mission_id"] == guest.session_id
    assert event["payload"]["evidence_refs"][1] == f"commit:{commit.commit_id}"
    assert event["payload"]["event_type"] == "state_change"
    assert event["payload"]["suppression"]["reason"] is None
    assert speaker.said == ["A turn is committed. Its changes are kept. Go on when you like."]
